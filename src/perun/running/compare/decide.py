"""What pairs of measurements say, and whether more of them are needed: mathematics on numbers alone.

After 10 pairs, and then after every 5, beyond 100 after every tenth more, the pairs are looked at. The level
of each look is such that all looks together are wrong with the stated probability at most
(:mod:`perun.models.two_samples.sequential`).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from perun.core import conditions
from perun.core.errors import PerunError, UsageError
from perun.core.process.execution import RunSample
from perun.measurement.difference import Basis, Rules, difference
from perun.measurement.estimate import Kind, Point, Round, Sample
from perun.measurement.many import corrected
from perun.measurement.series import Metric
from perun.measurement.verdict import Verdict, judge, settled
from perun.models.two_samples.ratio import MIN_VALUES, Ratio, of_pairs
from perun.models.two_samples.sequential import SPENDING_POWER, level
from perun.profile.changes import PerformanceChange
from perun.running.compare.instruments import Instrument, Reading, SideFailed
from perun.running.compare.plan import NOISE, ComparePlan, Folders

Floats = NDArray[np.float64]

FIRST_LOOK: Final = 10
STEP: Final = 5
"""Pairs between two looks, of which there are more where a tenth of those so far is more."""
EXACT_AFTER: Final = 3
"""Pairs after which counts that hardly differ from run to run decide."""
_SESSION: Final = "pairs"


class PairValues(NamedTuple):
    """What was measured of one metric: arrays of shape (n,), the k-th of each from the k-th pair.

    :param noise: once more the base; its ratio to `base` is the noise of the session.
    :param beside: of duets, the base that ran at the same time as the noise, which is compared with that
        instead.
    """

    base: Floats
    head: Floats
    noise: Floats
    beside: Floats | None = None

    def noise_of(self, confidence: float) -> Ratio | None:
        """The ratio of the base to itself, with an interval of that confidence; None where there are too few
        pairs, or a value is not above 0."""
        if self.base.size < MIN_VALUES or min(one.min() for one in self if one is not None) <= 0:
            return None
        return of_pairs(self.base if self.beside is None else self.beside, self.noise, confidence)

    def points(self, metric: Metric) -> tuple[Point, Point]:
        """Base and head as points of a series, each run a round of its own."""
        return _point(metric, self.base), _point(metric, self.head)


class MetricDecision(NamedTuple):
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

    :param most: pairs at which the series ends. :param power: of the spending function.
        :ivar sizes: pairs at each look, ascending.
    """

    def __init__(self, most: int, power: float = SPENDING_POWER) -> None:
        self.most = most
        self._power = power
        sizes = [FIRST_LOOK] if most > FIRST_LOOK else []
        while sizes and (size := sizes[-1] + STEP * max(1, sizes[-1] // (10 * STEP))) < most:
            sizes.append(size)
        self.sizes = (*sizes, most)

    def is_one(self, pairs: int) -> bool:
        """Whether so many pairs are looked at."""
        return pairs in self.sizes

    def level(self, alpha: float, pairs: int, *, ends: bool) -> float:
        """The level of the look at so many pairs, where all looks together may be wrong with `alpha`.

        :param ends: it is the last one, whatever was planned, as the time is over.
        """
        is_planned = self.is_one(pairs) and not (ends and pairs < self.most)
        before = [size for size in self.sizes if size < pairs]
        return level(alpha, [*before, pairs], self.most, self._power, ends=not is_planned)


def reachable(most: int, seconds: float, per_pair: float) -> int:
    """How many pairs a series has at most where there is so much time for it, but at least a first look."""
    if per_pair <= 0:
        return most
    return min(most, max(FIRST_LOOK, int(seconds / per_pair)))


def decide(
    series: Mapping[Metric, PairValues], looks: InterimPlan, rules: Rules, *, ends: bool = False
) -> list[MetricDecision]:
    """What the pairs so far say of each metric.

    :param ends: no more pairs follow.
    """
    return [_decision(metric, values, looks, rules, ends) for metric, values in series.items()]


def _decision(
    metric: Metric, values: PairValues, looks: InterimPlan, rules: Rules, ends: bool
) -> MetricDecision:
    count = values.base.size
    strong, weak = (
        looks.level(1 - confidence, count, ends=ends)
        for confidence in (rules.confidence, rules.maybe_confidence)
    )
    is_sampled = metric.kind is Kind.SAMPLED
    noise = None if is_sampled else values.noise_of(1 - strong)
    base, head = values.points(metric)
    if is_sampled:
        head = head._replace(levels=(strong, weak), ended=_SESSION)
    if noise is not None:
        head = head._replace(levels=(strong, weak), noise=(noise.low, noise.high), ended=_SESSION)
    found = difference(base, head, rules=rules)
    assert found is not None  # both have measured the one workload
    verdict = judge(found, rules)
    counted = found.basis in (Basis.COUNTS, Basis.RUNS)
    is_settled = counted or settled(verdict, rules)
    return MetricDecision(metric, verdict, None if counted else noise, is_settled, (strong, weak))


def among_many(decisions: Sequence[MetricDecision], rules: Rules) -> list[MetricDecision]:
    """The decisions on series of which some differ by chance, as they are many; those that may are open."""
    verdicts = corrected([one.verdict for one in decisions], rules)
    return [
        one if verdict is one.verdict else one._replace(verdict=verdict, settled=False)
        for one, verdict in zip(decisions, verdicts, strict=True)
    ]


def _point(metric: Metric, values: Floats) -> Point:
    samples = [Sample(1, value, None, value > 0) for value in values.tolist()]
    rounds = tuple(Round(_SESSION, number, {"": one}) for number, one in enumerate(samples))
    return Point(rounds, metric.kind)


def disagreements(decisions: Sequence[MetricDecision]) -> Iterator[str]:
    """What it means that two clocks do not say the same, for each such pair of them."""
    labels = {_clock(one.metric): _direction(one) for one in decisions}
    for (first, second), meanings in _MEANINGS.items():
        if first in labels and second in labels:
            meaning = meanings.get((labels[first], labels[second]))
            if meaning:
                yield meaning


def _clock(metric: Metric) -> str:
    return metric.type if metric.type == "instructions" else metric.subtype


def _direction(decision: MetricDecision) -> str:
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
#
# In turns they follow each other. Duets are two runs at the same time, on two cores that are exchanged from
# pair to pair: the base with the head, and the base with its copy, so that the noise is measured as the
# difference is (L. Bulej et al., Duet Benchmarking: Improving Measurement Accuracy in the Cloud, ICPE 2020).

BASE: Final = "base"
HEAD: Final = "head"
ARMS: Final = (BASE, HEAD, NOISE)
BESIDE: Final = "beside"
"""In duets, the base that runs at the same time as the noise; that of the head is :data:`BASE`."""
DUETS: Final = ((BASE, HEAD), (BESIDE, NOISE))
LEAST: Final = 0.001
"""Seconds that a run is given at least: 0 would be without a limit."""
PARALLEL: Final = 1.2
"""Time of processors over that of the wall clock from which on a program uses several cores at once."""

DUET: Final = 2
"""Processors that a duet needs."""

T = TypeVar("T")
Seconds = Callable[[], float]
"""Tells how much of the budget is left."""


class Duet(NamedTuple):
    """How two programs run at the same time: on which processors, and who measures them."""

    cores: tuple[int, int]
    measure: Callable[[Sequence[Path], float, Sequence[int]], Sequence[Reading]]


class PairRunner:
    """Measures pairs by one instrument.

    :param order: `random`, or `abba`: each pair mirrors the one before.
    :param cores: the processors on which a program may be kept, one drawn for each pair; none where it may
        use all.
    :param duet: how both sides are measured at the same time, None where they are in turns.
        :ivar parallel: whether a program uses several cores at once, so that they are in turns all the same.
        :ivar warm: what the last unmeasured run gave.
    """

    def __init__(
        self,
        instrument: Instrument,
        plan: ComparePlan,
        folders: Folders,
        order: str,
        cores: tuple[int, ...],
        rng: random.Random,
        duet: Duet | None = None,
    ) -> None:
        self.parallel = False
        self._instrument = instrument
        self._names: dict[str, str] = {side.name: str(side) for side in plan.sides}
        self._folders = folders
        self._mirrors = order == "abba"
        self._cores = cores
        self._rng = rng
        self._duet = duet
        self._first = rng.randrange(2) if duet else 0
        self.warm: Reading | None = None

    @property
    def frequency(self) -> float:
        """Samples for each second of CPU time; 0 where nothing is sampled."""
        return float(getattr(self._instrument, "frequency", 0.0))

    @property
    def is_pinned(self) -> bool:
        """Whether each pair runs on one core, or on the two of a duet."""
        return bool(self._cores)

    @property
    def together(self) -> tuple[int, ...]:
        """The processors on which both sides run at the same time; none where they are in turns."""
        return self._duet.cores if self._duet else ()

    @property
    def steps(self) -> int:
        """How many runs of a pair follow each other."""
        return len(DUETS if self._duet else ARMS)

    def warm_up(self, left: Seconds) -> float:
        """Run each build of each side once, unmeasured, as far as a pair can be measured after it. Where one
        uses several cores at once, no run is kept on one core from then on, and all are in turns.

        :param left: the seconds that are left.
        :returns: how many seconds the longest run took.
        :raises BudgetSpent: where a run takes so long that no pair can be measured in that time.
        :raises PerunError: names the side whose command fails.
        """
        builds = [(side, build) for side in (BASE, HEAD) for build in range(len(self._folders[side]))]
        longest = 0.0
        for number, (side, build) in enumerate(builds):
            if number and longest * (1 + self.steps) > left():
                break
            begun = left()
            # A run is let go on for as long as a pair of such runs fits in behind it.
            reading = self._run(side, build, partial(_share, begun, left, self.steps), None)
            longest, self.warm = max(longest, begun - left()), reading
            if is_parallel(reading.sample):
                self.parallel, self._cores, self._duet = True, (), None
        return longest

    def measure(self, number: int, left: Seconds) -> Mapping[str, Reading]:
        """The readings of the arms of a pair.

        :param number: of the pair, from 0. :param left: the seconds that are left.
        :raises BudgetSpent: where one takes longer. :raises PerunError: as :meth:`warm_up`.
        """
        if self._duet is not None:
            return self._duets(self._duet, number, left)
        core = self._rng.choice(self._cores) if self._cores else None
        return {
            arm: self._run(arm, self._build(arm, number), left, core) for arm in self._ordered(ARMS, number)
        }

    def _duets(self, duet: Duet, number: int, left: Seconds) -> Mapping[str, Reading]:
        cores = duet.cores[:: -1 if (self._first + number) % 2 else 1]
        found: dict[str, Reading] = {}
        for arms in self._ordered(DUETS, number):
            folders = [self._folder(arm, self._build(arm, number)) for arm in arms]
            try:
                readings = duet.measure(folders, max(left(), LEAST), cores)
            except SideFailed as failed:
                raise self._named(arms[failed.number], failed.problem) from None
            found |= zip(arms, readings, strict=True)
        return found

    def _ordered(self, arms: Sequence[T], number: int) -> list[T]:
        ordered = list(arms)
        if not self._mirrors:
            self._rng.shuffle(ordered)
        elif number % 2:
            ordered.reverse()
        return ordered

    def _build(self, arm: str, number: int) -> int:
        """Which build of its side an arm takes: each meets each of the other side, and the noise another one
        than the base, as far as there are several."""
        builds = len(self._folders[HEAD])
        return (number + number // builds if arm == HEAD else number) % builds

    def _folder(self, arm: str, build: int) -> Path:
        return (self._folders.get(arm) or self._folders[BASE])[build]

    def _run(self, arm: str, build: int, left: Seconds, core: int | None) -> Reading:
        try:
            return self._instrument.measure(self._folder(arm, build), max(left(), LEAST), core)
        except PerunError as problem:
            raise self._named(arm, problem) from None

    def _named(self, arm: str, problem: PerunError) -> PerunError:
        """The error of an arm, with the name of its side."""
        side = self._names[HEAD if arm == HEAD else BASE]
        return type(problem)(f"{side}: {problem.message}", problem.hint)


def _share(begun: float, left: Seconds, runs: int) -> float:
    """What is left of the share of the first of as many runs as a pair and one more have."""
    return left() - begun * runs / (1 + runs)


def usable_cores(pin: bool) -> tuple[int, ...]:
    """The processors on which a program may be kept: none where there is but one, or the user wants none."""
    try:
        cores = tuple(sorted(os.sched_getaffinity(0)))
    except (AttributeError, OSError):
        return ()
    return cores if pin and len(cores) > 1 else ()


def duet_cores(pin: bool) -> tuple[int, int]:
    """Two processors for duets: of two cores, where there are, that are equally fast.

    :raises UsageError: where there are no two, or the user does not want programs to be kept on one.
    """
    in_turns = "measure in turns, without --duet"
    if not pin:
        raise UsageError("--duet keeps each side on a core of its own, which --no-pin forbids", in_turns)
    cores, quota = usable_cores(pin=True), conditions.quota()
    if not cores:
        raise UsageError(
            "--duet needs two processors, and this process may use one only",
            f"allow it a second one (taskset, cpuset of the container), or {in_turns}",
        )
    if quota is not None and quota < DUET:
        raise UsageError(
            f"--duet needs two processors, and a control group allows {quota:g}",
            f"allow it two (docker run --cpus 2), or {in_turns}",
        )
    about = {core: conditions.of_processor(core) for core in cores}

    def unlike(pair: tuple[int, int]) -> tuple[bool, bool]:
        first, second = (about[core] for core in pair)
        return _share_a_core(first, second), first.fastest != second.fastest

    return min(combinations(cores, DUET), key=unlike)


def one_core(processors: Sequence[int]) -> bool:
    """Whether those of a duet are threads of one core, which slow each other down."""
    return len(processors) == DUET and _share_a_core(*map(conditions.of_processor, processors))


def _share_a_core(first: conditions.Processor, second: conditions.Processor) -> bool:
    return first.siblings == second.siblings != ""


def is_parallel(sample: RunSample | None) -> bool:
    """Whether a run used several cores at once."""
    return sample is not None and sample.user + sample.system > PARALLEL * sample.real
