"""Ending a command and what it has started: it is asked first, and killed if that does not help."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from perun.process import threads

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
    threads.start(watcher)
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
        for file in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                for child in map(int, file.read_text().split()):
                    if state := fields_of(child)[:1]:
                        found[child] = state[0]
                        waiting.append(child)
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
