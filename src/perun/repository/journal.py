"""A journal on the disk: what is needed to go on after any interruption, such as Ctrl-C, `kill -9` or a power
failure.

Its first line is the plan, which never changes; each other line is one step, a list in JSON. Each line ends
with a tab and its checksum. The process that works by it locks the file, and the kernel releases that: a
journal without a lock belongs to no process.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from perun.core import leftovers
from perun.core.atomic import PathErrors, temporary_name, write_all
from perun.core.errors import NotPerunRepository
from perun.core.regular import open_regular, read_regular
from perun.store import tree
from perun.store.lock import is_held, is_locked, try_lock

SUFFIX = ".jsonl"
MAX_BYTES = 256 << 20
"""A larger file is no journal: that of a million tasks is smaller."""
_DIGITS = 16
"""Of a SHA-1: against accidents, not against forgery."""
MAX_JOURNALS = 20
"""Journals that no process has and that are kept."""


class JournalFile:
    """A journal that this process has for itself; use :func:`create` or :func:`unlocked`.

    :ivar lines: the steps that were there when it was opened.
    :ivar damaged_line: the number of the first line that is not what was written, 0 if there is none.
    """

    def __init__(
        self, path: Path, descriptor: int, plan: Mapping[str, Any], lines: list[list[Any]], damaged_line: int
    ) -> None:
        self.path = path
        self.plan = plan
        self.lines = lines
        self.damaged_line = damaged_line
        self._descriptor = descriptor

    def append(self, *line: Any) -> None:
        """Add a step, which is on the disk when this returns."""
        _append(self._descriptor, self.path, list(line))

    def remove(self) -> None:
        """Delete the file: what it is about has come to its end."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def create(folder: Path, plan: Mapping[str, Any]) -> JournalFile:
    """Create a journal; removes the oldest of those without a process.

    :raises NotPerunRepository: if the file system has no locks.
    """
    from datetime import UTC, datetime

    folder.mkdir(exist_ok=True)
    _prune(folder)
    # In the order of time by name, and never the same for two journals.
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
    return JournalFile(folder / name, descriptor, plan, [], 0)


def unlocked(folder: Path, *, to_read: bool = False) -> Iterator[JournalFile]:
    """The journals that no process has, the newest first, each locked until it is closed.

    :param to_read: lock and change none of them.
    """
    for path in reversed(_paths(folder)):
        journal = _open(path, to_read=to_read)
        if journal is not None:
            yield journal


def _open(path: Path, *, to_read: bool = False) -> JournalFile | None:
    """The journal, locked unless it is only read; None if another process has it, or it is none."""
    flags = os.O_RDONLY if to_read else os.O_RDWR | os.O_APPEND
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        free = not is_locked(descriptor, path) if to_read else try_lock(descriptor, path)
        data = _content(descriptor) if free else b""
        plan, lines = _parse(data)
        if plan is not None and path.exists():  # it may have come to its end meanwhile
            if to_read:
                os.close(descriptor)
                descriptor = -1
            else:  # a line that was not finished would spoil the next one
                os.ftruncate(descriptor, data.rfind(b"\n") + 1)
            return JournalFile(path, descriptor, plan, lines, _damaged_line(data))
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


def plans(folder: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The plans of the journals, whichever processes have them."""
    for path in _paths(folder):
        with suppress(OSError), open_regular(path, MAX_BYTES) as file:
            plan, _ = _parse(file.readline(MAX_BYTES))
            if plan is not None:
                yield path, plan


def locked(folder: Path) -> Iterator[tuple[Path, Mapping[str, Any], list[list[Any]]]]:
    """The journals that a process works by, the newest first: path, plan and the steps up to now."""
    for path in reversed(_paths(folder)):
        with suppress(OSError, NotPerunRepository):
            if is_held(path):
                plan, lines = _parse(read_regular(path, MAX_BYTES))
                if plan is not None:
                    yield path, plan, lines


def damaged(folder: Path) -> Iterator[tuple[Path, str]]:
    """The journals that are not what was written, each with the reason; a last line may be cut short."""
    for path in _paths(folder):
        try:
            data = read_regular(path, MAX_BYTES)
        except FileNotFoundError:
            continue  # it came to its end
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
    with PathErrors(path):
        write_all(descriptor, data)
    with suppress(OSError):  # some file systems cannot; then only the power may spoil it
        os.fdatasync(descriptor)


def _prune(folder: Path) -> None:
    leftovers.sweep(folder)
    for path in _paths(folder)[: -MAX_JOURNALS + 1]:
        journal = _open(path)
        if journal is not None:
            journal.remove()
            journal.close()


def _paths(folder: Path) -> list[Path]:
    names = tree.listing(folder)
    return [folder / name for name in sorted(names) if name.endswith(SUFFIX) and name[0] != "."]
