"""What happens while versions are measured: the events of a run, and the tally that counts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from perun.errors import CollectorUnavailable, JobFailed, PerunError
from perun.plugin.api import MinorVersion
from perun.porcelain.earlier import Judged
from perun.porcelain.run import schedule
from perun.porcelain.run.jobs import Job
from perun.porcelain.run.schedule import VersionSlot


@dataclass(frozen=True)
class VersionStarted:
    """A version is checked out in the folder `measured_in` and prepared; its jobs come next.

    `omits_changes`: it is the current version, measured without the uncommitted changes to it.
    `round` counts from 1, and is 0 if there are no rounds. `seconds` is how long preparing it took.
    """

    version: MinorVersion
    measured_in: Path
    omits_changes: bool = False
    round: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class VersionSkipped:
    """Perun could not prepare a version; none of its jobs ran.

    `known`: an earlier run failed to prepare it, and this run did not try again.
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
    none. `machine` is the one of a pool that measured it.
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
    judged: Judged | None = None
    machine: str = ""


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


Event = VersionStarted | VersionSkipped | JobAnswered | JobDone | JobFailure | ChangesSaved
E = TypeVar("E", bound=Event)


@dataclass(frozen=True)
class MachineTold:
    """Something happened to a machine of a pool; `serious` where it says what measurements are worth."""

    machine: str
    text: str
    serious: bool = False


PoolEvent = Event | MachineTold
"""What happens where versions are measured on a pool."""


class Tally:
    """The only count of a run: what is done, what failed, and what remains of its schedule.

    Events of tasks may come in another order than that of the schedule.

    :ivar total: tasks in all. :ivar remaining: the slots with the tasks that have not run yet.
    :ivar complete: complete profiles. :ivar incomplete: profiles that lack a part of their run.
    :ivar failures: failed jobs and skipped versions, in the order of the run.
    """

    def __init__(self, slots: Sequence[VersionSlot]) -> None:
        self.total = schedule.total(slots)
        self.remaining = list(slots)
        self.finished = 0
        self.complete = 0
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
