"""Which files a program opens: told by the kernel (inotify(7)) while it runs once.

That needs no rights and no tool. An event names the file and its folder, whoever opens it, so that children
of the program are seen as well, and so is what is mapped into memory.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from perun.errors import PerunError
from perun.plugin.api import Run
from perun.process.execution import Execution

MAX_FOLDERS: Final = 1000
"""Folders that are watched at most; a user may watch some thousands in all."""
_OPENED: Final = 0x20
_OVERFLOW: Final = 0x4000
_EVENT: Final = struct.Struct("iIII")
_BUFFER: Final = 1 << 16


def opens_any(run: Run, names: Collection[str], scratch: Path, seconds: float) -> bool | None:
    """Whether one run opens one of the files; None where that cannot be told: the system does not watch
    files here, the run takes longer, or it fails.

    :param names: of regular files, relative to the folder of the run; one at least.
    :param scratch: a folder for what the run needs.
    """
    folders = {os.path.dirname(name) for name in names}
    if len(folders) > MAX_FOLDERS:
        return None
    try:
        with _watched(run.cwd, folders) as watch:
            (run.cwd / next(iter(names))).open("rb").close()
            if not watch.opened() & set(names):
                return None  # not all file systems tell
            with Execution(run, scratch, seconds) as execution:
                sample = execution.record()
            if sample.interruption is not None:
                raise sample.interruption
            found = watch.opened()
    except (PerunError, OSError, AttributeError):
        return None
    if sample.early or sample.status or watch.overflowed:
        return None
    return bool(found & set(names))


class _Watch:
    """The files that were opened in some folders.

    :ivar overflowed: whether events were lost, as there were too many.
    """

    def __init__(self, descriptor: int, folders: dict[int, str]) -> None:
        self.overflowed = False
        self._descriptor = descriptor
        self._folders = folders

    def opened(self) -> set[str]:
        """The names of those that were opened since the last call."""
        found: set[str] = set()
        while True:
            try:
                data = os.read(self._descriptor, _BUFFER)
            except BlockingIOError:
                return found
            for number, mask, name in _events(data):
                self.overflowed |= bool(mask & _OVERFLOW)
                if name:
                    found.add(os.path.join(self._folders.get(number, ""), name))


def _events(data: bytes) -> Iterator[tuple[int, int, str]]:
    """The number of the watched folder, the mask and the name of the file of each event."""
    place = 0
    while place < len(data):
        number, mask, _, size = _EVENT.unpack_from(data, place)
        place += _EVENT.size
        yield number, mask, os.fsdecode(data[place : place + size].rstrip(b"\0"))
        place += size


@contextmanager
def _watched(top: Path, folders: Collection[str]) -> Iterator[_Watch]:
    """:raises OSError: where a folder cannot be watched. :raises AttributeError: where the C library has no
    inotify."""
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    try:
        numbers = {}
        for folder in folders:
            number = library.inotify_add_watch(descriptor, os.fsencode(top / folder), _OPENED)
            if number < 0:
                raise OSError(ctypes.get_errno(), "inotify_add_watch")
            numbers[number] = folder
        yield _Watch(descriptor, numbers)
    finally:
        os.close(descriptor)
