"""Programs with known worst cases: the search finds each, and the growth report names its order."""

import os
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from compiling import CompilerCache
from perun.fuzz import findings, growth, rules
from perun.fuzz.after import keeps_cost, minimize
from perun.fuzz.campaign import Campaign
from perun.fuzz.coverage.api import Coverage, CoverageTarget
from perun.fuzz.coverage.opening import open_coverage
from perun.fuzz.executing import SerialExecutor
from perun.fuzz.findings import CampaignJournal
from perun.fuzz.growth import CostGrowth
from perun.fuzz.seeds import SearchSettings, SeedFile

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

TARGETS = Path(__file__).with_name("programs")
LIMIT = 2000
"""Bytes of the inputs."""


def chunk(kind: bytes, size: int) -> bytes:
    return struct.pack(">H", size) + kind + b"\1" * size


class Case(NamedTuple):
    """A program, a harmless seed, the executions of the search, and what it has to find: a ratio of executed
    lines, the order of growth, and how the program ends."""

    program: str
    seed: bytes
    suffix: str
    executions: int
    ratio: float
    order: str
    ends: str = ""


CASES = (
    Case("hash_table", b"the quick brown fox jumps over the lazy dog\n", ".txt", 1000, 10, "quadratic"),
    Case("insertion_sort", b"1 5 3 2 4 6 7\n", ".txt", 300, 200, "quadratic"),
    Case("quick_sort", b"1 5 3 2 4 6 7\n", ".txt", 300, 50, "quadratic"),
    Case("xml_parser", b'<a><b>text</b><c x="1"/></a>\n', ".xml", 1200, 20, "linear", "fault"),
    Case(
        "chunks",
        b"\x89PNX" + chunk(b"IHDR", 3) + chunk(b"tEXt", 0) + chunk(b"IDAT", 0) + chunk(b"IEND", 0),
        ".png", 3000, 5, "quadratic",
    ),
)  # fmt: skip


@pytest.fixture(scope="session")
def opened(compile_once: CompilerCache, tmp_path_factory) -> Callable[[Case], Coverage]:
    """What counts a program, not started yet."""

    def make(case: Case) -> Coverage:
        program = compile_once("gcc", "--coverage", "-O1", "-g", TARGETS / f"{case.program}.c")
        folder = tmp_path_factory.mktemp(case.program)
        target = CoverageTarget((str(program),), "file", folder, dict(os.environ), case.suffix)
        (folder / "scratch").mkdir()
        return open_coverage(target, folder / "scratch")

    return make


@contextmanager
def searched(case: Case, coverage: Coverage, folder: Path, number: int, times: int) -> Iterator[Campaign]:
    """A campaign that has searched; nothing is measured."""
    path = folder / f"seed{case.suffix}"
    path.write_bytes(case.seed)
    executor = SerialExecutor(coverage)
    settings = SearchSettings(1e9, LIMIT, 20.0, executions=case.executions * times, tests_between=False)
    journal = CampaignJournal(folder)
    chosen, nothing_wrong = rules.for_seed(case.seed, path), findings.MemberTest("ok")
    campaign = Campaign(chosen, executor, settings, lambda *_: nothing_wrong, journal, random.Random(number))
    try:
        for _ in campaign.run([SeedFile(path, case.seed)]):
            pass
        yield campaign
    finally:
        journal.close()
        executor.close()


def found(case: Case, coverage: Coverage, folder: Path, number: int, times: int = 1) -> CostGrowth:
    """Search, minimise the best input, and model its growth."""
    with searched(case, coverage, folder, number, times) as campaign:
        inputs = campaign.found
        assert inputs.best >= case.ratio
        assert bool(inputs.faults) is (case.ends == "fault")
        worst = inputs.faults[0] if case.ends else max(inputs.interesting, key=lambda one: one.lines)
        ran = coverage.run(worst.data, 20)
        small = minimize(worst.data, keeps_cost(coverage.run, ran, 20), tests=150, seconds=1e9)
        assert len(small.data) <= len(worst.data)
        modelled = growth.find(small.data, coverage.run, max_size=LIMIT, hang_timeout=20, seconds=1e9)
        assert isinstance(modelled, CostGrowth), modelled
        return modelled


@pytest.mark.parametrize(
    "case",
    [
        # A text and a fault: one each. What else the programs show is the same search on larger inputs.
        pytest.param(case, marks=() if case.program in ("quick_sort", "xml_parser") else pytest.mark.slow)
        for case in CASES
    ],
    ids=[case.program for case in CASES],
)
def test_the_search_finds_it_and_the_report_names_the_order(case: Case, opened, tmp_path: Path) -> None:
    modelled = found(case, opened(case), tmp_path, 1)
    assert modelled.orders[0].name == case.order, modelled.text
    assert modelled.ends == case.ends
    if case.order == "quadratic":
        low, high = modelled.orders[0].low, modelled.orders[0].high
        assert low is not None and high is not None and 1.8 < low <= high < 2.2


@pytest.mark.slow
@pytest.mark.parametrize("number", range(2, 10))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.program)
def test_it_does_so_from_each_seed_of_the_random_numbers(case, number: int, opened, tmp_path: Path) -> None:
    modelled = found(case, opened(case), tmp_path, number, times=4)
    assert modelled.orders[0].name == case.order, modelled.text
    assert modelled.ends == case.ends
