"""A project whose store is in a database: each verb does and answers what it does with files."""

import gc
import os
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from perun.core.errors import RemoteError
from perun.profile.format.json import loads
from perun.repository.repository import open_repository
from perun.store.connections import SqliteConnection
from postgresql_server import new_schema, served

NOW = re.compile(r"20\d\d(-\d\d){5}")
VERBS = (
    ("-v", "status"),
    ("log", "--short"),
    ("add", "0@p", "p1.perf"),
    ("add", "--keep-profile", "p2"),
    ("add", "--force", "--minor", "HEAD~1", "2@p"),
    ("status", "--json"),
    ("log", "--json"),
    ("show", "0@i", "raw"),
    ("show", "HEAD~1:0@i", "tableof", "--to-stdout", "resources"),
    ("check", "head"),
    ("check", "all"),
    ("status",),
    ("changes", "--json"),
    ("rm", "0@i"),
    ("rm", "p2.perf"),
    ("rm", "missing"),
    ("status", "--json"),
    ("stats", "list-files"),
    ("stats", "sync"),
    ("stats", "clean"),
    ("log", "--changes-only"),
    ("gc", "--dry-run"),
    ("gc",),
    ("fsck", "--repair"),
    ("postprocessby", "0@p", "normalizer"),
    ("fsck",),
)


@pytest.fixture
def made(perun, project, write_profile, tmp_path):
    """Make a copy of the project with a store of a kind, and pending profiles; the folder."""
    files = [write_profile(f"p{number}.perf", workload=f"w{number // 2}", amounts=[1.0 + number / 8] * 9)
             for number in range(5)]  # fmt: skip
    contents = [(path.name, path.read_bytes(), path.stat().st_mtime_ns) for path in files]
    for path in files:
        path.unlink()

    def make(url: str = "") -> Path:
        folder = tmp_path / (url.partition(":")[0] or "files") / "project"
        shutil.copytree(project.path, folder, ignore=shutil.ignore_patterns(".perun"))
        perun("init", *(("--store", url) if url else ()), cwd=folder)
        store = open_repository(folder, os.environ).store
        for name, content, time in contents:
            path = store.pending.save(loads(content, name), name)
            store.files.set_time(path, time)
        store.pending.refresh()
        store.files.close()
        return folder

    return make


@pytest.fixture
def schema():
    with served() as url:
        yield new_schema(url)


def answers(perun, folder):
    """What all verbs answer, one after the other, without what differs from call to call."""
    found = []
    for words in VERBS:
        done = perun(*words, cwd=folder, check=False)
        text = (done.out + done.err).replace(str(folder), "FOLDER")
        found.append((words, done.code, NOW.sub("NOW", text)))
    return found


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_all_verbs_answer_the_same(perun, made, request, kind):
    url = kind if kind == "sqlite" else request.getfixturevalue("schema")
    files, database = made(), made(url)
    for expected, found in zip(answers(perun, files), answers(perun, database), strict=True):
        assert found == expected
    kept = {one for one in ("objects", "jobs", "stats", "sums") if (database / ".perun" / one).exists()}
    assert kept == set()


def test_a_database_elsewhere_is_shared_by_two_copies(perun, made, tmp_path):
    url = f"sqlite:///{tmp_path / 'perf.sqlite'}"
    first = made(url)
    second = tmp_path / "second"
    shutil.copytree(first, second, ignore=shutil.ignore_patterns(".perun"))
    perun("init", "--store", url, cwd=second)
    perun("add", "0@p", cwd=first)
    assert perun("status", "--json", cwd=second).json == perun("status", "--json", cwd=first).json
    assert [one["tag"] for one in perun("status", "--json", cwd=second).json["registered"]] == ["0@i"]
    perun("rm", "0@i", cwd=second)
    assert perun("status", "--json", cwd=first).json["registered"] == []


def test_profiles_move_from_files_to_a_database(perun, made, tmp_path):
    folder = made()
    perun("add", "0@p", "0@p", cwd=folder)
    expected = perun("log", "--json", cwd=folder).json
    perun("init", "--store", "sqlite", cwd=folder, code=2, err="store.url")
    perun("remote", "add", "before", f"file://{tmp_path / 'before'}", cwd=folder)
    perun("push", cwd=folder)
    perun("config", "--local", "set", "store.url", "sqlite", cwd=folder)
    perun("status", cwd=folder, code=14, err="perun init")
    perun("init", cwd=folder)
    assert perun("status", "--json", cwd=folder).json["registered"] == []
    perun("pull", cwd=folder)
    assert perun("log", "--json", cwd=folder).json == expected
    assert perun("fsck", cwd=folder).out == "no damage found\n"


@pytest.mark.parametrize("url", [
    "postgresql://me:secret-word@host/perf", "postgresql://host/perf?password=secret-word",
    "mysql://host/perf", "sqlite://", "sqlite:///", "postgresql://host", "x", "", "sqlite://[",
])  # fmt: skip
def test_urls_that_are_none_are_refused_and_nothing_is_made(perun, tmp_path, url):
    folder = tmp_path / "new"
    folder.mkdir()
    failed = perun("init", "--store", url, cwd=folder, code=2)
    assert "secret-word" not in failed.out + failed.err
    assert list(folder.iterdir()) == []


def test_a_server_that_cannot_be_reached_is_named(perun, git_repository, tmp_path):
    folder = git_repository(commits=1).path
    url = f"postgresql:///perf?host={tmp_path}"
    perun("init", "--store", url, cwd=folder, code=14, err=url)
    assert not (folder / ".perun" / "local.yml").exists()


def test_the_database_of_a_strangers_repository_needs_trust(perun, made, environment):
    folder = made("sqlite")
    (folder / ".perun" / "trust-mark").unlink()
    shutil.rmtree(Path(environment["PERUN_CONFIG_DIR"]) / "trust")
    for words in (("status",), ("log",), ("fsck",), ("init",)):
        perun(*words, cwd=folder, code=11, err="store.url: sqlite")
    assert perun("status", cwd=folder, env={"PERUN_TRUST": "1"}).code == 0


@pytest.mark.parametrize("damage", [b"", b"not a database, but as long as the header of one is" * 9])
def test_a_file_that_is_no_database_is_named(perun, made, damage):
    folder = made("sqlite")
    for name in ("store.sqlite-wal", "store.sqlite-shm"):
        (folder / ".perun" / name).unlink(missing_ok=True)
    (folder / ".perun" / "store.sqlite").write_bytes(damage)
    perun("status", cwd=folder, code=14, err="store.sqlite")


def test_a_refused_database_is_closed(tmp_path):
    file = tmp_path / "store.sqlite"
    file.write_bytes(b"not a database, but as long as the header of one is" * 9)
    with pytest.raises(RemoteError, match="not a database"):
        SqliteConnection(file, "sqlite").execute("SELECT 1")
    gc.collect()


def test_a_newer_format_is_refused(perun, made):
    folder = made("sqlite")
    with sqlite3.connect(folder / ".perun" / "store.sqlite") as connection:
        connection.execute("UPDATE perun_store SET format = 2")
    connection.close()
    perun("status", cwd=folder, code=14, err="has the format 2")
