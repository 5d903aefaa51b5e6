"""Ending a command and what it has started: it is asked first, and killed if that does not help."""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from mmap import mmap
from pathlib import Path
from struct import Struct
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from threading import Thread


# Threads beside the one that waits for a command: they leave Ctrl-C and other requests to end to it.

INTERRUPTIONS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask for the end."""


def start(thread: Thread) -> None:
    """Start the thread with these signals blocked in it.

    The main thread blocks them for a moment where it starts a command. One that comes then would go to any
    other thread that takes it, and would not end the wait in the main thread: Ctrl-C would do nothing.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
    try:
        thread.start()  # a thread has the mask of the one that starts it
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def interruptions_deferred() -> Iterator[None]:
    """Let signals that would end the program take effect only after the block.

    Their handlers are exchanged rather than the signals blocked, as any thread of the program may get one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are handled in the main thread alone
        return
    deferred: list[tuple[int, FrameType | None]] = []
    handlers = {number: handler for number in INTERRUPTIONS if callable(handler := signal.getsignal(number))}
    for number in handlers:
        signal.signal(number, lambda *given: deferred.append(given))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for first, frame in deferred[:1]:
            handlers[signal.Signals(first)](first, frame)


GRACE: Final = 2.0
"""Seconds that a command has to end by itself once it was asked to, e.g. to remove what is half made."""
_CHILD_GRACE: Final = 0.1
"""Seconds that the processes have which a command started and did not wait for."""
_POLL_INTERVAL: Final = 0.005
LOOK: Final = 0.1
"""Seconds between two looks at an engine that is watched."""


def stop(pid: int, *, engine: bool, grace: float = GRACE) -> None:
    """End the process and all processes of its group; it is left to be waited for.

    It gets SIGTERM, and SIGKILL after `grace` seconds.

    :param pid: of a process that leads a group of its own.
    :param engine: it is an engine that records what it has started. Only that is signalled, as soon as there
        is something, so that the engine can write down what it has; five times as long is waited for that.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not engine:
            _signal_group(pid, number)
        if _has_ended(pid, grace, partial(_signal_started, pid, number, set()) if engine else None):
            break
    else:
        if engine:
            _has_ended(pid, 5 * grace)
    time.sleep(_CHILD_GRACE)
    _signal_group(pid, signal.SIGKILL)


def kill(pid: int) -> None:
    """Kill the process and its group at once, and wait for it."""
    _signal_group(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def kill_group(pid: int) -> None:
    """Kill all processes of the group; the one that leads it is left to be waited for."""
    _signal_group(pid, signal.SIGKILL)


def kill_left_behind(pid: int) -> None:
    """Kill the group of an engine that was killed itself, so that it could not end what it has started.

    :param pid: of the engine, which has ended and is left to be waited for.
    """
    end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if end and end.si_code == os.CLD_KILLED and end.si_status == signal.SIGKILL:
        _signal_group(pid, signal.SIGKILL)


def ended_confined(pid: int) -> bool:
    """Whether a signal ended the process after it had taken system calls from itself (seccomp).

    :param pid: of a process that has ended and is left to be waited for.
    """
    end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if end is None or end.si_code == os.CLD_EXITED:
        return False
    # A filter of everything in a container is no reason; strict mode, or a forbidden call (3), always is.
    mode = _seccomp_mode(str(pid))
    own = mode in ("1", "3") or (mode == "2" and _seccomp_mode("self") == "0")
    return own or end.si_status == signal.SIGSYS


def _seccomp_mode(process: str) -> str:
    """The number that the kernel gives the confinement of a process; empty where it does not say."""
    with contextlib.suppress(OSError), open(f"/proc/{process}/status", "rb") as status:
        for line in status:
            if line.startswith(b"Seccomp:"):
                return line.split()[1].decode()
    return ""


@contextlib.contextmanager
def ended_when(pid: int, is_over: Callable[[int], bool] | None) -> Iterator[None]:
    """Look again and again, within the block, whether an engine waits for what is over; ask it to end then.

    :param pid: of the engine. :param is_over: is given that; None for an engine that always ends itself.
    """
    if is_over is None:
        yield
        return
    leaving = threading.Event()

    def watch() -> None:
        while not leaving.wait(LOOK):
            if is_over(pid):
                os.kill(pid, signal.SIGTERM)
                return

    watcher = threading.Thread(target=watch, name="watching", daemon=True)
    start(watcher)
    try:
        yield
    finally:
        leaving.set()
        watcher.join()


def descendants(pid: int) -> dict[int, str]:
    """The processes that `pid` and its children have started, with the letters of their states; "Z" for those
    that have ended and nobody has waited for."""
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for child in _children(parent):
            if state := fields_of(child)[:1]:
                found[child] = state[0]
                waiting.append(child)
    return found


def _children(pid: int) -> list[int]:
    """What the threads of a process have started; empty where it ends while they are listed."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found


def fields_of(pid: int) -> list[str]:
    """What the kernel tells of a process or thread, from its state on (proc_pid_stat(5)); empty if there is
    none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _signal_started(pid: int, number: int, signalled: set[int]) -> None:
    """Signal what a process has started; `signalled` keeps whom. What they start to clean up goes on."""
    if signalled:
        return
    for one in (one for one, state in descendants(pid).items() if state != "Z"):
        signalled.add(one)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(one, number)


def _has_ended(pid: int, seconds: float, meanwhile: Callable[[], None] | None = None) -> bool:
    """Wait so long for the process, without reaping it: until then no other one gets its number."""
    deadline = time.monotonic() + seconds
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if meanwhile:
            meanwhile()
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_INTERVAL)
    return True


# Nothing that is measured outlives Perun: a small program ends it where Perun itself is killed.
#
# The program of `native/guard.c` is started with the first command. It shares an array with Perun, to which a
# command is written when it starts and from which it is removed when it has ended. `kill -9` may come between
# the start of a command and its being written down: until then its place holds the time before the start, by
# which the guard finds it.

GUARD: Final = Path(__file__).with_name("perun_guard")
_PLACE: Final = Struct("=qq")  # its number, or when it is about to start, in ticks since the boot
_TICK: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PLACES: Final = 256
_SHARED: Final = 3
"""The descriptor of the shared file in the guard."""


class SignalGuard:
    """The commands that run now, as the guard knows them.

    Where it cannot be started commands run nevertheless, without it.
    """

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._free = list(range(_PLACES))
        self._places: dict[int, int] = {}
        shared = os.memfd_create("perun-guard", os.MFD_CLOEXEC)
        try:
            os.ftruncate(shared, _PLACES * _PLACE.size)
            self._memory = mmap(shared, _PLACES * _PLACE.size)
            null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
            actions = [*null, (os.POSIX_SPAWN_DUP2, shared, _SHARED)]
            argv = [str(GUARD), str(self.owner)]
            self._pid = os.posix_spawn(GUARD, argv, {}, file_actions=actions, setpgroup=0)
        finally:
            os.close(shared)

    def starting(self) -> int | None:
        """A command is about to start, in a process group of its own; its place. None if there is no more."""
        if not self._free:
            return None
        place = self._free.pop()
        self._write(place, 0, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // _TICK)
        return place

    def add(self, pid: int, place: int | None, ask: bool = False) -> None:
        """A command has started; it leads a process group, or that of Perun goes on without it.

        :param place: from `starting`. :param ask: it is asked to end first, by SIGTERM.
        """
        if place is not None:
            self._places[pid] = place
            self._write(place, -pid if ask else pid, 0)

    def free(self, place: int | None) -> None:
        """A command could not be started."""
        if place is not None:
            self._write(place, 0, 0)
            self._free.append(place)

    def remove(self, pid: int) -> None:
        """A command has ended, or is ended by Perun itself."""
        self.free(self._places.pop(pid, None))

    def _write(self, place: int, pid: int, start: int) -> None:
        _PLACE.pack_into(self._memory, place * _PLACE.size, pid, start)

    def end(self) -> None:
        """End the guard, unless a command still runs; in a container perhaps nobody else waits for it."""
        if self.owner == os.getpid() and not self._places:
            with contextlib.suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)


_guard: SignalGuard | None = None


def guard() -> SignalGuard | None:
    """The guard of this process, started if it is not; None where it cannot be."""
    global _guard
    if _guard is None or _guard.owner != os.getpid():  # a forked process has its own
        _guard = None
        with contextlib.suppress(OSError, AttributeError):
            _guard = SignalGuard()
            atexit.register(_guard.end)
    return _guard


# Waiting for the end of a program by the time that it had a core: a busy machine makes no program hang.

_STEP: Final = 1 / 50
"""Share of the time of a program after which it is looked at again, at least."""

_SOON: Final = 0.001
_AGAIN: Final = 1.0
"""Seconds between two looks at a thread that waits for a core, and of all of them at most."""
_LONGEST: Final = 2**31 - 1
"""Milliseconds that the system waits at most."""


def await_end(
    has_ended: Callable[[float], bool], spent: Callable[[], float], seconds: float, until: float = math.inf
) -> float | None:
    """Wait until a program has ended, or has spent its time; None if it has ended, else what it has spent.

    :param has_ended: waits for its end, for so many seconds at most. :param spent: the seconds that it has
        spent, which may be fewer than have passed. :param seconds: that it has.
    :param until: when there is no time any more, as :func:`time.monotonic` counts; it may have spent less
        then.
    """
    left = seconds
    while True:
        rest = until - time.monotonic()
        if has_ended(max(0.0, min(left, rest))):
            return None
        taken = spent()
        if taken >= seconds or rest <= left:
            return taken
        left = max(seconds - taken, _STEP * seconds)


@contextlib.contextmanager
def ending_of(pid: int) -> Iterator[Callable[[float], bool]]:
    """What waits for the end of a process for so many seconds at most, which stays to be waited for; not by
    looking again and again, as Popen does."""
    ending = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(ending, select.POLLIN)
        yield lambda seconds: bool(poll.poll(min(seconds * 1000, _LONGEST)))
    finally:
        os.close(ending)


def waited(group: int) -> float:
    """Seconds that a process group, or a process that leads none, has waited for a core: those of the thread
    that waited longest, as the others may have waited for that one.

    What waits for something else, as a file or a moment, does not count. 0 where the kernel does not tell, or
    the group is gone.
    """
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    return max(_waited_by(pid) for pid in [group, *pids] if pid == group or _group_of(pid) == group)


def waited_at_end(pid: int) -> float:
    """The same of the first thread of a process that has ended, and whose status is not taken yet."""
    try:
        return _times(Path(f"/proc/{pid}"))[1] / 1e9
    except OSError:
        return 0.0


def _waited_by(pid: int) -> float:
    most = 0
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            most = max(most, _waited_of(thread))
    return most / 1e9


def _waited_of(thread: Path) -> int:
    """Nanoseconds. A thread that waits now is looked at when it has a core again, when they are added."""
    on_core, waited = _times(thread)
    end = time.monotonic() + _AGAIN
    while on_core and _is_ready(thread) and time.monotonic() < end:
        time.sleep(_SOON)
        now, waited = _times(thread)
        if now != on_core:
            break
    return waited


def _times(thread: Path) -> tuple[int, int]:
    """Nanoseconds on a core, and of waiting for one."""
    on_core, waited, _ = (thread / "schedstat").read_text(encoding="ascii").split()
    return int(on_core), int(waited)


def _is_ready(thread: Path) -> bool:
    """Whether it has a core, or waits for one."""
    fields = (thread / "stat").read_text(encoding="utf-8", errors="replace")
    return fields.rpartition(")")[2].split()[0] == "R"


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0
