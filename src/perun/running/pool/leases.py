"""Which machine measures what: the jobs of a batch as series, whose versions stay on one machine.

This is bookkeeping alone: no clock, no network.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from perun.plugin.api import MinorVersion
from perun.profile.amounts import percent
from perun.repository.jobs import Job
from perun.repository.repository import Repository
from perun.running.pool import worker as remote
from perun.running.pool.engine import PoolEngine, Worker
from perun.running.pool.places import Calibration, KnownMachines
from perun.running.run.events import MachineReport
from perun.running.run.schedule import VersionSlot


class ScheduledTask(NamedTuple):
    """A task of the schedule: its number there, its version and its job."""

    number: int
    version: MinorVersion
    job: Job


class Lease(NamedTuple):
    """A task that a worker has; `attempt` counts from 1."""

    wanted: ScheduledTask
    worker: Worker
    attempt: int


@dataclass
class JobSeries:
    """One job on all its versions, in the order of the schedule: what is compared with each other.

    `machine` measures it, empty as long as none has begun. `left` is what no worker has yet.
    """

    job: Job
    left: list[ScheduledTask] = field(default_factory=list)
    machine: str = ""


class Reservations:
    """The series of a batch, and what of them is leased to workers.

    :param begun_on: the machines that series were begun on before the batch was resumed, by the job.
    """

    def __init__(self, slots: Iterable[VersionSlot], begun_on: Mapping[str, str]) -> None:
        found: dict[int, JobSeries] = {}
        for slot in slots:
            for task in slot.tasks:
                machine = begun_on.get(repr(task.job), "")
                series = found.setdefault(id(task.job), JobSeries(task.job, machine=machine))
                series.left.append(ScheduledTask(task.number, slot.version, task.job))
        self.series = list(found.values())
        self.held: dict[int, Lease] = {}
        self._attempts: dict[int, int] = {}
        self._busy: set[str] = set()

    @property
    def is_done(self) -> bool:
        """Whether nothing is left, and nothing leased."""
        return not self.held and not any(series.left for series in self.series)

    def next_lease(self, workers: Sequence[Worker]) -> Lease | None:
        """The next task for one of the workers that has none; None where there is none for them.

        A machine goes on with its own series; with none of these left it begins one that nobody has.
        """
        for worker in self.idle(workers):
            series = self._series_for(worker.machine)
            if series is None:
                continue
            series.machine = worker.machine
            wanted = series.left.pop(0)
            attempt = self._attempts[wanted.number] = self._attempts.get(wanted.number, 0) + 1
            lease = self.held[wanted.number] = Lease(wanted, worker, attempt)
            self._busy.add(worker.address)
            return lease
        return None

    def idle(self, workers: Sequence[Worker]) -> list[Worker]:
        """Those of the workers that have no task."""
        return [one for one in workers if one.address not in self._busy]

    def _series_for(self, machine: str) -> JobSeries | None:
        own = (one for one in self.series if one.left and one.machine == machine)
        return next(own, None) or next((one for one in self.series if one.left and not one.machine), None)

    def end(self, lease: Lease) -> None:
        """The task has its result, or failed."""
        del self.held[lease.wanted.number]
        self._busy.discard(lease.worker.address)

    def give_back(self, lease: Lease, *, counted: bool = True) -> None:
        """The task was lost: it is leased again, in its place.

        :param counted: as an attempt; else the job was not to blame.
        """
        self.end(lease)
        self._attempts[lease.wanted.number] -= not counted
        self.put(lease.wanted)

    def put(self, wanted: ScheduledTask) -> None:
        """Put a task that has ended among what is left."""
        series = next(one for one in self.series if one.job is wanted.job)
        series.left = sorted([*series.left, wanted], key=lambda one: one.number)

    def drop(self, version: str) -> list[ScheduledTask]:
        """Take away what is left of the version; the tasks that were."""
        dropped = []
        for series in self.series:
            dropped += [one for one in series.left if one.version.checksum == version]
            series.left = [one for one in series.left if one.version.checksum != version]
        return dropped

    def take(self, wanted: ScheduledTask) -> None:
        """Take a task away that is left."""
        for series in self.series:
            series.left = [one for one in series.left if one is not wanted]

    def lost(self, addresses: Collection[str]) -> list[Lease]:
        """The leases of workers that are not among the addresses."""
        return [one for one in self.held.values() if one.worker.address not in addresses]

    def stranded(self, machines: Collection[str]) -> list[JobSeries]:
        """Series whose machine is not among these, though something of them is left."""
        return [one for one in self.series if one.left and one.machine and one.machine not in machines]


# Setting machines aside that are not as fast as they were, and naming busy ones, while a batch runs.

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

    def look(self, engine: PoolEngine, idle: Sequence[Worker]) -> Iterator[MachineReport]:
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
                yield MachineReport(worker.machine, text, serious=True)
            if abs(drift) > self._limit:
                self.aside.add(worker.machine)
                yield MachineReport(worker.machine, _told(drift, before is not None), serious=True)


def _told(drift: float, measured: bool) -> str:
    how = f"{percent(abs(drift) / 100)[1:]} {'slower' if drift > 0 else 'faster'}"
    text = f"set aside: it is {how} than it was"
    if measured:
        text += "; what it has measured in the last minutes may be wrong by as much"
    return text
