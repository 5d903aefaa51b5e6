"""One job on a machine of a pool: build its version, wait for the machine, measure, leave the result.

The result stays until the client has stored it. So a job that was measured is not measured again, whatever
became of the worker, the scheduler or the client meanwhile.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun import atomic, errors
from perun.errors import JobFailed, PerunError
from perun.porcelain.pool import folders, generated, orders
from perun.porcelain.pool.builds import Builds
from perun.porcelain.pool.machine_lock import MachineLock
from perun.porcelain.pool.orders import Order
from perun.porcelain.run.events import Event, JobAnswered, JobDone, JobFailure, VersionSkipped, VersionStarted
from perun.porcelain.run.execute import run_jobs
from perun.porcelain.run.keeping import Naming
from perun.porcelain.run.pre_run import PreparationFailed
from perun.porcelain.run.schedule import Task, VersionSlot
from perun.regular import open_for_writing, read_regular

MAX_RESULT: Final = 1 << 31


class Result(NamedTuple):
    """What a machine answers of a job: the facts of it, and its profile, empty if it has none.

    `facts` has the key `error` if it failed, and `again`: how many earlier measurements of it were lost.
    """

    facts: dict[str, Any]
    profile: bytes = b""

    @property
    def is_final(self) -> bool:
        """Whether it is what the job gives, and need not be tried again."""
        return "error" not in self.facts and not self.facts.get("lacking")


def carry_out(order: Order, environ: Mapping[str, str]) -> None:
    """Measure the job, and write its result; nothing is done where there is one."""
    place = Place(environ, order)
    with folders.locked(place.file(".lock")):  # a process that outlived its worker may be measuring it
        if (known := place.result()) is None or not known.is_final:
            place.file(".result").unlink(missing_ok=True)
            place.write(_measured(order, environ, place))


class Place:
    """The files of one task on this machine."""

    def __init__(self, environ: Mapping[str, str], order: Order) -> None:
        self.file: Callable[[str], Path] = lambda suffix: folders.task_file(
            environ, order.batch, order.number, suffix
        )

    def result(self) -> Result | None:
        """The result that was left, if there is one."""
        try:
            head, _, profile = read_regular(self.file(".result"), MAX_RESULT).partition(b"\n")
            return Result(json.loads(head), profile)
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

    def write(self, result: Result) -> None:
        """Leave the result."""
        atomic.write(self.file(".result"), json.dumps(result.facts).encode() + b"\n" + result.profile)
        self.file(".begun").unlink(missing_ok=True)


def _measured(order: Order, environ: Mapping[str, str], place: Place) -> Result:
    again = place.begun
    machine = MachineLock(folders.machine_name(environ))
    try:
        repo = folders.project(environ, order.project, order.config)
        with machine.shared():  # reading large files would disturb what is measured
            for name in orders.folders(order.job):
                generated.Store(repo).check(name)
        job = orders.job_of(repo, order.job)
        versions = _Built(Builds(repo, machine), machine, order.place, place.begin)
        slot = VersionSlot(order.version, (Task(0, job),))
        naming = Naming(name=f"{order.batch}-{order.number}")
        events = list(run_jobs(repo, [slot], versions=versions, naming=naming, register=False))
        result = _result(events)
        repo.store.pending.remove([event.path for event in events if isinstance(event, JobDone)])
    except PerunError as problem:
        result = Result({"error": _described(problem)})
    finally:
        machine.close()
    return result._replace(facts={**result.facts, "again": again})


class _Built:
    """Enters versions that are built once on a machine, one at a time; see :class:`..run.prepared.Versions`.

    :param begun: called before the first job of a version is measured.
    """

    def __init__(self, builds: Builds, machine: MachineLock, place: str, begun: Callable[[], None]) -> None:
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


def _result(events: list[Event]) -> Result:
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
    return Result(facts, profile)


def _described(error: PerunError) -> dict[str, Any]:
    notes = list(getattr(error, "__notes__", ()))
    kind = "PreparationFailed" if isinstance(error, PreparationFailed) else type(error).__name__
    return {"kind": kind, "message": error.message, "hint": error.hint, "notes": notes}


def error_of(result: Result, machine: str) -> PerunError | None:
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
