"""Benchmarks of suites as jobs of a batch: which ones each version has, what their rounds measured, and the
profiles of that.

Each visit of a command has a profile. Those of a suite would be thousands of small ones, so what its visits
measure goes to the journal. At the end of the batch each benchmark of each version gets one profile of all
its rounds, of the same form as that of `perun compare --suite`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from perun.core.errors import PerunError
from perun.core.process.programs import Speed, speed_now
from perun.core.wording import listed, plural
from perun.measurement.series import Metric
from perun.plugin import suites
from perun.plugin.api import MinorVersion, Report
from perun.plugin.params import to_mapping
from perun.plugin.suites import BenchmarkValue, NamedBenchmark
from perun.profile import session
from perun.profile.factory import Profile
from perun.profile.head import Configuration, ProfileHeader
from perun.repository import lookup, registering
from perun.repository.jobs import Job
from perun.repository.repository import Repository
from perun.running.run import schedule
from perun.running.run.collecting import complete, describe_machine
from perun.running.run.events import (
    BatchNote,
    Event,
    JobDone,
    JobFailure,
    RunTally,
    VersionStarted,
)
from perun.running.run.journal import BatchJournal, StepLog
from perun.running.run.rounds import Rounds
from perun.running.run.schedule import Task, VersionSlot
from perun.running.run.shares import VersionsAhead
from perun.store.summaries import profile_summary_of

EACH: Final = 0.5
"""Seconds of each benchmark of a version, where the user gives none and those of a version are fewer."""
_SHOWN: Final = 8
"""Names that a note lists at most."""

metric = lru_cache(maxsize=4096)(Metric)
"""A metric, that of each round the same object: there are thousands of rounds."""


class VisitReading(NamedTuple):
    """What one visit measured of a benchmark: operations of a sample, each metric, the seconds it took."""

    iterations: int
    values: Mapping[Metric, float]
    seconds: float


class SuiteVisit(NamedTuple):
    """What a visit of a version came to: the seconds of what was measured, and what failed."""

    seconds: float
    failures: Sequence[tuple[Task, PerunError]]
    notes: Sequence[str]


class SuiteVersions(Protocol):
    """The suites of a project at its versions; what was built of them lasts until the context ends.

    :ivar described: which benchmarks they are, as JSON data. :ivar commands: the collectors and the commands
        that their profiles name.
    """

    described: Mapping[str, Any]
    commands: frozenset[tuple[str, str]]

    def __enter__(self) -> object: ...

    def __exit__(self, *exc: object) -> None: ...

    def jobs(
        self, entered: VersionStarted, report: Report, note: Callable[[str], None]
    ) -> Iterator[Job | JobFailure]:
        """Build the suites of a version: the benchmarks that it has, those of one name the same object each
        time, and what could not be built."""

    def require_any(self) -> None:
        """:raises UsageError: where no version that was built has a benchmark that is to be measured."""

    def expect(self, benchmarks: int, seconds: float) -> None:
        """A version has so many benchmarks at most, and so many seconds for their rounds."""

    def named(self, collector: str, name: str, parameters: str) -> Job:
        """The benchmark of that name. :raises KeyError: where there is no such suite."""

    def measure(
        self,
        entered: VersionStarted,
        jobs: Sequence[Job],
        iterations: Mapping[int, int],
        report: Report,
        note: Callable[[str], None],
    ) -> Mapping[int, VisitReading | PerunError]:
        """Measure benchmarks of the version once, each as often as it says, or as it finds out.

        :param iterations: by identity of the job. :return: the same way, why not where one failed.
        """


def profiles_of(
    job: Job, iterations: int, rounds: Sequence[Mapping[Metric, float]], state: Mapping[str, Any]
) -> list[Profile]:
    """What was measured of one benchmark: a profile of each type, that of times the last.

    :param rounds: the values of each, in the order of measuring; only metrics that all have are kept.
    :param state: of the machine, as of :func:`perun.running.run.collecting.describe_machine`.
    """
    values = [
        BenchmarkValue(
            *(one.type, one.subtype, one.unit),
            tuple(values[one] for values in rounds),
            one.larger_is_better,
            one.exact,
        )
        for one in rounds[0]
        if all(one in values for values in rounds)
    ]
    params = {**to_mapping(job.collector.params), "iterations": iterations}
    named = NamedBenchmark(job.args, job.workload)
    made = suites.profiles_of(job.collector.name, job.cmd, named, values, params)
    return [complete(profile, job, state) for profile in made]


class Benchmarks:
    """The benchmarks of one batch.

    :param rounds: the session that they are of. :param least: how many rounds each has at least.
    :param budget: seconds of each benchmark of a version, where the batch has fewer for it.
    :param missing: only what no profile is stored of. :param template: for the names of profiles.
    :ivar is_listed: whether it is known which there are.
    """

    def __init__(
        self,
        repo: Repository,
        suites: SuiteVersions,
        rounds: Rounds,
        least: int,
        budget: float,
        *,
        missing: bool = False,
        template: str | None = None,
    ) -> None:
        self._repo = repo
        self.suites = suites
        self._rounds = rounds
        self._least = least
        self._budget = budget
        self._missing = missing
        self._template = template
        self.is_listed = False
        self._iterations: dict[int, int] = {}
        self._readings: dict[tuple[str, int], list[VisitReading]] = {}
        self._state = {**describe_machine(repo), **speed_now()}
        self._speed = Speed()
        self._is_resumed = False
        self._told: set[str] = set()

    @property
    def unstored(self) -> bool:
        """Whether something was measured that no profile has."""
        return bool(self._readings)

    def look(
        self,
        planned: Sequence[VersionSlot],
        versions: Sequence[MinorVersion],
        places: VersionsAhead,
        log: StepLog,
        tally: RunTally,
        report: Report,
    ) -> Generator[Event, None, list[VersionSlot]]:
        """Build the suites of all versions, to see which benchmarks there are; gives the schedule with them.

        :param planned: the schedule without them.
        """
        of_version: dict[str, list[Job]] = {}
        notes: list[str] = []
        told = {slot.version.checksum for slot in planned}
        for number, version in enumerate(versions):
            report(f"{version.checksum[:10]}: building its benchmarks", number, len(versions))
            entered = places.ready(version)
            if not isinstance(entered, VersionStarted):
                if version.checksum not in told:
                    yield tally.count(places.enter(VersionSlot(version, (), 1)))
                continue
            found = of_version[version.checksum] = []
            for one in self.suites.jobs(entered, report, notes.append):
                if isinstance(one, JobFailure):
                    yield tally.count(one)
                else:
                    found.append(one)
        slots = self._rounds.add(of_version, self._least, self._budget)
        if not (slots or tally.failures):
            log.end()
            self.suites.require_any()
        if self._missing:
            slots = schedule.missing(self._repo, slots, whole=True)
            notes += [] if slots else ["no profile of a benchmark is missing"]
        self._expect()
        log.listed(self._rounds.benchmarks, slots)
        self.is_listed = True
        tally.add(slots)
        self._told.update(notes)
        yield from map(BatchNote, dict.fromkeys([*notes, *_not_everywhere(of_version)]))
        return with_benchmarks(planned, slots)

    def recall(self, journal: BatchJournal, tasks: Mapping[int, tuple[str, Job]]) -> None:
        """Take in what an earlier process has measured.

        :param tasks: version and job by the number of the task.
        """
        self.is_listed = journal.benchmarks is not None
        self._rounds.need(self._budget)
        self._is_resumed = True
        for number, iterations, seconds, values in journal.readings:
            version, job = tasks[number]
            found = {metric(*name): value for *name, value in values}
            self._take(version, job, VisitReading(iterations, found, seconds))
        self._expect()

    def _expect(self) -> None:
        count = len(self._rounds.benchmarks)
        self.suites.expect(count, self._rounds.budget or self._budget * count)

    def visit(
        self, entered: VersionStarted, tasks: Sequence[Task], log: StepLog, tally: RunTally, report: Report
    ) -> SuiteVisit:
        """Measure these benchmarks of a version once, and keep that."""
        notes: list[str] = []
        self._speed.visit()
        jobs = [task.job for task in tasks]
        found = self.suites.measure(entered, jobs, self._iterations, report, notes.append)
        rows, failures, seconds = [], [], 0.0
        for task in tasks:
            one = found[id(task.job)]
            if isinstance(one, PerunError):
                failures.append((task, one))
                continue
            self._take(entered.version.checksum, task.job, one)
            seconds += one.seconds
            rows.append([task.number, one.iterations, one.seconds,
                         [[*name, value] for name, value in one.values.items()]])  # fmt: skip
            tally.visit(entered.version, task.job)
        log.measured(rows)
        new = [text for text in dict.fromkeys(notes) if text not in self._told]
        self._told.update(new)
        return SuiteVisit(seconds, failures, new)

    def _take(self, version: str, job: Job, one: VisitReading) -> None:
        readings = self._readings.setdefault((version, id(job)), [])
        readings.append(one)
        self._iterations.setdefault(id(job), one.iterations)
        profile = profiles_of(job, one.iterations, [one.values], self._state)[-1]
        session.mark(profile, session.Session(self._rounds.id, round=len(readings) - 1))
        self._rounds.take(version, job, profile_summary_of(profile), one.seconds)

    def store(self, versions: Sequence[MinorVersion], register: bool, log: StepLog) -> Iterator[JobDone]:
        """Store what was measured: all of it or none."""
        state = {**self._state, **self._speed.described()}
        jobs = self._rounds.benchmarks
        by_chance = self._rounds.by_chance()
        wanted: list[registering.SaveRequest] = []
        done: list[tuple[MinorVersion, Job, Profile, float]] = []
        for version in versions:
            there = self._stored(version, register) if self._is_resumed else frozenset()
            for job in jobs:
                readings = self._readings.get((version.checksum, id(job)))
                if not readings:
                    continue
                share = by_chance.get((version.checksum, id(job)), 1.0)
                levels = self._rounds.levels(len(readings) - 1, share)
                mark = session.Session(self._rounds.id, runs_are_rounds=True, levels=levels)
                seconds = sum(one.seconds for one in readings)
                values = [one.values for one in readings]
                own = profiles_of(job, readings[-1].iterations, values, state)
                own = [one for one in own if ProfileHeader.of(one).configuration not in there]
                for profile in own:
                    session.mark(profile, mark)
                    taken = round(seconds / len(readings), 6)
                    profile["collector_info"] = {**profile["collector_info"], "seconds": taken}
                    wanted.append(registering.SaveRequest(profile, version.checksum, register))
                done += [(version, job, one, seconds) for one in own[-1:]]
        paths = registering.save_together(self._repo, wanted, self._template)
        of_profile = {id(one.profile): path for one, path in zip(wanted, paths, strict=True)}
        log.stored()
        for version, job, profile, seconds in done:
            path = of_profile[id(profile)]
            yield JobDone(version, job, path.name, path, register, seconds, phases={"collect": seconds})
        self._readings.clear()

    def _stored(self, version: MinorVersion, register: bool) -> frozenset[Configuration]:
        """The configurations of which this session has stored a profile before it was killed, while it did
        that; those that it was about to register are registered."""

        def is_own(head: Mapping[str, Any]) -> bool:
            found = session.session_of(head)
            return found is not None and found.id == self._rounds.id

        heads = ((info, lookup.head(self._repo, info)) for info in self._repo.store.pending.list())
        pending = [info for info, head in heads if is_own(head) and head.get("origin") == version.checksum]
        if register:
            paths = [Path(info.realpath) for info in pending]
            own = {path: self._repo.store.pending.load(path) for path in paths}
            registering.register_all(self._repo, own, version.checksum)
        there = [info for info in lookup.registered(self._repo, version.checksum)
                 if is_own(lookup.head(self._repo, info))]  # fmt: skip
        return frozenset(info.configuration for info in (*pending, *there))


def with_benchmarks(planned: Sequence[VersionSlot], slots: Sequence[VersionSlot]) -> list[VersionSlot]:
    """The schedule with the visits of benchmarks, each version visited once a round for all of its jobs."""
    made = {(slot.version.checksum, slot.round): slot for slot in planned}
    for slot in slots:
        key = slot.version.checksum, slot.round
        before = made.get(key)
        made[key] = slot if before is None else before._replace(tasks=before.tasks + slot.tasks)
    return sorted(made.values(), key=lambda slot: slot.round)


def _not_everywhere(of_version: Mapping[str, Sequence[Job]]) -> Iterator[str]:
    """What some of the versions lack."""
    counts: dict[str, int] = {}
    for jobs in of_version.values():
        for job in jobs:
            name = str(NamedBenchmark(job.args, job.workload))
            counts[name] = counts.get(name, 0) + 1
    lacking = [f"{name} ({count})" for name, count in counts.items() if count < len(of_version)]
    if lacking:
        they = f"{plural(len(lacking), 'benchmark')} {'is' if len(lacking) == 1 else 'are'}"
        yield f"{they} not in all {len(of_version)} versions: {listed(lacking, _SHOWN, '; ')}"
