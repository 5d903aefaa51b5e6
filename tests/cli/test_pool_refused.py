"""Pools that cannot be used, and pools of machines that a real sshd on this machine stands for."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import perun as package
from perun import __version__
from pools import LIMIT, Farm, PoolProject, eventually, wanted
from ssh_server import SshServer, served

pytestmark = pytest.mark.slow
CALLING = """\
import sys, time
from calling import begin_and_wait
from perun.running.pool.engine import connected
from perun.running.pool.places import parsed

with connected(parsed(sys.argv[1]), 600) as engine:
    while not engine.workers():
        time.sleep(0.1)
    print(engine.call(engine.workers()[0].address, begin_and_wait, sys.argv[2]), flush=True)
"""
WAITING = """\
import pathlib, time

def begin_and_wait(path):
    pathlib.Path(path).touch()
    time.sleep(600)
"""
TLS = "DASK_DISTRIBUTED__COMM__TLS__"


@pytest.fixture
def certificates(tmp_path: Path) -> dict[str, tuple[Path, Path]]:
    """A certificate and its key by each of two authorities, which are the certificates themselves."""
    distributed = pytest.importorskip("distributed")
    made = {}
    for name in ("ours", "other"):
        security = distributed.Security.temporary()
        paths = (tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
        paths[0].write_text(security.tls_client_cert)
        paths[1].write_text(security.tls_client_key)
        made[name] = paths
    return made


def test_encrypted(pool: PoolProject, certificates: dict[str, tuple[Path, Path]]) -> None:
    pool.fill(versions=1, args=1)
    cert, key = certificates["ours"]
    names = {"--tls-ca-file": cert, "--tls-cert": cert, "--tls-key": key}
    options = ["--protocol", "tls", *(str(word) for pair in names.items() for word in pair)]
    with Farm(pool, "a", options) as farm:
        for authority, (mine, own), message in (
            (None, certificates["ours"], "there are no certificates for an encrypted connection"),
            (
                cert.with_name("absent"),
                (cert, key),
                f"no certificates can be read from {cert.with_name('absent')}",
            ),
            (certificates["other"][0], (cert, key), "certificate verify failed"),
            (cert, certificates["other"], "cannot be reached: "),
            (cert, (cert, key), ""),
        ):
            given = {"CA_FILE": authority, "CLIENT__CERT": mine, "CLIENT__KEY": own} if authority else {}
            pool.environment |= {f"{TLS}{name}": str(path) for name, path in given.items()}
            outcome = pool.run("--on", farm.place)
            assert message in outcome.stderr
            assert (outcome.returncode == 14) is bool(message), outcome
            assert pool.journals == []
        # Each of the two ways to forget that it is encrypted.
        refused = pool.run("--on", farm.place.replace("+tls", ""))
    assert refused.returncode == 14
    assert "see that it runs, and that it is encrypted if you use dask+tls://, and else not" in refused.stderr
    assert pool.profiles() == wanted(1, 1)
    with Farm(pool, "") as plain:
        refused = pool.run("--on", f"dask+tls://127.0.0.1:{plain.port}")
    assert refused.returncode == 14
    assert "and that it is encrypted" in refused.stderr


def test_a_worker_without_perun(pool: PoolProject, tmp_path: Path) -> None:
    pool.fill(versions=1, args=1)
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/perun.py").write_text("raise ModuleNotFoundError(\"No module named 'perun'\")\n")
    path = pool.environment["PYTHONPATH"]
    pool.environment["PYTHONPATH"] = f"{tmp_path}/hidden:{path}"
    with Farm(pool, "a") as farm:
        pool.environment["PYTHONPATH"] = path
        outcome = pool.run("--on", farm.place)
    assert outcome.returncode == 5
    assert "cannot run Perun: No module named 'perun'" in outcome.stderr
    assert "hint: install Perun " in outcome.stderr
    assert pool.notes.begun == {}


def test_a_call_that_is_lost_with_its_scheduler(pool: PoolProject, tmp_path: Path) -> None:
    """As where a machine takes in commits: the answer is that there is none."""
    (tmp_path / "calling.py").write_text(WAITING)
    pool.environment["PYTHONPATH"] += f":{tmp_path}"
    with Farm(pool, "a") as farm:
        words = [sys.executable, "-c", CALLING, farm.place, str(tmp_path / "begun")]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, env=pool.environment, stdout=pipe, stderr=pipe) as client:
            eventually((tmp_path / "begun").exists, client)
            farm.kill("scheduler")
            farm.kill("worker-0")
            farm.start()
            out, err = client.communicate(timeout=600)
    assert (client.returncode, out) == (0, b"None\n"), err


# -- machines behind sshd ------------------------------------------------------------------------------------


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
    assert [state["machine"] for state in pool.checked(place)] == sorted(on)
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


@pytest.mark.parametrize(("name", "message"), [
    ("down", "Connection refused"),
    ("locked", "Permission denied (publickey)"),
    ("unknown", "Host key verification failed"),
])  # fmt: skip
def test_a_machine_that_cannot_be_reached(pool, machines, name, message) -> None:
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
