"""Island Usage: which files, sockets and threads of a program use more, by amount and by seconds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator
from copy import copy
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import numpy as np

from perun.core.errors import ProfileError
from perun.measurement.comparison import Measurements, changes
from perun.measurement.difference import Rules
from perun.measurement.series import Metric, Series, measurements
from perun.plugin.api import CheckContext
from perun.plugin.params import param
from perun.profile.amounts import written
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from perun.profile.island import TYPE, ObjectUsage, usage_of

# The series of island profiles: amounts, calls and times, of the whole, of each thread and each object.

USAGE: Final = "usage"
TIME: Final = "time"
"""The types of the series: what is counted, and what is timed."""
CALLS: Final = "calls"
_SAME_AGAIN: Final = frozenset({"disk", "random"})
"""Types whose calls are as many in each run of a program, as they wait for nobody."""
_AMOUNTS: Final = _SAME_AGAIN | {"net"}
"""Types whose amounts are the same in each run."""
_LONG_ONLY: Final = frozenset({"lock", "wait"})
"""Types of which only calls that take long are recorded, so that their number says nothing."""
_SAYS_IT_ALL: Final = frozenset({"disk", "net", "cpu"})
"""Types whose subtypes no other type has."""
_SHORT: Final = 0.01
"""Seconds: less than a tick of the scheduler says nothing of a single run."""


class _Key(NamedTuple):
    """What a series is of.

    :param what: of the uid was measured. :param exact: whether it is the same in each run of a program.
    """

    uid: str
    what: str
    unit: str
    type: str
    exact: bool


class IslandSamples(Measurements):
    """The series of a profile by their locations.

    :ivar whole: seconds of the run, the mean of all runs. :ivar totals: of each kind its mean amount in the
        whole program, by the subtype. :ivar objects: the locations of single objects, with their kinds.
    """

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        times = {name: one for name, one in measurements(profile).items() if one.metric.type == TIME}
        command = next((one.metric.uid for one in times.values()), "the program")
        self.whole = float(np.mean(times[name].values)) if (name := f"{command} [real]") in times else 0.0
        self.totals: dict[str, float] = {}
        self.objects: dict[str, str] = {}
        self.series = {**times, **self._usage(profile, command)}

    def without(self, locations: Container[str]) -> IslandSamples:
        """The same without these locations."""
        made = copy(self)
        made.series = {name: one for name, one in self.series.items() if name not in locations}
        return made

    def _usage(self, profile: Profile, command: str) -> dict[str, Series]:
        rows = list(usage_of(profile))
        runs = max((row.order for row in rows), default=0)
        sums: dict[_Key, list[float]] = defaultdict(lambda: [0.0] * runs)
        for row in rows:
            for key, value in _values(row, command):
                sums[key][row.order - 1] += value
            if row.uid != row.thread and row.unit != "s":
                self.objects[f"{row.uid} [{_kind(row)}]"] = _kind(row)
        found = {}
        for key, values in sums.items():
            metric = Metric(key.uid, key.type, key.what, key.unit, key.exact)
            of_all = key.uid == command
            found[metric.location] = Series(metric, np.array(values), absent=0.0 if of_all else None)
            if of_all and key.type == USAGE:
                self.totals[key.what] = float(np.mean(values))
        return found


def _values(row: ObjectUsage, command: str) -> Iterator[tuple[_Key, float]]:
    """What a resource adds to the series of the whole, of its thread and of its object."""
    objects = [row.uid] if row.uid != row.thread else []
    what = _kind(row)
    if row.unit != "s":
        for uid in (command, *objects):
            yield _Key(uid, what, row.unit, USAGE, row.type in _AMOUNTS), row.amount
    if row.calls and row.type not in _LONG_ONLY:
        yield _Key(command, f"{what} {CALLS}", "", USAGE, row.type in _SAME_AGAIN), row.calls
    if row.seconds:
        for uid in (command, row.thread, *objects):
            yield _Key(uid, f"{what} {TIME}", "s", TIME, False), row.seconds


def _kind(row: ObjectUsage) -> str:
    """What locations call a kind: `filewrite`, but `thread start`, as timers are started, too."""
    return row.subtype if row.type in _SAYS_IT_ALL or row.type == row.subtype else f"{row.type} {row.subtype}"


def left_out(old: IslandSamples, new: IslandSamples, share: float) -> set[str]:
    """The locations that are too small to be compared.

    These are times below the share of the run in both profiles, and objects below that share of what the
    whole program uses of their kind.
    """
    small = set()
    limit = share * max(old.whole, new.whole)
    for location in old.series.keys() | new.series.keys():
        sides = [side.series[location] for side in (old, new) if location in side.series]
        largest = max(float(np.mean(one.values)) for one in sides)
        if sides[0].metric.type == TIME:
            if sides[0].metric.subtype not in ("real", "user", "sys", "cpu") and largest < limit:
                small.add(location)
        elif (kind := old.objects.get(location) or new.objects.get(location)) is not None:
            total = max(side.totals.get(kind, 0.0) for side in (old, new))
            if largest < share * total:
                small.add(location)
    return small


def of_single_runs(old: IslandSamples, new: IslandSamples, rules: Rules) -> Iterator[DegradationInfo]:
    """What may have changed of the times of single runs, and of what else may differ from run to run.

    Nothing is known of their noise, so only what more than doubled, or halved, is told.
    """
    for location in sorted(old.series.keys() | new.series.keys()):
        before, after = old.series.get(location), new.series.get(location)
        known = before or after
        if known is None or known.metric.exact or not (known.absent == 0 or (before and after)):
            continue
        if max(one.values.size for one in (before, after) if one) > 1:
            continue
        values = tuple(float(one.values[0]) if one else 0.0 for one in (before, after))
        small, large = sorted(values)
        least = _SHORT if known.metric.type == TIME else 0.0
        if large - small <= least or large <= (1 + rules.unpaired_tolerance) * small:
            continue
        grown = values[1] > values[0]
        yield DegradationInfo(
            PerformanceChange.MaybeDegradation if grown else PerformanceChange.MaybeOptimization,
            location,
            written(values[0], known.metric.unit),
            written(values[1], known.metric.unit),
            "ratio",
            values[1] / values[0] if values[0] else 0.0,
            values=(values[0], values[1]),
            unit=known.metric.unit,
            rule="one run of each: collect with --repeat 5 or more to be sure",
        )


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
