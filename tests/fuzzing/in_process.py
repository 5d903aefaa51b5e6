"""A program that is a function of its input, behind the interface of coverage: exact, without processes."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np

from perun.fuzz.campaign import Campaign
from perun.fuzz.coverage.api import Execution
from perun.fuzz.executing import Executor, Here
from perun.fuzz.findings import FORMAT, Event, Journal, Tested
from perun.fuzz.rules import for_seed
from perun.fuzz.seeds import SeedFile, Settings

SEED = SeedFile(Path("words.txt"), b"one two  three\n")
Counting = Callable[[bytes], list[int]]


def spaces(data: bytes) -> list[int]:
    """Counts of a search that begins anew at each space: quadratic in a row of them."""
    rows = [len(row) for row in data.replace(b"\n", b"x").split(b" ")]
    longest = run = 0
    for row in rows:
        run = run + 1 if row == 0 else 0
        longest = max(longest, run)
    return [100, len(data), len(rows), longest * longest]


def is_killed(data: bytes) -> list[int]:
    """The process that counts is killed."""
    os.kill(os.getpid(), signal.SIGKILL)
    return []


def ends(data: bytes) -> list[int]:
    """The process that counts ends."""
    os._exit(3)


def is_wrong(data: bytes) -> list[int]:
    """Counting has a defect."""
    return [int("no number")]


class InProcess:
    """Counts by a function; inputs with `crash` in them are faults, those with `stop` take for ever."""

    unit = "lines"
    note = ""

    def __init__(self, counting: Counting = spaces, code: int = 0) -> None:
        self.counting = counting
        self.code = code
        self.runs = 0

    def start(self) -> None:
        """It is there."""

    def run(self, data: bytes, timeout: float, until: float = math.inf) -> Execution:
        self.runs += 1
        nothing = np.zeros(4, np.int64)
        if b"crash" in data:
            return Execution("fault", -11, 0, nothing, 0.001)
        if b"stop" in data:
            return Execution("hang", -9, 0, nothing, timeout)
        counts = np.array(self.counting(data), np.int64)
        return Execution("ok", self.code, int(counts.sum()), counts, 0.001)

    def close(self) -> None:
        """Nothing runs."""


def untested(member: object, seed: object, seconds: float) -> Tested:
    """Nobody measures."""
    return Tested("ok")


def campaign(
    folder: Path,
    executor: Executor | None = None,
    *,
    seed: int = 1,
    executions: int | None = 600,
    test: Callable[..., Tested] = untested,
    clock: Callable[[], float] = time.monotonic,
    seconds: float = 1e9,
    **settings: object,
) -> Campaign:
    """A campaign in `folder`, not begun yet."""
    given = {"limit": 200, "hang": 10.0, "tests_between": False, **settings}
    journal = Journal(folder)
    journal.write("campaign", format=FORMAT)
    rules = for_seed(SEED.data, SEED.path)
    searching = Settings(seconds=seconds, executions=executions, **given)  # type: ignore[arg-type]
    executor = executor or Here(InProcess())
    return Campaign(rules, executor, searching, test, journal, Random(seed), clock)


def events_of(one: Campaign, *seeds: SeedFile) -> list[Event]:
    """All of a campaign."""
    return list(one.run(seeds or (SEED,)))
