"""What is measured by which name: the clocks of a run, its peak memory, and whatever a collector records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from perun.errors import PluginError, UsageError
from perun.measurement.series import Metric
from perun.porcelain.compare.plan import Case
from perun.porcelain.repository import Repository
from perun.porcelain.run.jobs import Unit, make_unit

CLOCKS: Final = {"wall": "real", "cpu": "cpu", "user": "user", "sys": "sys"}
"""The clocks of a run by the names that the user gives them: the subtype of the resources."""
PEAK: Final = "peak-memory"
FREE: Final = (*CLOCKS, PEAK)
"""What each run tells without a collector."""
_NOT_SUMMED: Final = frozenset({"inclusive"})
"""Subtypes that count the same event for each caller."""
_OF_FUNCTIONS: Final = frozenset({"memory", "instructions", "mixed"})
"""Types that are recorded function by function: here the program is compared as a whole."""


class Recorded(NamedTuple):
    """A metric that a collector records: its name, or its type and subtype as `memory:peak`.

    :param units: the collectors that may record it, the likeliest first.
    """

    name: str
    units: tuple[Unit, ...]

    def matches(self, metric: Metric, collector: str) -> bool:
        """Whether the name means this metric of the collector."""
        kind, _, subtype = self.name.partition(":")
        if subtype:
            return metric.subtype == subtype and kind in (metric.type, collector, metric.uid)
        return kind in (metric.type, metric.subtype, metric.uid, collector)


class Wanted(NamedTuple):
    """What is measured of one configuration: clocks and peak in the same runs, the rest in others."""

    free: tuple[str, ...]
    recorded: tuple[Recorded, ...]


def wanted(repo: Repository, names: Sequence[str], case: Case) -> Wanted:
    """Who measures the metrics of these names.

    :raises UsageError: where a name is no clock, no collector, and the matrix has no collector that might
        record it.
    """
    free = tuple(dict.fromkeys(name for name in names if name in FREE))
    others = dict.fromkeys(name for name in names if name not in FREE)
    return Wanted(free, tuple(Recorded(name, tuple(_units(repo, name, case.collectors))) for name in others))


def _units(repo: Repository, name: str, configured: Sequence[Unit]) -> Iterable[Unit]:
    """The collector of that name, as it is configured where it is; else all those of the matrix."""
    kind = name.partition(":")[0].replace("-", "_")
    own = [unit for unit in configured if unit.name.replace("-", "_") == kind]
    if own:
        return own
    try:
        return [make_unit(repo, "collect", kind, {}, "--metric")]
    except PluginError:
        others = [unit for unit in configured if unit.name != "time"]
    if not others:
        raise UsageError(
            f"--metric {name}: it is none of {', '.join(FREE)} and no collector, and the job matrix has no "
            "collector that may record it",
            "name a collector, e.g. --metric memory:peak, or add one: perun config edit",
        ) from None
    return others


def clock(cmd: str, name: str) -> Metric:
    """The metric of one of :data:`FREE`, as a profile of the time collector has it."""
    if name == PEAK:
        return Metric(cmd, "memory", "peak", "B", False)
    return Metric(cmd, "time", CLOCKS[name], "s", False)


def summed(cmd: str, metric: Metric) -> Metric | None:
    """The metric that the values of this one add up to; None where they are no part of any sum."""
    if metric.subtype in _NOT_SUMMED:
        return None
    return metric._replace(uid=cmd) if metric.type in _OF_FUNCTIONS and not is_printed(metric) else metric


def is_printed(metric: Metric) -> bool:
    """Whether the program prints it in a unit of its own, as requests per second: it is no part of a sum."""
    return metric.larger_is_better or (metric.type == "mixed" and metric.subtype not in ("", "time delta"))
