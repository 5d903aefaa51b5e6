"""`perun fsck` and `fsck --repair`: all damage is found, what can be mended is; caches may be lost."""

import itertools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from zlib import crc32

import msgspec
import pytest

from perun.core import atomic, leftovers
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.store import Store
from perun.store.cache import FILE, Cache
from perun.store.changes import ChangeRecord
from shared import folder_of_run, made_once


@pytest.fixture
def stored(perun, project, write_profile):
    """A store with two registered profiles of different versions and one pending."""
    write_profile("a.perf")
    write_profile("b.perf", origin="HEAD~1", workload="other")
    perun("add", "--to-origin", "0@p-1@p")
    write_profile("pending.perf")
    return project.path / ".perun"


@pytest.fixture
def object_of(perun, stored):
    def path(tag="0@i"):
        [one] = [one for one in perun("status", "--json").json["registered"] if one["tag"] == tag]
        return stored / "objects" / one["checksum"][:2] / one["checksum"][2:]

    return path


def test_a_sound_store(perun, stored):
    done = perun("fsck")
    assert (done.out, done.err) == ("no damage found\n", "")
    assert perun("fsck", "--json").json == {"schema": "perun.fsck/1", "errors": 0, "findings": []}


def test_an_empty_store(perun, project):
    assert perun("fsck").out == "no damage found\n"


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other"])
def test_a_damaged_object(perun, stored, object_of, damage):
    path = object_of()
    content = path.read_bytes()
    damaged = {
        "cut": content[:-5], "flip": content[:40] + bytes([content[40] ^ 1]) + content[41:], "empty": b"",
        "other": b"something else"
    }  # fmt: skip
    path.write_bytes(damaged[damage])
    files = {one: one.read_bytes() for one in stored.rglob("*") if one.is_file()}
    done = perun("fsck", code=10)
    assert (done.out + done.err).count(str(path)) == 1
    assert "error: " in done.out + done.err
    assert done.out.endswith("1 error\n")
    answer = perun("fsck", "--json", code=10)
    assert answer.json["errors"] == 1
    [finding] = [one for one in answer.json["findings"] if one["severity"] == "error"]
    assert finding["path"] == str(path)
    assert {one: one.read_bytes() for one in stored.rglob("*") if one.is_file()} == files


def test_a_missing_object(perun, stored, object_of):
    path = object_of()
    path.unlink()
    done = perun("fsck", code=10)
    assert "a.perf is missing" in done.out + done.err


def test_a_damaged_index(perun, project, stored):
    head = project.head
    index = stored / "objects" / head[:2] / head[2:]
    index.write_bytes(index.read_bytes()[:-3])
    done = perun("fsck", code=10)
    assert str(index) in done.out + done.err


def test_a_damaged_pending_profile(perun, stored):
    (stored / "jobs" / "bad.perf").write_text("{")
    (stored / "jobs" / "worse\x1b[31m.perf").write_text("{")
    done = perun("fsck", code=10)
    text = done.out + done.err
    assert str(stored / "jobs" / "bad.perf") in text
    assert "worse\\x1b[31m.perf" in text
    assert "\x1b" not in text
    assert "2 errors" in text


def test_what_is_only_odd_is_no_error(perun, stored, write_profile):
    (stored / "objects" / "notes.txt").write_text("mine")
    perun("rm", "0@i")
    assert perun("fsck").out.endswith("no damage found\n")
    verbose = perun("-v", "fsck")
    assert "notes.txt" in verbose.out + verbose.err
    assert "no index names 1 of 2 objects" in verbose.out + verbose.err


def test_all_damage_is_found_at_once(perun, stored, object_of):
    object_of().write_bytes(b"x")
    (stored / "jobs" / "bad.perf").write_text("{")
    answer = perun("fsck", "--json", check=False).json
    assert answer["errors"] == len([one for one in answer["findings"] if one["severity"] == "error"]) == 2


def test_profiles_that_lists_know_nothing_of_are_read(perun, project, write_profile):
    write_profile("a.perf")
    perun("add", "0@p")
    write_profile("large.perf", amounts=[n / 7 for n in range(80_000)])
    cache = project.path / ".perun/cache" / FILE
    cache.unlink()
    (found,) = perun("fsck", "--json").json["findings"]
    assert (found["severity"], found["path"]) == ("info", str(cache))
    assert found["message"] == "lists cannot show what was measured in 2 profiles: they were not read yet"
    (repaired,) = perun("fsck", "--repair", "--json").json["findings"]
    assert repaired["repaired"] == "read them"
    assert perun("fsck", "--json").json["findings"] == []
    answer = perun("status", "--json").json
    assert [one["measured"]["n"] for one in answer["registered"] + answer["pending"]] == [3, 80_000]


def test_acknowledged_changes(perun, project, stored):
    perun("ack", "HEAD", "main")
    assert perun("fsck").out == "no damage found\n"
    path = stored / "acknowledged.json"
    content = path.read_text().replace('"location"', '"locality"')
    path.write_text(content)
    done = perun("fsck", "--repair", code=10)
    assert f"error: {path} is no list of acknowledged changes: entry 1 has no version" in done.out + done.err
    assert path.read_text() == content


# -- --repair ------------------------------------------------------------------------------------------------


@pytest.fixture
def store(project):
    return Store(project.path / ".perun")


@pytest.fixture
def pending(project, perun):
    """A pending profile that Perun itself wrote."""
    perun("collect", "-c", "true", "time", "-r", "1", "-w", "0")
    [path] = (project.path / ".perun/jobs").glob("*.perf")
    return path


def rot(path):
    """Change a digit of the file as a disk does that decays: nobody has written it."""
    status, content = path.stat(), path.read_bytes()
    place = next(place for place, byte in enumerate(content) if chr(byte) in "12345678")
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def findings(perun, *options):
    return perun("fsck", "--json", *options, check=False).json["findings"]


def change(store, version):
    info = DegradationInfo(PerformanceChange.Degradation, "f", "1", "2", rd=3.0)
    store.changes.merge(version, [ChangeRecord(info, "0" * 40, "ls")])
    return store.changes.path(version)


def test_a_decayed_pending_profile_is_found(perun, pending):
    assert findings(perun) == []
    rot(pending)
    [found] = findings(perun, "--repair")
    assert (found["severity"], found["path"], found["repaired"]) == ("error", str(pending), None)
    assert "checksum does not match" in found["message"]
    assert pending.exists()


def test_decayed_changes_are_found(perun, store, project):
    path = change(store, project.head)
    assert findings(perun) == []
    rot(path)
    [found] = findings(perun)
    assert (found["severity"], found["path"]) == ("error", str(path))


def test_what_another_program_wrote_is_a_warning_until_it_is_accepted(perun, store, project):
    path = change(store, project.head)
    path.write_bytes(path.read_bytes().replace(b"ls", b"ls -l"))
    [found] = findings(perun)
    assert (found["severity"], found["repairable"]) == ("warning", True)
    assert "stored the new checksum" in perun("fsck", "--repair").out
    assert findings(perun) == []
    change(store, project.head)
    assert findings(perun) == []


def test_profiles_that_other_programs_made_are_taken(perun, write_profile):
    write_profile()
    assert findings(perun) == []


def test_a_copied_repository_is_sound(perun, pending, store, project, tmp_path):
    change(store, project.head)
    for path in (pending, store.changes.path(project.head)):
        os.utime(path, (1, 1))
    assert findings(perun) == []


def test_a_checksum_that_was_not_finished_is_none(perun, pending, project):
    checksums = project.path / ".perun/sums/jobs"
    checksums.write_bytes(checksums.read_bytes()[:-20])
    [found] = findings(perun)
    assert (found["severity"], found["path"]) == ("warning", str(checksums))
    perun("fsck", "--repair")
    assert findings(perun) == []


def test_checksums_do_not_grow_without_end(store, make_many=2000):
    checksums = store.pending.checksums
    store.pending.root.joinpath("a.perf").write_bytes(b"a")
    for number in range(make_many):
        checksums.note("a.perf", b"%d" % number, number)
    assert checksums.path.stat().st_size < 200_000
    assert checksums.read().checksums["a.perf"][-1].time == make_many - 1


def test_a_decayed_journal_is_found_and_not_gone_on_with(perun, project):
    (project.path / ".perun/local.yml").write_text(
        "vcs: {type: git, url: ..}\ncmds: ['false']\n"
        "collectors: [{name: time, params: {warmup: 0, repeat: 1}}]\n"
    )
    perun("run", "matrix", check=False)
    [journal] = (project.path / ".perun/batches").iterdir()
    assert findings(perun) == []
    content = journal.read_bytes()
    journal.write_bytes(content.replace(b'["failed", 0', b'["failed", 1'))
    assert journal.read_bytes() != content
    [found] = findings(perun)
    assert (found["severity"], found["path"]) == ("error", str(journal))
    perun("run", "matrix", "--resume", code=6, err=(str(journal), "--missing"))


def unfinished(folder, process, system=None):
    path = folder / f"{atomic.TEMPORARY_PREFIX}{process}-{system or atomic.system()}-{'0' * 12}"
    path.write_bytes(b"half")
    return path


@pytest.fixture(scope="module")
def dead():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_only_what_is_certainly_left_over_is_removed(tmp_path, dead):
    gone = unfinished(tmp_path, dead)
    alive = unfinished(tmp_path, os.getpid())
    elsewhere = unfinished(tmp_path, dead, "0badcafe")
    old = unfinished(tmp_path, dead + 1, "0badcafe")
    os.utime(old, (time.time() - 2 * leftovers.MIN_AGE,) * 2)
    of_the_user = tmp_path / ".tmp-mine"
    of_the_user.touch()
    os.utime(of_the_user, (1, 1))
    working_copy = tmp_path / "worktree-1"
    working_copy.mkdir()
    (working_copy / ".git").touch()
    tracked = unfinished(working_copy, dead)
    assert leftovers.sweep(tmp_path) == sorted([gone, old])
    assert all(path.exists() for path in (alive, elsewhere, of_the_user, tracked))


def marked(*, wait):
    """A process with the mark that names of its files have; one that waits does so until its input ends."""
    code = "import sys; from perun.core.atomic import process_mark; print(process_mark(), flush=True); "
    code += "sys.stdin.read()"
    source = subprocess.PIPE if wait else subprocess.DEVNULL
    process = subprocess.Popen([sys.executable, "-c", code], stdin=source, stdout=subprocess.PIPE)
    return process, process.stdout.readline().decode().strip()


@pytest.mark.parametrize(
    "name", [".tmp-{}-0123456789ab", "worktree-{}", "worktree-{}-base-00", "collect-{}-x_1"]
)
def test_a_process_is_judged_by_number_system_and_start(tmp_path, name):
    process, mark = marked(wait=True)
    number, numbered_by = mark.split("-")
    path = tmp_path / name.format(mark)
    system, start = numbered_by[:8], numbered_by[8:]
    reused = tmp_path / name.format(f"{number}-{system}{int(start, 16) ^ 1:04x}")
    elsewhere = tmp_path / name.format(f"{number}-{int(system, 16) ^ 1:08x}{start}")
    unnamed = tmp_path / name.format(number)  # as of an earlier release, and perhaps of another machine
    made = (path, reused, elsewhere, unnamed)
    for one in made:
        one.mkdir()
    assert [leftovers.is_left_over(one) for one in made] == [False, True, False, False]
    process.communicate()
    with subprocess.Popen([sys.executable, "-c", "pass"]) as other:
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and keeps its number
        zombie = tmp_path / name.format(f"{other.pid}-{atomic.system()}0000")
        zombie.mkdir()
        assert leftovers.is_left_over(zombie)
    assert [leftovers.is_left_over(one) for one in (path, elsewhere, unnamed)] == [True, False, False]
    week = time.time() - 2 * leftovers.MIN_AGE_OF_FOLDER
    for one in (elsewhere, unnamed):
        os.utime(one, (week, week))
        assert leftovers.is_left_over(one)
        if not name.startswith(".tmp"):
            (one / "measured").touch()
            assert not leftovers.is_left_over(one)


def test_links_in_left_overs_are_no_damage(perun, project):
    process, mark = marked(wait=False)
    process.wait()
    process.stdout.close()
    tmp = project.path / ".perun/tmp"
    copy = tmp / f"worktree-{mark}"
    copy.mkdir()
    links = (copy / "dangling", tmp / f"collect-{mark}-a", tmp / "of-the-user")
    for link in links:
        link.symlink_to("/nowhere/at/all")
    (copy / "file.txt").write_text("x")
    assert {(one["severity"], one["path"]) for one in findings(perun)} == {
        ("info", str(copy)), ("info", str(links[1])), ("info", str(links[2]))
    }  # fmt: skip
    perun("fsck", "--repair")
    assert [path.name for path in tmp.iterdir()] == ["of-the-user"]
    assert len(findings(perun)) == 1


def test_an_unfinished_folder_is_removed_with_its_files(tmp_path, dead):
    gone, alive = unfinished(tmp_path, dead), unfinished(tmp_path, os.getpid())
    for folder in (gone, alive):
        folder.unlink()
        folder.mkdir()
        unfinished(folder, dead)
        (folder / "whole").write_bytes(b"whole")
    assert leftovers.sweep(tmp_path) == [gone]
    assert list(tmp_path.iterdir()) == [alive]
    assert len(list(alive.iterdir())) == 2


def test_the_next_writer_removes_what_a_killed_one_left(perun, command, project, write_profile, environment):
    write_profile()
    killed = (
        "import os, sys, runpy\n"
        "os.replace = lambda *given: os._exit(9)\n"
        "sys.argv = ['perun', 'add', '0@p']\n"
        "runpy.run_module('perun', run_name='__main__')\n"
    )
    subprocess.run([command[0], "-P", "-c", killed], env=environment, check=False)
    assert list((project.path / ".perun").rglob(".tmp-*"))
    [found] = findings(perun)
    assert "left over" in found["message"]
    perun("add", "0@p")
    assert list((project.path / ".perun").rglob(".tmp-*")) == []


def test_left_over_files_are_removed(perun, project, dead):
    left = unfinished(project.path / ".perun/objects", dead)
    writing = unfinished(project.path / ".perun/objects", os.getpid())
    copy = project.path / f".perun/tmp/worktree-{dead}-{atomic.system()}"
    copy.mkdir()
    told = perun("fsck", "--repair").out
    assert f"repaired: {left}: left over" in told
    assert f"repaired: {copy}: left over" in told
    assert not left.exists()
    assert not copy.exists()
    assert writing.exists()


def test_indexes_out_of_step_are_made_anew(perun, project, store):
    version = project.head
    store.stats.add(version, "2024-03-04 09:02:00", "calls", {"a": {"b": 1}})
    versions = store.stats.versions()
    index = store.stats.root / ".index"
    for damage in (index.unlink, lambda: index.write_bytes(b"x")):
        damage()
        assert len(findings(perun)) == 1
        assert "made its index anew: 1 versions" in perun("fsck", "--repair").out
        assert store.stats.versions() == versions
    temporary = store.temp.write("a", "x", protect=True)
    temporary.unlink()
    assert "it named 1" in perun("fsck", "--repair").out
    assert findings(perun) == []


def test_caches_are_made_anew(perun, project, store, write_profile):
    write_profile("a.perf")
    perun("add", "0@p")
    perun("collect", "-c", "true", "time", "-r", "1", "-w", "0")
    perun("config", "set", "format.status", "%command% %value% (%time%)")  # an age would not stay the same
    table = perun("status").out
    kept = store.cache.all("summaries", bytes)
    assert kept
    index = store.pending.root / ".index"
    before = index.read_bytes()
    for path in (index, store.cache.path):
        path.write_bytes(b"[" * 100_000)
    assert {one["path"] for one in findings(perun)} == {str(index), str(store.cache.path)}
    perun("fsck", "--repair")
    assert index.read_bytes() == before
    assert Cache(store.cache.path).all("summaries", bytes) == kept
    assert len(Cache(store.cache.path).all("facts", bytes)) == 1  # lists read the pending one
    assert perun("status").out == table


def test_wrong_numbers_of_a_cache_are_found(perun, project, store, write_profile):
    write_profile()
    perun("add", "0@p")
    right = store.cache.all("summaries", bytes)
    wrong = {minor: data.replace(b'{"time": 1}', b'{"time": 7}') for minor, data in right.items()}
    assert wrong != right
    store.cache.put("summaries", wrong)
    [found] = findings(perun)
    assert "out of step" in found["message"]
    perun("fsck", "--repair")
    assert store.cache.all("summaries", bytes) == right


def test_what_is_damaged_and_the_only_copy_stays(perun, project, store, write_profile):
    write_profile("a.perf")
    perun("add", "0@p")
    broken = write_profile("b.perf")
    [entry] = store.indexes.read(project.head)
    stored = store.objects.root / entry.checksum[:2] / entry.checksum[2:]
    files = [broken, store.indexes.path(project.head), stored]
    for path in files:
        path.write_bytes(path.read_bytes()[:-9])
    before = [path.read_bytes() for path in files]
    perun("fsck", "--repair", code=10)
    assert [path.read_bytes() for path in files] == before


# -- what the cache has lost ---------------------------------------------------------------------------------


COMMANDS = (
    ("status", "--json"), ("status",), ("log", "--json"), ("log", "--short"), ("log",), ("trend", "--json"),
    ("changes", "--json", "--all"), ("check", "head"), ("log", "--short", "--changes-only"),
)  # fmt: skip
TABLES = ("facts", "series", "names", "columns", "summaries", "found", "steps")


def answers(perun):
    # `log` and `status` show the steps that `changes` has found, so it comes first.
    perun("changes")
    done = [perun(*command, check=False) for command in COMMANDS]
    return [(one.code, one.out, one.err) for one in done]


@pytest.fixture
def asked(perun, measured, tmp_path_factory, monkeypatch):
    """The answers of all commands with the whole cache, and its file."""

    def make(folder):
        shutil.copytree(measured.path, folder / "project", symlinks=True)
        monkeypatch.chdir(folder / "project")
        answers(perun)
        (folder / "answers.json").write_text(json.dumps(answers(perun)))

    kept = made_once(folder_of_run(tmp_path_factory) / "asked", make)
    shutil.rmtree(measured.path)
    shutil.copytree(kept / "project", measured.path, symlinks=True)
    monkeypatch.chdir(measured.path)
    expected = [tuple(one) for one in json.loads((kept / "answers.json").read_text())]
    return expected, measured.path / ".perun" / "cache" / FILE


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_whatever_entries_are_missing_or_damaged_the_answers_are_the_same(perun, asked, seed):
    expected, path = asked
    chance = random.Random(seed)
    driver = sqlite3.connect(path)
    for table in TABLES:
        keys = [key for (key,) in driver.execute(f"SELECT key FROM {table}")]
        for key in chance.sample(keys, chance.randint(0, len(keys))):
            if chance.random() < 0.5:
                driver.execute(f"DELETE FROM {table} WHERE key = ?", (key,))
            else:
                driver.execute(f"UPDATE {table} SET sum = sum + 1 WHERE key = ?", (key,))
    driver.commit()
    driver.close()
    assert answers(perun) == expected
    perun("fsck", "--repair")
    assert perun("fsck", "--json").json["findings"] == []
    assert answers(perun) == expected


def otherwise(value, place):
    """The value with what a walk through its leaves meets at that place of another type; None beyond it."""
    leaves = itertools.count()

    def turned(one):
        if isinstance(one, dict):
            return {key: turned(own) for key, own in one.items()}
        if isinstance(one, list):
            return [turned(own) for own in one]
        if next(leaves) != place:
            return one
        return [one] if isinstance(one, str) else "text"

    found = turned(value)
    return found if next(leaves) > place else None


def test_entries_that_have_other_types_are_made_again(perun, asked):
    expected, path = asked
    chance = random.Random(1)
    with closing(sqlite3.connect(path)) as driver, driver:
        for table in TABLES:
            packed = table not in ("facts", "summaries", "steps")
            read = msgspec.msgpack.decode if packed else json.loads
            write = msgspec.msgpack.encode if packed else msgspec.json.encode
            for key, data in list(driver.execute(f"SELECT key, data FROM {table}")):
                value = read(data)
                places = [place for place in range(50) if otherwise(value, place) is not None]
                made = write(otherwise(value, chance.choice(places)))
                sum_ = crc32(made, crc32(key.encode()))
                driver.execute(f"UPDATE {table} SET data = ?, sum = ? WHERE key = ?", (made, sum_, key))
    assert answers(perun) == expected


@pytest.mark.parametrize("state", ["missing", "truncated", "damaged", "of the future", "a folder"])
def test_whatever_the_file_is_the_answers_are_the_same(perun, asked, state):
    expected, path = asked
    content = path.read_bytes()
    if state == "of the future":
        driver = sqlite3.connect(path)
        driver.execute("PRAGMA user_version = 1000")
        driver.close()
    else:
        path.unlink()
    if state == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif state == "damaged":
        damaged = bytearray(content)
        for place in random.Random(1).sample(range(len(content)), len(content) // 500):
            damaged[place] ^= 0x55
        path.write_bytes(damaged)
    elif state == "a folder":
        path.mkdir()
    found = answers(perun)
    if state != "a folder":
        assert found == expected
        assert Cache(path).damage() == ""
        return
    # Where none can be made, what only `changes` could have kept is missing.
    own = COMMANDS.index(("changes", "--json", "--all"))
    assert found[own] == expected[own]
    assert "it is not a regular file" in perun("-v", "log", "--short").err
    assert "it is not a regular file" not in perun("log", "--short").err
