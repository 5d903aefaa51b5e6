"""Starts the programs that help Perun: compilers, builds, tools, generators and processes of its own.

What is measured is started by :mod:`perun.core.process.execution`, git by :mod:`perun.core.process.git`;
nothing else starts a program. Each leads a process group, which ends with Perun however that ends: where
Perun is interrupted it ends the group itself, and where it is killed its guard does.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import DEVNULL as DEVNULL
from subprocess import PIPE as PIPE
from subprocess import STDOUT as STDOUT
from subprocess import Popen
from subprocess import TimeoutExpired as TimeoutExpired
from types import TracebackType
from typing import IO, Any, Final, NamedTuple

from perun.core.errors import CollectorUnavailable
from perun.core.extras import reinstall_command
from perun.core.process import threads
from perun.core.process.ending import GRACE, Guard, descendants, fields_of, guard, kill_group, stop

_SINCE: Final = 19
"""The field after the state that has when a process was started (proc_pid_stat(5))."""

Words = Sequence[str | bytes | Path]
Stream = int | IO[Any] | None


class Done(NamedTuple):
    """A program that has ended: its exit code, negative for a signal, and what it wrote."""

    code: int
    stdout: bytes
    stderr: bytes


class Program(Popen[bytes]):
    """A program that is started and runs; as a context manager it is waited for, or ended by an exception.

    :param foreground: it stays in the process group of Perun, so that it can use the terminal; Ctrl-C
        reaches it, too.
    :param outlives: it goes on when Perun is gone: the pager and the editor of the user, or work in the
        background. It is not ended by an exception, either.
    :param inherit: descriptors that it inherits.
    :param rest: as those of :class:`subprocess.Popen`.
    :raises OSError: if it cannot be started.
    """

    _guard: Guard | None = None  # what `Popen.__del__` reads where it could not be started
    _foreground = False
    outlives = False

    def __init__(
        self,
        words: Words,
        *,
        cwd: Path | str | None = None,
        environ: Mapping[str, str] | None = None,
        stdin: Stream = DEVNULL,
        stdout: Stream = None,
        stderr: Stream = None,
        inherit: Sequence[int] = (),
        foreground: bool = False,
        outlives: bool = False,
        **rest: Any,
    ) -> None:
        self._foreground, self.outlives = foreground, outlives
        if not foreground and not rest.get("start_new_session"):
            rest["process_group"] = 0
        try:
            # A signal that came before the guard knows it would leave behind a program that nobody ends.
            with threads.interruptions_deferred():
                protector = None if outlives else guard()  # to start the guard itself takes time
                super().__init__(
                    words, cwd=cwd, env=environ, stdin=stdin, stdout=stdout, stderr=stderr,
                    pass_fds=inherit, **rest,
                )  # fmt: skip
                if protector is not None:
                    protector.add(self.pid)
                    self._guard = protector
        except BaseException as problem:
            if hasattr(self, "pid") and not isinstance(problem, OSError):
                with self:  # nobody reads its streams any more
                    self.end()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and not self.outlives:
            self.end()
        super().__exit__(kind, error, trace)

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        code = super().poll()
        if code is not None:
            self._unguard()
        return code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; the exit code.

        :raises TimeoutExpired: if it takes longer than so many seconds.
        """
        code = super().wait(timeout)
        self._unguard()
        return code

    def end(self, grace: float = 0.0) -> int:
        """End it with all that it has started, and wait for it; its exit code.

        :param grace: seconds that it has to end by itself, to remove what is half made; it is asked by
            SIGTERM then.
        """
        if self.poll() is not None:
            return self.wait()
        started = self._started()
        if grace and not self._foreground:
            stop(self.pid, engine=False, grace=grace)
        elif grace:
            self.terminate()
            with contextlib.suppress(TimeoutExpired):
                self.wait(grace)
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGSTOP)  # so that it starts no more
            started |= self._started()
            if not self._foreground:
                kill_group(self.pid)
            self.kill()
        for one, since in started.items():
            if fields_of(one)[_SINCE:][:1] == since:  # not another one that has its number by now
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(one, signal.SIGKILL)
        return self.wait()

    def _started(self) -> dict[int, list[str]]:
        """The processes below it, and since when each of them is."""
        return {one: fields_of(one)[_SINCE:][:1] for one in descendants(self.pid)}

    def _unguard(self) -> None:
        if self._guard is not None:
            self._guard.remove(self.pid)
            self._guard = None


def run(
    words: Words,
    *,
    cwd: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
    given: bytes | None = None,
    stdin: Stream = DEVNULL,
    stdout: Stream = PIPE,
    stderr: Stream = PIPE,
    timeout: float = 0.0,
    grace: float = GRACE,
    **rest: Any,
) -> Done:
    """Run a program to its end, whatever its exit code.

    :param environ: its whole environment; that of Perun if it is None.
    :param given: its standard input, which is that of `stdin` otherwise.
    :param stdout: where its output goes, which is returned if it is a pipe; so `stderr`.
    :param timeout: seconds after which it is ended with all that it has started; 0 for never.
    :param grace: seconds that it has to end by itself where Perun is interrupted.
    :param rest: as those of :class:`Program`.
    :raises OSError: if it cannot be started.
    :raises TimeoutExpired: if it takes longer than that.
    """
    stdin = stdin if given is None else PIPE
    with Program(
        words, cwd=cwd, environ=environ, stdin=stdin, stdout=stdout, stderr=stderr, **rest
    ) as program:
        try:
            out, errors = program.communicate(given, timeout or None)
        except TimeoutExpired:
            program.end()
            raise
        except BaseException:
            if not program.outlives:
                program.end(grace)
            raise
    return Done(program.returncode, out or b"", errors or b"")


# What a command takes, its peak memory included, as a small launcher of its own sees it.

LAUNCHER: Final = Path(__file__).with_name("perun_launch")
"""The program of `native/launcher.c`, which says why there has to be one."""


class Usage(NamedTuple):
    """What a launched command took: seconds of real, user and system time, and its peak memory in bytes.

    The peak is at least that of the launcher, between one and two megabytes.
    """

    real: float
    user: float
    system: float
    peak: int


def engine(path: str, argv: list[str], result: Path) -> list[str]:
    """The words that launch `argv`, the program at `path`; what it took is written to the file `result`.

    :raises CollectorUnavailable: if the launcher was not built.
    """
    if not LAUNCHER.is_file():
        raise CollectorUnavailable(
            f"the launcher that measures peak memory is missing: {LAUNCHER}",
            f"reinstall Perun from its sources: {reinstall_command()}",
        )
    return [str(LAUNCHER), str(result), path, *argv]


def read(result: Path) -> Usage:
    """What the last launched command took.

    :raises ValueError: if the file does not say it, as the launcher was killed.
    """
    try:
        real, user, system, peak = result.read_text(encoding="ascii").split()
    except OSError as problem:
        raise ValueError(str(problem)) from None
    return Usage(float(real) / 1e6, int(user) / 1e6, int(system) / 1e6, int(peak))
