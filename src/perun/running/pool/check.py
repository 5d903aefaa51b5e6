"""`perun pool check`:

which machines a pool has, whether they can measure, and whether they are as fast as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from perun.core.errors import RemoteError
from perun.plugin.api import Report, silent
from perun.repository.repository import Repository
from perun.running.pool import places
from perun.running.pool import worker as remote
from perun.running.pool.dispatch import PoolSettings
from perun.running.pool.engine import PoolEngine, Worker, connected
from perun.running.pool.places import Calibration, KnownMachines, Place


class MachineState(NamedTuple):
    """A machine of a pool: its workers, and how it is.

    :param seconds: of processor time that its calibration took; None if it did not come to an end, and
        `problem` says why. :param drift: by how many percent it is slower than it was at first.
    :param set_aside: whether it drifts by more than `pool.drift`. :param busy: what keeps it busy, in words;
        empty where nothing does. :param others: processors that other programs kept busy. :param waited: the
        share of its time in which the calibration had no processor.
    """

    machine: str
    workers: int
    python: str
    machine_class: str
    seconds: float | None
    drift: float
    set_aside: bool
    problem: str = ""
    busy: str = ""
    others: float = 0.0
    waited: float = 0.0


class PoolCheck(NamedTuple):
    """The machines of a pool, by name, and how many workers lack the resource `bench`."""

    machines: list[MachineState]
    unfit: int


def check(repo: Repository, place: Place, *, reset: bool = False, report: Report = silent) -> PoolCheck:
    """Calibrate each machine of the pool, one after the other.

    :param reset: what they take now is what later calibrations are compared with.
    :raises RemoteError: if the pool cannot be reached, or has no worker at all.
    """
    repo.require_trust("using a pool of machines", places.brought(place, repo.environ))
    settings = PoolSettings.of(repo)
    with connected(place, settings.patience) as engine:
        machines = _by_machine(engine.workers())
        unfit = engine.without_resource()
        if not machines and not unfit:
            raise RemoteError(
                "the pool has no worker",
                "start one: dask worker ADDRESS --nthreads 1 --resources bench=1",
            )
        return PoolCheck(list(_states(repo, engine, machines, settings, reset, report)), unfit)


def _states(
    repo: Repository,
    engine: PoolEngine,
    machines: dict[str, list[Worker]],
    settings: PoolSettings,
    reset: bool,
    report: Report,
) -> Iterator[MachineState]:
    known = KnownMachines(repo)
    for number, (name, workers) in enumerate(machines.items()):
        report(f"calibrating {name}", number, len(machines))
        first = workers[0]
        found = engine.call(first.address, remote.calibrate)
        state = MachineState(name, len(workers), first.python, first.machine_class, None, 0.0, False)
        if not isinstance(found, Calibration):
            why = found.why if isinstance(found, remote.LostJob) else "its worker is gone"
            yield state._replace(problem=why)
            continue
        if reset:
            known.note(name, first.machine_class, found)
        drifted = known.drift(name, first.machine_class, found)
        yield state._replace(
            seconds=found.seconds,
            drift=drifted,
            set_aside=0 < settings.drift < abs(drifted),
            busy=found.busy,
            others=found.others,
            waited=found.waited,
        )
    report("done", len(machines), len(machines))


def _by_machine(workers: list[Worker]) -> dict[str, list[Worker]]:
    found: dict[str, list[Worker]] = {}
    for worker in sorted(workers, key=lambda one: one.machine):
        found.setdefault(worker.machine, []).append(worker)
    return found
