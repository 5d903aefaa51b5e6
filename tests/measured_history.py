"""A git repository whose commits are measured, with known steps: for tests of what a history shows."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from perun.profile.factory import Profile
from perun.repository.init import init
from perun.repository.repository import Repository, open_repository
from perun.store.pending import link

START: Final = 1_700_000_000
HOUR: Final = 3600
SLOWER: Final = 24
"""The commit that doubles the time of the program, and what it takes of memory."""
RUNS: Final = 5
MACHINES: Final = ("Fast 3000", "Slow 100")


class Measured(NamedTuple):
    """The repository, its commits along first parents, the oldest first, and those of the branch `side`."""

    path: Path
    main: list[str]
    side: list[str]

    def open(self) -> Repository:
        return open_repository(self.path, os.environ)


def make(
    folder: Path, commits: int = 40, side: int = 0, tags: Mapping[str, int] | None = None,
    measured: Sequence[int] | None = None, environ: Mapping[str, str] | None = None,
) -> Measured:  # fmt: skip
    """Make it. :param side: commits of a branch after the tenth. :param tags: places by name.

    :param measured: the places of those with a profile; all if None.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _git(folder, "init", "-q", "-b", "main")
    lines = [_commit("main", number, number) for number in range(commits)]
    if side:
        lines.append("reset refs/heads/side\nfrom :10\n\n")
        lines += [_commit("side", commits + number, 9 + number, 120) for number in range(side)]
    lines += [f"reset refs/tags/{name}\nfrom :{place + 1}\n\n" for name, place in (tags or {}).items()]
    import_stream(folder, "".join(lines))
    _git(folder, "reset", "-q", "--hard")
    with chdir(folder):
        init(folder, os.environ if environ is None else environ)
    main = _git(folder, "rev-list", "--reverse", "main").split()
    own = _git(folder, "rev-list", "--reverse", "side", "^main").split() if side else []
    made = Measured(folder, main, own)
    for number in range(commits) if measured is None else measured:
        measure(made, main[number], number)
    for number, checksum in enumerate(own):
        measure(made, checksum, 10 + number)
    return made


def commit(made: Measured, number: int, *, measured: bool = True) -> str:
    """One more commit of the main line, with a profile; its checksum."""
    stream = _commit("main", number, number, parent=made.main[-1])
    import_stream(made.path, stream)
    made.main.append(_git(made.path, "rev-parse", "main").strip())
    if measured:
        measure(made, made.main[-1], number)
    return made.main[-1]


def measure(made: Measured, checksum: str, number: int, *, machine: int = 0, **more: Any) -> None:
    """Register a profile of the version as it is at that place of the history: times, and counted bytes.

    :param more: regions of the profile.
    """
    chance = np.random.default_rng([number, machine])
    slow = 2.0 if number >= SLOWER else 1.0
    noise = np.exp(0.004 * chance.standard_normal((2, RUNS)))
    rows: list[dict[str, Any]] = []
    for place, (uid, base) in enumerate((("./app", 0.2 * slow), ("sort", 0.05))):
        rows += [
            {"uid": uid, "type": "time", "subtype": "real", "order": run,
             "amount": float(base * noise[place, run] * (machine + 1))}
            for run in range(RUNS)
        ]  # fmt: skip
    described = {"cpu": {"model": MACHINES[machine], "total": 4}, "architecture": "x86_64"}
    head = {"cmd": "./app", "args": "--all", "workload": "big.txt"}
    times = Profile(
        {"header": {"type": "time", "units": {"time": "s"}, **head}, "machine": described,
         "collector_info": {"name": "time", "params": {}}, "postprocessors": [], **more}
    )  # fmt: skip
    times.update_resources(rows)
    memory = Profile(
        {"header": {"type": "memory", "units": {"memory": "B"}, **head}, "machine": described,
         "collector_info": {"name": "memory", "params": {}}, "postprocessors": []}
    )  # fmt: skip
    memory.update_resources([{"uid": "./app", "type": "memory", "subtype": "peak", "amount": 1000 * slow}])
    store = made.open().store
    at = START + HOUR * number
    profiles = [(times, f"time-{number}-{machine}.perf", at), (memory, f"memory-{number}-{machine}.perf", at)]
    link(store, checksum, profiles)


def import_stream(folder: Path, stream: str) -> None:
    """Give git a stream of commits."""
    importing = ["git", "fast-import", "--quiet", "--force"]
    subprocess.run(importing, cwd=folder, input=stream, text=True, check=True)


def _commit(branch: str, number: int, hour: int, seconds: int = 0, parent: str = "") -> str:
    date = START + HOUR * hour + seconds
    message = f"Change number {number}\n"
    who = ("Ada <ada@example.org>", "Ben <ben@example.org>")[number % 2]
    origin = f"from {parent}\n" if parent else ""
    return (
        f"commit refs/heads/{branch}\nmark :{number + 1}\ncommitter {who} {date} +0000\n"
        f"data {len(message)}\n{message}{origin}\n"
    )


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout
