"""Setting machines aside that are not as fast as they were, and naming busy ones, while a batch runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from perun.porcelain.pool import worker as remote
from perun.porcelain.pool.calibration import Calibration
from perun.porcelain.pool.engine import Engine, Worker
from perun.porcelain.pool.machines import KnownMachines
from perun.porcelain.repository import Repository
from perun.porcelain.run.events import MachineTold
from perun.profile.amounts import percent

EVERY: Final = 600.0
"""Seconds after which a machine is calibrated again."""


class Inspector:
    """Calibrates machines at first and every ten minutes, between two jobs.

    :param limit: percentage by which a machine may be slower or faster than at first; 0 for any.
    :ivar aside: the machines that get no job in this batch any more.
    """

    def __init__(self, repo: Repository, limit: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.aside: set[str] = set()
        self._known = KnownMachines(repo)
        self._limit = limit
        self._clock = clock
        self._last: dict[str, float] = {}

    def look(self, engine: Engine, idle: Sequence[Worker]) -> Iterator[MachineTold]:
        """Calibrate the machines of these workers that it is time for; tells which are set aside or busy."""
        for worker in idle:
            before = self._last.get(worker.machine)
            if not self._limit or worker.machine in self.aside:
                continue
            if before is not None and self._clock() - before < EVERY:
                continue
            found = engine.call(worker.address, remote.calibrate)
            if not isinstance(found, Calibration):
                continue  # the worker is gone; if it is worse than that, a job will tell
            self._last[worker.machine] = self._clock()
            drift = self._known.drift(worker.machine, worker.machine_class, found)
            if found.busy:
                text = f"it is busy, so that what it measures scatters more: {found.busy}"
                yield MachineTold(worker.machine, text, serious=True)
            if abs(drift) > self._limit:
                self.aside.add(worker.machine)
                yield MachineTold(worker.machine, _told(drift, before is not None), serious=True)


def _told(drift: float, measured: bool) -> str:
    how = f"{percent(abs(drift) / 100)[1:]} {'slower' if drift > 0 else 'faster'}"
    text = f"set aside: it is {how} than it was"
    if measured:
        text += "; what it has measured in the last minutes may be wrong by as much"
    return text
