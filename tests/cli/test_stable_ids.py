"""Stable ids of profiles, and tags that name their version: typed again, they mean the same."""

from __future__ import annotations

import os

import pytest


def ids(perun, kind="pending"):
    return {one["name"]: one["id"] for one in perun("status", "--json").json[kind]}


@pytest.fixture
def three(write_profile):
    return [write_profile(name) for name in ("a.perf", "b.perf", "c.perf")]


def test_removing_by_id_twice_removes_one(perun, three):
    first = ids(perun)["a.perf"]
    perun("rm", first)
    again = perun("rm", first, check=False)
    assert again.code == 6
    assert first in again.err
    assert set(ids(perun)) == {"b.perf", "c.perf"}


def test_an_id_stays_when_the_profile_is_registered(perun, three):
    before = ids(perun)
    perun("add", before["b.perf"])
    after = ids(perun, "registered")
    assert after == {"b.perf": before["b.perf"].replace("@p", "@i")}
    assert "./app" in perun("show", after["b.perf"], "raw").out
    assert perun("add", before["b.perf"], check=False).code == 6
    assert "removed b.perf" in perun("rm", after["b.perf"]).out


def test_a_unique_beginning_does(perun, three):
    found = ids(perun)
    assert len({one[:4] for one in found.values()}) == 3
    perun("rm", f"{found['c.perf'][:4]}@p")
    assert set(ids(perun)) == {"a.perf", "b.perf"}


def test_the_beginning_of_several_is_refused(perun, write_profile):
    for number in range(100):
        write_profile(f"{number}.perf")
    beginnings = {}
    for name, one in ids(perun).items():
        beginnings.setdefault(one[:3], []).append(name)
    several = next((one for one, names in beginnings.items() if len(names) > 1), None)
    if several is None:
        pytest.skip("no two of these profiles have ids that begin alike")
    failed = perun("rm", f"{several}@p", check=False)
    assert failed.code == 2
    assert all(name in failed.err for name in beginnings[several])


def test_a_tag_names_its_version(perun, project, write_profile):
    write_profile("old.perf", origin="HEAD~1")
    perun("add", "-m", "HEAD~1", "0@p")
    assert "./app" in perun("show", "HEAD~1:0@i", "raw").out
    assert perun("show", "0@i", "raw", check=False).code == 6
    key = perun("status", "--json").json["registered"]
    assert key == []
    assert "from " + project.git("rev-parse", "HEAD~1")[:10] in perun("rm", "-m", "HEAD", "HEAD~1:0@i").out
    assert perun("rm", "HEAD~1:0@i", check=False).code == 6
    assert perun("rm", "nope:0@i", check=False).code == 4
    assert perun("rm", "HEAD:0@p", check=False).code == 2


def test_status_shows_them_when_it_says_more(perun, three):
    table = perun("-v", "status").out
    assert all(one in table for one in ids(perun).values())
    assert "stable id" not in perun("status").out


def test_a_new_profile_of_the_same_name_has_another(perun, three):
    before = ids(perun)["a.perf"]
    os.utime(three[0], (1, 1))
    assert ids(perun)["a.perf"] != before
