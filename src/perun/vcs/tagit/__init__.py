"""A version control of snapshots named by tags, for folders without git."""

from perun.vcs.tagit.repository import Tagit

PLUGIN = Tagit

__all__ = ["PLUGIN", "Tagit"]
