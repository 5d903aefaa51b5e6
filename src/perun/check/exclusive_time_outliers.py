"""Exclusive Time Outliers: functions whose self time changed unlike that of the others (manual 8.2.3)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from perun.check._common.differences import APART
from perun.check._common.exclusive import (
    BinaryPair,
    FunctionPair,
    MachineNoise,
    Scale,
    Times,
    exclusive_times,
    functions_of,
    paired,
)
from perun.core.errors import ConfigError, ProfileError
from perun.models.outliers import MIN_DIFFERENCES, Spread, deviation_multiple
from perun.plugin.api import CheckContext
from perun.plugin.params import param
from perun.profile.amounts import written
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from perun.profile.session import count_of

if TYPE_CHECKING:
    from perun.models.outliers import Flags, Floats

CUTOFF: Final = 1.0
"""Percentage of all time below which a function is unchanged, where the configuration does not say."""
_TYPE: Final = "time"
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
    noise: float = param(
        5.0,
        metavar="<percent>",
        minimum=0,
        help="What the time of a function differs by in two runs of one program, in percent of that time.",
    )
    total: float = param(
        10.0,
        metavar="<percent>",
        minimum=0,
        help="A location whose total changed by less than this percentage of all time is unchanged.",
    )
    apart: float = param(100.0, metavar="<percent>", minimum=0, help=APART)
    similarity: float = param(
        0.6,
        metavar="<share>",
        minimum=0,
        help="Share of equal characters from which on locations of other names may be the same one.",
    )


class _Verdict(NamedTuple):
    change: PerformanceChange
    confidence: str = "no"
    multiple: float = 0.0
    rule: str = ""


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

    The differences are those without the slowest 5 % of the calls of each function, at least one, as the
    system may have interrupted them; where all calls together differ in the other direction, nothing changed.
    A function that takes most of the time varies by more milliseconds than all others. So a change is only
    as severe as its relative difference is: (target - baseline) / longer, judged by the same limits among
    the relative differences of all functions, whose spread is taken to be `noise` at least.

    What is certain has to exceed the noise besides; otherwise it is a Maybe, or Unknown:

    * three standard errors, by how much the runs of a version differ where there are several (then the times
      are the medians of the runs), else by how much the calls of the function do;
    * of single runs, what the machine makes of them, by how much the other functions differ, see
      :mod:`perun.check._common.points`; a total, with the functions that do not;
    * 100 ms where a function is called less than three times.

    Below `degradation.cutoff` (1 % of all time unless configured) nothing changed. Times that differ by no
    more than a billionth of all time are equal, whatever the limits are.

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

        Those functions that changed most come first.

        :raises ProfileError: where the resources of a profile have no exclusive times.
        :raises ConfigError: where `degradation.location_filter` or `degradation.cutoff` cannot be used.
        """
        chosen, cutoff = _settings(ctx.settings)
        old, new = (_times(one, what) for one, what in ((baseline, "baseline"), (target, "target")))
        places = [place for place in paired(old, new, params.similarity) if _is_chosen(place, chosen)]
        by_place = {place: list(functions_of(place, old, new)) for place in places}
        functions = [one for own in by_place.values() for one in own]
        readable = [one for one in functions if math.isfinite(one.difference)]
        before, after = (
            math.fsum(filter(math.isfinite, sums))
            for sums in ([one.before for one in functions], [one.after for one in functions])
        )
        usual = [math.fsum(one.usual[side] for one in readable) for side in (0, 1)]
        scale = Scale(after or before, usual[1] or usual[0], max(before, after) * _EQUAL, cutoff)
        repeated = count_of(baseline) > 1 and count_of(target) > 1
        noise = MachineNoise([] if repeated else readable, params.apart / 100, scale)
        verdicts = _verdicts(functions, params, scale, noise)
        names = _names(functions, places)
        for place, own in by_place.items():
            yield _total(place, own, params, scale, noise)
            for one in sorted(own, key=_by_size):
                yield _change(one, names[one], verdicts[one], scale)


def _settings(settings: Mapping[str, Any]) -> tuple[re.Pattern[str], float]:
    pattern, cutoff = settings.get("location_filter") or "", settings.get("cutoff", CUTOFF)
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
    times = exclusive_times(profile)
    if times is None:
        raise ProfileError(
            f"the {what} profile has no exclusive times: no resource has the field 'exclusive'",
            "collect profiles with 'perun collect trace', or check by another method, e.g. "
            "average_amount_threshold",
        )
    return times


def _is_chosen(place: BinaryPair, chosen: re.Pattern[str]) -> bool:
    return any(path is not None and chosen.search(path) for path in (place.baseline, place.target))


def _by_size(one: FunctionPair) -> tuple[float, float, str]:
    """A key to sort by: the largest difference first, then the longest time."""
    size = abs(one.difference) if math.isfinite(one.difference) else math.inf
    return -size, -max(filter(math.isfinite, (one.before, one.after)), default=0.0), one.name


def _names(functions: list[FunctionPair], places: list[BinaryPair]) -> dict[FunctionPair, str]:
    """What each is called: its name, with that of the location before it where that alone is ambiguous."""
    times = Counter([place.name for place in places] + [one.name for one in functions])
    return {one: f"{one.place.name}:{one.name}" if times[one.name] > 1 else one.name for one in functions}


def _verdicts(
    functions: list[FunctionPair], params: OutlierParams, scale: Scale, noise: MachineNoise
) -> dict[FunctionPair, _Verdict]:
    """What became of each function: the smaller one of two changes, see :class:`ExclusiveTimeOutliers`."""
    readable = [one for one in functions if math.isfinite(one.difference)]
    verdicts = dict.fromkeys(functions, _Verdict(PerformanceChange.Unknown))
    in_both = np.array([one.is_in_both for one in readable], np.bool_)
    if in_both.sum() < MIN_DIFFERENCES:
        return verdicts | {one: _Verdict(_without_others(one, scale)) for one in readable}
    differences = np.array([one.usual[1] - one.usual[0] for one in readable])
    relative = np.array([_relative(*one.usual) for one in readable])
    absolute = _levels(differences, in_both, scale.resolution or 1.0, params)
    own = _levels(relative, in_both, max(params.noise / 100, _EQUAL), params)
    for number, one in enumerate(readable):
        level = min(absolute.levels[number], own.levels[number])
        if one.difference * relative[number] < 0:
            level = 0
        if one.could_be_an_interruption or noise.may_explain(one):
            level = min(level, _MAYBE_LEVEL)
        change, rule = _LEVELS[level][one.difference > 0], ""
        if level and noise.explains(one):
            change, rule = PerformanceChange.Unknown, _AS_OTHERS
        if not one.is_in_both or scale.is_negligible(one.difference):
            change, rule = _without_others(one, scale), ""
        multiple = float(absolute.multiples[number])
        verdicts[one] = _Verdict(change, absolute.confidences[number], multiple, rule)
    return verdicts


class _Levels(NamedTuple):
    """How unusual each of the differences is: an index of :data:`_LEVELS`, and the measure that says so."""

    levels: list[int]
    confidences: list[str]
    multiples: Floats


def _levels(differences: Floats, in_both: Flags, resolution: float, params: OutlierParams) -> _Levels:
    """The levels of the differences, shape (n,), among those that are in both versions."""
    common = differences[in_both]
    spread = Spread.of(common, resolution)
    is_usual = ~(spread.modified_z(common) > params.severe)
    is_usual &= ~(spread.quartile_multiple(common) > params.outlier)
    severe = spread.modified_z(differences) > params.severe
    quartiles = spread.quartile_multiple(differences)
    deviations = deviation_multiple(differences, common[is_usual], resolution)
    stands_out = spread.away_from_zero(differences) & (severe | (quartiles > params.outlier))
    levels = np.where(stands_out, np.where(severe, 3, 2), np.where(deviations > params.maybe, 1, 0))
    return _Levels(
        levels.tolist(),
        [_IQR if outside else _DEVIATION for outside in stands_out],
        np.where(stands_out, quartiles, deviations),
    )


def _relative(before: float, after: float) -> float:
    """The difference as a share of the longer time, from -1 to 1."""
    longer = max(before, after)
    return (after - before) / longer if longer > 0 else 0.0


def _without_others(one: FunctionPair, scale: Scale) -> PerformanceChange:
    """What can be said of a function by itself."""
    if abs(scale.percent(one.difference)) < scale.cutoff:
        return PerformanceChange.NoChange
    if one.baseline is None:
        return PerformanceChange.NotInBaseline
    if one.target is None:
        return PerformanceChange.NotInTarget
    return PerformanceChange.NoChange if scale.is_negligible(one.difference) else PerformanceChange.Unknown


_LEVELS: Final = (
    (PerformanceChange.NoChange, PerformanceChange.NoChange),
    (PerformanceChange.MaybeOptimization, PerformanceChange.MaybeDegradation),
    (PerformanceChange.Optimization, PerformanceChange.Degradation),
    (PerformanceChange.SevereOptimization, PerformanceChange.SevereDegradation),
)
"""From the least to the most certain change: that of a negative and that of a positive difference."""
_MAYBE_LEVEL: Final = 1
_AS_OTHERS: Final = (
    "the other functions of the two runs differ as much: measure in rounds, or side by side by perun compare"
)
_TOTAL: Final = (PerformanceChange.TotalOptimization, PerformanceChange.TotalDegradation)


def _total(
    place: BinaryPair, own: list[FunctionPair], params: OutlierParams, scale: Scale, noise: MachineNoise
) -> DegradationInfo:
    before, after = math.fsum(one.before for one in own), math.fsum(one.after for one in own)
    difference, rule = after - before, ""
    certain = [one for one in own if not noise.may_explain(one)]
    if not math.isfinite(difference):
        change, difference = PerformanceChange.Unknown, 0.0
    elif abs(difference) <= scale.resolution or not _exceeds(own, difference, params, scale):
        change = PerformanceChange.NoChange
    elif not _exceeds(certain, difference, params, scale):
        change, rule = PerformanceChange.Unknown, _AS_OTHERS
    else:
        change = _TOTAL[difference > 0]
    return _info(place.name, before, after, difference, _Verdict(change, rule=rule), scale)


def _exceeds(own: list[FunctionPair], difference: float, params: OutlierParams, scale: Scale) -> bool:
    """Whether the location changed by the percentage of all time, also without interruptions of its calls.

    :param own: functions of the location.
    """
    share = scale.certain_percent(own)
    found = min(abs(scale.percent(difference)), math.copysign(share, share * difference))
    return found >= params.total * (1 - _EQUAL)


def _change(one: FunctionPair, name: str, verdict: _Verdict, scale: Scale) -> DegradationInfo:
    difference = one.difference if math.isfinite(one.difference) else 0.0
    return _info(name, one.before, one.after, difference, verdict, scale)


def _info(
    name: str, before: float, after: float, difference: float, verdict: _Verdict, scale: Scale
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
        rule=verdict.rule,
        values=(before, after),
        unit="ms",
    )


def _shown(time: float) -> str:
    return written(time, "ms") if math.isfinite(time) else "a time is not a number"


PLUGIN = ExclusiveTimeOutliers
