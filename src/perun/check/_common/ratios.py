"""The ratios of the series of two profiles, and the changes that they are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from perun.models.two_samples.many import benjamini_hochberg
from perun.models.two_samples.ratio import MIN_VALUES, Ratio, of_pairs, of_samples, of_sizes
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.measurements import CALLS, CPU, PARTS_OF_CPU, TOTAL, Series
from perun.profile.units import readable
from perun.profile.verdict import Thresholds, Verdict, judge, judge_exact

FEWEST_CALLS: Final = 5
"""Calls of a function in one run that are compared; of fewer no interval of 99 % can be made."""
FEWEST_EQUAL: Final = 3
"""Equal measurements of each side that show that something other than a time is exact."""
_DERIVED: Final = (CPU, *PARTS_OF_CPU, CALLS, TOTAL)
_TYPE: Final = "ratio"
_ABSENT: Final = "-"


class _Pair(NamedTuple):
    """The series of one location in both profiles, and what is known of their ratio.

    :param paired: whether the k-th values of both belong together.
    :param ratio: None where they are counted, or where there is none.
    """

    location: str
    old: Series
    new: Series
    paired: bool
    ratio: Ratio | None = None


def changes(
    old: Mapping[str, Series], new: Mapping[str, Series], thresholds: Thresholds, *, paired: bool
) -> list[DegradationInfo]:
    """One change for each location whose series can be compared, in the order of the locations.

    The p-values are adjusted for as many ratios as there are. Nothing is said of the `user` and `sys` time
    of a command where nothing can be: its `cpu` time tells.

    :param paired: whether the k-th values of both belong together.
    """
    found: list[DegradationInfo] = []
    pairs: list[_Pair] = []
    for location in sorted(old.keys() | new.keys()):
        before, after = old.get(location), new.get(location)
        before, after = before or _instead(after), after or _instead(before)
        if before is None or after is None:
            found += _in_one_only(location, before, after)
        elif _are_comparable(before, after):
            pairs.append(_measured(_Pair(location, before, after, paired), thresholds.confidence))
    pairs = _adjusted(pairs)
    large = _large(pairs, thresholds)
    found += [_change(pair, thresholds, large) for pair in pairs]
    hidden = {pair.location for pair in pairs if _is_told_by_cpu(pair, pairs)}
    told = [one for one in found if one.result is not PerformanceChange.Unknown or one.location not in hidden]
    return sorted(told, key=lambda change: change.location)


def _is_told_by_cpu(pair: _Pair, pairs: list[_Pair]) -> bool:
    """Whether it is a part of the processor time of a command whose sum is compared as well.

    The parts of a short run are guesses of the kernel, of which often nothing can be said; the sum is none.
    """
    metric = pair.old.metric
    whole = metric._replace(subtype=CPU)
    return metric.subtype in PARTS_OF_CPU and any(one.old.metric == whole for one in pairs)


def _instead(other: Series | None) -> Series | None:
    """What a profile without the series has of it, by what the other one says."""
    if other is None or other.absent is None:
        return None
    return other._replace(values=np.array([other.absent]), sizes=None)


def _in_one_only(location: str, before: Series | None, after: Series | None) -> Iterator[DegradationInfo]:
    one = before or after
    if one is None or one.metric.subtype in _DERIVED or not _are_comparable(one, one):
        return  # what it is derived from is reported, or nothing could be said in any case
    kind = PerformanceChange.NotInTarget if after is None else PerformanceChange.NotInBaseline
    yield DegradationInfo(
        kind,
        location,
        _ABSENT if before is None else _median(before),
        _ABSENT if after is None else _median(after),
        _TYPE,
        rule=f"only the {'baseline' if after is None else 'target'} has it",
    )


def _are_comparable(before: Series, after: Series) -> bool:
    """Whether something can be said of the two: that they differ, or how certain that is."""
    if _is_exact(before, after) or before.metric.unit != after.metric.unit:
        return True
    fewest = min(before.values.size, after.values.size)
    return fewest >= (FEWEST_CALLS if before.of_one_run else MIN_VALUES)


def _is_exact(before: Series, after: Series) -> bool:
    """Whether both are counted, and each run counted the same."""
    if before.sizes is not None or after.sizes is not None:
        return False
    values = before.values, after.values
    if any(one.size > 1 and (one != one[0]).any() for one in values):
        return False
    repeated = min(one.size for one in values) >= FEWEST_EQUAL
    return before.metric.exact or (repeated and before.metric.type not in ("time", "mixed"))


def _measured(pair: _Pair, confidence: float) -> _Pair:
    """The pair with its ratio, unless it has none: it is counted, or has values that are not positive."""
    before, after = pair.old, pair.new
    if _is_exact(before, after) or before.metric.unit != after.metric.unit or _without_ratio(before, after):
        return pair
    return pair._replace(ratio=_ratio(pair, confidence))


def _ratio(pair: _Pair, confidence: float) -> Ratio:
    before, after = pair.old, pair.new
    old, new = before.values, after.values
    if pair.paired and not before.of_one_run and old.size == new.size:
        return of_pairs(old, new, confidence)
    if before.sizes is not None and after.sizes is not None:
        by_size = of_sizes(old, before.sizes, new, after.sizes, confidence)
        if by_size is not None:
            return by_size
    return of_samples(old, new, confidence)


def _without_ratio(before: Series, after: Series) -> int:
    """How many values are not positive, so that they have no logarithm."""
    return sum(int(np.count_nonzero(one.values <= 0)) for one in (before, after))


def _adjusted(pairs: list[_Pair]) -> list[_Pair]:
    """The pairs with p-values that are adjusted for how many there are."""
    p_values = [pair.ratio.p_value for pair in pairs if pair.ratio is not None]
    adjusted = iter(benjamini_hochberg(p_values).tolist() if p_values else ())
    return [
        pair if pair.ratio is None else pair._replace(ratio=pair.ratio._replace(p_value=next(adjusted)))
        for pair in pairs
    ]


def _large(pairs: list[_Pair], thresholds: Thresholds) -> dict[str, dict[bool, set[str]]]:
    """By uid and by whether it is a growth: the metrics that changed by more than what is severe."""
    limit = 1 + thresholds.severe
    found: dict[str, dict[bool, set[str]]] = {}
    for pair in pairs:
        metric, ratio = pair.old.metric, pair.ratio
        low, high = (ratio.low, ratio.high) if ratio is not None else _counts_ratio(pair)
        for grown in (True, False):
            if low > limit if grown else high < 1 / limit:
                found.setdefault(metric.uid, {}).setdefault(grown, set()).add(metric.subtype)
    return found


def _counts_ratio(pair: _Pair) -> tuple[float, float]:
    if not _is_exact(pair.old, pair.new) or pair.old.values[0] <= 0:
        return 0.0, math.inf
    ratio = float(pair.new.values[0]) / float(pair.old.values[0])
    return ratio, ratio


def _is_confirmed(pair: _Pair, large: Mapping[str, Mapping[bool, set[str]]]) -> bool:
    """Whether another metric of the uid changed as much; `user` and `sys` are no others beside `cpu`."""
    metric, ratio = pair.old.metric, pair.ratio
    if ratio is None:
        return False
    others = set(large.get(metric.uid, {}).get(ratio.estimate > 1, ())) - {metric.subtype}
    return bool(others - {CPU, *PARTS_OF_CPU} if metric.subtype in (CPU, *PARTS_OF_CPU) else others)


def _change(
    pair: _Pair, thresholds: Thresholds, large: Mapping[str, Mapping[bool, set[str]]]
) -> DegradationInfo:
    verdict = _verdict(pair, thresholds, large)
    if isinstance(verdict, str):
        return _info(pair, PerformanceChange.Unknown, verdict)
    ratio = verdict.ratio
    info = _info(pair, verdict.change, verdict.rule)
    info.sizes = ratio.sizes
    if math.isfinite(ratio.estimate):
        info.rate_degradation = ratio.estimate
        info.interval = ratio.low, ratio.high
    info.detectable = ratio.detectable
    if pair.ratio is not None:
        info.p_value = info.confidence_rate = ratio.p_value
        info.confidence_type = "p_value"
    return info


def _verdict(
    pair: _Pair, thresholds: Thresholds, large: Mapping[str, Mapping[bool, set[str]]]
) -> Verdict | str:
    """The label; or why there is no ratio that could have one."""
    before, after = pair.old, pair.new
    if before.metric.unit != after.metric.unit:
        return f"the units differ: {before.metric.unit or 'none'} and {after.metric.unit or 'none'}"
    if _is_exact(before, after) and min(before.values[0], after.values[0]) >= 0:
        return _counted(before, after, thresholds)
    if pair.ratio is None:
        if not (before.values.any() or after.values.any()):
            sizes = before.values.size, after.values.size
            return judge_exact(0.0, 0.0, sizes, thresholds)._replace(rule="each measurement is 0")
        zeros, total = _without_ratio(before, after), before.values.size + after.values.size
        return f"{zeros} of {total} measurements are not above 0, so that there is no ratio"
    if before.metric.exact:  # it varies, but not with the load of the machine
        thresholds = _as_pairs(thresholds)
    weaker = _ratio(pair, thresholds.weaker) if pair.ratio.low <= 1 <= pair.ratio.high else None
    return judge(pair.ratio, thresholds, weaker=weaker, confirmed=_is_confirmed(pair, large))


def _counted(before: Series, after: Series, thresholds: Thresholds) -> Verdict:
    """The label of a count.

    That of the calls of a function in one run each may differ from run to run: only more than what is
    definite of samples measured apart is definite.
    """
    old, new = float(before.values[0]), float(after.values[0])
    sizes = before.values.size, after.values.size
    verdict = judge_exact(old, new, sizes, thresholds, max(before.whole or 0.0, after.whole or 0.0))
    growth = verdict.ratio.estimate
    if before.metric.subtype != CALLS or verdict.change is PerformanceChange.NoChange:
        return verdict
    if max(growth, 1 / growth) > 1 + thresholds.apart:
        change = PerformanceChange.Degradation if growth > 1 else PerformanceChange.Optimization
        return verdict._replace(change=change, rule="the number of calls in one run of each")
    change = PerformanceChange.MaybeDegradation if growth > 1 else PerformanceChange.MaybeOptimization
    rule = "the number of calls in one run of each: it may differ from run to run"
    return verdict._replace(change=change, rule=rule)


def _as_pairs(thresholds: Thresholds) -> Thresholds:
    from dataclasses import replace

    return replace(thresholds, apart=thresholds.threshold)


def _info(pair: _Pair, change: PerformanceChange, rule: str) -> DegradationInfo:
    return DegradationInfo(change, pair.location, _median(pair.old), _median(pair.new), _TYPE, rule=rule)


def _median(series: Series) -> str:
    return readable(float(np.median(series.values)), series.metric.unit)
