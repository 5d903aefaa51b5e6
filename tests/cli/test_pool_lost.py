"""Pools of real processes, a scheduler and three workers, of which any is killed: nothing is lost.

Three machines, which are this one under three names; a job is known by what its program notes.
"""

import json
import os
import random
import re
import signal
import subprocess
import time

import pytest

from pools import LIMIT, Farm, PoolProject, eventually, wanted

VERSIONS, ARGS = 3, 6
KILLS = 5
LONGEST = 0.4
"""Seconds: a kill comes at any moment of the next job, from its lease to the profile that is stored."""


def test_what_is_compared_is_interleaved_on_one_machine(pool: PoolProject) -> None:
    pool.fill(versions=2, args=2)
    with Farm(pool, "ab") as farm:
        outcome = pool.run("--on", farm.place, "--since", "HEAD~2", "--rounds", "2")
    assert outcome.returncode == 0, outcome
    assert pool.profiles() == dict.fromkeys(wanted(2, 2), 2) == pool.notes.begun
    for args in ("a0", "a1"):
        order = [number for word, _, number, given in pool.notes.lines if (word, given) == ("begin", args)]
        assert [sorted(order[:2]), sorted(order[2:])] == [["0", "1"]] * 2  # all versions, then all again
    assert sorted(number for word, _, number, _ in pool.notes.lines if word == "build") == ["0", "1"]
    measured = re.findall(r"stored \S+-\[(a\d)\]-\S+ \(measured \w+ on (\S+) in", outcome.stdout)
    assert sorted(args for args, _ in set(measured)) == ["a0", "a1"]  # each on one machine
    assert {machine for _, machine in measured} <= set(farm.machines)
    assert "is not encrypted" not in outcome.stderr  # it is on this machine


@pytest.mark.slow
def test_each_configuration_stays_on_one_machine(pool: PoolProject) -> None:
    """Of three machines one is set aside, as it is not as fast as it was."""
    pool.fill(versions=2, args=3, seconds=0.2)
    pool.configure(pool.configured.replace("drift: 0", "drift: 1000"))
    with Farm(pool, "abc") as farm:
        eventually(lambda: len(pool.checked(farm.place)) == 3)
        noted = pool.project.path / ".perun/cache/machines.json"
        machines = json.loads(noted.read_text())
        assert sorted(machines) == farm.machines
        machines[farm.machines[2]] |= {"seconds": machines[farm.machines[2]]["seconds"] / 1000, "busy": False}
        noted.write_text(json.dumps(machines))
        outcome = pool.run("--on", farm.place, "--since", "HEAD~2")
        assert outcome.returncode == 0, outcome
        assert pool.profiles() == wanted(2, 3) == pool.notes.begun
        measured = re.findall(r"stored \S+-\[(a\d)\]-\S+ \(measured \w+ on (\S+) in", outcome.stdout)
        assert sorted(args for args, _ in set(measured)) == ["a0", "a1", "a2"]  # each on one machine
        assert {machine for _, machine in measured} <= set(farm.machines[:2])
        assert re.search(
            rf"{farm.machines[2]}: set aside: it is \d+\.\d % slower than it was", outcome.stderr
        )
        states = pool.checked(farm.place, "--reset")
    assert [state["set_aside"] for state in states] == [False, False, False]


class Killer:
    """Kills parts of a pool at random moments, each of which is started again, until its batch is measured.

    :ivar killed: what was killed, in this order.
    """

    def __init__(self, pool: PoolProject, farm: Farm, seed: int) -> None:
        self.killed: list[str] = []
        self._pool = pool
        self._farm = farm
        self._chance = random.Random(seed)
        self._log = pool.folder / "client.log"
        self._client = self._started("--since", f"HEAD~{VERSIONS}")

    def _started(self, *words: str) -> subprocess.Popen[bytes]:
        with open(self._log, "ab") as log:
            return subprocess.Popen(
                [*self._pool.command, "run", "matrix", "--on", self._farm.place, *words],
                env=self._pool.environment, stdout=log, stderr=log
            )  # fmt: skip

    @property
    def said(self) -> str:
        """What the clients have said."""
        return self._log.read_text()

    def run(self) -> None:
        """Kill each kind of part, one of them twice, and wait for the end."""
        victims = ["worker", "scheduler", "client", "job"]
        victims.append(self._chance.choice(victims))
        self._chance.shuffle(victims)
        try:
            for number, victim in enumerate(victims, 1):
                goal = 2 * number  # of 18: the batch has not ended after the last
                eventually(
                    lambda goal=goal: sum(self._pool.notes.begun.values()) >= goal or self._has_ended()
                )
                time.sleep(self._chance.uniform(0, LONGEST))
                self._kill(victim)
                self._farm.start()
            eventually(self._has_ended)
            assert self._client.returncode == 0, self.said
        finally:
            self._client.kill()
            self._client.wait()

    def _has_ended(self) -> bool:
        return self._client.poll() is not None

    def _kill(self, victim: str) -> None:
        if victim == "client":
            assert not self._has_ended(), self.said
            self._client.kill()
            self._client.wait(LIMIT)
            self._client = self._started("--resume")
        elif victim == "job":
            self._kill_job()
        elif victim == "scheduler":
            for name in self._farm.processes:  # workers end without it, sooner or later
                self._farm.kill(name)
        else:
            victim = f"worker-{self._chance.randrange(len(self._farm.machines))}"
            self._farm.kill(victim)
        self.killed.append(victim)

    def _kill_job(self) -> None:
        """Kill the process of one; there is another as long as the client has not ended."""
        while True:
            for pid in self._pool.processes("perun.running.pool.job"):
                try:
                    return os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            assert not self._has_ended(), self.said


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_whatever_is_killed_nothing_is_lost(pool: PoolProject, seed: int) -> None:
    """Workers, the scheduler, processes of jobs and the client are killed, five in each of ten batches.

    All three workers are on one machine, so that no two jobs may be measured at once.
    """
    pool.fill(VERSIONS, ARGS, seconds=0.1)
    with Farm(pool, "aaa") as farm:
        killer = Killer(pool, farm, seed)
        killer.run()
        eventually(lambda: pool.processes("perun.running.pool.job") == [])
    assert len(killer.killed) == KILLS
    assert pool.profiles() == wanted(VERSIONS, ARGS), killer.said
    begun = pool.notes.begun
    assert set(begun) == set(wanted(VERSIONS, ARGS))
    assert pool.notes.overlapping == []
    assert sum(begun.values()) - len(begun) <= pool.repeated <= KILLS, killer.said
    assert "Traceback" not in killer.said
    assert pool.journals == []
