"""The parameters of the collector: the options of an island, and what every collector has."""

from __future__ import annotations

from dataclasses import dataclass

from perun.collect._common import params as common
from perun.island.options import IslandOptions
from perun.plugin.params import param

TIMELINE_ENTRIES = 100_000
"""Entries of the timeline of a profile: about 3 MB of JSON, and a page that moves fluently."""


@dataclass(frozen=True)
class IslandParams(IslandOptions):
    """What is recorded, how often, and what the profile keeps of it."""

    timeline_entries: int = param(
        TIMELINE_ENTRIES,
        metavar="<int>",
        minimum=0,
        help="The most entries that the timeline in the profile has. Of more calls, those of one thread to "
        "one function that follow closely are one entry with their number; 0 keeps no timeline.",
    )
    repeat: int = param(
        1,
        short="-r",
        metavar="<int>",
        minimum=1,
        help="Run the command <int> times; from 5 on `perun check` can say how sure it is of times.",
    )
    ignore_failure: bool = common.ignore_failure()
    timeout: float = common.timeout(kept=True)
