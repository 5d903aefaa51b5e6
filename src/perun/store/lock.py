"""One lock per repository: whoever writes to the store holds it, readers never do."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from perun.core.errors import LockTimeout, NotPerunRepository

_RELEASED = b"\n"
"""First byte of the file of a lock that its last holder released; else it names the holder."""
_LONGEST_LOOK = 5.0
"""Seconds for which a process that looks whether a lock is held may keep others from taking it."""
_BUSY = (errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN)


def try_lock(descriptor: int, path: Path) -> bool:
    """Lock the open file `path` for this process, if no other one holds it; whether it is locked now.

    Who only looks (:func:`is_locked`) is waited for: it shares the lock for a moment.

    :raises NotPerunRepository: if the file system has no locks, as some of a network.
    """
    deadline = time.monotonic() + _LONGEST_LOOK
    while not _flock(descriptor, path, fcntl.LOCK_EX):
        if is_locked(descriptor, path) or time.monotonic() > deadline:
            return False
        time.sleep(random.uniform(0.0001, 0.001))  # two that look at the same time look again at others
    return True


def is_locked(descriptor: int, path: Path) -> bool:
    """Whether another process holds the lock of the open file `path`, which nobody loses or misses by it.

    :raises NotPerunRepository: as :func:`try_lock`.
    """
    if not _flock(descriptor, path, fcntl.LOCK_SH):
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


def is_held(path: Path) -> bool:
    """Whether a process holds the :class:`Lock` of that path; not if there is no such file.

    :raises NotPerunRepository: as :func:`try_lock`.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return is_locked(descriptor, path)
    finally:
        os.close(descriptor)


def _flock(descriptor: int, path: Path, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except OSError as problem:
        if problem.errno in _BUSY:
            return False
        raise NotPerunRepository(
            f"{path} cannot be locked: {problem.strerror}",
            "keep the repository on a file system that supports flock",
        ) from problem
    return True


class Lock:
    """An exclusive lock between processes; within one process the thread that holds it may take it again.

    The kernel releases it when its holder ends, however it ends. The file names the holder for those who
    wait in vain; it is never removed, as another process may be about to lock it.

    :param timeout: seconds to wait for another holder.
    :param after_kill: called by who takes the lock after a holder that did not come to release it.
    """

    def __init__(
        self, path: Path, timeout: float = 60.0, after_kill: Callable[[], object] | None = None
    ) -> None:
        self._path = path
        self._timeout = timeout
        self._after_kill = after_kill
        self._thread = threading.RLock()
        self._depth = 0
        self._descriptor = -1

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock for a `with` block.

        :raises LockTimeout: names the process that holds it.
        :raises NotPerunRepository: if the lock file cannot be opened for writing.
        """
        if not self._thread.acquire(timeout=self._timeout):
            raise LockTimeout(f"another thread of this process holds {self._path}", "try again later")
        try:
            if self._depth == 0:
                self._acquire()
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._release()
        finally:
            self._thread.release()

    def _acquire(self) -> None:
        """Take the lock for this process; where it is not a file, a subclass does."""
        descriptor = self._open()
        try:
            self._wait(descriptor)
            killed = os.pread(descriptor, 1, 0) not in (b"", _RELEASED)
            with suppress(OSError):  # on a full disk at least `perun rm` must still work
                # Emptied first, the file would be written to the disk when it is closed (ext4, xfs): 1 ms.
                holder = f"{os.getpid()} {' '.join(sys.argv)}\n".encode(errors="replace")
                os.pwrite(descriptor, holder, 0)
                os.ftruncate(descriptor, len(holder))
            if killed and self._after_kill is not None:
                with suppress(OSError):
                    self._after_kill()
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def _release(self) -> None:
        """Give back what :meth:`_acquire` took."""
        with suppress(OSError):
            os.pwrite(self._descriptor, _RELEASED, 0)
        os.close(self._descriptor)

    def _open(self) -> int:
        # Its file is written to: a link that a clone brings would have another file overwritten.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = os.open(self._path, flags, 0o666)
        except OSError as problem:
            if problem.errno == errno.ELOOP:
                raise self._irregular() from None
            raise NotPerunRepository(
                f"the repository cannot be locked: {self._path}: {problem.strerror}",
                "run perun init first, or get permission to write there",
            ) from problem
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise self._irregular()
        return descriptor

    def _irregular(self) -> NotPerunRepository:
        return NotPerunRepository(
            f"{self._path} is a link or no regular file, so that it cannot be the lock of the repository",
            "remove it; Perun makes a new one",
        )

    def _wait(self, descriptor: int) -> None:
        deadline = time.monotonic() + self._timeout
        pause = 0.002
        while True:
            if try_lock(descriptor, self._path):
                return
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise self._timed_out(descriptor)
            time.sleep(min(pause, remaining))
            pause = min(pause * 2, 0.05)

    def _timed_out(self, descriptor: int) -> LockTimeout:
        pid, _, command = os.pread(descriptor, 4096, 0).decode(errors="replace").strip().partition(" ")
        holder = f"process {pid} ({command})" if pid else "another process"
        return LockTimeout(
            f"{holder} holds the lock {self._path}; waited {self._timeout:g} s",
            "wait until it ends, or end it; the lock goes with the process",
        )
