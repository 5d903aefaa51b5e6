"""`perun add` and `perun rm` (manual 3.2.6, 3.2.7 and 13.2.3)."""

import os
import shutil

import pytest


@pytest.fixture
def jobs(project):
    return project.path / ".perun" / "jobs"


@pytest.fixture
def names(perun):
    """The names of the registered or pending profiles, in the order of their tags."""

    def names(kind="registered", **where):
        return [one["name"] for one in perun("status", "--json", **where).json[kind]]

    return names


@pytest.fixture
def snapshot(project):
    """All that is stored: the content of every file but the lock."""

    def take():
        files = (path for path in (project.path / ".perun").rglob("*") if path.is_file())
        return {path: path.read_bytes() for path in files if path.name != ".lock"}

    return take


@pytest.fixture
def four(write_profile):
    """Pending profiles p0 to p3, of one second each."""
    return [write_profile(f"p{number}.perf", workload=f"w{number}") for number in range(4)]


def test_a_tag(perun, project, four, names, jobs):
    assert perun("add", "1@p").out == f"registered p1.perf in {project.head[:10]}\n"
    assert names() == ["p1.perf"]
    assert names("pending") == ["p0.perf", "p2.perf", "p3.perf"]
    assert not (jobs / "p1.perf").exists()


def test_the_origin_is_not_stored(perun, four):
    assert "origin" in perun("show", "0@p", "raw").json
    perun("add", "0@p")
    assert "origin" not in perun("show", "0@i", "raw").json


@pytest.mark.parametrize(("spec", "taken"), [
    ("@p", [0]),
    ("0@p-3@p", [0, 1, 2, 3]),
    ("1@p-2@p", [1, 2]),
    ("2@p-2@p", [2]),
    ("2@p-99@p", [2, 3]),
    ("@p-1@p", [0, 1]),
    ("3@p-1@p", []),
    ("7@p-9@p", []),
])  # fmt: skip
def test_ranges(perun, four, names, spec, taken):
    done = perun("add", spec)
    assert names() == [f"p{number}.perf" for number in taken]
    assert len(names("pending")) == 4 - len(taken)
    assert bool(taken) == bool(done.out)
    assert bool(taken) != ("no profile is in this range" in done.err)


def test_a_tag_beyond_the_end(perun, four, snapshot):
    before = snapshot()
    perun("add", "0@p", "4@p", code=6, err="there is no profile 4@p: 4 profiles are pending")
    assert snapshot() == before


def test_tags_are_resolved_before_the_first_is_taken(perun, four, names):
    perun("add", "0@p", "1@p")
    assert names() == ["p0.perf", "p1.perf"]
    perun("rm", "0@i", "1@i")
    assert names() == []


def test_names_and_paths(perun, project, four, names, jobs, tmp_path):
    shutil.copy2(jobs / "p3.perf", tmp_path / "away.perf")
    perun("add", "p0", "p1.perf", ".perun/jobs/p2.perf", str(tmp_path / "away.perf"))
    assert names() == ["p0.perf", "p1.perf", "p2.perf", "away.perf"]
    assert names("pending") == ["p3.perf"]
    assert not (tmp_path / "away.perf").exists()


def test_a_path_is_seen_from_the_current_folder(perun, project, write_profile, names):
    folder = project.path / "deep" / "er"
    folder.mkdir(parents=True)
    write_profile("here.perf", folder=folder)
    perun("add", "here.perf", cwd=folder)
    assert names() == ["here.perf"]


def test_a_part_of_a_name(perun, four, write_profile, names):
    write_profile("unlike.perf")
    perun("add", "nlik")
    assert names() == ["unlike.perf"]
    perun("add", "p", code=2, err="'p' is part of the names of 4 pending profiles")


def test_a_file_below_the_project(perun, terminal, project, write_profile, names):
    folder = project.path / "results" / "old"
    folder.mkdir(parents=True)
    first = write_profile("found-1.perf", folder=folder)
    second = write_profile("found-2.perf", folder=folder)
    refused = perun("add", "found", check=False)
    assert refused.code == 6
    assert f"found {first}; give this path to use it" in refused.err
    assert f"found {second}; give this path to use it" in refused.err
    assert names() == []
    assert f"use {second}? [y/N]" in terminal("add", "found", keys="n\ny\n").out
    assert names() == ["found-2.perf"]
    assert (first.exists(), second.exists()) == (True, False)


def test_keep_profile(perun, four, names, jobs):
    perun("add", "--keep-profile", "0@p")
    assert names() == ["p0.perf"]
    assert (jobs / "p0.perf").exists()
    perun("add", "p0.perf", err="p0.perf was registered in")
    assert names() == ["p0.perf"]
    assert not (jobs / "p0.perf").exists()


def test_another_profile_of_the_same_name_and_time_is_not_lost(perun, project, write_profile, names):
    write_profile("a.perf", workload="one", seconds_since_1970=1_700_000_000)
    perun("add", "a.perf")
    other = write_profile("a.perf", workload="two", seconds_since_1970=1_700_000_000)
    write_profile("b.perf")
    perun("add", "a.perf", "b.perf", code=6, err="another profile of that name and time")
    assert other.exists()
    assert names() == ["a.perf", "b.perf"]
    assert perun("status", "--json").json["registered"][0]["workload"] == "one"


def test_the_wrong_origin_leaves_everything_as_it_was(perun, project, write_profile, snapshot):
    write_profile("right.perf")
    write_profile("wrong.perf", origin="HEAD~1")
    before = snapshot()
    failed = perun("add", "right.perf", "wrong.perf", code=6)
    origin, head = project.git("rev-parse", "HEAD~1"), project.head
    assert f"wrong.perf was collected for {origin[:10]}, not for {head[:10]}" in failed.err
    assert f"perun add -m {origin[:10]} wrong.perf" in failed.err
    assert snapshot() == before


def test_minor_force_and_to_origin(perun, project, write_profile, names):
    write_profile("a.perf", origin="HEAD~1")
    write_profile("b.perf", origin="HEAD~1")
    write_profile("c.perf", origin="HEAD~2")
    write_profile("d.perf")
    perun("add", "-m", "HEAD~1", "a.perf")
    perun("add", "--force", "b.perf")
    perun("add", "--to-origin", "c.perf", "d.perf")
    assert names() == ["b.perf", "d.perf"]
    assert perun("show", "-m", "HEAD~1", "0@i", "raw").json["header"]["type"] == "time"
    assert "(1|0|0|1 profiles)" in perun("log", "-s", "HEAD~2").out


def test_without_an_origin(perun, project, write_profile, names, snapshot):
    write_profile("a.perf", origin=None)
    before = snapshot()
    for arguments in ((), ("--to-origin",)):
        perun("add", *arguments, "a.perf", code=6, err=("does not say which version", "--force"))
    assert snapshot() == before
    perun("add", "--force", "a.perf")
    assert names() == ["a.perf"]


REFUSED = [
    (("-m", "nope", "0@p"), 4, "git knows no commit 'nope'"),
    (("0@i",), 2, "0@i is registered already"),
    (("0@p-1@i",), 2, "mixes registered and pending tags"),
    (("nothing.perf",), 6, "no pending profile or file matches 'nothing.perf'"),
    (("p0.prf",), 6, "did you mean p0.perf"),
    (("--to-origin", "-m", "HEAD", "0@p"), 2, "exclude each other"),
    ((), 2, "Missing argument"),
    (("/etc/passwd",), 6, "/etc/passwd: not JSON"),
    ((".",), 6, "no pending profile or file matches '.'"),
    (("9" * 5000 + "@p",), 6, "no pending profile or file matches"),
]


def test_what_is_refused(perun, four, snapshot):
    for arguments, code, message in REFUSED:
        before = snapshot()
        perun("add", *arguments, code=code, err=(message, "hint:"))
        assert snapshot() == before


DAMAGED = ["", "{", "[]", '{"header": {}}', "\0" * 100, '{"origin": 3}']


def test_a_damaged_pending_file(perun, four, jobs, snapshot):
    for content in DAMAGED:
        (jobs / "bad.perf").write_text(content)
        before = snapshot()
        perun("add", "p0", "bad.perf", code=6, err=str(jobs / "bad.perf"))
        assert snapshot() == before
        assert perun("rm", "bad.perf").out == "removed bad.perf from the pending profiles\n"
        assert not (jobs / "bad.perf").exists()


def test_tags_follow_the_order_that_is_set(perun, project, write_profile, names):
    for name, workload in (("a", "3"), ("b", "1"), ("c", "2")):
        write_profile(f"{name}.perf", workload=workload)
    assert names("pending") == ["a.perf", "b.perf", "c.perf"]  # by time
    assert "1@p" in perun("status", "--sort-by", "workload").out
    assert perun("config", "--local", "get", "format.sort_profiles_by").out.endswith(": workload\n")
    assert names("pending") == ["b.perf", "c.perf", "a.perf"]
    perun("add", "0@p")
    assert names() == ["b.perf"]
    perun("add", "0@p-1@p")
    assert names() == ["b.perf", "c.perf", "a.perf"]
    perun("config", "set", "format.sort_profiles_by", "source")
    assert names() == ["a.perf", "b.perf", "c.perf"]
    perun("rm", "0@i")
    assert names() == ["b.perf", "c.perf"]


def test_rm_of_registered_profiles_keeps_the_objects(perun, project, four, names):
    perun("add", "0@p-3@p")
    checksum = perun("status", "--json").json["registered"][2]["checksum"]
    assert perun("rm", "2@i").out == f"removed p2.perf from {project.head[:10]}\n"
    assert names() == ["p0.perf", "p1.perf", "p3.perf"]
    assert (project.path / ".perun" / "objects" / checksum[:2] / checksum[2:]).is_file()
    perun("rm", "1@i-9@i")
    assert names() == ["p0.perf"]
    perun("rm", "p0.perf")
    assert names() == []
    assert "--no--profiles--" in perun("log", "-s").lines[1]


def test_rm_of_pending_profiles(perun, four, names, jobs):
    perun("rm", "1@p")
    assert names("pending") == ["p0.perf", "p2.perf", "p3.perf"]
    perun("rm", "p0", str(jobs / "p2.perf"))
    assert names("pending") == ["p3.perf"]
    assert "no profile is in this range" in perun("rm", "3@p-1@p").err


def test_rm_takes_the_pending_one_first(perun, four, names):
    perun("add", "--keep-profile", "p0")
    perun("rm", "p0.perf")
    assert (names(), "p0.perf" in names("pending")) == (["p0.perf"], False)
    perun("rm", "p0.perf")
    assert names() == []


def test_rm_of_another_version(perun, project, write_profile, names):
    write_profile("a.perf", origin="HEAD~1")
    perun("add", "--to-origin", "a.perf")
    perun("rm", "a.perf", code=6)
    perun("rm", "-m", "HEAD~1", "a.perf")
    perun("show", "-m", "HEAD~1", "0@i", "raw", code=6)


def test_rm_of_a_file_elsewhere_is_refused(perun, project, four, jobs, snapshot):
    shutil.copy(jobs / "p0.perf", project.path / "p0.perf")
    before = snapshot()
    perun("rm", "./p0.perf", code=6)
    assert snapshot() == before
    assert (project.path / "p0.perf").exists()


@pytest.mark.parametrize("spec", ["0@i", "9@p", "nothing.perf", "0@p-1@i"])
def test_rm_of_what_is_not_there_removes_nothing(perun, four, snapshot, spec):
    before = snapshot()
    failed = perun("rm", "0@p", spec, check=False)
    assert failed.code in (2, 6)
    assert "hint:" in failed.err
    assert snapshot() == before


def test_before_the_first_commit(perun, git_repository, jobs, write_profile, tmp_path):
    write_profile("a.perf")
    unborn = git_repository("unborn")
    perun("init", cwd=unborn.path)
    shutil.copy(jobs / "a.perf", unborn.path / ".perun" / "jobs")
    perun("add", "0@p", cwd=unborn.path, code=4, err="has no commits yet")
    perun("rm", "0@p", cwd=unborn.path)


def test_names_that_a_terminal_would_obey(perun, write_profile, names):
    write_profile("x\x1b[31my.perf")
    assert perun("add", "0@p").out.startswith("registered x\\x1b[31my.perf in ")
    assert "\x1b" not in perun("status").out + perun("rm", "0@i").out


def test_a_name_that_is_not_utf8(perun, jobs, write_profile):
    write_profile("a.perf")
    os.rename(jobs / "a.perf", os.fsencode(jobs) + b"/\xff.perf")
    perun("add", "0@p", code=6, err="not UTF-8")
    assert "1 pending profile" in perun("status", env={"PYTHONIOENCODING": "ascii"}).out
    perun("rm", "0@p")
    assert list(jobs.glob("*.perf")) == []


def test_many_writers_at_once(command, environment, perun, four, names):
    import subprocess

    running = [
        subprocess.Popen([*command, "add", f"p{n}.perf"], env=environment, stdout=subprocess.DEVNULL)
        for n in range(4)
    ]
    assert [one.wait() for one in running] == [0] * 4
    assert names() == [f"p{n}.perf" for n in range(4)]
    assert names("pending") == []


def test_adding_again_after_a_half_done_removal(perun, four, names, jobs):
    """The index has both; a kill came after the file of the first was removed."""
    perun("add", "--keep-profile", "p0.perf", "p1.perf")
    (jobs / "p0.perf").unlink()
    perun("add", "p0.perf", "p1.perf", err="p0.perf was registered in")
    assert names() == ["p0.perf", "p1.perf"]
    assert not (jobs / "p1.perf").exists()


def test_profiles_of_one_second_are_all_registered(perun, project):
    """Names end with the second of the measurement, and fast commands are measured twice in one."""
    for _ in range(3):
        perun("collect", "-c", "true", "time", "--repeat", "1", "--warmup", "0")
        perun("add", "0@p")
    assert len(perun("status", "--json").json["registered"]) == 3
