"""`perun run matrix --on POOL` on this machine: `local:N`."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from pools import LIMIT, PoolProject, eventually, wanted

GENERATED = """\
workloads: [text]
generators: {workload: [{id: text, type: textfile, min_lines: 5, max_lines: 5, step: 1}]}
"""


def test_each_job_is_measured_once_and_none_at_once(pool: PoolProject) -> None:
    pool.fill(versions=2, args=2)
    outcome = pool.run("--on", "local:2", "--since", "HEAD~2")
    assert outcome.returncode == 0, outcome
    assert pool.notes.begun == wanted(2, 2) == pool.profiles()
    assert pool.notes.overlapping == []
    builds = [number for word, _, number, _ in pool.notes.lines if word == "build"]
    assert sorted(builds) == ["0", "1"]  # once, whatever is measured of a version
    assert "measured again" not in outcome.stdout
    assert pool.journals == []
    # The next batch finds the builds; new commits are sent, and files that a generator makes.
    pool.project.commit("Number 2", {"run.sh": 'echo "read $$ 2 $1" >>"$RECORD"; cp "$1" "$RECORD.$$"\n'})
    pool.configure(pool.configured.replace("[a0, a1]", "['']") + GENERATED)
    outcome = pool.run("--on", "local:1", "--since", "HEAD~2")
    assert outcome.returncode == 0, outcome
    built = [(pid, number) for word, pid, number, _ in pool.notes.lines if word == "build"]
    assert [number for _, number in built] == [*builds, "1"]
    (read,) = (line for line in pool.notes.lines if line[0] == "read")
    given = {args for number, args in pool.notes.begun if number == "1" and args not in {"a0", "a1"}}
    assert given == {read[3]}  # the same file for all versions
    assert not Path(read[3]).is_relative_to(pool.project.path)  # it was sent
    (made,) = (pool.project.path / ".perun/tmp/workloads").rglob("*.txt")
    assert Path(f"{pool.record}.{read[1]}").read_bytes() == made.read_bytes()


@pytest.mark.slow
def test_what_fails_is_told_with_its_machine(pool: PoolProject) -> None:
    pool.fill(versions=2, args=1)
    pool.project.commit("Number 2", {"build.sh": "exit 3\n"})
    pool.project.commit("Number 3", {"build.sh": "true\n", "run.sh": "exit 4\n"})
    outcome = pool.run("--on", "local:2", "--since", "HEAD~3")
    assert outcome.returncode == 8
    assert pool.profiles() == {("1", "a0"): 1}
    assert "ended with status 3" in outcome.stdout
    assert f"note: it ran on {pool.machine}" in outcome.stdout
    assert "1 profile collected, 1 job failed, 1 version skipped" in outcome.stderr
    # What a build is known to fail on is not sent again.
    again = pool.run("--on", "local:2", "--resume")
    assert "known to fail" in again.stdout
    assert pool.profiles() == {("1", "a0"): 1}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_client_that_was_ended_goes_on(pool: PoolProject, number: signal.Signals) -> None:
    pool.fill(versions=2, args=2, seconds=0.1)
    with pool.running("--on", "local:2", "--since", "HEAD~2") as client:
        eventually(lambda: len(pool.profiles()) >= 1 and len(pool.notes.begun) >= 2, client)
        client.send_signal(number)
        _, err = client.communicate(timeout=LIMIT)
    jobs = pool.processes()
    if number == signal.SIGINT:
        assert b"jobs are left" in err
        assert jobs == []  # the pool is clean
    outcome = pool.run("--on", "local:2", "--resume")
    assert outcome.returncode == 0, outcome
    assert pool.profiles() == wanted(2, 2)
    assert pool.notes.overlapping == []
    begun = pool.notes.begun
    assert set(begun) == set(wanted(2, 2))
    assert sum(begun.values()) - len(begun) <= pool.repeated <= 2
    eventually(lambda: pool.processes() == [])
    assert pool.journals == []


@pytest.mark.slow
def test_nothing_listens_to_the_network(pool: PoolProject) -> None:
    pool.fill(versions=1, args=1, seconds=600)
    with pool.running("--on", "local:2") as client:
        eventually(lambda: len(pool.notes.begun) == 1, client)
        listening = [one for one in psutil.Process(client.pid).net_connections() if one.status == "LISTEN"]
        assert {one.laddr.ip for one in listening} <= {"127.0.0.1"}
        client.send_signal(signal.SIGINT)
        client.communicate(timeout=LIMIT)
    assert client.returncode == 130
    assert pool.processes() == []


def test_wrong_pools(perun: Callable[..., Any], pool: PoolProject) -> None:
    pool.fill(versions=1, args=1)
    for options, message in (
        (["matrix", "--on", "somewhere"], "'somewhere' names no pool"),
        (["matrix", "--on", "local:0"], "1 to 64 workers"),
        (["--force-dirty", "matrix", "--on", "local:2"], "as they are committed"),
        (["matrix", "--on", "dask://host"], "names no pool"),
    ):
        outcome = perun("run", *options, check=False)
        assert outcome.code == 2
        assert message in outcome.err
        assert pool.notes.begun == {}


def test_without_the_library(
    perun: Callable[..., Any], pool: PoolProject, tmp_path: Path, environment: dict[str, str]
) -> None:
    pool.fill(versions=1, args=1)
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "distributed.py").write_text("raise ImportError('hidden')\n")
    path = {"PYTHONPATH": f"{hidden}:{environment['PYTHONPATH']}"}
    outcome = perun("run", "matrix", "--on", "local:2", env=path, check=False)
    assert outcome.code == 9
    assert "pip install" in outcome.err
    assert "distributed" in outcome.err
