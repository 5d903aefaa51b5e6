"""What else the machine did while something was measured: stolen time, and processes that waited for a core.

Only what the kernel counts anyway is read: `/proc/stat` and `/proc/pressure/cpu` (Linux 4.20 and newer; where
it is missing, waiting is not seen).
"""

from __future__ import annotations

import os
import time
from collections import deque
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

_IDLE: Final = (3, 4)
"""Fields of the first line of `/proc/stat`, from 0, behind its name: ticks in which a processor had nothing
to do, or only waited for a disk."""
_STEAL: Final = 7
"""The field of the ticks that the host gave to others."""
_COUNTED: Final = 8
"""Fields that together are all the time; those behind them are part of others."""
STOLEN: Final = 0.1
"""Share of the processors' time that is stolen in a measurement under disturbance."""
MIN_TICKS: Final = 2
"""Stolen ticks, of mostly 10 ms, below which the share says nothing."""
JUMP: Final = 0.35
"""By so much the share of time in which some process waits for a core is above what was usual before."""
SHORTEST: Final = 0.02
"""Seconds below which that share says nothing."""
_REMEMBERED: Final = 15
_KNOWN_AFTER: Final = 5
"""Measurements that tell what is usual."""


class Moment(NamedTuple):
    """The counters at one moment.

    :param steal: ticks stolen, and :param ticks: ticks in all, both of all processors together.
    :param waiting: seconds in which some process waited for a core. :param clock: seconds.
    :param busy: seconds in which processors worked, or were stolen, of all together.
    """

    steal: int
    ticks: int
    waiting: float
    clock: float
    busy: float = 0.0


def now(proc: Path = Path("/proc")) -> Moment:
    """The counters now; those that cannot be read stay 0."""
    fields = _ticks(proc / "stat")
    busy = (sum(fields) - sum(fields[field] for field in _IDLE)) / os.sysconf("SC_CLK_TCK")
    waiting = _waiting(proc / "pressure" / "cpu")
    return Moment(fields[_STEAL], sum(fields), waiting, time.monotonic(), busy)


class Watch:
    """Judges measurements by what is usual in this session: a machine that is always busy is no disturbance,
    since both of a pair suffer from it alike."""

    def __init__(self) -> None:
        self._usual: deque[float] = deque(maxlen=_REMEMBERED)

    def disturbance(self, before: Moment, after: Moment) -> str:
        """What disturbed the measurement between the two moments, in words; empty where nothing did."""
        stolen, ticks = after.steal - before.steal, after.ticks - before.ticks
        if stolen >= MIN_TICKS and ticks > 0 and stolen / ticks > STOLEN:
            return f"{100 * stolen / ticks:.0f} % of the time was stolen by the host"
        elapsed = after.clock - before.clock
        if elapsed < SHORTEST:
            return ""
        share = min(1.0, (after.waiting - before.waiting) / elapsed)
        usual = median(self._usual) if len(self._usual) >= _KNOWN_AFTER else 1.0
        self._usual.append(share)
        if share - usual > JUMP:
            return (
                f"other processes came in between: for {100 * share:.0f} % of the time somebody waited for a "
                f"core, otherwise {100 * usual:.0f} %"
            )
        return ""


def _ticks(file: Path) -> list[int]:
    try:
        with open(file, "rb") as stat:
            fields = [int(field) for field in stat.readline().split()[1 : 1 + _COUNTED]]
    except (OSError, ValueError):
        fields = []
    return fields if len(fields) == _COUNTED else [0] * _COUNTED


def _waiting(file: Path) -> float:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0.0
    try:
        first = os.read(descriptor, 4096).split(b"\n", 1)[0]
        return int(first.rpartition(b"total=")[2]) / 1e6
    except (OSError, ValueError):
        return 0.0
    finally:
        os.close(descriptor)
