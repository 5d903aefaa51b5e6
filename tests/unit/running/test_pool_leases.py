"""Which machine gets which job, and what becomes of one that is lost."""

from __future__ import annotations

import random

from perun.plugin.api import MinorVersion
from perun.repository.jobs import Job, PluginConfig
from perun.running.pool.engine import Worker
from perun.running.pool.leases import Lease, Reservations
from perun.running.run.schedule import VersionSlot, plan_slots

JOBS = [Job("prog", f"a{number}", "", PluginConfig("time", None)) for number in range(3)]
VERSIONS = [MinorVersion("", "", "", f"{number:040x}", "", ()) for number in range(4)]


def worker(address: str, machine: str) -> Worker:
    return Worker(address, machine, "1", "3.11", "cpu")


def slots(rounds: int = 1) -> list[VersionSlot]:
    return plan_slots(JOBS, VERSIONS, rounds, random.Random(1))


def all_leased(leases: Reservations, workers: list[Worker]) -> list[Lease]:
    """Lease and end everything, each worker one task at a time; the leases in their order."""
    found = []
    while not leases.is_done:
        while (lease := leases.next_lease(workers)) is not None:
            found.append(lease)
        leases.end(next(iter(leases.held.values())))
    return found


def test_each_task_once_and_each_series_on_one_machine() -> None:
    workers = [worker("1", "a"), worker("2", "b"), worker("3", "b")]
    found = all_leased(Reservations(slots(rounds=2), {}), workers)
    assert sorted(lease.wanted.number for lease in found) == list(range(3 * 4 * 2))
    machines = {(lease.wanted.job.args, lease.worker.machine) for lease in found}
    assert len(machines) == len(JOBS)
    for job in JOBS:  # as interleaved as the schedule
        numbers = [lease.wanted.number for lease in found if lease.wanted.job is job]
        assert numbers == sorted(numbers)


def test_a_series_goes_on_where_it_was() -> None:
    workers = [worker("1", "a"), worker("2", "b")]
    leases = Reservations(slots(), {repr(JOBS[0]): "b", repr(JOBS[1]): "b"})
    machines = {lease.wanted.job.args: lease.worker.machine for lease in all_leased(leases, workers)}
    assert machines == {"a0": "b", "a1": "b", "a2": "a"}


def test_a_lost_task_comes_next() -> None:
    leases = Reservations(slots(), {})
    there = [worker("1", "a"), worker("2", "a")]
    first, second = leases.next_lease(there), leases.next_lease(there)
    assert first is not None
    assert second is not None
    assert leases.next_lease(there) is None
    assert leases.lost({"2"}) == [first]
    leases.give_back(first)
    again = leases.next_lease(there)
    assert again is not None
    assert (again.wanted, again.attempt) == (first.wanted, 2)
    leases.give_back(again, counted=False)
    third = leases.next_lease(there)
    assert third is not None
    assert third.attempt == 2


def test_what_a_machine_leaves_behind_is_given_to_others() -> None:
    leases = Reservations(slots(), {})
    lease = leases.next_lease([worker("1", "a")])
    assert lease is not None
    leases.end(lease)
    other = worker("2", "b")
    (stranded,) = leases.stranded({"b"})
    stranded.machine = ""
    assert {one.worker.machine for one in all_leased(leases, [other])} == {"b"}


def test_a_version_that_cannot_be_built_is_left_out() -> None:
    leases = Reservations(slots(), {})
    dropped = leases.drop(VERSIONS[1].checksum)
    assert [one.number for one in dropped] == [3, 4, 5]
    found = all_leased(leases, [worker("1", "a")])
    assert VERSIONS[1] not in {lease.wanted.version for lease in found}
    assert len(found) == 9
