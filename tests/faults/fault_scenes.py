"""What is interrupted: commands, each with a project in which it has something to do, and what is there."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fault_injection import Ended, Server

from perun.profile.factory import Profile
from perun.profile.format.json import dumps_pending
from perun.store import Store

Facts = dict[tuple[str, ...], Any]
"""What is stored, in parts that are each wholly old or wholly new whatever happens."""
DATE = "2024-03-04T09:00:00+00:00"
LEFT_OVER = ("left over by a process that was ended", "no index names", "of its checksums cannot be read")
"""What `perun fsck` may say after a fault: that something is of no use any more."""
OUT_OF_STEP = ("out of step", "files that are gone")
"""What it may say beside that of an index of files; it names the command that repairs it."""


class Project:
    """A project on the disk, and perun in it."""

    def __init__(self, path: Path, environ: Mapping[str, str], server: Server) -> None:
        self.path = path
        self.environ = {**environ, "TZ": "UTC", "TERM": "dumb"}
        self.server = server
        self.store_folder = path / ".perun"
        path.mkdir()

    def git(self, *arguments: str) -> str:
        """What git says."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env={**os.environ, **self.environ}, capture_output=True,
            text=True
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def perun(self, *arguments: str) -> Ended:
        """Run perun without any fault; it must succeed."""
        ended = self.server.run(self.path, arguments, self.environ)
        assert ended.code == 0, (arguments, ended)
        return ended

    def commit(self, text: str) -> str:
        """Commit a change of the one file."""
        (self.path / "file.txt").write_text(text)
        self.git("add", "file.txt")
        self.git("commit", "--quiet", "--message", text.strip())
        return self.git("rev-parse", "HEAD")

    def profile(self, name: str, amount: float, origin: str = "") -> None:
        """Write a pending profile of HEAD, or of `origin`."""
        profile = Profile({
            "header": {"type": "time", "cmd": "./app", "args": "", "workload": "w", "units": {"time": "s"}},
            "collector_info": {"name": "time", "params": {}},
            "postprocessors": [],
            "origin": origin or self.git("rev-parse", "HEAD"),
        })  # fmt: skip
        resources = [
            {"amount": amount, "order": n, "uid": "main", "type": "time", "subtype": "real"} for n in range(3)
        ]
        profile.update_resources(resources)
        (self.store_folder / "jobs" / name).write_bytes(dumps_pending(profile))


def _git_project(project: Project) -> None:
    project.git("init", "--quiet", "--initial-branch=main")
    for text in ("one\n", "two\n"):
        project.commit(text)
    project.perun("init")
    # Uncommitted changes of the user, which nothing may touch.
    (project.path / "untracked.txt").write_text("untracked\n")


def _with_profiles(project: Project) -> None:
    _git_project(project)
    for name in ("r0.perf", "r1.perf"):
        project.profile(name, 1.0 + int(name[1]))
    project.perun("add", "r0.perf", "r1.perf")
    for name in ("p0.perf", "p1.perf"):
        project.profile(name, 3.0 + int(name[1]))


def _with_two_versions(project: Project) -> None:
    _git_project(project)
    old = project.git("rev-parse", "HEAD~1")
    project.profile("old.perf", 1.0, old)
    project.perun("add", "--minor", old, "old.perf")
    project.profile("new.perf", 5.0)
    project.perun("add", "new.perf")
    project.profile("p0.perf", 3.0)


def _registering(project: Project) -> None:
    _with_profiles(project)
    project.perun("config", "set", "profiles.register_after_run", "true")
    project.perun("config", "set", "format.output_profile_template", "measured-%workload%")
    project.perun("config", "set", "execute.pre_run", "[touch built]")


def _with_matrix(project: Project) -> None:
    _registering(project)
    for key, value in (("cmds", "[true]"), ("workloads", "[a, b]"), ("collectors", _TIME_ONCE)):
        project.perun("config", "set", key, value)


def _with_stats(project: Project) -> None:
    _with_profiles(project)
    stats = Store(project.store_folder).stats
    for minor in (project.git("rev-parse", "HEAD"), project.git("rev-parse", "HEAD~1")):
        stats.add(minor, "2024-03-04 09:00:00", "calls", {"main": {"calls": 5}})
    stats.add(minor, "2024-03-04 09:00:00", "others", {"main": {"calls": 6}})


def _with_temporary_files(project: Project) -> None:
    _with_profiles(project)
    temp = Store(project.store_folder).temp
    temp.write("kept/one", {"a": 1}, json_=True, protect=True)
    temp.write("done/two", "text", compress=True)
    temp.write("done/three", "text")


def _with_hooks(project: Project) -> None:
    _git_project(project)
    folder = project.path / ".git" / "hooks"
    folder.mkdir(exist_ok=True)
    for name, text in (("post-commit", "#!/bin/sh\necho the user\n"), ("pre-push", "#!/bin/cat\nthe user\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def _with_installed_hooks(project: Project) -> None:
    _with_hooks(project)
    project.perun("hooks", "install", "--on", "post-commit,pre-push")


def _interrupted(project: Project) -> None:
    _with_profiles(project)
    (project.path / "file.txt").write_text("edited\n")
    killer = "sh -c 'kill -9 $(ps -o ppid= -p $$)'"
    ended = project.server.run(
        project.path,
        ["run", "--in-place", "-m", "HEAD~1", "job", "-b", killer, "-w", "a", *_JOB_ONCE],
        project.environ,
    )
    assert ended.code == -9, ended
    assert (project.store_folder / "in-place.json").exists()
    assert (project.path / "file.txt").read_text() == "one\n"


def _under_tagit(project: Project) -> None:
    (project.path / "file.txt").write_text("one\n")
    project.perun("init", "--vcs-type", "tagit")
    project.perun("tag", "v1")
    (project.path / "folder").mkdir()
    (project.path / "folder" / "second.txt").write_text("second\n")
    (project.path / "file.txt").write_text("two\n")


_TIME_ONCE = "[{name: time, params: {warmup: 0, repeat: 1}}]"
_ONE_PAIR = ("-c", "true", "-w", "a", "--always", "--max-pairs", "1", "--metric", "wall")
_JOB_ONCE = ("-c", "time", "-cp", "time", "{warmup: 0, repeat: 1}")


class Scene(NamedTuple):
    """A command and its project.

    `removed`: names of profiles that it takes away. `gone`: it may say that it is done already (exit code 6)
    when it is typed again after its effect was whole. `tree`: it gives the user's files back.
    `allowed`: what fsck may say. `modules`: what it imports.
    """

    prepare: Callable[[Project], None]
    arguments: tuple[str, ...]
    removed: frozenset[str] = frozenset()
    gone: bool = False
    gives_back: bool = False
    measures: bool = False
    allowed: tuple[str, ...] = LEFT_OVER


SCENES: Mapping[str, Scene] = {
    "add": Scene(_with_profiles, ("add", "p0.perf", "p1.perf"), gone=True),
    "rm registered": Scene(
        _with_profiles, ("rm", "r0.perf", "r1.perf"), frozenset({"r0.perf", "r1.perf"}), gone=True
    ),
    "rm pending": Scene(_with_profiles, ("rm", "p0.perf"), frozenset({"p0.perf"}), gone=True),
    "check": Scene(_with_two_versions, ("check", "head")),
    "run": Scene(
        _registering, ("run", "-m", "HEAD~1", "job", "-b", "true", "-w", "a", *_JOB_ONCE), measures=True
    ),
    "run matrix": Scene(_with_matrix, ("run", "-m", "HEAD~1", "matrix"), measures=True),
    "compare": Scene(_registering, ("compare", "HEAD~1", "HEAD", *_ONE_PAIR), measures=True),
    "config set": Scene(_with_profiles, ("config", "set", "format.sort_profiles_by", "source")),
    "tag": Scene(_under_tagit, ("tag", "v2"), gone=True),
    "hooks install": Scene(_with_hooks, ("hooks", "install", "--on", "post-commit,pre-push")),
    "hooks uninstall": Scene(_with_installed_hooks, ("hooks", "uninstall")),
    "stats delete": Scene(
        _with_stats, ("stats", "delete", "file", "calls"), gone=True, allowed=LEFT_OVER + OUT_OF_STEP
    ),
    "stats sync": Scene(_with_stats, ("stats", "sync"), allowed=LEFT_OVER + OUT_OF_STEP),
    "temp delete": Scene(
        _with_temporary_files, ("temp", "delete", "-f", "."), gone=True, allowed=LEFT_OVER + OUT_OF_STEP
    ),
    "temp sync": Scene(_with_temporary_files, ("temp", "sync"), allowed=LEFT_OVER + OUT_OF_STEP),
    "recover": Scene(_interrupted, ("recover",), gives_back=True),
}


# -- what there is ------------------------------------------------------------------------------------------


def facts(project: Project) -> Facts:
    """What the store holds; reading it finds what is damaged."""
    store, found = Store(project.store_folder), Facts()
    for minor in store.indexes.minors():
        entries = store.indexes.read(minor)
        for entry in entries:
            assert store.objects.get(entry.checksum)["resources"]
        # That of a profile measured anew differs from time to time, as does when that was.
        found["index", minor] = frozenset(entry.path for entry in entries)
    for info in store.pending.list():
        found["pending", info.source] = len(store.pending.load(info.source)["resources"]) > 0
    for minor in store.changes.minors():
        found["changes", minor] = store.changes.path(minor).read_bytes()
    for minor in store.stats.found():
        for name in store.stats.names(minor):
            found["stats", minor, name] = json.dumps(store.stats.get(minor, name))
    for file in store.temp.files():
        if not file.path.startswith(("worktree-", "collect-", ".tmp-")):
            found["temp", file.path] = repr(store.temp.read(file.path))
    found["settings",] = (project.store_folder / "local.yml").read_bytes()
    found["interrupted",] = (project.store_folder / "in-place.json").exists()
    hooks = project.path / ".git" / "hooks"
    for hook in sorted(hooks.iterdir()) if hooks.is_dir() else ():
        if not hook.name.startswith(".tmp-"):
            found["hook", hook.name] = (hook.read_bytes(), os.access(hook, os.X_OK))
    snapshots = project.path / ".tagit"
    if (snapshots / "refs" / "heads" / "main").exists():
        lines = _git(snapshots, "log", "--reverse", "--format=%H %s", "main").decode().splitlines()
        tags = dict(line.split(" ", 1) for line in lines)
        found["history",] = tuple(tags.values())
        for checksum, tag in tags.items():
            listed = _git(snapshots, "ls-tree", "-r", "-z", checksum).decode().split("\0")[:-1]
            entries = [entry.split("\t", 1) for entry in listed]
            found["snapshot", tag] = {
                path: _git(snapshots, "cat-file", "blob", described.split()[2]) for described, path in entries
            }
    return found


def _git(folder: Path, *arguments: str) -> bytes:
    argv = ["git", f"--git-dir={folder}", *arguments]
    return subprocess.run(argv, check=True, capture_output=True).stdout


def names(found: Facts) -> frozenset[str]:
    """The names of all profiles, pending and registered."""
    pending = {key[1] for key in found if key[0] == "pending"}
    return frozenset(pending.union(*(value for key, value in found.items() if key[0] == "index")))


def contents(found: Project) -> frozenset[str]:
    """Digests of what was measured, of all profiles that are pending or registered."""
    store, digests = Store(found.store_folder), set()
    registered = [
        store.objects.get(entry.checksum)
        for minor in store.indexes.minors()
        for entry in store.indexes.read(minor)
    ]
    for profile in (*registered, *(store.pending.load(info.source) for info in store.pending.list())):
        digests.add(hashlib.sha1(repr(sorted(profile["resources"].items())).encode()).hexdigest())
    return frozenset(digests)


def users_files(project: Project) -> dict[str, bytes]:
    """The user's files, branches and index: all that no command here may change."""
    return dict(_users_files(project.path))


_NOTES_OF_GIT = frozenset({"ORIG_HEAD", "COMMIT_EDITMSG", "AUTO_MERGE", "index"})


def _users_files(root: Path) -> Iterator[tuple[str, bytes]]:
    own = {"worktrees", "objects", "hooks", "logs"}
    for folder, below, files in os.walk(root):
        if folder == str(root):
            below[:] = [one for one in below if one not in (".perun", ".tagit")]
        if folder == str(root / ".git"):
            below[:] = [one for one in below if one not in own]
            # What git notes for itself of the last thing it did.
            files = [one for one in files if one not in _NOTES_OF_GIT and not _is_lock(one)]
        if folder == str(root / ".git" / "refs"):
            # A half-written file that `recover` finds goes to an entry of its own, which stays.
            files = [one for one in files if one != "stash"]
        for name in files:
            path = Path(folder, name)
            if _is_lock(name):
                continue
            content = os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes()
            yield str(path.relative_to(root)), content


def _is_lock(name: str) -> bool:
    return name.endswith(".lock")


def index_of_git(project: Project) -> str:
    """What git has staged, whatever its notes on times."""
    if not (project.path / ".git").exists():
        return ""
    return project.git("--no-optional-locks", "ls-files", "--stage")


def locks_of_git(project: Project) -> list[Path]:
    """The locks that a killed git leaves; it asks the user to remove them, and so does Perun."""
    return [*(project.path / ".git").rglob("*.lock")]


def left_by_runs(project: Project) -> frozenset[str]:
    """Working copies and scratch folders of runs in `.perun/tmp`, unfinished builds, and what git notes."""
    found = [one for one in project.path.glob(".perun/tmp/*-*") if one.is_dir()]
    found += [one for one in project.path.glob(".perun/cache/builds/*") if not (one / "manifest").exists()]
    return frozenset(one.name for one in (*found, *project.path.glob(".git/worktrees/*")))


def run_hooks(project: Project, scratch: Path) -> dict[str, str]:
    """What the hooks that git would run write, with Perun itself left out of them."""
    said = {}
    hooks = project.path / ".git" / "hooks"
    for hook in sorted(hooks.iterdir()):
        if not hook.name.startswith("."):
            copy = scratch / hook.name
            copy.write_bytes(hook.read_bytes().replace(os.fsencode(sys.executable), b"/nowhere/python"))
            copy.chmod(hook.stat().st_mode)
    for name in ("post-commit", "pre-push"):
        if os.access(scratch / name, os.X_OK):
            done = subprocess.run([scratch / name], input="", capture_output=True, text=True)
            said[name] = done.stdout
    for copy in scratch.iterdir():
        copy.unlink()
    return said


def odd_findings(project: Project, allowed: tuple[str, ...]) -> list[str]:
    """What fsck finds beside left-overs, and a cache of lists that is made anew when it is asked for."""
    allowed = (*allowed, "lists cannot show what was measured")
    return [
        f"{one.severity}: {one.path}: {one.message}"
        for one in Store(project.store_folder).fsck()
        if not any(text in one.message for text in allowed)
    ]
