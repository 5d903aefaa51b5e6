"""`perun fsck`: everything that is damaged is found, and nothing is changed."""

from __future__ import annotations

import pytest

from perun.store.cache import FILE


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
        "cut": content[:-5],
        "flip": content[:40] + bytes([content[40] ^ 1]) + content[41:],
        "empty": b"",
        "other": b"something else",
    }
    path.write_bytes(damaged[damage])
    files = {one: one.read_bytes() for one in stored.rglob("*") if one.is_file()}
    done = perun("fsck", check=False)
    assert done.code == 10
    assert (done.out + done.err).count(str(path)) == 1
    assert "error: " in done.out + done.err
    assert done.out.endswith("1 error\n")
    answer = perun("fsck", "--json", check=False)
    assert answer.code == 10
    assert answer.json["errors"] == 1
    [finding] = [one for one in answer.json["findings"] if one["severity"] == "error"]
    assert finding["path"] == str(path)
    assert {one: one.read_bytes() for one in stored.rglob("*") if one.is_file()} == files


def test_a_missing_object(perun, stored, object_of):
    path = object_of()
    path.unlink()
    done = perun("fsck", check=False)
    assert done.code == 10
    assert "a.perf is missing" in done.out + done.err


def test_a_damaged_index(perun, project, stored):
    head = project.head
    index = stored / "objects" / head[:2] / head[2:]
    index.write_bytes(index.read_bytes()[:-3])
    done = perun("fsck", check=False)
    assert done.code == 10
    assert str(index) in done.out + done.err


def test_a_damaged_pending_profile(perun, stored):
    (stored / "jobs" / "bad.perf").write_text("{")
    (stored / "jobs" / "worse\x1b[31m.perf").write_text("{")
    done = perun("fsck", check=False)
    assert done.code == 10
    text = done.out + done.err
    assert str(stored / "jobs" / "bad.perf") in text
    assert "worse\\x1b[31m.perf" in text
    assert "\x1b" not in text
    assert "2 errors" in text


def test_what_is_only_odd_is_no_error(perun, stored, write_profile):
    (stored / "objects" / "notes.txt").write_text("mine")
    perun("rm", "0@i")
    done = perun("fsck")
    assert done.out.endswith("no damage found\n")
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
    done = perun("fsck", "--repair", check=False)
    assert done.code == 10
    assert f"error: {path} is no list of acknowledged changes: entry 1 has no version" in done.out + done.err
    assert path.read_text() == content
