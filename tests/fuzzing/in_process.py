"""A program that is a function of its input, behind the interface of coverage: exact, without processes."""

import math
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from perun.fuzz.campaign import Campaign
from perun.fuzz.coverage.api import CoverageRun
from perun.fuzz.executing import Executor, SerialExecutor
from perun.fuzz.findings import FORMAT, CampaignJournal, Event, MemberTest
from perun.fuzz.rules import for_seed
from perun.fuzz.seeds import SearchSettings, SeedFile

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

    def run(self, data: bytes, timeout: float, until: float = math.inf) -> CoverageRun:
        self.runs += 1
        nothing = np.zeros(4, np.int64)
        if b"crash" in data:
            return CoverageRun("fault", -11, 0, nothing, 0.001)
        if b"stop" in data:
            return CoverageRun("hang", -9, 0, nothing, timeout)
        counts = np.array(self.counting(data), np.int64)
        return CoverageRun("ok", self.code, int(counts.sum()), counts, 0.001)

    def close(self) -> None:
        """Nothing runs."""


def untested(member: object, seed: object, seconds: float) -> MemberTest:
    """Nobody measures."""
    return MemberTest("ok")


def campaign(
    folder: Path, executor: Executor | None = None, *, seed: int = 1, executions: int | None = 600,
    test: Callable[..., MemberTest] = untested, clock: Callable[[], float] = time.monotonic,
    seconds: float = 1e9, **settings: object
) -> Campaign:  # fmt: skip
    """A campaign in `folder`, not begun yet."""
    given = {"limit": 200, "hang": 10.0, "tests_between": False, **settings}
    journal = CampaignJournal(folder)
    journal.write("campaign", format=FORMAT)
    rules = for_seed(SEED.data, SEED.path)
    searching = SearchSettings(seconds=seconds, executions=executions, **given)  # type: ignore[arg-type]
    executor = executor or SerialExecutor(InProcess())
    return Campaign(rules, executor, searching, test, journal, Random(seed), clock)


def events_of(one: Campaign, *seeds: SeedFile) -> list[Event]:
    """All of a campaign."""
    return list(one.run(seeds or (SEED,)))


# -- Programs as functions of their input, which count what they do: behind the interface of coverage


HANGS_AT = 3_000_000


class Ran(NamedTuple):
    outcome: str
    total: int
    seconds: float
    code: int = 0


def _ended(count: int, seconds_of_one: float = 1e-7) -> Ran:
    if count > HANGS_AT:
        return Ran("hang", 0, math.inf, -9)
    return Ran("ok", count, count * seconds_of_one)


def trim(data: bytes, timeout: float, until: float = math.inf) -> Ran:
    """A search for spaces at the end, which begins anew at each of them: quadratic in a row of spaces."""
    return _ended(100 + len(data) + sum(len(row) ** 2 for row in re.findall(rb" +", data)))


def email(data: bytes, timeout: float, until: float = math.inf) -> Ran:
    """A regular expression that tries each division of the letters before an @ that is not there."""
    letters = re.match(rb"[a-z0-9]*", data)
    assert letters is not None
    tail = data[letters.end() :]
    return _ended(50 + 30 * len(data) + (0 if tail.startswith(b"@") else 2 ** min(60, letters.end())))


def hash_table(data: bytes, timeout: float, until: float = math.inf) -> Ran:
    """A table of one bucket: each new word is compared with all that there are."""
    words: list[bytes] = []
    count = 10 + len(data)
    for word in data.split():
        for known in words:
            count += 1
            if known == word:
                break
        else:
            words.append(word)
    return _ended(count)


def insertion_sort(data: bytes, timeout: float, until: float = math.inf) -> Ran:
    values: list[bytes] = []
    count = 5 + len(data)
    for word in data.split():
        at = len(values)
        values.append(word)
        while at and values[at - 1] > word:
            values[at] = values[at - 1]
            at, count = at - 1, count + 1
        values[at] = word
    return _ended(count)


def parser(data: bytes, timeout: float, until: float = math.inf) -> Ran:
    """Recursion for each opening bracket, for which the stack is too small from a depth of 700 on."""
    depth = deepest = 0
    for byte in data:
        depth += (byte == ord("(")) - (byte == ord(")"))
        deepest = max(deepest, depth)
    return Ran("fault", 0, 0.0, -11) if deepest > 700 else _ended(100 + 3 * len(data))


def indifferent(data: bytes, timeout: float, until: float = math.inf) -> Ran:
    return Ran("ok", 100, 1e-3)
