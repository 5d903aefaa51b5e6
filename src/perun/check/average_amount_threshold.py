"""Average Amount Threshold: mean amounts of baseline and target, compared by division (manual 8.2.2)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import fsum, inf, isfinite, nan
from operator import add
from statistics import fmean
from typing import Any, ClassVar, Final

from perun.check._common import without_slowest
from perun.plugin.api import CheckContext
from perun.plugin.params import param
from perun.profile.amounts import common_unit, units, written
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from perun.profile.session import count_of

_ABSENT: Final = "-"
TOTAL: Final = "total"
_TICK: Final = 0.01
"""Seconds of a clock tick, which the kernel counts as user or as system time as a whole."""
_NEARLY: Final = 0.85
"""Power of the limit that a robust measure has to reach: that is known to about a tenth itself, and where the
change is as large as the limit, the mean and it would both pass it in a quarter of all cases only."""
_HALFWAY: Final = 0.5
"""Power of the limit that it has to reach where there may be a change."""
_MAYBE: Final = {
    PerformanceChange.Degradation: PerformanceChange.MaybeDegradation,
    PerformanceChange.Optimization: PerformanceChange.MaybeOptimization,
}


@dataclass(frozen=True)
class ThresholdParams:
    """The ratios of target and baseline from which on a change is reported."""

    degradation: float = param(
        2.0, metavar="<ratio>", minimum=0, help="A mean that grew at least this many times is a degradation."
    )
    optimization: float = param(
        0.5, metavar="<ratio>", minimum=0, help="A mean at most this many times the old is an optimization."
    )
    exact_degradation: float = param(
        1.05,
        metavar="<ratio>",
        minimum=0,
        help="The same as degradation, for amounts without noise: bytes and numbers of allocations.",
    )
    exact_optimization: float = param(
        0.95,
        metavar="<ratio>",
        minimum=0,
        help="The same as optimization, for amounts without noise: bytes and numbers of allocations.",
    )


class AverageAmountThreshold:
    """Reports every uid, also the unchanged ones; the rate of a change is the ratio target / baseline.

    What is measured in several ways (`real`, `user` and `sys` time; `malloc` and `free`) is compared apart,
    at the locations `<uid> [real]` and so on; `<uid> [cpu]` is the sum of user and system time of each run.

    A change of amounts that have noise is certain only where a robust measure passes the limit as well: the
    mean of calls without the slowest 5 % of them, or the fastest of repeated runs. Of repeated runs, 0.85 of
    the limit on a logarithmic scale is enough (1.8 of 2).
    Otherwise it is a Maybe where that measure changed by the root of the limit, and Unknown where it did not:
    a few interrupted calls are no change of the program. The confidence is the ratio of the robust measures.
    User and system time apart have changed only where they differ by 10 ms or more.

    Where a function is called more often or less often than before, the sum of its calls is compared too, at
    the location `<uid> [total]`. Calls that became shorter are no optimization then unless they take less
    time altogether.
    """

    name: ClassVar[str] = "average_amount_threshold"
    short: ClassVar[str] = "AAT"
    help: ClassVar[str] = "Compares the average amounts of each uid: twice as much is a degradation."
    Params: ClassVar[type] = ThresholdParams

    def compare(
        self, baseline: Profile, target: Profile, params: ThresholdParams, ctx: CheckContext
    ) -> Iterator[DegradationInfo]:
        """Changes of type `ratio`, in the order of the uids.

        A uid in one of the profiles only is NotInBaseline or NotInTarget. Unknown is one that cannot be
        compared, because amounts are absent or not numbers, or only that of the baseline is zero. A resource
        of memory with a `count` stands for so many, and its amount is their sum. One with `absent: 0`, as
        leaked memory has it, counts as 0 in a profile without it, and more than 0 is a degradation then.
        """
        old, new = ctx.cached(baseline, amounts), ctx.cached(target, amounts)
        for uid in sorted(old.keys() | new.keys()):
            before, after = old.get(uid, {}), new.get(uid, {})
            metrics = sorted((before.keys() | after.keys()) - {""}) or [""]
            for metric in metrics:
                names = [metric] if len(metrics) > 1 else []
                old_one, new_one = (side.get(metric) or side.get("") for side in (before, after))
                yield from _changes(uid, names, old_one, new_one, params)


def _changes(
    uid: str, names: list[str], before: Amounts | None, after: Amounts | None, params: ThresholdParams
) -> Iterator[DegradationInfo]:
    """The change of the mean, and that of the sum where the numbers of calls differ.

    :param names: what the location says behind the uid.
    """
    location = _location(uid, names)
    before = before or Amounts.absent_like(after)
    after = after or Amounts.absent_like(before)
    if before is None or after is None:
        change = PerformanceChange.NotInBaseline if before is None else PerformanceChange.NotInTarget
        yield DegradationInfo(
            change, location, str(before) if before else _ABSENT, str(after) if after else _ABSENT, "ratio"
        )
        return
    mean = _classified(location, before, after, params)
    if before.is_calls and after.is_calls and before.runs_calls != after.runs_calls:
        total = _classified(_location(uid, [*names, TOTAL]), before, after, params, sums=True)
        grows = (after.sum or 0.0) - (before.sum or 0.0)
        if mean.rate_degradation and (mean.rate_degradation - 1) * grows < 0:
            mean.result = PerformanceChange.NoChange
        yield mean
        yield total
    else:
        yield mean


def _location(uid: str, names: list[str]) -> str:
    return f"{uid} [{', '.join(names)}]" if names else uid


def _classified(
    location: str, before: Amounts, after: Amounts, params: ThresholdParams, *, sums: bool = False
) -> DegradationInfo:
    info = DegradationInfo(
        PerformanceChange.Unknown,
        location,
        before.sum_text if sums else str(before),
        after.sum_text if sums else str(after),
        "ratio",
    )
    old, new = (before.sum, after.sum) if sums else (before.mean, after.mean)
    if old is None or new is None:
        return info
    if before.unit == after.unit:
        info.values, info.unit = (old, new), before.unit or ""
    if old == new:
        info.result, info.rate_degradation = PerformanceChange.NoChange, 1.0
        return info
    if before.from_zero and after.from_zero and 0 in (old, new):
        info.result = PerformanceChange.Degradation if new > old else PerformanceChange.Optimization
        return info
    info.rate_degradation = ratio(new, old) if old else 0.0
    if before.is_part_of_cpu and abs(new - old) * before.seconds < _TICK:
        info.result = PerformanceChange.NoChange
        return info
    if old == 0:
        return info
    exact = before.is_exact and after.is_exact
    info.result = _by_limits(info.rate_degradation, params, exact=exact)
    if info.result is not PerformanceChange.NoChange and not exact:
        _confirm(info, before, after, params, sums=sums)
    return info


def _confirm(
    info: DegradationInfo, before: Amounts, after: Amounts, params: ThresholdParams, *, sums: bool
) -> None:
    """Call the change a Maybe, or Unknown, where a robust measure changes less than the mean does."""
    name, old, new = before.robust_name, before.robust_mean, after.robust_mean
    if sums:
        old, new = old * before.runs_calls, new * after.runs_calls
    robust = ratio(new, old) if old else 1.0 if new == 0 else info.rate_degradation
    worse = info.result is PerformanceChange.Degradation
    growth = robust if worse else 1 / robust if robust > 0 else inf
    limit = max(params.degradation if worse else 1 / params.optimization, 1.0)
    one_run = before.is_calls and min(before.runs, after.runs) < 2
    if growth >= (limit if one_run else limit**_NEARLY):
        return
    info.confidence_type, info.confidence_rate = f"ratio of {name}", robust
    if growth >= limit**_HALFWAY:
        info.result = _MAYBE[info.result]
    else:
        info.result = PerformanceChange.Unknown
        info.rule = f"the means differ, but the {name} by a factor of {robust:.3g} only"


def _by_limits(ratio: float, params: ThresholdParams, *, exact: bool) -> PerformanceChange:
    worse, better = (
        (params.exact_degradation, params.exact_optimization)
        if exact
        else (params.degradation, params.optimization)
    )
    if ratio >= worse:
        return PerformanceChange.Degradation
    if 0 < ratio <= better:
        return PerformanceChange.Optimization
    return PerformanceChange.NoChange


# The amounts of a profile by uid and by what they measure, with their sums, means and robust means.

CPU: Final = "cpu"
_TIME: Final = "time"
_MEMORY: Final = "memory"
_CPU_PARTS: Final = ("user", "sys")
_SECONDS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(slots=True)
class Amounts:
    """The amounts of one uid that measure the same thing.

    :ivar metric: what they measure: the subtype, or the type where there is none, or :data:`CPU`.
    :ivar total: their sum. :ivar count: how many measurements they stand for.
    :ivar runs: how many profiles were pooled into the one that they are of.
    :ivar unit: empty where it is not known, or not the same for all.
    :ivar trouble: why they have no mean; empty where they have one.
    :ivar from_zero: whether a profile without them has an amount of 0, and more is worse.
    :ivar is_calls: whether each amount is of one call or one allocation; otherwise of one run of the command.
    :ivar is_exact: whether the amount is the same in each run of the same program.
    :ivar columns: the amounts themselves, those of a profile, not copies.
    """

    metric: str = ""
    total: float = 0.0
    count: float = 0
    runs: int = 1
    unit: str | None = None
    trouble: str = "no amount"
    from_zero: bool = False
    is_calls: bool = False
    is_exact: bool = False
    columns: list[Sequence[float]] = field(default_factory=list)

    @classmethod
    def absent_like(cls, other: Amounts | None) -> Amounts | None:
        """What a profile without the amounts has of them, where the other profile says that; else None."""
        if other is None or not other.from_zero or other.mean is None:
            return None
        return cls(other.metric, count=1, unit=other.unit, trouble="", from_zero=True)

    def add(self, amounts: Sequence[float], count: float, unit: str) -> None:
        """Take in more amounts.

        :param count: the number of measurements that they stand for.
        """
        if not self.count:
            self.unit, self.trouble = unit, ""
        elif unit != self.unit:
            self.unit = ""
        self.total += _sum(amounts)
        self.count += count
        self.columns.append(amounts)
        if not isfinite(self.total):
            self.trouble = "an amount is not a number"

    @property
    def mean(self) -> float | None:
        """The mean amount; None where there is none."""
        return None if self.trouble else self.total / self.count

    @property
    def sum(self) -> float | None:
        """The sum of the amounts of one run; None where there is none."""
        return None if self.trouble else self.total / self.runs

    @property
    def runs_calls(self) -> float:
        """The mean number of calls in one run."""
        return self.count / self.runs

    @property
    def robust_name(self) -> str:
        """What :attr:`robust_mean` is."""
        return "trimmed means" if self.is_calls else "fastest runs"

    @property
    def robust_mean(self) -> float:
        """The mean without the slowest 5 % (at least one) of the calls; the fastest of repeated runs.

        Whatever disturbs a run makes it slower: how fast the command can be is the best known.
        """
        values = chain.from_iterable(self.columns)
        if not self.is_calls:
            return min(values)
        ordered = sorted(values)
        return fmean(ordered[: without_slowest(len(ordered))])

    @property
    def is_part_of_cpu(self) -> bool:
        """Whether it is user or system time, which the kernel tells apart in whole ticks of its clock."""
        return self.metric in _CPU_PARTS and self.unit in _SECONDS

    @property
    def seconds(self) -> float:
        """Seconds of one unit; 1 where the unit is none of time."""
        return _SECONDS.get(self.unit or "", 1.0)

    def __str__(self) -> str:
        return self.trouble or written(self.total / self.count, self.unit or "")

    @property
    def sum_text(self) -> str:
        """The sum with the number of calls: `3.5ms (7 calls)`."""
        calls = round(self.runs_calls, 2)
        noun = "call" if calls == 1 else "calls"
        return self.trouble or f"{written(self.total / self.runs, self.unit or '')} ({calls:g} {noun})"


Metrics = dict[str, Amounts]


def ratio(target: float, baseline: float) -> float:
    """target / baseline within the range of numbers; the baseline is not 0."""
    return max(-sys.float_info.max, min(target / baseline, sys.float_info.max))


def amounts(profile: Profile) -> dict[str, Metrics]:
    """The amounts by uid as text and by what they measure, summed up without making single resources.

    Resources without an amount are kept under the empty metric. A uid that has user and system time of the
    same runs has their sums as :data:`CPU`, too.
    """
    unit_of = units(profile)
    runs = count_of(profile)
    found: dict[str, Metrics] = {}
    for key, constants, columns, size in profile.groups():
        # The key of a group is the uid as text, `#`, and a number.
        own = found.setdefault(key.rpartition("#")[0] or key, {})
        kind, subtype = constants.get("type"), constants.get("subtype")
        unit, factor = unit_of(kind, subtype), 1.0
        if subtype == unit:  # a rate, which is one metric whatever its unit
            factor, subtype = common_unit(unit)
            unit = subtype
        has_amounts = "amount" in columns or "amount" in constants
        metric = str(subtype or kind or "") if has_amounts else ""
        group = own.get(metric)
        if group is None:
            group = own[metric] = Amounts(metric, runs=runs)
            group.is_calls = kind != _TIME and not _is_repeated(columns, constants)
            group.is_exact = kind == _MEMORY and group.is_calls
        group.from_zero = constants.get("absent") == 0
        if has_amounts and size:
            values: Sequence[float] = columns.get("amount") or [constants["amount"]] * size
            count = _count(columns, size) if kind == _MEMORY else size
            group.add(values if factor == 1 else [factor * one for one in values], count, unit)
    for own in found.values():
        _add_cpu(own)
    return found


def _is_repeated(columns: Mapping[str, Any], shared: Mapping[str, Any]) -> bool:
    """Whether the resources are numbered by runs of the command; single allocations are numbered, too."""
    return ("order" in columns or "order" in shared) and "trace" not in shared


def _add_cpu(metrics: Metrics) -> None:
    parts = [metrics[name] for name in _CPU_PARTS if name in metrics]
    if len(parts) < len(_CPU_PARTS) or CPU in metrics or any(part.trouble for part in parts):
        return
    user, system = (list(chain.from_iterable(part.columns)) for part in parts)
    if len(user) != len(system) or parts[0].unit != parts[1].unit:
        return
    cpu = metrics[CPU] = Amounts(CPU, runs=parts[0].runs)
    cpu.add(list(map(add, user, system)), len(user), parts[0].unit or "")


def _count(columns: Mapping[str, Any], size: int) -> float:
    """How many measurements the resources of a group stand for."""
    count = _sum(columns["count"]) if "count" in columns else nan
    return count if count >= size else size


def _sum(values: Iterable[Any]) -> float:
    try:
        return fsum(values)
    except (TypeError, ValueError, OverflowError):
        return nan


PLUGIN = AverageAmountThreshold
