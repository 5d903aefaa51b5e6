from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

import pytest

from perun.core import atomic
from perun.core.errors import DamagedStore, ProfileError, ProfileNotFound
from perun.profile.factory import Profile
from perun.profile.head import ProfileHeader
from perun.store import Store
from perun.store.pending import link, unlink
from perun.store.summaries import Summary

MakeProfile = Callable[..., Profile]
Minor = Callable[..., str]
Spawn = Callable[..., "subprocess.Popen[str]"]

LINKER = """
import sys
from pathlib import Path
from perun.profile.format.json import loads
from perun.store import Store
from perun.store.pending import link, unlink

root, url, seed, minor, worker, rounds, size = sys.argv[1:]
data = Path(seed).read_bytes()
print("ready", flush=True)
for number in range(int(rounds)):
    items = []
    for inner in range(int(size)):
        profile = loads(data, seed)
        profile.update_resources([{"amount": float(number), "uid": f"{worker}-{inner}"}])
        items.append((profile, f"{worker}-{number}-{inner}.perf", number))
    store = Store(Path(root), url=url)
    link(store, minor, items)
    if int(rounds) > 1000:
        unlink(store, minor, store.indexes.read(minor)[::2])
"""


@pytest.fixture
def seed(tmp_path: Path, make_profile: MakeProfile) -> Path:
    from perun.profile.format.json import dumps_object

    path = tmp_path / "seed.perf"
    path.write_bytes(dumps_object(make_profile()))
    return path


def test_linked_profiles_are_registered(store: Store, minor: Minor, make_profile: MakeProfile) -> None:
    profile = make_profile(origin="a" * 40, postprocessors=("normalizer",))
    added, duplicates = link(store, minor(), [(profile, "jobs/a.perf", 1700000000.9)])
    assert duplicates == []
    (entry,) = added
    assert store.indexes.read(minor()) == added
    assert (entry.path, entry.time) == ("a.perf", 1700000000)
    assert entry.head == ProfileHeader("time", "./app", "-v", "input.txt", "time", ("normalizer",))
    assert "origin" not in store.objects.get(entry.checksum)
    assert store.summaries.load().get(minor()) == Summary({"time": 1}, 0, 0)
    assert list(store.fsck()) == []


def test_duplicates_are_reported_and_not_added(store: Store, minor: Minor, make_profile: MakeProfile) -> None:
    first = (make_profile(1.0), "a.perf", 5)
    link(store, minor(), [first])
    added, duplicates = link(
        store, minor(), [(make_profile(2.0), "a.perf", 5), (make_profile(3.0), "a.perf", 6)]
    )
    assert [entry.time for entry in added] == [6]
    assert [entry.time for entry in duplicates] == [5]
    added, duplicates = link(store, minor(), [first, first])
    assert (len(added), len(duplicates)) == (0, 2)
    added, duplicates = link(store, minor(1), [first, first])
    assert (len(added), len(duplicates)) == (1, 1)


def test_times_beyond_an_index_are_limited(store: Store, minor: Minor, make_profile: MakeProfile) -> None:
    link(store, minor(), [(make_profile(), "a", -5), (make_profile(), "b", 2.0**40)])
    assert [entry.time for entry in store.indexes.read(minor())] == [0, 2**32 - 1]


def test_a_profile_that_cannot_be_stored_stops_all(
    store: Store, minor: Minor, make_profile: MakeProfile
) -> None:
    bad = make_profile()
    bad["header"]["type"] = "two words"
    with pytest.raises(ProfileError):
        link(store, minor(), [(make_profile(), "a", 1), (bad, "b", 1)])
    assert store.indexes.read(minor()) == []
    assert store.summaries.load().get(minor()) is None


def test_a_damaged_index_stops_before_anything_is_written(
    store: Store, minor: Minor, make_profile: MakeProfile
) -> None:
    path = store.indexes.path(minor())
    path.parent.mkdir()
    path.write_bytes(b"pidx")
    with pytest.raises(DamagedStore):
        link(store, minor(), [(make_profile(), "a", 1)])
    with pytest.raises(ProfileNotFound):
        link(store, "TOAD", [(make_profile(), "a", 1)])
    assert list(store.objects.ids()) == []
    assert path.read_bytes() == b"pidx"


def test_unlinking(store: Store, minor: Minor, make_profile: MakeProfile) -> None:
    added, _ = link(store, minor(), [(make_profile(), name, 1) for name in ("a", "b")])
    unlink(store, minor(), added[:1])
    assert store.indexes.read(minor()) == added[1:]
    assert store.summaries.load().get(minor()) == Summary({"time": 1}, 0, 0)
    with pytest.raises(ProfileNotFound):
        unlink(store, minor(), added)
    assert store.indexes.read(minor()) == added[1:]


@pytest.mark.on_disk
def test_a_hundred_profiles_need_one_index(
    store: Store, minor: Minor, make_profile: MakeProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []
    writing, write_many = atomic.writing, atomic.write_many

    def one(path: Path, **options: bool) -> AbstractContextManager[BinaryIO]:
        written.append(path)
        return writing(path, **options)

    def many(files: Iterable[atomic.NewFile], scratch: Path) -> None:
        kept = list(files)
        written.extend(Path(file.path) for file in kept)
        write_many(kept, scratch)

    monkeypatch.setattr(atomic, "writing", one)
    monkeypatch.setattr(atomic, "write_many", many)
    added, _ = link(store, minor(), [(make_profile(float(number)), f"{number}", 1) for number in range(100)])
    assert len(added) == 100
    assert written.count(store.indexes.path(minor())) == 1
    assert len(written) == 101  # the objects, and the index


def test_four_processes_lose_nothing(store: Store, minor: Minor, seed: Path, spawn: Spawn) -> None:
    processes = [spawn(LINKER, store.root, store.url, seed, minor(), worker, 10, 5) for worker in range(4)]
    for process in processes:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    entries = store.indexes.read(minor())
    assert len({entry.key for entry in entries}) == len(entries) == 200
    assert store.summaries.load().get(minor()) == Summary({"time": 200}, 0, 0)
    assert list(store.fsck()) == []


def kill_again_and_again(
    store: Store, minor: Minor, seed: Path, spawn: Spawn, times: int, longest: float = 0.15
) -> None:
    """Kill a writing process at random moments; after each, the store must be whole and must be writable."""
    rng = random.Random(20240229)
    for attempt in range(times):
        process = spawn(LINKER, store.root, store.url, seed, minor(), f"w{attempt}", 10**6, 3)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0, longest))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        findings = list(store.fsck())
        assert {finding.severity for finding in findings} <= {"info"}, findings
        # The kernel releases a lock at once; the server of a database, when it sees that the line is cut.
        with Store(store.root, lock_timeout=60 if store.url else 0, url=store.url).lock():
            pass
        counted = store.summaries.load().get(minor())
        assert (counted.total if counted else 0) == len(store.indexes.read(minor()))


def test_a_killed_writer_leaves_a_whole_store(store: Store, minor: Minor, seed: Path, spawn: Spawn) -> None:
    kill_again_and_again(store, minor, seed, spawn, 4)


@pytest.mark.slow
def test_two_hundred_killed_writers_leave_a_whole_store(
    store: Store, minor: Minor, seed: Path, spawn: Spawn
) -> None:
    kill_again_and_again(store, minor, seed, spawn, 200)
