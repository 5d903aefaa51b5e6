"""`kill -9` in the middle of an in-place run: the user's changes are always in the folder or in the stash."""

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perun.core.errors import VersionControlError
from perun.plugin.api import SavedState

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
vcs.resume(saved)
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


def start(repo: Any, journal: Path, path: Path | None = None, script: str = RUN) -> subprocess.Popen[str]:
    """A run in another process; `path` is where it finds git first."""
    source = str(Path(sys.modules["perun"].__file__ or "").parents[1])
    environ = {**repo.environ, "PYTHONPATH": source}
    if path:
        environ["PATH"] = f"{path}:{environ['PATH']}"
    command = [sys.executable, "-c", script, str(repo.root), str(journal), "HEAD~2"]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)


def settle(repo: Any) -> None:
    """Wait for the git that outlives its killed parent."""

    def at_work() -> bool:
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if os.fsencode(repo.root) in process.read_bytes():
                    return True
        return False

    deadline = time.monotonic() + 60
    while at_work() and time.monotonic() < deadline:
        time.sleep(0.01)


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
        (blob(f"{entry}:a.txt"), blob(f"{entry}^2:a.txt"), blob(f"{entry}:added.txt"))
        for entry in repo.stashes()
    ]
    assert (EDITED, STAGED, ADDED) in places


def recover(repo: Any, journal: Path) -> None:
    if journal.exists():
        saved = SavedState(*json.loads(journal.read_text()))
        try:
            repo.vcs.resume(saved)
        except VersionControlError as problem:
            # The run was over but for its end.
            assert "no entry" in problem.message


@pytest.fixture
def signalling_git(tmp_path: Path) -> Callable[[int, str], Path]:
    """Makes a git that sends the process that calls it a signal, instead of the call after so many calls."""
    folder, count = tmp_path / "bin", tmp_path / "count"
    folder.mkdir()
    real = shutil.which("git")

    def make(calls: int, signal: str) -> Path:
        count.write_text(f"{calls}\n")
        program = folder / "git"
        program.write_text(
            "#!/bin/sh\n"
            f'read left <"{count}"; echo $((left - 1)) >"{count}"\n'
            f'[ "$left" -ne 0 ] || kill -{signal} $PPID\n'
            f'[ "$left" -gt 0 ] || [ {signal} = INT ] || exit 1\n'
            f'exec "{real}" "$@"\n'
        )
        program.chmod(0o755)
        return folder

    return make


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_between_any_two_calls_of_git(dirty: Any, tmp_path, signalling_git: Any, step: int) -> None:
    before = dirty.picture()
    shutil.copytree(dirty.root, tmp_path / "pristine", symlinks=True)
    for calls in range(0, 100, step):
        journal = tmp_path / f"journal{calls}"
        output = start(dirty, journal, signalling_git(calls, "KILL")).communicate()[0]
        if output:
            break
        settle(dirty)
        assert_nothing_lost(dirty)
        recover(dirty, journal)
        assert dirty.picture() == before, calls
        assert len(dirty.stashes()) <= (0 if journal.exists() else 1), calls
        shutil.rmtree(dirty.root)
        shutil.copytree(tmp_path / "pristine", dirty.root, symlinks=True)
    assert output == "finished\n" and calls > 15 and dirty.picture() == before


def test_interrupted_save_undoes_itself(dirty: Any, tmp_path: Path, signalling_git: Any) -> None:
    before = dirty.picture()
    script = (
        "import os, sys; from pathlib import Path; from perun.vcs.git import Git\n"
        "try: Git(Path(sys.argv[1]), os.environ).save_state(); print('saved')\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    for calls in range(100):
        output = start(dirty, tmp_path, signalling_git(calls, "INT"), script).communicate()[0]
        if output == "saved\n":
            break
        assert output == "interrupted\n"
        assert_nothing_lost(dirty)
        assert dirty.picture() == before, calls
    assert calls > 8
    dirty.vcs.restore_state(True, "main")
    assert dirty.picture() == before


@pytest.mark.slow  # above it is killed between calls of git, whose number is no matter of chance
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
    steps: dict[str, Callable[[], object]] = {
        "save": lambda: dirty.vcs.finish_save(saved),
        "checkout": lambda: dirty.vcs.checkout("HEAD~2"),
        "restore": lambda: dirty.vcs.resume(saved),
    }
    for name, step in steps.items():
        if name == phase:
            break
        step()
    (dirty.root / ".git/info").mkdir(exist_ok=True)
    (dirty.root / ".git/info/attributes").write_text("a.txt filter=deadly\n")
    dirty.git("config", "filter.deadly.clean", "cat")
    dirty.git(
        "config",
        "filter.deadly.smudge",
        f"cat; test -e {tmp_path}/killed || {{ touch {tmp_path}/killed; kill -9 $PPID; }}",
    )
    try:
        step()
    except VersionControlError as problem:
        # Which git is killed, that one or one that it started, is a matter of time.
        assert any(text in problem.message for text in ("index.lock", "signal 9", "without a message"))
    assert (tmp_path / "killed").exists()
    assert_nothing_lost(dirty)
    for lock in (dirty.root / ".git").glob("*.lock"):
        lock.unlink()
    dirty.vcs.resume(saved)
    assert dirty.picture() == before


# -- A git that cannot replace a file only warns; nothing that was put aside may be forgotten then ---


WARNING = "warning: unable to unlink 'a.txt': Input/output error"


@pytest.fixture
def warning_git(tmp_path: Path) -> Path:
    """A git whose first checkout replaces no file, says so on standard error, and ends with 0."""
    folder, real = tmp_path / "bin", shutil.which("git")
    folder.mkdir()
    program = folder / "git"
    program.write_text(
        "#!/bin/sh\n"
        f'case "$* " in *" checkout "*) if [ ! -e "{tmp_path}/done" ]; then touch "{tmp_path}/done"\n'
        f'  for last; do :; done; "{real}" -C "$2" update-ref --no-deref HEAD "$last"\n'
        f'  "{real}" -C "$2" read-tree "$last"; echo "{WARNING}" >&2; exit 0; fi;; esac\n'
        f'exec "{real}" "$@"\n'
    )
    program.chmod(0o755)
    return folder


def test_changes_stay_put_aside_where_a_file_cannot_be_replaced(repo: Any, warning_git, monkeypatch) -> None:
    from perun.vcs.git import Git

    repo.write({"a.txt": "edited\n"})
    before = repo.picture()
    saved = repo.vcs.prepare_save()
    repo.vcs.finish_save(saved)
    repo.vcs.checkout("HEAD~1")
    failing = Git(repo.root, {**repo.environ, "PATH": f"{warning_git}:{repo.environ['PATH']}"})
    with pytest.raises(VersionControlError, match=r"unable to unlink 'a\.txt'"):
        failing.resume(saved)
    assert repo.stashes()
    failing.resume(saved)
    assert repo.picture() == before


def test_a_working_copy_is_made_anew_where_a_file_cannot_be_replaced(repo: Any, tmp_path: Path) -> None:
    """Else a file of another version would be measured."""
    from perun.vcs.git import Git

    folder, real, armed = tmp_path / "bin", shutil.which("git"), tmp_path / "armed"
    folder.mkdir()
    program = folder / "git"
    program.write_text(
        "#!/bin/sh\n"
        f'case "$* " in *" checkout "*) if [ -e "{armed}" ]; then rm "{armed}"\n'
        f'  echo "{WARNING}" >&2; exit 0; fi;; esac\n'
        f'exec "{real}" "$@"\n'
    )
    program.chmod(0o755)
    failing = Git(repo.root, {**repo.environ, "PATH": f"{folder}:{repo.environ['PATH']}"})
    old, new = failing.massage_parameter("HEAD~1"), failing.get_minor_head()
    with failing.working_copy(tmp_path / "copy") as copy:
        place = copy.switch(old)
        before = {path.name: path.read_text() for path in place.glob("*.txt")}
        armed.touch()
        assert copy.switch(new) == place and not armed.exists()
        after = {path.name: path.read_text() for path in place.glob("*.txt")}
        dirty = Git(place, repo.environ).is_dirty()
    assert after != before and not dirty
