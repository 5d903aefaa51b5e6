"""One measurement at a time on a machine, whichever schedulers and workers it has.

The lock is a file in `/tmp` that the kernel locks (`flock`). Builds share it, a measurement has it alone, so
that neither another measurement nor a build disturbs one. The guard of :mod:`perun.process` inherits it,
which kills the measured program where the process of the job is killed: so it is free only when that is gone.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from perun.errors import NotPerunRepository
from perun.process.guarding import guard

FOLDER: Final = Path("/tmp")
"""Not that of TMPDIR: users of a machine have others, and must meet at the same file."""
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_FIRST: Final = 64
"""Descriptors from here on: the guard puts its own at small numbers."""


class MachineLock:
    """The lock of the machine of that name; close it at the end."""

    def __init__(self, machine: str, folder: Path = FOLDER) -> None:
        self.path = folder / f"perun-pool-{re.sub(r'[^A-Za-z0-9._-]', '_', machine)}.lock"
        self._descriptor = _opened(self.path)
        self._guarded = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold it with others: nothing is measured meanwhile."""
        self._take(fcntl.LOCK_SH)
        try:
            yield
        finally:
            self.release()

    def alone(self) -> None:
        """Wait until nobody else holds it, and hold it alone; :meth:`release` ends that."""
        self._take(fcntl.LOCK_EX)

    def release(self) -> None:
        """Let others have it."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let others have it for good."""
        self.release()
        os.close(self._descriptor)

    def _take(self, how: int) -> None:
        if not self._guarded:  # before the first command: the guard inherits it, no command does
            os.set_inheritable(self._descriptor, True)
            guard()
            os.set_inheritable(self._descriptor, False)
            self._guarded = True
        fcntl.flock(self._descriptor, how)


def _opened(path: Path) -> int:
    """The file, which the first user of the machine makes and any other may lock."""
    for _ in range(2):
        try:
            return _checked(path, os.open(path, _FLAGS))
        except FileNotFoundError:
            with suppress(FileExistsError):
                os.close(os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o644))
        except OSError:
            break
    raise _wrong(path)


def _checked(path: Path, descriptor: int) -> int:
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _wrong(path)
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST)
    finally:
        os.close(descriptor)


def _wrong(path: Path) -> NotPerunRepository:
    return NotPerunRepository(
        f"{path} cannot be the lock of this machine", "remove it; Perun makes a new one"
    )
