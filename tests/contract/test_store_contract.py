"""What all stores have in common, in files or in a database. Slow runs of `tests/unit/store` are on all."""

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import perun
from perun.core.errors import LockTimeout
from perun.core.regular import TooLarge
from perun.store import Store
from perun.store.database import BLOCK
from postgresql_server import new_schema, served

LINKER = """
import sys
from pathlib import Path
from perun.profile.factory import Profile
from perun.store import Store
from perun.store.pending import link

root, url, worker, count = sys.argv[1:]
store = Store(Path(root), url=url)
for number in range(int(count)):
    header = {"type": "time", "cmd": worker, "args": "", "workload": str(number), "units": {"time": "s"}}
    collector = {"name": "time", "params": {}}
    profile = Profile({"header": header, "collector_info": collector, "postprocessors": []})
    profile.update_resources([{"amount": 1.0, "uid": "main", "type": "time", "subtype": "real"}])
    link(store, "ab" * 20, [(profile, f"{worker}-{number}.perf", number)])
    print(number, flush=True)
"""
LARGE = 1 << 40
DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
of_databases = pytest.mark.parametrize("store", DATABASES, indirect=True)
"""What `tests/unit/store/test_lock.py` shows of files."""


@pytest.fixture(scope="session")
def postgresql():
    with served() as url:
        yield url


@pytest.fixture(params=["files", *DATABASES])
def store(request, tmp_path):
    url = {"files": "", "sqlite": "sqlite"}.get(request.param)
    if url is None:
        url = new_schema(request.getfixturevalue("postgresql"))
    made = Store(tmp_path / ".perun", url=url)
    made.create()
    yield made
    made.files.close()


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": str(Path(perun.__file__).parent.parent)}
    words = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_file_is_what_was_written_last(store):
    files, path = store.files, store.root / "objects" / "ab" / "cd"
    assert not files.exists(path) and not files.is_file(path) and not files.is_folder(path.parent)
    with pytest.raises(FileNotFoundError):
        files.read(path, LARGE)
    for content in (b"", b"one", b"three"):
        files.write(path, content)
        assert (files.read(path, LARGE), files.state(path).st_size) == (content, len(content))
    assert files.exists(path) and files.is_file(path) and files.is_folder(path.parent)
    assert (files.listing(path.parent), files.listing(store.root / "objects")) == (["cd"], ["ab"])
    assert list(files.beginnings(path.parent, ["cd", "xx"], 2)) == [("cd", b"th"), ("xx", b"")]
    files.remove(path)
    assert not files.exists(path) and files.listing(path.parent) == []
    for missing in (files.remove, files.state, lambda one: files.set_time(one, 1)):
        with pytest.raises(FileNotFoundError):
            missing(path)


def test_what_fails_leaves_what_was_there(store):
    path = store.root / "objects" / "ab" / "cd"
    store.files.write(path, b"old")
    with pytest.raises(RuntimeError), store.files.writing(path) as file:
        file.write(b"new")
        raise RuntimeError
    with pytest.raises(RuntimeError), store.files.drafted(store.pending.root, [b"a", b"b"]):
        raise RuntimeError
    assert store.files.read(path, LARGE) == b"old"
    assert store.files.listing(store.pending.root) == []


def test_no_more_is_read_than_the_limit(store):
    path = store.root / "stats" / "x"
    store.files.write(path, b"12345")
    assert store.files.read(path, 5) == b"12345"
    for reading in (store.files.read, store.files.opened):
        with pytest.raises(TooLarge, match="5 bytes, more than the limit of 4"):
            reading(path, 4)


@pytest.mark.parametrize("size", [BLOCK - 1, BLOCK, 9 * BLOCK + 7])
def test_any_part_of_a_large_file_is_read(store, size):
    rng = random.Random(size)
    content = rng.randbytes(size)
    path = store.root / "jobs" / "large.perf"
    store.files.write(path, content)
    assert store.files.read(path, LARGE) == content
    with store.files.opened(path, LARGE) as file:
        for _ in range(40):
            at, length = rng.randrange(size + 10), rng.choice((1, 100, BLOCK, BLOCK + 1))
            file.seek(at)
            assert file.read(length) == content[at : at + length]
        assert file.seek(0, os.SEEK_END) == size


def test_of_several_who_claim_a_name_one_gets_it(store):
    path, got = store.pending.root / "a.perf", []

    def claim(number: int) -> None:
        with store.files.drafted(store.pending.root, [b"%d" % number]) as draft:
            if draft.claim(path):
                got.append((number, draft.time))

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ((number, time),) = got
    assert (store.files.read(path, LARGE), store.files.state(path).st_mtime_ns) == (b"%d" % number, time)
    assert store.files.listing(path.parent) == ["a.perf"]


def test_what_several_append_is_all_there(store):
    path = store.root / "sums" / "jobs"

    def append(number: int) -> None:
        for _ in range(20):
            store.files.append(path, b"%d\n" % number)

    threads = [threading.Thread(target=append, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = store.files.read(path, LARGE).split()
    assert sorted(lines) == sorted(b"%d" % number for number in range(4) for _ in range(20))
    assert store.files.append(path, b"x") == 161


def test_a_change_is_newer_than_all_before_whatever_time_is_set(store):
    first, second = store.root / "jobs" / "a.perf", store.root / "jobs" / "b.perf"
    store.files.write(first, b"1")
    store.files.set_time(first, 1_000_000_007)
    state = store.files.state(first)
    assert (state.st_mtime_ns, state.st_size) == (1_000_000_007, 1)
    with store.files.writing(second) as file:
        file.write(b"2")
        time = store.files.time_of(file)
    assert store.files.state(second).st_mtime_ns == time
    assert store.files.state(second).st_ctime_ns >= state.st_ctime_ns > state.st_mtime_ns


def test_what_is_stored_changes_the_signature(store):
    store.files.write(store.root / "objects" / "ab" / "x", b"1")
    before = store.files.signature()
    assert store.files.signature() == before
    store.files.write(store.root / "objects" / "ab" / "y", b"1")
    assert store.files.signature() != before


def test_the_states_of_many_are_those_of_each(store):
    folder = store.root / "objects"
    for name in ("ab/one", "ab/two.changes", "cd/three"):
        store.files.write(folder / name, name.encode())
    names = ["cd/three", "ab/none", "ab/one", "ef/none", "ab/two.changes", "../one"]
    found = list(store.files.states(folder, names))
    assert [one is not None for one in found] == [True, False, True, False, True, False]
    for name, one in zip(names, found, strict=True):
        if one is not None:
            alone = store.files.state(folder / name)
            assert (one.st_mtime_ns, one.st_size) == (alone.st_mtime_ns, len(name))
    assert list(store.files.states(folder / "none", names)) == [None] * len(names)


def test_other_paths_are_of_the_disk(store, tmp_path):
    root = store.root
    for path in (tmp_path / "a", root / "local.yml", root / "cache" / "b", root / "objectsx"):
        store.files.write(path, b"x")
        assert store.files.append(path, b"y") == 2
        assert path.read_bytes() == store.files.read(path, 2) == b"xy"
        store.files.remove(path)
        assert not path.exists()


@of_databases
def test_processes_lose_nothing(store):
    writers = [start(LINKER, store.root, store.url, worker, 10) for worker in range(4)]
    for writer in writers:
        _, err = writer.communicate(timeout=300)
        assert writer.returncode == 0, err
    entries = store.indexes.read("ab" * 20)
    assert len(entries) == 40
    assert {entry.path for entry in entries} == {f"{one}-{n}.perf" for one in range(4) for n in range(10)}
    assert list(store.fsck()) == []


@of_databases
def test_a_killed_writer_leaves_what_it_told(store):
    for attempt in range(3):
        writer = start(LINKER, store.root, store.url, f"w{attempt}", 10**6)
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(2 + 2 * attempt)]
        writer.kill()
        writer.communicate()
        there = {entry.path for entry in store.indexes.read("ab" * 20)}
        assert {f"w{attempt}-{number}.perf" for number in told} <= there
        assert {finding.severity for finding in store.fsck()} <= {"info"}
        with Store(store.root, lock_timeout=60, url=store.url).lock():
            pass


def test_one_writer_excludes_others(store):
    other = Store(store.root, lock_timeout=0, url=store.url)
    with store.lock(), pytest.raises(LockTimeout), other.lock():
        pass
    with other.lock(), other.lock():
        pass
    other.files.close()


def test_what_is_done_together_is_done_or_not(store):
    path = store.root / "objects" / "ab" / "x"
    with store.files.together(), store.files.together():
        store.files.write(path, b"1")
    if not store.url:
        return  # on the disk, what was written before a failure stays
    with pytest.raises(RuntimeError), store.files.together():
        store.files.write(path, b"2")
        store.files.remove(path)
        raise RuntimeError
    assert store.files.read(path, 1) == b"1"


def test_a_forked_process_has_a_connection_of_its_own(store):
    store.files.write(store.root / "objects" / "ab" / "x", b"1")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            store.files.write(store.root / "objects" / "ab" / "y", b"2")
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.files.read(store.root / "objects" / "ab" / "y", 1) == b"2"
