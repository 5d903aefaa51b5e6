"""`perun fetch`, `clone-profiles` and `fsck --remote`: what a remote has, and whether it is whole."""

from __future__ import annotations

import pytest


@pytest.fixture
def url(tmp_path):
    return f"file://{tmp_path / 'remote'}"


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
    refused = perun("clone-profiles", "file:///elsewhere", cwd=other, check=False)
    assert refused.code == 2 and "there is a remote 'team' already" in refused.err


@pytest.mark.parametrize(
    "arguments, code, said",
    [
        (("file:///srv/x",), 3, "is no clone of a project"),
        (("/srv/x",), 2, "no URL of a remote"),
        (("file:///srv/x", "--name", "a b"), 2, "cannot be the name of a remote"),
    ],
)
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
    failed = perun("clone-profiles", url, cwd=other, check=False)
    assert failed.code == 14 and "is damaged" in failed.err and "perun fsck --remote --repair" in failed.err
    assert perun("fsck", "--remote", check=False).code == 10
    done = perun("fsck", "--remote", "--repair")
    assert f"put aside as damaged/{path.name}" in done.out
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
    done = perun("fsck", "--remote", check=False)
    assert done.code == 10 and "x.perf of" in done.out
    pulled = perun("pull", check=False)
    assert pulled.code == 6 and "x.perf of" in pulled.err


def test_nothing_is_repaired_without_being_asked(perun, pushed, tmp_path):
    path, _start = pack_of(tmp_path / "remote", "p1.perf")
    path.unlink()
    before = sorted(tmp_path.joinpath("remote").rglob("*"))
    assert perun("fsck", "--remote", check=False).code == 10
    assert sorted(tmp_path.joinpath("remote").rglob("*")) == before


def test_a_pack_that_is_gone_is_said_by_pull_too(perun, pushed, url, tmp_path):
    path, _start = pack_of(tmp_path / "remote", "p1.perf")
    path.unlink()
    other = clone(pushed, tmp_path / "other")
    done = perun("clone-profiles", url, cwd=other, check=False)
    assert done.code == 6
    assert done.lines[-1].startswith("fetched 3 profiles")
    assert f"p1.perf of {pushed.head[:10]} is not fetched: {url} has no packs/{path.name}" in done.err


def test_caches_of_remotes_are_not_rebuilt(perun, pushed):
    assert perun("fsck", "--remote", "--rebuild", check=False).code == 2
