"""Commands that fail have changed nothing, or say what they had done."""

from __future__ import annotations

import pytest

from perun.store import Store


@pytest.fixture
def store(project):
    return Store(project.path / ".perun")


@pytest.mark.parametrize("what", [("file", "calls"), ("minor", "HEAD"), ("all",)])
def test_statistics_stay_where_their_index_is_damaged(perun, project, store, what):
    store.stats.add(project.head, "2024-03-04 09:02:00", "calls", {"a": {"b": 1}})
    index = store.stats.root / ".index"
    index.write_bytes(b"x")
    failed = perun("stats", "delete", *what, check=False)
    assert failed.code == 6
    assert "perun stats sync" in failed.err
    assert store.stats.names(project.head) == ["calls"]
    perun("stats", "sync")
    perun("stats", "delete", *what)
    assert store.stats.names(project.head) == []


def test_nothing_is_registered_where_one_index_is_damaged(perun, project, store, write_profile):
    write_profile("a.perf")
    write_profile("b.perf", origin="HEAD~1")
    old = store.indexes.path(project.git("rev-parse", "HEAD~1"))
    old.parent.mkdir(exist_ok=True)
    old.write_bytes(b"pidx")
    failed = perun("add", "--to-origin", "0@p-1@p", check=False)
    assert failed.code == 6
    assert store.indexes.read(project.head) == []
    assert len(store.pending.list()) == 2


FULL = """\
import os, runpy, sys
replace, index = os.replace, sys.argv[1]
def full(source, target):
    if str(target) in (index, os.path.dirname(index)):
        raise OSError(28, "No space left on device", str(target))
    replace(source, target)
os.replace = full
sys.argv = ["perun", *sys.argv[2:]]
runpy.run_module("perun", run_name="__main__")
"""


@pytest.fixture
def full_disk(command, store):
    """How to call a Perun that finds the disk full when it names the index of the version, or its folder."""
    return lambda version: [command[0], "-P", "-c", FULL, str(store.indexes.path(version))]


def test_what_was_registered_is_said(perun, project, store, write_profile, full_disk):
    write_profile("a.perf")
    write_profile("b.perf", origin="HEAD~1")
    version = project.git("rev-parse", "HEAD~1")
    failed = perun("add", "--to-origin", "0@p-1@p", program=full_disk(version), check=False)
    assert failed.code == 3
    assert f"note: a.perf was registered in {project.head[:10]} before that" in failed.err
    assert [one.path for one in store.indexes.read(project.head)] == ["a.perf"]
    assert len(store.pending.list()) == 2
    perun("add", "--to-origin", "0@p-1@p")
    assert [one.path for one in store.indexes.read(version)] == ["b.perf"]
    assert store.pending.list() == []


def test_a_profile_that_cannot_be_registered_is_kept_and_named(perun, project, store):
    (project.path / ".perun/local.yml").write_text(
        "vcs: {type: git, url: ..}\nprofiles: {register_after_run: true}\n"
    )
    index = store.indexes.path(project.head)
    index.parent.mkdir(exist_ok=True)
    index.write_bytes(b"pidx")
    failed = perun("collect", "-c", "true", "time", "-r", "1", "-w", "0", check=False)
    assert failed.code == 6
    [info] = store.pending.list()
    assert f"stored, but not registered: {info.realpath}" in failed.err


def test_what_was_removed_is_said(perun, project, store, write_profile, full_disk):
    write_profile("a.perf")
    perun("add", "0@p")
    write_profile("b.perf", origin="HEAD~1")
    perun("add", "-m", "HEAD~1", "0@p")
    version = project.git("rev-parse", "HEAD~1")
    failed = perun("rm", "0@i", "HEAD~1:0@i", program=full_disk(version), check=False)
    assert failed.code == 3
    assert f"note: a.perf was removed from {project.head[:10]} before that" in failed.err
    assert [one.path for one in store.indexes.read(version)] == ["b.perf"]
