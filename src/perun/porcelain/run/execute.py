"""`perun run` and `perun collect`: measure versions of the project and keep the profiles (manual 3.2.10-12).

The main job: versions -> (a place on the disk, pre_run) -> jobs -> profile -> saved -> registered. Everything
that happens is yielded as an event; nothing is printed here.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from perun import conditions, machine
from perun.errors import CollectorUnavailable, JobFailed, PerunError
from perun.plugin.api import (
    CollectContext,
    Interrupted,
    MinorVersion,
    PostprocessContext,
    Report,
    Run,
    silent,
)
from perun.plugin.params import to_mapping
from perun.porcelain import postprocessby, saving
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.porcelain.run import workloads
from perun.porcelain.run.jobs import Job
from perun.porcelain.run.journal import FORGOTTEN, Notes
from perun.porcelain.run.preparations import PreparationFailed, Preparations, commands
from perun.porcelain.run.schedule import Stop, Task
from perun.porcelain.run.versions import IN_A_COPY, Checkouts, Placement, checkouts
from perun.process.execution import Execution
from perun.process.outcome import exit_status, outcome
from perun.profile import incomplete
from perun.regular import open_for_writing

if TYPE_CHECKING:
    from perun.profile.factory import Profile

SHOWN_LINES = 10
"""Lines of the output of a failed `pre_run` command that its error shows."""
_OF_A_HOOK = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_QUARANTINE_PATH",
)
"""Set inside a hook of git: a git that the measured version calls would work on the user's index."""


@dataclass(frozen=True)
class VersionStarted:
    """A version is on the disk and prepared; its jobs come next. `measured_in` is the folder.

    `leaves_changes_out`: it is the current version, measured without the uncommitted changes to it.
    `round` counts from 1, and is 0 where there are no rounds. `seconds` is what preparing it took.
    """

    version: MinorVersion
    measured_in: Path
    leaves_changes_out: bool = False
    round: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class VersionSkipped:
    """A version could not be prepared; none of its jobs ran.

    `known`: it is known to fail and was not tried again.
    """

    version: MinorVersion
    error: PerunError
    round: int = 0
    known: bool = False


@dataclass(frozen=True)
class JobDone:
    """A job gave a profile: its file name, and whether it was registered. `seconds` is the whole job's.

    `notes` is what its collector and its postprocessors told the user. `incomplete` says what the profile
    lacks of the run, and is empty where it is whole; one of an interrupted run is never registered.
    """

    version: MinorVersion
    job: Job
    name: str
    path: Path
    registered: bool
    seconds: float
    notes: tuple[str, ...] = ()
    incomplete: str = ""


@dataclass(frozen=True)
class JobBroke:
    """A job failed; nothing of it was stored."""

    version: MinorVersion
    job: Job
    error: PerunError


@dataclass(frozen=True)
class ChangesPutAside:
    """Measuring the version in place changed tracked files; the changes are kept by the version control."""

    version: MinorVersion


Event = VersionStarted | VersionSkipped | JobDone | JobBroke | ChangesPutAside


@dataclass(frozen=True)
class Naming:
    """How profiles are named: one fixed name, or a template other than the configured one."""

    name: str | None = None
    template: str | None = None


def run_jobs(
    repo: Repository,
    schedule: Sequence[Stop],
    *,
    placement: Placement = IN_A_COPY,
    naming: Naming = Naming(),
    register: bool | None = None,
    skip_broken: bool = False,
    notes: Notes = FORGOTTEN,
    counter: int = 0,
    report: Report = silent,
    report_inside: Report = silent,
) -> Generator[Event]:
    """Run the jobs of the schedule. A failing job or version is an event, and the others go on.

    An interruption (:class:`KeyboardInterrupt`, :class:`~perun.errors.Terminated`) ends all of it. Where the
    collector had something by then, its profile is saved and is the last event.

    :raises NotTrusted: where the user has not said that he trusts the repository.

    :param register: register each profile in the index of its version; as configured where None.
    :param skip_broken: do not try versions again that `execute.pre_run` is known to fail on.
    :param notes: where each step is noted. :param counter: number of the first profile, for its name.
    :param report: told what runs now, jobs done and jobs in all; :param report_inside: told by the collector
        what it does within its job.
    """
    # Besides the commands themselves: checking versions out runs the filters of the version control.
    repo.require_trust("measuring")
    saving.check_naming(repo, naming.name, naming.template)
    registering = saving.registers_after_run(repo) if register is None else register
    batch = _Batch(repo, naming, registering, notes, counter)
    done, total = 0, sum(len(stop.tasks) for stop in schedule)
    if schedule:
        memory = Preparations(repo)
        with checkouts(repo, placement) as places:
            preparing = _Preparing(repo, places, memory, skip_broken)
            for stop in schedule:
                version = stop.version
                report(f"preparing {version.checksum[:10]}", done, total)
                prepared = preparing.prepare(stop)
                yield prepared
                if isinstance(prepared, VersionStarted):
                    for number, task in enumerate(stop.tasks, done):
                        report(f"{version.checksum[:10]} {task.job}", number, total)
                        yield batch.run(task, version, prepared.measured_in, report_inside)
                        if batch.interruption is not None:
                            raise batch.interruption
                elif not prepared.known:
                    for task in stop.tasks:
                        notes.failed(task.number, prepared.error.message)
                done += len(stop.tasks)
                if places.put_aside():
                    preparing.forget()
                    yield ChangesPutAside(version)
    report("done", total, total)


class _Preparing:
    """Puts versions on the disk and runs `execute.pre_run` there."""

    def __init__(self, repo: Repository, places: Checkouts, memory: Preparations, skip_broken: bool) -> None:
        self._repo = repo
        self._places = places
        self._memory = memory
        self._skip_broken = skip_broken
        self._last: VersionStarted | None = None

    def prepare(self, stop: Stop) -> VersionStarted | VersionSkipped:
        """Prepare the version of the stop, unless it is the last one that was prepared.

        :raises PerunError: where no version can be prepared any more.
        """
        version = stop.version
        if self._last is not None and self._last.version == version:
            return replace(self._last, round=stop.round, leaves_changes_out=False, seconds=0.0)
        self.forget()
        as_committed = not self._places.has_changes(version.checksum)
        why = self._memory.why_broken(version.checksum) if self._skip_broken and as_committed else ""
        if why:
            error = JobFailed(f"known to fail: {why}", "try such versions again with --retry-broken")
            return VersionSkipped(version, error, stop.round, known=True)
        started = time.monotonic()
        try:
            folder = _prepare(self._repo, self._places, version)
        except PerunError as error:
            if not self._places.usable:
                raise
            if isinstance(error, PreparationFailed) and as_committed:
                self._memory.failed(version.checksum, error.message.partition("\n")[0])
            return VersionSkipped(version, error, stop.round)
        seconds = time.monotonic() - started
        if as_committed:
            self._memory.succeeded(version.checksum, seconds)
        leaves_out = self._places.leaves_changes_out(version.checksum)
        self._last = VersionStarted(version, folder, leaves_out, stop.round, seconds)
        return self._last

    def forget(self) -> None:
        """Prepare the next version whichever it is."""
        self._last = None


class _Batch:
    """Runs jobs one after the other, and keeps their profiles.

    :ivar interruption: what the last job was ended by, where it is to end the batch too.
    """

    def __init__(
        self, repo: Repository, naming: Naming, registering: bool, notes: Notes, counter: int
    ) -> None:
        self._repo = repo
        self._naming = naming
        self._registering = registering
        self._notes = notes
        self._counter = counter
        self.interruption: BaseException | None = None

    def run(self, task: Task, version: MinorVersion, folder: Path, report: Report) -> JobDone | JobBroke:
        started = time.monotonic()
        told: list[str] = []
        try:
            profile = self._collected(task.job, version, folder, report, told.append)
            # From this a later batch tells how long it will take.
            seconds = round(time.monotonic() - started, 3)
            profile["collector_info"] = {**profile["collector_info"], "seconds": seconds}
            lacks = incomplete.text_of(profile)
            registering = self._registering and self.interruption is None
            path = self._keep(task, profile, version, lacks, registering=registering)
        except PerunError as error:
            self._notes.failed(task.number, error.message.partition("\n")[0])
            return JobBroke(version, task.job, error)
        seconds = time.monotonic() - started
        notes = tuple(dict.fromkeys(told))
        return JobDone(version, task.job, path.name, path, registering, seconds, notes, lacks)

    def _collected(
        self, job: Job, version: MinorVersion, folder: Path, report: Report, note: Callable[[str], None]
    ) -> Profile:
        """The processed profile of the job; of an interrupted one what there is of it, not processed."""
        try:
            profile = _measure(self._repo, job, version, folder, report, note)
        except Interrupted as stop:
            self.interruption = stop.__cause__ or KeyboardInterrupt()
            return stop.profile
        for unit in job.postprocessors:
            context = PostprocessContext(report, note)
            profile = postprocessby.process(self._repo, profile, unit.name, unit.params, context)
        return profile

    def _keep(
        self, task: Task, profile: Profile, version: MinorVersion, lacks: str, *, registering: bool
    ) -> Path:
        """Save the profile, and register it where wanted; each step is noted when it is certain."""
        if lacks:
            self._notes.incomplete(task.number, lacks)
        path = saving.save(
            self._repo,
            profile,
            version.checksum,
            name=self._naming.name,
            template=self._naming.template,
            counter=self._counter,
            announce=partial(self._notes.saving, task.number),
        )
        self._counter += 1
        self._notes.saved(task.number, path.name)
        if registering:
            try:
                name = saving.register(self._repo, path, profile, version.checksum)
            except (PerunError, OSError) as problem:
                problem.add_note(f"the profile is stored, but not registered: {path}")
                raise
            path = path.with_name(name)
        self._notes.done(task.number)
        return path


def _prepare(repo: Repository, places: Checkouts, version: MinorVersion) -> Path:
    folder = places.enter(version.checksum)
    prepared_by = commands(repo)
    if prepared_by:
        log = repo.root / PERUN_FOLDER / "logs" / f"{version.checksum}-pre-run.log"
        log.parent.mkdir(exist_ok=True)
        try:
            with open_for_writing(log) as file:
                for command, _ in prepared_by:
                    _pre_run(command, folder, repo, file, log)
        except OSError as problem:
            problem.filename = problem.filename or str(log)  # of a full disk the system says no more
            raise
    return folder


def _pre_run(command: str, folder: Path, repo: Repository, file: BinaryIO, log: Path) -> None:
    file.write(f"$ {command}\n".encode())
    file.flush()
    run = Run(command, cwd=folder, environ=_environment(repo))
    try:
        with Execution(run, log.parent, output=file.fileno()) as execution:
            status = execution.run().status
    except JobFailed as problem:
        raise JobFailed(
            f"execute.pre_run: {problem.message}",
            "it runs without a shell; write `sh -c '...'` where one is needed",
        ) from None
    if status:
        lines = log.read_text(errors="replace").rpartition(f"$ {command}\n")[2].splitlines()
        shown = ["the end of its output:", *("  " + line for line in lines[-SHOWN_LINES:])] if lines else []
        killed = os.WIFSIGNALED(status)
        how = outcome(status) if killed else f"ended with status {exit_status(status)}"
        # One that was killed may have been so for reasons that are not its own, such as too little memory.
        raise (JobFailed if killed else PreparationFailed)(
            "\n".join([f"execute.pre_run: {command!r} {how}", *shown]), f"all of its output: {log}"
        )


def _environment(repo: Repository) -> dict[str, str]:
    return {name: value for name, value in repo.environ.items() if name not in _OF_A_HOOK}


def _measure(
    repo: Repository,
    job: Job,
    version: MinorVersion,
    folder: Path,
    report: Report,
    note: Callable[[str], None],
) -> Profile:
    run = Run(job.cmd, job.args, job.workload, folder, _environment(repo), version.checksum)
    # Before the run: the load it finds, not the one it makes.
    described = {**machine.describe(), "conditions": conditions.settled()}
    made = job.generated
    try:
        if made is None:
            profile = _collect(repo, job, run, report, note)
        elif made.merged:
            profile = workloads.merge(_each(repo, job, run, made.inputs, report, note))
        else:
            profile = _collect(repo, job, run._replace(workload=made.inputs[0].text), report, note)
    except Interrupted as stop:
        if made is not None and made.merged:  # it is of one of the workloads, not of them all
            raise (stop.__cause__ or KeyboardInterrupt()) from None
        _complete(stop.profile, job, described)
        raise
    return _complete(profile, job, described)


def _complete(profile: Profile, job: Job, described: Mapping[str, Any]) -> Profile:
    """The profile with what every collector would say the same of."""
    made = job.generated
    if made is not None:
        profile["header"] = {**profile["header"], "workload": job.workload}
        profile["workload_generator"] = made.describe()
    profile["machine"] = described
    params = to_mapping(job.collector.params)
    profile.setdefault("collector_info", {"name": job.collector.name, "params": params})
    profile.setdefault("postprocessors", [])
    return profile


def _each(
    repo: Repository,
    job: Job,
    run: Run,
    inputs: Sequence[workloads.Input],
    report: Report,
    note: Callable[[str], None],
) -> Iterator[tuple[workloads.Input, Profile]]:
    """The profiles of one workload after the other."""
    for number, one in enumerate(inputs, 1):
        which = f"workload {number} of {len(inputs)}"

        def told(activity: str, done: int, total: int, which: str = which) -> None:
            report(f"{which}: {activity}", done, total)

        yield one, _collect(repo, job, run._replace(workload=one.text), told, note)


def _collect(repo: Repository, job: Job, run: Run, report: Report, note: Callable[[str], None]) -> Profile:
    collector = repo.registry.get("collect", job.collector.name)
    temporary = repo.root / PERUN_FOLDER / "tmp"
    temporary.mkdir(exist_ok=True)
    # What cannot be removed is no reason to lose what was measured; the next run removes it.
    with tempfile.TemporaryDirectory(
        prefix=f"collect-{os.getpid()}-", dir=temporary, ignore_cleanup_errors=True
    ) as scratch:
        context = CollectContext(Path(scratch), report, note, _cache(repo, collector.name))
        profile: Profile = collector.collect(run, job.collector.params, context)
    return profile


def _cache(repo: Repository, name: str) -> Path | None:
    """The folder of the user for what a collector keeps from run to run, by the XDG base directories."""
    home = repo.environ.get("HOME", "")
    folder = repo.environ.get("XDG_CACHE_HOME", "") or os.path.join(home, ".cache")
    return Path(folder, "perun", name) if os.path.isabs(folder) else None


def failure_of(events: Sequence[Event]) -> PerunError | None:
    """The error that the verb should end with: None where every job gave a profile.

    One unavailable collector keeps its own exit code; any other failure is a :class:`JobFailed`. That a
    version is known to fail is no failure, unless there was nothing else.
    """
    failures = [event for event in events if isinstance(event, (JobBroke, VersionSkipped))]
    if any(isinstance(event, (VersionStarted, JobDone)) for event in events):
        failures = [event for event in failures if isinstance(event, JobBroke) or not event.known]
    errors = [event.error for event in failures]
    if not errors:
        return None
    if all(isinstance(error, CollectorUnavailable) for error in errors):
        return errors[0]
    done = sum(isinstance(event, JobDone) for event in events)
    skipped = sum(isinstance(event, VersionSkipped) for event in failures)
    counts = [_count(done, "profile", "collected"), _count(len(errors) - skipped, "job", "failed")]
    counts.append(_count(skipped, "version", "skipped"))
    first = errors[0].message.partition("\n")[0]
    beginning = "the first: " if len(errors) > 1 else ""
    # The error of a job whose profile is stored all the same says so in a note.
    stored = any(getattr(error, "__notes__", ()) for error in errors)
    return JobFailed(
        f"{', '.join(filter(None, counts)) or 'nothing collected'}; {beginning}{first}",
        "perun status shows what is stored"
        if stored
        else "a failed job stores nothing; the others are stored",
    )


def _count(number: int, noun: str, verb: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)} {verb}" if number else ""
