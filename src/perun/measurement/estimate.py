"""What is known of one series at one version: its samples by session and round, its value and the interval
of that.

Everything is computed on logarithms, where a ratio is a difference and the noise of run times is nearly
symmetric. A series that has been 0 or below has no logarithms; its values are compared as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import Final, NamedTuple

from perun.measurement.comparable import Conditions, speed_of, unlike
from perun.models.student import quantile

CONFIDENCE: Final = 0.95
"""Of the interval of a value."""
MEDIAN_VARIANCE: Final = math.pi / 2
"""The variance of a median of many normal values, in that of their mean."""
_CLIPPED: Final = 3 * 1.4826
"""Deviations, in medians of the absolute deviations, beyond which a value counts as one at that distance."""
_ROUNDING: Final = 1e-9
"""Of the largest distance from the middle: what is less is an error of floats."""
_FEW: Final = 16.0
_MOST_FREEDOM: Final = 1000.0
_REPEATED: Final = 3
"""Equal measurements that show that what a program prints is a count."""
_LARGEST: Final = 709.0
_MOST: Final = 1.7976931348623157e308
"""The largest float."""


class Sample(NamedTuple):
    """The repeated measurements of one series in one round.

    :param size: how many there are. :param median: of them, in the unit of the series; finite.
    :param spread: their robust standard deviation: of their logarithms where `positive`, else in the unit;
        None of a single one.
    :param positive: whether all are above 0.
    """

    size: int
    median: float
    spread: float | None
    positive: bool = True

    @property
    def centre(self) -> float:
        """The median as it is compared: its logarithm, where there is one."""
        return math.log(self.median) if self.positive else self.median


class Round(NamedTuple):
    """One visit to the version: the samples by the workloads of a family, by "" of a single benchmark.

    :param session: a stretch of measuring without another in between; rounds of one session and number
        stand side by side, whichever versions they are of.
    :param measured: the version that was visited, where several that are the same share the visit; else "".
    """

    session: str
    number: int
    samples: Mapping[str, Sample]
    measured: str = ""


class Estimate(NamedTuple):
    """How well a value is known.

    :param low: and :param high: its interval of :data:`CONFIDENCE`; both the value itself where nothing
        varies. None where nothing is known of the noise.
    :param size: of how many measurements.
    """

    value: float
    low: float | None
    high: float | None
    size: int

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval, in the unit of the value."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


class StandardError(NamedTuple):
    """A standard error and its degrees of freedom."""

    size: float
    freedom: float

    def half_width(self, confidence: float) -> float:
        """Half the width of the interval of that confidence.

        Degrees of freedom are rounded down to those whose quantile is known already.
        """
        if not self.size:
            return 0.0
        if self.freedom <= 0:
            return math.inf
        freedom = min(self.freedom, _MOST_FREEDOM)
        steps = 8 if freedom < _FEW else 1
        rounded = math.floor(freedom * steps) / steps or freedom
        return self.size * quantile(1 - confidence, rounded)


UNKNOWN: Final = StandardError(math.inf, 0.0)
NONE: Final = StandardError(0.0, math.inf)


class Kind(Enum):
    """What the numbers of a series are, so that it is known what may change them beside the program.

    TIMED depends on the machine; so does PROCESSOR, the time that a processor worked, but not on what other
    programs take of it; SAMPLED is the part of that time which samples found in one function, 0 where none
    did; COUNTED is the same in each run of one program; CALLS were counted in one
    run, and may differ in another one; PRINTED is whatever a program prints of itself: it counts as counted
    once it repeats.
    """

    TIMED = "timed"
    PROCESSOR = "processor"
    SAMPLED = "sampled"
    COUNTED = "counted"
    CALLS = "calls"
    PRINTED = "printed"


class _Point(NamedTuple):
    rounds: tuple[Round, ...]
    kind: Kind = Kind.TIMED
    levels: tuple[float, float] | None = None
    whole: float = 0.0
    noise: tuple[float, float] | None = None
    ended: str = ""
    conditions: Conditions = ()
    speeds: tuple[str, ...] = ()


class Point(_Point):
    """A series at one version. What is computed of it is kept, as histories look at each point many times.

    :param rounds: in the order of measuring; one at least.
    :param levels: the error probabilities of the look at which a sequential session of these rounds ended,
        of the confidence that decides and of the weaker one; None where the number of rounds was not chosen
        by what they said. Where each profile is of one round, those of the last round are taken.
    :param whole: of what is counted, what it is a part of; 0 if that is not known.
    :param noise: the interval of the ratio of the base of such a session to itself; None if it is not known.
    :param ended: that session. :param conditions: under which it was measured. :param speeds: of the machine,
        of each profile, as of :func:`perun.measurement.comparable.speed_of`.
    """

    @cached_property
    def size(self) -> int:
        """How many measurements there are."""
        return sum(sample.size for one in self.rounds for sample in one.samples.values())

    @cached_property
    def sessions(self) -> int:
        """How many sessions have seen it."""
        return len({one.session for one in self.rounds}) if len(self.rounds) > 1 else 1

    @cached_property
    def shared(self) -> frozenset[tuple[str, int, str]]:
        """Session, number and measured version of the rounds that several versions share."""
        return frozenset((one.session, one.number, one.measured) for one in self.rounds if one.measured)

    @cached_property
    def workloads(self) -> tuple[str, ...]:
        """The members of the family; `("",)` of a single benchmark."""
        if len(self.rounds) == 1:
            return tuple(self.rounds[0].samples)
        return tuple(dict.fromkeys(name for one in self.rounds for name in one.samples))

    @cached_property
    def positive(self) -> bool:
        """Whether all values are above 0, so that there are ratios."""
        for one in self.rounds:
            for sample in one.samples.values():
                if not sample.positive:
                    return False
        return True

    @cached_property
    def repeats(self) -> bool:
        """Whether it is a count that each run has repeated, so that nothing but the program changes it."""
        if self.kind is Kind.PRINTED:
            sizes = [sum(one.size for one in self.samples_of(name)) for name in self.workloads]
            return self.steady and min(sizes) >= _REPEATED
        return self.kind is Kind.COUNTED and self.steady

    @cached_property
    def steady(self) -> bool:
        """Whether each run of a workload gave the same number."""
        return all(
            not any(sample.spread for sample in own) and len({sample.median for sample in own}) == 1
            for own in map(self.samples_of, self.workloads)
        )

    def samples_of(self, workload: str) -> list[Sample]:
        """The sample of each round that measured the workload."""
        return [one.samples[workload] for one in self.rounds if workload in one.samples]

    @cached_property
    def value(self) -> float:
        """The median of the rounds' medians, in the unit of the series; of a family their geometric mean.

        Where a value is not above 0, that of a family is the arithmetic mean.
        """
        if len(self.workloads) == 1 and self.positive:  # without the error of a logarithm and back
            low, high = _middles([one.median for one in self.samples_of(self.workloads[0])])
            return low if low == high else math.sqrt(low) * math.sqrt(high)
        return exp(self.centre) if self.positive else self.centre

    @cached_property
    def centre(self) -> float:
        """The value as it is compared: its logarithm, where there is one."""
        return self._centre_of(self.workloads, self.positive)

    def centre_of(self, workloads: Sequence[str], *, logarithmic: bool) -> float:
        """That of some members.

        :param logarithmic: whether the medians are compared by their logarithms.
        """
        if logarithmic == self.positive and workloads == self.workloads:
            return self.centre
        return self._centre_of(workloads, logarithmic)

    def _centre_of(self, workloads: Sequence[str], logarithmic: bool) -> float:
        middles = []
        for name in workloads:
            own = self.samples_of(name)
            centres = [math.log(one.median) if logarithmic else one.median for one in own]
            # Of few samples the median is 0.
            is_mean = self.kind is Kind.SAMPLED and not logarithmic
            middles.append(math.fsum(centres) / len(centres) if is_mean else median(centres))
        return math.fsum(one / len(middles) for one in middles)

    def error_of(self, workloads: Sequence[str], *, logarithmic: bool) -> StandardError:
        """What the measurements themselves say of the error of :meth:`centre_of`: within the rounds, and
        between them where there are several."""
        if logarithmic == self.positive and workloads == self.workloads:
            return self.error
        return self._error_of(workloads, logarithmic)

    @cached_property
    def error(self) -> StandardError:
        """That of :attr:`centre`."""
        return self._error_of(self.workloads, self.positive)

    def scatter_of(self, workloads: Sequence[str], *, logarithmic: bool) -> StandardError:
        """The error that the value would have of a single run, of whatever round.

        :param logarithmic: as of :meth:`centre_of`.
        """
        parts = [_scatter(self.samples_of(name), logarithmic=logarithmic) for name in workloads]
        return combined([StandardError(one.size / len(parts), one.freedom) for one in parts])

    def _error_of(self, workloads: Sequence[str], logarithmic: bool) -> StandardError:
        parts = [_error(self.samples_of(name), logarithmic=logarithmic) for name in workloads]
        return combined([StandardError(one.size / len(parts), one.freedom) for one in parts])


class Headline(NamedTuple):
    """The series that stands for a profile: what :func:`perun.measurement.headline.headline` finds.

    :param metric: what it is called: `real time`, `peak memory`, `instructions`, or its location.
    :param location: what :mod:`perun.measurement.series` calls it.
    :param rounds:, :param levels:, :param whole: and :param noise: as of :class:`Readings`.
    :param conditions: of the profile. :param limits: of a processor time, whether it was seen to limit how
        long the command takes.
    """

    metric: str
    location: str
    unit: str
    larger_is_better: bool
    kind: Kind
    rounds: tuple[Round, ...]
    levels: tuple[float, float] | None = None
    whole: float = 0.0
    noise: tuple[float, float] | None = None
    conditions: Conditions = ()
    limits: bool = True

    @property
    def readings(self) -> Readings:
        """What was measured."""
        return Readings(self.rounds, self.levels, self.whole, self.noise)


class Readings(NamedTuple):
    """What one profile measured of one series: what is kept of it, and what points are made of.

    :param rounds: by number; a profile without a session is one round.
    :param levels: as of :class:`Point`.
    :param whole: what the values are a part of; 0 if that is not known. :param noise: as `levels`.
    """

    rounds: tuple[Round, ...]
    levels: tuple[float, float] | None = None
    whole: float = 0.0
    noise: tuple[float, float] | None = None


def estimate(point: Point) -> Estimate:
    """The value of the point with the interval that its own measurements give it."""
    value = point.value
    if point.repeats:
        return Estimate(value, value, value, point.size)
    half = point.error_of(point.workloads, logarithmic=point.positive).half_width(CONFIDENCE)
    if not math.isfinite(half):
        return Estimate(value, None, None, point.size)
    if point.positive:
        return Estimate(value, value * exp(-half), value * exp(half), point.size)
    return Estimate(value, value - half, value + half, point.size)


def sample_of(values: Iterable[float]) -> Sample | None:
    """The sample of measurements in any order; None where none is finite."""
    finite = sorted(value for value in values if math.isfinite(value))
    if not finite:
        return None
    positive = finite[0] > 0
    if finite[0] == finite[-1]:
        return Sample(len(finite), finite[0], 0.0 if len(finite) > 1 else None, positive)
    compared = [math.log(value) for value in finite] if positive else finite
    middle = median(finite)
    return Sample(len(finite), middle, _spread(compared), positive)


def point_of(profiles: Iterable[Sequence[Round]], kind: Kind) -> Point:
    """What several profiles of one version measured, in the order of measuring.

    A profile without a session, as older releases wrote it, is a session of its own.

    :param profiles: the rounds of each.
    """
    rounds: list[Round] = []
    taken: set[tuple[str, int]] = set()
    last: dict[str, int] = {}
    for place, profile in enumerate(profiles):
        # The rounds of a profile that names no numbers follow those of the one before it.
        after = any((one.session, one.number) in taken for one in profile)
        own = []
        for one in profile:
            session = one.session or f"#{place}"
            number = one.number + (last.get(session, -1) + 1 if after else 0)
            own.append(one._replace(session=session, number=number))
        rounds += own
        taken.update((one.session, one.number) for one in own)
        for one in own:
            last[one.session] = max(one.number, last.get(one.session, 0))
    return Point(tuple(rounds), kind)


def point(
    profiles: Sequence[tuple[Readings, Conditions]],
    kind: Kind,
    like: tuple[Readings, Conditions] | None = None,
) -> Point:
    """What profiles of one version, one at least, measured of a series, in the order of measuring.

    Those count that were measured in the session of one of them, or under its conditions, as far as these
    are known.

    :param like: this one; the newest where it is None.
    """
    chosen, conditions = like or profiles[-1]
    session = _session_of(chosen)
    both = [
        (one, speed_of(own))
        for one, own in profiles
        if not unlike(own, conditions) or session == _session_of(one) != ""
    ]
    alike, speeds = zip(*both, strict=True)
    made = point_of([one.rounds for one in alike], kind)
    made = made._replace(whole=max(one.whole for one in alike), conditions=conditions, speeds=speeds)
    with_levels = sorted((one for one in alike if one.levels is not None), key=_last_round)
    sequential = {_session_of(one): one for one in with_levels}
    if len(sequential) != 1:
        return made
    ((ended, last),) = sequential.items()
    return made._replace(levels=last.levels, noise=last.noise, ended=ended)


def _last_round(one: Readings) -> int:
    return one.rounds[-1].number if one.rounds else -1


def _session_of(one: Readings) -> str:
    return one.rounds[0].session if one.rounds else ""


def measured_once(one: Point, other: Point) -> str:
    """The version whose measurement is all that there is of one of the two, and the other one has too; empty
    where each has its own."""
    few, many = sorted((one, other), key=lambda point: len(point.rounds))
    if len(few.shared) < len(few.rounds) or not few.shared <= many.shared:
        return ""
    return few.rounds[-1].measured


def each_once(points: Sequence[Point]) -> Sequence[Point]:
    """The points in their order, of those that are one measurement the first."""
    kept: list[Point] = []
    for one in points:
        if not (one.shared and any(measured_once(one, other) for other in kept)):
            kept.append(one)
    return kept


def point_of_headlines(headlines: Sequence[Headline]) -> Point:
    """What profiles of one version, one at least, measured of one series; in the order of measuring."""
    return point([(one.readings, one.conditions) for one in headlines], headlines[-1].kind)


def combined(errors: Sequence[StandardError]) -> StandardError:
    """The error of a sum of independent parts, by Welch's and Satterthwaite's degrees of freedom."""
    size = math.hypot(*(one.size for one in errors))
    if not size:
        return NONE
    if not math.isfinite(size) or any(one.size and one.freedom <= 0 for one in errors):
        return UNKNOWN
    if len(errors) == 1:
        return errors[0]
    return StandardError(
        size, 1 / math.fsum((one.size / size) ** 4 / one.freedom for one in errors if one.size)
    )


def median(values: Sequence[float]) -> float:
    """The middle of values in any order, one at least."""
    low, high = _middles(values)
    return low if low == high else low / 2 + high / 2  # the sum of both may be beyond all floats


def exp(exponent: float) -> float:
    """e to that power; infinite if that is beyond all floats."""
    return math.exp(exponent) if exponent < _LARGEST else math.inf


def _error(samples: Sequence[Sample], *, logarithmic: bool) -> StandardError:
    """The error of the median of the rounds' medians of one workload."""
    own = [_within(one, logarithmic=logarithmic) for one in samples if one.spread is not None]
    freedom = sum(one.size - 1 for one in samples if one.spread is not None)
    # Squares of huge amounts are out of the range of floats.
    within = math.hypot(*own) / math.sqrt(len(own)) if own else 0.0
    count = len(samples)
    if count == 1:
        return StandardError(within, freedom) if own else UNKNOWN
    centres = [math.log(one.median) if logarithmic else one.median for one in samples]
    middle = math.fsum(one / count for one in centres)
    total = math.hypot(*(one - middle for one in centres)) / math.sqrt(count - 1)
    between = math.sqrt(total - within) * math.sqrt(total + within) if total > within else 0.0
    factor = math.sqrt((MEDIAN_VARIANCE if count > 2 else 1.0) / count)
    parts = [StandardError(between * factor, count - 1)]
    if own:
        parts.append(StandardError(within * factor, freedom))
    return combined(parts)


def _scatter(samples: Sequence[Sample], *, logarithmic: bool) -> StandardError:
    """The error of a median of one run of one workload, by what all runs and all rounds scatter."""
    runs = sum(one.size for one in samples)
    known = [one for one in samples if one.spread is not None]
    own = [_within(one, logarithmic=logarithmic) * math.sqrt(one.size) for one in known]
    if not own and len(samples) < 2:
        return UNKNOWN
    within = math.hypot(*own) / math.sqrt(len(own)) if own else 0.0
    centres = [math.log(one.median) if logarithmic else one.median for one in samples]
    middle = math.fsum(one / len(centres) for one in centres)
    between = math.hypot(*(one - middle for one in centres)) / math.sqrt(max(len(centres) - 1, 1))
    return StandardError(
        math.hypot(within, between * math.sqrt(MEDIAN_VARIANCE if runs > 2 else 1.0)), runs - 1
    )


def _within(sample: Sample, *, logarithmic: bool) -> float:
    """The standard error of the median of a sample by its spread."""
    assert sample.spread is not None
    # To the first order, a deviation of logarithms is a share of the value.
    unit = sample.median if sample.positive and not logarithmic else 1.0
    return sample.spread * unit * math.sqrt((MEDIAN_VARIANCE if sample.size > 2 else 1.0) / sample.size)


def _spread(ordered: Sequence[float]) -> float:
    """The standard deviation, in which no value counts as farther out than :data:`_CLIPPED` allows."""
    # In units of the largest, as sums and squares of huge and of tiny amounts are out of the range of floats.
    unit = max(abs(ordered[0]), abs(ordered[-1]))
    shares = [value / unit for value in ordered]
    middle = median(shares)
    distances = [abs(value - middle) for value in shares]
    usual = median(distances) * _CLIPPED
    clips = usual > _ROUNDING * max(distances)  # else most are the same value
    kept = [min(max(value - middle, -usual), usual) for value in shares] if clips else shares
    mean = math.fsum(kept) / len(kept)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in kept) / (len(kept) - 1))
    return min(unit * spread, _MOST)


def _middles(values: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
