"""`perun remote`, `perun push` and `perun pull`: what one registers, the others get."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time

import pytest


@pytest.fixture
def url(tmp_path):
    return f"file://{tmp_path / 'remote'}"


@pytest.fixture
def four(perun, project, write_profile):
    """Four registered profiles: two of HEAD, two of its parent."""
    for number in range(4):
        write_profile(f"p{number}.perf", workload=f"w{number}")
    perun("add", "--force", "--minor", "HEAD~1", "0@p", "1@p")
    perun("add", "0@p", "1@p")


@pytest.fixture
def other(perun, project, tmp_path, url):
    """A clone of the project, of somebody else who uses the same remote."""
    project.git("clone", "--quiet", str(project.path), str(tmp_path / "other"))
    perun("init", cwd=tmp_path / "other")
    perun("remote", "add", "team", url, cwd=tmp_path / "other")
    return tmp_path / "other"


def registered(folder):
    """All that is registered in a `.perun`: (version, checksum, name, time)."""
    from perun.store import Store

    indexes = Store(folder / ".perun").indexes
    return {
        (minor, one.checksum, one.path, one.time, one.head)
        for minor in indexes.minors()
        for one in indexes.read(minor)
    }


def test_profiles_go_from_one_to_another(perun, project, four, other, url):
    perun("remote", "add", "team", url)
    assert perun("push").out.startswith(f"sent 4 profiles to {url}: ")
    assert perun("pull", cwd=other).out.startswith(f"fetched 4 profiles from {url}: ")
    assert registered(other) == registered(project.path)
    assert len(registered(other)) == 4
    assert perun("show", "0@i", "raw", cwd=other).json == perun("show", "0@i", "raw").json
    assert perun("fsck", cwd=other).out == "no damage found\n"
    assert perun("log", "--json", cwd=other).json == perun("log", "--json").json


def test_what_is_there_is_not_sent_again(perun, four, other, url, tmp_path):
    perun("remote", "add", "team", url)
    perun("push")
    before = sorted(tmp_path.joinpath("remote").rglob("*"))
    assert perun("push").out == f"nothing to push: 4 profiles of {url} there already\n"
    perun("pull", cwd=other)
    assert perun("pull", cwd=other).out == f"nothing to pull: 4 profiles of {url} here already\n"
    assert perun("push", "--json", cwd=other).json["profiles"] == []
    assert sorted(tmp_path.joinpath("remote").rglob("*")) == before


def test_there_is_nothing_at_all(perun, project, other, url):
    perun("remote", "add", "team", url)
    assert perun("push").out == "nothing to push: no profile is registered; register some with: perun add\n"
    assert perun("pull", cwd=other).out == f"nothing to pull: {url} has no profile\n"
    assert "no profile of these versions is registered" in perun("push", "team", "HEAD").out
    assert perun("pull", "team", "HEAD", cwd=other).out.endswith(" has no profile of these versions\n")
    refused = perun("clone-profiles", f"{url}-mistyped", cwd=other, check=False)
    assert refused.code == 2
    assert "perun remote remove team" in refused.err


def test_a_range(perun, project, four, other, url):
    perun("remote", "add", "team", url)
    assert perun("push", "team", "HEAD~1..", "--json").json["profiles"][0]["minor"] == project.head
    assert len(perun("push", "team", "HEAD~1", "--json").json["profiles"]) == 2
    done = perun("pull", "team", "HEAD~1..HEAD", "--json", cwd=other).json
    assert {one["minor"] for one in done["profiles"]} == {project.head}
    assert len(done["profiles"]) == 2


def test_a_dry_run_changes_nothing(perun, four, other, url, tmp_path):
    perun("remote", "add", "team", url)
    assert perun("push", "--dry-run").out == f"would have sent 4 profiles to {url}\n"
    assert not tmp_path.joinpath("remote").exists()
    perun("push")
    assert perun("pull", "-n", cwd=other).out == f"would have fetched 4 profiles from {url}\n"
    assert registered(other) == set()


def test_both_keep_what_they_measured_in_one_second(perun, project, other, url, write_profile):
    """Two machines, one commit, one name, one second: both profiles are there for both, once."""
    perun("remote", "add", "team", url)
    path = write_profile("same.perf", workload="ours", seconds_since_1970=1_714_557_600)
    theirs = other / ".perun/jobs/same.perf"
    shutil.copy2(path, theirs)
    theirs.write_text(theirs.read_text().replace("ours", "their"))
    os.utime(theirs, (1_714_557_600, 1_714_557_600))
    for folder in (project.path, other):
        perun("add", "0@p", cwd=folder)
        perun("push", cwd=folder)
    for folder in (project.path, other):
        assert perun("pull", "--json", cwd=folder).json["profiles"][0]["name"] == "same.perf"
        assert perun("pull", "--json", cwd=folder).json["known"] == 2
        assert perun("push", "--json", cwd=folder).json["known"] == 2
        found = registered(folder)
        assert {one[4].workload for one in found} == {"ours", "their"}
        assert sorted("~" in one[2] for one in found) == [False, True]
    assert len(list((other.parent / "remote/packs").iterdir())) == 2


def test_a_damaged_profile_is_named_and_the_rest_is_sent(perun, project, four, other, url):
    perun("remote", "add", "team", url)
    checksum = next(one[1] for one in registered(project.path) if one[2] == "p2.perf")
    path = project.path / f".perun/objects/{checksum[:2]}/{checksum[2:]}"
    path.write_bytes(path.read_bytes()[:-6] + b"abcdef")
    done = perun("push", check=False)
    assert done.code == 6
    assert "p2.perf of" in done.err and "is not sent" in done.err
    assert perun("pull", "--json", cwd=other).json["known"] == 0
    assert {one[2] for one in registered(other)} == {"p0.perf", "p1.perf", "p3.perf"}


def test_a_hostile_pack_gives_no_profile(perun, project, four, other, url, tmp_path):
    perun("remote", "add", "team", url)
    perun("push")
    for pack in tmp_path.glob("remote/packs/*"):
        data = bytearray(pack.read_bytes())
        data[-20:] = bytes(20)
        pack.write_bytes(data)
    done = perun("pull", cwd=other, check=False)
    assert (done.code, done.out) == (14, "")
    assert "is damaged: its content is not what its name says" in done.err
    assert registered(other) == set()


def test_the_remote_of_a_stranger_needs_trust(perun, project, four, other, url, tmp_path):
    perun("remote", "add", "team", url)
    shutil.move(project.path, tmp_path / "moved")
    done = perun("push", cwd=tmp_path / "moved", check=False)
    assert done.code == 11
    assert url in done.err and "perun trust" in done.err
    assert not tmp_path.joinpath("remote").exists()


def test_remotes_are_listed_added_and_removed(perun, project, url):
    assert perun("remote").out == "there is no remote; add one with: perun remote add NAME URL\n"
    perun("remote", "add", "team", url)
    perun("remote", "add", "mine", "sqlite:////nowhere/x.db")
    assert perun("remote", "list", "--json").json["remotes"] == [
        {"name": "team", "url": url},
        {"name": "mine", "url": "sqlite:////nowhere/x.db"},
    ]
    assert perun("remote", "add", "team", url, check=False).code == 2
    done = perun("push", check=False)
    assert (done.code, "there are several remotes" in done.err, "team, mine" in done.err) == (2, True, True)
    perun("remote", "remove", "mine")
    assert perun("remote").out == f"team  {url}\n"
    assert perun("remote", "remove", "mine", check=False).code == 2


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("push",), "there is no remote"),
        (("pull", "team"), "there is no remote 'team'"),
        (("remote", "add", "a b", "file:///x"), "cannot be the name"),
        (("remote", "add", "x", "postgresql://me:secret@host/db"), "has a password"),
        (("remote", "add", "x", "/srv"), "no URL of a remote"),
    ],
)
def test_wrong_use(perun, project, arguments, said):
    done = perun(*arguments, check=False)
    assert done.code == 2
    assert said in done.err
    assert "secret" not in done.err + (project.path / ".perun/local.yml").read_text()


def test_a_remote_of_another_format_is_left_alone(perun, four, url, tmp_path):
    perun("remote", "add", "team", url)
    (tmp_path / "remote").mkdir()
    (tmp_path / "remote/format").write_text("perun-remote 2\n")
    done = perun("push", check=False)
    assert done.code == 14
    assert "perun-remote 2" in done.err and "install the Perun" in done.err
    assert not (tmp_path / "remote/packs").exists()


def kill_while(command, environment, folder, arguments, delay):
    """Start a command, kill it after so many seconds if it is still running, and wait for its end."""
    running = subprocess.Popen(
        [*command, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(delay)
    running.send_signal(signal.SIGKILL)
    running.communicate()


def test_a_killed_transfer_leaves_nothing_half_done(
    command, environment, perun, project, four, other, url, write_profile
):
    """Kill pushes, pulls and cleanings: what each has is whole, and nothing is lost.

    `tests/remote/test_teams.py` does that with each kind of remote.
    """
    perun("remote", "add", "team", url)
    for number, delay in enumerate([0.05, 0.2, 0.35, 0.6]):  # two or three kills each: in all, ten
        if number % 4 == 0:
            write_profile(f"k{number}.perf", workload=f"k{number}")
            perun("add", "--force", "0@p")
        kill_while(command, environment, project.path, ["push"], delay)
        if number % 2:
            kill_while(command, environment, other, ["gc", "--remote", "--grace", "0"], delay)
        kill_while(command, environment, other, ["pull"], delay)
        assert registered(other) <= registered(project.path)
    assert perun("fsck", cwd=other).out == "no damage found\n"
    assert perun("fsck", "--remote", cwd=other).out == "no damage found\n"
    perun("push")
    perun("pull", cwd=other)
    assert registered(other) == registered(project.path)
    perun("gc", "--remote", "--grace", "0")
    assert perun("fsck", "--remote", "--json").json["findings"] == []
    assert perun("push", "--json").json["profiles"] == []


def test_profiles_go_through_the_git_repository(perun, project, four, other, tmp_path):
    project.git("init", "--quiet", "--bare", str(tmp_path / "server.git"))
    for folder in (project.path, other):
        project.git("-C", str(folder), "remote", "add", "shared", str(tmp_path / "server.git"))
    perun("remote", "add", "git", "git:shared")
    perun("remote", "add", "git", "git:shared", cwd=other)
    assert perun("push", "git").out.startswith("sent 4 profiles to git:shared: ")
    assert perun("pull", "git", cwd=other).out.startswith("fetched 4 profiles from git:shared: ")
    assert registered(other) == registered(project.path)
    assert perun("push", "git").out == "nothing to push: 4 profiles of git:shared there already\n"
    assert perun("fsck", cwd=other).out == "no damage found\n"
