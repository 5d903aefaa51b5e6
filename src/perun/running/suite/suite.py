"""`perun compare --suite`: build both sides, measure the benchmarks in rounds, judge, store."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final

from perun.core.errors import PerunError, Terminated
from perun.core.wording import listed, plural
from perun.history.check.report import Comparison, MethodResult
from perun.measurement.comparable import drifted
from perun.measurement.series import Metric
from perun.plugin.api import Report, quiet, silent
from perun.profile.amounts import readable
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from perun.repository.copies import scratch_folder
from perun.repository.jobs import Job, PluginConfig
from perun.repository.registering import save_together
from perun.repository.repository import Repository
from perun.running.compare.compare import (
    METHOD,
    CompareOutcome,
    about_trial,
    change_of,
    report_of,
    unlimited,
    unmeasured,
    unstored,
)
from perun.running.compare.decide import ARMS, BASE, HEAD, usable_cores
from perun.running.compare.plan import CompareCase, CompareOptions, ComparePlan, Folders, prepared
from perun.running.compare.trial import requests
from perun.running.run.benchmarks import profiles_of
from perun.running.run.collecting import describe_machine
from perun.running.suite.programs import Suite, SuiteBuild, SuiteOptions, harnesses, once
from perun.running.suite.trial import BenchmarkTrial, SuiteTrial, is_usual, run

LEAST_BUDGET: Final = 60.0
EACH: Final = 3.0
"""Seconds of each benchmark of a suite, where the user gives none for all of them together."""
_SHOWN: Final = 8
"""Names that a note lists at most."""


def compare(
    repo: Repository,
    planned: ComparePlan,
    options: CompareOptions,
    wanted: SuiteOptions,
    report: Report = silent,
    expect: Callable[[float | None], None] = unlimited,
    rng: random.Random | None = None,
    note: Callable[[str], None] = quiet,
) -> CompareOutcome:
    """Measure the benchmarks of both sides in rounds, store what was measured, and judge it.

    A benchmark that fails is told in a note, and the others go on; of several harnesses one that cannot build
    its benchmarks is told, too. An interruption (Ctrl-C) ends it: what was measured by then is judged as
    unknown, and not stored.

    :param report: and :param expect: and :param note: as of :func:`perun.running.compare.compare.compare`.
    :raises PerunError: where a side cannot be prepared, or has no benchmarks; nothing is stored then.
    """
    repo.require_trust("comparing versions")
    rng = rng or random.Random()
    comparisons: list[Comparison] = []
    interruption: BaseException | None = None
    try:
        with prepared(repo, planned.sides, 1, report, noise=True) as folders, ExitStack() as scratch:
            units = harnesses(repo, folders[HEAD][0], wanted.harness)
            ready: list[tuple[_Session, Mapping[str, SuiteBuild]]] = []
            for unit in units:
                own = scratch.enter_context(scratch_folder(repo))
                suite = Suite(repo, unit, rng, wanted.seconds, own)
                session = _Session(repo, planned, options, wanted, suite, scratch, rng)
                try:
                    ready.append((session, session.built(folders, report, once(note))))
                except PerunError as problem:
                    if len(units) == 1:
                        raise
                    comparisons.append(session.not_built(problem))
            if not comparisons:
                wanted.require_any(
                    name for _, builds in ready for arm in (BASE, HEAD) for name in builds[arm].programs
                )
            spent = 0.0
            for number, (session, builds) in enumerate(ready):
                names = [one for one in builds[BASE].programs if one in builds[HEAD].programs]
                count, budget = sum(map(wanted.wants, names)), options.budget
                if budget is None:
                    budget = max(LEAST_BUDGET, EACH * count)
                else:
                    budget = max(budget - spent, 0) / (len(ready) - number)
                session.suite.seconds = wanted.sampled(count, budget, together=session.suite.together)
                begun = time.monotonic()
                comparison, interruption = session.compared(builds, budget, report, expect)
                spent += time.monotonic() - begun
                comparisons.append(comparison)
                if interruption is not None:
                    break
    except (KeyboardInterrupt, Terminated) as problem:
        interruption = problem
    return CompareOutcome(report_of(repo, planned, comparisons), interruption)


class _Session:
    """One suite of both sides, measured in the same minutes."""

    def __init__(
        self,
        repo: Repository,
        planned: ComparePlan,
        options: CompareOptions,
        wanted: SuiteOptions,
        suite: Suite,
        scratch: ExitStack,
        rng: random.Random,
    ) -> None:
        self._id = uuid.uuid4().hex
        self._repo = repo
        self._plan = planned
        self._options = options
        self._wanted = wanted
        self.suite = suite
        self._scratch = scratch
        self._rng = rng

    def built(
        self, folders: Folders, report: Report, note: Callable[[str], None]
    ) -> Mapping[str, SuiteBuild]:
        """The suite of each arm.

        :raises PerunError: names the side whose benchmarks cannot be built.
        """
        found: dict[str, SuiteBuild] = {}
        for number, arm in enumerate(ARMS):
            side = self._plan.head if arm == HEAD else self._plan.base
            report(f"building the {self.suite.name} benchmarks of {side}", number, len(ARMS))
            folder = folders[arm][0]
            try:
                scratch = self._scratch.enter_context(scratch_folder(self._repo))
                found[arm] = self.suite.build(folder, scratch, report, note)
            except PerunError as problem:
                raise type(problem)(f"{side}: {problem.message}", problem.hint) from None
        return found

    def not_built(self, problem: PerunError) -> Comparison:
        """That the benchmarks of this harness could not be built, where others can."""
        return unmeasured(self._plan, self._case(), problem.message, problem)

    def compared(
        self,
        builds: Mapping[str, SuiteBuild],
        budget: float,
        report: Report,
        expect: Callable[[float | None], None],
    ) -> tuple[Comparison, BaseException | None]:
        """What the rounds say, stored; and the exception that ended them."""
        machine_state = describe_machine(self._repo)

        def progress(trial: SuiteTrial, left: float) -> None:
            settled = sum(not one.is_open for one in trial.trials)
            report(f"{self.suite.command}: round {trial.rounds}", settled, len(trial.trials))
            expect(left)

        report(f"{self.suite.command}: finding how many iterations", 0, 0)
        found = run(
            self.suite, builds, self._wanted.wants, self._options.rules, budget, self._options.most_pairs,
            self._wants, progress, self._rng,
            cores=usable_cores(self._options.pin), mirrored=self._options.order == "abba",
        )  # fmt: skip
        case = self._case()
        if not any(one.rounds for one in found.trials) and found.interruption is None:
            return unmeasured(self._plan, case, _why_nothing(found)), None
        abouts = {}
        for one in found.trials:
            one.trial.seconds = found.seconds
            if one.trial.decisions:
                abouts[one.benchmark] = about_trial(self._id, self._plan, one.trial, self._options)
        if found.interruption is None:
            state = {**machine_state, **found.speed.described()}
            measured = [one for one in found.trials if one.benchmark in abouts]
            report("storing the profiles", 0, 0)
            last = int(time.time())
            save_together(
                self._repo,
                [
                    request
                    for one in measured
                    for request in requests(
                        self._plan.sides, self._made(one, state), abouts[one.benchmark], last
                    )
                ],
            )
        changes = [change_of(decision) for one in found.trials for decision in one.trial.decisions]
        changes = [*_only_in_one(found), *changes]
        about = {**next(iter(abouts.values()), {}), "pairs": found.rounds}
        about = {key: about[key] for key in about if key not in ("levels", "noise")}
        comparison = Comparison(
            unstored(case, self.suite.name), None, self._plan.base.version,
            (MethodResult(METHOD, tuple(changes)),), notes=tuple(_notes(found)), session=about,
        )  # fmt: skip
        return comparison, found.interruption

    def _wants(self, metric: Metric) -> bool:
        """As of :func:`is_usual`, or what the user names."""
        names = self._options.metrics
        if names == CompareOptions.metrics:
            return is_usual(metric)
        own = {metric.type, metric.subtype, f"{metric.type}:{metric.subtype}"}
        own |= {"wall"} if metric.type == "time" else set()
        return not own.isdisjoint(names)

    def _case(self, one: BenchmarkTrial | None = None) -> CompareCase:
        name, parameters = one.benchmark if one else ("", "")
        unit = PluginConfig(self.suite.name, self.suite.params)
        return CompareCase(Job(self.suite.command, name, parameters, unit), ())

    def _made(self, one: BenchmarkTrial, state: Mapping[str, Any]) -> dict[str, list[Profile]]:
        job = self._case(one).job
        made: dict[str, list[Profile]] = {}
        for side in self._plan.sides:
            rounds = [reading.values for reading in one.trial.readings(side.name)]
            common = [{metric: values[metric] for metric in one.trial.series} for values in rounds]
            made[side.name] = profiles_of(job, one.iterations, common, state)
        return made


def _only_in_one(found: SuiteTrial) -> Iterator[DegradationInfo]:
    """What came and what went."""
    for names, kind, where in (
        (found.came, PerformanceChange.NotInBaseline, "target"),
        (found.gone, PerformanceChange.NotInTarget, "baseline"),
    ):
        for name in names:
            yield DegradationInfo(kind, str(name), "-", "-", "ratio", rule=f"only the {where} has it")


def _why_nothing(found: SuiteTrial) -> str:
    failed = [f"{one.benchmark}: {one.failure}" for one in found.trials if one.failure]
    if failed:
        return f"no benchmark could be measured: {listed(failed, _SHOWN, '; ')}"
    if not found.trials:
        return f"both sides have no benchmark in common: {len(found.came)} came, {len(found.gone)} went"
    return f"{found.reason}, before one round was measured: give it more time with --budget"


def _notes(found: SuiteTrial) -> Iterator[str]:
    measured = plural(sum(one.rounds > 0 for one in found.trials), "benchmark")
    pinned = ", each on one core" if any(one.trial.pinned for one in found.trials) else ""
    yield (
        f"{measured}, {plural(found.rounds, 'round')} at most, {readable(found.seconds, 's')}{pinned}; a "
        "change is definite only where it is so among all of them (Benjamini-Hochberg)"
    )
    yield from found.notes
    failed = [f"{one.benchmark} ({one.failure})" for one in found.trials if one.failure]
    if failed:
        yield f"not measured: {listed(failed, _SHOWN, '; ')}"
    yield from drifted(found.speed.described())
    undecided = sum(one.is_open for one in found.trials)
    if found.reason and undecided and found.interruption is None:
        yield f"{found.reason}, with {plural(undecided, 'benchmark')} undecided: --budget gives more time"
