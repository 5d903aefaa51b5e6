"""The versions that are measured, as the history that is drawn of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from perun.plugin.api import MinorVersion
from perun.repository.init import init
from perun.repository.repository import Repository, open_repository
from perun.running.run.schedule import choose, parents_among


@pytest.fixture
def merged(git_repository: Callable[..., Any]) -> tuple[Repository, dict[str, MinorVersion]]:
    """A history with a merge, and its versions by their subjects: Merge, Side, Commit 3, 2 and 1."""
    git = git_repository(commits=3)
    git.git("checkout", "-q", "-b", "side", "HEAD~1")
    git.commit("Side")
    git.git("checkout", "-q", "main")
    git.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    init(git.path, os.environ)
    repo = open_repository(git.path, os.environ)
    return repo, {one.subject: one for one in choose(repo, (), True)}


def drawn(merged: tuple[Repository, dict[str, MinorVersion]], *subjects: str) -> dict[str, list[str]]:
    repo, versions = merged
    names = {version.checksum: subject for subject, version in versions.items()}
    found = parents_among(repo, [versions[subject] for subject in subjects])
    return {names[child]: [names[parent] for parent in parents] for child, parents in found.items()}


def test_all_versions_have_their_parents(merged: tuple[Repository, dict[str, MinorVersion]]) -> None:
    assert drawn(merged, "Merge", "Side", "Commit 3", "Commit 2", "Commit 1") == {
        "Merge": ["Commit 3", "Side"],
        "Side": ["Commit 2"],
        "Commit 3": ["Commit 2"],
        "Commit 2": ["Commit 1"],
        "Commit 1": [],
    }


def test_what_lies_between_is_passed_over(merged: tuple[Repository, dict[str, MinorVersion]]) -> None:
    assert drawn(merged, "Merge", "Commit 1") == {"Merge": ["Commit 1"], "Commit 1": []}
    assert drawn(merged, "Merge", "Side", "Commit 1") == {
        "Merge": ["Commit 1", "Side"], "Side": ["Commit 1"], "Commit 1": []
    }  # fmt: skip
    assert drawn(merged, "Side", "Commit 3") == {"Side": [], "Commit 3": []}
    assert drawn(merged, "Commit 3") == {"Commit 3": []}


def test_what_is_no_history_is_not_drawn(merged: tuple[Repository, dict[str, MinorVersion]]) -> None:
    assert drawn(merged, "Commit 1", "Merge") == {}
    assert drawn(merged, "Merge", "Commit 1", "Merge") == {}
    assert drawn(merged) == {}
