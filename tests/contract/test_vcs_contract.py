"""What every version control system must do (`perun.plugin.api.Vcs`, manual 13.1.1).

To hold another implementation to it, add a function to :data:`FACTORIES` that makes a project in a folder.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from perun.core.errors import VersionControlError
from perun.plugin.api import MajorVersion, MinorVersion, Vcs
from perun.vcs.git import Git
from perun.vcs.svs import Svs
from perun.vcs.tagit import Tagit


@dataclass
class Project:
    """A project under version control; `commit` makes a version of all that is in the folder.

    One without history has one version, which is whatever is in the folder, from the beginning.
    """

    vcs: Vcs
    commit: Callable[[str], str]
    has_history: bool = True

    def version(self, message: str, files: Mapping[str, str]) -> str:
        self.write(files)
        return self.commit(message)

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (self.vcs.root / name).write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.vcs.root / name).read_text(encoding="utf-8")


def git_project(root: Path) -> Project:
    """A project whose versions are made with git; the implementation under test is the built-in one."""
    return Project(Git(root, dict(os.environ)), lambda message: git_commit(root, message))


def git_commit(root: Path, message: str) -> str:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("add", "--all")
    git("commit", "--quiet", "--allow-empty", "-m", message)
    return git("rev-parse", "HEAD")


def tagit_project(root: Path) -> Project:
    """A project whose versions are made by the implementation, named by the subject of the message."""
    vcs = Tagit(root, dict(os.environ))

    def commit(message: str) -> str:
        name, _, text = message.partition("\n\n")
        return vcs.snapshot(name, text)

    return Project(vcs, commit)


def svs_project(root: Path) -> Project:
    """A project with one version."""
    vcs = Svs(root, dict(os.environ))
    vcs.init({"description": "Version 3\n\nMore text."})
    return Project(vcs, lambda message: vcs.get_minor_head(), has_history=False)


FACTORIES: dict[str, Callable[[Path], Project]] = {
    "git": git_project,
    "tagit": tagit_project,
    "svs": svs_project,
}


@pytest.fixture(params=FACTORIES)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """A project without a version, made by the implementation itself."""
    project = FACTORIES[request.param](tmp_path / "project")
    assert project.vcs.init({}) is True
    return project


@pytest.fixture
def project(empty: Project) -> Project:
    for number in (1, 2, 3):
        empty.version(f"Version {number}\n\nMore text.", {"file.txt": f"{number}\n", "same.txt": "same\n"})
    return empty


def test_has_a_type(project: Project) -> None:
    assert project.vcs.type


def test_init_again_keeps_everything(project: Project) -> None:
    head = project.vcs.get_minor_head()
    assert project.vcs.init({}) is True
    assert project.vcs.get_minor_head() == head


def test_before_the_first_version(empty: Project) -> None:
    assert empty.vcs.get_head_major_version()
    assert not empty.vcs.is_dirty()
    if not empty.has_history:
        assert empty.vcs.get_minor_head()
        return
    with pytest.raises(VersionControlError) as caught:
        empty.vcs.get_minor_head()
    assert caught.value.message
    assert list(empty.vcs.walk_major_versions()) == []


@pytest.mark.parametrize("walk", ["walk_minor_versions", "walk_subjects"])
def test_walk_from_any_version(project: Project, walk: str) -> None:
    head = project.vcs.get_minor_head()
    versions: list[MinorVersion] = list(getattr(project.vcs, walk)(head))
    subjects = ["Version 3", "Version 2", "Version 1"] if project.has_history else ["Version 3"]
    assert [version.subject for version in versions] == subjects
    assert versions[0].checksum == head
    for child, parent in pairwise(versions):
        assert child.parents == (parent.checksum,)
    assert versions[-1].parents == ()
    for number, version in enumerate(versions):
        assert list(getattr(project.vcs, walk)(version.checksum)) == versions[number:]


def test_walking_from_several_heads_gives_each_version_once(project: Project) -> None:
    versions = list(project.vcs.walk_subjects(project.vcs.get_minor_head()))
    for heads in ([versions[0], versions[-1]], [versions[-1], versions[0]], [versions[-1]]):
        walked = list(project.vcs.walk_together([one.checksum for one in heads]))
        expected = versions if versions[0] in heads else versions[-1:]
        assert sorted(walked) == sorted(expected)


def test_walk_may_stop_early(project: Project) -> None:
    assert next(iter(project.vcs.walk_minor_versions(project.vcs.get_minor_head()))).subject == "Version 3"


def test_info_agrees_with_the_walk(project: Project) -> None:
    for version in project.vcs.walk_minor_versions(project.vcs.get_minor_head()):
        assert project.vcs.get_minor_version_info(version.checksum) == version
        assert version.desc == f"{version.subject}\n\nMore text."
        assert version.author
        assert "@" in version.email
        assert len(version.date) == len("2020-01-01 00:00:00")


def test_major_versions(project: Project) -> None:
    head = project.vcs.get_minor_head()
    name = project.vcs.get_head_major_version()
    assert MajorVersion(name, head) in list(project.vcs.walk_major_versions())
    assert project.vcs.massage_parameter(name) == head


def test_massage_keeps_full_checksums_and_finds_prefixes(project: Project) -> None:
    head = project.vcs.get_minor_head()
    assert project.vcs.massage_parameter(head) == head
    assert project.vcs.massage_parameter(head[:12]) == head


@pytest.mark.parametrize("name", ["no-such-version", "", "--help", "0" * 40])
def test_unknown_versions_are_refused(project: Project, name: str) -> None:
    calls: list[Callable[[str], object]] = [
        project.vcs.massage_parameter, project.vcs.check_minor_version_validity,
        project.vcs.get_minor_version_info, project.vcs.checkout,
        lambda head: list(project.vcs.walk_minor_versions(head))
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(VersionControlError):
            call(name)
    assert project.read("file.txt") == "3\n"


def test_validity_takes_full_checksums_only(project: Project) -> None:
    head = project.vcs.get_minor_head()
    project.vcs.check_minor_version_validity(head)
    for spelling in (head[: len(head) // 3], project.vcs.get_head_major_version()):
        with pytest.raises(VersionControlError):
            project.vcs.check_minor_version_validity(spelling)


def test_dirty_means_tracked_files(project: Project) -> None:
    project.write({"untracked.txt": "x"})
    assert not project.vcs.is_dirty()
    project.write({"file.txt": "changed\n"})
    assert project.vcs.is_dirty() is project.has_history


def test_what_is_uncommitted_is_a_version_or_refused(project: Project) -> None:
    vcs, head = project.vcs, project.vcs.get_minor_head()
    try:
        assert vcs.uncommitted() == ""
    except VersionControlError as problem:
        assert vcs.type in problem.message
        return
    project.write({"file.txt": "changed\n"})
    version = vcs.uncommitted()
    assert vcs.get_minor_version_info(version).parents[0] == head == vcs.get_minor_head()
    assert vcs.source(version, "file.txt") == b"changed\n" == (vcs.root / "file.txt").read_bytes()


@pytest.mark.parametrize("dirty", [False, True])
def test_save_check_out_restore(project: Project, dirty: bool) -> None:
    name, head = project.vcs.get_head_major_version(), project.vcs.get_minor_head()
    project.write({"untracked.txt": "mine\n"})
    if dirty:
        project.write({"file.txt": "changed\n"})
    content = project.read("file.txt")

    saved, state = project.vcs.save_state()
    assert saved is (dirty and project.has_history)
    assert not project.vcs.is_dirty()
    for version in list(project.vcs.walk_minor_versions(head)):
        project.vcs.checkout(version.checksum)
        expected = version.subject[-1] + "\n" if project.has_history else content
        assert project.read("file.txt") == expected
        assert project.vcs.get_minor_head() == version.checksum
    project.vcs.restore_state(saved, state)

    assert project.read("file.txt") == content
    assert project.read("untracked.txt") == "mine\n"
    assert project.vcs.is_dirty() is saved
    assert (project.vcs.get_head_major_version(), project.vcs.get_minor_head()) == (name, head)


def test_checkout_overwrites_nothing_of_the_users(project: Project) -> None:
    old = project.vcs.get_minor_head()
    (project.vcs.root / "file.txt").unlink()
    project.commit("Version 4")
    project.write({"file.txt": "untracked now\n"})
    if project.has_history:
        with pytest.raises(VersionControlError, match=r"file\.txt"):
            project.vcs.checkout(old)
    else:
        project.vcs.checkout(old)
    assert project.read("file.txt") == "untracked now\n"


def test_working_copy_leaves_the_users_folder_alone(project: Project, tmp_path: Path) -> None:
    project.write({"file.txt": "changed\n", "untracked.txt": "mine\n"})
    head = project.vcs.get_minor_head()
    folder = tmp_path / "copy"
    try:
        manager = project.vcs.working_copy(folder)
    except VersionControlError as problem:
        assert "--in-place" in problem.hint
        return
    with manager as copy:
        for version in list(project.vcs.walk_minor_versions(head)):
            place = copy.switch(version.checksum)
            assert (place / "file.txt").read_text(encoding="utf-8") == version.subject[-1] + "\n"
            assert not (place / "left-over").exists()
            (place / "left-over").write_text("")
    assert not folder.exists()
    assert project.read("file.txt") == "changed\n"
    assert project.read("untracked.txt") == "mine\n"
    assert project.vcs.get_minor_head() == head


def test_a_copy_that_is_kept(project: Project, tmp_path: Path) -> None:
    """It is used again by another process, and is gone with its folder."""
    project.write({"untracked.txt": "mine\n"})
    versions = list(project.vcs.walk_minor_versions(project.vcs.get_minor_head()))
    assert len({project.vcs.content(one.checksum) for one in versions}) == len(versions)
    for number, version in enumerate(versions):
        folder, scratch = tmp_path / f"kept-{number}", tmp_path / "scratch"
        copy = project.vcs.kept_copy(folder, scratch)
        if copy is None:
            return
        place = copy.make(version.checksum)
        assert (place / "file.txt").read_text(encoding="utf-8") == version.subject[-1] + "\n"
        assert place.is_relative_to(folder.resolve()) and not scratch.exists()
        (place / "built").write_text("")
        again = project.vcs.kept_copy(folder, scratch)
        assert again is not None and again.renew(version.checksum) == place and (place / "built").exists()
        shutil.rmtree(folder)
    assert project.read("untracked.txt") == "mine\n"
    assert [one.checksum for one in project.vcs.walk_minor_versions("HEAD")] == [
        one.checksum for one in versions
    ]


def test_it_works_in_any_environment_of_a_hook(project: Project, tmp_path: Path) -> None:
    head = project.vcs.get_minor_head()
    environ = {**project.vcs.environ, "GIT_DIR": str(tmp_path / "nowhere"), "GIT_INDEX_FILE": "nothing"}
    again = type(project.vcs)(project.vcs.root, environ)
    assert again.get_minor_head() == head
    assert not again.is_dirty()
