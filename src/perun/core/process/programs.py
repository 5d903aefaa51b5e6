"""Starts the programs that help Perun: compilers, builds, tools, generators and processes of its own.

What is measured is started by :mod:`perun.core.process.execution`, git by :mod:`perun.core.process.git`;
nothing else starts a program. Each leads a process group, which ends with Perun however that ends: where
Perun is interrupted it ends the group itself, and where it is killed its guard does.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
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
from perun.core.process import ending
from perun.core.process.ending import GRACE, SignalGuard, descendants, fields_of, guard, kill_group, stop

_SINCE: Final = 19
"""The field after the state that has when a process was started (proc_pid_stat(5))."""

Words = Sequence[str | bytes | Path]
Stream = int | IO[Any] | None


class ProgramResult(NamedTuple):
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

    _guard: SignalGuard | None = None  # what `Popen.__del__` reads where it could not be started
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
        protector: SignalGuard | None = None
        place: int | None = None
        try:
            # A signal that came before the guard knows it would leave behind a program that nobody ends.
            with ending.interruptions_deferred():
                protector = None if outlives else guard()  # to start the guard itself takes time
                place = protector.starting() if protector else None
                super().__init__(
                    words, cwd=cwd, env=environ, stdin=stdin, stdout=stdout, stderr=stderr,
                    pass_fds=inherit, **rest,
                )  # fmt: skip
                if protector is not None:
                    protector.add(self.pid, place)
                    self._guard = protector
        except BaseException as problem:
            if protector is not None and self._guard is None:
                protector.free(place)
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


def worker(code: str, **options: Any) -> tuple[Program, int]:
    """A process of this Python that works for this one, and the descriptor of this end of a socket to it.

    :param code: what it runs: `sys.argv[1]` is the number of its own descriptor, the rest is `sys.path`.
    :param options: as of :class:`Program`.
    :raises OSError: if it cannot be started.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        words = [sys.executable, "-P", "-c", code, str(theirs.fileno()), *sys.path]
        return Program(words, inherit=[theirs.fileno()], **options), ours.detach()


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
) -> ProgramResult:
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
    return ProgramResult(program.returncode, out or b"", errors or b"")


# What a command takes, its peak memory included, as a small launcher of its own sees it; and two commands
# that start at the same moment.

LAUNCHER: Final = Path(__file__).with_name("perun_launch")
"""The program of `native/launcher.c`, which says why there has to be one."""


class ResourceUsage(NamedTuple):
    """What a launched command took: seconds of real, user and system time, its peak memory in bytes, and the
    status as `wait4` gives it.

    The peak is at least that of the launcher, between one and two megabytes.
    """

    real: float
    user: float
    system: float
    peak: int
    status: int


class DuetSide(NamedTuple):
    """One of two commands that run at the same time: the processor that it is kept on, its folder, the files
    of its standard input, its standard error and its result, and the path of its program."""

    core: int
    folder: Path
    stdin: Path
    errors: Path
    result: Path
    program: str


def engine(path: str, argv: list[str], result: Path) -> list[str]:
    """The words that launch `argv`, the program at `path`; what it took is written to the file `result`.

    :raises CollectorUnavailable: if the launcher was not built.
    """
    return [_launcher("measures peak memory"), str(result), path, *argv]


def duet(sides: Sequence[DuetSide], argv: list[str]) -> list[str]:
    """The words that launch `argv` on both sides at the same moment; what each took is in its result.

    Where one fails, the other is killed, and perhaps has no result.

    :raises CollectorUnavailable: if the launcher was not built.
    """
    return [
        _launcher("starts two programs together"),
        "--duet",
        *(str(word) for side in sides for word in side),
        *argv,
    ]


def _launcher(what: str) -> str:
    if not LAUNCHER.is_file():
        raise CollectorUnavailable(
            f"the launcher that {what} is missing: {LAUNCHER}",
            f"reinstall Perun from its sources: {reinstall_command()}",
        )
    return str(LAUNCHER)


def read(result: Path) -> ResourceUsage:
    """What the last launched command took.

    :raises ValueError: if the file does not say it, as the launcher was killed.
    """
    try:
        real, user, system, peak, status = result.read_text(encoding="ascii").split()
    except OSError as problem:
        raise ValueError(str(problem)) from None
    return ResourceUsage(float(real) / 1e6, int(user) / 1e6, int(system) / 1e6, int(peak), int(status))


# How fast the machine is, by the times of a loop of fixed work.

_LOOP: Final = Path(__file__).with_name("perun_speed")
"""The program of `native/speed.c`, which says what its work is."""
_LONGEST: Final = 10.0
"""Seconds after which it is given up: a machine on which it takes so long has other problems."""
_REST: Final = 25.0
"""Times as long as the loop takes for which it does not run again: it takes 4 % of a session at most."""
_MOST_LOOPS: Final = 200


class FixedLoop(NamedTuple):
    """What a piece of work took that is the same for all machines.

    :param version: of the work; only times of the same version compare. :param integers: and :param steps:
        through memory, which it consists of. :param processor: and :param wall: nanoseconds.
    """

    version: int
    integers: int
    steps: int
    processor: int
    wall: int


def fixed_loop() -> FixedLoop | None:
    """How long the fixed loop takes now, some 20 ms; None where it cannot be run."""
    try:
        done = run([_LOOP], timeout=_LONGEST)
        return FixedLoop(*map(int, done.stdout.split()))
    except (OSError, TimeoutExpired, ValueError, TypeError):
        return None


class Speed:
    """Times the loop while something is measured: before each round, or less often where rounds are short."""

    def __init__(self, loop: Callable[[], FixedLoop | None] = fixed_loop) -> None:
        self._loop = loop
        self._next = -math.inf
        self._rest = _REST
        self._found: list[FixedLoop] = []

    def visit(self, now: Callable[[], float] = time.monotonic) -> None:
        """Time the loop, unless that was done a moment ago."""
        start = now()
        if start < self._next:
            return
        found = self._loop()
        self._next = math.inf if found is None else now() + self._rest * (now() - start)
        self._found += [found] if found else []
        if len(self._found) >= _MOST_LOOPS:  # of a long session every second one is enough
            self._found, self._rest = self._found[::2], 2 * self._rest

    def described(self) -> dict[str, Any]:
        """What the description of the machine says of it: the version of the loop, and of each time it ran
        the nanoseconds of processor and wall time; nothing where it did not run."""
        if not self._found:
            return {}
        times = {name: [getattr(one, name) for one in self._found] for name in ("processor", "wall")}
        return {"speed": {"loop": self._found[0].version, **times}}


def speed_now() -> dict[str, Any]:
    """As :meth:`Speed.described`, of this moment."""
    speed = Speed()
    speed.visit()
    return speed.described()
