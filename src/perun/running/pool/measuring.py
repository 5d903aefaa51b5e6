"""One job on a machine of a pool: build its version, wait for the machine, measure, leave the result.

The result stays until the client has stored it. So a job that was measured is not measured again, whatever
became of the worker, the scheduler or the client meanwhile.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core import atomic, errors
from perun.core.errors import JobFailed, PerunError, VersionControlError
from perun.core.regular import open_for_writing, read_regular
from perun.repository.repository import Repository
from perun.running.pool import folders, orders
from perun.running.pool import orders as generated
from perun.running.pool.folders import MachineLock, locked, opened
from perun.running.pool.orders import JobOrder
from perun.running.run import pre_run
from perun.running.run.collecting import ProfileNaming
from perun.running.run.events import Event, JobAnswered, JobDone, JobFailure, VersionSkipped, VersionStarted
from perun.running.run.execute import run_jobs
from perun.running.run.pre_run import PreparationFailed
from perun.running.run.schedule import Task, VersionSlot

# Versions that were built on a machine: each in a folder of its own, kept for the next job on it.

MAX_BUILDS: Final = 20
"""Of one project; those that were not used for the longest time go first."""


class ProjectBuilds:
    """The builds of one project, by the way that its versions are built.

    :param machine: shared while a version is built, so that nothing is measured meanwhile.
    """

    def __init__(self, repo: Repository, machine: MachineLock) -> None:
        self._repo = repo
        self._machine = machine
        self._folder = repo.root / "builds"
        self._folder.mkdir(exist_ok=True)
        self._way = hashlib.sha256(pre_run.build(repo).encode()).hexdigest()[:8]

    @contextmanager
    def built(self, version: str, place: str) -> Iterator[Path]:
        """The folder `place` of the version, built, which nobody removes or builds again in the block.

        :raises PerunError: if it cannot be checked out or built.
        """
        build = self._folder / f"{self._way}-{version}"
        lock = opened(build.with_suffix(".lock"))
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            while not self._is_ready(build):
                fcntl.flock(lock, fcntl.LOCK_EX)  # others are waited for, who may build it
                if not self._is_ready(build):
                    self._build(build, version, place)
                fcntl.flock(lock, fcntl.LOCK_SH)
            os.utime(_mark(build))
            yield _inside(build, version, place)
        finally:
            os.close(lock)

    def _build(self, build: Path, version: str, place: str) -> None:
        _mark(build).unlink(missing_ok=True)
        with self._machine.shared():
            with locked(self._repo.root / "project.lock"):
                self._prune()
                # It is left where it is: the end of the block would remove it.
                self._repo.vcs.working_copy(build).__enter__().switch(version)
            pre_run.run_commands(self._repo, version, _inside(build, version, place))
        _mark(build).touch()

    def _is_ready(self, build: Path) -> bool:
        """Whether it was built to the end, and no job has changed files of the version since."""
        if not _mark(build).exists() or not build.is_dir():
            return False
        return not self._repo.registry.get("vcs", "git")(build, self._repo.environ).is_dirty()

    def _prune(self) -> None:
        marks = sorted(self._folder.glob("*.done"), key=lambda path: path.stat().st_mtime, reverse=True)
        for mark in marks[MAX_BUILDS - 1 :]:
            lock = opened(mark.with_suffix(".lock"))
            with suppress(BlockingIOError):  # in use
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                mark.unlink()
                with self._repo.vcs.working_copy(mark.with_suffix("")):
                    pass  # entering removes what is there
            os.close(lock)


def _mark(build: Path) -> Path:
    return build.with_suffix(".done")


def _inside(build: Path, version: str, place: str) -> Path:
    folder = build / place
    if not folder.is_dir() or not folder.resolve().is_relative_to(build.resolve()):
        raise VersionControlError(f"version {version[:10]} has no folder {place!r}")
    return folder


MAX_RESULT: Final = 1 << 31


class JobResult(NamedTuple):
    """What a machine answers of a job: the facts of it, and its profile, empty if it has none.

    `facts` has the key `error` if it failed, and `again`: how many earlier measurements of it were lost.
    """

    facts: dict[str, Any]
    profile: bytes = b""

    @property
    def is_final(self) -> bool:
        """Whether it is what the job gives, and need not be tried again."""
        return "error" not in self.facts and not self.facts.get("lacking")


def carry_out(order: JobOrder, environ: Mapping[str, str]) -> None:
    """Measure the job, and write its result; nothing is done where there is one."""
    place = TaskFolder(environ, order)
    with folders.locked(place.file(".lock")):  # a process that outlived its worker may be measuring it
        if (known := place.result()) is None or not known.is_final:
            place.file(".result").unlink(missing_ok=True)
            place.write(_measured(order, environ, place))


class TaskFolder:
    """The files of one task on this machine."""

    def __init__(self, environ: Mapping[str, str], order: JobOrder) -> None:
        self.file: Callable[[str], Path] = lambda suffix: folders.task_file(
            environ, order.batch, order.number, suffix
        )

    def result(self) -> JobResult | None:
        """The result that was left, if there is one."""
        try:
            head, _, profile = read_regular(self.file(".result"), MAX_RESULT).partition(b"\n")
            return JobResult(json.loads(head), profile)
        except (OSError, ValueError):
            return None

    @property
    def begun(self) -> int:
        """How often the measurement was begun and gave no result."""
        with suppress(FileNotFoundError):
            return self.file(".begun").stat().st_size
        return 0

    def begin(self) -> None:
        """Note that the measurement is begun, for whoever repeats it where it is lost."""
        with open_for_writing(self.file(".begun"), append=True) as file:
            file.write(b".")

    def write(self, result: JobResult) -> None:
        """Leave the result."""
        atomic.write(self.file(".result"), json.dumps(result.facts).encode() + b"\n" + result.profile)
        self.file(".begun").unlink(missing_ok=True)


def _measured(order: JobOrder, environ: Mapping[str, str], place: TaskFolder) -> JobResult:
    again = place.begun
    machine = MachineLock(folders.machine_name(environ))
    try:
        repo = folders.project(environ, order.project, order.config)
        with machine.shared():  # reading large files would disturb what is measured
            for name in orders.folders(order.job):
                generated.MachineFiles(repo).check(name)
        job = orders.job_of(repo, order.job)
        versions = _Built(ProjectBuilds(repo, machine), machine, order.place, place.begin)
        slot = VersionSlot(order.version, (Task(0, job),))
        naming = ProfileNaming(name=f"{order.batch}-{order.number}")
        events = list(run_jobs(repo, [slot], versions=versions, naming=naming, register=False))
        result = _result(events)
        repo.store.pending.remove([event.path for event in events if isinstance(event, JobDone)])
    except PerunError as problem:
        result = JobResult({"error": _described(problem)})
    finally:
        machine.close()
    return result._replace(facts={**result.facts, "again": again})


class _Built:
    """Enters versions that are built once on a machine, one at a time; see
    :class:`perun.running.run.execute.VersionSource`.

    :param begun: called before the first job of a version is measured.
    """

    def __init__(
        self, builds: ProjectBuilds, machine: MachineLock, place: str, begun: Callable[[], None]
    ) -> None:
        self._builds = builds
        self._machine = machine
        self._place = place
        self._begun = begun
        self._stack = ExitStack()

    def enter(self, slot: VersionSlot) -> VersionStarted | VersionSkipped:
        """Build the version, then wait until nothing else is measured or built on the machine."""
        version = slot.version
        started = time.monotonic()
        try:
            folder = self._stack.enter_context(self._builds.built(version.checksum, self._place))
        except PerunError as error:
            return VersionSkipped(version, error, slot.round)
        seconds = time.monotonic() - started
        self._machine.alone()
        self._begun()
        return VersionStarted(version, folder, round=slot.round, seconds=seconds)

    def save_changes(self) -> bool:
        """Let others measure; what the jobs changed is not kept."""
        self._machine.release()
        self._stack.close()
        return False

    def __enter__(self) -> _Built:
        return self

    def __exit__(self, *exc: object) -> None:
        self.save_changes()


def _result(events: list[Event]) -> JobResult:
    facts: dict[str, Any] = {"answers": []}
    profile = b""
    for event in events:
        match event:
            case VersionStarted():
                facts["prepared"] = event.seconds
            case JobAnswered():
                facts["answers"].append([event.text, dict(event.data), event.ends])
            case JobDone():
                facts |= {"notes": event.notes, "lacking": event.incomplete, "phases": dict(event.phases)}
                facts["seconds"] = event.seconds
                profile = read_regular(event.path, MAX_RESULT)
            case JobFailure() | VersionSkipped():
                facts["error"] = _described(event.error)
    return JobResult(facts, profile)


def _described(error: PerunError) -> dict[str, Any]:
    notes = list(getattr(error, "__notes__", ()))
    kind = "PreparationFailed" if isinstance(error, PreparationFailed) else type(error).__name__
    return {"kind": kind, "message": error.message, "hint": error.hint, "notes": notes}


def error_of(result: JobResult, machine: str) -> PerunError | None:
    """The error of the job as the client raises it, which names the machine; None if it has none."""
    told = result.facts.get("error")
    if told is None:
        return None
    kind = getattr(errors, str(told["kind"]), None)
    if told["kind"] == "PreparationFailed":
        kind = PreparationFailed
    if not (isinstance(kind, type) and issubclass(kind, PerunError)):
        kind = JobFailed
    error = kind(f"{told['message']}", f"{told['hint']}")
    error.add_note(f"it ran on {machine}")
    return error
