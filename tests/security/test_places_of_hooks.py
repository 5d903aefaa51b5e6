"""Where hooks are written, and what waits there to be measured."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from perun.core.errors import PerunError
from perun.repository.repository import open_repository
from perun.running.run import background

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
def test_the_folder_that_a_stranger_names_is_asked_about(
    perun: Any, terminal: Any, clone: Any, elsewhere: Path, how: str
) -> None:
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


def test_what_others_put_into_the_queue_is_neither_measured_nor_removed(
    project: Any, tmp_path: Path
) -> None:
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
