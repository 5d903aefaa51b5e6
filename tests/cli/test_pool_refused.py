"""Pools that cannot be used: each part that does not fit is named, without a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pools import Farm, PoolProject, eventually, wanted

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
