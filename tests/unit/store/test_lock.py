from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perun.core.errors import LockTimeout, NotPerunRepository
from perun.repository import journal as journal_file
from perun.store import Store
from perun.store.lock import Lock, is_held

HOLDER = """
import sys, time
from pathlib import Path
from perun.store import Store
sys.argv = ["perun", "run", "matrix"]
with Store(Path(sys.orig_argv[-1])).lock():
    print("held", flush=True)
    time.sleep(60)
"""


def test_it_may_be_taken_again_by_its_holder(store: Store) -> None:
    with store.lock(), store.lock():
        pass
    with store.lock():
        pass


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


@pytest.mark.on_disk
def test_two_stores_exclude_each_other(store: Store) -> None:
    with store.lock(), pytest.raises(LockTimeout), Store(store.root, lock_timeout=0.01).lock():
        pass


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
def test_the_holder_is_named_and_its_death_frees_the_lock(
    store: Store, spawn: Callable[..., subprocess.Popen[str]]
) -> None:
    holder = spawn(HOLDER, store.root)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(LockTimeout, match=rf"process {holder.pid} \(perun run matrix\)") as caught,
            Store(store.root, lock_timeout=0.05).lock(),
        ):
            pass
        assert caught.value.hint
        assert caught.value.exit_code == 7
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
    with Store(store.root, lock_timeout=0).lock():
        pass


def test_where_there_is_no_repository_there_is_no_lock(tmp_path: Path) -> None:
    with pytest.raises(NotPerunRepository, match="cannot be locked"), Store(tmp_path / "nowhere").lock():
        pass


def test_readers_neither_lock_nor_write(
    store: Store, minor: Callable[[object], str], tree_of: Callable[[Path], dict[str, bytes]]
) -> None:
    with Store(store.root).lock():
        before = tree_of(store.root)
        reader = Store(store.root, lock_timeout=0)
        assert reader.pending.list() == []
        assert reader.indexes.read(minor(0)) == []
        assert reader.changes.read(minor(0)) == []
        assert reader.summaries.load().get(minor(0)) is None
        assert list(reader.objects.ids()) == []
        assert reader.stats.versions() == []
        assert reader.temp.files() == []
        assert list(reader.fsck()) == []
        assert tree_of(store.root) == before


@pytest.mark.on_disk
def test_create_is_idempotent_and_keeps_what_is_there(store: Store) -> None:
    file = store.root / "jobs" / "x.perf"
    file.write_text("x")
    store.create()
    assert file.read_text() == "x"
    assert {path.name for path in store.root.iterdir()} == {
        "objects",
        "jobs",
        "logs",
        "cache",
        "stats",
        "tmp",
    }


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
