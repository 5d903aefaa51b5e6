"""The ratios of the series of two profiles, and the changes that they are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Set
from dataclasses import replace
from typing import Final

import numpy as np

from perun.check._common.series_pairs import Samples, SeriesPair, is_exact, measured, without_ratio
from perun.check._common.witnesses import Repeats, Witnesses, large_changes, no_repeats
from perun.measurement.series import CALLS, CPU, PARTS_OF_CPU, TOTAL, Metric, Series
from perun.models.two_samples.ratio import MIN_VALUES
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.units import readable, readable_pair
from perun.profile.verdict import MORE_IS_BETTER, Thresholds, Verdict, judge, judge_exact, mirrored

MIN_CALLS: Final = 5
"""Calls of a function in one run that are compared; of fewer no interval of 99 % can be made."""
_DERIVED: Final = (CPU, *PARTS_OF_CPU, CALLS, TOTAL)
_TYPE: Final = "ratio"
_ABSENT: Final = "-"


def changes(
    old: Samples, new: Samples, thresholds: Thresholds, *, paired: bool, repeats: Repeats = no_repeats
) -> list[DegradationInfo]:
    """One change for each location whose series can be compared, in the order of the locations.

    The p-values are adjusted for as many ratios as there are. Nothing is said of the `user` and `sys` time
    of a command where nothing can be: its `cpu` time tells.

    :param paired: whether the k-th values of both belong together.
    :param repeats: asked only where something
        is to be confirmed.
    """
    found: list[DegradationInfo] = []
    pairs: list[SeriesPair] = []
    for location in sorted(old.series.keys() | new.series.keys()):
        before, after = old.series.get(location), new.series.get(location)
        before, after = before or _instead(after), after or _instead(before)
        if before is None or after is None:
            found += _in_one_only(location, before, after)
            continue
        pair = SeriesPair(location, before, after, is_exact(before, after))
        if _is_comparable(pair):
            pairs.append(pair)
    pairs = measured(pairs, old, new, thresholds, paired=paired)
    witnesses = Witnesses(large_changes(pairs, thresholds), repeats, thresholds)
    found += [_change(pair, thresholds, witnesses) for pair in pairs]
    whole = {pair.old.metric for pair in pairs if pair.old.metric.subtype == CPU}
    hidden = {pair.location for pair in pairs if _is_told_by_cpu(pair, whole)}
    told = [one for one in found if one.result is not PerformanceChange.Unknown or one.location not in hidden]
    return sorted(told, key=lambda change: change.location)


def _is_told_by_cpu(pair: SeriesPair, whole: Set[Metric]) -> bool:
    """Whether it is a part of the processor time of a command whose sum is compared as well.

    The parts of a short run are guesses of the kernel, of which often nothing can be said; the sum is none.
    """
    metric = pair.old.metric
    return metric.subtype in PARTS_OF_CPU and metric._replace(subtype=CPU) in whole


def _instead(other: Series | None) -> Series | None:
    """What a profile without the series has of it, by what the other one says."""
    if other is None or other.absent is None:
        return None
    return other._replace(values=np.array([other.absent]), sizes=None)


def _in_one_only(location: str, before: Series | None, after: Series | None) -> Iterator[DegradationInfo]:
    one = before or after
    if one is None or one.metric.subtype in _DERIVED:
        return  # what it is derived from is reported
    if not _is_comparable(SeriesPair(location, one, one, is_exact(one, one))):
        return  # nothing could be said in any case
    kind = PerformanceChange.NotInTarget if after is None else PerformanceChange.NotInBaseline
    yield DegradationInfo(
        kind,
        location,
        _ABSENT if before is None else readable(_median(before), one.metric.unit),
        _ABSENT if after is None else readable(_median(after), one.metric.unit),
        _TYPE,
        rule=f"only the {'baseline' if after is None else 'target'} has it",
    )


def _is_comparable(pair: SeriesPair) -> bool:
    """Whether something can be said of the two: that they differ, or how certain that is."""
    before, after = pair.old, pair.new
    if pair.exact or before.metric.unit != after.metric.unit:
        return True
    fewest = min(before.values.size, after.values.size)
    return fewest >= (MIN_CALLS if before.of_one_run else MIN_VALUES)


def _change(pair: SeriesPair, thresholds: Thresholds, witnesses: Witnesses) -> DegradationInfo:
    verdict = _verdict(pair, thresholds, witnesses)
    if isinstance(verdict, str):
        return _info(pair, PerformanceChange.Unknown, verdict)
    ratio = verdict.ratio
    if pair.new.metric.larger_is_better:
        verdict = verdict._replace(change=mirrored(verdict.change), rule=f"{verdict.rule}; {MORE_IS_BETTER}")
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


def _verdict(pair: SeriesPair, thresholds: Thresholds, witnesses: Witnesses) -> Verdict | str:
    """The label; or why there is no ratio that could have one."""
    before, after = pair.old, pair.new
    if before.metric.unit != after.metric.unit:
        return f"the units differ: {before.metric.unit or 'none'} and {after.metric.unit or 'none'}"
    if pair.exact and min(before.values[0], after.values[0]) >= 0:
        return _counted(before, after, thresholds)
    if pair.ratio is None:
        if not (before.values.any() or after.values.any()):
            sizes = before.values.size, after.values.size
            return judge_exact(0.0, 0.0, sizes, thresholds)._replace(rule="each measurement is 0")
        zeros, total = without_ratio(before, after), before.values.size + after.values.size
        return f"{zeros} of {total} measurements are not above 0, so that there is no ratio"
    if before.metric.exact:  # it varies, but not with the load of the machine
        thresholds = _as_pairs(thresholds)
    return judge(pair.ratio, thresholds, weaker=pair.weaker, confirmed_by=witnesses.of(pair))


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
    return replace(thresholds, apart=thresholds.threshold)


def _info(pair: SeriesPair, change: PerformanceChange, rule: str) -> DegradationInfo:
    values = pair.ratio.typical if pair.ratio else (_median(pair.old), _median(pair.new))
    units = pair.old.metric.unit, pair.new.metric.unit
    info = DegradationInfo(change, pair.location, *readable_pair(*values, *units), _TYPE, rule=rule)
    if units[0] == units[1]:
        info.values, info.unit = values, units[0]
    return info


def _median(series: Series) -> float:
    ordered = np.sort(series.values)
    low, high = ordered[(ordered.size - 1) // 2], ordered[ordered.size // 2]
    return float(low / 2 + high / 2)  # the sum of both may be beyond all floats
