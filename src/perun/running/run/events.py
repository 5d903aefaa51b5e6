"""What happens while versions are measured: the events of a run, and the tally that counts them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from perun.core.errors import CollectorUnavailable, JobFailed, PerunError
from perun.history.baseline import BaselineComparison
from perun.plugin.api import MinorVersion
from perun.plugin.params import to_mapping
from perun.profile import incomplete
from perun.profile.factory import Configuration
from perun.repository import lookup
from perun.repository.jobs import Job
from perun.repository.repository import Repository
from perun.running.run import schedule
from perun.running.run.pre_run import PreparationRecord
from perun.running.run.schedule import NO_SHARES, Share, Shares, VersionSlot, configuration_of

if TYPE_CHECKING:
    from perun.profile.helpers import ProfileInfo


@dataclass(frozen=True)
class VersionStarted:
    """A version is checked out in the folder `measured_in` and prepared; its jobs come next.

    `omits_changes`: it is the current version, measured without the uncommitted changes to it.
    `round` counts from 1, and is 0 if there are no rounds. `seconds` is how long preparing it took, and
    `anew` says whether that was now.
    """

    version: MinorVersion
    measured_in: Path
    omits_changes: bool = False
    round: int = 0
    seconds: float = 0.0
    anew: bool = False


@dataclass(frozen=True)
class VersionSkipped:
    """Perun could not prepare a version; none of its jobs ran.

    `known`: an earlier run, or an earlier round, failed to prepare it, and it was not tried again.
    """

    version: MinorVersion
    error: PerunError
    round: int = 0
    known: bool = False


@dataclass(frozen=True)
class JobDone:
    """A job gave a profile: its file name, and whether it was registered. `seconds` is the whole job's.

    `phases` are the seconds of its parts: `collect`, `postprocess` where there is a postprocessor, `save`.
    What comes before them, `prepare`, is that of the version: see :class:`VersionStarted`.
    `notes` are the messages of its collector and postprocessors to the user. `incomplete` says which part of
    the run the profile lacks, and is empty if it is complete; that of an interrupted run is never
    registered. `judged` is the value that stands for the profile, beside the version before; None if there is
    none. `machine` is the one of a pool that measured it. `shares`: it is what another version has measured.
    """

    version: MinorVersion
    job: Job
    name: str
    path: Path
    registered: bool
    seconds: float
    notes: tuple[str, ...] = ()
    incomplete: str = ""
    phases: Mapping[str, float] = field(default_factory=dict)
    judged: BaselineComparison | None = None
    machine: str = ""
    shares: Share | None = None


@dataclass(frozen=True)
class JobAnswered:
    """A collector told what it was asked for beside a profile; with `ends` the job has no profile.

    `text` is for people, `data` the same as JSON.
    """

    version: MinorVersion
    job: Job
    text: str
    data: Mapping[str, Any]
    ends: bool = False


@dataclass(frozen=True)
class JobFailure:
    """A job failed; nothing of it was stored, unless a note of `error` says so."""

    version: MinorVersion
    job: Job
    error: PerunError


@dataclass(frozen=True)
class ChangesSaved:
    """Measuring the version in place changed tracked files; the version control keeps these changes."""

    version: MinorVersion


@dataclass(frozen=True)
class BatchNote:
    """What the user should know of the whole of a batch."""

    text: str


Event = VersionStarted | VersionSkipped | JobAnswered | JobDone | JobFailure | ChangesSaved | BatchNote
E = TypeVar("E", bound=Event)


@dataclass(frozen=True)
class MachineReport:
    """Something happened to a machine of a pool; `serious` where it says what measurements are worth."""

    machine: str
    text: str
    serious: bool = False


PoolEvent = Event | MachineReport
"""What happens where versions are measured on a pool."""


class RunTally:
    """The only count of a run: what is done, what failed, and what remains of its schedule.

    Events of tasks may come in another order than that of the schedule.

    :ivar total: tasks in all. :ivar remaining: the slots with the tasks that have not run yet.
    :ivar complete: complete profiles. :ivar incomplete: profiles that lack a part of their run.
    :ivar visits: of benchmarks, which have no profile each.
    :ivar failures: failed jobs and skipped versions, in the order of the run.
    """

    def __init__(self, slots: Sequence[VersionSlot]) -> None:
        self.total = schedule.total(slots)
        self.remaining = list(slots)
        self.finished = 0
        self.complete = 0
        self.visits = 0
        self.incomplete = 0
        self.failures: list[JobFailure | VersionSkipped] = []
        self.started = False

    def count(self, event: E) -> E:
        """Count the event; returns it."""
        match event:
            case VersionStarted():
                self.started = True
            case VersionSkipped():
                self.failures.append(event)
                self._finish_slot(event.version, event.round)
            case JobDone():
                self.incomplete += bool(event.incomplete)
                self.complete += not event.incomplete
                self._finish_task(event.version, event.job)
            case JobAnswered() if event.ends:
                self._finish_task(event.version, event.job)
            case JobFailure():
                self.failures.append(event)
                self._finish_task(event.version, event.job)
        return event

    def add(self, slots: Sequence[VersionSlot]) -> None:
        """More is to be run than was planned."""
        self.remaining += slots
        self.total += schedule.total(slots)

    def drop(self, version: MinorVersion, job: Job) -> None:
        """A task is not run, as the job has failed on the version in an earlier round."""
        self._finish_task(version, job)

    def visit(self, version: MinorVersion, job: Job) -> None:
        """A task has measured a benchmark, of which all rounds have one profile together."""
        self.visits += 1
        self._finish_task(version, job)

    def _finish_slot(self, version: MinorVersion, round_: int) -> None:
        for place, slot in enumerate(self.remaining):
            if (slot.version.checksum, slot.round) == (version.checksum, round_):
                self.finished += len(self.remaining.pop(place).tasks)
                return

    def _finish_task(self, version: MinorVersion, job: Job) -> None:
        for place, slot in enumerate(self.remaining):
            rest = tuple(task for task in slot.tasks if task.job is not job)
            if slot.version.checksum == version.checksum and len(rest) < len(slot.tasks):
                self.finished += 1
                self.remaining[place : place + 1] = [slot._replace(tasks=rest)] if rest else []
                return

    @property
    def error(self) -> PerunError | None:
        """The error that the command ends with; None if every job gave a profile.

        One unavailable collector keeps its own exit code; any other failure is a :class:`JobFailed`. A
        version that is known to fail is no failure, unless there was nothing else.
        """
        failures = self.failures
        if self.started:
            failures = [one for one in failures if isinstance(one, JobFailure) or not one.known]
        errors = [one.error for one in failures]
        if not errors:
            return None
        if all(isinstance(error, CollectorUnavailable) for error in errors):
            return errors[0]
        skipped = sum(isinstance(one, VersionSkipped) for one in failures)
        counts = (
            _count(self.complete + self.incomplete, "profile", "collected"),
            _count(len(errors) - skipped, "job", "failed"),
            _count(skipped, "version", "skipped"),
        )
        first = errors[0].message.partition("\n")[0]
        beginning = "the first: " if len(errors) > 1 else ""
        # The error of a job whose profile is stored all the same says so in a note.
        stored = any(getattr(error, "__notes__", ()) for error in errors)
        return JobFailed(
            f"{', '.join(filter(None, counts))}; {beginning}{first}",
            "perun status shows what is stored"
            if stored
            else "a failed job stores nothing; the others are stored",
        )


def _count(number: int, noun: str, verb: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)} {verb}" if number else ""


# Forecast of how long a schedule takes, from how long the same jobs took before.

PROFILES_READ = 4
"""Profiles that are read for each configuration, the newest ones."""
ANCESTORS_READ = 200
"""Ancestors of the current version whose profiles are read."""


class TimeEstimate(NamedTuple):
    """Seconds of jobs and of the preparations before them; `unknown` counts jobs of unknown duration."""

    jobs: float
    preparations: float
    unknown: int

    @property
    def seconds(self) -> float:
        """All that is known."""
        return self.jobs + self.preparations


class _Duration(NamedTuple):
    params: str
    seconds: float


class Forecast:
    """Durations of jobs from stored profiles, and from those that the running batch makes.

    :param schedule: what is to be estimated; the profiles of its versions are read first.
    """

    def __init__(self, repo: Repository, schedule: Sequence[VersionSlot]) -> None:
        self._preparation = PreparationRecord(repo).seconds or 0.0
        self._texts: dict[int, tuple[Job, str]] = {}
        # By its text, as parameters of plugins of all kinds may not be hashable.
        jobs = {repr(task.job): task.job for slot in schedule for task in slot.tasks}
        self._measured: dict[str, list[float]] = {}
        stored = _durations(repo, {configuration_of(job) for job in jobs.values()}, schedule)
        self._stored = {text: _typical(job, stored) for text, job in jobs.items()}

    def seconds(self, job: Job) -> float | None:
        """How long the job usually takes; None if it is not known."""
        from statistics import median

        text = self._text(job)
        measured = self._measured.get(text)
        return median(measured) if measured else self._stored.get(text)

    def _text(self, job: Job) -> str:
        """The job as a text, made once: a forecast asks for each of thousands of tasks, again and again."""
        if id(job) not in self._texts:
            self._texts[id(job)] = (job, repr(job))  # as long as the job is there, nothing else has its id
        return self._texts[id(job)][1]

    def learn(self, event: Event) -> None:
        """Take into account how long a job or a preparation of the running batch took."""
        match event:
            case VersionStarted(seconds=seconds) if seconds:
                self._preparation = seconds
            case JobDone(job=job, seconds=seconds, shares=None):
                self._measured.setdefault(self._text(job), []).append(seconds)

    def estimate(self, schedule: Iterable[VersionSlot], shares: Shares = NO_SHARES) -> TimeEstimate:
        """How long the schedule takes. :param shares: what takes no time."""
        jobs, unknown, preparations = 0.0, 0, 0
        last = None
        for slot in schedule:
            preparations += slot.version != last
            last = slot.version
            for task in slot.tasks:
                if (slot.version.checksum, id(task.job)) in shares:
                    continue
                seconds = self.seconds(task.job)
                jobs += seconds or 0.0
                unknown += seconds is None
        return TimeEstimate(jobs, preparations * self._preparation, unknown)


def _typical(job: Job, stored: Mapping[Configuration, Sequence[_Duration]]) -> float | None:
    from statistics import median

    seen = stored.get(configuration_of(job), ())
    params = _text(to_mapping(job.collector.params))
    # With other parameters, such as the number of repetitions, it is at least a guess.
    same = [one.seconds for one in seen if one.params == params] or [one.seconds for one in seen]
    return median(same) if same else None


def _durations(
    repo: Repository, wanted: set[Configuration], schedule: Sequence[VersionSlot]
) -> dict[Configuration, list[_Duration]]:
    found: dict[Configuration, list[ProfileInfo]] = {}
    for info in _profiles(repo, schedule):
        if info.configuration in wanted:
            found.setdefault(info.configuration, []).append(info)
    durations: dict[Configuration, list[_Duration]] = {}
    for configuration, infos in found.items():
        infos.sort(key=lambda info: info.time, reverse=True)
        seen = (_duration(repo, info) for info in infos[:PROFILES_READ])
        durations[configuration] = [one for one in seen if one is not None]
    return durations


def _profiles(repo: Repository, schedule: Sequence[VersionSlot]) -> Iterable[ProfileInfo]:
    yield from repo.store.pending.list()
    versions = dict.fromkeys(slot.version.checksum for slot in schedule)
    try:
        history = repo.vcs.walk_subjects(repo.vcs.get_minor_head())
        versions |= dict.fromkeys(version.checksum for version in itertools.islice(history, ANCESTORS_READ))
        for version in versions:
            yield from lookup.registered(repo, version)
    except PerunError:
        return  # the command that needs the damaged object reports it


def _duration(repo: Repository, info: ProfileInfo) -> _Duration | None:
    try:
        head = lookup.head(repo, info)
    except PerunError:
        return None
    unit = head["collector_info"]
    if incomplete.reasons_of(head):  # the whole run would have taken longer
        return None
    seconds = unit.get("seconds")
    return _Duration(_text(unit["params"]), seconds) if isinstance(seconds, (int, float)) else None


def _text(params: Any) -> str:
    return json.dumps(params, sort_keys=True, default=str)
