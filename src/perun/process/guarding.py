"""Nothing that is measured outlives Perun: a small program ends it where Perun itself is killed.

The program of `native/guard.c` is started with the first command. It shares an array with Perun, to which a
command is written when it starts and from which it is removed when it has ended. `kill -9` may come between
the start of a command and its being written down, which is a few microseconds after.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
from mmap import mmap
from pathlib import Path
from struct import Struct
from typing import Final

GUARD: Final = Path(__file__).with_name("perun_guard")
_NUMBER: Final = Struct("=i")  # pid_t
_PLACES: Final = 256
_SHARED: Final = 3
"""The descriptor of the shared file in the guard."""


class Guard:
    """The commands that run now, as the guard knows them.

    Where it cannot be started commands run nevertheless, without it.
    """

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._free = list(range(_PLACES))
        self._places: dict[int, int] = {}
        shared = os.memfd_create("perun-guard", os.MFD_CLOEXEC)
        try:
            os.ftruncate(shared, _PLACES * _NUMBER.size)
            self._memory = mmap(shared, _PLACES * _NUMBER.size)
            null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
            actions = [*null, (os.POSIX_SPAWN_DUP2, shared, _SHARED)]
            argv = [str(GUARD), str(self.owner)]
            self._pid = os.posix_spawn(GUARD, argv, {}, file_actions=actions, setpgroup=0)
        finally:
            os.close(shared)

    def add(self, pid: int, ask: bool = False) -> None:
        """A command has started; it leads a process group, or that of Perun goes on without it.

        :param ask: it is asked to end first, by SIGTERM.
        """
        if self._free:
            self._places[pid] = self._free.pop()
            _NUMBER.pack_into(self._memory, self._places[pid] * _NUMBER.size, -pid if ask else pid)

    def remove(self, pid: int) -> None:
        """A command has ended, or is ended by Perun itself."""
        place = self._places.pop(pid, None)
        if place is not None:
            _NUMBER.pack_into(self._memory, place * _NUMBER.size, 0)
            self._free.append(place)

    def end(self) -> None:
        """End the guard, unless a command still runs; in a container perhaps nobody else waits for it."""
        if self.owner == os.getpid() and not self._places:
            with contextlib.suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)


_guard: Guard | None = None


def guard() -> Guard | None:
    """The guard of this process, started if it is not; None where it cannot be."""
    global _guard
    if _guard is None or _guard.owner != os.getpid():  # a forked process has its own
        _guard = None
        with contextlib.suppress(OSError, AttributeError):
            _guard = Guard()
            atexit.register(_guard.end)
    return _guard
