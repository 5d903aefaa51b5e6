"""`perun.lock` in git: growth of commands, and merges of two branches."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.repository.init import init
from perun.running.guard.lock import CountLock, merged, read, write
from shared import conftest_of

_cli = conftest_of("cli")
command, environment, perun = _cli.command, _cli.environment, _cli.perun

LOCKS = st.builds(
    CountLock,
    st.sampled_from(["gcc 12", "gcc 13"]),
    st.dictionaries(
        st.sampled_from(["./a", "./b {n}", "./c 'x'"]),
        st.dictionaries(st.sampled_from(["instructions", "peak memory", "instructions of f(int)"]),
                        st.integers(0, 9).map(float), min_size=1),
    ),
)  # fmt: skip


@given(LOCKS, LOCKS, LOCKS)
def test_each_side_brings_what_it_changed(base: CountLock, ours: CountLock, theirs: CountLock) -> None:
    made, apart = merged(base, ours, theirs)
    assert merged(base, ours, base) == (ours, []) and merged(base, base, ours)[0] == ours
    assert merged(base, ours, ours) == (ours, [])
    other, same = merged(base, theirs, ours)
    assert sorted(same) == sorted(apart) and (apart or other == made)


@given(LOCKS)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, lock: CountLock) -> None:
    path = tmp_path_factory.mktemp("lock") / "perun.lock"
    write(path, lock)
    assert read(path) == lock


@pytest.fixture
def merging(git_repository: Any, perun: Any, environment: dict[str, str]) -> Callable[..., Any]:
    """Merge two branches whose locks have these values of the commands; what git says, and the lock."""
    repository = git_repository(commits=0)
    folder: Path = repository.path
    path = os.pathsep.join((str(Path(sys.executable).parent), environment["PATH"]))

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *words], cwd=folder, env={**environment, "PATH": path}, text=True,
                              capture_output=True, check=False)  # fmt: skip

    def locked(values: dict[str, int]) -> None:
        rows = {name: {"instructions": float(value), "allocations": 3.0} for name, value in values.items()}
        write(folder / "perun.lock", CountLock("gcc", rows))

    def merge(base: dict[str, int], ours: dict[str, int], theirs: dict[str, int], driver: bool) -> Any:
        locked(base)
        repository.commit("Base")
        if driver:
            init(folder, environ=environment)
            perun("lock", "--install-merge-driver", cwd=folder)
            repository.commit("Attributes")
        main = git("branch", "--show-current").stdout.strip()
        git("checkout", "-q", "-b", "other")
        locked(theirs)
        repository.commit("Theirs")
        git("checkout", "-q", main)
        locked(ours)
        repository.commit("Ours")
        done = git("merge", "--no-edit", "other")
        return done, (folder / "perun.lock").read_text()

    return merge


def test_git_merges_disjoint_rows_by_itself(merging: Any) -> None:
    done, text = merging({"./a": 1, "./b": 2}, {"./a": 11, "./b": 2}, {"./a": 1, "./b": 22}, False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "instructions: 11\n" in text and "instructions: 22\n" in text


def test_what_git_cannot_merge_says_what_to_do(merging: Any, perun: Any, tmp_path: Path) -> None:
    done, text = merging({"./a": 1}, {"./a": 1, "./b": 22}, {"./a": 1, "./c": 33}, False)
    assert done.returncode == 1
    path = tmp_path / "theirs"
    path.write_text(text)
    perun("lock", "--merge", path, path, path, code=5, err="git has left a conflict in it")


def test_the_driver_merges_what_lies_side_by_side(merging: Any) -> None:
    done, text = merging({"./a": 1}, {"./a": 1, "./b": 22}, {"./a": 1, "./c": 33}, True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "./b:\n  instructions: 22\n" in text and "./c:\n  instructions: 33\n" in text


def test_what_both_changed_has_to_be_measured(merging: Any) -> None:
    done, text = merging({"./a": 1, "./b": 2}, {"./a": 11, "./b": 2}, {"./a": 12, "./b": 22}, True)
    assert done.returncode == 1 and "./a: instructions: both sides changed it" in done.stderr
    assert "instructions: 11\n" in text and "instructions: 22\n" in text and "<<<" not in text
