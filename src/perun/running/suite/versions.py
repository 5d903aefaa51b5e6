"""The suites of a project at its versions, for batches: see :mod:`perun.running.run.benchmarks`."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from perun.core.errors import JobFailed, PerunError
from perun.core.wording import plural
from perun.plugin.api import Report, silent
from perun.plugin.suites import BenchmarkRound, NamedBenchmark, SuiteProgram
from perun.repository.copies import scratch_folder
from perun.repository.jobs import Job, PluginConfig
from perun.repository.repository import Repository
from perun.running.compare.decide import ARMS
from perun.running.run.benchmarks import VisitReading
from perun.running.run.events import JobFailure, VersionStarted
from perun.running.run.matrix import BatchOptions
from perun.running.suite.programs import KEY, Suite, SuiteBuild, SuiteOptions, harnesses
from perun.running.suite.trial import is_usual, values_of


class _Built(NamedTuple):
    """The suite of one version, and what holds its files."""

    build: SuiteBuild
    version: str
    stack: ExitStack


class Suites:
    """As :class:`perun.running.run.benchmarks.SuiteVersions` says.

    :param units: the harnesses, with their parameters. :param rng: draws orders and environments.
    """

    def __init__(
        self, repo: Repository, units: Sequence[PluginConfig], wanted: BatchOptions, rng: random.Random
    ) -> None:
        self.described: Mapping[str, Any] = {
            "suite": wanted.suite,
            "harness": wanted.harness,
            "benchmarks": list(wanted.benchmarks),
            "units": [repr(unit) for unit in units],
        }
        self._units = {unit.name: unit for unit in units}
        self._commands = {unit.name: str(repo.registry.get("harness", unit.name).command) for unit in units}
        self.commands = frozenset(self._commands.items())
        self._repo = repo
        self._wanted = SuiteOptions(wanted.harness, wanted.benchmarks)
        self._rng = rng
        self._jobs: dict[tuple[str, NamedBenchmark], Job] = {}
        self._seconds = self._wanted.seconds
        self._stack = ExitStack()
        self._suites: dict[str, Suite] = {}
        self._built: dict[tuple[str, str], _Built] = {}
        self._owners: dict[Path, str] = {}
        self._warm: set[tuple[str, int]] = set()
        self._known: dict[NamedBenchmark, None] = {}

    def __enter__(self) -> Suites:
        for name, unit in self._units.items():
            scratch = self._stack.enter_context(scratch_folder(self._repo))
            self._suites[name] = Suite(self._repo, unit, self._rng, self._seconds, scratch)
        return self

    def __exit__(self, *exc: object) -> None:
        for one in self._built.values():
            one.stack.close()
        self._built.clear()
        self._stack.close()

    def expect(self, benchmarks: int, seconds: float) -> None:
        """As of the contract."""
        self._seconds = self._wanted.sampled(benchmarks, seconds * len(ARMS))
        for suite in self._suites.values():
            suite.seconds = self._seconds

    def named(self, collector: str, name: str, parameters: str) -> Job:
        """As of the contract."""
        benchmark = NamedBenchmark(name, parameters)
        return self._jobs.setdefault(
            (collector, benchmark),
            Job(
                self._commands[collector], name, parameters, self._units[collector], is_benchmark=True
            ),
        )  # fmt: skip

    def jobs(
        self, entered: VersionStarted, report: Report, note: Callable[[str], None]
    ) -> Iterator[Job | JobFailure]:
        """As of the contract. A version without benchmarks of a harness has no job, and is told."""
        for name in self._units:
            try:
                build = self._of(name, entered, report, note)
            except PerunError as problem:
                detect = self._repo.registry.get("harness", name).detect
                if detect(entered.measured_in) or not detect(self._repo.working_root):
                    job = Job(self._commands[name], "", "", self._units[name])
                    yield JobFailure(entered.version, job, problem)
                else:
                    note(f"versions such as {entered.version.checksum[:10]} have no benchmarks of {name}")
                continue
            self._known.update(dict.fromkeys(build.programs))
            for benchmark in build.programs:
                if self._wanted.wants(benchmark):
                    yield self.named(name, *benchmark)

    def require_any(self) -> None:
        """As of the contract."""
        self._wanted.require_any(self._known)

    def measure(
        self,
        entered: VersionStarted,
        jobs: Sequence[Job],
        iterations: Mapping[int, int],
        report: Report,
        note: Callable[[str], None],
    ) -> Mapping[int, VisitReading | PerunError]:
        """As of the contract. Before the first time a benchmark runs once more, which is not counted."""
        found: dict[int, VisitReading | PerunError] = {}
        groups: list[tuple[str, list[Job]]] = []
        for name, suite in self._suites.items():
            own = [job for job in jobs if job.collector.name == name]
            own = self._rng.sample(own, len(own))
            groups += [(name, own)] if suite.together and own else [(name, [job]) for job in own]
        done = 0
        for name, group in self._rng.sample(groups, len(groups)):
            report(f"{self._commands[name]}: {plural(len(jobs), 'benchmark')}", done, len(jobs))
            done += len(group)
            try:
                programs = self._of(name, entered, silent, note).programs
            except PerunError as problem:
                found |= {id(job): problem for job in group}
                continue
            by_program: dict[str, list[Job]] = {}
            for job in group:
                program = programs.get(NamedBenchmark(job.args, job.workload))
                if program is None:
                    found[id(job)] = JobFailed(f"{job}: the version has no such benchmark")
                else:
                    by_program.setdefault(program.name, []).append(job)
            for own in by_program.values():
                program = programs[NamedBenchmark(own[0].args, own[0].workload)]
                found |= self._measured(self._suites[name], program, entered, own, iterations, note)
        return found

    def _measured(
        self,
        suite: Suite,
        program: SuiteProgram,
        entered: VersionStarted,
        jobs: Sequence[Job],
        iterations: Mapping[int, int],
        note: Callable[[str], None],
    ) -> dict[int, VisitReading | PerunError]:
        """What one process says of benchmarks of one program."""
        names = {id(job): NamedBenchmark(job.args, job.workload) for job in jobs}
        wanted = {names[id(job)]: iterations.get(id(job), 0) for job in jobs}
        version, found = entered.version.checksum, dict[int, VisitReading | PerunError]()

        def run(own: Mapping[NamedBenchmark, int]) -> dict[NamedBenchmark, BenchmarkRound]:
            if not own:
                return {}
            try:
                given = suite.round(program, own, lambda: 0.0, note)
            except PerunError as problem:
                found.update({key: problem for key, name in names.items() if name in own})
                return {}
            for key, name in names.items():
                one = given.get(name)
                if name in own and (one is None or not (one.values and one.iterations)):
                    why = one.failure if one and one.failure else "it gave no value"
                    found[key] = JobFailed(f"{name}: {why}")
            return {names[key]: given[names[key]] for key in names if names[key] in own and key not in found}

        cold = {name: count for key, name in names.items()
                if not (count := wanted[name]) or (version, key) not in self._warm}  # fmt: skip
        if cold:
            wanted |= {name: one.iterations for name, one in run(cold).items() if not wanted[name]}
            self._warm |= {(version, key) for key in names}
        begun = time.monotonic()
        given = run({names[key]: wanted[names[key]] for key in names if key not in found})
        seconds = (time.monotonic() - begun) / max(len(given), 1)
        for key, name in names.items():
            if key in found:
                continue
            values = values_of(name, given[name], is_usual)
            read = VisitReading(wanted[name], values, seconds)
            found[key] = read if values else JobFailed(f"{name}: it has neither a time nor a count")
        return found

    def _of(
        self, name: str, entered: VersionStarted, report: Report, note: Callable[[str], None]
    ) -> SuiteBuild:
        """The suite of the version, built where it is not there yet, or not any more."""
        key, folder = (name, entered.version.checksum), entered.measured_in
        found = self._built.get(key)
        if found is not None:
            is_there = found.build.folder == folder and self._owners.get(folder) == found.version
            if is_there and not entered.anew:
                return found.build
            found.stack.close()
            del self._built[key]
        with ExitStack() as stack:
            scratch = stack.enter_context(scratch_folder(self._repo))
            build = self._suites[name].build(folder, scratch, report, note)
            self._built[key] = _Built(build, entered.version.checksum, stack.pop_all())
        self._owners[folder] = entered.version.checksum
        return build


def suites_of(repo: Repository, wanted: BatchOptions) -> Suites | None:
    """The suites that a batch measures: those that it names or, where it names none, that are configured.

    :raises PerunError: where a harness is unknown, or the project has no benchmarks.
    """
    if not (wanted.only_suites or repo.config.get(KEY)):
        return None
    repo.require_trust("measuring benchmarks")
    units = harnesses(repo, repo.working_root, wanted.harness)
    return Suites(repo, units, wanted, random.Random(wanted.seed))
