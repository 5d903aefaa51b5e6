"""Runs the measured command under an engine, and stops it gently where its time is over.

What an engine recorded until then is worth keeping, so the command is asked to end before it is killed, and
the engine is left the time to write down what it has.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from perun.collect._common.execution import last_lines
from perun.errors import JobFailed
from perun.plugin.api import Run

GRACE: Final = 2.0
"""Seconds that a command is given to end by itself, and then an engine to finish."""


class Ended(NamedTuple):
    """How a run ended: the exit status of what was started, why it was stopped early (`timeout`,
    `interrupted`, or empty), and how long it took in seconds.
    """

    status: int
    early: str
    real: float


class Surroundings(NamedTuple):
    """Where and how a command runs.

    :ivar folder: for what is written while it runs. :ivar output: `default`, `capture` or `suppress`.
    :ivar timeout: seconds; 0 for never. :ivar cached: whether SystemTap may keep compiled scripts.
    """

    run: Run
    folder: Path
    output: str
    timeout: float
    cached: bool = True

    def last_errors(self) -> list[str]:
        """The last lines of the standard error, where it was not shown."""
        try:
            with open(self.folder / "stderr", "rb") as file:
                return [line for line in last_lines(file.fileno()) if line]
        except OSError:
            return []


def execute(
    around: Surroundings,
    argv: Sequence[str],
    environ: Mapping[str, str],
    stop: Callable[[int, int], None] | None = None,
) -> Ended:
    """Run `argv`, which runs the command of `around`, with the standard input of that.

    :param stop: called with the process that was started and a signal, to end what is measured; without it
        everything that the process started is signalled.
    :raises JobFailed: where it cannot be started.
    """
    with contextlib.ExitStack() as stack:
        stdin = stack.enter_context(_standard_input(around))
        out, err, pump = _outputs(around, stack)
        started = time.perf_counter()
        try:
            process = subprocess.Popen(
                list(argv),
                cwd=around.run.cwd,
                env=dict(environ),
                stdin=stdin,
                stdout=out,
                stderr=err,
                process_group=0,
            )
        except OSError as problem:
            raise JobFailed(f"cannot start {argv[0]}: {problem.strerror}") from None
        copier = pump(process) if pump else None
        early = ""
        try:
            early = _wait(process, around.timeout, stop or _signal_descendants)
        finally:
            if process.poll() is None or early:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if copier:
            copier.join(GRACE)
        return Ended(process.returncode, early, time.perf_counter() - started)


def _wait(process: subprocess.Popen[bytes], timeout: float, stop: Callable[[int, int], None]) -> str:
    early = ""
    try:
        process.wait(timeout or None)
        return ""
    except subprocess.TimeoutExpired:
        early = "timeout"
    except KeyboardInterrupt:
        early = "interrupted"
    for number in (signal.SIGTERM, signal.SIGKILL):
        stop(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
            return early
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5 * GRACE)
    return early


def _signal_descendants(pid: int, number: int) -> None:
    for child in descendants(pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(child, number)


def descendants(pid: int) -> list[int]:
    """The processes that `pid` and its children have started and that still run."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for file in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                children = [int(child) for child in file.read_text().split()]
                found += children
                waiting += children
    return found


@contextlib.contextmanager
def _standard_input(around: Surroundings) -> Any:
    command = around.run.command()
    if command.stdin_text is not None:
        path = around.folder / "stdin"
        path.write_bytes(command.stdin_text.encode("utf-8", "surrogateescape"))
    elif command.stdin_file is not None:
        path = around.run.cwd / command.stdin_file
    else:
        path = Path(os.devnull)
    try:
        file = open(path, "rb")  # noqa: SIM115  # closed below
    except OSError as problem:
        raise JobFailed(
            f"cannot read the workload {command.stdin_file!r}: {path}: {problem.strerror}"
        ) from None
    with file:
        yield file


_Pump = Callable[["subprocess.Popen[bytes]"], threading.Thread]


def _outputs(around: Surroundings, stack: contextlib.ExitStack) -> tuple[Any, Any, _Pump | None]:
    """Standard output and error of the command, and what copies them meanwhile."""
    if around.output == "default":
        return None, None, None
    errors = stack.enter_context((around.folder / "stderr").open("wb"))
    if around.output == "suppress":
        return subprocess.DEVNULL, errors, None
    kept = stack.enter_context((around.folder / "output").open("wb"))

    def pump(process: subprocess.Popen[bytes]) -> threading.Thread:
        assert process.stdout is not None
        thread = threading.Thread(target=_copy, args=(process.stdout, kept), daemon=True)
        thread.start()
        return thread

    return subprocess.PIPE, subprocess.STDOUT, pump


def _copy(source: IO[bytes], kept: IO[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):
        while piece := os.read(source.fileno(), 1 << 16):
            kept.write(piece)
            kept.flush()
            os.write(sys.stdout.fileno(), piece)
