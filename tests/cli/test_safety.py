"""Nothing is lost or half written: many processes, kills, a full disk, and commands that fail."""

from __future__ import annotations

import itertools
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from perun.store import Store
from perun.store.cache import FILE

UNTIL_STEP = """
import os, signal, sys
steps, folder = int(sys.argv.pop(1)), os.path.join(os.path.realpath(sys.argv.pop(1)), "")
CHANGES = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"}
WRITING = os.O_WRONLY | os.O_RDWR

def hook(event, arguments):
    global steps
    if event != "open" and event not in CHANGES or event == "open" and not (arguments[2] or 0) & WRITING:
        return
    path = arguments[0]
    below = os.path.realpath(os.fsdecode(path)).removeprefix(folder) if not isinstance(path, int) else ""
    if event == "open" and below.startswith(("objects/", "jobs/", "cache/", "local.yml")):
        names = below.split("/")
        if names[-1] != "measured.sqlite" and not any(name.startswith(".tmp-") for name in names):
            os.write(2, f"{below} is written in its place".encode())
            os._exit(99)
    if not os.path.isabs(below):
        steps -= 1
        if steps < 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(hook)
from perun.__main__ import main
main()
"""
"""`perun` that is killed before it changes a file below a folder, after as many changes as are given.

It ends with 99 where a file of the store, other than a database, is written in its place instead of being
replaced as a whole.
"""


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Time and content of every file, and the time of every folder, which tells what came and went."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [folder, *folder.rglob("*")]
    }


class State(NamedTuple):
    """The entries of all indexes, each with its version, and the names of the pending profiles."""

    registered: frozenset[tuple[str, Any]]
    pending: frozenset[str]

    @classmethod
    def of(cls, project: Any) -> State:
        """What is there now; every registered profile is read."""
        store = Store(project.path / ".perun")
        registered = {
            (minor, entry) for minor in store.indexes.minors() for entry in store.indexes.read(minor)
        }
        for _, entry in registered:
            assert store.objects.get(entry.checksum)["resources"]
        return cls(frozenset(registered), frozenset(info.source for info in store.pending.list()))

    @property
    def known(self) -> set[str]:
        """The names of all profiles, wherever they are."""
        return {entry.path for _, entry in self.registered} | self.pending

    def assert_kept(self, before: State, removed: Sequence[str] = ()) -> None:
        """All that was there `before` still is, but for profiles named `removed`, which may be gone."""
        lost = {entry.path for _, entry in before.registered - self.registered}
        assert lost <= set(removed)
        assert before.known - self.known <= set(removed)


@pytest.fixture
def many(write_profile: Callable[..., Path]) -> Callable[[Sequence[str]], list[str]]:
    """Make pending profiles of these names, no two of equal content."""
    numbers = itertools.count(1)

    def make(names: Sequence[str]) -> list[str]:
        first = write_profile("first.perf")
        regions = json.loads(first.read_bytes())
        for name in names:
            number = next(numbers)
            for columns in regions["resources"].values():
                columns["amount"] = [float(number)] * len(columns["amount"])
            (first.parent / name).write_text(json.dumps(regions))
        first.unlink()
        return list(names)

    return make


@pytest.fixture
def start(start, project) -> Callable[..., subprocess.Popen[bytes]]:
    """Start the command in the background, in a session of its own."""
    return partial(start, cwd=project.path, start_new_session=True)


def at_once(
    start: Callable[..., subprocess.Popen[bytes]], batches: Sequence[Sequence[Sequence[str]]]
) -> None:
    """Run each of `batches`, a list of commands, beside the others, and its commands one after the other."""
    problems: list[str] = []

    def run(commands: Sequence[Sequence[str]]) -> None:
        for arguments in commands:
            process = start(*arguments)
            _, err = process.communicate()
            if process.returncode or b"Traceback" in err:
                problems.append(f"{arguments[0]} ended with {process.returncode}: {err.decode()}")

    threads = [threading.Thread(target=run, args=(commands,)) for commands in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, "\n".join(problems)


def test_five_processes_lose_nothing(perun: Callable[..., Any], start: Any, project: Any, many: Any) -> None:
    workers = [many([f"w{worker}-{number:02}.perf" for number in range(10)]) for worker in range(4)]
    names = sorted(itertools.chain(*workers))
    adding = [[["add", *mine]] for mine in workers]
    reading = [["log", "--short"], ["fsck"], ["status"]]
    at_once(start, [*adding, reading])
    found = perun("status", "--json").json
    assert sorted(one["name"] for one in found["registered"]) == names
    assert found["pending"] == []
    assert len({one["checksum"] for one in found["registered"]}) == 40
    assert perun("fsck", "--json").json == {"schema": "perun.fsck/1", "errors": 0, "findings": []}
    assert perun("log", "--short").lines[1].split()[1] == "(40|0|0|40"
    objects = Store(project.path / ".perun").objects
    amounts = [
        amount
        for one in found["registered"]
        for columns in objects.get(one["checksum"])["resources"].values()
        for amount in set(columns["amount"])
    ]
    assert sorted(amounts) == list(range(1, 41))


def test_adding_and_removing_at_once(perun: Callable[..., Any], start: Any, project: Any, many: Any) -> None:
    old = [many([f"old{worker}-{number}.perf" for number in range(10)]) for worker in range(3)]
    perun("add", *itertools.chain(*old))
    new = [many([f"new{worker}-{number}.perf" for number in range(10)]) for worker in range(3)]
    at_once(start, [[["rm", *mine[:9]]] for mine in old] + [[["add", *mine]] for mine in new])
    expected = {mine[9] for mine in old} | set(itertools.chain(*new))
    assert {entry.path for _, entry in State.of(project).registered} == expected
    assert perun("fsck", "--json").json["errors"] == 0


CUT_DOWN: Mapping[str, tuple[str, ...]] = {
    "add": ("add", "--to-origin", "0@p-5@p"),
    "rm": ("rm", "0@i-1@i", "0@p"),
    "collect": ("collect", "-c", "true", "time", "--repeat", "1", "--warmup", "0"),
    "run": ("run", "-m", "HEAD~1", "job", "-b", "true", "-w", "a", "-w", "b", "-c", "time"),
}
"""What is killed. `collect` measures where the user is, `run` in a copy; both register what they measure."""


def kill_again_and_again(perun: Callable[..., Any], start: Any, project: Any, many: Any, times: int) -> None:
    """Kill commands at random moments, this many times before they end, and look at the store after each."""
    rng = random.Random(20240304)
    perun("config", "set", "profiles.register_after_run", "true")
    numbers = itertools.count()

    def stock_up() -> None:
        perun("add", *many([f"p{next(numbers)}.perf" for _ in range(4)]))
        many([f"p{next(numbers)}.perf" for _ in range(6)])

    longest = {}
    for name, arguments in CUT_DOWN.items():
        stock_up()
        begun = time.monotonic()
        assert start(*arguments).communicate() is not None
        longest[name] = time.monotonic() - begun
    commands = itertools.cycle(CUT_DOWN)
    while times:
        name = next(commands)
        if name == "add":
            stock_up()
        before = State.of(project)
        tags = perun("status", "--json").json if name == "rm" else {}
        removed = [one["name"] for one in (*tags.get("registered", [])[:2], *tags.get("pending", [])[:1])]
        process = start(*CUT_DOWN[name])
        time.sleep(rng.uniform(0, longest[name]))
        process.kill()
        process.communicate()
        if process.returncode == -signal.SIGKILL:
            times -= 1
        else:
            longest[name] /= 2  # it was measured while the machine had more to do
        found = perun("fsck", "--json").json
        assert found["errors"] == 0, found
        assert {one["severity"] for one in found["findings"]} <= {"info"}, found
        State.of(project).assert_kept(before, removed)
    before = State.of(project)
    perun("add", *before.pending, "--to-origin")  # what was left over is in nobody's way
    after = State.of(project)
    after.assert_kept(before)
    assert not after.pending


@pytest.mark.slow
def test_killed_two_hundred_times(perun: Callable[..., Any], start: Any, project: Any, many: Any) -> None:
    kill_again_and_again(perun, start, project, many, 200)


@pytest.mark.parametrize("name", ["add", "rm", "collect"])
@pytest.mark.parametrize(
    "every", [pytest.param(1, id="each", marks=pytest.mark.slow), pytest.param(16, id="some")]
)
def test_killed_before_changes_of_files(perun, start, project, many, tmp_path, name, every) -> None:
    perun("config", "set", "profiles.register_after_run", "true")
    perun("add", *many(["r0.perf", "r1.perf", "r2.perf"]))
    many(["p0.perf", "p1.perf"])
    arguments = {"add": ("add", "0@p-1@p")}.get(name, CUT_DOWN[name])
    removed = ("r0.perf", "r1.perf", "p0.perf") if name == "rm" else ()
    folder, pristine = project.path / ".perun", tmp_path / "pristine"
    shutil.copytree(folder, pristine)
    before = State.of(project)
    for steps in range(0, 200, every):
        program = [sys.executable, "-P", "-c", UNTIL_STEP, str(steps), str(folder)]
        process = start(*arguments, program=program)
        _, err = process.communicate()
        after = State.of(project)
        after.assert_kept(before, removed)
        assert {finding.severity for finding in Store(folder).fsck()} <= {"info"}
        if process.returncode != -signal.SIGKILL:
            break
        shutil.rmtree(folder)
        shutil.copytree(pristine, folder)
    assert process.returncode == 0, err
    assert steps > 10
    assert (after.known == before.known - set(removed)) if name != "collect" else (after.known > before.known)


@pytest.mark.parametrize(
    "space", [*(pytest.param(space, marks=pytest.mark.slow) for space in (0, 400)), 250, 10_000]
)
def test_a_full_disk(perun: Callable[..., Any], start: Any, project: Any, many: Any, space: int) -> None:
    """No file may become larger than `space` bytes; a full disk ends in the same way."""
    perun("add", *many([f"r{number}.perf" for number in range(3)]))
    many(["p0.perf", "p1.perf"])
    before = State.of(project)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (space, space))

    process = start("add", "0@p-1@p", preexec_fn=limit)
    _, err = process.communicate()
    assert process.returncode == (3 if space < 500 else 0), err
    if process.returncode:
        assert err.startswith(f"error: cannot read or write {project.path}/.perun/objects/".encode())
        assert b"File too large" in err
    after = State.of(project)
    after.assert_kept(before)
    assert (after == before) == bool(process.returncode)
    if after.pending:
        perun("add", *after.pending)
    assert {entry.path for _, entry in State.of(project).registered} == before.known
    assert perun("fsck", "--json").json["errors"] == 0


def test_a_full_disk_can_be_cleared(perun: Callable[..., Any], start: Any, project: Any, many: Any) -> None:
    many(["p0.perf", "p1.perf"])
    full = start("rm", "p0.perf", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert full.communicate()[1] == b""
    assert full.returncode == 0
    assert State.of(project).pending == {"p1.perf"}


def test_readers_write_nothing(perun, project, many, write_profile) -> None:
    for minor in ("HEAD~1", "HEAD"):
        write_profile("r0.perf", origin=minor)
        perun("add", "-m", minor, "r0.perf")
    perun("check", "head")
    write_profile("p0.perf")
    (project.path / ".perun" / "jobs" / "damaged.perf").write_text("{")
    # Without the caches a reader could be tempted to make them.
    shutil.rmtree(project.path / ".perun" / "cache")
    (project.path / ".perun" / "jobs" / ".index").unlink()
    # Only what they had to read profiles for may be noted, once.
    perun("status")
    perun("log", "--json")
    assert [path.name for path in (project.path / ".perun" / "cache").iterdir()] == [FILE]
    assert not (project.path / ".perun" / "jobs" / ".index").exists()
    before = snapshot(project.path)
    for line in (
        "status",
        "status --short",
        "status --json",
        "log",
        "log --short",
        "log --json",
        "show 0@i raw",
        "show 0@p tableof resources",
        "show -m HEAD~1 r0.perf tableof resources",
        "check profiles 0@i 0@p",
        "config get format.status",
        "fsck --json",
    ):
        perun(*line.split(), check=not line.startswith("fsck"))
        assert snapshot(project.path) == before, line


def test_a_damaged_object_is_stored_anew(perun, project, write_profile) -> None:
    path = write_profile("a.perf")
    profile = path.read_bytes()
    perun("add", "a.perf")
    (entry,) = (entry for _, entry in State.of(project).registered)
    stored = project.path / ".perun" / "objects" / entry.checksum[:2] / entry.checksum[2:]
    stored.write_bytes(stored.read_bytes()[:-10])
    perun("fsck", code=10)
    # The file of the profile is removed by `add`, so that the object must be whole by then.
    path.with_name("b.perf").write_bytes(profile)
    perun("add", "b.perf")
    assert perun("fsck").code == 0
    assert len(State.of(project).registered) == 2


@pytest.mark.parametrize("room", [200 << 10, 1 << 20])
def test_the_runtime_of_complexity_on_a_full_disk(perun, project, small_disk, room) -> None:
    """There is room to compile the program, and none for what it records."""
    project.write({"prog.c": "void work(void) {}\nint main(void) { work(); return 0; }\n"})
    scratch = project.path / ".perun" / "tmp"
    small_disk(scratch, 16)
    disk = os.statvfs(scratch)
    filler = scratch / "filler"
    filler.write_bytes(bytes(disk.f_bfree * disk.f_frsize - room))
    collect = ("collect", "-c", "./prog", "complexity", "-f", "prog.c")
    outcome = perun(*collect, check=False)
    assert outcome.code == 3 and list(scratch.iterdir()) == [filler]
    assert f"error: cannot read or write {scratch}/collect-" in outcome.err
    assert "/calls: No space left on device\n" in outcome.err
    filler.unlink()
    assert perun(*collect).out.startswith("stored complexity-prog-")


# -- commands that fail --------------------------------------------------------------------------------------


@pytest.fixture
def store(project):
    return Store(project.path / ".perun")


@pytest.mark.parametrize("what", [("file", "calls"), ("minor", "HEAD"), ("all",)])
def test_statistics_stay_where_their_index_is_damaged(perun, project, store, what):
    store.stats.add(project.head, "2024-03-04 09:02:00", "calls", {"a": {"b": 1}})
    index = store.stats.root / ".index"
    index.write_bytes(b"x")
    perun("stats", "delete", *what, code=6, err="perun stats sync")
    assert store.stats.names(project.head) == ["calls"]
    perun("stats", "sync")
    perun("stats", "delete", *what)
    assert store.stats.names(project.head) == []


def test_nothing_is_registered_where_one_index_is_damaged(perun, project, store, write_profile):
    write_profile("a.perf")
    write_profile("b.perf", origin="HEAD~1")
    old = store.indexes.path(project.git("rev-parse", "HEAD~1"))
    old.parent.mkdir(exist_ok=True)
    old.write_bytes(b"pidx")
    perun("add", "--to-origin", "0@p-1@p", code=6)
    assert store.indexes.read(project.head) == []
    assert len(store.pending.list()) == 2


FULL = """\
import os, runpy, sys
replace, index = os.replace, sys.argv[1]
def full(source, target):
    if str(target) in (index, os.path.dirname(index)):
        raise OSError(28, "No space left on device", str(target))
    replace(source, target)
os.replace = full
sys.argv = ["perun", *sys.argv[2:]]
runpy.run_module("perun", run_name="__main__")
"""


@pytest.fixture
def full_disk(command, store):
    """How to call a Perun that finds the disk full when it names the index of the version, or its folder."""
    return lambda version: [command[0], "-P", "-c", FULL, str(store.indexes.path(version))]


def test_what_was_registered_is_said(perun, project, store, write_profile, full_disk):
    write_profile("a.perf")
    write_profile("b.perf", origin="HEAD~1")
    version = project.git("rev-parse", "HEAD~1")
    failed = perun("add", "--to-origin", "0@p-1@p", program=full_disk(version), check=False)
    assert failed.code == 3
    assert f"note: a.perf was registered in {project.head[:10]} before that" in failed.err
    assert [one.path for one in store.indexes.read(project.head)] == ["a.perf"]
    assert len(store.pending.list()) == 2
    perun("add", "--to-origin", "0@p-1@p")
    assert [one.path for one in store.indexes.read(version)] == ["b.perf"]
    assert store.pending.list() == []


def test_a_profile_that_cannot_be_registered_is_kept_and_named(perun, project, store):
    (project.path / ".perun/local.yml").write_text(
        "vcs: {type: git, url: ..}\nprofiles: {register_after_run: true}\n"
    )
    index = store.indexes.path(project.head)
    index.parent.mkdir(exist_ok=True)
    index.write_bytes(b"pidx")
    failed = perun("collect", "-c", "true", "time", "-r", "1", "-w", "0", code=6)
    [info] = store.pending.list()
    assert f"stored, but not registered: {info.realpath}" in failed.err


def test_what_was_removed_is_said(perun, project, store, write_profile, full_disk):
    write_profile("a.perf")
    perun("add", "0@p")
    write_profile("b.perf", origin="HEAD~1")
    perun("add", "-m", "HEAD~1", "0@p")
    version = project.git("rev-parse", "HEAD~1")
    failed = perun("rm", "0@i", "HEAD~1:0@i", program=full_disk(version), check=False)
    assert failed.code == 3
    assert f"note: a.perf was removed from {project.head[:10]} before that" in failed.err
    assert [one.path for one in store.indexes.read(version)] == ["b.perf"]
