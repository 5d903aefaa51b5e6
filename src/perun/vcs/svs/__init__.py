"""A version control without history: the folder as it is, for projects that have none."""

from perun.vcs.svs.repository import Svs

PLUGIN = Svs

__all__ = ["PLUGIN", "Svs"]
