"""Histories that are stored for real, and asked in this process: hundreds of them in a few seconds each."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from asking import Asked, Hold, Store

from histories import History, commits, smaller, store
from perun.core.process.git import GitCommand, GitResult
from perun.history.check import parallel
from perun.repository.init import init
from perun.repository.repository import open_repository

READING = ("rev-parse", "symbolic-ref", "for-each-ref")
"""Commands of git that change nothing, beside those whose output is streamed."""
MOST_SMALLER = 150
"""Smaller histories that are tried to show the same contradiction."""


@pytest.fixture
def of_git() -> dict[Any, Any]:
    """What git has answered of the history that is stored."""
    return {}


@pytest.fixture
def asked_once(of_git: dict[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask git the same question of a history once: nobody adds a commit, and its start takes longest."""
    attempt, stream = GitCommand.attempt, GitCommand.stream

    def attempted(self: GitCommand, *arguments: str, **options: Any) -> GitResult:
        if arguments[0] not in READING or options:
            return attempt(self, *arguments, **options)
        key = (str(self.folder), *arguments)
        if key not in of_git:
            of_git[key] = attempt(self, *arguments)
        answer: GitResult = of_git[key]
        return answer

    def streamed(self: GitCommand, *arguments: str, **options: Any) -> Iterator[bytes]:
        key = (str(self.folder), *arguments)
        if key not in of_git:
            of_git[key] = list(stream(self, *arguments, **options))
        return iter(of_git[key])

    monkeypatch.setattr(GitCommand, "attempt", attempted)
    monkeypatch.setattr(GitCommand, "stream", streamed)


@pytest.fixture
def stored(tmp_path: Path, of_git: dict[Any, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Store a history in a repository of its own; one that is stored after it takes its place."""
    monkeypatch.setattr(parallel, "HELP_AFTER", math.inf)  # a start takes longer than it all
    template, folder = tmp_path / "template", tmp_path / "project"
    template.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", "--template="], cwd=template, check=True)
    environ = {**os.environ, "TZ": "UTC"}
    with chdir(template):
        init(template, environ)

    def make(history: History, *, settings: Mapping[str, str] | None = None) -> Asked:
        shutil.rmtree(folder, ignore_errors=True)
        of_git.clear()
        shutil.copytree(template, folder)
        made = Asked(folder, history, commits(folder, history), environ)
        for key, value in (settings or {}).items():
            made.perun("config", "--local", "set", key, value)
            if key == "store.url":
                made.perun("init")  # makes it
        store(open_repository(folder, environ), history, made.checksums)
        return made

    yield make
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def hold(stored: Store, asked_once: None) -> Hold:
    """Store a history and look for contradictions; those of the smallest one that shows some are told."""

    def held(history: History, contradictions: Callable[[Asked], list[str]]) -> None:
        found = contradictions(stored(history))
        if not found:
            return
        tried, smallest = 0, history
        candidates = smaller(smallest)
        while tried < MOST_SMALLER and (one := next(candidates, None)) is not None:
            tried += 1
            if one.profiles and (own := contradictions(stored(one))):
                smallest, found = one, own
                candidates = smaller(smallest)
        pytest.fail("\n".join([f"of seed {history.seed}: {smallest}", *found]))

    return held
