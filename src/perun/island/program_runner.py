"""Runs a program inside of an island: an unmodified Python program, whose calls are recorded to a folder."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from perun.core.atomic import write_all
from perun.core.errors import JobFailed, PerunError, UsageError
from perun.island import result as results
from perun.island.limits import Limits, WrongLimit
from perun.island.options import IslandOptions
from perun.island.result import RunResult
from perun.island.supervisor import ControlGroup, Start, control_group, end_as, supervise
from perun.plugin.params import from_mapping, to_mapping

AGENT: Final = Path(__file__).with_name("agent.py")
_FROM_KERNEL: Final = 128
"""SI_KERNEL: the terminal sent the signal, to the program as well."""
_LEFT_ALONE: Final = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT}
"""What stops the front together with the program, and lets both go on."""
_STARTING: Final = 5.0
"""Seconds in which the supervisor has started the program."""
_NOT_PASSED_ON: Final = {signal.SIGCHLD, signal.SIGWINCH, signal.SIGURG}


class PythonProgram(NamedTuple):
    """A Python program: the interpreter, its options, and what it runs: PROGRAM, `-m` MODULE or `-c` CODE,
    and arguments.
    """

    python: str
    options: Sequence[str]
    words: Sequence[str]

    def argv(self, folder: Path, options: IslandOptions, native: str = "") -> list[str]:
        """The command line that records it to the folder. :param native: `yes`, `no`, or "" for the better
        one.
        """
        told = [
            f"burst={options.burst!r}",
            f"all_calls={'yes' if options.all_calls else 'no'}",
            f"native={native}",
        ]
        told += [f"limit={limit}" for limit in options.limit]
        return [self.python, *self.options, str(AGENT), str(folder), "\n".join(told), *self.words]


def limits_of(options: IslandOptions) -> Limits:
    """The limits that the options name. :raises UsageError: names the one that is wrong."""
    try:
        return Limits.parse(options.limit, options.burst)
    except WrongLimit as problem:
        raise UsageError(str(problem)) from None


def run(program: PythonProgram, options: IslandOptions, folder: Path, *, native: str = "") -> RunResult:
    """Run the program, and keep its recordings, stops and result in the folder.

    While it runs, this process passes on the signals that it gets. The standard streams are those of the
    program; of this process only the standard error is left afterwards.

    :param folder: is made; it must not hold a run already. :param native: see :meth:`PythonProgram.argv`.
    :raises UsageError: for a limit that means nothing, or a folder that cannot be used.
    :raises CollectorUnavailable: where no control group can be made, which the options ask for.
    :raises JobFailed: if the program cannot be started.
    """
    share = limits_of(options).cpu
    folder = _made(folder)
    cpu = control_group(share) if share and options.hold_cpu_by == "cgroup" else share
    argv = program.argv(folder, options, native)
    result = RunResult(
        list(program.words), time.monotonic_ns(), time.time_ns(), limits=options.limit, burst=options.burst,
        stop_rule=options.stop_rule, all_calls=options.all_calls,
    )  # fmt: skip
    results.write(folder, result)
    blocked = signal.valid_signals() - _LEFT_ALONE
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    told, tell = os.pipe()
    alive, keep_alive = os.pipe()
    start = Start(argv, os.getpgrp(), {int(number) for number in mask}, os.getpid())
    supervisor = os.fork()
    if not supervisor:
        _supervise(start, folder, result, cpu, (told, tell, alive, keep_alive))
    os.close(tell)
    os.close(alive)
    _leave_streams()
    try:
        _pass_on(blocked, supervisor, folder)
    finally:
        os.close(keep_alive)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    with open(told, "rb") as stream:
        problem = stream.read().decode("utf-8", "replace")
    if problem:
        raise JobFailed(f"cannot run {program.python}: {problem}")
    result = results.read(folder)
    if result.status < 0:
        raise JobFailed("the supervisor of the program was killed, and so was the program")
    return result


def _supervise(
    start: Start, folder: Path, result: RunResult, cpu: float | ControlGroup | None, pipes: Sequence[int]
) -> None:
    """In the supervisor: it never returns."""
    told, tell, alive, keep_alive = pipes
    try:
        os.close(told)
        os.close(keep_alive)
        signal.pthread_sigmask(signal.SIG_BLOCK, _LEFT_ALONE)
        os.setpgid(0, 0)
        supervise(start, folder, result, cpu, alive)
    except BaseException as problem:
        text = problem.strerror if isinstance(problem, OSError) else traceback.format_exc()
        with contextlib.suppress(OSError):
            write_all(tell, str(text).encode())
        os._exit(1)
    os._exit(0)


def _pass_on(signals: set[signal.Signals], supervisor: int, folder: Path) -> None:
    """Until the supervisor ends, pass on to the program what this process is told."""
    while True:
        found = signal.sigwaitinfo(signals)
        if found.si_signo == signal.SIGCHLD:
            pid, status = os.waitpid(supervisor, os.WNOHANG)
            if not pid:
                continue
            if os.WIFSIGNALED(status):  # nobody waits for the program any more
                _signal_program(folder, signal.SIGKILL)
            return
        if found.si_signo not in _NOT_PASSED_ON and found.si_code != _FROM_KERNEL:
            _signal_program(folder, found.si_signo)


def _signal_program(folder: Path, number: int) -> None:
    deadline = time.monotonic() + _STARTING
    while (pid := results.read(folder).pid) < 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    if pid > 0:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _leave_streams() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nothing, number)
    os.close(nothing)


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / results.NAME).exists():
            raise UsageError(f"{folder} holds a recorded run already", "name another folder, or remove it")
    except OSError as problem:
        raise UsageError(f"cannot record to {folder}: {problem.strerror}") from None
    return folder.absolute()


def this_python() -> tuple[str, list[str]]:
    """The interpreter that runs this, and the options that it was given."""
    words = sys.orig_argv
    place = words.index("-m") if "-m" in words else 1
    return sys.executable, words[1:place]


# The front as an engine: a command that another part of Perun starts.

_START: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; from perun.island import program_runner; "
    "program_runner.run_engine(sys.argv[1])"
)


def words_of(program: PythonProgram, options: IslandOptions, folder: Path) -> list[str]:
    """The command that runs the program: what it prints and how it ends is what the program does.

    It runs in Perun's Python, whatever the environment says to Pythons, and loads next to nothing.

    :param folder: an empty one for the recordings.
    """
    own = {
        name: value
        for name, value in to_mapping(options).items()
        if name in IslandOptions.__dataclass_fields__
    }
    told = json.dumps([*program, own, str(folder.absolute())])
    path = [os.path.abspath(one) for one in sys.path]
    return [sys.executable, "-I", "-S", "-c", _START, told, *path]


def run_engine(told: str) -> None:
    """Run the program that :func:`words_of` tells of, and end as it does."""
    python, options, words, own, folder = json.loads(told)
    try:
        result = run(
            PythonProgram(python, options, words), from_mapping(IslandOptions, own, "island"), Path(folder)
        )
    except PerunError as problem:
        sys.exit(f"{problem.message}\n{problem.hint}".rstrip())
    end_as(result.status)
