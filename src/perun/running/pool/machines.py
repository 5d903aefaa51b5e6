"""How fast the machines of pools have been, as this repository knows it: `.perun/cache/machines.json`."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from perun.core import atomic, conditions
from perun.core.errors import DamagedStore
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.running.pool.folders import MachineLock, machine_name
from perun.store import tree

# How fast a machine is now, and how busy: a fixed piece of work, to see when it is not as fast as it was.

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
        before, own = conditions.now(), time.process_time()
        times: list[tuple[float, float]] = []
        while len(times) < REPEATS or sum(wall for wall, _ in times) < _SHORTEST:
            times.append(_once())
        own = time.process_time() - own
        return judged(times, before, conditions.now(), own, os.cpu_count() or 1)
    finally:
        lock.close()


def judged(
    times: Sequence[tuple[float, float]],
    before: conditions.Moment,
    after: conditions.Moment,
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


MAX_MACHINES: Final = 1000
"""Machines that are known; those that were calibrated the longest ago go first."""


class KnownMachines:
    """The first calibration of each machine, which later ones are compared with: of a machine that was busy
    then, the first one while it is not."""

    def __init__(self, repo: Repository) -> None:
        self._path = repo.root / PERUN_FOLDER / "cache" / "machines.json"
        self._lock = repo.store.lock

    def drift(self, machine: str, machine_class: str, found: Calibration) -> float:
        """By how many percent it is slower than at first; 0 of an unknown machine, which is noted."""
        reference = self._reference(machine, machine_class, found)
        if reference is None:
            self.note(machine, machine_class, found)
            return 0.0
        return drift(found.seconds, reference)

    def _reference(self, machine: str, machine_class: str, found: Calibration) -> float | None:
        noted = self._read().get(machine)
        if not isinstance(noted, dict) or noted.get("class") != machine_class:
            return None  # it is not known, or is another machine by now
        if noted.get("busy") and not found.busy:
            return None
        seconds = noted.get("seconds")
        return float(seconds) if isinstance(seconds, (int, float)) and seconds > 0 else None

    def note(self, machine: str, machine_class: str, found: Calibration) -> None:
        """Take this calibration for the one that later ones are compared with."""
        with self._lock():
            content = self._read()
            content.pop(machine, None)
            seconds = round(found.seconds, 6)
            content[machine] = {"class": machine_class, "seconds": seconds, "busy": bool(found.busy)}
            kept = dict(list(content.items())[-MAX_MACHINES:])
            with suppress(OSError):  # without it only a drift is not seen
                atomic.write(self._path, json.dumps(kept, indent=1).encode())

    def _read(self) -> dict[str, Any]:
        with suppress(DamagedStore, ValueError, RecursionError):
            content = json.loads(tree.read(self._path) or b"{}")
            if isinstance(content, dict):
                return content
        return {}
