"""`perun run matrix --push`: what is measured goes to a remote while the batch goes on."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perun.repository.repository import open_repository
from perun.sharing import remotes
from perun.sharing.remotes import Sender, open_remote
from perun.store import Store
from pools import LIMIT, Farm, PoolProject, eventually, wanted


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
def test_what_is_measured_is_pushed(
    perun: Callable[..., Any], pool: PoolProject, other: Path, where: tuple[str, ...]
) -> None:
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


def test_it_is_sent_again_and_again(
    pool: PoolProject, other: Path, write_profile: Callable[..., Path], perun: Callable[..., Any]
) -> None:
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
def test_what_was_pushed_outlives_the_client(
    perun: Callable[..., Any], pool: PoolProject, other: Path
) -> None:
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
