"""Running the program: by the fork server that is in it, or by starting it anew."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import math
import os
import resource
import select
import signal
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy
from numpy.typing import NDArray

from perun.core.errors import JobFailed
from perun.core.process import programs
from perun.core.process.ending import await_end, ending_of, waited
from perun.fuzz.coverage import shared
from perun.fuzz.coverage.api import Coverage, CoverageRun, CoverageTarget, Outcome
from perun.fuzz.coverage.inputs import TargetInput
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


class RunExit(NamedTuple):
    """How a run ended; see :class:`~perun.fuzz.coverage.api.CoverageRun`."""

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
        self, given: TargetInput, cwd: Path, environ: Mapping[str, str], record: Record | None = None,
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

    def run(self, timeout: float, until: float = math.inf) -> RunExit:
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
        code = 0 if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)  # stopped after its round
        return _ended(code, spent, time.monotonic() - started)

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
    given: TargetInput, data: bytes, cwd: Path, environ: Mapping[str, str], timeout: float, until: float,
    memory: int | None = None, inherit: Sequence[int] = (),
) -> RunExit:  # fmt: skip
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
    given: TargetInput, words: Sequence[str | bytes], cwd: Path, environ: Mapping[str, str],
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


def _ended(code: int, spent: float | None, seconds: float) -> RunExit:
    """How a run ended that took so many seconds, or was ended after it had `spent` so many.

    An exit code like 139 is what a shell, or a script around the program, makes of a crash.
    """
    if spent is not None:
        return RunExit("hang", code, spent)
    crashed = code < 0 or code - 128 in _CRASHES
    return RunExit("fault" if crashed else "ok", code, seconds)


def _kill(group: int) -> None:
    """End all processes of a group, or the process where it leads none."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(group, signal.SIGKILL)
            return


# Running a program that shares its counters: in copies, or started anew where it cannot be copied.

# Whether a program opens its input before it is copied: then all copies would see the same one.

_OPENED: Final = 0x20  # IN_OPEN
_READ: Final = 0x01  # IN_ACCESS


class FileWatch:
    """Watches one file, where the kernel lets us (inotify); elsewhere nothing is seen."""

    def __init__(self, path: Path) -> None:
        self._fd = -1
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(None, use_errno=True)
            self._fd = int(library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
            if self._fd >= 0:
                library.inotify_add_watch(self._fd, os.fsencode(path), ctypes.c_uint32(_OPENED | _READ))

    def saw_something(self) -> bool:
        """Whether the file was opened or read since; ends the watch."""
        if self._fd < 0:
            return False
        try:
            return bool(os.read(self._fd, 4096))
        except BlockingIOError:
            return False
        finally:
            os.close(self._fd)
            self._fd = -1


SLOWER = "the program is started anew for each input, which is slower: "
"""What a note begins with."""


class RunMode(Protocol):
    """One way to run the program."""

    def run(self, data: bytes, timeout: float, until: float = math.inf) -> RunExit:
        """Run it once; the input is written already, but for one that is an argument.

        :raises JobFailed: if it can be run no more.
        """
        ...

    def close(self) -> None:
        """End what is left."""
        ...


class SharedCounters(NamedTuple):
    """A way with the record that holds the counters, and what the user should know of it."""

    way: RunMode
    record: Record
    note: str


def share(
    target: CoverageTarget,
    given: TargetInput,
    make: Callable[[bool], Record],
    environ: Callable[[Record], Mapping[str, str]],
) -> SharedCounters:
    """The fastest way to run the program that works.

    :param make: makes the record, for a program that is started anew if its argument is true.
    :param environ: the environment that tells the program of the record.
    """
    watch = FileWatch(given.path)
    record = make(False)
    copying = ForkMode(target, given, record, environ(record))
    try:
        copying.start()
    except NoServer:
        reason = copying.reason()
        watch.saw_something()
    else:
        if not watch.saw_something():
            return SharedCounters(copying, record, "")
        reason = "it reads its input before main"
    copying.close()
    record = make(True)
    return SharedCounters(StartMode(target, given, record, environ(record)), record, SLOWER + reason)


class ForkMode:
    """By the fork server, which is started again should it end."""

    def __init__(
        self, target: CoverageTarget, given: TargetInput, record: Record, environ: Mapping[str, str]
    ) -> None:
        self._target = target
        self._given = given
        self._record = record
        self._environ = environ
        self._server: ForkServer | None = None

    def start(self) -> None:
        """:raises NoServer: if it cannot be used."""
        self._server = ForkServer(self._given, self._target.cwd, self._environ, self._record)

    def reason(self) -> str:
        """Why it did not start."""
        if self._record.state == shared.THREADS:
            return "it starts threads before main"
        if self._record.state == shared.REFUSED:
            return f"sharing its counters failed ({os.strerror(self._record.problem)})"
        return "it ends before main"

    def run(self, data: bytes, timeout: float, until: float = math.inf) -> RunExit:
        """Run the program in a copy."""
        if self._given.index:
            self._record.set_argument(self._given.argument(data))
        for _ in range(2):
            try:
                if self._server is None:
                    self.start()
                assert self._server is not None
                ended = self._server.run(timeout, until)
                if ended.outcome == "hang":
                    return ended
                return RunExit(ended.outcome, ended.code, self._record.seconds)
            except NoServer:
                self._end()
        why = "run it by hand with the same input"
        if self._record.state == shared.REFUSED:
            why = f"the system refused to copy it: {os.strerror(self._record.problem)}"
        raise JobFailed(f"{self._given.program} ended while it was copied for its next input", why)

    def close(self) -> None:
        """End the server."""
        self._end()
        self._record.close()

    def _end(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


class StartMode:
    """By starting the program for each run."""

    def __init__(
        self, target: CoverageTarget, given: TargetInput, record: Record, environ: Mapping[str, str]
    ) -> None:
        self._target = target
        self._given = given
        self._record = record
        self._environ = environ

    def run(self, data: bytes, timeout: float, until: float = math.inf) -> RunExit:
        """Start it; an input that is an argument is among its words."""
        self._record.clear()
        target = self._target
        inherit = (self._record.fd,)
        return spawn(self._given, data, target.cwd, self._environ, timeout, until, target.memory, inherit)

    def close(self) -> None:
        """Give the record back."""
        self._record.close()


# What all ways to count have in common: a run, and the end.


class CounterCoverage(Coverage):
    """A coverage whose :meth:`start` sets the input and the way to run the program; where it was closed, the
    next run starts it again.

    :param scratch: an empty folder.
    """

    def __init__(self, target: CoverageTarget, scratch: Path) -> None:
        self.note = ""
        self._target = target
        self._scratch = scratch
        self._given: TargetInput | None = None
        self._way: RunMode | None = None

    def run(self, data: bytes, timeout: float, until: float = math.inf) -> CoverageRun:
        """Run the program on `data`."""
        if self._way is None or self._given is None:
            self.start()
        assert self._way is not None and self._given is not None
        self._given.write(data)
        try:
            ended = self._way.run(data, timeout, until)
        except BaseException:
            self.close()
            raise
        counts = self._counts()
        total = int(numpy.add.reduce(counts))  # as sum(), which takes twice as long for a few counts
        return CoverageRun(ended.outcome, ended.code, total, counts, ended.seconds)

    def close(self) -> None:
        """End the program."""
        if self._way is not None:
            self._way.close()
            self._way = None
        if self._given is not None:
            self._given.close()
            self._given = None

    @abstractmethod
    def _counts(self) -> NDArray[numpy.int64]:
        """A copy of the counts of the last run."""
