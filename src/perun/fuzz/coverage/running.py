"""Running the program: by the fork server that is in it, or by starting it anew."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from perun.core.errors import JobFailed
from perun.core.process import programs
from perun.core.process.ending import await_end, ending_of, waited
from perun.fuzz.coverage.api import Outcome
from perun.fuzz.coverage.inputs import Input
from perun.fuzz.coverage.shared import Record

_CONTROL: Final = 198
"""The descriptor from which a fork server reads; it writes to the next one. So it is with AFL."""

_START: Final = 60.0
"""Seconds until a fork server is ready, at most."""
_END: Final = 5.0
"""Seconds that it has to end by itself."""

_SOON: Final = 0.01
"""Seconds between two looks whether a copy has got its request."""
_LONG: Final = 0.01
"""Seconds from which on it is worth asking how long a run waited for a core."""

_NEWER: Final = range(0x41464C01, 0x41464D00)
_TELLS_SIZE, _TELLS_WORDS = 0x1, 0x800
"""Versions that newer servers of AFL begin with, and what they tell: the size of the map, words."""

_CRASHES: Final = {
    signal.SIGILL,
    signal.SIGTRAP,
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGSEGV,
}


class Ended(NamedTuple):
    """How a run ended; see :class:`~perun.fuzz.coverage.api.Execution`."""

    outcome: Outcome
    code: int
    seconds: float


class NoServer(Exception):
    """The program has no fork server, or that ended before it was ready."""


class ForkServer:
    """A started program that copies itself for each run.

    :param environ: its whole environment.
    :param record: what is shared with it; None for a server of AFL, which answers with the process id of each
        copy as well.
    :param memory: most bytes of address space of the server and its copies, None for no limit.
    """

    def __init__(
        self, given: Input, cwd: Path, environ: Mapping[str, str], record: Record | None = None,
        memory: int | None = None,
    ) -> None:  # fmt: skip
        """:raises NoServer: if it does not answer."""
        to_server, self._write = os.pipe2(os.O_CLOEXEC)
        self._read, from_server = os.pipe2(os.O_CLOEXEC)

        self._record = record

        def prepare() -> None:  # in the new process
            # First out of the way: the ends of the pipes may have these numbers themselves.
            ends = (to_server, from_server)
            read, write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _CONTROL + 2) for end in ends)
            os.dup2(read, _CONTROL)
            os.dup2(write, _CONTROL + 1)
            if memory is not None:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            if record is not None:
                os.set_inheritable(record.fd, True)

        try:
            self._process = _start(given, given.argv, cwd, environ, prepare)
        except BaseException:
            self._close_pipes()
            raise
        finally:
            os.close(to_server)
            os.close(from_server)
        self.pid = self._process.pid
        self._poll = select.poll()
        self._poll.register(self._read, select.POLLIN)
        self._is_ready = False
        try:
            self._greet()
            self._is_ready = True
        except BaseException as problem:
            self.close()
            if isinstance(problem, (TimeoutError, EOFError)):
                raise NoServer from None
            raise

    def run(self, timeout: float, until: float = math.inf) -> Ended:
        """Run the program once; see :meth:`~perun.fuzz.coverage.api.Coverage.run`.

        :raises NoServer: if the server has gone.
        """
        started = time.monotonic()
        try:
            os.write(self._write, bytes(4))
            pid = self._answer(_START) if self._record is None else 0
        except (OSError, EOFError):
            raise NoServer from None
        try:
            spent = await_end(self._has_answered, lambda: self._spent(pid, started), timeout, until)
            if spent is not None:
                self._end_copy(pid)
            status = self._answer(_START) if spent is not None else self._word()
        except (TimeoutError, EOFError):
            raise NoServer from None
        except BaseException:
            self._end_copy(pid)
            raise
        return _ended(os.waitstatus_to_exitcode(status), spent, time.monotonic() - started)

    def close(self) -> None:
        """End the server, and the copy that waits for a request: both end by themselves without the pipes."""
        self._close_pipes()
        try:
            if self._is_ready:
                self._process.wait(_END)
        except programs.TimeoutExpired:
            pass
        finally:
            _kill(self.pid)
            self._process.wait()

    def _greet(self) -> None:
        """Wait until the server is ready. Newer ones of AFL agree on a version, and tell what they have."""
        hello = self._answer(_START)
        if not _NEWER.start <= hello < _NEWER.stop:
            return
        os.write(self._write, (hello ^ 0xFFFFFFFF).to_bytes(4, "little"))
        options = self._answer(_START)
        if options & _TELLS_SIZE:
            self._answer(_START)
        if options & _TELLS_WORDS:
            left = self._answer(_START)
            while left > 0:
                left -= len(os.read(self._read, left)) or left
        if self._answer(_START) != hello:
            raise EOFError

    def _spent(self, pid: int, started: float) -> float:
        """Seconds that a copy has had since its request, but for those in which it waited for a core.

        :raises TimeoutError: if it does not get its request.
        """
        now = time.monotonic()
        begun: float | None = started
        if self._record is not None:
            pid, begun = self._record.copy, self._record.begun
        if begun is None:
            if now - started > _START:
                raise TimeoutError
            return 0.0
        return max(0.0, now - begun - waited(pid))

    def _end_copy(self, pid: int) -> None:
        """Kill the copy that has got the request, or will get it when it has a core again."""
        end = time.monotonic() + _START
        while self._record is not None and self._record.begun is None and time.monotonic() < end:
            if self._has_answered(_SOON):
                return
        pid = pid or (self._record.copy if self._record is not None else 0)
        if pid:
            _kill(pid)

    def _close_pipes(self) -> None:
        for end in (self._read, self._write):
            with contextlib.suppress(OSError):
                os.close(end)

    def _has_answered(self, timeout: float) -> bool:
        """Wait for the next word of the server, or for its end."""
        return bool(self._poll.poll(timeout * 1000))

    def _answer(self, timeout: float) -> int:
        """The next word of the server; TimeoutError if it does not come, EOFError if it never will."""
        if not self._has_answered(timeout):
            raise TimeoutError
        return self._word()

    def _word(self) -> int:
        """The word that is there; EOFError if none will ever be."""
        word = os.read(self._read, 4)
        if len(word) < 4:
            raise EOFError
        return int.from_bytes(word, "little", signed=True)


def spawn(
    given: Input, data: bytes, cwd: Path, environ: Mapping[str, str], timeout: float, until: float,
    memory: int | None = None, inherit: Sequence[int] = (),
) -> Ended:  # fmt: skip
    """Start the program for one run; see :meth:`~perun.fuzz.coverage.api.Coverage.run`.

    :param memory: most bytes of address space, None for no limit.
    :param inherit: descriptors that it inherits.
    :raises JobFailed: if it cannot be started.
    """
    started = time.monotonic()
    process = _start(given, given.words(data), cwd, environ, inherit=inherit)

    def computed() -> float:
        return max(0.0, time.monotonic() - started - waited(process.pid))

    spent: float | None = 0.0
    seconds = 0.0
    try:
        if memory is not None:
            resource.prlimit(process.pid, resource.RLIMIT_AS, (memory, memory))
        resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
        with ending_of(process.pid) as has_ended:
            spent = await_end(has_ended, computed, timeout, until)
        seconds = time.monotonic() - started
        if seconds >= _LONG:
            seconds = computed()
    finally:
        _kill(process.pid)
        process.wait()
    return _ended(process.returncode, spent, seconds)


def _start(
    given: Input, words: Sequence[str | bytes], cwd: Path, environ: Mapping[str, str],
    prepare: Callable[[], None] | None = None, inherit: Sequence[int] = (),
) -> programs.Program:  # fmt: skip
    """Start the program; without `prepare` this takes a quarter of the time.

    :raises JobFailed: if it cannot be started.
    """
    stdin = given.stdin
    try:
        return programs.Program(
            words,
            executable=given.program,
            stdin=programs.DEVNULL if stdin is None else stdin,
            stdout=programs.DEVNULL,
            stderr=programs.DEVNULL,
            cwd=cwd,
            environ=environ,
            close_fds=prepare is None,
            inherit=inherit,
            preexec_fn=prepare,
        )
    except OSError as problem:
        raise JobFailed(f"cannot run {given.program} in {cwd}: {problem.strerror}") from None


def _ended(code: int, spent: float | None, seconds: float) -> Ended:
    """How a run ended that took so many seconds, or was ended after it had `spent` so many.

    An exit code like 139 is what a shell, or a script around the program, makes of a crash.
    """
    if spent is not None:
        return Ended("hang", code, spent)
    crashed = code < 0 or code - 128 in _CRASHES
    return Ended("fault" if crashed else "ok", code, seconds)


def _kill(group: int) -> None:
    """End all processes of a group, or the process where it leads none."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(group, signal.SIGKILL)
            return
