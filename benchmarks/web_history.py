"""A repository with a long history of measurements, for the dashboard: commits, branches, machines, profiles.

    python benchmarks/web_history.py FOLDER [--commits 10000] [--series 100] [--branches 3] [--seed 1]

Each commit has one profile of half as many commands as there are series, which times each one in real and in
processor time, five times. What they take are the histories of `histories.py`, so the steps are known.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir, contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from histories import History, history
from perun.measurement.series import readings
from perun.profile.factory import Profile
from perun.profile.format.grouping import ResourceGroup
from perun.profile.format.head import COLUMNAR_FROM, object_body
from perun.profile.head import ProfileHeader
from perun.repository.init import init
from perun.store import Store
from perun.store.index import IndexEntry
from perun.store.series import ProfileSeries
from perun.store.summaries import ProfileSummary, profile_summary_of

START = 1_600_000_000
APART = 3600
AUTHORS = ("Ada Lovelace <ada@example.org>", "Ben <ben@example.org>", "Žofie Nováková <zofie@example.org>")
WORDS = ("parser", "index", "cache", "reader", "sorter", "network", "table", "writer")
VERBS = ("Simplify", "Rewrite", "Test", "Document", "Speed up", "Split", "Fix", "Rename")
DOES = ("insert", "lookup", "merge", "scan", "encode", "flush")
RUNS = 5
AT_ONCE = 50
"""Profiles that a process makes before it hands them over."""
MACHINES = ("Intel Xeon E5-2680", "AMD EPYC 7543")


class Made(NamedTuple):
    """The commits along first parents, the oldest first, and the histories of the functions."""

    commits: list[str]
    histories: list[History]


def make(
    folder: Path, commits: int = 10_000, series: int = 100, branches: int = 3, seed: int = 1, *,
    every: int = 1, tags: int = 5, machines: int = 1,
) -> Made:  # fmt: skip
    """Make it. :param every: which commits are measured. :param machines: they take turns."""
    _commits(folder, commits, branches, tags)
    with chdir(folder):
        init(folder, os.environ)
    histories = [history(seed + number, max(commits, 60), 1 if number % 4 == 0 else None)
                 for number in range(series // 2)]  # fmt: skip
    main = _git(folder, "rev-list", "--reverse", "--first-parent", "main").split()
    measured = [(one, place) for place, one in enumerate(main) if place % every == 0]
    for number in range(branches):
        own = _git(folder, "rev-list", "--reverse", f"branch-{number}", "^main").split()
        fork = _fork(commits, branches, number)
        measured += [(one, min(commits - 1, fork + k)) for k, one in enumerate(own)]
    register(folder, histories, measured, seed, machines)
    return Made(main, histories)


def register(
    folder: Path, histories: list[History], measured: list[tuple[str, int]], seed: int, machines: int = 1
) -> None:
    """Register a profile of each version, with the values at the place of the histories."""
    store = Store(folder / ".perun")
    # Nothing is flushed to the disk: what is generated need not outlast a failure of the power.
    unflushed = patch.object(os, "fsync", lambda file: None)
    with unflushed, _made(histories, measured, seed, machines) as profiles:
        for (checksum, place), made in zip(measured, profiles, strict=True):
            stored = store.objects.put_body(made.head.type, made.body)
            entry = IndexEntry(START + APART * place + 60, stored, f"app-{place}.perf", made.head)
            store.indexes.add(checksum, [entry])
            # As the first command that looks at the history would do, which need not read all profiles again.
            store.profile_summaries.keep({stored: made.fact})
            store.series.keep({stored: made.series})
        store.summaries.rebuild()


class _Registered(NamedTuple):
    """What is stored of a profile."""

    head: ProfileHeader
    body: bytes
    fact: ProfileSummary
    series: ProfileSeries


@contextmanager
def _made(
    histories: list[History], measured: list[tuple[str, int]], seed: int, machines: int
) -> Iterator[Iterator[_Registered]]:
    """The profiles of the versions, in their order; of many, made by all processors."""
    work = [
        ([one.values[place] for one in histories], seed, place, MACHINES[number % machines])
        for number, (_, place) in enumerate(measured)
    ]
    if len(work) < AT_ONCE:
        yield map(_registered, work)
        return
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
        yield pool.map(_registered, work, chunksize=AT_ONCE)


def _registered(work: tuple[list[float], int, int, str]) -> _Registered:
    values, seed, place, machine = work
    profile = _profile(values, np.random.default_rng([seed, place]), machine)
    own = readings(profile)
    known = ProfileSeries((("processor", machine),), tuple(own), tuple(own.values()))
    return _Registered(
        ProfileHeader.of(profile), object_body(profile, COLUMNAR_FROM), profile_summary_of(profile), known
    )


def _profile(values: list[float], chance: np.random.Generator, machine: str) -> Profile:
    profile = Profile(
        {
            "header": {"type": "time", "cmd": "./app", "args": "--benchmark", "workload": "all",
                       "units": {"time": "s"}},
            "collector_info": {"name": "time", "params": {"warmup": 1, "repeat": RUNS}},
            "postprocessors": [],
            "machine": {"cpu": {"model": machine, "total": 8}, "architecture": "x86_64"},
        }
    )  # fmt: skip
    noise = np.exp(0.004 * chance.standard_normal((len(values), RUNS)))
    real = np.array(values)[:, np.newaxis] * noise
    profile.add_groups(
        (
            ResourceGroup("", {"uid": _name(row), "type": "time", "subtype": kind},
                  {"amount": amounts, "order": list(range(RUNS))}, RUNS)
            for kind, times in (("real", real), ("user", 0.9 * real))
            for row, amounts in enumerate(times.tolist())
        ),
        {},
    )  # fmt: skip
    return profile


def _name(row: int) -> str:
    return f"{WORDS[row % len(WORDS)]}.{DOES[row // len(WORDS) % len(DOES)]}_{row}"


def _fork(commits: int, branches: int, number: int) -> int:
    """After how many commits of the main line a branch begins."""
    return max(1, commits * (number + 1) // (branches + 1))


def _commits(folder: Path, commits: int, branches: int, tags: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _git(folder, "init", "-q", "-b", "main")
    stream = "".join(_stream(commits, branches, tags))
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input=stream.encode(), check=True)
    _git(folder, "reset", "-q", "--hard")


def _stream(commits: int, branches: int, tags: int) -> Iterator[str]:
    for number in range(commits):
        yield commit("main", number, START + APART * number)
    for number in range(branches):
        fork = _fork(commits, branches, number)
        yield f"reset refs/heads/branch-{number}\nfrom :{fork}\n\n"
        for k in range(max(3, commits // 200)):
            yield commit(f"branch-{number}", commits + 1000 * number + k, START + APART * (fork + k) + 60)
    for number in range(tags):
        place = commits * (number + 1) // (tags + 1)
        yield f"reset refs/tags/v1.{number}\nfrom :{place + 1}\n\n"


def commit(branch: str, number: int, date: int) -> str:
    subject = f"{VERBS[number % len(VERBS)]} the {WORDS[number // 3 % len(WORDS)]} of request {number}"
    message = f"{subject}\n\nA body that says a little more of the reasons.\n"
    lines = f"commit refs/heads/{branch}\nmark :{number + 1}\ncommitter {AUTHORS[number % 3]} {date} +0000\n"
    return f"{lines}data {len(message.encode())}\n{message}\n"


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    defaults = {"commits": 10_000, "series": 100, "branches": 3, "seed": 1, "machines": 1}
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    made = make(**vars(parser.parse_args()))
    print(f"{len(made.commits)} commits")


if __name__ == "__main__":
    main()
