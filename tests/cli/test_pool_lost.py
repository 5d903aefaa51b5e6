"""Pools of real processes, a scheduler and three workers, of which any is killed: nothing is lost.

Three machines, which are this one under three names; a job is known by what its program notes.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pools import LIMIT, PoolProject, eventually, jobs_of, run, wanted

WORKERS = 3


class Farm:
    """A scheduler and workers as processes, each of which can be killed and is then started again."""

    def __init__(self, folder: Path, environment: dict[str, str], machines: list[str]) -> None:
        self._folder = folder
        self._environment = environment
        self.machines = machines
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start what does not run."""
        quiet = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")
        self._start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", str(self.port), *quiet)
        single = ("--nthreads", "1", "--resources", "bench=1", "--no-nanny", "--death-timeout", "300")
        for number, machine in enumerate(self.machines):
            self._start(f"worker-{number}", "worker", self.address, *single, *quiet, machine=machine)

    def _start(self, name: str, *words: str, machine: str = "") -> None:
        process = self.processes.get(name)
        if process is not None and process.poll() is None:
            return
        environment = {**self._environment, "PERUN_POOL_MACHINE": machine} if machine else self._environment
        with open(self._folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "dask", *words],
                env=environment,
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )

    def kill(self, name: str) -> None:
        """Kill it, and wait for its end."""
        self.processes[name].kill()
        self.processes[name].wait(LIMIT)

    def close(self) -> None:
        """End all."""
        for process in self.processes.values():
            process.kill()
            process.wait(LIMIT)


@pytest.fixture
def make_farm(tmp_path: Path, environment: dict[str, str], project: Any) -> Iterator[Callable[..., Farm]]:
    """Start a scheduler and workers, named by the machines that they say to be on."""
    farms: list[Farm] = []
    environment["RECORD"] = str(tmp_path / "record")
    base = f"test-{os.getpid()}-{tmp_path.name}"

    def make(machines: str) -> Farm:
        folder = tmp_path / f"farm-{len(farms)}"
        folder.mkdir()
        farm = Farm(folder, environment, [f"{base}-{one}" for one in machines])
        farms.append(farm)
        farm.start()
        return farm

    yield make
    for farm in farms:
        farm.close()
    eventually(lambda: jobs_of(base) == [])
    for lock in Path("/tmp").glob(f"perun-pool-{base}*.lock"):
        lock.unlink()


def test_two_workers_of_a_scheduler(
    command: list[str],
    environment: dict[str, str],
    project: Any,
    tmp_path: Path,
    make_farm: Callable[..., Farm],
) -> None:
    pool = PoolProject(project, tmp_path / "record")
    pool.fill(versions=2, args=2)
    farm = make_farm("ab")
    outcome = run(command, environment, "--on", f"dask://127.0.0.1:{farm.port}", "--since", "HEAD~2")
    assert outcome.returncode == 0, outcome
    assert pool.profiles() == wanted(2, 2) == pool.notes.begun
    measured = re.findall(r"stored \S+-\[(a\d)\]-\S+ \(measured \w+ on (\S+) in", outcome.stdout)
    assert sorted(args for args, _ in set(measured)) == ["a0", "a1"]  # each on one machine
    assert {machine for _, machine in measured} <= set(farm.machines)
    assert "is not encrypted" not in outcome.stderr  # it is on this machine


@pytest.mark.slow
def test_each_configuration_stays_on_one_machine(
    command: list[str],
    environment: dict[str, str],
    project: Any,
    tmp_path: Path,
    make_farm: Callable[..., Farm],
) -> None:
    """Of three machines one is set aside, as it is not as fast as it was."""
    pool = PoolProject(project, tmp_path / "record")
    pool.fill(versions=2, args=3, seconds=0.2)
    settings = project.path / ".perun/local.yml"
    settings.write_text(settings.read_text().replace("drift: 0", "drift: 1000"))
    farm = make_farm("abc")
    place = f"dask://127.0.0.1:{farm.port}"
    eventually(lambda: len(checked(command, environment, place)) == 3)
    noted = project.path / ".perun/cache/machines.json"
    machines = json.loads(noted.read_text())
    assert sorted(machines) == farm.machines
    machines[farm.machines[2]]["seconds"] /= 1000
    noted.write_text(json.dumps(machines))
    outcome = run(command, environment, "--on", place, "--since", "HEAD~2")
    assert outcome.returncode == 0, outcome
    assert pool.profiles() == wanted(2, 3) == pool.notes.begun
    measured = re.findall(r"stored \S+-\[(a\d)\]-\S+ \(measured \w+ on (\S+) in", outcome.stdout)
    assert sorted(args for args, _ in set(measured)) == ["a0", "a1", "a2"]  # each on one machine
    assert {machine for _, machine in measured} <= set(farm.machines[:2])
    assert re.search(rf"{farm.machines[2]}: set aside: it is \d+\.\d % slower than it was", outcome.stderr)
    assert "is not encrypted" not in outcome.stderr  # it is on this machine
    states = checked(command, environment, place, "--reset")
    assert [state["set_aside"] for state in states] == [False, False, False]


def checked(
    command: list[str], environment: dict[str, str], place: str, *words: str
) -> list[dict[str, Any]]:
    """What `perun pool check` says of the machines of the pool."""
    done = subprocess.run(
        [*command, "pool", "check", place, "--json", *words],
        env=environment,
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    return list(json.loads(done.stdout)["machines"]) if done.stdout else []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_killed_nothing_is_lost(
    command: list[str],
    environment: dict[str, str],
    project: Any,
    tmp_path: Path,
    make_farm: Callable[..., Farm],
    seed: int,
) -> None:
    """Workers, the scheduler, processes of jobs and the client are killed, four or five times in all.

    All three workers are on one machine, so that no two jobs may be measured at once.
    """
    chance = random.Random(seed)
    pool = PoolProject(project, tmp_path / "record")
    versions, args = 3, 4
    pool.fill(versions, args, seconds=0.1)
    farm = make_farm("aaa")
    victims = ["worker", "scheduler", "client", "job", chance.choice(["worker", "client"])][: 4 + seed % 2]
    chance.shuffle(victims)
    arguments = [*command, "run", "matrix", "--on", f"dask://127.0.0.1:{farm.port}"]
    options = ["--since", f"HEAD~{versions}"]
    log = open(tmp_path / "client.log", "w+b")  # noqa: SIM115 - of several processes
    client = subprocess.Popen([*arguments, *options], env=environment, stdout=log, stderr=log)
    try:
        for number, victim in enumerate(victims, 1):
            goal = number * versions * args // (len(victims) + 1)
            while sum(pool.notes.begun.values()) < goal and client.poll() is None:
                time.sleep(0.01)
            if victim == "client":
                client.kill()
                client.wait(LIMIT)
            elif victim == "job":
                for pid in jobs_of(farm.machines[0], "perun.porcelain.pool.job")[:1]:
                    os.kill(pid, signal.SIGKILL)
            elif victim == "scheduler":
                farm.kill("scheduler")
                for name in [name for name in farm.processes if name != "scheduler"]:
                    farm.kill(name)  # they end without it, sooner or later
            else:
                farm.kill(f"worker-{chance.randrange(WORKERS)}")
            farm.start()
            if client.poll() is not None and pool.journals:
                client = subprocess.Popen([*arguments, "--resume"], env=environment, stdout=log, stderr=log)
        assert client.wait(LIMIT) == 0, (tmp_path / "client.log").read_text()
    finally:
        client.kill()
        client.wait()
        log.close()
    said = (tmp_path / "client.log").read_text()
    assert pool.profiles() == wanted(versions, args), said
    begun = pool.notes.begun
    assert set(begun) == set(wanted(versions, args))
    assert pool.notes.overlapping == []
    assert sum(begun.values()) - len(begun) <= said.count("measured again"), said
    assert "Traceback" not in said
    assert pool.journals == []


@pytest.fixture
def fake_ssh(tmp_path: Path, environment: dict[str, str]) -> None:
    """The program `ssh` of this test: it runs commands on this machine, under the name of the host."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = Path(__file__).with_name("fake_ssh.py")
    (folder / "ssh").write_text(f'#!/bin/sh\nexec "{sys.executable}" -P "{script}" "$@"\n')
    (folder / "ssh").chmod(0o755)
    environment["PATH"] = f"{folder}:{environment['PATH']}"


@pytest.mark.slow
def test_machines_that_ssh_reaches(
    command: list[str],
    environment: dict[str, str],
    project: Any,
    tmp_path: Path,
    make_farm: Callable[..., Farm],
    fake_ssh: None,
) -> None:
    pool = PoolProject(project, tmp_path / "record")
    pool.fill(versions=1, args=2)
    base = f"test-{os.getpid()}-{tmp_path.name}"
    hosts = tmp_path / "hosts.yml"
    hosts.write_text("".join(f"- {{host: {base}-{one}, python: {sys.executable}}}\n" for one in "ab"))
    hosts.write_text("hosts:\n" + hosts.read_text())
    outcome = run(command, environment, "--on", f"ssh:{hosts}")
    assert outcome.returncode == 0, outcome
    assert pool.profiles() == wanted(1, 2) == pool.notes.begun
    assert len(set(re.findall(rf" on ({base}-[ab]) in", outcome.stdout))) == 2
    eventually(lambda: jobs_of(base) == [])  # the workers have ended with the command
    hosts.write_text("hosts: [refused]\n")
    outcome = run(command, environment, "--on", f"ssh:{hosts}")
    assert outcome.returncode == 14
    assert "refused: Permission denied (publickey)" in outcome.stderr
