"""Rounds of a suite: each benchmark of both versions in turns, until each is settled or the time is over.

Each benchmark is judged as a command is (:mod:`perun.running.compare.decide`). Of hundreds some differ by
chance alone, so a change is definite only where its p-value is small enough among all of them (Benjamini and
Hochberg); one that is not stays, and gets more rounds.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from perun.core.errors import PerunError, Terminated
from perun.core.process.programs import Speed
from perun.measurement.difference import Rules
from perun.measurement.many import among
from perun.measurement.series import EXACT, Metric
from perun.measurement.verdict import is_change
from perun.plugin.suites import PRINTED, BenchmarkRound, NamedBenchmark
from perun.profile.amounts import readable
from perun.running.compare.decide import ARMS, BASE, EXACT_AFTER, HEAD, InterimPlan, decide
from perun.running.compare.instruments import BudgetSpent, Reading
from perun.running.compare.trial import Trial, undecided
from perun.running.run.benchmarks import metric
from perun.running.suite.programs import Suite, SuiteBuild

_OF_MEMORY: Final = ("allocated", "allocations")


@dataclass
class BenchmarkTrial:
    """What was measured of one benchmark.

    :ivar iterations: operations of a round, the same of both versions; 0 until they are found.
    :ivar trial: its pairs, and what they say. :ivar settled: whether more rounds would not change that.
    :ivar failure: why it is not measured any more. :ivar common: the metrics that all of its rounds gave.
    """

    benchmark: NamedBenchmark
    trial: Trial
    iterations: int = 0
    settled: bool = False
    failure: str = ""
    common: set[Metric] = field(default_factory=set)

    @property
    def rounds(self) -> int:
        """How often it was measured."""
        return len(self.trial.pairs)

    @property
    def is_open(self) -> bool:
        """Whether it is to be measured again."""
        return not (self.settled or self.failure)

    def add(self, arms: Mapping[str, BenchmarkRound], wants: Callable[[Metric], bool]) -> None:
        """Another round."""
        pair = {arm: Reading(values_of(self.benchmark, arms[arm], wants)) for arm in ARMS}
        found = set.intersection(*(set(reading.values) for reading in pair.values()))
        self.common = self.common & found if self.rounds else found
        self.trial.pairs.append(pair)
        if not self.common:
            self.failure = "it has no value that all of its rounds gave"


def values_of(
    benchmark: NamedBenchmark, round: BenchmarkRound, wants: Callable[[Metric], bool]
) -> dict[Metric, float]:
    """What a round says of a benchmark: the median of its samples, of each metric that is wanted."""
    found = {}
    for one in round.values:
        kind = one.stored_type
        own = metric(str(benchmark), kind, one.subtype, one.unit, kind in EXACT, one.larger_is_better)
        if wants(own):
            found[own] = median(one.samples)
    return found


def is_usual(metric: Metric) -> bool:
    """Whether it is judged where nobody names metrics: times and counts, of memory also where they vary."""
    is_time = metric.type == "time" and not metric.subtype
    return is_time or metric.type in EXACT or metric.subtype in _OF_MEMORY


@dataclass
class SuiteTrial:
    """What was measured of a suite.

    :ivar came: benchmarks that only the head has, :ivar gone: that only the base has.
    :ivar rounds: how many there were. :ivar seconds: that they took. :ivar reason: why there are no more.
    :ivar notes: what the harness tells. :ivar interruption: the exception that ended it.
    """

    suite: Suite
    trials: list[BenchmarkTrial]
    came: tuple[NamedBenchmark, ...] = ()
    gone: tuple[NamedBenchmark, ...] = ()
    rounds: int = 0
    seconds: float = 0.0
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    speed: Speed = field(default_factory=Speed)
    interruption: BaseException | None = None


Progress = Callable[[SuiteTrial, float], None]
"""Gets the trial after each round, and the seconds that are left."""


def run(
    suite: Suite,
    builds: Mapping[str, SuiteBuild],
    chosen: Callable[[NamedBenchmark], bool],
    rules: Rules,
    budget: float,
    most: int,
    wants: Callable[[Metric], bool],
    progress: Progress,
    rng: random.Random,
    clock: Callable[[], float] = time.monotonic,
    *,
    cores: Sequence[int] = (),
    mirrored: bool = False,
    iterations: int = 0,
) -> SuiteTrial:
    """Measure the benchmarks that both sides have in rounds.

    :param builds: of each of the arms. :param most: rounds at which each ends.
    :param wants: whether a metric is judged. :param cores: the processors on which a program that uses one
        may be kept, one drawn for each round; none where all may use all.
    :param mirrored: the order of the arms is that of the round before in reverse; else it is random.
    :param iterations: of each benchmark; 0 to find them.
    :raises PerunError: names the side of which no benchmark can be run.
    """
    base, head = builds[BASE].programs, builds[HEAD].programs
    trial = SuiteTrial(
        suite,
        [BenchmarkTrial(one, Trial(suite.name), iterations) for one in base if one in head and chosen(one)],
        tuple(one for one in head if one not in base and chosen(one)),
        tuple(one for one in base if one not in head and chosen(one)),
    )
    begun = clock()
    runner = _Runner(trial, builds, lambda: begun + budget - clock(), rng, cores, mirrored)
    looks = InterimPlan(most)
    try:
        runner.measure(trial.trials, wants, counted=False)
        while open_ones := [one for one in trial.trials if one.is_open]:
            if trial.rounds >= most:
                trial.reason = f"{most} rounds are made"
                break
            trial.speed.visit()
            runner.measure(open_ones, wants, counted=True)
            trial.rounds += 1
            if looks.is_one(trial.rounds) or trial.rounds == EXACT_AFTER:
                look(trial.trials, looks, rules)
            progress(trial, begun + budget - clock())
    except BudgetSpent:
        trial.reason = f"the budget of {readable(budget, 's')} is spent"
    except (KeyboardInterrupt, Terminated) as problem:
        trial.interruption = problem
        trial.reason = "interrupted"
    trial.seconds, suite.core = clock() - begun, None
    left = [one for one in trial.trials if one.is_open]
    look(trial.trials, looks, rules, ends=True)
    if trial.interruption is not None:
        for one in left:
            one.settled = False
            one.trial.decisions = [undecided(found, one.rounds) for found in one.trial.decisions]
    return trial


def look(trials: Iterable[BenchmarkTrial], looks: InterimPlan, rules: Rules, *, ends: bool = False) -> None:
    """See which benchmarks are settled.

    What was settled stays as it is. A change of any other whose p-value is not small enough among those of
    all is judged at the level at which it would be.

    :param ends: no more rounds follow.
    """
    alpha = 1 - rules.confidence
    trials = [one for one in trials if one.rounds]
    for one in trials:
        if not one.is_open:
            continue
        series = one.trial.series
        may_be_exact = one.rounds == EXACT_AFTER and all(metric.exact for metric in series)
        if ends or looks.is_one(one.rounds) or may_be_exact:
            one.trial.decisions = decide(series, looks, rules, ends=ends)
    p_values = [found.verdict.difference.p_value for one in trials for found in one.trial.decisions]
    adjusted, share = among(p_values, alpha)
    strict = rules._replace(confidence=1 - alpha * share)
    values = iter(adjusted)
    for one in trials:
        decisions = one.trial.decisions
        own = [next(values) for _ in decisions]
        if not one.is_open:
            continue
        for place, (found, p_value) in enumerate(zip(decisions, own, strict=True)):
            if is_change(found.verdict) and p_value > alpha:
                metric = {found.metric: one.trial.series[found.metric]}
                decisions[place] = decide(metric, looks, strict, ends=ends)[0]
        leading = [found for found in decisions if found.metric.type != PRINTED] or decisions
        one.settled = bool(leading) and all(found.settled for found in leading)


class _Runner:
    """Measures rounds of all arms."""

    def __init__(
        self,
        trial: SuiteTrial,
        builds: Mapping[str, SuiteBuild],
        left: Callable[[], float],
        rng: random.Random,
        cores: Sequence[int],
        mirrored: bool,
    ) -> None:
        self._trial = trial
        self._cores = cores
        self._mirrored = mirrored
        self._builds = builds
        self._left = left
        self._rng = rng

    def measure(
        self, trials: Sequence[BenchmarkTrial], wants: Callable[[Metric], bool], *, counted: bool
    ) -> None:
        """One round of these benchmarks, in random order: of each one arm after the other, or of all where
        one process measures them.

        :param counted: else it warms up, and finds the iterations.
        """
        if self._trial.suite.together:
            groups = [self._rng.sample(trials, len(trials))]
        else:
            groups = [[one] for one in self._rng.sample(trials, len(trials))]
        for group in groups:
            if self._left() <= 0:
                raise BudgetSpent
            if not counted:
                arms = [BASE, *self._rng.sample(ARMS[1:], 2)]
            elif self._mirrored:
                arms = list(ARMS[:: -1 if self._trial.rounds % 2 else 1])
            else:
                arms = self._rng.sample(ARMS, len(ARMS))
            measured = [one for one in group if not one.failure]
            is_free = not (counted and self._cores) or any(one.trial.parallel for one in measured)
            self._trial.suite.core = None if is_free else self._rng.choice(self._cores)
            found = {arm: self._arm(arm, measured) for arm in arms}
            for one in group:
                if not one.failure and counted:
                    one.add({arm: found[arm][one.benchmark] for arm in ARMS}, wants)

    def _arm(self, arm: str, group: Sequence[BenchmarkTrial]) -> Mapping[NamedBenchmark, BenchmarkRound]:
        programs = self._builds[arm].programs
        found: dict[NamedBenchmark, BenchmarkRound] = {}
        names = dict.fromkeys(programs[one.benchmark].name for one in group)
        for name in names:
            own = [one for one in group if programs[one.benchmark].name == name]
            iterations = {one.benchmark: one.iterations for one in own}
            side = HEAD if arm == HEAD else BASE
            try:
                given = self._trial.suite.round(
                    programs[own[0].benchmark], iterations, self._left, self._note
                )
            except PerunError as problem:
                given = {one.benchmark: BenchmarkRound(0, (), problem.message) for one in own}
            for one in own:
                one.trial.parallel = one.trial.parallel or self._trial.suite.parallel
                one.trial.pinned = self._trial.suite.core is not None
                round = given.get(one.benchmark) or BenchmarkRound(0, (), "it was not measured")
                if not round.values or not round.iterations:
                    one.failure = one.failure or f"{side}: {round.failure or 'it gave no value'}"
                one.iterations = one.iterations or round.iterations
                found[one.benchmark] = round
        return found

    def _note(self, text: str) -> None:
        if text not in self._trial.notes:
            self._trial.notes.append(text)
