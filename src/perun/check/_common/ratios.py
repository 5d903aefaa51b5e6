"""The ratios of the series of two profiles, and the changes that they are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from perun.models.two_samples.many import benjamini_hochberg
from perun.models.two_samples.ratio import (
    MIN_VALUES,
    Ratio,
    Sample,
    described,
    of_each,
    of_pairs,
    of_sizes,
)
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.measurements import CALLS, CPU, PARTS_OF_CPU, TOTAL, Metric, Series, measurements
from perun.profile.units import readable, readable_pair
from perun.profile.verdict import MORE_IS_BETTER, Thresholds, Verdict, judge, judge_exact, mirrored

if TYPE_CHECKING:
    from perun.profile.factory import Profile

FEWEST_CALLS: Final = 5
"""Calls of a function in one run that are compared; of fewer no interval of 99 % can be made."""
FEWEST_EQUAL: Final = 3
"""Equal measurements of each side that show that something other than a time is exact."""
_DERIVED: Final = (CPU, *PARTS_OF_CPU, CALLS, TOTAL)
_TYPE: Final = "ratio"
_ABSENT: Final = "-"


class _Pair(NamedTuple):
    """The series of one location in both profiles, and what is known of their ratio.

    :param exact: whether both are counted, and each run counted the same.
    :param ratio: None where they are counted, or where there is none. :param weaker: the same with the
        interval of less confidence, where that may tell more.
    """

    location: str
    old: Series
    new: Series
    exact: bool
    ratio: Ratio | None = None
    weaker: Ratio | None = None


class Samples:
    """The series of a profile, and what is known of each by itself, computed when it is first needed."""

    def __init__(self, profile: Profile) -> None:
        self.series: Final = measurements(profile)
        self._described: dict[str, Sample] = {}

    def described(self, locations: Sequence[str]) -> list[Sample]:
        """What is known of the series of these locations, all of whose values are positive."""
        missing = [location for location in locations if location not in self._described]
        if missing:
            found = described([self.series[location].values for location in missing])
            self._described.update(zip(missing, found, strict=True))
        return [self._described[location] for location in locations]


def changes(old: Samples, new: Samples, thresholds: Thresholds, *, paired: bool) -> list[DegradationInfo]:
    """One change for each location whose series can be compared, in the order of the locations.

    The p-values are adjusted for as many ratios as there are. Nothing is said of the `user` and `sys` time
    of a command where nothing can be: its `cpu` time tells.

    :param paired: whether the k-th values of both belong together.
    """
    found: list[DegradationInfo] = []
    pairs: list[_Pair] = []
    for location in sorted(old.series.keys() | new.series.keys()):
        before, after = old.series.get(location), new.series.get(location)
        before, after = before or _instead(after), after or _instead(before)
        if before is None or after is None:
            found += _in_one_only(location, before, after)
            continue
        pair = _Pair(location, before, after, _is_exact(before, after))
        if _is_comparable(pair):
            pairs.append(pair)
    pairs = _measured(pairs, old, new, thresholds, paired=paired)
    large = _large(pairs, thresholds)
    found += [_change(pair, thresholds, large) for pair in pairs]
    whole = {pair.old.metric for pair in pairs if pair.old.metric.subtype == CPU}
    hidden = {pair.location for pair in pairs if _is_told_by_cpu(pair, whole)}
    told = [one for one in found if one.result is not PerformanceChange.Unknown or one.location not in hidden]
    return sorted(told, key=lambda change: change.location)


def _is_told_by_cpu(pair: _Pair, whole: Set[Metric]) -> bool:
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
    if not _is_comparable(_Pair(location, one, one, _is_exact(one, one))):
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


def _is_comparable(pair: _Pair) -> bool:
    """Whether something can be said of the two: that they differ, or how certain that is."""
    before, after = pair.old, pair.new
    if pair.exact or before.metric.unit != after.metric.unit:
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


def _measured(
    pairs: list[_Pair], old: Samples, new: Samples, thresholds: Thresholds, *, paired: bool
) -> list[_Pair]:
    """The pairs with their ratios, whose p-values are adjusted for how many there are.

    Those have none that are counted, or have values that are not positive.
    """
    where = [
        place
        for place, pair in enumerate(pairs)
        if not pair.exact
        and pair.old.metric.unit == pair.new.metric.unit
        and not _without_ratio(pair.old, pair.new)
    ]
    if not where:
        return pairs
    ratios = _ratios([pairs[place] for place in where], old, new, thresholds.confidence, paired=paired)
    p_values = benjamini_hochberg([ratio.p_value for ratio in ratios]).tolist()
    measured = list(pairs)
    for place, ratio, p_value in zip(where, ratios, p_values, strict=True):
        measured[place] = pairs[place]._replace(ratio=ratio._replace(p_value=p_value))
    open_ = [place for place, ratio in zip(where, ratios, strict=True) if ratio.low <= 1 <= ratio.high]
    weaker = _ratios([pairs[place] for place in open_], old, new, thresholds.weaker, paired=paired)
    for place, ratio in zip(open_, weaker, strict=True):
        measured[place] = measured[place]._replace(weaker=ratio)
    return measured


def _ratios(
    pairs: Sequence[_Pair], old: Samples, new: Samples, confidence: float, *, paired: bool
) -> list[Ratio]:
    """The ratio of each pair; all that are compared as two samples are so at once."""
    alone = [_ratio_of_parts(pair, confidence, paired=paired) for pair in pairs]
    left = [pair.location for pair, ratio in zip(pairs, alone, strict=True) if ratio is None]
    together = iter(of_each(old.described(left), new.described(left), confidence))
    return [ratio or next(together) for ratio in alone]


def _ratio_of_parts(pair: _Pair, confidence: float, *, paired: bool) -> Ratio | None:
    """The ratio of values that belong together one by one, or size by size; None where they do not."""
    before, after = pair.old, pair.new
    if paired and not before.of_one_run and before.values.size == after.values.size:
        return of_pairs(before.values, after.values, confidence)
    if before.sizes is None or after.sizes is None:
        return None
    return of_sizes(before.values, before.sizes, after.values, after.sizes, confidence)


def _without_ratio(before: Series, after: Series) -> int:
    """How many values are not positive, so that they have no logarithm."""
    return sum(int(np.count_nonzero(one.values <= 0)) for one in (before, after))


def _large(pairs: list[_Pair], thresholds: Thresholds) -> dict[str, dict[bool, set[str]]]:
    """By uid and by whether it got worse: the metrics that changed by more than what is severe."""
    limit = 1 + thresholds.severe
    found: dict[str, dict[bool, set[str]]] = {}
    for pair in pairs:
        metric, ratio = pair.old.metric, pair.ratio
        low, high = (ratio.low, ratio.high) if ratio is not None else _counts_ratio(pair)
        for grown in (True, False):
            if low > limit if grown else high < 1 / limit:
                worse = grown is not metric.larger_is_better
                found.setdefault(metric.uid, {}).setdefault(worse, set()).add(metric.subtype)
    return found


def _counts_ratio(pair: _Pair) -> tuple[float, float]:
    if not pair.exact or pair.old.values[0] <= 0:
        return 0.0, math.inf
    ratio = float(pair.new.values[0]) / float(pair.old.values[0])
    return ratio, ratio


def _is_confirmed(pair: _Pair, large: Mapping[str, Mapping[bool, set[str]]]) -> bool:
    """Whether another metric of the uid changed as much; `user` and `sys` are no others beside `cpu`."""
    metric, ratio = pair.old.metric, pair.ratio
    if ratio is None:
        return False
    worse = (ratio.estimate > 1) is not metric.larger_is_better
    others = set(large.get(metric.uid, {}).get(worse, ())) - {metric.subtype}
    return bool(others - {CPU, *PARTS_OF_CPU} if metric.subtype in (CPU, *PARTS_OF_CPU) else others)


def _change(
    pair: _Pair, thresholds: Thresholds, large: Mapping[str, Mapping[bool, set[str]]]
) -> DegradationInfo:
    verdict = _verdict(pair, thresholds, large)
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


def _verdict(
    pair: _Pair, thresholds: Thresholds, large: Mapping[str, Mapping[bool, set[str]]]
) -> Verdict | str:
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
        zeros, total = _without_ratio(before, after), before.values.size + after.values.size
        return f"{zeros} of {total} measurements are not above 0, so that there is no ratio"
    if before.metric.exact:  # it varies, but not with the load of the machine
        thresholds = _as_pairs(thresholds)
    confirmed_by = "a second metric" if _is_confirmed(pair, large) else ""
    return judge(pair.ratio, thresholds, weaker=pair.weaker, confirmed_by=confirmed_by)


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


def _info(pair: _Pair, change: PerformanceChange, rule: str) -> DegradationInfo:
    values = pair.ratio.typical if pair.ratio else (_median(pair.old), _median(pair.new))
    before, after = readable_pair(*values, pair.old.metric.unit, pair.new.metric.unit)
    return DegradationInfo(change, pair.location, before, after, _TYPE, rule=rule)


def _median(series: Series) -> float:
    ordered = np.sort(series.values)
    low, high = ordered[(ordered.size - 1) // 2], ordered[ordered.size // 2]
    return float(low / 2 + high / 2)  # the sum of both may be beyond all floats
