"""`perun run matrix --on ssh:FILE`: machines that a real sshd on this machine stands for."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import perun as package
from perun import __version__
from pools import LIMIT, PoolProject, eventually, wanted
from ssh_server import SshServer, served

pytestmark = pytest.mark.slow


@pytest.fixture
def machines(pool: PoolProject, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """A server of ssh, whose names the commands of the pool know."""
    with served(tmp_path_factory.mktemp("ssh")) as server:
        pool.environment["PATH"] = f"{server.tools}:{pool.environment['PATH']}"
        yield server


def listed(pool: PoolProject, server: SshServer, *names: str) -> str:
    """A file of hosts with these names; each has an environment of its own, as other machines have."""
    lines = []
    for name in names:
        given = {key: pool.environment[key] for key in ("PYTHONPATH", "RECORD", "PATH")}
        given |= {"PERUN_POOL_MACHINE": f"{pool.machine}-{name}", "HOME": str(pool.folder / f"home-{name}")}
        python = server.script(f"python-{name}", given, sys.executable)
        lines.append(f"- {{host: {name}, python: {python}}}\n")
    return written(pool, "hosts:\n" + "".join(lines))


def written(pool: PoolProject, text: str) -> str:
    """The pool of a file of hosts with this text."""
    file = pool.folder / "hosts.yml"
    file.write_text(text)
    return f"ssh:{file}"


def test_two_machines(pool: PoolProject, machines: SshServer) -> None:
    pool.fill(versions=1, args=2)
    place = listed(pool, machines, "one", "two")
    outcome = pool.run("--on", place)
    assert outcome.returncode == 0, outcome
    assert pool.profiles() == wanted(1, 2) == pool.notes.begun
    on = set(re.findall(rf" on ({pool.machine}-\w+) in", outcome.stdout))
    assert on == {f"{pool.machine}-one", f"{pool.machine}-two"}
    eventually(lambda: pool.processes() == [])  # the workers have ended with the command
    states = pool.checked(place)
    assert [state["machine"] for state in states] == sorted(on)
    eventually(lambda: pool.processes() == [])


def test_ctrl_c_leaves_nothing_running(pool: PoolProject, machines: SshServer) -> None:
    pool.fill(versions=1, args=2, seconds=600)
    with pool.running("--on", listed(pool, machines, "one", "two")) as client:
        eventually(lambda: len(pool.notes.begun) == 2, client)
        client.send_signal(signal.SIGINT)
        _, told = client.communicate(timeout=LIMIT)
    assert client.returncode == 130
    assert b"2 of 2 jobs are left; run them with: perun run matrix --resume" in told
    assert b"Traceback" not in told
    eventually(lambda: pool.processes() == [])
    assert [line for line in pool.notes.lines if line[0] == "end"] == []  # the programs were ended too


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("down", "Connection refused"),
        ("locked", "Permission denied (publickey)"),
        ("unknown", "Host key verification failed"),
    ],
)
def test_a_machine_that_cannot_be_reached(
    pool: PoolProject, machines: SshServer, name: str, message: str
) -> None:
    """The other one is there, and is not left running."""
    pool.fill(versions=1, args=1)
    outcome = pool.run("--on", listed(pool, machines, "one", name))
    assert outcome.returncode == 14
    assert f"error: no worker could be started on {name}: " in outcome.stderr
    assert message in outcome.stderr
    assert f"hint: try: ssh {name} {machines.tools}/python-{name} -m perun --version" in outcome.stderr
    eventually(lambda: pool.processes() == [])
    assert pool.journals == []  # there is nothing to go on with
    assert pool.notes.begun == {}


def test_a_machine_without_perun(pool: PoolProject, machines: SshServer) -> None:
    pool.fill(versions=1, args=1)
    environment = {"PERUN_POOL_MACHINE": pool.machine, "PYTHONPATH": "/var/empty"}
    python = machines.script("python-bare", environment, os.path.realpath(sys.executable))
    place = written(pool, f"hosts: [{{host: bare, python: '{python}'}}]\n")
    outcome = pool.run("--on", place)
    assert outcome.returncode == 14
    assert "No module named 'perun'" in outcome.stderr
    outcome = pool.run("--on", written(pool, "hosts: [{host: bare, python: /var/empty/python}]\n"))
    assert outcome.returncode == 14
    assert "/var/empty/python" in outcome.stderr
    assert "try: ssh bare /var/empty/python -m perun --version" in outcome.stderr


def test_a_machine_with_another_release(pool: PoolProject, machines: SshServer, tmp_path: Path) -> None:
    pool.fill(versions=1, args=1)
    other = tmp_path / "other/perun"
    other.mkdir(parents=True)
    for path in Path(package.__file__).parent.iterdir():
        if path.name != "__init__.py":
            (other / path.name).symlink_to(path)
    (other / "__init__.py").write_text("__version__ = '0.0.1'\n")
    environment = {"PERUN_POOL_MACHINE": pool.machine, "PYTHONPATH": str(other.parent)}
    python = machines.script("python-other", environment, sys.executable)
    outcome = pool.run("--on", written(pool, f"hosts: [{{host: other, python: '{python}'}}]\n"))
    assert outcome.returncode == 14
    wrong = f"on other: this machine has Perun 0.0.1, and the client {__version__}; install the same release"
    assert wrong in outcome.stderr
    eventually(lambda: pool.processes() == [])
