"""Support for git (manual 13.1)."""

from perun.vcs.git.repository import Git

PLUGIN = Git

__all__ = ["PLUGIN", "Git"]
