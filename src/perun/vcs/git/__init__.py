"""Support for git (manual 13.1)."""

from perun.vcs.git.repository import Git
from perun.vcs.git.worktree import main_working_tree

PLUGIN = Git

__all__ = ["PLUGIN", "Git", "main_working_tree"]
