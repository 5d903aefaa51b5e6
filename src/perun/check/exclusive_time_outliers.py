"""Exclusive Time Outliers: functions whose self time changed unlike that of the others (manual 8.2.3)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from perun.errors import ConfigError, ProfileError
from perun.plugin.api import CheckContext
from perun.plugin.params import param
from perun.profile.changes import DegradationInfo, PerformanceChange

if TYPE_CHECKING:
    from perun.check._common.exclusive import Place, Times
    from perun.profile.factory import Profile

_TYPE: Final = "time"
_NS_IN_MS: Final = 1e6
_EQUAL: Final = 1e-9
"""Share of all time below which two times are the same: about a nanosecond in a second."""
_IQR: Final = "IQR multiple"
_DEVIATION: Final = "StdDev multiple"


@dataclass(frozen=True)
class OutlierParams:
    """From when on a difference is an outlier, and which binaries are the same one."""

    severe: float = param(
        3.5, metavar="<score>", minimum=0, help="Above this modified z-score a change is severe."
    )
    outlier: float = param(
        1.5,
        metavar="<multiple>",
        minimum=0,
        help="More interquartile ranges than this outside the quartiles, a change is certain.",
    )
    maybe: float = param(
        2.0,
        metavar="<multiple>",
        minimum=0,
        help="Above this multiple of the standard deviation of the others, there may be a change.",
    )
    total: float = param(
        0.0,
        metavar="<percent>",
        minimum=0,
        help="A location whose total changed by less than this percentage of all time is unchanged.",
    )
    similarity: float = param(
        0.6,
        metavar="<share>",
        minimum=0,
        help="Share of equal characters from which on locations of other names may be the same one.",
    )


class _Function(NamedTuple):
    """Self times in milliseconds; None in a profile without the function, NaN where unreadable."""

    place: Place
    name: str
    before: float | None
    after: float | None

    @property
    def difference(self) -> float:
        return (self.after or 0.0) - (self.before or 0.0)

    @property
    def is_in_both(self) -> bool:
        return self.before is not None and self.after is not None


class _Verdict(NamedTuple):
    change: PerformanceChange
    confidence: str = "no"
    multiple: float = 0.0


class ExclusiveTimeOutliers:
    """Reports every function, also the unchanged ones, and a total of each location (binary).

    The rate of a change is the difference in milliseconds, its relative rate the same in percent of the time
    that the target takes in all locations looked at. The outliers are sought among all functions that are in
    both versions, of all locations together; three are the fewest: of less, those that changed are Unknown.

    * Severe: the modified z-score is above 3.5. * Certain: outside the fences at 1.5 interquartile ranges.
      Both only where the function changed more than the median one and in the same direction as it differs
      from it: one that is slower by less than most is no degradation that stands out.
    * Maybe: what is left and changed by more than two standard deviations of the differences that are no
      outliers. * Every function in one version only is NotInBaseline or NotInTarget.
    * Total: the sum of a location, whatever its functions did; also of one that is new or gone.

    Times that differ by no more than a billionth of all time are equal. Where nearly all functions did not
    change at all, any larger change therefore is severe, and its confidence is a large number.

    Exchanging baseline and target mirrors every verdict, but for two limits that are percentages of the time
    of the target, as the relative rate shown is: `degradation.cutoff` and `total`. Their mirrored values are
    the ones multiplied by time of the target / time of the baseline.
    """

    name: ClassVar[str] = "exclusive_time_outliers"
    short: ClassVar[str] = "ETO"
    help: ClassVar[str] = (
        "Finds functions whose self time changed unlike that of the others (trace profiles)."
    )
    Params: ClassVar[type] = OutlierParams

    def compare(
        self, baseline: Profile, target: Profile, params: OutlierParams, ctx: CheckContext
    ) -> Iterator[DegradationInfo]:
        """Changes of type `time`: for each location in the order of names its total, then its functions.

        :raises ProfileError: where the resources of a profile have no exclusive times.
        :raises ConfigError: where `degradation.location_filter` or `degradation.cutoff` cannot be used.
        """
        from perun.check._common.exclusive import paired

        chosen, cutoff = _settings(ctx.settings)
        old, new = (_times(one, what) for one, what in ((baseline, "baseline"), (target, "target")))
        places = [place for place in paired(old, new, params.similarity) if _is_chosen(place, chosen)]
        by_place = {place: list(_functions(place, old, new)) for place in places}
        functions = [one for own in by_place.values() for one in own]
        before, after = (
            math.fsum(filter(math.isfinite, sums))
            for sums in ([one.before or 0.0 for one in functions], [one.after or 0.0 for one in functions])
        )
        scale = _Scale(after or before, max(before, after) * _EQUAL, cutoff)
        verdicts = _verdicts(functions, params, scale)
        names = _names(functions, places)
        for place, own in by_place.items():
            yield _total(place, own, params, scale)
            for one in own:
                yield _change(one, names[one], verdicts[one], scale)


class _Scale(NamedTuple):
    """What differences are compared with.

    :param whole: the time that percentages are of; :param resolution: what is no difference, both in ms.
    :param cutoff: percentage below which nothing is reported.
    """

    whole: float
    resolution: float
    cutoff: float

    def percent(self, difference: float) -> float:
        return 100 * difference / self.whole if self.whole else 0.0

    def is_negligible(self, difference: float) -> bool:
        return abs(difference) <= self.resolution or abs(self.percent(difference)) < self.cutoff


def _settings(settings: Mapping[str, Any]) -> tuple[re.Pattern[str], float]:
    pattern, cutoff = settings.get("location_filter") or "", settings.get("cutoff") or 0.0
    try:
        chosen = re.compile(str(pattern))
    except re.error as problem:
        message = f"degradation.location_filter: {pattern!r} is not a regular expression: {problem}"
        raise ConfigError(message) from None
    try:
        number = float(cutoff)
    except (TypeError, ValueError):
        number = math.nan
    if not number >= 0:
        raise ConfigError(f"degradation.cutoff must be a percentage of at least 0, not {cutoff!r}")
    return chosen, number


def _times(profile: Profile, what: str) -> Times:
    from perun.check._common.exclusive import exclusive_times

    times = exclusive_times(profile)
    if times is None:
        raise ProfileError(
            f"the {what} profile has no exclusive times: no resource has the field 'exclusive'",
            "collect profiles with 'perun collect trace', or check by another method, e.g. "
            "average_amount_threshold",
        )
    return times


def _is_chosen(place: Place, chosen: re.Pattern[str]) -> bool:
    return any(path is not None and chosen.search(path) for path in (place.baseline, place.target))


def _functions(place: Place, old: Times, new: Times) -> Iterator[_Function]:
    before, after = old.get(place.baseline or "", {}), new.get(place.target or "", {})
    for name in sorted(before.keys() | after.keys()):
        yield _Function(place, name, *(_milliseconds(times.get(name)) for times in (before, after)))


def _milliseconds(time: float | None) -> float | None:
    return None if time is None else time / _NS_IN_MS


def _names(functions: list[_Function], places: list[Place]) -> dict[_Function, str]:
    """What each is called: its name, with that of the location before it where that alone is ambiguous."""
    times = Counter([place.name for place in places] + [one.name for one in functions])
    return {one: f"{one.place.name}:{one.name}" if times[one.name] > 1 else one.name for one in functions}


def _verdicts(functions: list[_Function], params: OutlierParams, scale: _Scale) -> dict[_Function, _Verdict]:
    import numpy as np

    from perun.models.outliers import MIN_DIFFERENCES, Spread, deviation_multiple

    readable = [one for one in functions if math.isfinite(one.difference)]
    verdicts = dict.fromkeys(functions, _Verdict(PerformanceChange.Unknown))
    common = np.array([one.difference for one in readable if one.is_in_both])
    if common.size < MIN_DIFFERENCES:
        return verdicts | {one: _Verdict(_without_others(one, scale)) for one in readable}
    resolution = scale.resolution or 1.0
    spread = Spread.of(common, resolution)
    is_severe = spread.modified_z(common) > params.severe
    is_usual = ~is_severe & ~(spread.quartile_multiple(common) > params.outlier)
    differences = np.array([one.difference for one in readable])
    severe = spread.modified_z(differences) > params.severe
    quartiles = spread.quartile_multiple(differences)
    deviations = deviation_multiple(differences, common[is_usual], resolution)
    stands_out = spread.away_from_zero(differences) & (severe | (quartiles > params.outlier))
    for number, one in enumerate(readable):
        change = PerformanceChange.NoChange
        if not one.is_in_both or scale.is_negligible(one.difference):
            change = _without_others(one, scale)
        elif stands_out[number]:
            change = _SEVERE[one.difference > 0] if severe[number] else _CERTAIN[one.difference > 0]
        elif deviations[number] > params.maybe:
            change = _MAYBE[one.difference > 0]
        kind, multiples = (_IQR, quartiles) if stands_out[number] else (_DEVIATION, deviations)
        verdicts[one] = _Verdict(change, kind, float(multiples[number]))
    return verdicts


def _without_others(one: _Function, scale: _Scale) -> PerformanceChange:
    """What can be said of a function by itself."""
    if abs(scale.percent(one.difference)) < scale.cutoff:
        return PerformanceChange.NoChange
    if one.before is None:
        return PerformanceChange.NotInBaseline
    if one.after is None:
        return PerformanceChange.NotInTarget
    return PerformanceChange.NoChange if scale.is_negligible(one.difference) else PerformanceChange.Unknown


_SEVERE: Final = (PerformanceChange.SevereOptimization, PerformanceChange.SevereDegradation)
_CERTAIN: Final = (PerformanceChange.Optimization, PerformanceChange.Degradation)
_MAYBE: Final = (PerformanceChange.MaybeOptimization, PerformanceChange.MaybeDegradation)
_TOTAL: Final = (PerformanceChange.TotalOptimization, PerformanceChange.TotalDegradation)


def _total(place: Place, own: list[_Function], params: OutlierParams, scale: _Scale) -> DegradationInfo:
    before, after = math.fsum(one.before or 0.0 for one in own), math.fsum(one.after or 0.0 for one in own)
    difference = after - before
    if not math.isfinite(difference):
        change, difference = PerformanceChange.Unknown, 0.0
    elif abs(difference) <= scale.resolution or abs(scale.percent(difference)) < params.total:
        change = PerformanceChange.NoChange
    else:
        change = _TOTAL[difference > 0]
    return _info(place.name, before, after, difference, _Verdict(change), scale)


def _change(one: _Function, name: str, verdict: _Verdict, scale: _Scale) -> DegradationInfo:
    difference = one.difference if math.isfinite(one.difference) else 0.0
    return _info(name, one.before or 0.0, one.after or 0.0, difference, verdict, scale)


def _info(
    name: str, before: float, after: float, difference: float, verdict: _Verdict, scale: _Scale
) -> DegradationInfo:
    return DegradationInfo(
        res=verdict.change,
        loc=name,
        fb=_shown(before),
        tt=_shown(after),
        t=_TYPE,
        rd=difference,
        ct=verdict.confidence,
        cr=verdict.multiple,
        rdr=scale.percent(difference),
    )


def _shown(time: float) -> str:
    return f"{round(time, 3)}ms" if math.isfinite(time) else "a time is not a number"


PLUGIN = ExclusiveTimeOutliers
