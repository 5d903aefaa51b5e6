"""Waiting for the end of a program by the time that it had a core: a busy machine makes no program hang."""

from __future__ import annotations

import contextlib
import math
import os
import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

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
