"""How two points of a series differ: the ratio and its interval, by what their measurements allow to be said.

All noise that there may be is in the interval: where two versions were measured apart, and nothing has shown
by how much the machine makes such measurements differ, that is taken to be as much as `unpaired_tolerance`
says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.measurement.comparable import PROCESSOR, WALL, refused, slower, unlike
from perun.measurement.estimate import (
    NONE,
    Kind,
    Point,
    Round,
    StandardError,
    combined,
    exp,
    measured_once,
)
from perun.measurement.noise import (
    NOTHING,
    WINDOW,
    Kept,
    Noise,
    learn,
    learn_numbers,
    shared,
    together,
    variance,
    walsh,
)
from perun.models.student import p_value as student

if TYPE_CHECKING:
    from perun.models.two_samples.ratio import Ratio

MOST_USEFUL: Final = 300
"""Measurements beyond which nobody is told to make so many."""
POWER: Final = 0.8
"""Probability with which the smallest detectable effect would be found."""
_POWER_QUANTILE: Final = 0.8416212335729143
"""Of the normal distribution at :data:`POWER`."""
_WALSH_VARIANCE: Final = math.pi / 3
"""The variance of the Hodges-Lehmann estimate of many normal values, in that of their mean."""
HARDLY: Final = 1e-3
"""Share by which counts of the runs of one program differ at most that are no noise."""
_REACTS: Final = 2.0
"""How much more than the fixed loop a program may react to the machine: times of programs moved by 0.7 to 2.8
times what those of the loop did (docs/benchmarks.md)."""
_BOTH: Final = (PROCESSOR, WALL)
_CLOCKS: Final = {
    Kind.PROCESSOR: (PROCESSOR,),
    Kind.SAMPLED: (PROCESSOR,),
    Kind.TIMED: _BOTH,
    Kind.PRINTED: _BOTH,
}
"""The clocks of the loop that tell of numbers of a kind."""
_ENOUGH_RUNS: Final = 3
_SIGNED_RANKS: Final = 8
"""Pairs of which an interval of 99 % can be made by their signed ranks."""


class Rules(NamedTuple):
    """Where the words begin.

    :param threshold: share up to which a growth does not matter (tau); a decrease to 1 / (1 + tau) as well.
    :param severe: share from which on a growth is severe.
    :param confidence: of the interval that decides. :param maybe_confidence: of the one that decides on a
        maybe.
    :param unpaired_tolerance: share that the machine may make at least of a difference of two versions that
        were measured apart, where nothing tells how much it does; see :func:`unknown_noise`.
    :param exact: share up to which a growth of what is counted does not matter.
    """

    threshold: float = 0.02
    severe: float = 0.25
    confidence: float = 0.99
    maybe_confidence: float = 0.95
    unpaired_tolerance: float = 1.0
    exact: float = 0.0

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Rules:
        """Those that a configuration sets.

        :param settings: the section `degradation`.
        """
        own = settings.get("hodges_lehmann_ratio")
        if not isinstance(own, Mapping):
            return cls()
        named = {name: own[key] for name, key in _KEYS.items() if key in own}
        return cls(**{name: float(one) for name, one in named.items() if isinstance(one, (int, float))})

    def at(self, levels: tuple[float, float]) -> Rules:
        """The same with the confidences of one look of several, whose error probabilities are `levels`."""
        return self._replace(confidence=1 - levels[0], maybe_confidence=1 - levels[1])


_KEYS: Final = {name: name for name in Rules._fields} | {
    "maybe_confidence": "weaker",
    "unpaired_tolerance": "apart",
    "exact": "exact_threshold",
}
DEFAULTS: Final = Rules()


class Basis(Enum):
    """What an interval rests on; the value says it after `by`."""

    COUNTS = "counts"
    ONCE = "one measurement of both"
    ROUNDS = "rounds that visited both"
    SESSIONS = "several sessions of both"
    HISTORY = "how much earlier versions differ"
    LEVELS = "the versions on either side"
    UNKNOWN_NOISE = "an unknown noise"
    FEW_ROUNDS = "too few rounds"
    NUMBERS = "the numbers as they are"
    RUNS = "all runs"


class Difference(NamedTuple):
    """How much the target differs from the baseline.

    :param ratio: target / baseline, NaN where the baseline is not above 0. :param low: and :param high: its
        interval of `confidence`, 0 and infinite where there is none.
    :param weak_low: and :param weak_high: the interval of the weaker confidence.
    :param p_value: two-sided, of no change; after a correction for many it may be adjusted.
    :param values: of baseline and target. :param sizes: how many measurements each has.
    :param detectable: the smallest growth, as a ratio above 1, that would have been found with a
        probability of :data:`POWER`; infinite if it cannot be told.
    :param doubt: why a change may be none whatever the interval says, and :param unknown: why
        nothing can be said; empty where nothing does.
    :param delta: the difference and its interval in the unit of the values, where they are compared as they
        are.
    :param rounds: or sessions whose scatter the interval shows, so that more of these narrow it; 0 where
        single measurements do.
    :param slower: as of :func:`allowing`. :param shares: the version whose measurement both are; empty where
        each has its own.
    """

    ratio: float
    low: float
    high: float
    weak_low: float
    weak_high: float
    p_value: float
    confidence: float
    basis: Basis
    values: tuple[float, float]
    sizes: tuple[int, int]
    detectable: float = math.inf
    delta: tuple[float, float, float] | None = None
    doubt: str = ""
    unknown: str = ""
    rounds: int = 0
    slower: float = 0.0
    shares: str = ""


def noise_before(baseline: Point, target: Point, line: Sequence[Point], kept: Kept | None = None) -> Noise:
    """What the versions before a version show of the noise that its difference to the baseline has.

    :param line: and :param kept: as of :func:`along`.
    """
    if _is_counted(baseline, target):  # which has no noise
        return NOTHING
    before = list(reversed(line[:WINDOW]))
    return learn(before, kept) if baseline.positive and target.positive else learn_numbers(before)


def difference(
    baseline: Point,
    target: Point,
    noise: Noise = NOTHING,
    rules: Rules = DEFAULTS,
    *,
    tested: bool = True,
) -> Difference | None:
    """How two points of one series differ, by what their measurements allow to be said; see :class:`Basis`.

    A family is compared member by member: its ratio is the geometric mean of theirs.

    :param tested: whether the p-value is asked for; else it is 0 or 1, as the interval says, which is
        quicker.
    """
    there = set(baseline.workloads)
    common = tuple(name for name in target.workloads if name in there)
    if not common:
        return None
    if version := measured_once(baseline, target):
        return of_one_measurement((baseline.value, target.value), (baseline.size, target.size), version)
    visits = list(together(baseline, target)) if target.kind is Kind.SAMPLED else []
    if len(visits) > 1:
        found = _of_samples(baseline, target, visits, rules)
    elif _is_counted(baseline, target):
        found = _of_counts(baseline, target, common)
    elif _hardly_varies(baseline) and _hardly_varies(target):
        found = _of_runs(baseline, target)
    elif not (baseline.positive and target.positive):
        found = _of_numbers(baseline, target, common, noise, rules)
    elif by_session := shared(baseline, target):
        found = _of_rounds(baseline, target, by_session, noise, rules, tested=tested)
    else:
        found = _of_two_samples(baseline, target, common, noise, rules, tested=tested)
        found = allowing(found, (baseline.speeds, target.speeds), target.kind)
    differ = unlike(baseline.conditions, target.conditions)
    newest = target.rounds[-1].session
    beside = newest[:1] != "#" and any(one.session == newest for one in baseline.rounds)
    return found._replace(unknown=refused(differ)) if differ and not beside else found


def allowing(found: Difference, speeds: tuple[Sequence[str], Sequence[str]], kind: Kind) -> Difference:
    """The difference of what was measured apart with intervals that allow for the speed of the machine.

    They are no narrower than what the machine may have made of it. The ratio is not corrected: a loop is not
    the program, and of times of the processor that made the difference of two sessions hardly smaller.

    :param speeds: of both, as of :func:`perun.measurement.comparable.slower`, whose largest answer is noted.
    """
    machine = max((slower(*speeds, clock) for clock in _CLOCKS.get(kind, ())), key=abs, default=0.0)
    if not machine or not found.ratio > 0:
        return found
    most = exp(_REACTS * abs(machine))
    low, high = min(found.low, found.ratio / most), max(found.high, found.ratio * most)
    weak = min(found.weak_low, found.ratio / most), max(found.weak_high, found.ratio * most)
    apart = abs(math.log(found.ratio))
    least = 1.0 if low <= 1 <= high else (1 - found.confidence) * math.log(most) / apart
    return found._replace(
        low=low, high=high, weak_low=weak[0], weak_high=weak[1], p_value=max(found.p_value, least),
        detectable=max(found.detectable, most), slower=machine,
    )  # fmt: skip


def of_counts(values: tuple[float, float], sizes: tuple[int, int]) -> Difference:
    """The difference of two counts that each run of a version has repeated: no noise, so no interval."""
    old, new = values
    ratio = 1.0 if old == new else new / old if old > 0 else math.nan
    delta = None if old > 0 or old == new else (new - old, new - old, new - old)
    return Difference(
        ratio, ratio, ratio, ratio, ratio, float(old == new), 1.0, Basis.COUNTS, values, sizes, 1.0, delta
    )


def of_one_measurement(values: tuple[float, float], sizes: tuple[int, int], version: str) -> Difference:
    """That of two versions with the same program and input, which were measured once: there is none.

    :param version: the one that was measured.
    """
    return Difference(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, Basis.ONCE, values, sizes, shares=version)


def of_levels(
    values: tuple[float, float], error: StandardError, sizes: tuple[int, int], rules: Rules = DEFAULTS
) -> Difference:
    """The difference of the levels of several versions each.

    :param values: above 0. :param error: that of the logarithm of their ratio. :param sizes: how many
        versions each has.
    """
    old, new = values
    return _of_error(math.log(new / old), error, rules, Basis.LEVELS, values, sizes, tested=True)


def of_one(error: float, samples: float, rounds: int) -> float:
    """The error of a value if it had been measured once, in place of several times in one session.

    :param error: of the value. :param samples: its measurements. :param rounds: that they were made in; of
        several rounds it is the error of one of them.
    """
    return error * math.sqrt(rounds if rounds > 1 else samples)


def unknown_noise(once: Sequence[StandardError], confidence: float, rules: Rules) -> float:
    """What the machine may make of the logarithm of the ratio of two versions that were measured apart, where
    nothing shows it: as much as `unpaired_tolerance` says, or as far as single measurements of the sessions
    are apart.

    Whatever moved a run within a session may as well move all runs of the next one.

    :param once: the error of the value of either version of a single run, at least that of :func:`of_one`.
    """
    return max(math.log1p(rules.unpaired_tolerance), combined(once).half_width(confidence))


def geometric_mean(values: Sequence[float]) -> float:
    """That of values above 0, one at least."""
    return exp(math.fsum(map(math.log, values)) / len(values))


class Mean(NamedTuple):
    """The geometric mean of several ratios, with its interval: 0 and infinite where one of them has none."""

    ratio: float
    low: float
    high: float


def mean_of(ratios: Sequence[tuple[float, float, float]]) -> Mean:
    """That of a family, by the ratios of its members, which were measured apart from each other.

    :param ratios: above 0, each with the bounds of its interval.
    """
    middle = geometric_mean([ratio for ratio, _, _ in ratios])
    halves = [math.log(high / low) / 2 if 0 < low <= high < math.inf else math.inf for _, low, high in ratios]
    half = math.hypot(*halves) / len(halves)
    if not 0 < half < math.inf:
        return Mean(middle, 0.0, math.inf)
    return Mean(middle, middle / exp(half), middle * exp(half))


def more_needed(found: Difference, rules: Rules = DEFAULTS) -> int | None:
    """How many more rounds, sessions or measurements of each side would decide with the noise of these; None
    for very many.

    The interval narrows with the square root of their number, and has to come off the nearer limit.
    """
    size = found.rounds or min(found.sizes)
    if not (found.low > 0 and found.high < math.inf):
        return max(_SIGNED_RANKS - size, 1)
    half = math.log(found.high / found.low) / 2
    limit = math.log1p(rules.threshold)
    distance = max(abs(abs(math.log(found.ratio)) - limit), limit / 2)
    needed = math.ceil(size * (half / distance) ** 2)
    return max(needed - size, 1) if needed <= MOST_USEFUL else None


def _is_counted(baseline: Point, target: Point) -> bool:
    if baseline.repeats and target.repeats:
        return True
    one_run = baseline.kind is Kind.CALLS and baseline.steady and target.steady
    return one_run and baseline.centre_of(baseline.workloads, logarithmic=False) == target.centre_of(
        target.workloads, logarithmic=False
    )


def _hardly_varies(one: Point) -> bool:
    """Whether single runs of one workload counted nearly the same, often enough to say so."""
    counts = [sample for own in one.rounds for sample in own.samples.values()]
    if one.kind is not Kind.COUNTED or len(one.workloads) > 1 or any(own.size > 1 for own in counts):
        return False
    least, most = min(own.median for own in counts), max(own.median for own in counts)
    return len(counts) >= _ENOUGH_RUNS and least > 0 and most <= least * (1 + HARDLY)


def _of_runs(baseline: Point, target: Point) -> Difference:
    """What counts differ by from run to run is no chance of a distribution: the bounds are those of all
    runs."""
    old, new = ([next(iter(own.samples.values())).median for own in one.rounds] for one in (baseline, target))
    low, high = min(new) / max(old), max(new) / min(old)
    ratio = target.value / baseline.value
    return Difference(
        ratio, low, high, low, high, float(low <= 1 <= high), 1.0, Basis.RUNS, (baseline.value, target.value),
        (baseline.size, target.size), max(old) / min(old),
    )  # fmt: skip


def _of_counts(baseline: Point, target: Point, common: tuple[str, ...]) -> Difference:
    positive = baseline.positive and target.positive
    old, new = (one.centre_of(common, logarithmic=positive) for one in (baseline, target))
    if positive and len(common) == 1:  # without the error of a logarithm and back
        old, new = (one.samples_of(common[0])[0].median for one in (baseline, target))
    elif positive:
        old, new = math.exp(old), math.exp(new)
    return of_counts((old, new), (baseline.size, target.size))


def _of_samples(
    baseline: Point, target: Point, visits: Sequence[tuple[Round, Round]], rules: Rules
) -> Difference:
    """What samples say of a function in the rounds that visited both versions, where it may be 0.

    Where one side has nothing but zeros there is no ratio, and the difference is compared with 0.
    """
    from perun.models.two_samples.rank_tests import centre_with_interval
    from perun.models.two_samples.ratio import of_amounts

    old, new = ([next(iter(one[side].samples.values())).median for one in visits] for side in (0, 1))
    levels = _spent(baseline, target, {one.session: [] for _, one in visits})
    strong, weak = levels or (1 - rules.confidence, 1 - rules.maybe_confidence)
    ratio, weaker = (of_amounts(old, new, 1 - level) for level in (strong, weak))
    chance = min(1.0, ratio.p_value * (1 - rules.confidence) / strong)
    if 0 < ratio.estimate < math.inf:
        return of_ratio(ratio._replace(confidence=rules.confidence, p_value=chance), weaker)
    shifts = [one - other for one, other in zip(new, old, strict=True)]
    import numpy as np

    delta = centre_with_interval(np.array(shifts), strong)
    return Difference(
        math.nan, 0.0, math.inf, 0.0, math.inf, chance, rules.confidence, Basis.ROUNDS, ratio.medians,
        ratio.sizes, delta=delta,
    )  # fmt: skip


def _of_numbers(
    baseline: Point, target: Point, common: tuple[str, ...], noise: Noise, rules: Rules
) -> Difference:
    """Values that are not all above 0 are compared as they are.

    Of those that vary with the machine, what it may make of two versions measured apart is in the interval.
    """
    old, new = (
        one.value if len(one.workloads) == 1 else one.centre_of(common, logarithmic=False)
        for one in (baseline, target)
    )
    error = combined([one.error_of(common, logarithmic=False) for one in (baseline, target)])
    shift, beside = new - old, 0.0
    steady = baseline.kind is Kind.COUNTED or (baseline.steady and target.steady)
    # Of rounds that visited both, their scatter says it all.
    if steady or len(list(together(baseline, target))) > 1:
        pass
    elif noise.numbers is not None:
        visits = (1 / baseline.sessions + 1 / target.sessions) / 2
        learned = noise.numbers._replace(size=noise.numbers.size * math.sqrt(visits))
        error = max(error, learned) if math.isfinite(error.size) else learned
    elif min(baseline.sessions, target.sessions) < 2:
        scatter = combined([one.scatter_of(common, logarithmic=False) for one in (baseline, target)])
        beside = rules.unpaired_tolerance * min(abs(old), abs(new))
        if math.isfinite(scatter.size):
            beside = max(beside, scatter.half_width(rules.confidence))
    half = math.hypot(error.half_width(rules.confidence), beside)
    probability = float(not shift) if not error.size else 1.0
    if error.size and math.isfinite(error.size) and not beside:
        probability = student(shift / error.size, error.freedom)
    ratio = new / old if old > 0 else 1.0 if new == old else math.nan
    low, high = (0.0, math.inf) if half else (ratio, ratio)
    return Difference(
        ratio, low, high, low, high, probability, rules.confidence, Basis.NUMBERS, (old, new),
        (baseline.size, target.size), math.inf, (shift, shift - half, shift + half),
    )  # fmt: skip


def _of_rounds(
    baseline: Point,
    target: Point,
    by_session: Mapping[str, list[float]],
    noise: Noise,
    rules: Rules,
    *,
    tested: bool,
) -> Difference:
    """By the rounds that visited both versions alone; several sessions are combined by their precision."""
    sizes = baseline.size, target.size
    values = baseline.value, target.value
    levels = _spent(baseline, target, by_session)
    if levels is not None and target.noise is not None:
        (session,) = by_session
        old, new = (
            [next(iter(one.samples.values())).median for one in side.rounds if one.session == session]
            for side in (baseline, target)
        )
        if len(old) == len(new) and len(target.workloads) == 1:
            return of_sequence(old, new, levels, rules, target.noise)._replace(values=values)
    parts = [_session(own, noise) for own in by_session.values()]
    if len(parts) == 1 or not all(error.size for _, error in parts):
        centre, error = max(parts, key=lambda one: one[1].freedom)
    else:
        weights = [1 / error.size**2 for _, error in parts]
        total = math.fsum(weights)
        centre = math.fsum(weight * one for weight, (one, _) in zip(weights, parts, strict=True)) / total
        freedom = math.fsum(error.freedom for _, error in parts)
        error = StandardError(1 / math.sqrt(total), freedom)
    common = tuple(name for name in target.workloads if name in baseline.workloads)
    apart = None if noise.rounds else _apart(baseline, target, common)
    found = _of_error(
        centre, error, rules if levels is None else rules.at(levels), Basis.ROUNDS, values, sizes, apart,
        tested=tested,
    )  # fmt: skip
    if levels is not None:  # the intervals of all looks together hold with the confidence that was asked for
        probability = min(1.0, found.p_value * (1 - rules.confidence) / levels[0])
        found = found._replace(confidence=rules.confidence, p_value=probability)
    return found._replace(rounds=sum(map(len, by_session.values())))


def _spent(
    baseline: Point, target: Point, by_session: Mapping[str, list[float]]
) -> tuple[float, float] | None:
    """The levels of the look at which a sequential session of both ended for the one that left it first, the
    stricter ones where both left it then; None where that is not all they share."""
    ended = [one for one in (baseline, target) if one.levels is not None and list(by_session) == [one.ended]]
    rounds = [sum(own.session == one.ended for own in one.rounds) for one in ended]
    first = [one.levels for one, own in zip(ended, rounds, strict=True) if own == min(rounds)]
    return min(filter(None, first), default=None)


def _session(differences: list[float], noise: Noise) -> tuple[float, StandardError]:
    """The difference in one session, and its error: by its own rounds, and those of the versions before."""
    count = len(differences)
    freedom = count - 1.0
    means = walsh(differences)
    squares = variance(differences, means) * freedom
    if noise.rounds is not None:
        squares += noise.rounds.size**2 * noise.rounds.freedom
        freedom += noise.rounds.freedom
    factor = _WALSH_VARIANCE if count > 2 else 1.0
    return middle_of(means), StandardError(math.sqrt(squares / freedom * factor / count), freedom)


def hodges_lehmann(values: list[float]) -> float:
    """The median of the means of all pairs of values, each with itself too: as robust as it needs to be
    against single rounds, and nearly as precise as the mean (J. Hodges, E. Lehmann, Estimates of location
    based on rank tests, 1963)."""
    return middle_of(walsh(values))


def middle_of(means: Sequence[float]) -> float:
    """The median of ascending values."""
    half = len(means) // 2
    return means[half] if len(means) % 2 else (means[half - 1] + means[half]) / 2


def of_sequence(
    old: Sequence[float],
    new: Sequence[float],
    levels: tuple[float, float],
    rules: Rules = DEFAULTS,
    noise: tuple[float, float] | None = None,
) -> Difference:
    """Pairs of runs of a session that ends when it is certain: the interval holds at all its looks together.

    :param old: and :param new: what was measured, all above 0, two pairs at least.
    :param levels: as of :class:`~perun.measurement.estimate.Point`. :param noise: as there.
    """
    from perun.models.two_samples.ratio import of_pairs

    strong, weak = (of_pairs(old, new, 1 - level) for level in levels)
    # Scaled as the level is, so that it is below 1 - confidence where the interval excludes 1.
    probability = min(1.0, strong.p_value * (1 - rules.confidence) / levels[0])
    found = of_ratio(strong._replace(confidence=rules.confidence, p_value=probability), weak)
    limit = 1 + rules.threshold
    if noise is None or not (noise[0] > limit or noise[1] < 1 / limit):
        return found
    return found._replace(
        unknown=f"the base differs from itself ({noise[0]:.3g} to {noise[1]:.3g} times): this session "
        "measured something else than the versions; measure again, on a quieter machine"
    )


def of_ratio(ratio: Ratio, weaker: Ratio | None = None, *, beside: float = 0.0) -> Difference:
    """The difference that a test of two samples found.

    :param weaker: the same with the interval of less confidence; None where it is not asked for.
    :param beside: how much more the logarithm of the ratio may be off, as what was measured apart is.
    """
    bounds = [
        exp(math.log(ratio.estimate) + sign * math.hypot(math.log(bound / ratio.estimate), beside))
        if 0 < bound < math.inf
        else bound
        for one in (ratio, weaker or ratio._replace(low=0.0, high=math.inf))
        for sign, bound in ((-1, one.low), (1, one.high))
    ]
    doubt = ""
    if any(ratio.modes):
        from perun.models.two_samples.ratio import merely_shares

        if merely_shares(ratio, 1.0):
            shares = (
                f"{100 * modes.share:.0f} % in the slower one" if modes else "only one"
                for modes in ratio.modes
            )
            doubt = (
                "there are two modes, of which only the shares changed: {} in the baseline, {} in the target"
            )
            doubt = doubt.format(*shares)
    return Difference(
        ratio.estimate, bounds[0], bounds[1], bounds[2], bounds[3], ratio.p_value, ratio.confidence,
        Basis.ROUNDS if ratio.paired else Basis.UNKNOWN_NOISE, ratio.typical, ratio.sizes, ratio.detectable,
        doubt=doubt,
    )  # fmt: skip


def _of_two_samples(
    baseline: Point, target: Point, common: tuple[str, ...], noise: Noise, rules: Rules, *, tested: bool
) -> Difference:
    """Versions that were measured apart: what their own measurements say of the error, and what is known of
    the noise of the machine."""
    old, new = (one.centre_of(common, logarithmic=True) for one in (baseline, target))
    own = combined([one.error_of(common, logarithmic=True) for one in (baseline, target)])
    values, sizes = (baseline.value, target.value), (baseline.size, target.size)
    if baseline.kind is Kind.COUNTED and math.isfinite(own.size):
        # It varies from run to run, but not with the load of the machine.
        return _of_error(new - old, own, rules, Basis.SESSIONS, values, sizes, tested=tested)
    apart = _apart(baseline, target, common)
    if noise.unpaired is not None:
        visits = (1 / baseline.sessions + 1 / target.sessions) / 2
        learned = StandardError(noise.unpaired.size * math.sqrt(visits), noise.unpaired.freedom)
        if math.isfinite(own.size) and own.size > learned.size:
            apart = apart._replace(learned=learned)
            return _of_error(new - old, own, rules, Basis.HISTORY, values, sizes, apart, tested=tested)
        return _of_error(new - old, learned, rules, Basis.HISTORY, values, sizes, tested=tested)
    if (sessions := min(baseline.sessions, target.sessions)) > 1:
        found = _of_error(new - old, own, rules, Basis.SESSIONS, values, sizes, apart, tested=tested)
        return found._replace(rounds=sessions)
    return _of_error(new - old, own, rules, Basis.UNKNOWN_NOISE, values, sizes, apart, tested=tested)


class _Apart(NamedTuple):
    """What is said of two versions that were measured apart, whatever is known of the noise.

    :param own: the error of the logarithm of their ratio, by all runs alike. :param once: the same of each,
        of a single run. :param learned: the least that it is.
    """

    own: StandardError
    once: tuple[StandardError, StandardError]
    learned: StandardError = NONE

    def half_width(self, confidence: float, rules: Rules) -> float:
        half = math.hypot(self.own.half_width(confidence), unknown_noise(self.once, confidence, rules))
        return max(half, self.learned.half_width(confidence))


def _apart(baseline: Point, target: Point, common: tuple[str, ...]) -> _Apart:
    once = tuple(one.scatter_of(common, logarithmic=True) for one in (baseline, target))
    runs = (one.size / len(one.workloads) for one in (baseline, target))
    own = [one._replace(size=one.size / math.sqrt(count)) for one, count in zip(once, runs, strict=True)]
    return _Apart(combined(own), (once[0], once[1]))


def _of_error(
    centre: float,
    error: StandardError,
    rules: Rules,
    basis: Basis,
    values: tuple[float, float],
    sizes: tuple[int, int],
    apart: _Apart | None = None,
    *,
    tested: bool,
) -> Difference:
    """The difference with its intervals.

    :param centre: the logarithm of the ratio, :param error: its error.
    :param apart: of versions of whose noise hardly anything is known: a few rounds, of which Student's
        intervals are as wide as anything, say no less than two versions that were measured apart.
    """

    def half_width(confidence: float) -> tuple[float, bool]:
        half = error.half_width(confidence)
        if apart is None:
            return half, False
        most = apart.half_width(confidence, rules)
        return (most, True) if basis is Basis.UNKNOWN_NOISE or most < half else (half, False)

    strong, bounded = half_width(rules.confidence)
    if bounded and basis is not Basis.UNKNOWN_NOISE:
        basis = Basis.FEW_ROUNDS
    limit = math.log1p(rules.threshold)
    decided = abs(centre) > strong or abs(centre) + strong <= limit  # so that nobody asks for the weaker one
    weak = strong if decided else half_width(rules.maybe_confidence)[0]
    if not strong:
        probability = float(not centre)
    elif not tested:
        probability = float(abs(centre) <= strong)
    elif math.isfinite(error.size) and not bounded and error.size:
        probability = student(centre / error.size, error.freedom)
    else:  # a bound is no distribution: it is as far out as the interval says
        probability = 1.0 if abs(centre) <= strong else (1 - rules.confidence) * strong / abs(centre)
    detectable = exp(strong + _POWER_QUANTILE * error.size) if math.isfinite(strong) else math.inf
    ratio = exp(centre)
    if values[0] > 0 and math.isclose(values[1] / values[0], ratio, rel_tol=1e-9):
        ratio = values[1] / values[0]  # without the error of a logarithm and back
    return Difference(
        ratio, exp(centre - strong), exp(centre + strong), exp(centre - weak), exp(centre + weak),
        probability, rules.confidence, basis, values, sizes, detectable,
    )  # fmt: skip
