"""Two profiles, or several of two versions, compared series by series.

The headline of a profile and the clocks beside it are judged as they are, so that what else a profile holds
does not change what is said of them. Details, such as functions and sites of allocation, are many: their
p-values are adjusted for how many there are (Benjamini-Hochberg).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from perun.measurement.comparable import SPEED, conditions, speed_of
from perun.measurement.difference import (
    Difference,
    Rules,
    allowing,
    difference,
    noise_before,
    of_one_measurement,
    of_ratio,
)
from perun.measurement.estimate import Kind, Point, measured_once, point
from perun.measurement.headline import headline, processor
from perun.measurement.many import LEAST_SHARE, renamed, share_of, sum_of, without_moved
from perun.measurement.series import (
    CALLS,
    CPU,
    PARTS_OF_CPU,
    TOTAL,
    Series,
    SeriesName,
    measurements,
    readings_of,
)
from perun.measurement.verdict import Verdict, confirmed, judge, never, untold_parts
from perun.models.two_samples.ratio import MIN_VALUES, Ratio, SampleSummary, described, of_each, of_sizes
from perun.models.two_samples.sequential import benjamini_hochberg
from perun.profile import session as sessions
from perun.profile.amounts import written
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.sampled import IMPORTED, SAMPLED

if TYPE_CHECKING:
    from perun.profile.factory import Profile

Line = Callable[[SeriesName], Sequence[Point]]
"""The points of a series at the ancestors of the target that have one, the nearest first, the baseline
among them."""
Both = Callable[[SeriesName], tuple[Point, Point] | None]
"""What all profiles of the two versions measured of a series, without conditions; None where that is not
known of both."""
MIN_CALLS: Final = 5
"""Calls of a function in one run that are compared; of fewer no interval of 99 % can be made."""
_DERIVED: Final = (CPU, *PARTS_OF_CPU, CALLS, TOTAL)
_CLOCKS: Final = ("real", CPU, *PARTS_OF_CPU)
_TYPE: Final = "ratio"
_ABSENT: Final = "-"


class Measurements:
    """What a profile measured, by location; points are made when they are first needed.

    :ivar headline: the location of the series that stands for the profile; empty where none does.
    :ivar speed: of the machine, as of :func:`perun.measurement.comparable.speed_of`.
    :ivar shared: whether other versions share a part of it.
    """

    def __init__(self, profile: Profile) -> None:
        self.series = measurements(profile)
        found = processor(profile) or headline(profile)
        self.headline = "" if found is None else found.location
        self.profile = profile
        self.speed = speed_of(conditions(profile))
        self.shared = sessions.is_shared(profile)
        self._points: dict[str, Point] = {}
        self._described: dict[str, SampleSummary] = {}

    def point(self, location: str) -> Point:
        """The series of the location as one point."""
        if location not in self._points:
            series = self.series[location]
            under = ((SPEED, self.speed),)  # the other conditions were compared
            self._points[location] = point([(readings_of(self.profile, series), under)], series.metric.kind)
        return self._points[location]

    def described(self, locations: Sequence[str]) -> list[SampleSummary]:
        """What is known of the series of these locations, all of whose values are positive."""
        missing = [location for location in locations if location not in self._described]
        if missing:
            found = described([self.series[location].values for location in missing])
            self._described.update(zip(missing, found, strict=True))
        return [self._described[location] for location in locations]


class _Pair(NamedTuple):
    """The series of one location in both profiles."""

    location: str
    old: Series
    new: Series

    @property
    def is_of_calls(self) -> bool:
        """Whether single calls of one run are compared, and not runs."""
        return self.old.of_one_run or self.new.of_one_run


def no_line(name: SeriesName) -> Sequence[Point]:
    """Nothing is known of versions before."""
    return ()


def changes(
    old: Measurements,
    new: Measurements,
    rules: Rules,
    line: Line = no_line,
    both: Both = lambda name: None,
    again: Callable[[], bool] = never,
    *,
    turned: bool = False,
) -> list[DegradationInfo]:
    """One change of type `ratio` for each series of the two that can be compared, by location.

    :param both: where a version has several profiles, the points that these make.
    :param again: whether a version after both has seen the same as the newer one, which is the old one where
        they are :param turned:.

    What was timed only once, or as a call too few times, is left out where nothing tells its noise; what was
    imported is unknown then.
    """
    found: list[DegradationInfo] = []
    pairs: list[_Pair] = []
    former = renamed(*(_parts(one) for one in (old, new)))
    for location in sorted((old.series.keys() | new.series.keys()) - set(former.values())):
        before, after = old.series.get(former.get(location, location)), new.series.get(location)
        if (shown := before or after) and shown.metric.kind is Kind.SAMPLED and not shown.metric.is_part:
            continue  # the functions that it calls are told
        before, after = before or _instead(after), after or _instead(before)
        if before is None or after is None:
            found += _in_one_only(location, before, after)
        else:
            pairs.append(_Pair(location, before, after))
    named = {new.headline, old.headline}
    details: list[tuple[_Pair, Difference]] = []
    pairs = _large(pairs, old, new, both)
    for pair, one in _differences(pairs, old, new, rules, line, both):
        if isinstance(one, str):
            found.append(_info(pair, PerformanceChange.Unknown, one))
        elif pair.location in named or pair.old.metric.subtype in _CLOCKS:
            verdict = _verdict(pair, one, rules)
            sides = _points(pair, old, new, both)
            older, newer = reversed(sides) if turned else sides
            info = info_of(verdict, pair.location, pair.new.metric.unit)
            info.confirmed = confirmed(verdict, older, newer, line(pair.new.metric.name), again)
            found.append(info)
        else:
            details.append((pair, one))
    p_values = benjamini_hochberg([one.p_value for _, one in details]).tolist() if details else []
    for (pair, one), p_value in zip(details, p_values, strict=True):
        verdict = _verdict(pair, one._replace(p_value=p_value), rules)
        found.append(info_of(verdict, pair.location, pair.new.metric.unit))
    found = without_moved(found, new.headline) if any(one.new.metric.is_part for one in pairs) else found
    by_location = {one.location: one.result for one in found}
    hidden = untold_parts(by_location, by_location)
    return sorted((one for one in found if one.location not in hidden), key=lambda change: change.location)


def _parts(side: Measurements) -> list[str]:
    return [location for location, one in side.series.items() if one.metric.is_part]


def _large(pairs: list[_Pair], old: Measurements, new: Measurements, both: Both) -> list[_Pair]:
    """The pairs without functions that have too few of the samples for any verdict."""
    whole = next(
        (one for one in pairs if one.location == new.headline and one.new.metric.type == SAMPLED), None
    )
    if whole is None:
        return pairs
    sums = [sum_of(one) for one in _points(whole, old, new, both)]
    return [
        one
        for one in pairs
        if not one.new.metric.is_part
        or share_of([sum_of(side) for side in _points(one, old, new, both)], sums) >= LEAST_SHARE
    ]


def info_of(verdict: Verdict, location: str, unit: str) -> DegradationInfo:
    """The verdict as a check reports it, with the interval that decided."""
    found = verdict.difference
    known = math.isfinite(found.ratio)
    before, after = (written(one, unit) for one in found.values)
    info = DegradationInfo(
        verdict.change, location, before, after, _TYPE, found.ratio if known else 0.0,
        rule=verdict.reason, values=found.values, unit=unit, sizes=found.sizes,
        limit=verdict.limit,
    )  # fmt: skip
    if known:
        info.interval = verdict.bounds
        info.p_value = info.confidence_rate = found.p_value
        info.confidence_type = "p_value"
    if math.isfinite(found.detectable):
        info.detectable = found.detectable
    return info


def _differences(
    pairs: Sequence[_Pair], old: Measurements, new: Measurements, rules: Rules, line: Line, both: Both
) -> Iterator[tuple[_Pair, Difference | str]]:
    """How the series differ; or why there is no difference that could have a word."""
    of_calls = {pair.location: one for pair, one in _of_calls(pairs, old, new, rules)}
    for pair in pairs:
        before, after = pair.old, pair.new
        units = before.metric.unit, after.metric.unit
        if units[0] != units[1]:
            yield pair, f"the units differ: {units[0] or 'none'} and {units[1] or 'none'}"
        elif pair.is_of_calls:
            sides = _points(pair, old, new, both) if old.shared and new.shared else ()
            if sides and (version := measured_once(*sides)):
                values, sizes = (sides[0].value, sides[1].value), (sides[0].size, sides[1].size)
                yield pair, of_one_measurement(values, sizes, version)
            elif pair.location in of_calls:
                yield pair, of_calls[pair.location]
        else:
            found = _of_points(pair, old, new, rules, line, both)
            if found is not None:
                yield pair, found


def _of_points(
    pair: _Pair, old: Measurements, new: Measurements, rules: Rules, line: Line, both: Both
) -> Difference | str | None:
    before, after = _points(pair, old, new, both)
    learned = noise_before(before, after, line(pair.new.metric.name))
    found = difference(before, after, learned, rules)
    if found is None:
        return "the two were measured on different workloads"
    nothing = math.isinf(found.high if found.delta is None else found.delta[2])
    # No other method says anything of numbers of which nobody knows how they were made.
    imported = IMPORTED in old.profile and IMPORTED in new.profile
    return None if nothing and not imported and min(before.size, after.size) < MIN_VALUES else found


def _points(pair: _Pair, old: Measurements, new: Measurements, both: Both) -> tuple[Point, Point]:
    sides = [both(one.metric.name) for one in (pair.old, pair.new)]  # where its file was renamed, it has two
    if sides[0] and sides[1]:
        return sides[0][0], sides[1][1]
    return _point(pair.old.metric.location, pair.old, old), _point(pair.location, pair.new, new)


def _point(location: str, series: Series, side: Measurements) -> Point:
    if location in side.series:
        return side.point(location)
    return point([(readings_of(side.profile, series), ())], series.metric.kind)


def _of_calls(
    pairs: Sequence[_Pair], old: Measurements, new: Measurements, rules: Rules
) -> Iterator[tuple[_Pair, Difference | str]]:
    """How the times of single calls differ, size by size where they have sizes; all of one kind at once.

    Calls of one run share what the machine did in it, whatever their number.
    """
    chosen = []
    for pair in pairs:
        if not pair.is_of_calls or min(pair.old.values.size, pair.new.values.size) < MIN_CALLS:
            continue
        zeros = sum(int(np.count_nonzero(one.values <= 0)) for one in (pair.old, pair.new))
        if zeros:
            total = pair.old.values.size + pair.new.values.size
            yield (
                pair,
                f"{zeros} of {total} calls took no time that the clock shows, so that there is no ratio",
            )
        elif pair.old.metric.unit == pair.new.metric.unit:
            chosen.append(pair)
    strong, weak = (
        _ratios(chosen, old, new, confidence) for confidence in (rules.confidence, rules.maybe_confidence)
    )
    for pair, one, weaker in zip(chosen, strong, weak, strict=True):
        found = of_ratio(one, weaker, beside=math.log1p(rules.unpaired_tolerance))
        yield pair, allowing(found, ([old.speed], [new.speed]), pair.new.metric.kind)


def _ratios(pairs: Sequence[_Pair], old: Measurements, new: Measurements, confidence: float) -> list[Ratio]:
    sized = [
        None
        if pair.old.sizes is None or pair.new.sizes is None
        else of_sizes(pair.old.values, pair.old.sizes, pair.new.values, pair.new.sizes, confidence)
        for pair in pairs
    ]
    left = [pair.location for pair, ratio in zip(pairs, sized, strict=True) if ratio is None]
    together = iter(of_each(old.described(left), new.described(left), confidence))
    return [ratio or next(together) for ratio in sized]


def _verdict(pair: _Pair, found: Difference, rules: Rules) -> Verdict:
    whole = max(pair.old.whole or 0.0, pair.new.whole or 0.0)
    return judge(found, rules, larger_is_better=pair.new.metric.larger_is_better, whole=whole)


def _instead(other: Series | None) -> Series | None:
    """What a profile without the series has of it, by what the other one says; of samples nothing is 0."""
    if other is None or (other.absent is None and not other.metric.is_part):
        return None
    return other._replace(values=np.array([other.absent or 0.0]), sizes=None, runs=None)


def _in_one_only(location: str, before: Series | None, after: Series | None) -> Iterator[DegradationInfo]:
    one = before or after
    if one is None or one.metric.subtype in _DERIVED:
        return  # what it is derived from is reported
    fewest = MIN_CALLS if one.of_one_run else MIN_VALUES
    if not one.metric.exact and one.values.size < fewest:
        return  # nothing could be said in any case
    kind = PerformanceChange.NotInTarget if after is None else PerformanceChange.NotInBaseline
    yield DegradationInfo(
        kind,
        location,
        _ABSENT if before is None else written(float(np.median(before.values)), one.metric.unit),
        _ABSENT if after is None else written(float(np.median(after.values)), one.metric.unit),
        _TYPE,
        rule=f"only the {'baseline' if after is None else 'target'} has it",
    )


def _info(pair: _Pair, change: PerformanceChange, rule: str) -> DegradationInfo:
    """Of two series of which no difference can be told."""
    values = float(np.median(pair.old.values)), float(np.median(pair.new.values))
    units = pair.old.metric.unit, pair.new.metric.unit
    before, after = map(written, values, units)
    info = DegradationInfo(change, pair.location, before, after, _TYPE, rule=rule)
    if units[0] == units[1]:
        info.values, info.unit = values, units[0]
    return info
