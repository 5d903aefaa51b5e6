"""`--in-place`: versions are checked out in the user's folder, which is given back whatever happens."""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from measured_folders import settle, write_config
from shared import wait_for


@pytest.fixture
def configure(project: Any) -> Callable[..., None]:
    """Write the local configuration, by which what is measured notes its folder."""
    return partial(write_config, project)


@pytest.fixture
def dirty(project: Any) -> Any:
    """The project with staged, unstaged, deleted and untracked files, and an entry in git's stash."""
    project.commit("More files", {"a/b.txt": "b\n", "gone.txt": "gone\n", "run.sh": "#!/bin/sh\n"})
    project.write({"file.txt": "stashed\n"})
    project.git("stash")
    project.write({"file.txt": "staged\n", "added.txt": "added\n", "a/b.txt": b"\0binary\xff"})
    project.git("add", "file.txt", "added.txt")
    project.write({"file.txt": "unstaged\n", "below/untracked.txt": "untracked\n"})
    (project.path / "gone.txt").unlink()
    (project.path / "run.sh").chmod(0o755)
    return project


def picture(project: Any) -> dict[str, Any]:
    """Files with their modes and contents, the index, HEAD, branches and stash."""
    files = {}
    for path in sorted(project.path.rglob("*")):
        name = str(path.relative_to(project.path))
        if path.is_file() and not name.startswith((".git/", ".perun/")):
            files[name] = (path.stat().st_mode, path.read_bytes())
    head = (project.path / ".git/HEAD").read_text()
    branches = project.git("for-each-ref", "refs/heads")
    stash = project.git("stash", "list", "--format=%H %gs")
    return {
        "files": files, "index": project.git("ls-files", "--stage"),
        "status": project.git("status", "--short"), "head": head, "branches": branches, "stash": stash
    }  # fmt: skip


def test_versions_in_the_folder_itself(perun, dirty, record, configure) -> None:
    configure("execute: {pre_run: [sh -c 'echo built >>built.o']}\n")
    before = picture(dirty)
    outcome = perun("run", "-c", "--in-place", "matrix", "--quiet-env")
    lines = [line.split() for line in record.read_text().splitlines()]
    versions = dirty.git("rev-list", "HEAD").split()
    assert lines == [
        [str(dirty.path), version, content] for version, content in zip(versions, "3321", strict=True)
    ]
    after = picture(dirty)
    assert after["files"].pop("built.o")[1] == b"built\n" * 4  # untracked files stay where they are
    assert after["status"] == before["status"] + "\n?? built.o"
    assert after | {"status": ""} == before | {"status": ""}
    assert outcome.err == ""
    assert not (dirty.path / ".perun/in-place.json").exists()
    assert dirty.git("worktree", "list").count("\n") == 0


def test_a_clean_folder_and_a_detached_head(perun, project, record, configure) -> None:
    configure()
    project.git("checkout", "-q", "--detach", "HEAD~1")
    before = picture(project)
    perun("run", "--in-place", "-m", "main", "-m", "main~2", "matrix")
    assert [line.split()[2] for line in record.read_text().splitlines()] == ["3", "1"]
    assert picture(project) == before


def test_what_the_run_changes_is_kept_apart(perun, dirty, record, configure) -> None:
    """A build that writes to tracked files must neither reach the next version nor be lost."""
    before = picture(dirty)
    configure("execute: {pre_run: [sh -c 'echo by the build >>file.txt']}\n")
    outcome = perun("run", "-m", "HEAD", "-m", "HEAD~2", "--in-place", "matrix", "--quiet-env")
    contents = [line.split(maxsplit=2)[2] for line in record.read_text().splitlines()]
    assert contents == ["3 by the build", "2 by the build"]
    versions = [dirty.git("rev-parse", f"HEAD~{number}") for number in (0, 2)]
    for version, warning in zip(versions, outcome.err.splitlines(), strict=True):
        assert warning == (
            f"warning: measuring {version[:10]} changed tracked files; "
            "git stash keeps these changes, list them with: git stash list"
        )
    after = picture(dirty)
    assert after["stash"].count("\n") == 2
    assert dirty.git("show", "stash@{0}:file.txt") == "2\nby the build"
    assert dirty.git("show", "stash@{1}:file.txt") == "3\nby the build"
    assert after["stash"].endswith(before["stash"])
    assert after | {"stash": ""} == before | {"stash": ""}


def test_a_failing_version_in_between(perun, dirty, record, configure) -> None:
    configure("execute: {pre_run: [grep -v 2 file.txt]}\n")
    before = picture(dirty)
    perun("run", "-c", "--in-place", "matrix", code=8, err="3 profiles collected, 1 version skipped")
    assert picture(dirty) == before


def test_a_version_that_would_overwrite_a_file_is_skipped(perun, project, record, configure) -> None:
    configure()
    project.commit("With", {"notes.txt": "of the commit\n"})
    project.git("rm", "-q", "notes.txt")
    project.commit("Without")
    project.write({"notes.txt": "mine\n", "file.txt": "edited\n"})
    before = picture(project)
    outcome = perun("run", "-m", "HEAD~1", "-m", "HEAD~2", "--in-place", "matrix", check=False)
    assert outcome.code == 8
    assert "notes.txt" in outcome.out
    assert "1 profile collected, 1 version skipped" in outcome.err
    assert picture(project) == before


def test_changes_that_cannot_be_put_aside_end_the_run(perun, dirty, record, configure) -> None:
    """An untracked file is where the current version itself has a folder."""
    configure()
    dirty.git("rm", "-q", "-r", "--force", "a")
    dirty.write({"a": "mine\n"})
    before = picture(dirty)
    assert perun("run", "-c", "--in-place", "matrix", code=4, err="would overwrite files").out == ""
    assert not record.exists()
    assert picture(dirty) == before
    assert not (dirty.path / ".perun/in-place.json").exists()
    assert perun("status").err == ""


def test_conflicts_end_the_run(perun, project, record, configure) -> None:
    configure()
    project.write({"file.txt": "put aside\n"})
    project.git("stash")
    project.commit("Another change", {"file.txt": "another\n"})
    subprocess.run(["git", "stash", "pop", "--quiet"], cwd=project.path, capture_output=True, check=False)
    assert project.git("ls-files", "--unmerged")
    before = picture(project)
    perun("run", "-c", "--in-place", "matrix", code=4, err="git cannot put aside the uncommitted changes")
    assert not record.exists()
    assert picture(project) == before


def test_in_the_middle_of_a_merge(perun, project, record, configure) -> None:
    configure()
    project.git("checkout", "-q", "-b", "side", "HEAD~1")
    project.commit("Other", {"other.txt": ""})
    project.git("merge", "-q", "--no-commit", "--no-ff", "main")
    before = picture(project)
    perun("run", "-c", "--in-place", "matrix", code=4, err="a merge is in progress")
    assert not record.exists()
    assert picture(project) == before
    perun("run", "-c", "matrix")  # beside it there is no hindrance
    assert picture(project) == before


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_interruption(perun, dirty, record, configure, start, number, code) -> None:
    configure(cmds="sh -c 'cat file.txt >>$RECORD; grep -q 3 file.txt || exec sleep 300'")
    before = picture(dirty)
    run = start("run", "-c", "--in-place", "matrix", "--quiet-env")
    wait_for(lambda: record.exists() and record.read_text() == "3\n3\n2\n")
    run.send_signal(number)
    out, err = run.communicate(timeout=120)
    left = b"\ninterrupted, 2 of 4 jobs are left; run them with: perun run matrix --resume\n"
    assert (run.returncode, err) == (code, left)
    assert out.count(b"stored") == 2
    assert picture(dirty) == before
    assert len(perun("status", "--json").json["pending"]) == 2
    assert perun("recover").out == "nothing to recover: no in-place run was interrupted\n"


@pytest.fixture
def interrupted(dirty, record, configure, start) -> dict[str, Any]:
    """A run in place was killed while an old version was measured; how everything was before."""
    configure(cmds="sh -c 'echo $$ >$RECORD.pid; cat file.txt >>$RECORD; sleep 300'")
    before = picture(dirty)
    run = start("run", "-m", "HEAD~2", "--in-place", "matrix")
    wait_for(lambda: record.exists() and record.read_text() == "2\n")
    run.kill()
    run.communicate()
    os.killpg(int(Path(f"{record}.pid").read_text()), signal.SIGKILL)
    settle(dirty.path)
    assert (dirty.path / "file.txt").read_text() == "2\n"
    return before


def test_recovery(perun: Callable[..., Any], dirty: Any, interrupted: dict[str, Any]) -> None:
    said = f"an in-place run in {dirty.path} was interrupted; the folder was at main before"
    for arguments in (
        ["run", "matrix"],
        ["run", "job", "-b", "true", "-c", "time"],
        ["collect", "-c", "true", "time"],
        ["collect", "-m", "HEAD~1", "--in-place", "-c", "true", "time"],
    ):
        assert perun(*arguments, code=3).err == (
            f"error: {said}\nhint: restore it and your uncommitted changes with: perun recover\n"
        )
    for arguments in (["status"], ["log"], ["check", "head"]):
        assert perun(*arguments).err.startswith(
            f"warning: {said}; perun recover restores it and your uncommitted changes\n"
        )
    outcome = perun("recover")
    assert (outcome.out, outcome.err) == ("back at main\n", "")
    assert picture(dirty) == interrupted
    assert perun("status").err == ""
    assert perun("recover").out == "nothing to recover: no in-place run was interrupted\n"
    perun("collect", "-c", "true", *("time", "-r", "1", "-w", "0"))


def test_recovery_was_cut_off_at_its_very_end(perun, dirty, interrupted) -> None:
    journal = dirty.path / ".perun/in-place.json"
    noted = journal.read_bytes()
    perun("recover")
    journal.write_bytes(noted)
    assert perun("recover").out == "back at main\n"
    assert picture(dirty) == interrupted
    # Whoever went on working in between keeps that, and is told where the changes were.
    journal.write_bytes(noted)
    dirty.write({"file.txt": "newer\n"})
    before = picture(dirty)
    perun(
        "recover",
        code=4,
        err=(f"git stash apply --index {json.loads(noted)['stash']}", f"then: rm {journal}"),
    )
    assert picture(dirty) == before


def test_recovery_is_hindered(perun: Callable[..., Any], dirty: Any, interrupted: dict[str, Any]) -> None:
    """A file that somebody has made meanwhile is not overwritten."""
    (dirty.path / "added.txt").write_text("made meanwhile\n")
    perun("recover", code=4, err=("added.txt", "your changes are safe in the stash entry"))
    assert (dirty.path / "added.txt").read_text() == "made meanwhile\n"
    (dirty.path / "added.txt").unlink()
    perun("recover")
    assert picture(dirty) == interrupted


def test_recovery_from_another_working_tree(perun, dirty, interrupted, tmp_path) -> None:
    linked = tmp_path / "linked"
    dirty.git("worktree", "add", "-q", "-b", "other", str(linked), "main")
    outcome = perun("recover", cwd=linked, code=3)
    assert outcome.err.splitlines()[1] == f"hint: run perun recover there: cd {dirty.path}"
    assert (linked / "file.txt").read_text() == "3\n"
    perun("recover", cwd=dirty.path)
    assert picture(dirty)["files"] == interrupted["files"]


def test_a_damaged_journal(perun: Callable[..., Any], dirty: Any, interrupted: dict[str, Any]) -> None:
    (dirty.path / ".perun/in-place.json").write_text("{")
    assert "in-place.json is not readable" in perun("status").err
    for arguments in (["recover"], ["run", "matrix"]):
        perun(*arguments, code=6, err="git stash list")


def test_while_a_run_is_at_work(perun, dirty, record, configure, start) -> None:
    configure(cmds="sh -c 'cat file.txt >>$RECORD; sleep 300'")
    before = picture(dirty)
    run = start("run", "-m", "HEAD~2", "--in-place", "matrix")
    wait_for(lambda: record.exists() and record.read_text() == "2\n")
    assert perun("status").err.startswith("warning: an in-place run is active")
    for arguments in (
        ["recover"],
        ["run", "--in-place", "-m", "HEAD~1", "matrix"],
        ["collect", "-c", "true", "time"],
    ):
        perun(*arguments, code=7, err=(f"process {run.pid} ", "wait until it ends"))
    run.send_signal(signal.SIGINT)
    run.communicate()
    assert picture(dirty) == before


@pytest.mark.slow  # tests/unit/vcs/test_git_inplace_killed.py kills it between calls of git
@pytest.mark.parametrize("times", [2, 100])
def test_killed_at_random_moments(perun, dirty, record, configure, start, times) -> None:
    configure()
    arguments = ("run", "-m", "HEAD", "-m", "HEAD~2", "--in-place", "matrix")
    before = picture(dirty)
    journal = dirty.path / ".perun/in-place.json"
    run = start(*arguments)
    started = time.monotonic()
    wait_for(journal.exists)
    begun = time.monotonic()
    wait_for(lambda: not journal.exists())
    ended = time.monotonic()
    run.communicate()
    assert picture(dirty) == before
    chance = random.Random(times)
    recovered = 0
    for number in range(times):
        run = start(*arguments)
        if number % 4:
            wait_for(lambda run=run: journal.exists() or run.poll() is not None)
            time.sleep(chance.uniform(0, 0.8) * (ended - begun))
        else:
            time.sleep(chance.uniform(0.5, 1) * (begun - started))
        run.kill()
        run.communicate()
        settle(dirty.path)
        if journal.exists():
            perun("recover")
            recovered += 1
        after = picture(dirty)
        if after["stash"] != before["stash"]:
            # Killed after the copy was made, and before anything was changed.
            entry, _, rest = after["stash"].partition("\n")
            assert "perun: your uncommitted changes on main" in entry
            assert rest == before["stash"]
            dirty.git("stash", "drop", "--quiet")
        assert after | {"stash": ""} == before | {"stash": ""}
        if number % 5 == 0:
            assert perun("fsck", "--json").json["errors"] == 0
    assert recovered >= times // 5
    perun(*arguments)
    assert picture(dirty) == before
