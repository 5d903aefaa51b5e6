import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

import pytest

from perun.core import atomic
from perun.core.errors import DamagedStore, LockTimeout, NotPerunRepository, ProfileError, ProfileNotFound
from perun.profile.factory import Profile
from perun.profile.head import ProfileHeader
from perun.repository import journal as journal_file
from perun.store import Store
from perun.store.lock import Lock, is_held
from perun.store.pending import link, unlink
from perun.store.summaries import Summary

HOLDER = """
import sys, time
from pathlib import Path
from perun.store import Store
sys.argv = ["perun", "run", "matrix"]
with Store(Path(sys.orig_argv[-1])).lock():
    print("held", flush=True)
    time.sleep(60)
"""


def test_it_is_released_after_an_error(store: Store) -> None:
    with pytest.raises(ValueError, match="x"), store.lock():
        raise ValueError("x")
    with Store(store.root, lock_timeout=0).lock():
        pass


LOOKER = """
import sys
from pathlib import Path
from perun.repository import journal as journal_file
from perun.store.lock import is_held
print("looks", flush=True)
folder = Path(sys.argv[1])
while True:
    is_held(folder / "lock")
    list(journal_file.unlocked(folder, to_read=True))
"""


def test_who_looks_whether_it_is_held_takes_it_from_nobody(tmp_path: Path) -> None:
    journal_file.create(tmp_path, {"plan": 1}).close()
    with Lock(tmp_path / "lock").hold():
        assert is_held(tmp_path / "lock")
        held = (tmp_path / "lock").read_bytes()
    with subprocess.Popen([sys.executable, "-c", LOOKER, tmp_path], stdout=subprocess.PIPE) as looking:
        try:
            assert looking.stdout is not None and looking.stdout.readline()
            for _ in range(500):
                with Lock(tmp_path / "lock", timeout=0).hold():
                    assert (tmp_path / "lock").read_bytes() == held
                (journal,) = journal_file.unlocked(tmp_path)
                journal.close()
            assert looking.poll() is None
        finally:
            looking.kill()
    assert not is_held(tmp_path / "lock") and not is_held(tmp_path / "none")


def test_journals_are_read_without_a_lock_or_a_change(tmp_path: Path) -> None:
    journal = journal_file.create(tmp_path, {"plan": 1})
    journal.append("step")
    assert list(journal_file.unlocked(tmp_path, to_read=True)) == []
    journal.close()
    with journal.path.open("ab") as file:
        file.write(b"cut sho")
    content = journal.path.read_bytes()
    journal.path.chmod(0o400)
    (read,) = journal_file.unlocked(tmp_path, to_read=True)
    assert (read.lines, journal.path.read_bytes()) == ([["step"]], content)
    journal.path.chmod(0o600)
    (opened,) = journal_file.unlocked(tmp_path)
    opened.close()
    assert content.startswith(journal.path.read_bytes()) and journal.path.read_bytes() != content


def test_threads_exclude_each_other(store: Store) -> None:
    inside = [0]
    most = [0]

    def work() -> None:
        for _ in range(20):
            with store.lock():
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


@pytest.mark.on_disk
def test_the_holder_is_named_and_its_death_frees_the_lock(store: Store, spawn) -> None:
    holder = spawn(HOLDER, store.root)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with (
            pytest.raises(LockTimeout, match=rf"process {holder.pid} \(perun run matrix\)") as caught,
            Store(store.root, lock_timeout=0.05).lock(),
        ):
            pass
        assert caught.value.hint and caught.value.exit_code == 7
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
    with Store(store.root, lock_timeout=0).lock():
        pass


def test_where_there_is_no_repository_there_is_no_lock(tmp_path: Path) -> None:
    with pytest.raises(NotPerunRepository, match="cannot be locked"), Store(tmp_path / "nowhere").lock():
        pass


def test_readers_neither_lock_nor_write(store: Store, minor: Callable[[object], str], tree_of) -> None:
    with Store(store.root).lock():
        before = tree_of(store.root)
        reader = Store(store.root, lock_timeout=0)
        assert reader.pending.list() == [] and reader.indexes.read(minor(0)) == []
        assert reader.changes.read(minor(0)) == [] and reader.summaries.load().get(minor(0)) is None
        assert list(reader.objects.ids()) == [] and reader.stats.versions() == []
        assert reader.temp.files() == [] and list(reader.fsck()) == []
        assert tree_of(store.root) == before


@pytest.mark.on_disk
def test_create_is_idempotent_and_keeps_what_is_there(store: Store) -> None:
    file = store.root / "jobs" / "x.perf"
    file.write_text("x")
    store.create()
    assert file.read_text() == "x"
    assert {path.name for path in store.root.iterdir()} == {
        "objects", "jobs", "logs", "cache", "stats", "tmp"
    }  # fmt: skip


def test_who_takes_over_from_a_killed_holder_is_told_and_nobody_else(tmp_path: Path) -> None:
    calls: list[str] = []
    path = tmp_path / "lock"
    for name in ("first", "second"):
        with Lock(path, after_kill=lambda name=name: calls.append(name)).hold():
            assert path.read_text().startswith(f"{os.getpid()} ")
    assert calls == []
    path.write_text("12345 perun run matrix\n")
    for name in ("third", "fourth"):
        with Lock(path, after_kill=lambda name=name: calls.append(name)).hold():
            pass
    assert calls == ["third"]


def test_who_waits_in_vain_has_waited(tmp_path: Path) -> None:
    start = time.monotonic()
    with (
        Lock(tmp_path / "lock").hold(),
        pytest.raises(LockTimeout, match=r"waited 0\.1 s"),
        Lock(tmp_path / "lock", timeout=0.1).hold(),
    ):
        pass
    assert time.monotonic() - start >= 0.1


# -- linking -----------------------------------------------------------------------------------------


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
    assert [entry.time for entry in added] == [6] and [entry.time for entry in duplicates] == [5]
    added, duplicates = link(store, minor(), [first, first])
    assert (len(added), len(duplicates)) == (0, 2)
    added, duplicates = link(store, minor(1), [first, first])
    assert (len(added), len(duplicates)) == (1, 1)


def test_times_beyond_an_index_are_limited(store: Store, minor: Minor, make_profile: MakeProfile) -> None:
    link(store, minor(), [(make_profile(), "a", -5), (make_profile(), "b", 2.0**40)])
    assert [entry.time for entry in store.indexes.read(minor())] == [0, 2**32 - 1]


def test_a_profile_that_cannot_be_stored_stops_all(store: Store, minor: Minor, make_profile) -> None:
    bad = make_profile()
    bad["header"]["type"] = "two words"
    with pytest.raises(ProfileError):
        link(store, minor(), [(make_profile(), "a", 1), (bad, "b", 1)])
    assert store.indexes.read(minor()) == [] and store.summaries.load().get(minor()) is None


def test_a_damaged_index_stops_before_anything_is_written(store: Store, minor: Minor, make_profile) -> None:
    path = store.indexes.path(minor())
    path.parent.mkdir()
    path.write_bytes(b"pidx")
    with pytest.raises(DamagedStore):
        link(store, minor(), [(make_profile(), "a", 1)])
    with pytest.raises(ProfileNotFound):
        link(store, "TOAD", [(make_profile(), "a", 1)])
    assert list(store.objects.ids()) == [] and path.read_bytes() == b"pidx"


def test_unlinking(store: Store, minor: Minor, make_profile: MakeProfile) -> None:
    added, _ = link(store, minor(), [(make_profile(), name, 1) for name in ("a", "b")])
    unlink(store, minor(), added[:1])
    assert store.indexes.read(minor()) == added[1:]
    assert store.summaries.load().get(minor()) == Summary({"time": 1}, 0, 0)
    with pytest.raises(ProfileNotFound):
        unlink(store, minor(), added)
    assert store.indexes.read(minor()) == added[1:]


@pytest.mark.on_disk
def test_a_hundred_profiles_need_one_index(store: Store, minor: Minor, make_profile, monkeypatch) -> None:
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
    assert len(added) == 100 and written.count(store.indexes.path(minor())) == 1
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
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
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
def test_two_hundred_killed_writers_leave_a_whole_store(store, minor, seed: Path, spawn: Spawn) -> None:
    kill_again_and_again(store, minor, seed, spawn, 200)
