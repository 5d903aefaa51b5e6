"""Stable ids of profiles, and tags that name their version: typed again, they mean the same."""

import os
import re

import pytest


def ids(perun, kind="pending"):
    return {one["name"]: one["id"] for one in perun("status", "--json").json[kind]}


@pytest.fixture
def three(write_profile):
    return [write_profile(name) for name in ("a.perf", "b.perf", "c.perf")]


def test_removing_by_id_twice_removes_one(perun, three):
    first = ids(perun)["a.perf"]
    perun("rm", first)
    perun("rm", first, code=6, err=first)
    assert set(ids(perun)) == {"b.perf", "c.perf"}


def test_an_id_stays_when_the_profile_is_registered(perun, three):
    before = ids(perun)
    perun("add", before["b.perf"])
    after = ids(perun, "registered")
    assert after == {"b.perf": before["b.perf"].replace("@p", "@i")}
    assert "./app" in perun("show", after["b.perf"], "raw").out
    perun("add", before["b.perf"], code=6)
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
    failed = perun("rm", f"{several}@p", code=2)
    assert all(name in failed.err for name in beginnings[several])


def test_a_tag_names_its_version(perun, project, write_profile):
    write_profile("old.perf", origin="HEAD~1")
    perun("add", "-m", "HEAD~1", "0@p")
    assert "./app" in perun("show", "HEAD~1:0@i", "raw").out
    perun("show", "0@i", "raw", code=6)
    key = perun("status", "--json").json["registered"]
    assert key == []
    assert "from " + project.git("rev-parse", "HEAD~1")[:10] in perun("rm", "-m", "HEAD", "HEAD~1:0@i").out
    perun("rm", "HEAD~1:0@i", code=6)
    perun("rm", "nope:0@i", code=4)
    perun("rm", "HEAD:0@p", code=2)


def test_status_shows_them_when_it_says_more(perun, three):
    table = perun("-v", "status").out
    assert all(one in table for one in ids(perun).values())
    assert "stable id" not in perun("status").out


def test_a_new_profile_of_the_same_name_has_another(perun, three):
    before = ids(perun)["a.perf"]
    os.utime(three[0], (1, 1))
    assert ids(perun)["a.perf"] != before


@pytest.fixture
def versions(perun, write_profile):
    """`time-a` and `time-b` in HEAD~1, another `time-a` in HEAD."""
    write_profile("time-a.perf", origin="HEAD~1", workload="old a")
    write_profile("time-b.perf", origin="HEAD~1", workload="old b")
    write_profile("memory.perf", origin="HEAD~1", workload="old memory")
    perun("add", "--to-origin", "0@p-2@p")
    write_profile("time-a.perf", workload="new a")
    perun("add", "0@p")


def workload(perun, *spec):
    return perun("show", *spec, "raw").json["header"]["workload"]


def test_a_name_after_a_version(perun, versions):
    assert workload(perun, "time-a.perf") == "new a"
    assert workload(perun, "HEAD~1:time-a.perf") == "old a"
    assert workload(perun, "HEAD~1:mem") == "old memory"
    assert workload(perun, "HEAD^{commit}:time") == "new a"
    assert workload(perun, "-m", "HEAD", "HEAD~1:1@i") == "old b"


def test_the_beginning_of_a_registered_name(perun, versions):
    assert workload(perun, "time") == "new a"
    assert workload(perun, "-m", "HEAD~1", "mem") == "old memory"


def test_the_beginning_of_several_names_lists_them(perun, versions):
    for spec in (["HEAD~1:time"], ["-m", "HEAD~1", "time"]):
        failed = perun("show", *spec, "raw", code=2)
        found = re.findall(r"^  (\S+)  (\S+)$", failed.err, re.M)
        assert [name for _, name in found] == ["time-a.perf", "time-b.perf"]
        # What the message lists can be typed.
        assert [workload(perun, tag) for tag, _ in found] == ["old a", "old b"]


@pytest.mark.parametrize(("spec", "code", "message"), [
    ("HEAD~1:nothing", 6, "no profile registered in HEAD~1"),
    ("HEAD~1:time-c.perf", 6, "did you mean time-"),
    ("HEAD:memory.perf", 6, "no profile registered in HEAD ("),
    ("nope:time", 4, "nope"),
    (":time", 6, "no profile matches ':time'"),
])  # fmt: skip
def test_a_name_that_the_version_does_not_have(perun, versions, spec, code, message):
    perun("show", spec, "raw", code=code, err=(message, "hint:"))


def test_a_name_with_a_colon_is_a_name_first(perun, versions, write_profile):
    write_profile("HEAD~1:mem.perf", workload="odd")
    assert workload(perun, "HEAD~1:mem.perf") == "odd"
    assert workload(perun, "HEAD~1:memory.perf") == "old memory"


def test_all_commands_take_them(perun, project, versions):
    checked = perun("check", "profiles", "HEAD~1:time-a.perf", "HEAD:time", "--force", "--json").json
    assert checked["schema"]
    perun("postprocessby", "HEAD~1:memory", "normalizer")
    (made,) = perun("status", "--json").json["pending"]
    origin = perun("show", made["id"], "raw").json["origin"]
    assert origin == project.git("rev-parse", "HEAD~1")  # where it was found, without -m
    assert perun("rm", "HEAD~1:time", check=False).code == 6  # what is removed is named wholly
    assert "removed time-b.perf" in perun("rm", "HEAD~1:time-b.perf").out
    assert workload(perun, "HEAD~1:time") == "old a"


def test_profiles_of_one_second_are_in_the_order_of_their_making(perun, project, write_profile):
    """By the full clock, which an index of the manual does not have; not by name."""
    second = 1_714_557_600
    order = ["m.perf", "z.perf", "a.perf", "k.perf"]
    for number, name in enumerate(order):
        moment = second * 10**9 + 1000 * number
        os.utime(write_profile(name, workload=name), ns=(moment, moment))
    os.utime(write_profile("before.perf"), (second - 1, second - 1))
    listed = ["before.perf", *order]
    assert list(ids(perun)) == listed
    perun("config", "set", "format.sort_profiles_by", "[type, time]")
    assert list(ids(perun)) == listed
    perun("add", "0@p-4@p")
    assert list(ids(perun, "registered")) == listed
    assert workload(perun, "1@i") == "m.perf"
    perun("config", "set", "format.sort_profiles_by", "source")
    assert list(ids(perun, "registered")) == sorted(listed)
