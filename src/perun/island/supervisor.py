"""The parent of the measured program: it sees each stop, and knows how the program ended whatever ended it.

Three processes: the one that was started (the front), the supervisor, and the program, which is a child of
the supervisor but in the process group of the front. So the terminal and the shell treat front and program as
one job: Ctrl-C and Ctrl-Z reach both. The supervisor has a group of its own, goes on while they are stopped,
and reads the clock when they are.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from perun.island import result as results
from perun.island.cpu_limit import ControlGroup, hold_by_stops
from perun.island.result import Result
from perun.island.stop_log import StopWriter

_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)
_EDGES: Final = os.WEXITED | os.WSTOPPED | os.WCONTINUED


class Start(NamedTuple):
    """What is started: the words of its command line, its group of processes and mask of signals; the pid of
    the front.
    """

    argv: list[str]
    group: int
    mask: set[int]
    front: int


def supervise(
    start: Start, folder: Path, result: Result, cpu: float | ControlGroup | None, alive: int
) -> None:
    """Start the program, note its stops in the folder, and its end; then return.

    All signals are blocked.

    :param cpu: the share of one processor that the program gets by stops, or the group that holds it.
    :param alive: a descriptor that ends where the front was killed: so is the program then.
    :raises OSError: if the program cannot be started, or the folder not written.
    """
    with StopWriter(folder / results.STOPS) as stops:
        began = time.monotonic_ns()
        pid = os.posix_spawn(
            start.argv[0], start.argv, os.environ,
            setpgroup=start.group, setsigmask=start.mask, setsigdef=_IGNORED_BY_PYTHON,
        )  # fmt: skip
        _leave_streams()
        group = cpu if isinstance(cpu, ControlGroup) else None
        if group:
            group.add(pid)
        held = "cgroup" if group else "duty cycle" if cpu else ""
        result = result._replace(pid=pid, started=began, held=held)
        results.write(folder, result)
        threading.Thread(target=_end_with_front, args=(alive, pid), daemon=True).start()
        watched = _Watched(pid, stops)
        if isinstance(cpu, float):
            hold_by_stops(watched, start.front, cpu)
        while not watched.look():
            pass
        ended = time.monotonic_ns()
        watched.ended(ended)
        read_and_written = _io(pid)
        _, status, usage = os.wait4(pid, 0)
    results.write(
        folder,
        result._replace(
            ended=ended, status=status, user=usage.ru_utime, system=usage.ru_stime, io=read_and_written,
            throttled=group.throttled() if group else 0, lost_stops=watched.lost,
        ),
    )  # fmt: skip
    if group:
        group.remove()


class _Watched:
    """The program, and since when it is stopped."""

    def __init__(self, pid: int, stops: StopWriter) -> None:
        self.pid = pid
        self.since = 0
        self.lost = 0
        self._stops = stops

    def look(self, flags: int = 0) -> bool:
        """Wait for what happens next, and note it; True if the program has ended. It is left to be waited
        for.
        """
        found = os.waitid(os.P_PID, self.pid, _EDGES | os.WNOWAIT | flags)
        now = time.monotonic_ns()
        if found is None:
            return False
        if found.si_code == os.CLD_STOPPED:
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG)
            self.since = self.since or now
        elif found.si_code == os.CLD_CONTINUED:
            os.waitid(os.P_PID, self.pid, os.WCONTINUED | os.WNOHANG)
            self.ended(now)
        return found.si_code in (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED)

    def ended(self, now: int) -> None:
        """A stop, if there is one, ended."""
        if self.since:
            try:
                self._stops.append(self.since, now)
            except OSError:  # no room; the program goes on all the same
                self.lost += 1
        self.since = 0


def _io(pid: int) -> tuple[int, int]:
    """Bytes that an ended process, and those it waited for, read and wrote; -1 where the system does not
    tell.
    """
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
        numbers = {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}
        return numbers["rchar"], numbers["wchar"]
    except (OSError, ValueError, KeyError):
        return -1, -1


def _leave_streams() -> None:
    """Let go the standard streams, so that who reads them sees the end when the program closes them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.close(nothing)


def _end_with_front(alive: int, pid: int) -> None:
    """Where the front is killed the program shall not go on without it."""
    os.read(alive, 1)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def end_as(status: int) -> NoReturn:
    """End this process as the wait status says that another one ended: with its exit code, or killed by its
    signal.
    """
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        raise SystemExit(code)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with contextlib.suppress(OSError, ValueError):  # SIGKILL has no handler
        signal.signal(-code, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [-code])
    os.kill(os.getpid(), -code)
    raise SystemExit(128 - code)
