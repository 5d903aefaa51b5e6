"""One benchmark of a suite in place of a command: found by its name at the ends, and measured in rounds."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from perun.core.errors import JobFailed, UsageError
from perun.core.machine import class_of
from perun.history.changes.data import History
from perun.measurement.difference import Basis, Rules
from perun.measurement.series import Metric
from perun.measurement.verdict import is_change
from perun.plugin.api import MinorVersion, silent
from perun.plugin.suites import NamedBenchmark, SuiteProgram
from perun.repository.bisections import BisectionJournal
from perun.repository.copies import scratch_folder
from perun.repository.jobs import Job
from perun.repository.repository import Repository
from perun.running.bisect.data import BisectRequest, ends_of
from perun.running.bisect.judging import CostClassifier, EndsComparison
from perun.running.bisect.measuring import BisectMeasurement, BuiltCopies, Tell, as_data, copies
from perun.running.bisect.quantity import NoSuchLocation, Quantity, by_version
from perun.running.compare import compare as answers
from perun.running.compare.decide import (
    BASE,
    EXACT_AFTER,
    HEAD,
    InterimPlan,
    MetricDecision,
    decide,
    usable_cores,
)
from perun.running.compare.instruments import BudgetSpent
from perun.running.compare.plan import NOISE, CompareCase, CompareOptions, ComparePlan, CompareSide
from perun.running.compare.trial import store
from perun.running.run.benchmarks import profiles_of
from perun.running.run.collecting import describe_machine
from perun.running.suite.named import Place, found
from perun.running.suite.programs import Suite, SuiteBuild, SuiteOptions, harnesses, once
from perun.running.suite.trial import BenchmarkTrial, SuiteTrial, is_usual, run, values_of

if TYPE_CHECKING:
    from perun.profile.factory import Profile

TIME: Final = "time"
_KEPT: Final = 2
"""Versions whose suites stay built: as many as are sure to stay checked out."""


def named(repo: Repository, asked: BisectRequest, tell: Tell, note: Callable[[str], None]) -> BisectRequest:
    """What is asked for, with the benchmark that both ends have as command, arguments and workload.

    :raises UsageError: where there is no such benchmark, several, or an end lacks it.
    :raises PerunError: where an end cannot be built.
    """

    def report(activity: str, done: int, total: int) -> None:
        tell(activity)

    wanted = SuiteOptions(asked.harness, (asked.benchmark,))
    with copies(repo, tell) as built, ExitStack() as scratch:
        places = [
            Place(f"the {name} end, {version.checksum[:7]},", built.folder(version))
            for name, version in zip(("good", "bad"), ends_of(repo, asked), strict=True)
        ]
        one = found(repo, places, wanted, scratch, random.Random(), report, note)
    return replace(
        asked,
        cmd=one.suite.command,
        args=one.benchmark.name,
        workload=one.benchmark.parameters,
        benchmark=str(one.benchmark),
        harness=one.unit.name,
    )


def quantity_of(repo: Repository, asked: BisectRequest) -> Quantity:
    """What is measured of the benchmark; its metric is known once the ends are compared."""
    unit = harnesses(repo, repo.working_root, asked.harness)[-1]
    job = Job(asked.cmd, asked.args, asked.workload, unit)
    return Quantity(CompareCase(job, ()), asked.metric or TIME, "", None)


class BenchmarkMeasurement(BisectMeasurement):
    """Measures a benchmark in rounds of two versions, with a copy of the first one as the noise.

    Iterations are those that the good end has found. What is counted exactly is measured once.
    """

    def __init__(
        self,
        repo: Repository,
        asked: BisectRequest,
        wanted: Quantity,
        built_in: BuiltCopies,
        journal: BisectionJournal,
        tell: Tell,
        note: Callable[[str], None],
        rng: random.Random,
        scratch: ExitStack,
    ) -> None:
        super().__init__(repo, asked, wanted, built_in, journal, tell, rng)
        job = wanted.case.job
        self._benchmark = NamedBenchmark(job.args, job.workload)
        self._scratch = scratch
        own = scratch.enter_context(scratch_folder(repo))
        self._suite = Suite(repo, job.collector, rng, SuiteOptions().seconds, own)
        self._built: dict[str, tuple[SuiteBuild, ExitStack]] = {}
        self._iterations = int(journal.known("iterations") or 0)
        self._note = once(note)
        self._named: set[str] = set()

    @property
    def metric(self) -> Metric | None:
        """What is compared; None before the ends are."""
        return self._metric

    @property
    def what(self) -> str:
        """As of the base class, with the metric that is compared."""
        metric = self._metric
        name = ":".join(filter(None, (metric.type, metric.subtype))) if metric else self._wanted.metric
        return str(self._wanted._replace(metric=name))

    def _once(self, version: MinorVersion) -> tuple[float, list[Profile]]:
        program = self._program(version, self._build(version))
        self._tell(f"measuring {version.checksum[:7]}")
        state = describe_machine(self._repo)
        iterations = {self._benchmark: self._iterations}
        given = self._suite.round(program, iterations, lambda: 0.0, self._note).get(self._benchmark)
        values = values_of(self._benchmark, given, is_usual) if given is not None else {}
        if self._metric not in values:
            why = given.failure if given is not None else ""
            raise JobFailed(f"{self._benchmark}: {why or 'it does not tell that any more'}")
        return values[self._metric], profiles_of(self._wanted.case.job, self._iterations, [values], state)

    def _measured(
        self, base: MinorVersion, head: MinorVersion, rules: Rules, seconds: float
    ) -> dict[str, Any]:
        options = CompareOptions(base.checksum, head.checksum, most_pairs=self._asked.most_pairs)
        planned = ComparePlan(CompareSide("base", base), CompareSide("head", head), (self._wanted.case,))
        builds = {BASE: self._build(base), NOISE: self._build(base, noise=True)}
        self._program(base, builds[BASE])
        with self._attempt(head):
            builds[HEAD] = self._build(head)
            self._program(head, builds[HEAD])
            state = describe_machine(self._repo)
            self._tell(f"measuring {head.checksum[:7]} beside {base.checksum[:7]}")
            trial = run(
                self._suite, builds, lambda one: one == self._benchmark, rules, seconds,
                self._asked.most_pairs, self._wants, self._ended_by_counts(rules), self._rng,
                cores=usable_cores(self._asked.pin), iterations=self._iterations,
            )  # fmt: skip
            (one,) = trial.trials
            self._refuse(one, planned)
        if trial.interruption is not None:
            raise trial.interruption
        if not one.trial.decisions:
            raise BudgetSpent
        one.trial.seconds, one.trial.reason = trial.seconds, trial.reason
        state |= trial.speed.described()
        made: dict[str, list[Profile]] = {
            side.name: profiles_of(
                self._wanted.case.job, one.iterations,
                [reading.values for reading in one.trial.readings(side.name)], state,
            )
            for side in planned.sides
        }  # fmt: skip
        about = answers.about_trial(uuid.uuid4().hex, planned, one.trial, options)
        store(self._repo, planned.sides, made, about, int(time.time()))
        self._choose(one)
        return as_data(one.trial)

    def _wants(self, metric: Metric) -> bool:
        """That which was chosen; before, that which is named, or all that is judged where none is."""
        if self._metric is not None:
            return metric == self._metric
        own = {metric.type, metric.subtype, f"{metric.type}:{metric.subtype}"} - {""}
        self._named.add(":".join(filter(None, (metric.type, metric.subtype))))
        if metric.type == TIME and not metric.subtype:
            own.add("wall")
        elif self._asked.metric in (TIME, "wall"):
            return False
        return self._asked.metric in own if self._asked.metric else is_usual(metric)

    def _ended_by_counts(self, rules: Rules) -> Callable[[SuiteTrial, float], None]:
        """Ends the rounds where what is counted has changed: nobody waits for the times then."""

        def look(trial: SuiteTrial, left: float) -> None:
            (one,) = trial.trials
            if self._metric is None and trial.rounds == EXACT_AFTER and one.is_open:
                counted = {metric: values for metric, values in one.trial.series.items() if metric.exact}
                changed = [
                    decision
                    for decision in decide(counted, InterimPlan(self._asked.most_pairs), rules)
                    if _is_counted(decision) and is_change(decision.verdict)
                ]
                if changed:
                    one.trial.decisions, one.settled = changed, True

        return look

    def _refuse(self, one: BenchmarkTrial, planned: ComparePlan) -> None:
        """:raises JobFailed: where a version fails, or does not tell what the ends did.
        :raises UsageError: where the ends do not tell what is asked for."""
        if not one.failure:
            return
        side, _, why = one.failure.partition(": ")
        if side in (BASE, HEAD) and why:
            raise JobFailed(f"{planned.head if side == HEAD else planned.base}: {one.benchmark}: {why}")
        if self._metric is not None or not self._named:
            raise JobFailed(f"{one.benchmark}: {one.failure}")
        raise UsageError(
            f"--metric {self._wanted.metric}: {one.benchmark} does not tell it",
            f"it tells {', '.join(sorted(self._named))}",
        )

    def _choose(self, one: BenchmarkTrial) -> None:
        """Leave the decision that is searched by: a count that changed, else the time, else what changed."""

        def rank(decision: MetricDecision) -> tuple[bool, bool, bool]:
            changed, is_time = is_change(decision.verdict), decision.metric.type == TIME
            counted = changed and _is_counted(decision)
            return not counted, not (changed and is_time), not (changed or is_time)

        chosen = min(one.trial.decisions, key=rank)
        one.trial.decisions = [chosen]
        if self._metric is None:
            self._metric, self._iterations = chosen.metric, one.iterations
            self._journal.keep(list(self._metric), "metric")
            self._journal.keep(self._iterations, "iterations")
            if _is_counted(chosen) and not self._asked.metric:
                self._note(f"{self.what}: it is counted, and changed; for the time: --metric time")

    def _program(self, version: MinorVersion, build: SuiteBuild) -> SuiteProgram:
        """:raises NoSuchLocation: where the version does not have the benchmark."""
        program = build.programs.get(self._benchmark)
        if program is None:
            raise NoSuchLocation(f"it has no benchmark {str(self._benchmark)!r}")
        return program

    def _build(self, version: MinorVersion, *, noise: bool = False) -> SuiteBuild:
        """The suite of the version, or of a copy of it, built where it is not there yet.

        :raises PerunError: where it cannot be built.
        """
        key = version.checksum + ("-noise" if noise else "")
        folder = self._copies.copied(version) if noise else self._copies.folder(version)
        known = self._built.pop(key, None)
        if known is not None:
            self._built[key] = known
            return known[0]
        self._tell(f"building the benchmarks of {version.checksum[:7]}")
        with ExitStack() as stack:
            scratch = stack.enter_context(scratch_folder(self._repo))
            build = self._suite.build(folder, scratch, silent, self._note)
            self._built[key] = build, self._scratch.enter_context(stack.pop_all())
        for old in [one for one in self._built if not one.endswith("-noise")][:-_KEPT]:
            self._built.pop(old)[1].close()
        return build


class BenchmarkClassifier(CostClassifier):
    """By the cost of the benchmark. What is stored is looked up once the metric is known.

    :param read: the stored values of a metric by checksum.
    """

    def __init__(self, measuring: BenchmarkMeasurement, read: Callable[[Metric], dict[str, float]]) -> None:
        super().__init__(measuring, {}, None)
        self._of_suite = measuring
        self._read: Callable[[Metric], dict[str, float]] | None = read

    def ends(self, good: MinorVersion, bad: MinorVersion) -> EndsComparison:
        """Measured side by side."""
        compared = super().ends(good, bad)
        metric = self._of_suite.metric
        if self._read is not None and metric is not None:
            self._known, self._counted = self._read(metric), metric.exact
        return compared

    def forget_stored(self) -> bool:
        """Use what is stored no longer."""
        self._read = None
        return super().forget_stored()


def stored_values(read: History, wanted: Quantity, metric: Metric, repo: Repository) -> dict[str, float]:
    """What is stored of the benchmark by that metric, on such a machine, by the checksum of the version."""
    job, machine = wanted.case.job, class_of(describe_machine(repo))
    rows = [
        number
        for number, key in enumerate(read.keys)
        if key.configuration.collector.partition(".")[0] == job.collector.name
        and key.configuration[1:4] == (job.cmd, job.args, job.workload)
        and (key.type, key.subtype) == (metric.type, metric.subtype)
        and key.machine in ("", machine)
    ]
    return by_version(read, rows[:1])


def _is_counted(decision: MetricDecision) -> bool:
    basis = decision.verdict.difference.basis
    return decision.metric.exact and basis in (Basis.COUNTS, Basis.RUNS)
