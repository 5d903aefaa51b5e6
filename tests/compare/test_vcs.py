"""What a comparison asks a version control system: the merge base, and what is not committed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perun.running.compare.plan import copy_changes
from perun.vcs.git import Git
from perun.vcs.svs import PLUGIN as Svs
from perun.vcs.tagit import PLUGIN as Tagit


def test_merge_base(git_repository: Callable[..., Any]) -> None:
    git = git_repository(commits=2)
    vcs = Git(git.path, os.environ)
    fork = git.head
    git.git("checkout", "--quiet", "-b", "topic")
    topic = git.commit("On the branch")
    git.git("checkout", "--quiet", "main")
    main = git.commit("On main")
    assert vcs.merge_base(main, topic) == vcs.merge_base(topic, main) == fork
    assert vcs.merge_base(main, fork) == fork
    # What any system does that has no command for it.
    assert super(Git.__mro__[1], vcs).merge_base(main, topic) == fork
    git.git("checkout", "--quiet", "--orphan", "alone")
    alone = git.commit("Alone")
    assert vcs.merge_base(main, alone) is None
    assert super(Git.__mro__[1], vcs).merge_base(main, alone) is None


def test_changed_files_below_and_above_the_folder(git_repository: Callable[..., Any]) -> None:
    git = git_repository(commits=1)
    git.commit("Files", {"sub/a": "1", "top": "1", "gone": "1", "link": "1", ".gitignore": "*.o\n"})
    assert Git(git.path, os.environ).changed_files() == []
    git.write({"sub/a": "2", "top": "2", "sub/new file": "", "sub/x.o": "", "ünicode": ""})
    git.git("rm", "--quiet", "gone")
    (git.path / "link").unlink()
    git.write({"link/inside": "a folder now"})
    found = Git(git.path, os.environ).changed_files()
    assert sorted(found) == sorted(
        ["sub/a", "top", "sub/new file", "ünicode", "gone", "link", "link/inside"]
    )
    below = Git(git.path / "sub", os.environ).changed_files()
    assert {"a", "new file", "../top", "../gone"} <= set(below)


def test_changed_files_of_other_systems(tmp_path: Path) -> None:
    folder = tmp_path / "tagged"
    folder.mkdir()
    tagit = Tagit(folder, os.environ)
    tagit.init({})
    (folder / "a").write_text("1")
    (folder / ".tagitignore").write_text("*.o\n")
    tagit.snapshot("one")
    assert tagit.changed_files() == []
    (folder / "a").write_text("22")
    (folder / "b").write_text("new")
    (folder / "x.o").write_text("ignored")
    assert sorted(tagit.changed_files()) == ["a", "b"]
    assert Svs(tmp_path, os.environ).changed_files() == []


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_copied_stays_in_the_copy(tmp_path: Path, kind: str) -> None:
    """Where the version has a link to a folder elsewhere, nothing is written through it."""
    source, copy, outside = (tmp_path / name for name in ("source", "copy", "outside"))
    for folder in (source / "sub", copy, outside):
        folder.mkdir(parents=True)
    (source / "sub/file").write_text("new")
    if kind == "link":
        (copy / "sub").symlink_to(outside)
    else:
        (copy / "sub").write_text("a file")
    copy_changes(source, ["sub/file", "never/was"], copy)
    assert (copy / "sub/file").read_text() == "new"
    assert list(outside.iterdir()) == []
