"""`perun gc`: what is not kept goes, here or at a remote, and nothing else."""

import os
import shutil
import time
from types import SimpleNamespace

import pytest

from perun.repository.repository import open_repository
from perun.running.run.builds import Builds
from perun.store import Store

DAY = 86400


@pytest.fixture
def url(tmp_path):
    return f"file://{tmp_path / 'remote'}"


@pytest.fixture
def history(perun, project, write_profile, made_before):
    """Four versions with a profile each: measured 400 days ago and later, the last one now; v1 is a tag."""

    def make():
        for number, days in enumerate((400, 300, 200, 0)):
            project.commit(f"version {number}", {"file": str(number)})
            if number == 1:
                project.git("tag", "v1")
            moment = int(time.time()) - days * DAY
            write_profile(f"p{number}.perf", workload=f"w{number}", seconds_since_1970=moment)
        perun("add", "--to-origin", "0@p-3@p")

    made_before("four ages", make)
    return project.git("rev-list", "--reverse", "-n", "4", "HEAD").split()


def kept(project, versions):
    """The numbers of the versions that still have their profile."""
    indexes = Store(project.path / ".perun").indexes
    return [
        number
        for number, version in enumerate(versions)
        if f"p{number}.perf" in {entry.path for entry in indexes.read(version)}
    ]


def objects(project):
    return set(Store(project.path / ".perun").objects.ids())


@pytest.mark.parametrize("options, left", [
    ((), [0, 1, 2, 3]),
    (("--keep-days", "250"), [2, 3]),
    (("--keep-last", "1"), [3]),
    (("--keep-tags",), [1]),
    (("--keep-days", "10", "--keep-tags"), [1, 3]),
    (("--keep-last", "2", "--keep-tags"), [1, 2, 3]),
    (("--keep-last", "0"), []),
])  # fmt: skip
def test_what_is_kept(perun, project, history, options, left):
    before = objects(project)
    planned = perun("gc", *options, "--dry-run", "--json").json
    assert kept(project, history) == [0, 1, 2, 3] and objects(project) == before
    done = perun("gc", *options, "--json").json
    assert (done["profiles"], done["deleted"]) == (planned["profiles"], planned["deleted"])
    assert sorted(one["name"] for one in done["profiles"]) == [
        f"p{number}.perf" for number in range(4) if number not in left
    ]
    assert kept(project, history) == left
    assert len(objects(project)) == len(left)
    assert before - objects(project) == set(done["deleted"])
    assert perun("fsck").out == "no damage found\n"


def test_only_what_nothing_names_is_deleted_without_options(perun, project, history, write_profile):
    write_profile("pending.perf", workload="pending")
    perun("rm", "-m", history[0], "p0.perf")
    done = perun("gc")
    assert done.out.startswith("deleted 1 object: ") and done.out.endswith(" freed\n")
    assert kept(project, history) == [1, 2, 3]
    for number in (0, 1):
        assert (f"p{number}.perf" in perun("-v", "status", history[number]).out) == (number == 1)
    assert perun("gc").out == "nothing to remove\n"
    assert "pending.perf" in perun("-v", "status").out


def test_an_object_that_two_versions_have_stays_for_the_other(perun, project, history, write_profile):
    first = write_profile("same.perf", workload="same", seconds_since_1970=int(time.time()) - 400 * DAY)
    content = first.read_bytes()
    perun("add", "--force", "--minor", history[0], "0@p")
    first.write_bytes(content)
    os.utime(first, (time.time(), time.time()))
    perun("add", "--force", "--minor", history[3], "0@p")
    assert len(objects(project)) == 5
    done = perun("gc", "--keep-days", "30", "--json").json
    assert len(done["profiles"]) == 4 and len(done["deleted"]) == 3
    assert perun("show", "same.perf", "raw").json


def test_a_dry_run_says_what_would_be_lost(perun, history):
    done = perun("gc", "--keep-last", "2", "-n")
    assert done.lines[2] == "would have removed 2 profiles of 2 versions"
    assert done.lines[3].startswith("would have deleted 2 objects: ")
    assert "removed profiles would be lost" in done.err


def test_a_damaged_index_stops_it(perun, project, history):
    path = project.path / f".perun/objects/{history[1][:2]}/{history[1][2:]}"
    path.write_bytes(b"pidx damaged")
    before = objects(project)
    perun("gc", "--keep-days", "1", code=6)
    assert objects(project) == before


def test_built_versions_are_told_and_removed(perun, project, terminal):
    version = project.git("rev-parse", "HEAD~1")
    with Builds(open_repository(project.path, os.environ)) as built:
        built.enter(version)
    folder = project.path / ".perun/cache/builds"
    note = "note: 1 built version ("
    assert note in (told := perun("gc")).err and "perun gc --built removes them" in told.err
    assert told.out == "nothing to remove\n"
    planned = perun("gc", "--built", "--dry-run")
    assert planned.lines[0].startswith("would have removed 1 built version: ") and "note" not in planned.err
    told = perun("gc", "--built", "--dry-run", "--json").json
    assert perun("gc", "--json").json["builds"] == told["builds_removed"] > 0
    assert "remove 1 built version?" in terminal("gc", "--built", keys="n\n").out
    assert len(list(folder.iterdir())) == 1 and perun("fsck").out == "no damage found\n"
    (folder / "unfinished").mkdir()
    with Builds(open_repository(project.path, os.environ)) as built:
        built.enter(version)
        assert perun("gc", "--built").out == "nothing to remove\n"
        assert len(list(folder.iterdir())) == 1  # it is in use
    assert "removed 1 built version: " in terminal("gc", "--built", keys="y\n").out
    assert list(folder.iterdir()) == [] and perun("gc").err == ""
    perun("gc", "--built", "--remote", code=2, err="--built is about this machine")


def test_a_remote_is_cleaned_up(perun, project, history, url, tmp_path):
    perun("remote", "add", "team", url)
    for version in history:
        perun("push", "team", version)
    packs = tmp_path / "remote/packs"
    planned = perun("gc", "--remote", "--keep-tags", "--keep-last", "1", "--dry-run")
    assert planned.lines[2] == f"would have removed 2 profiles of 2 versions from {url}"
    assert planned.lines[3].startswith("would have deleted 2 pieces: ")
    first = perun("gc", "--remote", "--keep-tags", "--keep-last", "1")
    assert first.lines[0] == f"removed 2 profiles of 2 versions from {url}"
    assert "more are deleted by perun gc --remote after the grace" in first.lines[1]
    assert len(list(packs.iterdir())) == 4
    assert perun("gc", "--remote", "team", "--grace", "0").lines[0].startswith("deleted 2 pieces: ")
    assert len(list(packs.iterdir())) == 2
    assert perun("gc", "--remote").out == f"nothing to remove from {url}\n"
    assert perun("fsck", "--remote").out == "no damage found\n"
    # Nothing here is gone, and what was removed there is sent again only where that is asked for.
    assert kept(project, history) == [0, 1, 2, 3]
    assert "2 profiles that were removed" in perun("push").err
    assert perun("push", "--again").out.startswith("sent 2 profiles")


def test_of_a_pack_that_is_mostly_unneeded_the_rest_is_moved(perun, project, history, url, tmp_path):
    perun("remote", "add", "team", url)
    perun("push")
    (pack,) = (tmp_path / "remote/packs").iterdir()
    size = pack.stat().st_size
    done = perun("gc", "--remote", "--keep-last", "1", "--grace", "0", "--json").json
    assert (len(done["profiles"]), done["deleted"]) == (3, [f"packs/{pack.name}"])
    (left,) = (tmp_path / "remote/packs").iterdir()
    assert left.stat().st_size < size / 2
    other = tmp_path / "other"
    project.git("clone", "--quiet", str(project.path), str(other))
    assert perun("clone-profiles", url, cwd=other).lines[-1].startswith("fetched 1 profile ")
    assert perun("fsck", "--remote").out == "no damage found\n"


def test_versions_that_are_not_in_this_clone_are_kept_at_the_remote(perun, project, history, url, tmp_path):
    perun("remote", "add", "team", url)
    perun("push")
    other = tmp_path / "other"
    project.git("clone", "--quiet", "--depth", "2", f"file://{project.path}", str(other))
    perun("clone-profiles", url, cwd=other)
    done = perun("gc", "--remote", "--keep-last", "1", cwd=other)
    assert done.out.startswith(f"removed 1 profile of 1 version from {url}\n")
    assert "2 profiles of 2 versions stay" in done.err and "git fetch --unshallow" in done.err
    forced = perun("gc", "--remote", "--keep-last", "1", "--unknown", cwd=other)
    assert forced.out.startswith(f"removed 2 profiles of 2 versions from {url}\n")
    assert "cannot know whether 2 profiles of 2 versions of these are to be kept" in forced.err


def shallow(project, history, clone):
    project.git("clone", "--quiet", "--depth", "2", f"file://{project.path}", str(clone))


def of_one_branch(project, history, clone):
    project.git("branch", "side", history[1])
    project.git("clone", "--quiet", "--single-branch", "--branch=side", f"file://{project.path}", str(clone))


def partial(project, history, clone):
    project.git("config", "uploadpack.allowFilter", "true")
    source = f"file://{project.path}"
    project.git("clone", "--quiet", "--no-checkout", "--filter=tree:0", source, str(clone))


def without_tags(project, history, clone):
    project.git("clone", "--quiet", "--no-tags", f"file://{project.path}", str(clone))


def grafted(project, history, clone):
    without_tags(project, history, clone)
    (clone / ".git/info/grafts").write_text(f"{history[2]}\n")  # its parents are still there, and known


def rebased(project, history, clone):
    project.git("clone", "--quiet", f"file://{project.path}", str(clone))
    project.git("-C", str(clone), "-c", "user.name=x", "-c", "user.email=x", "rebase", "--no-ff", history[1])
    project.git("-C", str(clone), "remote", "remove", "origin")
    # Git drops the commits that no branch has any more.
    project.git("-C", str(clone), "reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    project.git("-C", str(clone), "gc", "--quiet", "--prune=now")


CLONES = [
    # how it is made, the options, what is left, what is left with --unknown, profiles that are not known
    (shallow, ("--keep-last", "1"), [0, 1, 3], [3], 2),
    pytest.param(*(shallow, ("--keep-tags",), [0, 1, 2, 3], [], 4), marks=pytest.mark.slow),
    (shallow, ("--keep-tags", "--keep-days", "30"), [0, 1, 2, 3], [3], 3),
    pytest.param(*(shallow, ("--keep-days", "250"), [2, 3], None, 0), marks=pytest.mark.slow),
    (of_one_branch, ("--keep-last", "1"), [1, 2, 3], [1], 2),
    pytest.param(*(of_one_branch, ("--keep-tags",), [1, 2, 3], [1], 2), marks=pytest.mark.slow),
    (partial, ("--keep-last", "1"), [3], [3], 0),
    pytest.param(*(partial, ("--keep-tags",), [1], [1], 0), marks=pytest.mark.slow),
    (without_tags, ("--keep-tags",), [0, 1, 2, 3], [], 4),
    pytest.param(*(without_tags, ("--keep-last", "2"), [2, 3], [2, 3], 0), marks=pytest.mark.slow),
    (grafted, ("--keep-last", "3"), [1, 2, 3], [1, 2, 3], 0),
    (rebased, ("--keep-last", "1"), [1, 2, 3], [1], 2),
    pytest.param(*(rebased, ("--keep-tags",), [1, 2, 3], [1], 2), marks=pytest.mark.slow),
]


@pytest.fixture
def clone(project, history, tmp_path, monkeypatch):
    """Make a clone that has the store of the project, as one that several share; it is the current folder."""

    def make(kind):
        folder = tmp_path / "clone"
        kind(project, history, folder)
        shutil.copytree(project.path / ".perun", folder / ".perun")
        monkeypatch.chdir(folder)
        return SimpleNamespace(path=folder)

    return make


@pytest.mark.parametrize("kind, options, left, forced, unknown", CLONES)
def test_what_a_clone_does_not_know_is_kept(perun, clone, history, kind, options, left, forced, unknown):
    made = clone(kind)
    before = objects(made)
    done = perun("gc", *options)
    assert kept(made, history) == left and len(objects(made)) == len(left)
    assert ("--unknown removes them, too" in done.err) == bool(unknown)
    if unknown:
        plural = f"{unknown} profiles of {unknown} versions"
        assert f"note: {plural} stay, as this clone cannot know" in done.err
        assert perun("gc", *options, "--json").json["unknown"] == unknown
        assert f"whether {plural} of these are to be kept" in perun("gc", *options, "--unknown").err
        assert kept(made, history) == forced
    assert perun("fsck").out == "no damage found\n"
    assert len(before) == 4


@pytest.mark.parametrize("kind", [shallow, of_one_branch, rebased])
def test_statistics_of_versions_that_a_clone_does_not_know_are_kept(perun, clone, project, history, kind):
    stats = Store(project.path / ".perun").stats
    for number, version in enumerate(history):
        stats.add(version, f"2020-01-0{number + 1} 00:00:00", "calls", {"f": {"n": number}})
    made = clone(kind)
    stats = Store(made.path / ".perun").stats
    dates = [date for _, date in stats.versions()]
    done = perun("stats", "clean")
    assert (done.out, stats.found()) == ("", sorted(history))
    assert "statistics of 2 versions that this clone does not know stay; --unknown" in done.err
    assert perun("stats", "sync").out == "4 versions with statistics\n"
    # Those that are known have the dates of their commits, the others the ones that the index had.
    assert len(set(dates).intersection(date for _, date in stats.versions())) == 2
    assert perun("fsck").out == "no damage found\n"
    perun("stats", "clean", "--unknown", "--keep-custom", code=2)
    forced = perun("stats", "clean", "--unknown")
    assert len(forced.lines) >= 2 and "statistics of 2 versions that this clone does not know" in forced.err
    assert len(stats.found()) == 2


def test_on_a_terminal_it_asks(perun, terminal, project, history):
    refused = terminal("gc", "--keep-last", "1", keys="n\n")
    assert "would have removed 3 profiles of 3 versions" in refused.out
    assert "remove 3 profiles and 3 objects?" in refused.out and "nothing was removed" in refused.out
    assert refused.code == 0 and kept(project, history) == [0, 1, 2, 3] and len(objects(project)) == 4
    done = terminal("gc", "--keep-last", "2", keys="y\n")
    assert "removed 2 profiles of 2 versions" in done.out.rpartition("?")[2]
    assert kept(project, history) == [2, 3]
    unasked = terminal("gc", "--keep-last", "1", "--yes")
    assert "?" not in unasked.out and kept(project, history) == [3]
    assert "nothing to remove" in terminal("gc", "--keep-last", "1").out


def test_on_a_terminal_a_remote_is_asked_for(perun, terminal, project, history, url):
    perun("remote", "add", "team", url)
    perun("push")
    command = ("gc", "--remote", "--keep-last", "1", "--grace", "0")
    assert f"from {url}?" in terminal(*command, keys="n\n").out
    assert perun(*command, "--dry-run", "--json").json["deleted"]
    assert "removed 3 profiles" in terminal(*command, keys="y\n").out
    assert not perun(*command, "--dry-run", "--json").json["profiles"]


@pytest.mark.parametrize("options", [
    ("--grace", "1"),
    ("--keep-days", "-1"),
    ("--keep-last", "-1"),
    ("--remote", "--grace", "-1"),
    ("--unknown", "--keep-days", "1"),
])  # fmt: skip
def test_wrong_use(perun, project, options):
    perun("gc", *options, code=2)
