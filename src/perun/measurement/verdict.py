"""The one word for how two points of a series differ.

With L and U the bounds of the interval of the ratio target / baseline and tau the threshold, a growth is

- severe where L > 1 + severe,
- a degradation where L > 1 + tau,
- maybe one where only L > 1, or only the bound of the weaker interval is,

and a decrease is the mirror image. Nothing changed where the whole interval lies within [1 / (1 + tau), 1 +
tau]: that is a finding, not the lack of one. Everything else is unknown, and said so. The interval holds all
noise that there may be, so the numbers beside a word never deny it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Final, NamedTuple

from perun.core.wording import counted
from perun.measurement.comparable import told_slower
from perun.measurement.difference import (
    DEFAULTS,
    HARDLY,
    Basis,
    Difference,
    Rules,
    difference,
    more_needed,
    noise_before,
)
from perun.measurement.estimate import Point, each_once
from perun.measurement.noise import NOTHING, Kept, Noise
from perun.profile.changes import REPEATABLE, DegradationInfo, PerformanceChange

MORE_IS_BETTER: Final = "more of it is better"
_SHORT: Final = 10
"""Digits of a checksum."""
NARROW: Final = 0.1
"""The largest change, as a share, whose absence is worth saying where a smaller one would matter."""


class Verdict(NamedTuple):
    """The word for a difference.

    :param reason: a sentence that says which rule decided; of what is unknown, what would decide it.
    :param low: and :param high: the interval that decided: that of the difference, or the weaker one of a
        maybe, whose confidence is then :param maybe_confidence:, else 0.
    """

    change: PerformanceChange
    reason: str
    difference: Difference
    low: float
    high: float
    maybe_confidence: float = 0.0

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The interval that decided; None where there is none."""
        return bounded(self.low, self.high)

    @property
    def limit(self) -> float | None:
        """The change that it does not exceed, as a share, where the word is Unknown and the interval is
        narrow enough to say that much; else None."""
        if self.change is not PerformanceChange.Unknown or self.difference.unknown or not self.low > 0:
            return None
        most = max(self.high, 1 / self.low) - 1
        return most if most <= NARROW else None

    @property
    def decides(self) -> bool:
        """Whether it is a definite word: a change, or that there is none."""
        return self.change not in UNDECIDED


def bounded(low: float, high: float) -> tuple[float, float] | None:
    """The interval of a ratio; None where it says nothing."""
    return None if math.isnan(low) or (low <= 0 and math.isinf(high)) else (low, high)


UNDECIDED: Final = frozenset(
    {PerformanceChange.Unknown, PerformanceChange.MaybeDegradation, PerformanceChange.MaybeOptimization}
)


class _Labels(NamedTuple):
    """The labels of one direction, and the words for it."""

    maybe: PerformanceChange
    definite: PerformanceChange
    severe: PerformanceChange
    side: str


_GROWTH: Final = _Labels(
    PerformanceChange.MaybeDegradation,
    PerformanceChange.Degradation,
    PerformanceChange.SevereDegradation,
    "above",
)
_DECREASE: Final = _Labels(
    PerformanceChange.MaybeOptimization,
    PerformanceChange.Optimization,
    PerformanceChange.SevereOptimization,
    "below",
)


def compare(
    baseline: Point,
    target: Point,
    noise: Noise = NOTHING,
    rules: Rules = DEFAULTS,
    *,
    larger_is_better: bool = False,
) -> Verdict | None:
    """The verdict on two points of one series; None where they have no workload in common.

    :param noise: what the versions before them show.
    """
    found = difference(baseline, target, noise, rules)
    if found is None:
        return None
    return judge(found, rules, larger_is_better=larger_is_better, whole=max(baseline.whole, target.whole))


def along(
    target: Point,
    line: Sequence[Point],
    rules: Rules = DEFAULTS,
    *,
    larger_is_better: bool = False,
    kept: Kept | None = None,
    tested: bool = False,
) -> Verdict | None:
    """The verdict on a version against the version before, with the noise that the versions before it show.

    All commands that look at a history ask here, so that they say the same.

    :param line: the points of the series at the ancestors that have one, the nearest first, in the order of
        :func:`perun.repository.walking.ancestors`; those beyond :data:`~perun.measurement.noise.WINDOW` are
        not looked at.
    :param kept: as of :func:`perun.measurement.noise.learn`, of who asks for many versions.
    :param tested: as of :func:`~perun.measurement.difference.difference`.
    :returns: None where there is no ancestor with a point, or none of the same workloads.
    """
    if not line:
        return None
    learned = noise_before(line[0], target, line, kept)
    found = difference(line[0], target, learned, rules, tested=tested)
    if found is None:
        return None
    return judge(found, rules, larger_is_better=larger_is_better, whole=max(line[0].whole, target.whole))


def judge(
    found: Difference, rules: Rules = DEFAULTS, *, larger_is_better: bool = False, whole: float = 0.0
) -> Verdict:
    """The word for a difference by the table of this module.

    A change is definite only if its p-value, which may be adjusted for many tests, is small enough as well.

    :param whole: of what is counted, what it is a part of; 0 where that is not known.
    """
    if found.unknown:
        return Verdict(PerformanceChange.Unknown, found.unknown, found, found.low, found.high)
    if found.basis is Basis.ONCE:
        reason = f"the same program and input as {found.shares[:_SHORT]}, measured once"
        return Verdict(PerformanceChange.NoChange, reason, found, found.low, found.high)
    if found.basis is Basis.COUNTS:
        verdict = _judge_counts(found, rules, whole)
    elif found.delta is not None:
        verdict = _judge_numbers(found, rules)
    else:
        verdict = _judge_ratio(found, rules)
    if found.slower:
        machine = f"the machine was {told_slower(found.slower)} for the target, which the interval allows for"
        verdict = verdict._replace(reason=f"{verdict.reason}; {machine}")
    if not larger_is_better:
        return verdict
    return verdict._replace(change=mirrored(verdict.change), reason=f"{verdict.reason}; {MORE_IS_BETTER}")


def mirrored(change: PerformanceChange) -> PerformanceChange:
    """The label of a growth or decrease of what is better the larger it is: degradations and optimizations
    change places."""
    one, other = "Degradation", "Optimization"
    name = change.name
    swapped = name.replace(one, other) if one in name else name.replace(other, one)
    return PerformanceChange[swapped]


def mirror(info: DegradationInfo) -> DegradationInfo:
    """The same change with the :func:`mirrored` labels, of its parts as well."""
    from copy import copy

    turned = copy(info)
    turned.result = mirrored(info.result)
    parts = info.partial_intervals
    turned.partial_intervals = [(mirrored(kind), rate, start, end) for kind, rate, start, end in parts]
    turned.rule = "; ".join(filter(None, (info.rule, MORE_IS_BETTER)))
    return turned


def severity(change: PerformanceChange) -> int:
    """How far a word is from No Change, -4 to 4, negative of what became worse; 0 where nothing is known."""
    return 0 if change in INCOMPARABLE else change.value


def settled(verdict: Verdict, rules: Rules) -> bool:
    """Whether more measurements would hardly change the answer: the word is definite, or the interval is half
    as wide as the threshold."""
    found = verdict.difference
    if verdict.decides:
        return True
    if not (found.low > 0 and math.isfinite(found.high)):
        return False
    return math.log(found.high / found.low) <= math.log1p(rules.threshold)


def is_change(verdict: Verdict) -> bool:
    """Whether it is a definite change, for better or worse."""
    return abs(severity(verdict.change)) > 1


def seen_again(verdict: Verdict, again: Callable[[], bool]) -> bool:
    """Whether a version, by the verdict on it, has seen once more what the one before it measured.

    :param again: whether a version after it has: where both are one measurement, that is what tells.
    """
    return again() if verdict.difference.shares else not is_change(verdict)


def never() -> bool:
    """That nothing newer is known."""
    return False


def confirmed(
    verdict: Verdict, older: Point, newer: Point, line: Sequence[Point], again: Callable[[], bool] = never
) -> bool:
    """Whether both sides of a definite change were seen in several rounds or by several versions; what is
    counted needs that not, and nothing else is a change to confirm.

    :param line: the points at the versions before the newer one, the older one among them.
    :param again: whether a version after the newer one has seen the same.
    """
    if not is_change(verdict) or verdict.difference.basis is Basis.COUNTS:
        return True
    before = len(older.rounds) > 1 or len(each_once(line)) > 1
    return before and (len(newer.rounds) > 1 or again())


def reported(levels: Verdict, neighbours: Verdict | None) -> Verdict:
    """What a history tells of a place where neighbours do not decide: the verdict on the levels of several
    versions around it, but that on the two versions beside it where only they say something."""
    if neighbours is None or severity(levels.change) or not severity(neighbours.change):
        return levels
    return neighbours


def sum_of(location: str) -> str:
    """Where the processor time is told whose user or system part the location is of: `./prog [cpu]` for
    `./prog [sys]`; empty of anything else."""
    name, bracket, part = location.rpartition(" [")
    return f"{name} [cpu]" if bracket and part in ("user]", "sys]") else ""


def untold_parts(words: Mapping[str, PerformanceChange], known: Container[str]) -> set[str]:
    """The parts of processor times that did not change together with their sum, and are not told.

    The parts of a short run are guesses of the kernel, which divides the time by samples; the sum is none.

    :param words: by location, of one benchmark. :param known: the locations that were compared; a sum that
        is not among the words did not change.
    """
    return {
        place
        for place, word in words.items()
        if (whole := sum_of(place)) in known
        and severity(word) * severity(words.get(whole, PerformanceChange.NoChange)) <= 0
    }


INCOMPARABLE: Final = frozenset(
    {PerformanceChange.Unknown, PerformanceChange.NotInBaseline, PerformanceChange.NotInTarget}
)


def _judge_counts(found: Difference, rules: Rules, whole: float) -> Verdict:
    """A growth of more than `rules.exact` is a degradation, one of more than `rules.severe` a severe one; a
    decrease mirrors that.

    Of what is a part of a whole, a difference of at most `rules.exact` of the whole, or :data:`REPEATABLE`,
    does not matter either, and one of at most `rules.threshold` of it is not severe: nobody minds that a
    function of nine instructions has twelve now.
    """
    old, new = found.values

    def verdict(change: PerformanceChange, reason: str) -> Verdict:
        return Verdict(change, reason, found, found.low, found.high)

    if old == new:
        return verdict(PerformanceChange.NoChange, "both count the same")
    labels = _GROWTH if new > old else _DECREASE
    small, large = sorted((abs(old), abs(new)))
    growth = large / small if small and (old > 0) == (new > 0) else math.inf
    if growth <= 1 + rules.exact:
        return verdict(
            PerformanceChange.NoChange,
            f"the counts differ by no more than the threshold of {100 * rules.exact:.3g} %",
        )
    share = max(rules.exact, REPEATABLE)
    if abs(new - old) <= share * whole:
        return verdict(PerformanceChange.NoChange, f"the difference is no more than {share:.3%} of the whole")
    severe = growth > 1 + rules.severe and abs(new - old) > rules.threshold * whole
    return verdict(
        labels.severe if severe else labels.definite,
        "this is counted, not timed: every difference beyond the threshold is one",
    )


def _judge_numbers(found: Difference, rules: Rules) -> Verdict:
    """Of values that are 0 or below there may be no ratio: their difference is compared with 0, and with
    the threshold as a share of the larger one."""
    assert found.delta is not None
    shift, low, high = found.delta
    slack = rules.threshold * max(map(abs, found.values))

    def verdict(change: PerformanceChange, reason: str) -> Verdict:
        return Verdict(change, reason, found, found.low, found.high)

    interval = f"the {100 * found.confidence:.4g} % interval of the difference, {low:.4g} to {high:.4g},"
    if low == high == 0 and not any(found.values):
        return verdict(PerformanceChange.NoChange, "each measurement is 0")
    if -slack <= low and high <= slack:
        return verdict(PerformanceChange.NoChange, f"{interval} lies within the threshold, {slack:.3g}")
    if low <= 0 <= high:
        reason = f"{interval} is too wide, and 0 has no ratio: measure in rounds, perun compare does"
        return verdict(PerformanceChange.Unknown, reason)
    labels = _GROWTH if shift > 0 else _DECREASE
    if min(abs(low), abs(high)) <= slack:
        return verdict(labels.maybe, f"{interval} is not beyond the threshold, {slack:.3g}")
    if found.basis is Basis.ROUNDS and found.p_value > 1 - rules.confidence:
        return verdict(labels.maybe, f"{interval} lies {labels.side} 0, but {_chance(found)}")
    return verdict(labels.definite, f"{interval} lies {labels.side} 0")


def _judge_ratio(found: Difference, rules: Rules) -> Verdict:
    if found.basis is Basis.RUNS:
        rules = rules._replace(threshold=max(rules.exact, HARDLY))
    limit = 1 + rules.threshold
    if found.low >= 1 / limit and found.high <= limit:
        reason = f"{_interval(found)} lies within {1 / limit:.3g} to {limit:.3g}, the threshold"
        return Verdict(PerformanceChange.NoChange, reason, found, found.low, found.high)
    sides = (
        (_GROWTH, found.low, found.weak_low),
        (_DECREASE, _reciprocal(found.high), _reciprocal(found.weak_high)),
    )
    for labels, bound, weak_bound in sides:
        if bound > 1:
            change, reason = _beyond(found, rules, labels, bound)
            return Verdict(change, reason, found, found.low, found.high)
        if weak_bound > 1:
            ends = f"{found.weak_low:.4g} to {found.weak_high:.4g},"
            weaker = f"only the {100 * rules.maybe_confidence:.4g} % interval, {ends} lies {labels.side} 1"
            reason = f"{weaker}; {_interval(found)} does not: {_more(found, rules)}"
            return Verdict(
                labels.maybe, reason, found, found.weak_low, found.weak_high, rules.maybe_confidence
            )
    return Verdict(PerformanceChange.Unknown, _undecided(found, rules), found, found.low, found.high)


def _beyond(found: Difference, rules: Rules, labels: _Labels, bound: float) -> tuple[PerformanceChange, str]:
    """The label of a ratio whose interval excludes 1.

    :param bound: the one nearest to 1 of the interval, as a ratio above 1.
    """

    def side(limit: float) -> str:
        return f"{labels.side} {limit if labels is _GROWTH else 1 / limit:.3g}"

    limit, severe = 1 + rules.threshold, 1 + rules.severe
    if bound <= limit:
        reason = f"{_interval(found)} lies {labels.side} 1, but not {side(limit)}"
        return labels.maybe, f"{reason}: {_more(found, rules)}"
    if found.p_value > 1 - rules.confidence:
        return labels.maybe, f"{_interval(found)} lies {side(limit)}, but {_chance(found)}"
    if found.doubt:
        return labels.maybe, f"{_interval(found)} lies {side(limit)}, but {found.doubt}"
    if bound <= severe:
        return labels.definite, f"{_interval(found)} lies {side(limit)}"
    return labels.severe, f"{_interval(found)} lies {side(severe)}"


def _chance(found: Difference) -> str:
    return f"with a p-value of {found.p_value:.2g}, one of so many differences may be chance"


def _undecided(found: Difference, rules: Rules) -> str:
    """Why nothing can be said, and what would change that."""
    if found.basis is Basis.FEW_ROUNDS:
        return (
            f"there are too few rounds to show the noise, so {_interval(found)} has what the machine may "
            "make of two measurements made apart: measure in more rounds, perun run matrix does"
        )
    if found.basis is Basis.UNKNOWN_NOISE and math.isfinite(found.high):
        return (
            f"{_interval(found)} has what the machine may make of two measurements made apart, "
            f"{100 * rules.unpaired_tolerance:.3g} % or as much as single runs differ, as nothing has shown "
            "its noise: measure in rounds, perun compare does"
        )
    if math.isinf(found.high):
        return (
            f"{found.sizes[0]} and {counted(found.sizes[1], 'measurement')} are too few for an interval of "
            f"{100 * found.confidence:.4g} %: {_more(found, rules)}"
        )
    threshold = f"a threshold of {100 * rules.threshold:.3g} %"
    return f"{_interval(found)} is too wide for {threshold}: {_more(found, rules)}"


def _more(found: Difference, rules: Rules) -> str:
    """How many rounds or measurements more would decide."""
    if found.slower or found.basis in (Basis.UNKNOWN_NOISE, Basis.FEW_ROUNDS, Basis.HISTORY):
        return "perun compare measures them side by side"
    missing = more_needed(found, rules)
    if missing is None:
        return "even many more would hardly decide: measure what takes longer, or on a quieter machine"
    if found.rounds:
        visit = "session" if found.basis is Basis.SESSIONS else "round"
        return f"about {counted(missing, f'more {visit}')} of both would decide"
    return f"about {counted(missing, 'more measurement')} of each would decide"


def _interval(found: Difference) -> str:
    return f"the {100 * found.confidence:.4g} % interval of the ratio, {found.low:.4g} to {found.high:.4g},"


def _reciprocal(value: float) -> float:
    return 1 / value if value else math.inf
