"""Runs one prepared command many times, with nothing between the two readings of the clock but the command.

The command is started by `posix_spawn` and reaped by `wait4`, which knows its user and system time; there
is no shell and no `time` utility in between. Whatever can be prepared is done once, before the first run.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import stat
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final, NamedTuple

from perun.errors import CollectorUnavailable, JobFailed
from perun.plugin.api import Command, Run

ALL_THE_SAME: Final = "repair the command, or measure it all the same with --ignore-failure (-i)"
"""What to do about a command that fails."""
_TAIL_LINES: Final = 10
_TAIL_BYTES: Final = 16 * 1024
_LINE_LIMIT: Final = 300
_INTERRUPTIONS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)
_WANTS_TERMINAL: Final = (signal.SIGTTIN, signal.SIGTTOU)


class Sample(NamedTuple):
    """One run: real, user and system time in seconds, and the status as `wait4` gives it (0 is success)."""

    real: float
    user: float
    system: float
    status: int


class Execution:
    """A command that is ready to run, in the folder of its run.

    A context manager: inside, the current directory of this process is that of the run, for `posix_spawn`
    cannot set one; it is what it was again afterwards.

    :param scratch: folder for the standard error of the command and for a standard input given as text.
    :param timeout: seconds after which a run is killed; 0 for never.
    :param keep_output: write standard output to a file, see :meth:`output`; it is thrown away otherwise.
    """

    def __init__(self, run: Run, scratch: Path, timeout: float = 0.0, *, keep_output: bool = False) -> None:
        self.command = run
        self._scratch = scratch
        self._timeout = timeout
        self._keep_output = keep_output
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Execution:
        with contextlib.ExitStack() as stack:
            self._prepare(stack)
            self._resources = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._resources.close()

    def _prepare(self, stack: contextlib.ExitStack) -> None:
        run = self.command
        if self._timeout and not hasattr(os, "pidfd_open"):
            raise CollectorUnavailable("a timeout needs Linux 5.3 or newer", "measure without --timeout")
        command = run.command()
        try:
            folder = stack.enter_context(_opened(run.cwd, os.O_PATH | os.O_DIRECTORY))
        except OSError as problem:
            raise JobFailed(f"cannot run in {run.cwd}: {problem.strerror}") from None
        self._argv = command.argv
        self._path = find_executable(command.argv[0], run.cwd, run.environ)
        self._environ = dict(run.environ)
        self._stdin = stack.enter_context(_standard_input(command, run.cwd, self._scratch))
        kept = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        if self._keep_output:
            self._out = stack.enter_context(_opened(self.output("stdout"), kept))
        else:
            self._out = stack.enter_context(_opened(os.devnull, os.O_WRONLY))
        self._errors = stack.enter_context(_opened(self.output("stderr"), kept))
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._mask = mask
        self._spawning: dict[str, Any] = {
            "file_actions": [
                (os.POSIX_SPAWN_DUP2, self._stdin, 0),
                (os.POSIX_SPAWN_DUP2, self._out, 1),
                (os.POSIX_SPAWN_DUP2, self._errors, 2),
            ],
            # A group of its own, so that the descendants of the command can be killed with it.
            "setpgroup": 0,
            "setsigmask": mask,
            "setsigdef": _IGNORED_BY_PYTHON,
        }
        stack.enter_context(_inside(folder))

    def run(self) -> Sample:
        """Run the command once and wait for it; its failure is in the status.

        :raises JobFailed: where it cannot be started, takes longer than the timeout or wants a terminal.
        """
        self._rewind()
        os.ftruncate(self._errors, 0)
        if self._keep_output:
            os.ftruncate(self._out, 0)
        pid = 0
        try:
            # While these are held back no exception can come between the start and knowing whom to kill.
            signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTIONS)
            start = perf_counter_ns()
            pid = os.posix_spawn(self._path, self._argv, self._environ, **self._spawning)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            status, usage = self._wait(pid)
            end = perf_counter_ns()
        except BaseException as problem:
            if pid:
                _kill(pid)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            if not pid and isinstance(problem, (OSError, ValueError)):
                raise self._not_started(problem) from None
            raise
        return Sample((end - start) / 1e9, usage.ru_utime, usage.ru_stime, status)

    def output(self, stream: str) -> Path:
        """The file with what the last run wrote to `stdout`, where that is kept, or to `stderr`."""
        return self._scratch / stream

    def last_errors(self) -> list[str]:
        """The last lines that the last run wrote to its standard error, without control characters."""
        return last_lines(self._errors)

    def _rewind(self) -> None:
        try:
            os.lseek(self._stdin, 0, os.SEEK_SET)
        except OSError:
            raise JobFailed(f"cannot read {self.command.workload!r} more than once", "use a file") from None

    def _wait(self, pid: int) -> tuple[int, Any]:
        if self._timeout:
            self._wait_in_time(pid)
        while True:
            _, status, usage = os.wait4(pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                return status, usage
            if os.WSTOPSIG(status) in _WANTS_TERMINAL:
                raise JobFailed(
                    f"the command {str(self.command)!r} wants to talk to the terminal",
                    "give it its input by a workload '< file'",
                )

    def _wait_in_time(self, pid: int) -> None:
        process = os.pidfd_open(pid)
        try:
            poll = select.poll()
            poll.register(process, select.POLLIN)
            if not poll.poll(min(ceil(self._timeout * 1000), 2**31 - 1)):
                raise JobFailed(
                    f"the command {str(self.command)!r} did not end within {self._timeout:g} s",
                    "give it more time with --timeout, or a smaller workload",
                )
        finally:
            os.close(process)

    def _not_started(self, problem: OSError | ValueError) -> JobFailed:
        code = problem.errno if isinstance(problem, OSError) else None
        reasons = {
            errno.ENOENT: "the interpreter named in its first line is not there",
            errno.ENOEXEC: "it is neither a program for this machine nor a script that begins with '#!'",
        }
        reason = reasons.get(code or 0) or (os.strerror(code) if code else str(problem))
        return JobFailed(f"cannot start {self._path}: {reason}")


def find_executable(name: str, cwd: Path, environ: Mapping[str, str]) -> str:
    """Absolute path of the program `name`: relative to `cwd` where it has a slash, else on the PATH.

    :raises JobFailed: where there is none, or it may not be executed.
    """
    folders = [""] if "/" in name else environ.get("PATH", os.defpath).split(os.pathsep)
    refused = ""
    for folder in folders:
        candidate = os.path.join(cwd, folder, name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
        if os.path.exists(candidate):
            refused = refused or candidate
    if refused and os.path.isdir(refused):
        raise JobFailed(f"the command {name!r} is a folder: {refused}")
    if refused:
        raise JobFailed(f"the command {name!r} is not executable: {refused}", f"chmod +x {refused}")
    if "/" in name:
        hint = "in a fresh working copy of another version it has to be built first: set execute.pre_run"
        raise JobFailed(f"command not found: {name!r} in {cwd}", hint)
    raise JobFailed(
        f"command not found: {name!r} is in no folder of the PATH (running in {cwd})",
        f"write ./{name} for a program in that folder; in a fresh working copy of another version it has "
        "to be built first: set execute.pre_run",
    )


def outcome(status: int) -> str:
    """How a run ended, in words: `exited with status 3`, `was killed by SIGSEGV (Segmentation fault)`."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return f"was killed by {name} ({signal.strsignal(number) or 'unknown'})"
    return f"exited with status {os.waitstatus_to_exitcode(status)}"


def failed(run: Run, status: int, errors: Sequence[str], hint: str, which: str = "") -> JobFailed:
    """The error for a command that failed: how it ended, and the last lines of its standard error.

    :param which: of several runs, which one.
    """
    message = f"the command {str(run)!r} {outcome(status)}" + (f" ({which})" if which else "")
    if errors:
        message += "\n" + "\n".join(["the end of its standard error:", *("  " + line for line in errors)])
    return JobFailed(message, hint)


def exit_status(status: int) -> int:
    """The exit status as a shell gives it: 128 and the number of the signal for a run that one killed."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def last_lines(descriptor: int) -> list[str]:
    """The last lines of a file that is opened for reading, without control characters."""
    start = max(0, os.fstat(descriptor).st_size - _TAIL_BYTES)
    text = os.pread(descriptor, _TAIL_BYTES, start).decode("utf-8", "replace")
    return [_printable(line) for line in text.rstrip().split("\n")[-_TAIL_LINES:] if text.strip()]


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else " " for char in line.rstrip()[:_LINE_LIMIT])


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


@contextlib.contextmanager
def _opened(path: str | Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _inside(folder: int) -> Iterator[None]:
    before = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fchdir(folder)
        yield
    finally:
        os.fchdir(before)
        os.close(before)


@contextlib.contextmanager
def _standard_input(command: Command, cwd: Path, scratch: Path) -> Iterator[int]:
    path: str | Path = os.devnull
    if command.stdin_text is not None:
        path = scratch / "stdin"
        path.write_bytes(command.stdin_text.encode("utf-8", "surrogateescape"))
    elif command.stdin_file is not None:
        path = cwd / command.stdin_file
    refused = f"cannot read the workload {command.stdin_file!r}"
    hint = "it is looked for in the folder of the run; a file that the build makes needs execute.pre_run"
    try:
        # Anything else, a pipe for example, cannot be read again by the second run.
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode)):
            raise JobFailed(f"{refused}: {path} is not a file", hint)
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        raise JobFailed(f"{refused}: {path}: {problem.strerror}", hint) from None
    try:
        yield opened
    finally:
        os.close(opened)
