"""Runs one prepared command, once or many times, with nothing between the two readings of the clock but it.

The command is started by `posix_spawn` and reaped by `wait4`, which knows its user and system time; there
is no shell and no `time` utility in between. Whatever can be prepared is done once, before the first run.
It gets a process group of its own, so that whatever it starts can be ended with it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from time import monotonic, perf_counter_ns
from typing import Any, Final, NamedTuple

from perun.core.atomic import PathErrors
from perun.core.errors import CollectorUnavailable, JobFailed
from perun.core.process import ending
from perun.core.process.command import Command, Run, find_executable, last_lines
from perun.core.process.ending import (
    GRACE,
    INTERRUPTIONS,
    await_end,
    ended_confined,
    ended_when,
    ending_of,
    guard,
    kill,
    kill_group,
    kill_left_behind,
    stop,
    waited,
    waited_at_end,
)

# The standard streams of a command: what it reads, and where what it writes goes.

REPEATABLE = "the command runs several times: name a regular file as its standard input"
"""Hint if the standard input of a command can be read only once."""


class Output(Enum):
    """What becomes of what a command writes. Standard error goes to a file of its own unless it is shown."""

    DISCARD = "discard"
    """Standard output is thrown away."""
    KEEP = "keep"
    """Standard output goes to a file of its own."""
    SHOW = "show"
    """Both go where those of Perun go."""
    COPY = "copy"
    """Both go to one file and to the standard output of Perun."""


@contextlib.contextmanager
def opened(path: str | Path, flags: int) -> Iterator[int]:
    """The descriptor of a file, which programs that are started do not inherit; closed afterwards."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def input_of(command: Command, cwd: Path, scratch: Path) -> Path:
    """The file that is the standard input of the command; a text is put into one in `scratch`."""
    if command.stdin_text is not None:
        return scratch / "stdin"
    return Path(os.devnull) if command.stdin_file is None else cwd / command.stdin_file


@contextlib.contextmanager
def standard_input(command: Command, cwd: Path, scratch: Path, *, single_run: bool) -> Iterator[int]:
    """The descriptor of what the command reads: a file, the text of its workload, or nothing.

    :param cwd: where a file is looked for. :param scratch: where text is put into a file.
    :param single_run: the command is run once, so that it may read a pipe, which cannot be read again.
    :raises JobFailed: if the file cannot be read, or not as often as the command is run.
    """
    path = input_of(command, cwd, scratch)
    if command.stdin_text is not None:
        path.write_bytes(command.stdin_text.encode("utf-8", "surrogateescape"))
    refused = f"cannot read the workload {command.stdin_file!r}"
    hint = "its path is relative to the folder of the run; to build it first, set execute.pre_run"
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISFIFO(mode) and not single_run:
            raise JobFailed(f"{refused} more than once: {path} is a pipe, not a file", REPEATABLE)
        if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
            raise JobFailed(f"{refused}: {path} is not a file", hint)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        raise JobFailed(f"{refused}: {path}: {problem.strerror}", hint) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def copied(kept: int) -> Iterator[int]:
    """The descriptor of a pipe; what is written to it goes to a file and to the standard output of Perun.

    At the end all of it has been copied, but for what processes write that go on for longer than
    :data:`~perun.core.process.ending.GRACE`.

    :param kept: the descriptor of the file.
    """
    source, sink = os.pipe2(os.O_CLOEXEC)
    copier = threading.Thread(target=_copy, args=(source, kept), daemon=True)
    ending.start(copier)
    try:
        yield sink
    finally:
        os.close(sink)
        copier.join(GRACE)
        if not copier.is_alive():
            os.close(source)


def _copy(source: int, kept: int) -> None:
    """Copy to the end, to what still takes it: a command whose pipe nobody reads would wait for ever."""
    sinks = [kept]
    with contextlib.suppress(OSError, ValueError):
        sinks.append(sys.stdout.fileno())
    while piece := os.read(source, 1 << 16):
        for sink in list(sinks):
            try:
                _write_waiting(sink, piece)
            except OSError:  # its reader has gone (`| head`), or its disk is full
                sinks.remove(sink)


def _write_waiting(sink: int, piece: bytes) -> None:
    """Write all of it, also to a pipe or terminal that another program has made non-blocking."""
    rest = memoryview(piece)
    while rest:
        try:
            rest = rest[os.write(sink, rest) :]
        except BlockingIOError:
            ready = select.poll()
            ready.register(sink, select.POLLOUT)
            ready.poll()


TIMEOUT: Final = "timeout"
INTERRUPTED: Final = "interrupted"
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)
_WANTS_TERMINAL: Final = (signal.SIGTTIN, signal.SIGTTOU)
_OUTPUT_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class RunSample(NamedTuple):
    """One run: real, user and system time in seconds, and the status as `wait4` gives it (0 is success).

    Where the run was stopped, `early` is :data:`TIMEOUT` or :data:`INTERRUPTED`, `real` the seconds until
    then, and `interruption` the exception that interrupted it. `confined` says that a signal ended a process
    that had taken system calls from itself (seccomp), or tried one of these. `waited` are the seconds that
    the first thread of the process was ready and had no core, 0 where the kernel does not tell.
    """

    real: float
    user: float
    system: float
    status: int
    early: str = ""
    interruption: BaseException | None = None
    confined: bool = False
    waited: float = 0.0


class Execution:
    """A command that is ready to run, in the folder of its run.

    A context manager: inside, the current directory of this process is that of the run, for `posix_spawn`
    cannot set one; it is what it was again afterwards.

    :param scratch: folder for the standard error of the command and for a standard input given as text.
    :param timeout: seconds after which a run is stopped; 0 for never.
    :param output: what becomes of what the command writes; or the descriptor of a file for all of it, or two:
        for its standard output and for its standard error.
    :param engine: the words of an engine that starts the command and records it, in place of those of the
        command.
    :param single_run: the command is run once, so that it may read a pipe.
    :param core: the number of the processor that the command is to stay on; None for any.
    :param grace: seconds that a run which is stopped has to end by itself.
    :param while_it_can_run: count the time only while the command has a core or waits for something else, not
        while others have all cores.
    :param end_group: kill what the command has started and left running in its process group; else that goes
        on, as a server that it starts for the commands after it.
    :param is_over: whether the engine, whose process id it is given, waits for what has ended already; it is
        asked to end then.
    """

    def __init__(
        self,
        run: Run,
        scratch: Path,
        timeout: float = 0.0,
        *,
        output: Output | int | tuple[int, int] = Output.DISCARD,
        engine: Sequence[str] = (),
        single_run: bool = False,
        core: int | None = None,
        grace: float = GRACE,
        end_group: bool = False,
        while_it_can_run: bool = False,
        is_over: Callable[[int], bool] | None = None,
    ) -> None:
        self.command = run
        self._scratch = scratch
        self._timeout = timeout
        self._output = output
        self._engine = list(engine)
        self._single_run = single_run
        self._core = core
        self._grace = grace
        self._end_group = end_group
        self._while_it_can_run = while_it_can_run
        self._is_over = is_over
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Execution:
        with contextlib.ExitStack() as stack:
            self._prepare(stack)
            self._resources = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._resources.close()

    def run(self) -> RunSample:
        """Run the command once and wait for it; its failure is in the status.

        :raises JobFailed: if it cannot be started, takes longer than the timeout or wants a terminal.
        """
        sample = self.record()
        if sample.interruption is not None:
            raise sample.interruption
        if sample.early:
            raise JobFailed(
                f"the command {str(self.command)!r} did not end within {self._timeout:g} s",
                "give it more time with --timeout, or a smaller workload",
            )
        return sample

    def record(self) -> RunSample:
        """As :meth:`run`, but a run that is stopped by the timeout or interrupted has a sample, too.

        Whoever calls this keeps what was recorded by then, and raises the interruption afterwards. A second
        interruption, while the command is being ended, is raised at once.

        :raises JobFailed: if the command cannot be started or wants a terminal.
        """
        self._begin()
        if self._output is not Output.COPY or self._errors is None:
            return self._recorded(self._spawning)
        with copied(self._errors) as pipe:
            actions = [(os.POSIX_SPAWN_DUP2, self._stdin, 0)]
            actions += [(os.POSIX_SPAWN_DUP2, pipe, number) for number in (1, 2)]
            return self._recorded({**self._spawning, "file_actions": actions})

    def _recorded(self, spawning: dict[str, Any]) -> RunSample:
        pid, place = 0, None
        early, interruption, has_ended = "", None, False
        try:
            # While these are held back no exception can come between the start and knowing whom to kill.
            signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
            place = self._guard.starting() if self._guard else None
            with _bound_to(self._core):
                start = perf_counter_ns()
                pid = os.posix_spawn(self._path, self._argv, self._environ, **spawning)
            if self._guard:
                self._guard.add(pid, place)
            with ended_when(pid, self._is_over):
                try:
                    signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
                    has_ended = self._has_ended(pid)
                    end = perf_counter_ns()
                except (KeyboardInterrupt, SystemExit) as problem:
                    end = perf_counter_ns()
                    early, interruption = INTERRUPTED, problem
                if not has_ended:
                    early = early or TIMEOUT
                    stop(pid, engine=bool(self._engine), grace=self._grace)
            # An interruption between the end of the process and this would lose its status.
            signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
            if self._engine:
                kill_left_behind(pid)
            if self._end_group:
                kill_group(pid)
            self._unguard(pid)
            confined = has_ended and ended_confined(pid)
            without_core = waited_at_end(pid) if has_ended else 0.0
            _, status, usage = os.wait4(pid, 0)
            pid = 0
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        except BaseException as problem:
            if pid:
                kill(pid)
                self._unguard(pid)
            elif self._guard:
                self._guard.free(place)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            if not pid and isinstance(problem, (OSError, ValueError)):
                raise self._not_started(problem) from None
            raise
        times = (end - start) / 1e9, usage.ru_utime, usage.ru_stime
        return RunSample(*times, status, early, interruption, confined, without_core)

    def set_variable(self, name: str, value: str) -> None:
        """Give the runs from now on this variable of the environment."""
        self._environ[name] = value

    def output(self, stream: str) -> Path:
        """The file with what the last run wrote to `stdout` or `stderr`, if that is kept.

        With :data:`Output.COPY` both are in `output`.
        """
        return self._scratch / stream

    def last_errors(self) -> list[str]:
        """The last lines that the last run wrote to its standard error, without control characters.

        There are none if they were shown, or went to the file of somebody else.
        """
        return last_lines(self._errors) if self._errors is not None else []

    def _unguard(self, pid: int) -> None:
        if self._guard:
            self._guard.remove(pid)

    def _prepare(self, stack: contextlib.ExitStack) -> None:
        run = self.command
        if self._timeout and not hasattr(os, "pidfd_open"):
            raise CollectorUnavailable("a timeout needs Linux 5.3 or newer", "measure without --timeout")
        command = run.command()
        try:
            folder = stack.enter_context(opened(run.cwd, os.O_PATH | os.O_DIRECTORY))
        except OSError as problem:
            raise JobFailed(f"cannot run in {run.cwd}: {problem.strerror}") from None
        self._argv = self._engine or command.argv
        self._path = find_executable(self._argv[0], run.cwd, run.environ)
        self._environ = dict(run.environ)
        self._stdin = stack.enter_context(
            standard_input(command, run.cwd, self._scratch, single_run=self._single_run)
        )
        self._truncated: dict[Path, int] = {}
        self._errors: int | None = None
        out, errors = self._opened_outputs(stack)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._mask = mask
        self._spawning: dict[str, Any] = {
            "file_actions": [
                (os.POSIX_SPAWN_DUP2, descriptor, number)
                for number, descriptor in enumerate((self._stdin, out, errors))
                if descriptor is not None
            ],
            "setpgroup": 0,
            "setsigmask": mask,
            "setsigdef": _IGNORED_BY_PYTHON,
        }
        self._guard = guard()
        stack.enter_context(_inside(folder))

    def _opened_outputs(self, stack: contextlib.ExitStack) -> tuple[int | None, int | None]:
        """Descriptors for standard output and error; None if they are inherited."""
        if isinstance(self._output, int):
            return self._output, self._output
        if isinstance(self._output, tuple):
            return self._output
        if self._output is Output.SHOW:
            return None, None
        if self._output is Output.COPY:
            self._errors = self._emptied("output", stack)
            return None, None  # each run gets a pipe of its own
        self._errors = self._emptied("stderr", stack)
        if self._output is Output.DISCARD:
            return stack.enter_context(opened(os.devnull, os.O_WRONLY)), self._errors
        return self._emptied("stdout", stack), self._errors

    def _emptied(self, stream: str, stack: contextlib.ExitStack) -> int:
        """The descriptor of a file that each run begins anew."""
        path = self.output(stream)
        descriptor = self._truncated[path] = stack.enter_context(opened(path, _OUTPUT_FLAGS))
        return descriptor

    def _begin(self) -> None:
        if not self._single_run:
            try:
                os.lseek(self._stdin, 0, os.SEEK_SET)
            except OSError:
                what = f"cannot read {self.command.workload!r} more than once"
                raise JobFailed(what, REPEATABLE) from None
        for path, descriptor in self._truncated.items():
            with PathErrors(path):
                os.ftruncate(descriptor, 0)

    def _has_ended(self, pid: int) -> bool:
        """Wait for the end of the process, but leave its status to be taken; False if its time is over."""
        if self._timeout and not self._ends_in_time(pid):
            return False
        while True:
            change = os.waitid(os.P_PID, pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
            if change is None or change.si_code != os.CLD_STOPPED:
                return True
            os.waitid(os.P_PID, pid, os.WSTOPPED)
            if change.si_status in _WANTS_TERMINAL:
                raise JobFailed(
                    f"the command {str(self.command)!r} reads from the terminal",
                    "give it a file as standard input with the workload '< file'",
                )

    def _ends_in_time(self, pid: int) -> bool:
        begun = monotonic()

        def spent() -> float:
            return monotonic() - begun - (waited(pid) if self._while_it_can_run else 0.0)

        with ending_of(pid) as has_ended:
            return await_end(has_ended, spent, self._timeout) is None

    def _not_started(self, problem: OSError | ValueError) -> JobFailed:
        code = problem.errno if isinstance(problem, OSError) else None
        reasons = {
            errno.ENOENT: "the interpreter in its first line does not exist",
            errno.ENOEXEC: "it is neither a program for this machine nor a script that begins with '#!'",
        }
        reason = reasons.get(code or 0) or (os.strerror(code) if code else str(problem))
        return JobFailed(f"cannot start {self._path}: {reason}")


@contextlib.contextmanager
def _bound_to(core: int | None) -> Iterator[None]:
    """Keep this thread, and so what it starts in the block, on one processor.

    :raises OSError: if the processor may not be used.
    """
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def _inside(folder: int) -> Iterator[None]:
    before = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fchdir(folder)
        yield
    finally:
        os.fchdir(before)
        os.close(before)
