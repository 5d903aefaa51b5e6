"""How fast a machine is now, and how busy: a fixed piece of work, to see when it is not as fast as it was."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from perun import disturbance
from perun.porcelain.pool.folders import machine_name
from perun.porcelain.pool.machine_lock import MachineLock

REPEATS: Final = 15
_SHORTEST: Final = 0.5
"""Seconds that it takes at least: the kernel counts in hundredths of a second who was busy."""
_BLOCK: Final = bytes(1 << 20)
_BLOCKS: Final = 16
BUSY_PROCESSORS: Final = 0.5
"""Processors that others use on a machine that counts as busy; the services of a quiet one need less."""
BUSY_WAITING: Final = 0.1
"""Share of its time that the work waits for a processor on a machine that counts as busy."""


class Calibration(NamedTuple):
    """What the work took.

    :param seconds: of processor time, the least of several times.
    :param waited: the share of the time, from 0 to 1, in which the work could have run and did not.
    :param others: how many processors other programs kept busy meanwhile, in the mean.
    :param processors: how many there are.
    """

    seconds: float
    waited: float
    others: float
    processors: int

    @property
    def busy(self) -> str:
        """What keeps the machine busy, in words; empty where nothing does."""
        if self.others >= BUSY_PROCESSORS:
            return f"other programs need {self.others:.1f} of its {self.processors} processors"
        if self.waited > BUSY_WAITING:
            return f"the calibration had no processor for {100 * self.waited:.0f} % of its time"
        return ""


def measure(environ: Mapping[str, str]) -> Calibration:
    """Time the work; nothing else is measured then.

    The least of many times is what the machine can do: whatever else runs there can only make it slower.
    """
    lock = MachineLock(machine_name(environ))
    try:
        lock.alone()
        before, own = disturbance.now(), time.process_time()
        times: list[tuple[float, float]] = []
        while len(times) < REPEATS or sum(wall for wall, _ in times) < _SHORTEST:
            times.append(_once())
        own = time.process_time() - own
        return judged(times, before, disturbance.now(), own, os.cpu_count() or 1)
    finally:
        lock.close()


def judged(
    times: Sequence[tuple[float, float]],
    before: disturbance.Moment,
    after: disturbance.Moment,
    own: float,
    processors: int,
) -> Calibration:
    """The calibration.

    :param times: of each repetition the wall time and the processor time. :param before: and :param after:
        the counters of the system around them. :param own: processor time of this process between the two.
    """
    wall, cpu = (sum(column) for column in zip(*times, strict=True))
    elapsed = after.clock - before.clock
    others = (after.busy - before.busy - own) / elapsed if elapsed > 0 else 0.0
    return Calibration(
        min(cpu for _, cpu in times),
        round(max(0.0, 1 - cpu / wall) if wall else 0.0, 3),
        round(max(0.0, others), 2),
        processors,
    )


def _once() -> tuple[float, float]:
    start, start_cpu = time.perf_counter(), time.thread_time()
    digest = hashlib.sha256()
    for _ in range(_BLOCKS):
        digest.update(_BLOCK)
    return time.perf_counter() - start, time.thread_time() - start_cpu


def drift(seconds: float, reference: float) -> float:
    """By how many percent the machine is slower than it was; below 0 where it is faster."""
    return (seconds / reference - 1) * 100
