"""Island Usage: which files, sockets and threads of a program use more, by amount and by seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from perun.check._common.islands import IslandSamples, left_out, of_single_runs
from perun.errors import ProfileError
from perun.measurement.comparison import changes
from perun.measurement.difference import Rules
from perun.plugin.api import CheckContext
from perun.plugin.params import param
from perun.profile.changes import DegradationInfo
from perun.profile.island import TYPE

if TYPE_CHECKING:
    from perun.profile.factory import Profile


@dataclass(frozen=True)
class UsageParams:
    """What is too small to be compared, and where the labels begin."""

    share: float = param(
        0.01,
        metavar="<share>",
        minimum=0,
        help="Leave out objects that hold less than this share of their kind, and times below this share of "
        "the run.",
    )
    threshold: float = param(
        0.02, metavar="<share>", minimum=0, help="A growth of a time up to this share is no change."
    )
    severe: float = param(0.25, metavar="<share>", minimum=0, help="A growth above this share is severe.")


class IslandUsage:
    """Compares two profiles of `perun collect island`: what is used, and how long that takes.

    Amounts and numbers of calls have no noise where each run has the same: any difference is a change. Those
    that vary from run to run, and all times, are compared as repeated measurements are, by the interval of
    their ratio (docs/verdicts.md). Of a single run nothing is known of the noise of times: only one that more
    than doubled, or halved, may have changed.

    Locations are `COMMAND [filewrite]` of the whole, `OBJECT [filewrite]` of one file or socket, `THREAD
    [user-thread time]` of one thread.
    """

    name: ClassVar[str] = "island_usage"
    short: ClassVar[str] = "IU"
    help: ClassVar[str] = "Compares what two runs of an island use, by amount, by calls and by seconds."
    Params: ClassVar[type] = UsageParams

    def compare(
        self, baseline: Profile, target: Profile, params: UsageParams, ctx: CheckContext
    ) -> Iterator[DegradationInfo]:
        """The changes in the order of their locations.

        :raises ProfileError: where a profile is none of an island.
        """
        for profile in (baseline, target):
            if profile.type != TYPE:
                raise ProfileError(
                    f"{self.name} compares profiles of islands, not of the type {profile.type or '(none)'}",
                    "collect one with: perun collect -c 'python3 program.py' island",
                )
        rules = Rules(threshold=params.threshold, severe=params.severe)
        old, new = ctx.cached(baseline, IslandSamples), ctx.cached(target, IslandSamples)
        small = left_out(old, new, params.share)
        old, new = old.without(small), new.without(small)
        found = changes(old, new, rules)
        found += of_single_runs(old, new, rules)
        yield from sorted(found, key=lambda change: change.location)


PLUGIN = IslandUsage
