"""Versions that are built once and kept, in real git repositories."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perun.core import atomic
from perun.core.errors import ConfigError, JobFailed, VersionControlError
from perun.plugin.api import Vcs
from perun.repository.copies import leftovers
from perun.repository.init import init
from perun.repository.repository import Repository, open_repository
from perun.running.cleaning import fsck
from perun.running.run import builds
from perun.running.run.builds import Builds
from perun.running.run.pre_run import PreparationFailed

BUILD = """\
echo built >> '{log}'
test ! -e broken || exit 3
mkdir -p out && cp source.txt out/app && ln -sf app out/link
git describe --tags --always > out/described
"""


class Scene:
    """A project whose build notes elsewhere that it ran."""

    def __init__(self, git: Any, log: Path, inside: str = "") -> None:
        self.git = git
        self.log = log
        self.root = git.path / inside
        self.files = {"build.sh": BUILD.format(log=log), "run.txt": "run\n"}
        self.versions = [self.commit(text) for text in ("one", "two", "three")]
        init(self.root, os.environ)
        self.configure()

    def commit(self, text: str, **files: str) -> str:
        """Make a version with that source; its checksum."""
        inside = self.root.relative_to(self.git.path)
        given = {**self.files, "source.txt": text + "\n", **files}
        self.git.commit(text, {str(inside / name): content for name, content in given.items()})
        return str(self.git.head)

    def configure(self, text: str = "", pre_run: str = "[sh build.sh]") -> None:
        """Write the configuration, with `text` in `execute`."""
        local = self.root / ".perun" / "local.yml"
        local.write_text(f"vcs: {{type: git, url: ..}}\nexecute:\n  pre_run: {pre_run}\n  {text}\n")

    @property
    def repo(self) -> Repository:
        """The repository, opened anew."""
        return open_repository(self.root, os.environ)

    @property
    def built(self) -> int:
        """How often the build ran."""
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    @property
    def kept(self) -> list[Path]:
        """The folders in the cache."""
        return sorted((self.root / ".perun/cache/builds").glob("*"))

    def tells(self, place: Path, *question: str) -> str:
        """What git answers in a build."""
        return subprocess.check_output(["git", *question], cwd=place, text=True).strip()

    def assert_untouched(self) -> None:
        """Git knows of nothing that is not the user's."""
        assert len(self.git.git("worktree", "list").splitlines()) == 1
        assert self.git.git("status", "--porcelain") == "" and self.git.head == self.versions[-1]
        assert not list((self.git.path / ".git/worktrees").glob("*")) and leftovers(self.repo) == []


@pytest.fixture
def scene(git_repository: Callable[..., Any], tmp_path: Path) -> Scene:
    return Scene(git_repository(), tmp_path / "log")


def test_a_version_is_built_once(scene: Scene) -> None:
    one, two, _ = scene.versions
    with Builds(scene.repo) as first:
        built = first.enter(one)
        assert (built.folder / "out/app").read_text() == "one\n" and built.folder.is_absolute()
        assert built.seconds > 0 and not built.reused
        assert first.enter(one) == (built.folder, 0.0, True)
        other = first.enter(two)
        assert len(str(other.folder)) == len(str(built.folder)) and other.folder != built.folder
        assert first.enter(one).folder == built.folder
        assert len(scene.git.git("worktree", "list").splitlines()) == 1
    assert scene.built == 2
    with Builds(scene.repo) as second:
        for version, before in ((two, other), (one, built)):
            again = second.enter(version)
            assert again == (before.folder, 0.0, True)
            assert scene.tells(again.folder, "rev-parse", "HEAD") == version
            assert scene.tells(again.folder, "status", "--porcelain", "--untracked-files=no") == ""
        assert (again.folder / "out/app").read_text() == "one\n"
    assert scene.built == 2 and len(scene.kept) == 2
    scene.assert_untouched()
    assert list(fsck(scene.repo)) == []


def test_two_versions_with_the_same_files_share_one(scene: Scene) -> None:
    scene.git.git("tag", "first", scene.versions[0])
    scene.git.git("tag", "-m", "again", "second", scene.commit("one"))
    first, second = scene.versions[0], scene.git.head
    scene.versions.append(second)
    with Builds(scene.repo) as builds:
        place = builds.enter(first).folder
        assert scene.tells(place, "describe", "--tags") == "first"
        assert builds.enter(second) == (place, 0.0, True)
        assert scene.tells(place, "describe", "--tags", "--dirty") == "second"
        assert scene.tells(place, "rev-parse", "HEAD") == second
        assert builds.enter(first).folder == place
        assert scene.tells(place, "describe", "--tags") == "first"
    assert scene.built == 1
    with Builds(scene.repo) as builds:
        assert builds.enter(second).reused and scene.tells(place, "describe") == "second"
    with Builds(scene.repo, separate=True) as builds:
        assert builds.enter(first) == (place, 0.0, True)
        other = builds.enter(second)
        assert other.folder != place and len(str(other.folder)) == len(str(place))
        assert scene.tells(place, "describe", "--tags") == "first"
        assert scene.tells(other.folder, "describe") == "second"
    assert scene.built == 2 and len(scene.kept) == 1
    scene.assert_untouched()


def add_files(place: Path) -> None:
    (place / "results").mkdir()
    (place / "results" / "deep").mkdir()
    (place / "results/deep/one").write_text("1")
    (place / "out/more").symlink_to("app")
    os.mkfifo(place / "out/pipe")
    subprocess.run(["git", "switch", "--quiet", "-c", "made-by-the-run"], cwd=place, check=True)
    (place / "added").write_text("1")
    subprocess.run(["git", "add", "-f", "added", "out/app"], cwd=place, check=True)


def write_the_same(place: Path) -> None:
    (place / "run.txt").write_text("run\n")
    shutil.copy2(place / "out/app", place / "out/.copy")
    (place / "out/.copy").replace(place / "out/app")


def confuse_git(place: Path) -> None:
    (place / ".git").unlink()
    subprocess.run(["git", "init", "--quiet", place], check=True)


@pytest.mark.parametrize("change", [add_files, write_the_same, confuse_git])
def test_what_a_run_leaves_is_gone(scene: Scene, change: Callable[[Path], None]) -> None:
    with Builds(scene.repo) as builds:
        place = builds.enter(scene.versions[0]).folder
        before = {path: path.lstat().st_mtime_ns for path in place.rglob("*") if not path.is_dir()}
        change(place)
    with Builds(scene.repo) as builds:
        again = builds.enter(scene.versions[0])
        assert again == (place, 0.0, True)
        after = {path: path.lstat().st_mtime_ns for path in place.rglob("*") if not path.is_dir()}
        before.pop(place / ".git"), after.pop(place / ".git")
        assert after == before
        assert scene.tells(place, "rev-parse", "HEAD", "--abbrev-ref", "HEAD").split() == [
            scene.versions[0],
            "HEAD",
        ]
        assert scene.tells(place, "status", "--porcelain", "--untracked-files=no") == ""
    assert scene.built == 1
    scene.git.git("rev-parse", "main")  # whatever branch the run has made, that of the user is where it was
    scene.assert_untouched()


def change_content(place: Path) -> None:
    times = (place / "run.txt").stat()
    (place / "run.txt").write_text("RUN\n")
    os.utime(place / "run.txt", ns=(times.st_atime_ns, times.st_mtime_ns))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a tracked file": change_content,
    "a built file": lambda place: (place / "out/app").write_text("another\n"),
    "a deleted file": lambda place: (place / "run.txt").unlink(),
    "a mode": lambda place: (place / "run.txt").chmod(0o600),
    "a link": lambda place: ((place / "out/link").unlink(), (place / "out/link").symlink_to("APP")),
    "a file for a folder": lambda place: (shutil.rmtree(place / "out"), (place / "out").write_text("")),
    "the manifest": lambda place: (place.parent / "manifest").write_text("{}"),
    "the end of the manifest": lambda place: os.truncate(
        place.parent / "manifest", (place.parent / "manifest").stat().st_size - 5
    ),
    "the notes of git": lambda place: (place.parent / "git/HEAD").unlink(),
    "a lock of git": lambda place: (place.parent / "git/index.lock").write_text(""),
    "another folder": lambda place: (place.rename(place.parent / "x"), place.symlink_to("x")),
}


@pytest.mark.parametrize("what", DAMAGE)
@pytest.mark.parametrize("when", ["inside", "after"])
def test_what_is_not_as_it_was_built_is_built_anew(scene: Scene, what: str, when: str) -> None:
    with Builds(scene.repo) as builds:
        place = builds.enter(scene.versions[0]).folder
        if when == "inside":
            DAMAGE[what](place)
    if when == "after":
        DAMAGE[what](place)
        found = list(fsck(scene.repo))
        assert len(found) == (what not in ("the notes of git", "a lock of git")), found
        assert all(one.done for one in fsck(scene.repo, repair=True))
        assert list(fsck(scene.repo)) == []
    with Builds(scene.repo) as builds:
        again = builds.enter(scene.versions[0])
        assert again.folder == place and not again.reused
        assert (place / "out/app").read_text() == "one\n" and (place / "run.txt").read_text() == "run\n"
        assert scene.tells(place, "rev-parse", "HEAD") == scene.versions[0]
    assert scene.built == 2 and len(scene.kept) == 1
    scene.assert_untouched()


def test_after_another_start_of_the_machine_contents_are_read(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Builds(scene.repo) as entered:
        place = entered.enter(scene.versions[0]).folder
    monkeypatch.setattr(atomic, "system", lambda: "0badcafe")
    with Builds(scene.repo) as entered:
        assert entered.enter(scene.versions[0]).reused
    change_content(place)
    with Builds(scene.repo) as entered:
        assert not entered.enter(scene.versions[0]).reused


def test_another_way_to_build_is_another_build(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def enter() -> bool:
        with Builds(scene.repo) as builds:
            return builds.enter(scene.versions[0]).reused

    assert not enter() and enter()
    scene.configure(pre_run="[sh build.sh, 'true']")
    assert not enter() and enter()
    monkeypatch.setenv("CFLAGS", "-O3")
    assert not enter() and enter()
    monkeypatch.setenv("MODE", "debug")  # which a Makefile may go by
    assert not enter() and enter()
    monkeypatch.setenv("SSH_TTY", "/dev/pts/7")
    assert enter()
    scene.git.git("config", "core.autocrlf", "true")
    assert not enter() and enter()
    scene.configure(pre_run="[sh build.sh, 'true']")
    scene.git.git("sparse-checkout", "set", "--no-cone", "/*", "!/run.txt")
    with Builds(scene.repo) as builds:
        place = builds.enter(scene.versions[0])
        assert not place.reused and not (place.folder / "run.txt").exists()
    with Builds(scene.repo) as builds:
        assert builds.enter(scene.versions[0]).reused and not (place.folder / "run.txt").exists()
        assert scene.tells(place.folder, "status", "--porcelain", "--untracked-files=no") == ""


def test_a_version_that_cannot_be_built_leaves_nothing(scene: Scene) -> None:
    broken = scene.commit("broken", broken="yes")
    scene.versions.append(broken)
    with Builds(scene.repo) as builds:
        for _ in range(2):
            with pytest.raises(PreparationFailed, match="ended with status 3"):
                builds.enter(broken)
        with pytest.raises(VersionControlError):
            builds.enter("0" * 40)
        assert builds.enter(scene.versions[0]).folder.is_dir()
    assert len(scene.kept) == 1 and scene.built == 3
    scene.configure(pre_run="[./nothing]")
    with Builds(scene.repo) as builds, pytest.raises(JobFailed, match="nothing"):
        builds.enter(scene.versions[1])
    scene.assert_untouched()


def test_a_repository_in_a_folder_of_the_git_repository(
    git_repository: Callable[..., Any], tmp_path: Path
) -> None:
    git = git_repository()
    git.commit("before", {"other.txt": "other\n"})
    before = git.head
    scene = Scene(git, tmp_path / "log", "deep/er")
    for _ in range(2):
        with Builds(scene.repo) as builds:
            place = builds.enter(scene.versions[0]).folder
            assert place.parts[-3:] == ("tree", "deep", "er") and (place / "out/app").exists()
            with pytest.raises(VersionControlError, match="has no folder"):
                builds.enter(before)
    assert scene.built == 1 and len(scene.kept) == 1
    scene.assert_untouched()


def test_the_room_is_limited(scene: Scene) -> None:
    more = [scene.commit(f"more {number}", big="x" * 1_000_000) for number in range(3)]
    scene.versions += more
    scene.configure("build_cache: 2.5")  # two of them
    with Builds(scene.repo) as builds:
        places = [builds.enter(version).folder for version in more]
        assert [place.exists() for place in places] == [False, True, True]
        assert builds.enter(more[0]) != (places[0], 0.0, True) and scene.built == 4
        assert [place.exists() for place in places] == [True, False, True]
    assert len(scene.kept) == 2
    with Builds(scene.repo) as builds:
        assert builds.enter(more[2]).reused
    with Builds(scene.repo) as builds:
        builds.enter(more[1])
        assert [place.exists() for place in places] == [False, True, True]
    scene.configure("build_cache: 0.5")  # not one
    with Builds(scene.repo) as builds:
        assert [builds.enter(version).folder for version in more] == places
        assert [place.exists() for place in places] == [False, True, True]
    assert scene.kept == []
    scene.configure("build_cache: 0")
    with Builds(scene.repo) as builds:
        assert [builds.enter(version).folder for version in more] == places
        assert all(builds.enter(version).reused for version in more)
    assert scene.kept == []
    scene.configure("build_cache: -1")
    with pytest.raises(ConfigError, match="expected a number of MiB"):
        Builds(scene.repo)
    scene.assert_untouched()


def test_more_than_can_be_locked_are_kept(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builds, "_MOST_LOCKED", 2)
    with Builds(scene.repo) as entered:
        places = [entered.enter(version).folder for version in scene.versions]
        assert [entered.enter(version).folder for version in scene.versions] == places
    assert scene.built == 3 and len(scene.kept) == 3
    with Builds(scene.repo) as entered:
        for number in (0, 1, 0, 2):
            entered.enter(scene.versions[number])
        assert not builds.remove(places[0].parent)  # it is locked still, as it was entered again


def test_what_another_process_uses_is_left_to_it(scene: Scene) -> None:
    one = scene.versions[0]
    scene.configure("build_cache: 0.000001")
    with Builds(scene.repo) as first:
        place = first.enter(one).folder
        (place / "running").write_text("")
        with Builds(scene.repo) as second:  # which knows no more of the first than another process does
            other = second.enter(one)
            assert not other.reused and other.folder != place and len(str(other.folder)) == len(str(place))
            assert (other.folder / "out/app").read_text() == "one\n"
            with Builds(scene.repo):
                assert other.folder.exists()  # it is not kept, but used
            second.enter(scene.versions[1])
        assert (place / "running").exists() and scene.kept == [place.parent]
        assert not builds.remove(place.parent)
        assert list(fsck(scene.repo)) == []
    scene.configure()
    with Builds(scene.repo) as first, Builds(scene.repo) as second:
        first.enter(one), second.enter(one)
    assert len(scene.kept) == 1
    scene.assert_untouched()


def test_builds_that_came_with_a_clone_are_not_used(
    scene: Scene, git_repository: Callable[..., Any], tmp_path: Path
) -> None:
    with Builds(scene.repo) as entered:
        entered.enter(scene.versions[0])
    stranger = tmp_path / "clone"
    shutil.copytree(scene.root, stranger, symlinks=True)
    kept = next(stranger.glob(".perun/cache/builds/*"))
    (kept / "tree/out/app").write_text("evil")
    repo = open_repository(stranger, os.environ)
    assert builds.found(repo) == [] and builds.unfinished(repo) == [kept]
    with Builds(repo) as entered:
        built = entered.enter(scene.versions[0])
        assert not built.reused and (built.folder / "out/app").read_text() == "one\n"
    # A link, or a pipe, in the place of anything is none of ours either.
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("")
    for make in (
        lambda: (shutil.rmtree(kept), kept.symlink_to(outside)),
        lambda: ((kept / "lock").unlink(), os.mkfifo(kept / "lock")),
        lambda: ((kept / "lock").unlink(), (kept / "lock").symlink_to(outside / "file")),
        lambda: ((kept / "manifest").unlink(), (kept / "manifest").symlink_to(outside / "file")),
        lambda: (shutil.rmtree(kept / "git"), (kept / "git").symlink_to(outside)),
    ):
        with Builds(repo) as entered:
            entered.enter(scene.versions[0])
        make()
        with Builds(repo) as entered:
            assert (entered.enter(scene.versions[0]).folder / "out/app").read_text() == "one\n"
        assert list(outside.iterdir()) == [outside / "file"] and (outside / "file").read_text() == ""


def test_builds_of_one_block_alone(scene: Scene) -> None:
    one = scene.versions[0]
    with Builds(scene.repo) as builds:
        fresh = builds.fresh(one, lambda top: (top / "source.txt").write_text("changed\n"))
        assert (fresh / "out/app").read_text() == "changed\n"
        again = builds.fresh(one)
        assert (again / "out/app").read_text() == "one\n" and scene.tells(again, "rev-parse", "HEAD") == one
        built = builds.enter(one)
        assert not built.reused and scene.built == 3
        copies = [builds.copied(place) for place in (fresh, built.folder)]
        assert [(place / "out/app").read_text() for place in copies] == ["changed\n", "one\n"]
        assert len({len(str(one)) for one in (fresh, again, built.folder, *copies)}) == 1
        with pytest.raises(PreparationFailed):
            builds.fresh(one, lambda top: (top / "broken").write_text(""))
        assert len(scene.kept) == 5 and len(scene.git.git("worktree", "list").splitlines()) == 1
    assert scene.kept == [built.folder.parent]
    scene.assert_untouched()


def test_a_version_control_that_keeps_no_copies(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    git = type(scene.repo.vcs)
    monkeypatch.setattr(git, "kept_copy", Vcs.kept_copy)
    monkeypatch.setattr(git, "content", Vcs.content)
    with Builds(scene.repo) as builds:
        places = [builds.enter(version) for version in scene.versions]
        assert not any(one.reused for one in places) and len({len(str(one.folder)) for one in places}) == 1
        assert [(one.folder / "out/app").read_text() for one in places] == ["one\n", "two\n", "three\n"]
        assert builds.enter(scene.versions[0]) == (places[0].folder, 0.0, True)
    assert scene.built == 3 and scene.kept == [] and not places[0].folder.exists()
    with Builds(scene.repo) as builds:
        places = [builds.enter(version).folder for version in scene.versions]
        fresh = builds.fresh(scene.versions[0])
        assert (builds.copied(fresh) / "out/app").read_text() == "one\n"
        assert len({len(str(one)) for one in (*places, fresh, builds.copied(places[1]))}) == 1
    assert scene.kept == []
    scene.assert_untouched()


USE = """
import os, signal, sys, time
from perun.repository.repository import open_repository
from perun.running.run.builds import Builds
from pathlib import Path
root, version, how = sys.argv[1:]
with Builds(open_repository(Path(root), os.environ)) as builds:
    place = builds.enter(version).folder
    (place / "left").write_text("")
    (place / "run.txt").write_text("half")
    print("in use", flush=True)
    signal.pause() if how == "pause" else os.kill(os.getpid(), signal.SIGKILL)
"""


def run(scene: Scene, how: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", USE, str(scene.root), scene.versions[0], how]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_killed_while_it_is_used(scene: Scene) -> None:
    with run(scene, "kill") as process:
        assert process.wait() == -signal.SIGKILL
    assert len(scene.git.git("worktree", "list").splitlines()) == 1
    (place,) = scene.kept
    assert [one.path for one in fsck(scene.repo)] == [place]
    with Builds(scene.repo) as builds:
        again = builds.enter(scene.versions[0])
        assert not again.reused and (again.folder / "run.txt").read_text() == "run\n"
        assert not (again.folder / "left").exists()
    assert scene.built == 2
    scene.assert_untouched()


def test_killed_while_it_is_built(scene: Scene) -> None:
    version = scene.versions[0]
    scene.configure(pre_run=f"[\"sh -c 'echo begun > {scene.log}; sleep 1000'\"]")
    words = [sys.executable, "-c", USE, str(scene.root), version, "pause"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        while not scene.built:
            assert process.poll() is None
        process.kill()
    assert scene.git.git("status", "--porcelain") == ""
    assert len(scene.git.git("worktree", "list").splitlines()) == 1
    (place,) = scene.kept
    assert [one.path for one in fsck(scene.repo)] == [place] and builds.found(scene.repo) == []
    scene.configure()
    with Builds(scene.repo) as entered:
        assert scene.kept == []
        entered.enter(scene.versions[0])
    scene.assert_untouched()


def test_what_is_left_is_listed_by_name_and_removed(scene: Scene) -> None:
    for name in "dbhacegf":
        (scene.root / ".perun/cache/builds" / name).mkdir(parents=True)
    left = builds.unfinished(scene.repo)
    assert [path.name for path in left] == list("abcdefgh")
    assert all(map(builds.remove, left)) and scene.kept == []


def test_two_processes_at_once(scene: Scene) -> None:
    with run(scene, "pause") as process:
        assert process.stdout is not None and process.stdout.readline() == "in use\n"
        with Builds(scene.repo) as entered:
            mine = entered.enter(scene.versions[0])
            assert not mine.reused and (mine.folder / "run.txt").read_text() == "run\n"
        (theirs,) = scene.kept
        assert theirs != mine.folder.parent and (theirs / "tree/left").exists()
        process.kill()
    with Builds(scene.repo) as entered:
        assert entered.enter(scene.versions[0]).folder == theirs / "tree"
    scene.assert_untouched()


def test_write_protected_folders_are_removed(scene: Scene) -> None:
    scene.configure("build_cache: 0", pre_run="[sh build.sh, chmod 500 out]")
    with Builds(scene.repo) as entered:
        entered.enter(scene.versions[0])
    assert scene.kept == []
