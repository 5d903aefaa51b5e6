"""`perun run matrix --on POOL` on this machine: `local:N`, and with `--push` also to a remote."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from perun.repository.repository import open_repository
from perun.sharing import remotes
from perun.sharing.remotes import Sender, open_remote
from perun.store import Store
from pools import LIMIT, Farm, PoolProject, eventually, wanted

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
    assert "known to fail" in pool.run("--on", "local:2", "--resume").stdout
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
        perun("run", *options, code=2, err=message)
        assert pool.notes.begun == {}


def test_without_the_library(perun, pool, tmp_path, environment) -> None:
    pool.fill(versions=1, args=1)
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "distributed.py").write_text("raise ImportError('hidden')\n")
    path = {"PYTHONPATH": f"{hidden}:{environment['PYTHONPATH']}"}
    perun("run", "matrix", "--on", "local:2", env=path, code=9, err=("pip install", "distributed"))


# -- --push --------------------------------------------------------------------------------------------------


@pytest.fixture
def other(perun: Callable[..., Any], pool: PoolProject, tmp_path: Path) -> Path:
    """A clone of the project without profiles; both have the remote `team`, whose folder is `remote`."""
    pool.fill(versions=2, args=2)
    folder = tmp_path / "other"
    pool.project.git("clone", "--quiet", str(pool.project.path), str(folder))
    perun("init", cwd=folder)
    for one in (pool.project.path, folder):
        perun("remote", "add", "team", f"file://{tmp_path / 'remote'}", cwd=one)
    return folder


def registered(pool: PoolProject, folder: Path) -> Counter[tuple[str, str]]:
    """How many registered profiles there are of each version and argument."""
    indexes = Store(folder / ".perun").indexes
    found: Counter[tuple[str, str]] = Counter()
    for minor in indexes.minors():
        subject = pool.project.git("log", "-1", "--format=%s", minor).strip()
        found.update((subject.removeprefix("Number "), one.head.args) for one in indexes.read(minor))
    return found


@pytest.mark.parametrize(
    "where", [(), pytest.param(("--on", "local:2"), marks=pytest.mark.slow)], ids=["here", "local"]
)
def test_what_is_measured_is_pushed(perun, pool, other, where) -> None:
    outcome = pool.run("--since", "HEAD~2", *where, "--push")
    assert outcome.returncode == 0, outcome
    assert f"sent 4 profiles to file://{pool.folder}/remote: " in outcome.stdout
    perun("pull", cwd=other)
    assert registered(pool, other) == wanted(2, 2) == registered(pool, pool.project.path)
    assert pool.stored == []  # none of them is pending
    again = pool.run("--since", "HEAD~2", "--missing", *where, "--push")
    assert f"nothing new to push to file://{pool.folder}/remote" in again.stdout


def test_nothing_is_measured_where_the_remote_cannot_be_used(pool: PoolProject, other: Path) -> None:
    outcome = pool.run("--since", "HEAD~2", "--push", "nobody")
    assert outcome.returncode == 2
    assert "there is no remote 'nobody'" in outcome.stderr
    (pool.folder / "remote").mkdir()
    (pool.folder / "remote/format").write_text("perun-remote 99\n")
    outcome = pool.run("--since", "HEAD~2", "--push", "team")
    assert outcome.returncode == 14
    assert "99" in outcome.stderr
    assert pool.notes.begun == {}
    assert pool.journals == []


def test_it_is_sent_again_and_again(pool, other, write_profile, perun) -> None:
    repo = open_repository(pool.project.path, os.environ)
    now = 1000.0
    folder = pool.folder / "remote"

    def register(name: str) -> None:
        write_profile(f"{name}.perf", workload=name)
        perun("add", f"{name}.perf")

    def there() -> int:
        return len(perun("fetch", "team", "--json", cwd=other).json["versions"][0]["profiles"])

    with open_remote(repo, "team") as remote:
        sender = Sender(repo, remote, clock=lambda: now)
        register("first")
        assert sender.look() == ""
        assert there() == 1
        register("second")
        now += remotes.EVERY - 1
        assert sender.look() == ""
        assert there() == 1
        now += 1
        assert sender.look() == ""
        assert there() == 2
        # What fails is told once, until it is something else or goes well again.
        register("third")
        folder.rename(pool.folder / "away")
        folder.write_text("")
        for expected in (True, False):
            now += remotes.EVERY
            assert bool(sender.look()) is expected
        folder.unlink()
        (pool.folder / "away").rename(folder)
        assert sender.send()[0] == 3
        assert there() == 3
        late = Sender(repo, remote, meanwhile=False, clock=lambda: now)
        register("fourth")
        assert late.look() == ""
        assert there() == 3
        assert late.send()[0] == 1


@pytest.mark.slow
def test_what_was_pushed_outlives_the_client(perun, pool, other) -> None:
    with Farm(pool, "ab") as farm:
        with pool.running("--on", farm.place, "--since", "HEAD~2", "--push", "team") as client:
            eventually(lambda: list((pool.folder / "remote").glob("registers/*")), client)
            client.kill()
            client.communicate(timeout=LIMIT)
        perun("pull", cwd=other)
        pushed = registered(pool, other)
        assert pushed
        assert pushed <= Counter(wanted(2, 2))
        outcome = pool.run("--on", farm.place, "--resume", "--push", "team")
        assert outcome.returncode == 0, outcome
    perun("pull", cwd=other)
    assert registered(pool, other) == wanted(2, 2)
    begun = pool.notes.begun
    assert set(begun) == set(wanted(2, 2))
