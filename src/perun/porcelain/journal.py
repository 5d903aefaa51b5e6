"""What a batch has done so far, on the disk before and after each step, so that it can go on wherever it was
ended: by Ctrl-C, `kill -9` or the power.

A journal is a file of `.perun/batches`. Its first line is the plan of the batch, which never changes; each
other line is one step of one task, a list in JSON. The process that runs the batch holds a lock on the file,
which the kernel releases: a journal without a lock is that of a batch that nobody runs.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from perun.atomic import TEMPORARY_PREFIX
from perun.store import tree

SUFFIX = ".jsonl"
KEPT = 20
"""Journals of batches that were interrupted or had failures that are kept."""


class Notes:
    """Where a batch notes the steps of its tasks; this one forgets them."""

    def saving(self, number: int, sha1: str) -> None:
        """The profile of the task will be written to a pending file with these bytes."""

    def saved(self, number: int, name: str) -> None:
        """It was written, and the file has this name."""

    def done(self, number: int) -> None:
        """The profile is where it shall be."""

    def failed(self, number: int, why: str) -> None:
        """The task gave no profile."""


FORGOTTEN = Notes()
"""Of a batch that is not kept."""


class Unsettled(NamedTuple):
    """A task whose profile may have been written, but whose end was not noted. `name` may not be known."""

    number: int
    sha1: str
    name: str


class Journal(Notes):
    """The journal of one batch, which this process has for itself; use :func:`create` or :func:`newest`."""

    def __init__(self, path: Path, descriptor: int, plan: Mapping[str, Any], lines: list[list[Any]]) -> None:
        self.path = path
        self.plan = plan
        self.ended = False
        self._descriptor = descriptor
        self._last: dict[int, str] = {}
        self._unsettled: dict[int, Unsettled] = {}
        self.names: set[str] = set()
        for line in lines:
            self._take(line)

    @property
    def finished(self) -> frozenset[int]:
        """The tasks that have their profile."""
        return frozenset(number for number, step in self._last.items() if step == "done")

    @property
    def unsettled(self) -> list[Unsettled]:
        """The tasks during whose last step the batch ended, or that step failed."""
        return list(self._unsettled.values())

    def saving(self, number: int, sha1: str) -> None:
        """As :class:`Notes`, on the disk at once."""
        self._note("saving", number, sha1)

    def saved(self, number: int, name: str) -> None:
        """As :class:`Notes`, on the disk at once."""
        self._note("saved", number, name)

    def done(self, number: int) -> None:
        """As :class:`Notes`, on the disk at once."""
        self._note("done", number)

    def failed(self, number: int, why: str) -> None:
        """As :class:`Notes`, on the disk at once."""
        self._note("failed", number, why)

    def end(self) -> None:
        """The batch has come to its end. Where something failed, the journal is kept, to try that again."""
        if "failed" in self._last.values():
            self._note("ended")
        else:
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _note(self, *line: Any) -> None:
        _append(self._descriptor, self.path, list(line))
        self._take(list(line))

    def _take(self, line: list[Any]) -> None:
        match line:
            case ["saving", int(number), str(sha1)]:
                self._unsettled[number] = Unsettled(number, sha1, "")
            case ["saved", int(number), str(name)] if number in self._unsettled:
                self._unsettled[number] = self._unsettled[number]._replace(name=name)
                self.names.add(name)
            case ["done", int(number)]:
                self._unsettled.pop(number, None)
            case ["failed", int(number), str()]:
                pass
            case ["ended"]:
                self.ended = True
                return
            case _:
                return  # of a later release, or damaged
        self.ended = False
        self._last[number] = line[0]


def create(folder: Path, plan: Mapping[str, Any]) -> Journal:
    """Begin a journal; of those that nobody uses any more the oldest are removed."""
    from datetime import UTC, datetime

    folder.mkdir(exist_ok=True)
    _prune(folder)
    # In the order of time by name, and never the same for two batches.
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{os.getpid()}{SUFFIX}"
    temporary = folder / f"{TEMPORARY_PREFIX}{name}"
    descriptor = os.open(temporary, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _append(descriptor, folder / name, plan)
        os.rename(temporary, folder / name)
    except BaseException:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)
        raise
    return Journal(folder / name, descriptor, plan, [])


def newest(folder: Path) -> Journal | None:
    """The journal to go on with, locked: the newest of a batch that was interrupted, else the newest of one
    that came to its end but had failures; None where there is neither."""
    failed: Journal | None = None
    for path in reversed(_paths(folder)):
        journal = _open(path)
        if journal is None:
            continue
        if not journal.ended:
            if failed is not None:
                failed.close()
            return journal
        if failed is None:
            failed = journal
        else:
            journal.close()
    return failed


@contextmanager
def interrupted(folder: Path) -> Iterator[Journal | None]:
    """The newest journal of a batch that was interrupted, for a look at it."""
    journal = newest(folder)
    try:
        yield journal if journal is not None and not journal.ended else None
    finally:
        if journal is not None:
            journal.close()


def _open(path: Path) -> Journal | None:
    """The journal, locked; None where another process has it, or it is none."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        data = _content(descriptor)
        plan, lines = _parse(data)
        if plan is not None and path.exists():  # it may have come to its end meanwhile
            # A line that was not finished would spoil the next one.
            os.ftruncate(descriptor, data.rfind(b"\n") + 1)
            return Journal(path, descriptor, plan, lines)
    except OSError:
        pass
    os.close(descriptor)
    return None


def _content(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0)


def _parse(data: bytes) -> tuple[Mapping[str, Any] | None, list[list[Any]]]:
    first, *rest = data.split(b"\n")[:-1] or [b""]
    plan = _decoded(first)
    lines = [line for line in map(_decoded, rest) if isinstance(line, list)]
    return plan if isinstance(plan, dict) else None, lines


def _decoded(line: bytes) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(line)
    return None


def _append(descriptor: int, path: Path, line: Any) -> None:
    data = json.dumps(line).encode() + b"\n"
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError as problem:
        problem.filename = str(path)  # of a full disk the system says no more
        raise
    with suppress(OSError):  # some file systems cannot; then only the power may spoil it
        os.fdatasync(descriptor)


def _prune(folder: Path) -> None:
    for path in _paths(folder)[: -KEPT + 1]:
        journal = _open(path)
        if journal is not None:
            path.unlink(missing_ok=True)
            journal.close()


def _paths(folder: Path) -> list[Path]:
    names = tree.listing(folder)
    return [folder / name for name in sorted(names) if name.endswith(SUFFIX) and name[0] != "."]
