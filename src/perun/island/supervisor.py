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
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, NoReturn, Protocol

from perun.core.atomic import process_mark
from perun.core.errors import CollectorUnavailable
from perun.island import result as results
from perun.island.limits import SECOND, Bucket
from perun.island.result import RunResult
from perun.island.stop_log import StopWriter

# Two ways to let a program have a share of a processor: it is stopped again and again, or a control group
# holds it.
#
# Stops work everywhere. A control group needs a right to make one; the scheduler then holds the program back
# in periods of 0.1 s, which is not seen as stops but told as `throttled` time.

_CPU_CLOCK: Final = 2
"""CPUCLOCK_SCHED of the clock of a process, see clock_getcpuclockid(3)."""
_POLL: Final = 0.01
"""Seconds between two looks at the CPU time of a program that is held by stops."""
_WORTH_STOPPING: Final = 2_000_000
"""ns: for less a program is not stopped."""
_PERIOD: Final = 100_000
"""us: the period of the scheduler's own limits."""
_SMALLEST: Final = 1000
"""us: the kernel takes no smaller quota of a period."""


class ChildProgram(Protocol):
    """A program whose parent is this process."""

    pid: int
    since: int
    """Since when it is stopped, 0 if it is not."""

    def look(self, flags: int = 0) -> bool:
        """Note what happened; True if the program has ended."""


def hold_by_stops(watched: ChildProgram, front: int, share: float) -> None:
    """Stop the program again and again, so that it uses this share of one processor, until it ends.

    What it has used leaks out of a bucket. It is stopped until the bucket is empty.

    :param front: the process that the shell stops together with the program.
    """
    bucket = Bucket(share)
    used = 0
    while not _ended_within(watched, _POLL):
        if watched.since:  # by somebody else, who will let it go on
            continue
        now, before = time.monotonic_ns(), used
        used = _cpu_time(watched.pid, used)
        empty = bucket.spend((used - before) / SECOND, now)
        if empty - now < _WORTH_STOPPING:
            continue
        os.kill(watched.pid, signal.SIGSTOP)
        has_ended = _ended_within(watched, (empty - now) / SECOND)
        while not has_ended and _is_stopped(front):  # Ctrl-Z meanwhile: the shell will let both go on
            has_ended = _ended_within(watched, _POLL)
        os.kill(watched.pid, signal.SIGCONT)
        if has_ended:
            return


def _ended_within(watched: ChildProgram, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        signal.sigtimedwait([signal.SIGCHLD], left)
        if watched.look(os.WNOHANG):
            return True
    return False


def _cpu_time(pid: int, before: int) -> int:
    """CPU time [ns] of all threads of the process; what it was before where the process has ended."""
    try:
        return time.clock_gettime_ns((~pid << 3) | _CPU_CLOCK)
    except OSError:
        return before


def _is_stopped(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return text.rpartition(b") ")[2][:1] == b"T"


class ControlGroup(NamedTuple):
    """A control group for one program, below that of this process."""

    folder: Path
    version: int

    def add(self, pid: int) -> None:
        """Put the process and all that it will start into the group. :raises OSError: if that cannot be."""
        (self.folder / "cgroup.procs").write_text(str(pid))

    def throttled(self) -> int:
        """For how many ns the scheduler has held the group back, of all its processors together."""
        name, unit = ("throttled_time", 1) if self.version == 1 else ("throttled_usec", 1000)
        with contextlib.suppress(OSError, ValueError):
            for line in (self.folder / "cpu.stat").read_text().splitlines():
                if line.startswith(f"{name} "):
                    return int(line.split()[1]) * unit
        return 0

    def remove(self) -> None:
        """Remove the group; it stays where a process that the program left running is still in it."""
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def control_group(share: float) -> ControlGroup:
    """A new group whose processes together have this share of one processor.

    :raises CollectorUnavailable: where none can be made.
    """
    reason = "no control groups with processor time are mounted"
    for parent, version in _parents():
        group = ControlGroup(parent / f"perun-island-{process_mark()}", version)
        quota = max(_SMALLEST, round(share * _PERIOD))
        try:
            group.folder.mkdir()
        except OSError as problem:
            reason = f"{group.folder}: {problem.strerror}"
            continue
        try:
            if version == 1:
                (group.folder / "cpu.cfs_period_us").write_text(str(_PERIOD))
                (group.folder / "cpu.cfs_quota_us").write_text(str(quota))
            else:
                (group.folder / "cpu.max").write_text(f"{quota} {_PERIOD}")
        except OSError as problem:
            group.remove()
            reason = f"{group.folder}: {problem.strerror}"
            continue
        return group
    raise CollectorUnavailable(
        f"cannot make a control group to limit processor time: {reason}",
        "hold it by stops: --hold-cpu-by stops",
    )


def _parents() -> Iterator[tuple[Path, int]]:
    """The groups of this process that may have some below them for processor time, and their versions."""
    try:
        own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    except OSError:
        return
    for words in mounts:
        kind, options = words[words.index("-") + 1], words[-1].split(",")
        if kind == "cgroup2" or (kind == "cgroup" and "cpu" in options):
            version = 2 if kind == "cgroup2" else 1
            wanted = "" if version == 2 else "cpu"
            for _, controllers, path in own:
                if wanted in controllers.split(","):
                    yield Path(words[4]) / path.lstrip("/"), version


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
    start: Start, folder: Path, result: RunResult, cpu: float | ControlGroup | None, alive: int
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
        watched = _StopWatcher(pid, stops)
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


class _StopWatcher:
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
            if not self.since:  # the kernel forgets a stop that was over before this process had its turn
                self.lost += 1
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
