"""The cache: entries that are right or not there, whatever happened to its file."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perun.store import Store
from perun.store import cache as module
from perun.store.cache import FILE, FORMAT, Cache
from perun.store.pending import link

WRITER = """
import sys
from pathlib import Path
from perun.store.cache import Cache

cache, worker = Cache(Path(sys.argv[1])), sys.argv[2]
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    cache.put("facts", {f"{worker} {number}": b"%d" % number * 500})
    assert not cache.problem, cache.problem
"""


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    made = Cache(tmp_path / "cache" / FILE)
    made.put("facts", {f"key {number}": b"%d" % number * 3000 for number in range(40)})
    return made


def again(cache: Cache) -> Cache:
    """The cache as another command finds it."""
    return Cache(cache.path)


def test_entries_come_in_the_order_of_the_keys(cache: Cache) -> None:
    cache.put("series", {"key 1": b"another"})
    found = again(cache).get("facts", ["key 7", "none", "key 1"], bytes)
    assert list(found.items()) == [("key 7", b"7" * 3000), ("key 1", b"1" * 3000)]
    cache.put("facts", {"key 1": b"new"}, ["key 7"])
    assert len(again(cache).all("facts", bytes)) == 39
    assert again(cache).get("facts", ["key 1", "key 7"], bytes) == {"key 1": b"new"}
    cache.keep_only("facts", {"key 1", "never"})
    assert again(cache).all("facts", bytes) == {"key 1": b"new"}
    keys = [str(number) for number in range(2000)]
    cache.put("facts", {key: key.encode() for key in keys})
    assert list(cache.get("facts", keys[::-1], int).values()) == list(range(2000))[::-1]


def test_what_cannot_be_decoded_is_not_there(cache: Cache) -> None:
    cache.put("facts", {"a": b"5", "b": b"x"})
    assert cache.get("facts", ["a", "b"], int) == {"a": 5}


def test_nothing_is_made_by_reading(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache" / FILE)
    assert cache.get("facts", ["a"], bytes) == cache.all("steps", bytes) == {}
    cache.keep_only("facts", ())
    assert (cache.damage(), cache.problem, list(tmp_path.iterdir())) == ("", "", [])


@pytest.mark.parametrize("step", [4999, pytest.param(997, marks=pytest.mark.slow)])
def test_wherever_the_file_is_damaged_entries_are_right_or_not_there(cache: Cache, step: int) -> None:
    whole = cache.path.read_bytes()
    right = cache.all("facts", bytes)
    for place in range(0, len(whole), step):
        cache.path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        damaged = again(cache)
        found = damaged.all("facts", bytes) | damaged.get("facts", right, bytes)
        assert found.items() <= right.items()
        damaged.put("facts", {"key 3": b"new"})
        found = again(cache).get("facts", [*right, "key 3"], bytes)
        assert found.pop("key 3") in (b"new", right["key 3"]) and found.items() <= right.items()


@pytest.mark.parametrize("left", [0, 1, 99, 100, 4096, 5000, -1])
def test_a_truncated_file_is_made_anew(cache: Cache, left: int) -> None:
    whole = cache.path.read_bytes()
    right = cache.all("facts", bytes)
    cache.path.write_bytes(whole[:left])
    damaged = again(cache)
    assert damaged.all("facts", bytes).items() <= right.items()
    damaged.put("facts", right)
    assert again(cache).all("facts", bytes) == right and again(cache).damage() == ""


def test_damage_is_found(cache: Cache) -> None:
    assert cache.damage() == ""
    driver = sqlite3.connect(cache.path)
    driver.execute("UPDATE facts SET data = 'x' WHERE key = 'key 3'")
    driver.commit()
    driver.close()
    assert again(cache).damage() == "an entry of its facts is damaged"
    assert len(again(cache).all("facts", bytes)) == 39
    cache.path.write_bytes(b"not a database" * 100)
    assert "not a database" in again(cache).damage()


@pytest.mark.parametrize("change", [
    f"PRAGMA user_version = {FORMAT + 1}", "CREATE TABLE more (key)", "DROP TABLE steps",
    "CREATE TRIGGER more AFTER INSERT ON facts BEGIN DELETE FROM series; END",
])  # fmt: skip
def test_a_file_of_another_format_is_not_read_and_made_anew(cache: Cache, change: str) -> None:
    driver = sqlite3.connect(cache.path)
    driver.execute(change)
    driver.commit()
    driver.close()
    content = cache.path.read_bytes()
    other = again(cache)
    assert (other.all("facts", bytes), other.problem, other.damage()) == ({}, "", "")
    assert cache.path.read_bytes() == content
    other.put("facts", {"a": b"1"})
    assert again(cache).all("facts", bytes) == {"a": b"1"}


def test_caches_of_earlier_releases_are_removed_by_the_first_write(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "of-the-user").touch()
    folder = tmp_path / "cache"
    (folder / "facts").mkdir(parents=True)
    (folder / "facts" / "pending.json").touch()
    (folder / "series").symlink_to(elsewhere)
    (folder / "summaries.json").touch()
    (folder / "preparations.json").touch()
    cache = Cache(folder / FILE)
    assert cache.all("facts", bytes) == {} and len(list(folder.iterdir())) == 4
    cache.put("facts", {"a": b"1"})
    assert {path.name for path in folder.iterdir()} == {FILE, "preparations.json"}
    assert list(elsewhere.iterdir()) == [elsewhere / "of-the-user"]


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_file_is_left_alone(tmp_path: Path, kind: str) -> None:
    path, aim = tmp_path / FILE, tmp_path / "aim"
    {"link": lambda: path.symlink_to(aim), "pipe": lambda: os.mkfifo(path), "folder": path.mkdir}[kind]()
    cache = Cache(path)
    cache.put("facts", {"a": b"1"})
    assert cache.all("facts", bytes) == {}
    assert cache.problem == "it is not a regular file" and not aim.exists()


def test_a_journal_that_would_remove_another_file_is_not_played_back(cache: Cache, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("of the user")
    name = str(victim).encode()
    # The header of a journal without pages, and behind it the name of the journal of several databases.
    header = bytes.fromhex("d9d505f920a163d7") + bytes(4) + b"abcd" + bytes(3) + b"\1" + bytes([0, 0, 2, 0])
    end = len(name).to_bytes(4) + sum(name).to_bytes(4) + bytes.fromhex("d9d505f920a163d7")
    journal = header + bytes([0, 0, 16, 0])
    lock_page = (0x40000000 // 4096 + 1).to_bytes(4)
    Path(f"{cache.path}-journal").write_bytes(journal + bytes(512 - len(journal)) + lock_page + name + end)
    other = again(cache)
    assert other.all("facts", bytes) == {} and "names another file" in other.problem
    assert victim.exists()


def test_a_folder_that_is_read_only_is_read() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        cache = Cache(folder / FILE)
        cache.put("facts", {"a": b"1"})
        folder.chmod(0o555)
        child = os.fork()
        if not child:
            code = 1
            try:
                if os.geteuid() == 0:  # who may write everywhere
                    os.setuid(65534)
                other = again(cache)
                there = other.all("facts", bytes)
                other.put("facts", {"b": b"2"})
                code = 0 if there == {"a": b"1"} and "readonly" in other.problem else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert again(cache).all("facts", bytes) == {"a": b"1"}
        folder.chmod(0o755)


def test_whoever_waits_for_too_long_goes_on_without_it(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAIT", 0.05)
    driver = sqlite3.connect(cache.path, isolation_level=None)
    driver.execute("BEGIN EXCLUSIVE")
    other = again(cache)
    start = time.monotonic()
    for _ in range(1000):
        assert other.all("facts", bytes) == {}
        other.put("facts", {"a": b"1"})
    assert "locked" in other.problem
    assert time.monotonic() - start < 30  # one waiting, not two thousand
    driver.execute("ROLLBACK")
    driver.close()
    assert len(again(cache).all("facts", bytes)) == 40


def test_two_writers_at_once_lose_nothing(cache: Cache) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(cache.path), str(number), "60"])
        for number in range(2)
    ]
    assert [writer.wait(timeout=300) for writer in writers] == [0, 0]
    assert len(again(cache).all("facts", bytes)) == 40 + 2 * 60 and again(cache).damage() == ""


def test_a_killed_writer_leaves_entries_that_are_right(cache: Cache) -> None:
    for number in range(5):
        command = [sys.executable, "-c", WRITER, str(cache.path), str(number), "1000000"]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
        time.sleep(0.02 * number)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        other = again(cache)
        found = other.all("facts", bytes)
        assert other.problem == other.damage() == ""
        assert found.items() >= cache.all("facts", bytes).items()
        for key, data in found.items():
            assert data in (key.split()[1].encode() * 500, key.split()[1].encode() * 3000)
        other.put("facts", {"key 0": b"0" * 3000})
        assert not other.problem


def test_a_child_that_was_forked_has_a_connection_of_its_own(cache: Cache) -> None:
    assert len(cache.all("facts", bytes)) == 40
    child = os.fork()
    if not child:
        code = 1
        try:
            cache.put("facts", {"of the child": b"1"})
            code = 0 if len(cache.all("facts", bytes)) == 41 else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    cache.put("facts", {"of the parent": b"1"})
    assert len(again(cache).all("facts", bytes)) == 42


@pytest.mark.on_disk
def test_fsck_finds_damage_and_makes_it_anew(store: Store, make_profile, minor: Callable[..., str]) -> None:
    link(store, minor(), [(make_profile(), "a.perf", 1)])
    kept = {kind: store.cache.all(kind, bytes) for kind in ("facts", "summaries")}
    assert all(kept.values())
    store.cache.path.write_bytes(store.cache.path.read_bytes()[:5000] + b"\xff" * 10_000)
    other = Store(store.root, url=store.url)
    (finding, *_) = other.fsck()
    assert (finding.severity, finding.path) == ("info", store.cache.path) and finding.repair is not None
    with other.lock():
        finding.repair()
    assert list(Store(store.root, url=store.url).fsck()) == []
    assert {kind: other.cache.all(kind, bytes) for kind in ("facts", "summaries")} == kept
