"""What pairs of measurements say, and whether more of them are needed: mathematics on numbers alone.

After 10 pairs, and then after every 5, the pairs are looked at. The level of each look is such that all looks
together are wrong with the stated probability at most (:mod:`perun.models.two_samples.sequential`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.measurement.series import Metric
from perun.models.two_samples.many import benjamini_hochberg
from perun.models.two_samples.ratio import MIN_VALUES, Ratio, of_pairs
from perun.models.two_samples.sequential import nominal_levels
from perun.profile.changes import PerformanceChange
from perun.profile.verdict import NOT_CONFIRMED, Thresholds, Verdict, judge, judge_exact
from perun.wording import plural

Floats = NDArray[np.float64]

FIRST_LOOK: Final = 10
STEP: Final = 5
"""Pairs between two looks."""
EXACT_AFTER: Final = 3
"""Pairs after which counts that hardly differ from run to run decide."""
HARDLY: Final = 1e-3
"""Share by which counts of the same program differ at most to be taken as exact."""
_UNDECIDED: Final = frozenset(
    {PerformanceChange.Unknown, PerformanceChange.MaybeDegradation, PerformanceChange.MaybeOptimization}
)


class Values(NamedTuple):
    """What was measured of one metric: arrays of shape (n,), the k-th of each from the k-th pair.

    :param noise: once more the base; its ratio to `base` is the noise of the session.
    """

    base: Floats
    head: Floats
    noise: Floats


class Decision(NamedTuple):
    """What the pairs say of one metric.

    :param noise: the ratio of the base to itself, None where there are too few pairs for any.
    :param settled: whether more pairs would not change the answer.
    :param weaker: the ratio with the interval of less confidence; None where nothing rests on chance, as of
        counts. :param confirmed_by: what agrees that the change is severe.
    """

    metric: Metric
    verdict: Verdict
    noise: Ratio | None
    settled: bool
    weaker: Ratio | None = None
    confirmed_by: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the answer is neither a definite change nor that there is none."""
        return self.verdict.change in _UNDECIDED


class Looks:
    """When the pairs are looked at, and at what level.

    :param most: pairs at which the series ends.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        sizes = [*range(FIRST_LOOK, most, STEP), most]
        self._sizes = tuple(sizes)

    def is_one(self, pairs: int) -> bool:
        """Whether so many pairs are looked at."""
        return pairs in self._sizes

    def level(self, alpha: float, pairs: int, *, ends: bool) -> float:
        """The level of the look at so many pairs, where all looks together may be wrong with `alpha`.

        :param ends: it is the last one, whatever was planned, as the time is over.
        """
        if self.is_one(pairs) and not (ends and pairs < self.most):
            number = self._sizes.index(pairs)
            # The first does not depend on those after it, and is often the only one.
            sizes = self._sizes if number else self._sizes[:1]
            return _levels(alpha, sizes, self.most, ends=False)[number]
        before = tuple(size for size in self._sizes if size < pairs)
        return _levels(alpha, (*before, pairs), self.most, ends=True)[-1]


@lru_cache(maxsize=32)
def _levels(alpha: float, sizes: tuple[int, ...], most: int, *, ends: bool) -> list[float]:
    return nominal_levels(alpha, sizes, most, ends=ends)


def reachable(most: int, seconds: float, per_pair: float) -> int:
    """How many pairs a series has at most where there is so much time for it, but at least a first look."""
    if per_pair <= 0:
        return most
    return min(most, max(FIRST_LOOK, int(seconds / per_pair)))


def decide(
    series: Mapping[Metric, Values],
    looks: Looks,
    thresholds: Thresholds,
    *,
    ends: bool = False,
    together: int = 1,
) -> list[Decision]:
    """What the pairs so far say of each metric.

    :param ends: no more pairs follow.
    :param together: the series whose p-values are adjusted together in the end: a change that would not be
        definite then is not settled.
    """
    found = {metric: _ratios(values, looks, thresholds, ends) for metric, values in series.items()}
    decisions = []
    for metric, values in series.items():
        strong, weak, noise = found[metric]
        if metric.exact and _is_exact(values):
            decisions.append(_of_counts(metric, values, thresholds))
        elif strong is None:
            decisions.append(Decision(metric, _unknown(values, thresholds), None, False))
        else:
            agrees = any(
                _is_severe(*_bounds(other[0], turned=name.larger_is_better is not metric.larger_is_better),
                           strong, thresholds)
                for name, other in found.items()
                if name != metric and other[0] is not None
            )  # fmt: skip
            found_so_far = Decision(metric, _unknown(values, thresholds), noise, False, weak)
            decision = _judged(found_so_far, strong, "a second metric" if agrees else "", thresholds)
            decisions.append(decision._replace(settled=_is_settled(decision.verdict, thresholds, together)))
    return decisions


def _judged(decision: Decision, ratio: Ratio, confirmed_by: str, thresholds: Thresholds) -> Decision:
    """The decision by this ratio, and by what confirms it."""
    verdict = judge(ratio, thresholds, weaker=decision.weaker, confirmed_by=confirmed_by)
    verdict = _against_noise(verdict, decision.noise, thresholds)
    return decision._replace(verdict=verdict, confirmed_by=confirmed_by)


def adjusted(decisions: Sequence[Decision], thresholds: Thresholds) -> list[Decision]:
    """The decisions with p-values that are adjusted for how many there are (Benjamini-Hochberg).

    Left as they are are counts, of which nothing rests on chance, and what has too few pairs for a ratio.
    """
    places = [place for place, one in enumerate(decisions) if one.weaker is not None]
    ratios = [decisions[place].verdict.ratio for place in places]
    found = list(decisions)
    p_values = benjamini_hochberg([ratio.p_value for ratio in ratios]).tolist() if ratios else []
    for place, ratio, p_value in zip(places, ratios, p_values, strict=True):
        if p_value != ratio.p_value:
            one = found[place]
            found[place] = _judged(one, ratio._replace(p_value=p_value), one.confirmed_by, thresholds)
    return found


def may_be_severe(decision: Decision, thresholds: Thresholds) -> bool:
    """Whether it would be severe, if only something confirmed that."""
    change, ratio = decision.verdict.change, decision.verdict.ratio
    definite = change in (PerformanceChange.Degradation, PerformanceChange.Optimization)
    return definite and decision.weaker is not None and _is_severe(ratio.low, ratio.high, ratio, thresholds)


def measured_again(decision: Decision, values: Values | None, thresholds: Thresholds) -> Decision:
    """The decision on what may be severe, once a second session has measured these pairs.

    :param values: None where there was no second session.
    """
    why = f"{NOT_CONFIRMED}: no pairs or no time left to measure it again (--max-pairs, --budget)"
    if values is not None and min(array.min() for array in values[:2]) > 0:
        again = of_pairs(values.base, values.head, thresholds.confidence)
        pairs = plural(values.base.size, "pair")
        session = f"a second session ({pairs}: {again.low:.4g} to {again.high:.4g})"
        if _is_severe(again.low, again.high, decision.verdict.ratio, thresholds):
            return _judged(decision, decision.verdict.ratio, session, thresholds)
        why = f"{session} does not confirm that it is severe"
    rule = decision.verdict.rule.replace(NOT_CONFIRMED, why)
    return decision._replace(verdict=decision.verdict._replace(rule=rule))


def _ratios(
    values: Values, looks: Looks, thresholds: Thresholds, ends: bool
) -> tuple[Ratio | None, Ratio | None, Ratio | None]:
    """The ratio with the interval of the confidence, with that of the weaker one, and that of the noise."""
    count = values.base.size
    if count < MIN_VALUES or min(array.min() for array in values) <= 0:
        return None, None, None
    strong, weak = (
        _at_look(values.base, values.head, confidence, looks, ends)
        for confidence in (thresholds.confidence, thresholds.weaker)
    )
    return strong, weak, _at_look(values.base, values.noise, thresholds.confidence, looks, ends)


def _at_look(base: Floats, head: Floats, confidence: float, looks: Looks, ends: bool) -> Ratio:
    """The ratio whose interval holds at all looks together.

    The p-value is scaled as the level is, so that it is below 1 - `confidence` where the interval excludes 1.
    """
    alpha = 1 - confidence
    level = looks.level(alpha, base.size, ends=ends)
    ratio = of_pairs(base, head, 1 - level)
    return ratio._replace(confidence=confidence, p_value=min(1.0, ratio.p_value * alpha / level))


def _is_exact(values: Values) -> bool:
    """Whether runs of the same program counted nearly the same, often enough to say so."""
    if values.base.size < EXACT_AFTER:
        return False
    base = np.concatenate([values.base, values.noise])
    return all(side.max() <= side.min() * (1 + HARDLY) for side in (base, values.head))


def _of_counts(metric: Metric, values: Values, thresholds: Thresholds) -> Decision:
    base = np.concatenate([values.base, values.noise])
    sizes = values.base.size, values.head.size
    if base.min() == base.max() and values.head.min() == values.head.max():
        counts = float(base[0]), float(values.head[0])
        verdict = judge_exact(*counts, sizes, thresholds)
        return Decision(metric, verdict._replace(ratio=verdict.ratio._replace(medians=counts)), None, True)
    # What they differ by from run to run is no chance of a distribution: the bounds are those of all runs.
    low, high = float(values.head.min() / base.max()), float(values.head.max() / base.min())
    ratio = Ratio(
        float(np.median(values.head) / np.median(base)),
        low,
        high,
        float(low <= 1 <= high),
        thresholds.confidence,
        sizes,
        True,
        float(base.max() / base.min()),
        medians=(float(np.median(base)), float(np.median(values.head))),
    )
    limits = replace(thresholds, threshold=max(thresholds.exact, HARDLY))
    return Decision(metric, judge(ratio, limits, confirmed_by="each run"), None, True)


def _unknown(values: Values, thresholds: Thresholds) -> Verdict:
    count = values.base.size
    rule = f"{count} pairs are too few"
    if count >= MIN_VALUES:
        rule = "some runs took 0, of which no ratio can be made"
    ratio = Ratio(
        math.nan, 0.0, math.inf, 1.0, thresholds.confidence, (count, count), True, math.inf,
        medians=tuple(float(np.median(side)) if count else math.nan for side in values[:2]),  # type: ignore[arg-type]
    )  # fmt: skip
    return Verdict(PerformanceChange.Unknown, rule, ratio)


def _bounds(ratio: Ratio, *, turned: bool) -> tuple[float, float]:
    """Those of its interval; or of the ratio of the base to the head."""
    if not turned:
        return ratio.low, ratio.high
    return 1 / ratio.high, 1 / ratio.low if ratio.low else math.inf


def _is_severe(low: float, high: float, like: Ratio, thresholds: Thresholds) -> bool:
    limit = 1 + thresholds.severe
    return low > limit if like.estimate > 1 else high < 1 / limit


def _against_noise(verdict: Verdict, noise: Ratio | None, thresholds: Thresholds) -> Verdict:
    """Nothing is known where the base differs from itself."""
    limit = 1 + thresholds.threshold
    if noise is None or not (noise.low > limit or noise.high < 1 / limit):
        return verdict
    rule = (
        f"the base differs from itself by {noise.estimate:.3g}x ({noise.low:.3g} to {noise.high:.3g}): this "
        "session measured something else than the versions; measure again, on a quieter machine"
    )
    return Verdict(PerformanceChange.Unknown, rule, verdict.ratio)


def _is_settled(verdict: Verdict, thresholds: Thresholds, together: int = 1) -> bool:
    """Whether the label is definite, also among so many p-values that are adjusted together, or the interval
    is half as wide as the threshold."""
    ratio = verdict.ratio
    if verdict.change is PerformanceChange.NoChange:
        return True
    if verdict.change not in _UNDECIDED:
        return ratio.p_value * together <= 1 - thresholds.confidence
    if not (ratio.low > 0 and math.isfinite(ratio.high)):
        return False
    return math.log(ratio.high / ratio.low) <= math.log1p(thresholds.threshold)


def disagreements(decisions: Sequence[Decision]) -> Iterator[str]:
    """What it means that two clocks do not say the same, for each such pair of them."""
    labels = {_clock(one.metric): _direction(one) for one in decisions}
    for (first, second), meanings in _MEANINGS.items():
        if first in labels and second in labels:
            meaning = meanings.get((labels[first], labels[second]))
            if meaning:
                yield meaning


def _clock(metric: Metric) -> str:
    return metric.type if metric.type == "instructions" else metric.subtype


def _direction(decision: Decision) -> str:
    change = decision.verdict.change
    if change is PerformanceChange.NoChange:
        return "same"
    if decision.is_open:
        return "open"
    return "more" if change.value < 0 else "less"


_MEANINGS: Final[Mapping[tuple[str, str], Mapping[tuple[str, str], str]]] = {
    ("real", "cpu"): {
        ("more", "same"): "slower by the wall clock, as much work for the processor: it waits more, for "
        "files, locks, the network, or its own threads",
        ("more", "less"): "slower by the wall clock, less work for the processor: it waits more, or uses "
        "fewer cores at the same time",
        ("same", "more"): "more work for the processor, as fast by the wall clock: other cores do the work, "
        "or it is done where the program waited before; where cores are busy it will be slower",
        ("less", "same"): "faster by the wall clock, as much work for the processor: it waits less, or uses "
        "more cores at the same time",
        ("less", "more"): "faster by the wall clock for more work: it uses more cores at the same time",
        ("same", "less"): "less work for the processor, as fast by the wall clock: what it saves is time in "
        "which it waits for something else",
        ("open", "more"): "the wall clock does not decide, the processor's time does: the work has grown",
        ("open", "less"): "the wall clock does not decide, the processor's time does: there is less work",
    },
    ("instructions", "cpu"): {
        ("more", "same"): "it executes more instructions in the same time: what was added is cheap here",
        ("more", "less"): "it executes more instructions in less time: they are cheaper ones",
        ("same", "more"): "the same number of instructions takes longer: caches, branches, or where the "
        "code lies in memory; a build that places it elsewhere may differ (--builds)",
        ("same", "less"): "the same number of instructions takes less time: caches, branches, or where the "
        "code lies in memory; a build that places it elsewhere may differ (--builds)",
        ("less", "same"): "it executes fewer instructions in the same time: what was saved was cheap here",
        ("less", "more"): "it executes fewer instructions in more time: they are dearer ones",
        ("more", "open"): "the instructions have grown; their time does not decide",
        ("less", "open"): "there are fewer instructions; their time does not decide",
    },
}
"""What the directions of two clocks mean together; where both say the same there is nothing to add."""
