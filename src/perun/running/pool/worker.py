"""What dask runs on a machine of a pool, each function by its name; Perun must be installed there too.

These functions read the environment of their worker, as nobody else there could hand it to them.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun import __version__
from perun.core import atomic, machine
from perun.core.errors import PerunError
from perun.core.process import programs
from perun.core.regular import read_regular
from perun.running.pool import folders, orders
from perun.running.pool import orders as generated
from perun.running.pool.measuring import JobResult, TaskFolder
from perun.running.pool.places import Calibration

_STOPPING: Final = 30.0
"""Seconds that a job has to end what it measures."""
_LAST_WORDS: Final = 4000
_MAX_LOG: Final = 1 << 28

_running: dict[str, set[programs.Program]] = {}
_guard: Final = threading.Lock()


class LostJob(NamedTuple):
    """A job whose process ended without a result, and why."""

    why: str


def dask_release() -> str:
    """The release of dask.distributed here, which must be the same everywhere in a pool."""
    from importlib.metadata import version

    return version("distributed")


def describe() -> dict[str, Any]:
    """What a client wants to know of the machine."""
    described = machine.describe()
    return {
        "machine": folders.machine_name(os.environ),
        "perun": __version__,
        "dask": dask_release(),
        "python": sys.version.partition(" ")[0],
        "class": machine.class_of(described),
    }


def lacking(project: str, versions: Sequence[str]) -> tuple[list[str], list[str]]:
    """The versions that the machine has not got, and the last ones that it has."""
    repo = folders.project(os.environ, project, {})
    vcs: Any = repo.vcs
    present = set(vcs.present(versions))
    return [one for one in versions if one not in present], _received(repo.root / "received")


def receive(project: str, versions: Sequence[str], data: bytes, tags: Sequence[Sequence[str]]) -> int:
    """Take in versions that the machine has not got; how many it has taken."""
    repo = folders.project(os.environ, project, {})
    vcs: Any = repo.vcs
    file = repo.root / "received"
    with folders.locked(repo.root / "project.lock"):
        vcs.unpack(versions, data, tags)
        last = list(dict.fromkeys([*versions, *_received(file)]))[:50]
        atomic.write(file, "".join(f"{one}\n" for one in last).encode())
    return len(versions)


def _received(file: Path) -> list[str]:
    with suppress(OSError):
        return read_regular(file, 1 << 16).decode().split()
    return []


def has_inputs(project: str, name: str) -> bool:
    """Whether the machine has the generated files of that name."""
    return generated.MachineFiles(folders.project(os.environ, project, {})).has(name)


def receive_inputs(project: str, name: str, offset: int, data: bytes, last: bool) -> bool:
    """Take in a piece of the archive of generated files."""
    repo = folders.project(os.environ, project, {})
    with folders.locked(repo.root / "project.lock"):
        generated.MachineFiles(repo).add_piece(name, offset, data, last)
    return True


def measure(written: Mapping[str, Any]) -> JobResult | LostJob:
    """Measure the job of the order, in a process of its own; its result if it was measured before."""
    order = orders.read(written)
    place = TaskFolder(os.environ, order)
    log = place.file(".log")
    ended = _run_job(order.batch, {"verb": "measure", "order": dict(written)}, log)
    result = place.result()
    if result is None:
        return LostJob(f"its process {ended}: {_last_words(log)}".rstrip(": "))
    return result


def calibrate() -> Calibration | LostJob:
    """The calibration of the machine."""
    log = folders.folder(os.environ, "results") / f"calibration-{os.getpid()}.log"
    ended = _run_job("", {"verb": "calibrate"}, log)
    text = _last_words(log)
    log.unlink(missing_ok=True)
    try:
        return Calibration(**json.loads(text))
    except (ValueError, TypeError):
        return LostJob(f"the calibration {ended}: {text}")


def _run_job(batch: str, told: Mapping[str, Any], log: Path) -> str:
    """Run the process of a job to its end; how it ended."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as file, _guard:
        process = programs.Program(
            [sys.executable, "-P", "-m", "perun.running.pool.job"],
            stdin=programs.PIPE,
            stdout=file,
            stderr=file,
            start_new_session=True,
            outlives=True,
        )
        _running.setdefault(batch, set()).add(process)
    process.communicate(json.dumps(told).encode())
    with _guard:
        _running[batch].discard(process)
    code = process.returncode
    return f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"


def _last_words(log: Path) -> str:
    with suppress(OSError):
        return read_regular(log, _MAX_LOG).decode(errors="replace").strip()[-_LAST_WORDS:]
    return ""


def stop(batch: str) -> int:
    """End the jobs of the batch that run on this worker, and what they measure; how many there were."""
    with _guard:
        processes = list(_running.get(batch, ()))
    for process in processes:
        with suppress(OSError):
            process.send_signal(signal.SIGTERM)
    for process in processes:
        try:
            process.wait(_STOPPING)
        except programs.TimeoutExpired:
            process.end()
    return len(processes)


def forget(batch: str) -> None:
    """Remove what the machine keeps of the batch: the client has it."""
    with suppress(OSError, PerunError):
        folders.forget(os.environ, batch)
