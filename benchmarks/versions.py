"""Starting, the history, collecting and registering: Perun beside the released `perun-toolsuite` and git."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import repositories
from harness import Contestant, compete
from perun.store import Store
from perun.store.pending import link
from report import Place, Row

BARE_LOOP = """
import os, sys
for _ in range(int(sys.argv[1])):
    os.wait4(os.posix_spawn("/bin/true", ["true"], os.environ), 0)
"""


def _repository(place: Place, name: str, commits: int) -> Path:
    folder = place.folder / name
    repositories.history(folder, commits)
    subprocess.run([place.perun, "init", str(folder)], check=True, capture_output=True)
    return folder


def start(place: Place) -> Iterator[Row]:
    folder, theirs = _repository(place, "start", 2000), place.folder / "start-peer"
    repositories.register(folder, 500, every=4)
    shutil.copytree(folder, theirs)  # the peer leaves a file for each version it shows
    for arguments, limit in (
        (["--version"], 1 / 5),
        (["--help"], 1 / 5),
        (["--no-pager", "status"], 1 / 4),
        (["--no-pager", "log", "--short"], 1 / 4),
    ):
        result = compete(
            {
                "ours": Contestant([place.perun, *arguments], folder),
                "peer": Contestant([place.peer, *arguments], theirs),
            },
            place.rounds,
        )
        name = "perun " + " ".join(arguments).removeprefix("--no-pager ")
        yield Row(name, result["ours"].wall, result["peer"].wall, "0.28.3", limit)


def small(place: Place) -> Iterator[Row]:
    """CPU time in a small repository, beside the smallest program of Python."""
    folder = _repository(place, "start-small", 3)
    repositories.register(folder, 3, every=1)
    commands = {" ".join(words): [place.perun, *words] for words in (["status"], ["log", "--short"])}
    commands["bare"] = [sys.executable, "-c", "pass"]
    result = compete({name: Contestant(words, folder) for name, words in commands.items()}, place.rounds)
    bare = result.pop("bare").cpu
    for name, own in result.items():
        yield Row(f"perun {name}, 3 commits, CPU", own.cpu, bare, "python -c pass", 9, is_rival=False)


def history(place: Place) -> Iterator[Row]:
    folder, small = _repository(place, "history", 100_000), _repository(place, "start-up", 1)
    log = [place.perun, "--no-pager", "log", "--short"]
    result = compete(
        {
            "ours": Contestant(log, folder),
            "start": Contestant(log, small),
            "one": Contestant(["git", "log", "-1"], folder),
            "git": Contestant(["git", "log", "--oneline"], folder),
        },
        max(3, place.rounds // 3),
    )
    first = result["ours"].first_output - result["start"].first_output
    name = "log --short, 100,000 commits: "
    yield Row(
        name + "first line, beyond that of one commit", max(first, 0), result["one"].wall, "git log -1", 3
    )
    whole, git = result["ours"], result["git"]
    yield Row(name + "whole, wall", whole.wall, git.wall, "git log --oneline", 3)
    yield Row(name + "whole, CPU", whole.cpu, git.cpu, "git log --oneline", 3)


def collect(place: Place) -> Iterator[Row]:
    folder = _repository(place, "collect", 1)
    once_each = ["collect", "-c", "true", "time", "--warmup", "1", "--repeat", "1"]
    result = compete(
        {
            "ours": Contestant([place.perun, *once_each], folder),
            "peer": Contestant([place.peer, *once_each], folder),
        },
        max(3, place.rounds // 2),
    )
    yield Row("collect -c true time, one run", result["ours"].wall, result["peer"].wall, "0.28.3", 1 / 10)
    runs = 500
    many = ["collect", "-c", "true", "time", "--warmup", "0", "--repeat"]
    result = compete(
        {
            "few": Contestant([place.perun, *many, "1"], folder),
            "many": Contestant([place.perun, *many, str(runs + 1)], folder),
            "bare few": Contestant([sys.executable, "-c", BARE_LOOP, "1"], folder),
            "bare many": Contestant([sys.executable, "-c", BARE_LOOP, str(runs + 1)], folder),
        },
        max(3, place.rounds // 3),
    )
    ours = (result["many"].wall - result["few"].wall) / runs
    bare = (result["bare many"].wall - result["bare few"].wall) / runs
    yield Row("time collector, one run more", ours, bare, "posix_spawn + wait4", (bare + 0.001) / bare)


def add(place: Place) -> Iterator[Row]:
    ours, peer = _repository(place, "add", 1), place.folder / "add-peer"
    shutil.copytree(ours, peer)

    def refill(folder: Path) -> Callable[[], None]:
        contents = list(repositories.pending(folder, 100))

        def prepare() -> None:
            shutil.rmtree(folder / ".perun" / "objects")
            (folder / ".perun" / "objects").mkdir()
            for path, content in contents:
                path.write_bytes(content)

        return prepare

    result = compete(
        {
            "ours": Contestant([place.perun, "add", "0@p-99@p"], ours, refill(ours)),
            "peer": Contestant([place.peer, "add", "0@p-99@p"], peer, refill(peer)),
        },
        max(3, place.rounds // 3),
    )
    yield Row("add of 100 profiles", result["ours"].wall, result["peer"].wall, "0.28.3", 1 / 4)


def index(place: Place) -> Iterator[Row]:
    folder = _repository(place, "index", 1)
    head = repositories.checksums(folder)[0]
    profile = repositories.time_profile(0.1)
    items = [(profile, f"time-{number}.perf", number) for number in range(10_000)]
    link(Store(folder / ".perun"), head, items)
    status = Contestant([place.perun, "status", "--json"], folder)
    result = compete({"ours": status}, max(3, place.rounds // 3))
    yield Row("status --json of 10,000 profiles, CPU", result["ours"].cpu, 0.2, "limit", 1)
    start = os.times()
    count = len(Store(folder / ".perun").indexes.read(head))
    spent = os.times()
    assert count == 10_000
    cpu = spent.user + spent.system - start.user - start.system
    yield Row("listing an index of 10,000 entries, CPU", cpu, 0.2, "limit", 1)
