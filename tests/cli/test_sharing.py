"""`perun remote`, `push`, `pull`, `fetch`, `clone-profiles`, `fsck --remote`: what one has, others get."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from servers import BUCKET, line_to, s3_server

from perun.core.errors import RemoteError
from perun.repository.repository import open_repository
from perun.sharing import transfer
from perun.store.remote.opening import opened


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


def test_profiles_go_from_one_to_another_once(perun, project, four, other, url, tmp_path):
    perun("remote", "add", "team", url)
    assert perun("push", "--dry-run").out == f"would have sent 4 profiles to {url}\n"
    assert not tmp_path.joinpath("remote").exists()
    assert perun("push").out.startswith(f"sent 4 profiles to {url}: ")
    before = sorted(tmp_path.joinpath("remote").rglob("*"))
    assert perun("push").out == f"nothing to push: 4 profiles of {url} there already\n"
    assert perun("pull", "-n", cwd=other).out == f"would have fetched 4 profiles from {url}\n"
    assert registered(other) == set()
    assert perun("pull", cwd=other).out.startswith(f"fetched 4 profiles from {url}: ")
    assert perun("pull", cwd=other).out == f"nothing to pull: 4 profiles of {url} here already\n"
    assert perun("push", "--json", cwd=other).json["profiles"] == []
    assert sorted(tmp_path.joinpath("remote").rglob("*")) == before
    assert registered(other) == registered(project.path)
    assert len(registered(other)) == 4
    assert perun("show", "0@i", "raw", cwd=other).json == perun("show", "0@i", "raw").json
    assert perun("fsck", cwd=other).out == "no damage found\n"
    assert perun("log", "--json", cwd=other).json == perun("log", "--json").json


def test_there_is_nothing_at_all(perun, project, other, url):
    perun("remote", "add", "team", url)
    assert perun("push").out == "nothing to push: no profile is registered; register some with: perun add\n"
    assert perun("pull", cwd=other).out == f"nothing to pull: {url} has no profile\n"
    assert "no profile of these versions is registered" in perun("push", "team", "HEAD").out
    assert perun("pull", "team", "HEAD", cwd=other).out.endswith(" has no profile of these versions\n")
    perun("clone-profiles", f"{url}-mistyped", cwd=other, code=2, err="perun remote remove team")


def test_a_range(perun, project, four, other, url):
    perun("remote", "add", "team", url)
    assert perun("push", "team", "HEAD~1..", "--json").json["profiles"][0]["minor"] == project.head
    assert len(perun("push", "team", "HEAD~1", "--json").json["profiles"]) == 2
    done = perun("pull", "team", "HEAD~1..HEAD", "--json", cwd=other).json
    assert {one["minor"] for one in done["profiles"]} == {project.head}
    assert len(done["profiles"]) == 2


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
    perun("push", code=6, err=("p2.perf of", "is not sent"))
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
    perun("push", cwd=tmp_path / "moved", code=11, err=(url, "perun trust"))
    assert not tmp_path.joinpath("remote").exists()


def test_remotes_are_listed_added_and_removed(perun, project, url):
    assert perun("remote").out == "there is no remote; add one with: perun remote add NAME URL\n"
    perun("remote", "add", "team", url)
    perun("remote", "add", "mine", "sqlite:////nowhere/x.db")
    assert perun("remote", "list", "--json").json["remotes"] == [
        {"name": "team", "url": url},
        {"name": "mine", "url": "sqlite:////nowhere/x.db"},
    ]
    perun("remote", "add", "team", url, code=2)
    perun("push", code=2, err=("there are several remotes", "team, mine"))
    perun("remote", "remove", "mine")
    assert perun("remote").out == f"team  {url}\n"
    perun("remote", "remove", "mine", code=2)


@pytest.mark.parametrize("arguments, said", [
    (("push",), "there is no remote"),
    (("pull", "team"), "there is no remote 'team'"),
    (("remote", "add", "a b", "file:///x"), "cannot be the name"),
    (("remote", "add", "x", "postgresql://me:secret@host/db"), "has a password"),
    (("remote", "add", "x", "/srv"), "no URL of a remote"),
])  # fmt: skip
def test_wrong_use(perun, project, arguments, said):
    done = perun(*arguments, code=2, err=said)
    assert "secret" not in done.err + (project.path / ".perun/local.yml").read_text()


def test_a_remote_of_another_format_is_left_alone(perun, four, url, tmp_path):
    perun("remote", "add", "team", url)
    (tmp_path / "remote").mkdir()
    (tmp_path / "remote/format").write_text("perun-remote 2\n")
    perun("push", code=14, err=("perun-remote 2", "install the Perun"))
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


# -- a line that is cut --------------------------------------------------------------------------------------


def test_a_transfer_goes_on_where_the_line_was_cut(
    perun, project, write_profile, environment, tmp_path, monkeypatch
):
    for number in range(6):
        write_profile(f"p{number}.perf", workload=os.urandom(20_000).hex())
    perun("add", *(f"{number}@p" for number in range(6)))
    monkeypatch.setattr("perun.store.remote.pack.TARGET", 1)  # a pack for each
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-of-tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-tests")
    repo = open_repository(project.path, environment)
    with s3_server() as port, line_to(port) as line:
        remote = opened(
            f"s3://{BUCKET}/perf?endpoint=http://127.0.0.1:{line.port}&region=eu", environ=os.environ
        )
        line.left = 80_000
        with pytest.raises(RemoteError):
            transfer.push(repo, remote)
        line.left = None
        sent, before = transfer.push(repo, remote), line.passed[0]
        assert 0 < len(sent.entries) < 6
        assert sent.known == 6 - len(sent.entries)
        assert transfer.push(repo, remote).entries == []
        assert line.passed[0] - before < 10_000  # nothing was sent again
        project.git("clone", "--quiet", str(project.path), str(tmp_path / "other"))
        perun("init", cwd=tmp_path / "other")
        other = open_repository(tmp_path / "other", environment)
        line.received = [None, *[20_000] * 3]
        fetched = transfer.pull(other, remote)
        assert len(fetched.entries) == 6 and fetched.refused == []
    assert json.loads(perun("log", "--json", cwd=tmp_path / "other").out)


# -- what a remote has, and whether it is whole --------------------------------------------------------------


@pytest.fixture
def pushed(perun, project, write_profile, url):
    """A project with four profiles at the remote, each pushed by itself: two of HEAD, two of its parent."""
    perun("remote", "add", "team", url)
    for number in range(4):
        write_profile(f"p{number}.perf", workload=f"w{number}")
        perun("add", "--force", "--minor", "HEAD" if number % 2 else "HEAD~1", "0@p")
        perun("push")
    return project


def clone(project, folder):
    project.git("clone", "--quiet", str(project.path), str(folder))
    return folder


def pack_of(remote, name):
    """The pack that a profile is in, and the place of its object there."""
    import json

    for path in (remote / "registers").iterdir():
        for line in path.read_text().splitlines()[1:]:
            row = json.loads(line)
            if row[5] == name:
                return remote / "packs" / row[6], row[7]
    raise AssertionError(name)


def test_fetch_lists_what_is_where(perun, pushed, url, write_profile, tmp_path):
    other = clone(pushed, tmp_path / "other")
    perun("init", cwd=other)
    perun("remote", "add", "team", url, cwd=other)
    lines = perun("fetch", cwd=other).lines
    assert lines[0].startswith(pushed.head[:10]) and "2 profiles, 2 not here" in lines[0]
    assert lines[2:] == [
        f"{url} has 4 profiles of 2 versions",
        "4 profiles of them not here: perun pull fetches them",
    ]
    assert not list((other / ".perun/objects").iterdir())
    write_profile("p9.perf", workload="w9")
    perun("add", "0@p")
    assert perun("fetch").lines[-1] == "1 profile of here not there: perun push sends them"
    (found,) = perun("fetch", "team", "HEAD~1", "--json").json["versions"]
    assert found["version"] == pushed.git("rev-parse", "HEAD~1").strip()
    assert (found["not_here"], found["not_there"]) == (0, 0)
    assert [one["name"] for one in found["profiles"]] == ["p0.perf", "p2.perf"]


def test_fetch_names_versions_that_the_clone_does_not_have(perun, pushed, url, write_profile, tmp_path):
    other = clone(pushed, tmp_path / "other")
    perun("clone-profiles", url, cwd=other)
    pushed.git("commit", "--quiet", "--allow-empty", "-m", "later")
    write_profile("p9.perf", workload="w9")
    perun("add", "--force", "0@p")
    perun("push")
    done = perun("fetch", cwd=other)
    assert done.lines[2] == f"{pushed.head[:10]}{' ' * 14}1 profile, 1 not here"
    assert "versions without a date are not in this clone" in done.err


def test_who_is_new_in_the_team_types_one_line(perun, pushed, url, tmp_path):
    other = clone(pushed, tmp_path / "other")
    done = perun("clone-profiles", url, cwd=other)
    assert done.lines[1] == f"the remote team is {url}"
    assert done.lines[2].startswith(f"fetched 4 profiles from {url}: ")
    assert perun("status", "--json", cwd=other).json == perun("status", "--json").json
    again = perun("clone-profiles", url, cwd=other)
    assert again.lines[1] == f"nothing to pull: 4 profiles of {url} here already"
    perun("clone-profiles", "file:///elsewhere", cwd=other, code=2, err="there is a remote 'team' already")


@pytest.mark.parametrize("arguments, code, said", [
    (("file:///srv/x",), 3, "is no clone of a project"),
    (("/srv/x",), 2, "no URL of a remote"),
    (("file:///srv/x", "--name", "a b"), 2, "cannot be the name of a remote"),
])  # fmt: skip
def test_profiles_are_cloned_into_a_clone_only(perun, tmp_path, arguments, code, said):
    folder = tmp_path / "empty"
    folder.mkdir()
    done = perun("clone-profiles", *arguments, cwd=folder, check=False)
    assert (done.code, list(folder.iterdir())) == (code, [])
    assert said in done.err


def test_a_whole_remote_is_found_whole(perun, pushed):
    assert perun("fsck", "--remote").out == "no damage found\n"
    assert perun("fsck", "--remote", "team", "--json").json == {
        "schema": "perun.fsck/1",
        "errors": 0,
        "findings": [],
    }


def test_a_damaged_pack_is_named_with_its_profiles(perun, pushed, tmp_path):
    path, start = pack_of(tmp_path / "remote", "p1.perf")
    data = bytearray(path.read_bytes())
    data[start + 30] ^= 1
    path.write_bytes(data)
    done = perun("fsck", "--remote", check=False)
    assert done.code == 10
    assert f"packs/{path.name}" in done.out and "p1.perf of" in done.out
    assert "1 error\n" in done.out
    assert "perun fsck --repair --remote" in done.err


def test_what_is_damaged_is_sent_again_after_a_repair(perun, pushed, url, tmp_path):
    remote = tmp_path / "remote"
    other = clone(pushed, tmp_path / "other")
    first, start = pack_of(remote, "p1.perf")
    data = bytearray(first.read_bytes())
    data[start + 30] ^= 1
    first.write_bytes(data)
    missing, _start = pack_of(remote, "p2.perf")
    missing.unlink()
    done = perun("fsck", "--remote", "--repair")
    assert done.out.count("repaired: ") == 2 and "it is missing; 1 profile cannot be fetched" in done.out
    assert perun("fetch").lines[-1] == "2 profiles of here not there: perun push sends them"
    assert perun("push").out.startswith("sent 2 profiles")
    assert perun("fsck", "--remote").out == "no damage found\n"
    assert perun("clone-profiles", url, cwd=other).lines[-1].startswith("fetched 4 profiles")


def test_of_a_damaged_pack_what_is_whole_is_kept(perun, project, write_profile, url, tmp_path):
    perun("remote", "add", "team", url)
    for number in range(3):
        write_profile(f"p{number}.perf", workload=f"w{number}")
    perun("add", "0@p-2@p")
    perun("push")
    path, start = pack_of(tmp_path / "remote", "p1.perf")
    data = bytearray(path.read_bytes())
    data[start + 30] ^= 1
    path.write_bytes(data)
    done = perun("fsck", "--remote", "--repair")
    assert "kept 2 profiles of it; the next perun push of who has the other 1" in done.out
    other = clone(project, tmp_path / "other")
    assert perun("clone-profiles", url, cwd=other).lines[-1].startswith("fetched 2 profiles")
    assert perun("push").out.startswith("sent 1 profile ")
    assert perun("fsck", "--remote").code == 0


def test_a_register_that_cannot_be_read_is_put_aside(perun, pushed, url, tmp_path):
    path = min((tmp_path / "remote/registers").iterdir())
    path.write_bytes(b"nonsense")
    assert perun("push", check=False).code == 0  # what it holds is in the cache of who pushed it
    other = clone(pushed, tmp_path / "other")
    perun("clone-profiles", url, cwd=other, code=14, err=("is damaged", "perun fsck --remote --repair"))
    perun("fsck", "--remote", code=10)
    perun("fsck", "--remote", "--repair", out=f"put aside as damaged/{path.name}")
    assert perun("push").out.startswith("sent 1 profile ")
    assert perun("pull", cwd=other).out.startswith("fetched 4 profiles")


def test_an_object_that_is_not_what_its_pack_says_is_named(perun, pushed, url, tmp_path):
    """Who sent it lied: the name of the pack is right, that of the object is not."""
    import json

    from perun.store.remote.pack import packed
    from perun.store.remote.register import written

    remote = tmp_path / "remote"
    made = packed([("ab" * 20, b"no object")])
    (remote / "packs" / made.name).write_bytes(made.data)
    saying = written([], now=0)
    line = json.dumps(["+", pushed.head, "ab" * 20, 1, 1, "x.perf", *made.places["ab" * 20]])
    saying = saying._replace(data=saying.data + line.encode() + b"\n")
    import hashlib

    (remote / "registers" / hashlib.sha256(saying.data).hexdigest()).write_bytes(saying.data)
    perun("fsck", "--remote", code=10, out="x.perf of")
    perun("pull", code=6, err="x.perf of")


def test_nothing_is_repaired_without_being_asked(perun, pushed, tmp_path):
    path, _start = pack_of(tmp_path / "remote", "p1.perf")
    path.unlink()
    before = sorted(tmp_path.joinpath("remote").rglob("*"))
    perun("fsck", "--remote", code=10)
    assert sorted(tmp_path.joinpath("remote").rglob("*")) == before


def test_a_pack_that_is_gone_is_said_by_pull_too(perun, pushed, url, tmp_path):
    path, _start = pack_of(tmp_path / "remote", "p1.perf")
    path.unlink()
    other = clone(pushed, tmp_path / "other")
    done = perun("clone-profiles", url, cwd=other, code=6)
    assert done.lines[-1].startswith("fetched 3 profiles")
    assert f"p1.perf of {pushed.head[:10]} is not fetched: {url} has no packs/{path.name}" in done.err


def test_caches_of_remotes_are_not_rebuilt(perun, pushed):
    perun("fsck", "--remote", "--rebuild", code=2)
