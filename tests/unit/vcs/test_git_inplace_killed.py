"""`kill -9` in the middle of an in-place run: the user's changes are always in the folder or in the stash."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from perun.errors import VersionControlError

RUN = """
import json, os, sys
from pathlib import Path
from perun.vcs.git import Git
root, journal = map(Path, sys.argv[1:3])
vcs = Git(root, os.environ)
old = sys.argv[3]
saved = vcs.prepare_save()
journal.with_suffix(".part").write_text(json.dumps(saved))
journal.with_suffix(".part").rename(journal)
vcs.finish_save(saved)
vcs.checkout(old)
vcs.restore_state(*saved)
print("finished")
"""
STAGED, EDITED, ADDED = "staged\n", "staged and edited\n", "new\n"


@pytest.fixture
def dirty(repo: Any) -> Any:
    repo.write({"a.txt": STAGED, "added.txt": ADDED})
    repo.git("add", "a.txt", "added.txt")
    repo.write({"a.txt": EDITED, "untracked.txt": "untracked\n"})
    (repo.root / "sub/b.txt").unlink()
    return repo


def start(repo: Any, journal: Path) -> subprocess.Popen[str]:
    source = str(Path(sys.modules["perun"].__file__ or "").parents[1])
    environ = {**repo.environ, "PYTHONPATH": source}
    old = repo.git("rev-parse", "HEAD~2")
    command = [sys.executable, "-c", RUN, str(repo.root), str(journal), old]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)


def settle(repo: Any) -> None:
    """Wait for the git that outlives its killed parent."""
    deadline = time.monotonic() + 10
    while list((repo.root / ".git").glob("**/*.lock")) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.05)


def assert_nothing_lost(repo: Any) -> None:
    """What no commit of a branch holds is in the folder and index, or in one entry of the stash."""
    assert (repo.root / "untracked.txt").read_text() == "untracked\n"

    def blob(spelling: str) -> str | None:
        found = subprocess.run(
            ["git", "-C", str(repo.root), "cat-file", "blob", spelling],
            env=repo.environ, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return found.stdout if found.returncode == 0 else None

    def text(name: str) -> str | None:
        path = repo.root / name
        return path.read_text() if path.exists() else None

    places = [(text("a.txt"), blob(":a.txt"), text("added.txt"))]
    places += [
        (blob(f"{entry}:a.txt"), blob(f"{entry}^2:a.txt"), blob(f"{entry}:added.txt")) for entry in repo.stashes()
    ]
    assert (EDITED, STAGED, ADDED) in places


def recover(repo: Any, journal: Path) -> None:
    if journal.exists():
        saved, state, stash = json.loads(journal.read_text())
        try:
            repo.vcs.restore_state(saved, state, stash)
        except VersionControlError as problem:
            # The run was over but for its end.
            assert "no entry" in problem.message


def test_killed_between_any_two_calls_of_git(dirty: Any, tmp_path: Path) -> None:
    before = dirty.picture()
    shutil.copytree(dirty.root, tmp_path / "pristine", symlinks=True)
    real = shutil.which("git")
    program, count = tmp_path / "bin" / "git", tmp_path / "count"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        f'read left <"{count}"; echo $((left - 1)) >"{count}"\n'
        '[ "$left" -gt 0 ] || { kill -9 $PPID; exit 1; }\n'
        f'exec "{real}" "$@"\n'
    )
    program.chmod(0o755)
    path = dirty.environ["PATH"]
    for calls in range(100):
        journal = tmp_path / f"journal{calls}"
        dirty.environ["PATH"] = f"{program.parent}:{path}"
        count.write_text("1000\n")
        process = start(dirty, journal)
        count.write_text(f"{calls}\n")
        output = process.communicate()[0]
        dirty.environ["PATH"] = path
        if output:
            break
        assert_nothing_lost(dirty)
        recover(dirty, journal)
        assert dirty.picture() == before, calls
        assert len(dirty.stashes()) <= (0 if journal.exists() else 1), calls
        shutil.rmtree(dirty.root)
        shutil.copytree(tmp_path / "pristine", dirty.root, symlinks=True)
    assert output == "finished\n"
    assert calls > 15
    assert dirty.picture() == before


def test_killed_at_random_moments(dirty: Any, tmp_path: Path) -> None:
    before = dirty.picture()
    started = time.monotonic()
    assert start(dirty, tmp_path / "whole").communicate()[0] == "finished\n"
    whole = time.monotonic() - started
    chance = random.Random(20)
    for attempt in range(15):
        journal = tmp_path / f"journal{attempt}"
        process = start(dirty, journal)
        time.sleep(chance.uniform(0.3, 1.0) * whole)
        process.kill()
        process.communicate()
        settle(dirty)
        assert_nothing_lost(dirty)
        recover(dirty, journal)
        assert dirty.picture() == before
        for _ in dirty.stashes():
            dirty.git("stash", "drop")


@pytest.mark.parametrize("phase", ["save", "checkout", "restore"])
def test_git_itself_killed_in_the_middle_of_a_checkout(dirty: Any, tmp_path: Path, phase: str) -> None:
    """A filter kills the git that runs it, when some files are written and others are not."""
    before = dirty.picture()
    saved = dirty.vcs.prepare_save()
    steps = {
        "save": lambda: dirty.vcs.finish_save(saved),
        "checkout": lambda: dirty.vcs.checkout("HEAD~2"),
        "restore": lambda: dirty.vcs.restore_state(*saved),
    }
    for name, step in steps.items():
        if name == phase:
            break
        step()
    (dirty.root / ".git/info").mkdir(exist_ok=True)
    (dirty.root / ".git/info/attributes").write_text("a.txt filter=deadly\n")
    dirty.git("config", "filter.deadly.clean", "cat")
    dirty.git("config", "filter.deadly.smudge", f"cat; test -e {tmp_path}/killed || {{ touch {tmp_path}/killed; kill -9 $PPID; }}")
    try:
        step()
    except VersionControlError as problem:
        assert "lock" in problem.message or "signal" in problem.message
    assert (tmp_path / "killed").exists()
    assert_nothing_lost(dirty)
    for lock in (dirty.root / ".git").glob("*.lock"):
        lock.unlink()
    dirty.vcs.restore_state(*saved)
    assert dirty.picture() == before
