"""What pairs of measurements say, and whether more of them are needed: mathematics on numbers alone.

After 10 pairs, and then after every 5, the pairs are looked at. The level of each look is such that all looks
together are wrong with the stated probability at most (:mod:`perun.models.two_samples.sequential`).
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.core.errors import PerunError
from perun.measurement.difference import Basis, Rules, difference
from perun.measurement.estimate import Point, Round, Sample
from perun.measurement.series import Metric
from perun.measurement.verdict import Verdict, judge
from perun.models.two_samples.ratio import MIN_VALUES, Ratio, of_pairs
from perun.models.two_samples.sequential import nominal_levels
from perun.profile.changes import PerformanceChange
from perun.running.compare.instruments import Instrument, Reading
from perun.running.compare.plan import Folders, Plan

Floats = NDArray[np.float64]

FIRST_LOOK: Final = 10
STEP: Final = 5
"""Pairs between two looks."""
EXACT_AFTER: Final = 3
"""Pairs after which counts that hardly differ from run to run decide."""
_SESSION: Final = "pairs"


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
    :param levels: of the look, as of :class:`perun.measurement.estimate.Point`.
    """

    metric: Metric
    verdict: Verdict
    noise: Ratio | None
    settled: bool
    levels: tuple[float, float]

    @property
    def is_open(self) -> bool:
        """Whether the answer is neither a definite change nor that there is none."""
        return not self.verdict.decides


class InterimPlan:
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
    series: Mapping[Metric, Values], looks: InterimPlan, rules: Rules, *, ends: bool = False
) -> list[Decision]:
    """What the pairs so far say of each metric.

    :param ends: no more pairs follow.
    """
    return [_decision(metric, values, looks, rules, ends) for metric, values in series.items()]


def _decision(metric: Metric, values: Values, looks: InterimPlan, rules: Rules, ends: bool) -> Decision:
    count = values.base.size
    strong, weak = (
        looks.level(1 - confidence, count, ends=ends) for confidence in (rules.confidence, rules.weaker)
    )
    noise = None
    if count >= MIN_VALUES and min(array.min() for array in values) > 0:
        noise = of_pairs(values.base, values.noise, 1 - strong)
    base, head = (_point(metric, side) for side in values[:2])
    if noise is not None:
        head = head._replace(levels=(strong, weak), noise=(noise.low, noise.high), ended=_SESSION)
    found = difference(base, head, rules=rules)
    assert found is not None  # both have measured the one workload
    verdict = judge(found, rules)
    counted = found.basis in (Basis.COUNTS, Basis.RUNS)
    settled = counted or _is_settled(verdict, rules)
    return Decision(metric, verdict, None if counted else noise, settled, (strong, weak))


def _point(metric: Metric, values: Floats) -> Point:
    """Each run is a round of its own."""
    samples = [Sample(1, value, None, value > 0) for value in values.tolist()]
    rounds = tuple(Round(_SESSION, number, {"": one}) for number, one in enumerate(samples))
    return Point(rounds, metric.kind)


def _is_settled(verdict: Verdict, rules: Rules) -> bool:
    """Whether the label is definite, or the interval is half as wide as the threshold."""
    found = verdict.difference
    if verdict.decides:
        return True
    if not (found.low > 0 and math.isfinite(found.high)):
        return False
    return math.log(found.high / found.low) <= math.log1p(rules.threshold)


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


# The runs of one pair: base, head, and the base once more, in an order that favours none of them.

BASE: Final = "base"
HEAD: Final = "head"
NOISE: Final = "noise"
ARMS: Final = (BASE, HEAD, NOISE)
LEAST: Final = 0.001
"""Seconds that a run is given at least: 0 would be without a limit."""
PARALLEL: Final = 1.2
"""Time of processors over that of the wall clock from which on a program uses several cores at once."""

Seconds = Callable[[], float]
"""Tells how much of the budget is left."""


class PairRunner:
    """Measures pairs by one instrument.

    :param order: `random`, or `abba`: each pair mirrors the one before.
    :param cores: the processors on which a program may be kept, one drawn for each pair; none where it may
        use all.
    """

    def __init__(
        self,
        instrument: Instrument,
        plan: Plan,
        folders: Folders,
        order: str,
        cores: tuple[int, ...],
        rng: random.Random,
    ) -> None:
        self._instrument = instrument
        self._names: dict[str, str] = {side.name: str(side) for side in plan.sides}
        self._folders = folders
        self._mirrors = order == "abba"
        self._cores = cores
        self._rng = rng

    @property
    def is_pinned(self) -> bool:
        """Whether each pair runs on one core."""
        return bool(self._cores)

    def warm_up(self, left: Seconds) -> list[Reading]:
        """Run each build of each side once, unmeasured. Where one uses several cores at once, no run is kept
        on one core from then on.

        :param left: the seconds that are left.
        :raises BudgetSpent: where a run takes longer.
        :raises PerunError: names the side whose command fails.
        """
        readings = [
            self._run(side, build, left, None)
            for side in (BASE, HEAD)
            for build in range(len(self._folders[side]))
        ]
        if any(_is_parallel(reading) for reading in readings):
            self._cores = ()
        return readings

    def measure(self, number: int, left: Seconds) -> Mapping[str, Reading]:
        """The readings of the arms of a pair.

        :param number: of the pair, from 0. :param left: the seconds that are left.
        :raises BudgetSpent: where one takes longer. :raises PerunError: as :meth:`warm_up`.
        """
        core = self._rng.choice(self._cores) if self._cores else None
        arms = list(ARMS)
        if not self._mirrors:
            self._rng.shuffle(arms)
        elif number % 2:
            arms.reverse()
        return {arm: self._run(arm, self._build(arm, number), left, core) for arm in arms}

    def _build(self, arm: str, number: int) -> int:
        """Which build of its side an arm takes: each meets each of the other side, and the noise another one
        than the base, as far as there are several."""
        builds = len(self._folders[HEAD])
        if arm == HEAD:
            return (number + number // builds) % builds
        return (number + (arm == NOISE)) % builds

    def _run(self, arm: str, build: int, left: Seconds, core: int | None) -> Reading:
        side = HEAD if arm == HEAD else BASE
        try:
            return self._instrument.measure(self._folders[side][build], max(left(), LEAST), core)
        except PerunError as problem:
            raise type(problem)(f"{self._names[side]}: {problem.message}", problem.hint) from None


def usable_cores(pin: bool) -> tuple[int, ...]:
    """The processors on which a program may be kept: none where there is but one, or the user wants none."""
    try:
        cores = tuple(sorted(os.sched_getaffinity(0)))
    except (AttributeError, OSError):
        return ()
    return cores if pin and len(cores) > 1 else ()


def _is_parallel(reading: Reading) -> bool:
    sample = reading.sample
    return sample is not None and sample.user + sample.system > PARALLEL * sample.real
