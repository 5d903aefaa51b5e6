"""Average Amount Threshold: mean amounts of baseline and target, compared by division (manual 8.2.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar, Final

from perun.plugin.api import CheckContext
from perun.plugin.params import param
from perun.profile.changes import DegradationInfo, PerformanceChange

if TYPE_CHECKING:
    from perun.check._common.amounts import Amounts
    from perun.profile.factory import Profile

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
        from perun.check._common.amounts import amounts

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
    from perun.check._common.amounts import Amounts

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
    from perun.check._common.amounts import ratio

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
    from perun.check._common.amounts import ratio

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


PLUGIN = AverageAmountThreshold
