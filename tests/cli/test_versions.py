"""Where versions are measured, that nothing of the user's is touched by it, and that nothing stays behind."""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from measured_folders import QUICK, settle, write_config
from perun.core.atomic import process_mark, system
from shared import is_running, wait_for

LASTING = """\
#!/bin/sh
# Starts a process of its own, as builds and servers do, and does not end.
sleep 300 &
echo $! $$ >>"$RECORD"
wait
"""


@pytest.fixture
def configure(project: Any) -> Callable[..., None]:
    """Write the local configuration, by which what is measured notes its folder."""
    return partial(write_config, project)


@pytest.fixture
def dirty(project: Any) -> Any:
    """The project with staged, unstaged and untracked changes, an entry in git's stash, and a tag."""
    project.write({"file.txt": "stashed\n"})
    project.git("stash")
    project.write({"file.txt": "staged\n", "added.txt": "added\n", "keep.o": "built\n"})
    project.git("add", "file.txt", "added.txt")
    project.write({"file.txt": "unstaged\n", "below/untracked.txt": "untracked\n"})
    project.git("tag", "v1", "HEAD~1")
    return project


def picture(folder: Path) -> dict[str, str]:
    """Everything in the folder and in `.git`, with the times of files; not git's objects nor `.perun`."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith((".perun/", ".git/objects/")) or path.is_dir():
            continue
        status = path.lstat()
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        found[name] = f"{hashlib.sha256(content).hexdigest()} {status.st_mode:o} {status.st_mtime_ns}"
    return found


def left_over(project: Any) -> list[str]:
    """What a run has left behind."""
    listed = project.git("worktree", "list").splitlines()[1:]
    known = project.path / ".git/worktrees"
    return (
        listed
        + [str(path) for path in (project.path / ".perun/tmp").iterdir()]
        + [known.name] * known.exists()
    )


def test_a_clean_head_is_measured_where_it_is(perun, project, record, configure) -> None:
    configure()
    before = picture(project.path)
    perun("run", "matrix")
    assert record.read_text() == f"{project.path} {project.head} 3\n"
    assert picture(project.path) == before
    assert left_over(project) == []


def test_a_history_beside_uncommitted_changes(perun, dirty, record, configure) -> None:
    """Nothing of the user's changes: no file, no time, nor index, HEAD, reflog or stash."""
    configure("execute: {pre_run: [sh -c 'echo generated > file.o; echo changed >> file.txt']}\n")
    before = picture(dirty.path)
    versions = dirty.git("rev-list", "HEAD").split()
    outcome = perun("run", "-c", "matrix", "--quiet-env")
    lines = [line.split() for line in record.read_text().splitlines()]
    assert [line[1] for line in lines] == versions
    assert [line[2:] for line in lines] == [["3", "changed"], ["2", "changed"], ["1", "changed"]]
    places = {line[0] for line in lines}
    assert len(places) == 3  # each has a folder of its own, with a name as long as the others
    assert all(place.startswith(f"{dirty.path}/.perun/cache/builds/") for place in places)
    assert len({len(place) for place in places}) == 1
    assert outcome.err == (
        "warning: uncommitted changes are not measured; --force-dirty (-f) measures them too\n"
    )
    assert picture(dirty.path) == before
    assert left_over(dirty) == []


def test_each_version_is_fresh(perun, project, record, configure) -> None:
    """What building and running one version leaves is not there in the next, whatever it is."""
    mess = (
        "sh -c 'test ! -e mess && mkdir -p mess/locked && touch mess/locked/file && chmod 0 mess/locked "
        "&& rm -f file.txt.orig && git checkout -q -b made-$$ && echo x > file.txt && git add file.txt'"
    )
    configure(f"execute: {{pre_run: [{mess!r}]}}\n", cmds="sh -c 'cat file.txt >> $RECORD'")
    project.write({"file.txt": "edited\n"})
    perun("run", "-c", "matrix")
    assert record.read_text() == "x\n" * 3
    assert (project.path / "file.txt").read_text() == "edited\n"
    assert project.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert left_over(project) == []


def test_versions_by_any_name(perun, project, record, configure) -> None:
    configure()
    first, second, third = project.git("rev-list", "--reverse", "HEAD").split()
    project.git("tag", "-a", "-m", "annotated", "v1", first)
    project.git("branch", "old", second)
    perun("run", "-m", "v1", "-m", "old", "-m", third[:8], "-m", "HEAD", "matrix")
    assert [line.split()[1] for line in record.read_text().splitlines()] == [first, second, third]
    perun("run", "-m", "HEAD", "-m", "absent", "matrix", code=4, err="git knows no commit 'absent'")
    assert len(record.read_text().splitlines()) == 3  # found out before anything ran


def test_merged_history_in_order(perun, project, record, configure) -> None:
    configure()
    project.git("checkout", "-q", "-b", "side", "HEAD~1")
    project.commit("On the side", {"side": ""})
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    perun("run", "-c", "matrix")
    measured = [line.split()[1] for line in record.read_text().splitlines()]
    assert sorted(measured) == sorted(project.git("rev-list", "HEAD").split())
    for commit in measured:
        for parent in project.git("rev-parse", f"{commit}^@").split():
            assert measured.index(commit) < measured.index(parent)


def test_a_submodule(perun, project, git_repository, record, configure) -> None:
    library = git_repository("the library", commits=1)
    allow = ("-c", "protocol.file.allow=always")
    project.git(*allow, "submodule", "--quiet", "add", str(library.path), "library")
    project.commit("With a library")
    project.commit("More", {"file.txt": "more\n"})
    cmds = "sh -c 'ls -a library | wc -l >>$RECORD'"
    configure(cmds=cmds)
    before = picture(project.path)
    perun("run", "-c", "matrix", check=False)
    assert record.read_text().split()[:2] == ["4", "2"]  # where it is; empty in a working copy
    record.unlink()
    update = " ".join(("git", *allow, "submodule", "--quiet", "update", "--init"))
    configure(f"execute: {{pre_run: [{update}]}}\n", cmds=cmds)
    perun("run", "-m", "HEAD~1", "matrix")
    assert record.read_text() == "4\n"
    assert picture(project.path) == before
    assert left_over(project) == []


def test_paths_with_blanks(perun, git_repository, record) -> None:
    repository = git_repository("my 'old' project; ü", commits=2)
    perun("init", cwd=repository.path)
    (repository.path / ".perun/local.yml").write_text(
        f"vcs: {{type: git, url: ..}}\ncmds: ['sh -c \"cat file.txt >>$RECORD\"']\ncollectors: [{QUICK}]\n"
        "workloads: ['a b', 'ü/$x']\nexecute: {pre_run: [git status]}\n"
    )
    perun("run", "-c", "matrix", cwd=repository.path)
    assert record.read_text() == "2\n2\n1\n1\n"
    assert left_over(repository) == []
    assert len(perun("status", "--json", cwd=repository.path).json["pending"]) == 4


def test_a_linked_working_tree(perun, project, record, tmp_path, configure) -> None:
    configure("profiles: {register_after_run: true}\n")
    linked = tmp_path / "linked"
    project.git("worktree", "add", "-q", "-b", "other", str(linked), "HEAD~1")
    perun("run", "-c", "matrix", cwd=linked)
    places = [line.split()[0] for line in record.read_text().splitlines()]
    assert places[0] == str(linked)
    assert places[1].startswith(f"{project.path}/.perun/tmp/worktree-")
    assert not (linked / ".perun").exists()
    assert len(perun("status", "--json", cwd=linked).json["registered"]) == 1
    assert list((project.path / ".perun/tmp").iterdir()) == []


def test_left_overs_of_dead_runs_are_removed(perun, project, configure, record) -> None:
    configure()
    marked = [sys.executable, "-c", "from perun.core.atomic import process_mark; print(process_mark())"]
    dead = subprocess.run(marked, capture_output=True, text=True, check=True).stdout.strip()
    mark = process_mark()
    tmp = project.path / ".perun/tmp"
    project.git("worktree", "add", "-q", "--detach", str(tmp / f"worktree-{dead}"), "HEAD")
    (tmp / f"worktree-4194305-{system()}/not a worktree").mkdir(parents=True)
    (tmp / f"worktree-{dead}-link").symlink_to("nowhere")
    (tmp / f"collect-{dead}-abc").mkdir()
    (tmp / f"collect-{dead}-abc/stderr").touch()
    (tmp / f"collect-{mark}-abc").mkdir()
    alive = tmp / f"worktree-{mark}"
    project.git("worktree", "add", "-q", "--detach", str(alive), "HEAD")
    (tmp / "worktrees.txt").touch()
    perun("status")
    assert len(list(tmp.iterdir())) == 7  # whoever only reads removes nothing
    perun("run", "matrix")
    assert sorted(path.name for path in tmp.iterdir()) == [f"collect-{mark}-abc", alive.name, "worktrees.txt"]
    assert project.git("worktree", "list").splitlines()[1].startswith(str(alive))


@pytest.fixture
def container() -> list[str]:
    """What runs a command in a PID namespace of its own, where processes have the numbers of others here."""
    words = ["unshare", "--pid", "--fork", "--mount-proc"]
    if not shutil.which("unshare") or subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("PID namespaces cannot be made here")
    return words


@pytest.mark.parametrize("first", ["container", "host"])
def test_a_run_of_another_pid_namespace_keeps_its_working_copy(
    perun, project, command, environment, record, container, first
) -> None:
    go = record.with_name("go")
    os.mkfifo(go)
    collect = ["collect", "-m", "HEAD~1", "-w", "x", "-c"]
    waits = f"sh -c 'echo $PWD >>{record}; read line <{go}; test -e file.txt'"
    here, there = [*container, *command], command
    if first == "host":
        here, there = there, here
    running = subprocess.Popen(
        [*here, *collect, waits, "time", "-r", "1", "-w", "0"],
        cwd=project.path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    while not record.exists() or not record.read_text().endswith("\n"):
        assert running.poll() is None, running.communicate()
        time.sleep(0.01)
    copy = Path(record.read_text().strip())
    assert copy.parent == project.path / ".perun/tmp"
    before = sorted(path.name for path in copy.parent.iterdir())
    other = subprocess.run(
        [*there, *collect, "true", "time", "-r", "1", "-w", "0"],
        cwd=project.path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert other.returncode == 0, other.stderr
    assert sorted(path.name for path in copy.parent.iterdir()) == before
    perun("temp", "delete", ".")
    assert (copy / "file.txt").exists()
    go.write_text("on\n")
    told = running.communicate()[0]
    assert running.returncode == 0, told
    assert list(copy.parent.iterdir()) == []


@pytest.mark.each_value("phase", "number code")
@pytest.mark.parametrize("phase", ["pre_run", "measured"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_interruption(perun, dirty, record, configure, start, phase, number, code) -> None:
    """The version before is kept; no process, working copy or word of complaint is left."""
    record.with_name("lasting").write_text(LASTING)
    # The newest version is quick, the next one lasts.
    script = f"sh -c 'grep -q 3 file.txt || exec sh {record.with_name('lasting')}'"
    if phase == "pre_run":
        configure(f"execute: {{pre_run: [{script!r}]}}\n", cmds="true")
    else:
        configure(cmds=script)
    before = picture(dirty.path)
    run = start("run", "-c", "matrix", "--quiet-env")
    wait_for(lambda: record.exists() and record.read_text().endswith("\n"))
    processes = [int(word) for word in record.read_text().split()]
    assert all(map(is_running, processes))
    run.send_signal(number)
    out, err = run.communicate(timeout=120)
    assert run.returncode == code
    told, _, left = err.partition(b"\n")
    assert told == b"warning: uncommitted changes are not measured; --force-dirty (-f) measures them too"
    assert left.endswith(b" jobs are left; run them with: perun run matrix --resume\n") or not left
    assert out.count(b"stored") == 1
    wait_for(lambda: not any(map(is_running, processes)))
    assert picture(dirty.path) == before
    assert left_over(dirty) == []
    assert len(perun("status", "--json").json["pending"]) == 1


@pytest.mark.slow  # tests/faults kills at each call, and above it is interrupted in each phase
@pytest.mark.parametrize("times", [2, 100])
def test_killed_at_random_moments(perun, dirty, record, configure, start, times) -> None:
    configure("profiles: {register_after_run: true}\n")
    before = picture(dirty.path)
    started = time.monotonic()
    start("run", "-c", "matrix").communicate()
    whole = time.monotonic() - started
    chance = random.Random(times)
    for number in range(times):
        run = start("run", "-c", "matrix")
        time.sleep(chance.uniform(0.2, 1.0) * whole)
        run.kill()
        run.communicate()
        settle(dirty.path)
        now = {name: text for name, text in picture(dirty.path).items() if ".git/worktrees/" not in name}
        assert now == before
        if number % 5 == 0:
            assert perun("fsck", "--json").json["errors"] == 0
    perun("run", "-c", "matrix")
    assert picture(dirty.path) == before
    assert left_over(dirty) == []
    assert perun("fsck", "--json").json["errors"] == 0
    registered = perun("log", "--json").json["versions"]
    assert all(version["profiles"] for version in registered)
