"""The journal of a batch: written to disk before and after each step, so that the batch can be resumed after
any interruption, such as Ctrl-C, `kill -9` or a power failure.

A journal is a file of `.perun/batches`. Its first line is the plan of the batch, which never changes; each
other line is one step of one task, a list in JSON. Each line ends with a tab and its checksum. The process
that runs the batch locks the file, and the kernel releases that: a journal without a lock
belongs to a batch that no process runs.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from perun.atomic import temporary_name
from perun.errors import NotPerunRepository
from perun.regular import read_regular
from perun.store import tree
from perun.store.lock import try_lock

SUFFIX = ".jsonl"
MAX_BYTES = 256 << 20
"""A larger file is no journal: that of a million tasks is smaller."""
_DIGITS = 16
"""Of a SHA-1: against accidents, not against forgery."""
MAX_JOURNALS = 20
"""Journals of batches that were interrupted or had failures that are kept."""


class StepLog:
    """Gets the steps of the tasks of a batch; this one keeps nothing, so that the batch cannot be resumed."""

    @property
    def finished(self) -> frozenset[int]:
        """The tasks that had a complete profile before."""
        return frozenset()

    def end(self) -> None:
        """The batch has come to its end."""

    def close(self) -> None:
        """Release what is held."""

    def __enter__(self) -> StepLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def saving(self, number: int, sha1: str) -> None:
        """The profile of the task will be written to a pending file with these bytes."""

    def saved(self, number: int, name: str) -> None:
        """It was written, and the file has this name."""

    def done(self, number: int) -> None:
        """The profile is at its final place."""

    def incomplete(self, number: int, why: str) -> None:
        """The profile of the task, which will be written next, lacks a part of its run."""

    def failed(self, number: int, why: str) -> None:
        """The task gave no profile."""


class UnfinishedTask(NamedTuple):
    """A task whose profile may be on the disk, but whose end is not in the journal; `name` may be empty."""

    number: int
    sha1: str
    name: str


class Journal(StepLog):
    """The journal of one batch, which this process has for itself; use :func:`create` or :func:`newest`."""

    def __init__(self, path: Path, descriptor: int, plan: Mapping[str, Any], lines: list[list[Any]]) -> None:
        self.path = path
        self.plan = plan
        self.ended = False
        self.damaged_line = 0
        self._descriptor = descriptor
        self._last: dict[int, str] = {}
        self._unfinished: dict[int, UnfinishedTask] = {}
        self._incomplete: set[int] = set()
        self.names: set[str] = set()
        for line in lines:
            self._apply(line)

    @property
    def finished(self) -> frozenset[int]:
        """The tasks that have their profile, a complete one."""
        done = (number for number, step in self._last.items() if step == "done")
        return frozenset(done) - self._incomplete

    @property
    def unfinished(self) -> list[UnfinishedTask]:
        """The tasks during whose last step the batch ended, or that step failed."""
        return list(self._unfinished.values())

    def saving(self, number: int, sha1: str) -> None:
        """As :class:`StepLog`, written at once."""
        self._write_step("saving", number, sha1)

    def saved(self, number: int, name: str) -> None:
        """As :class:`StepLog`, written at once."""
        self._write_step("saved", number, name)

    def done(self, number: int) -> None:
        """As :class:`StepLog`, written at once."""
        self._write_step("done", number)

    def incomplete(self, number: int, why: str) -> None:
        """As :class:`StepLog`, written at once."""
        self._write_step("incomplete", number, why)

    def failed(self, number: int, why: str) -> None:
        """As :class:`StepLog`, written at once."""
        self._write_step("failed", number, why)

    def end(self) -> None:
        """The batch has come to its end. Where something failed or is incomplete, the journal is kept, to try
        that again."""
        if self._incomplete or "failed" in self._last.values():
            self._write_step("ended")
        else:
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write_step(self, *line: Any) -> None:
        _append(self._descriptor, self.path, list(line))
        self._apply(list(line))

    def _apply(self, line: list[Any]) -> None:
        match line:
            case ["incomplete", int(number), str()]:
                pass  # it is the profile that is saved next
            case ["saving", int(number), str(sha1)]:
                if self._last.get(number) == "incomplete":
                    self._incomplete.add(number)
                else:
                    self._incomplete.discard(number)
                self._unfinished[number] = UnfinishedTask(number, sha1, "")
            case ["saved", int(number), str(name)] if number in self._unfinished:
                self._unfinished[number] = self._unfinished[number]._replace(name=name)
                self.names.add(name)
            case ["done", int(number)]:
                self._unfinished.pop(number, None)
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
    """Create a journal; removes the oldest of those without a process.

    :raises NotPerunRepository: if the file system has no locks.
    """
    from datetime import UTC, datetime

    folder.mkdir(exist_ok=True)
    _prune(folder)
    # In the order of time by name, and never the same for two batches.
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{os.getpid()}{SUFFIX}"
    temporary = folder / temporary_name()
    descriptor = os.open(temporary, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try_lock(descriptor, folder / name)  # no other process knows the file yet
        _append(descriptor, folder / name, plan)
        os.rename(temporary, folder / name)
    except BaseException:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)
        raise
    return Journal(folder / name, descriptor, plan, [])


def newest(folder: Path) -> Journal | None:
    """The journal to resume, locked: the newest of a batch that was interrupted, else the newest of one
    that came to its end but had failures; None if there is neither."""
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
    """The newest journal of a batch that was interrupted, to read only."""
    journal = None
    with suppress(NotPerunRepository):  # a file system without locks is no reason not to look
        journal = newest(folder)
    try:
        yield journal if journal is not None and not journal.ended else None
    finally:
        if journal is not None:
            journal.close()


def _open(path: Path) -> Journal | None:
    """The journal, locked; None if another process has it, or it is none."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        free = try_lock(descriptor, path)
        data = _content(descriptor) if free else b""
        plan, lines = _parse(data)
        if plan is not None and path.exists():  # it may have come to its end meanwhile
            # A line that was not finished would spoil the next one.
            os.ftruncate(descriptor, data.rfind(b"\n") + 1)
            journal = Journal(path, descriptor, plan, lines)
            journal.damaged_line = _damaged_line(data)
            return journal
    except OSError:
        pass
    except NotPerunRepository:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _content(descriptor: int) -> bytes:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        return b""  # nothing that was written here
    return os.pread(descriptor, status.st_size, 0)


def _parse(data: bytes) -> tuple[Mapping[str, Any] | None, list[list[Any]]]:
    first, *rest = data.split(b"\n")[:-1] or [b""]
    plan = _decoded(first)
    lines = [line for line in map(_decoded, rest) if isinstance(line, list)]
    return plan if isinstance(plan, dict) else None, lines


def damaged(folder: Path) -> Iterator[tuple[Path, str]]:
    """The journals that are not what was written, each with the reason; a last line may be cut short."""
    for path in _paths(folder):
        try:
            data = read_regular(path, MAX_BYTES)
        except FileNotFoundError:
            continue  # its batch came to its end
        except OSError as problem:
            yield path, f"it cannot be read: {problem.strerror}"
            continue
        if line := _damaged_line(data):
            yield path, f"line {line} is damaged: its checksum does not match"
        elif _parse(data)[0] is None:
            yield path, "it holds no plan"


def _damaged_line(data: bytes) -> int:
    """The number of the first line that is not what was written; 0 if there is none."""
    lines = data.split(b"\n")[:-1]
    return next((number for number, line in enumerate(lines, 1) if not _is_whole(line)), 0)


def _is_whole(line: bytes) -> bool:
    content, tab, checksum = line.rpartition(b"\t")
    if not tab:  # of an earlier release
        return _decoded(line) is not None
    return checksum == _checksum(content)


def _checksum(content: bytes) -> bytes:
    return tree.sha1(content).hex()[:_DIGITS].encode()


def _decoded(line: bytes) -> Any:
    if b"\t" in line:
        line = line.rpartition(b"\t")[0] if _is_whole(line) else b""
    with suppress(ValueError, RecursionError):
        return json.loads(line)
    return None


def _append(descriptor: int, path: Path, line: Any) -> None:
    content = json.dumps(line).encode()
    data = content + b"\t" + _checksum(content) + b"\n"
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError as problem:
        problem.filename = str(path)  # of a full disk the system says no more
        raise
    with suppress(OSError):  # some file systems cannot; then only the power may spoil it
        os.fdatasync(descriptor)


def _prune(folder: Path) -> None:
    for path in _paths(folder)[: -MAX_JOURNALS + 1]:
        journal = _open(path)
        if journal is not None:
            path.unlink(missing_ok=True)
            journal.close()


def _paths(folder: Path) -> list[Path]:
    names = tree.listing(folder)
    return [folder / name for name in sorted(names) if name.endswith(SUFFIX) and name[0] != "."]
