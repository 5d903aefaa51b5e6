"""Whose `.perun` is used: one's own, at or above the current folder, and not above the top of the project."""

import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perun.core.errors import ForeignRepository, NotPerunRepository, PerunError
from perun.repository.init import init
from perun.repository.repository import locate, open_repository
from perun.running.run import background

OTHER = 4321
GENERATOR = "generators: {workload: [{id: leaked, type: external, cmd: ./evil}]}\n"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


@pytest.fixture
def parent(tmp_path, traps):
    """A folder that others may write to, where somebody has put a `.perun`; the user stands below."""
    folder = tmp_path / "shared"
    (folder / ".perun" / "jobs").mkdir(parents=True)
    (folder / ".perun" / "objects").mkdir()
    (folder / ".perun" / "local.yml").write_text(
        f"vcs: {{type: svs}}\ngeneral: {{editor: {traps('editor')}}}\ncmds: [{traps('cmd')}]\n{GENERATOR}"
    )
    (folder / "work").mkdir()
    return folder


def give_away(folder):
    for path in (folder, *folder.rglob("*")):
        os.chown(path, OTHER, -1)


@as_root
def test_the_perun_of_another_user_is_not_used(perun, parent, traps):
    give_away(parent / ".perun")
    for arguments in (("status",), ("log",), ("run", "matrix"), ("check", "all"), ("config", "edit")):
        failed = perun(*arguments, cwd=parent / "work", check=False)
        assert failed.code == 3
        assert f"{parent}/.perun belongs to the user with the number {OTHER}" in failed.err
        assert f"perun trust {parent}" in failed.err
    perun("config", "--shared", "set", "general.paging", "never", cwd=parent / "work")
    assert traps.sprung == []


@as_root
def test_nor_is_one_in_the_folder_of_another_user(parent):
    os.chown(parent, OTHER, -1)
    with pytest.raises(ForeignRepository, match=str(OTHER)):
        locate(parent, os.environ)


@as_root
@pytest.mark.parametrize("arguments", [("init",), ("bench", "--init", "true")])
def test_none_is_made_in_the_folder_of_another_user(perun, tmp_path, arguments):
    project = tmp_path / "project"
    subprocess.run(["git", "init", "-q", project], check=True)
    os.chown(project, OTHER, -1)
    failed = perun(*arguments, cwd=project, check=False)
    assert failed.code == 3 and f"{project} belongs to the user with the number {OTHER}" in failed.err
    assert f"git config --global --add safe.directory {project}" in failed.err
    assert [path.name for path in project.iterdir()] == [".git"]
    # What is proposed is enough.
    Path(os.environ["GIT_CONFIG_GLOBAL"]).write_text(f'[safe]\n\tdirectory = "{project}"\n')
    perun("init", cwd=project)
    perun("status", cwd=project)


@as_root
def test_the_user_may_say_that_it_is_trusted(perun, parent):
    give_away(parent)
    environ = dict(os.environ)
    assert locate(parent, {**environ, "PERUN_TRUST": "1"})[0] == [parent]
    assert locate(parent, {**environ, "SUDO_UID": str(OTHER)})[0] == [parent]
    for uid in ("", "x", "9" * 30, "0"):
        with pytest.raises(ForeignRepository):
            locate(parent, {**environ, "SUDO_UID": uid})
    Path(environ["GIT_CONFIG_GLOBAL"]).write_text(f'[safe]\n\tdirectory = "{parent}"\n')
    assert locate(parent, environ)[0] == [parent]
    Path(environ["GIT_CONFIG_GLOBAL"]).write_text("")
    perun("trust", parent)
    assert locate(parent, environ)[0] == [parent]
    give_away(parent)
    os.chown(parent / ".perun", OTHER + 1, -1)
    with pytest.raises(ForeignRepository):
        locate(parent, environ)


@as_root
def test_only_root_heeds_who_called_sudo():
    code = (
        "import os; from perun.repository.user import own_users\n"
        "os.setuid(4322); print(sorted(own_users({'SUDO_UID': '4321'})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[4322]\n"


def test_the_search_ends_at_the_top_of_the_git_repository(perun, parent, git_repository):
    repository = git_repository("group/team/project", commits=1)
    inside = repository.path / "a"
    inside.mkdir()
    with pytest.raises(NotPerunRepository):
        open_repository(inside, os.environ)
    init(repository.path, dict(os.environ))
    found = open_repository(inside, os.environ)
    assert found.root == repository.path and "leaked" not in str(found.config.gather("generators.workload"))


def test_an_untrusted_parent_gives_nothing_to_those_below(git_repository, tmp_path, monkeypatch):
    outer = git_repository("outer", commits=1)
    (outer.path / ".perun").mkdir()
    (outer.path / ".perun" / "local.yml").write_text("general: {editor: evil}\n" + GENERATOR)
    environ = dict(os.environ)
    init(outer.path / "inner", environ, vcs_type="svs")
    config = open_repository(outer.path / "inner", environ).config
    assert "leaked" not in str(config.gather("generators.workload")) and config.get("general.editor") == "vim"
    (warning,) = config.warnings
    assert "generators.workload" in warning and f"perun trust {outer.path}" in warning
    from perun.repository import trust

    trust.grant(outer.path, open_repository(outer.path, environ).config, environ)
    config = open_repository(outer.path / "inner", environ).config
    assert config.get("general.editor") == "evil" and "leaked" in str(config.gather("generators.workload"))
    assert config.warnings == ()


@as_root
def test_nor_does_one_of_another_user(git_repository):
    outer = git_repository("outer", commits=1)
    (outer.path / ".perun").mkdir()
    (outer.path / ".perun" / "local.yml").write_text("general: {paging: never}\n")
    environ = dict(os.environ)
    init(outer.path / "inner", environ, vcs_type="svs")
    assert open_repository(outer.path / "inner", environ).config.get("general.paging") == "never"
    give_away(outer.path / ".perun")
    assert open_repository(outer.path / "inner", environ).config.get("general.paging") == "only-log"


def test_owners_are_called_by_their_name():
    from perun.repository.repository import _name

    assert _name(0) == f"the user {pwd.getpwuid(0).pw_name}"


# -- Where hooks are written, and what waits there to be measured ------------------------------------


FOREIGN = ("notes.txt", "e" * 40, "-m", "HEAD", "x" * 200)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def set_path(clone: Any, folder: Path, how: str) -> None:
    config = clone.path / ".git" / ("included" if how == "included" else "config")
    clone.git("config", "--file", str(config), "core.hooksPath", str(folder))
    if how == "included":
        clone.git("config", "include.path", "included")


@pytest.mark.parametrize("how", ["config", "included"])
def test_the_folder_that_a_stranger_names_is_asked_about(perun, terminal, clone, elsewhere, how: str) -> None:
    set_path(clone, elsewhere, how)
    refused = perun("hooks", "install", check=False)
    assert (refused.code, f"core.hooksPath: {elsewhere}" in refused.err) == (11, True), refused.err
    assert "Do you trust it?" in terminal("hooks", "install", keys="n\n").out
    assert list(elsewhere.iterdir()) == []
    perun("hooks", "status")
    perun("trust")
    perun("hooks", "install")
    assert {one.name for one in elsewhere.iterdir()} == {"post-commit", "post-merge"}
    perun("trust", "--revoke")
    assert perun("hooks", "uninstall", check=False).code == 11
    (elsewhere / "post-commit").chmod(0o644)
    found = perun("fsck", "--repair", check=False)
    assert "which you do not trust" in found.out + found.err
    assert (elsewhere / "post-commit").stat().st_mode & 0o777 == 0o644


def test_the_folder_that_the_user_names_needs_no_question(perun: Any, clone: Any, elsewhere: Path) -> None:
    subprocess.run(["git", "config", "--global", "core.hooksPath", elsewhere], env=os.environ, check=True)
    try:
        assert "outside of this repository" in perun("hooks", "install").err
    finally:
        subprocess.run(["git", "config", "--global", "--unset", "core.hooksPath"], env=os.environ, check=True)
    assert {one.name for one in elsewhere.iterdir()} == {"post-commit", "post-merge"}


def test_what_others_put_into_the_queue_is_neither_measured_nor_removed(project: Any, tmp_path: Path) -> None:
    repo = open_repository(project.path, dict(os.environ))
    queue = project.path / ".perun" / "hooks" / "queue"
    queue.mkdir(parents=True)
    for name in (*FOREIGN, project.head):
        (queue / name).touch()
    (queue / "a-link").symlink_to(tmp_path / "victim")
    (queue / ("d" * 40)).mkdir()
    os.mkfifo(queue / ("f" * 40))
    measured: list[str] = []
    there = sorted(one.name for one in queue.iterdir())
    background.work(repo, lambda version: measured.append(version) or "")
    assert (measured, background.waiting(repo)) == ([], [])
    background.wait(repo)
    assert sorted(one.name for one in queue.iterdir()) == there
    background.start(repo, project.head, ["true"])
    background.work(repo, lambda version: measured.append(version) or "")
    assert measured == [project.head]
    there.remove(project.head)
    assert sorted(one.name for one in queue.iterdir()) == there


@pytest.mark.parametrize(
    "problem", [OSError(28, "No space left on device"), PerunError("it went wrong")], ids=["disk", "perun"]
)
def test_one_that_fails_stops_no_other(project: Any, problem: Exception) -> None:
    repo = open_repository(project.path, dict(os.environ))
    versions = [project.head, project.commit("Another"), project.commit("A third")]
    measured: list[str] = []

    def measure(version: str) -> str:
        measured.append(version)
        if version == versions[1]:
            raise problem
        return ""

    for version in versions:
        background.start(repo, version, ["true"])
    background.work(repo, measure)
    assert measured == versions
    (line,) = background.news(repo)
    assert line.startswith(f"{versions[1][:10]} could not be measured: ")
    assert background.waiting(repo) == []


def test_without_a_key_the_queue_is_that_of_who_trusts_the_whole(project: Any) -> None:
    nowhere = {**os.environ, "HOME": "/proc/none", "PERUN_CONFIG_DIR": "/proc/none"}
    for environ, expected in (({**nowhere, "PERUN_TRUST": "1"}, [project.head]), (nowhere, [])):
        repo = open_repository(project.path, environ)
        background.start(repo, project.head, ["true"])
        assert background.waiting(repo) == expected
