"""The three experiments of the manual's chapter 10: programs with `std::regex_search`, compiled here.

The ratios of executed lines are at least those of its tables. In `make test` each has one short budget, which
executions limit and no clock, and the smaller sizes; in `make test-all` ten seeds of the random numbers and
all sizes, within two minutes each.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from compiling import CompilerCache
from perun.fuzz import rules
from perun.fuzz.campaign import Campaign
from perun.fuzz.coverage.api import Coverage, Target
from perun.fuzz.coverage.opening import open_coverage
from perun.fuzz.events import Tested as Said
from perun.fuzz.journal import Journal
from perun.fuzz.pool import Pool
from perun.fuzz.seeds import SeedFile
from perun.fuzz.settings import Settings

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

SOURCE = r"""
#include <fstream>
#include <iostream>
#include <regex>
#include <string>
int main(int argc, char **argv) {
    std::ifstream file(argv[2]);
    std::string line;
    std::regex expression(argv[1]);
    long found = 0;
    while (std::getline(file, line))
        found += std::regex_search(line, expression);
    std::cout << found << "\n";
}
"""
EXPRESSIONS = {
    "trim": r"^[\s\u200c]+|[\s\u200c]+$",
    "email": r"^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}"
    r"(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$",
    "classname": r"^(([a-z])+.)+[A-Z]([a-z])+$",
}
GUARD = Path(__file__).parents[2] / "src" / "perun" / "process" / "native" / "guard.c"
SEEDS = {
    "trim": SeedFile(Path("guard.c"), GUARD.read_bytes()[:3534] + b"\n"),  # as large as that of the manual
    "email": SeedFile(Path("email.txt"), b"spse1po@gmail.com\n"),
    "classname": SeedFile(Path("name.txt"), b"myAwesomeClassName\n"),
}


class Case(NamedTuple):
    """A row of a table: the largest size, the ratio that it has, and whether there is a hang, too."""

    program: str
    size: int
    ratio: float
    hangs: bool = False


SMALL = (Case("trim", 5000, 24.32), Case("email", 18, 70.83), Case("classname", 19, 14.31))
LARGE = (
    Case("trim", 10_000, 41.38),
    Case("email", 36, 4470.72, hangs=True),
    Case("classname", 38, 2383.99),
    Case("classname", 78, 5056.67, hangs=True),
)
Fuzz = Callable[..., Campaign]


@pytest.fixture(scope="session")
def regex_program(compile_once: CompilerCache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that searches each line of a file with the expression that it gets."""
    source = tmp_path_factory.mktemp("regex") / "search.cpp"
    source.write_text(SOURCE)
    return compile_once("g++", "-std=c++17", "--coverage", "-O1", "-g", source)


@pytest.fixture
def fuzz(regex_program: Path, tmp_path: Path) -> Fuzz:
    """Search for slow inputs of a case, until its ratio is reached, and the hang found, or the limit is."""

    def run(case: Case, number: int, seconds: float, executions: int | None, jobs: int) -> Campaign:
        def maker(job: int) -> Callable[[], Coverage]:
            scratch = tmp_path / f"scratch-{job}"
            scratch.mkdir()
            argv = (str(regex_program), EXPRESSIONS[case.program])
            return partial(open_coverage, Target(argv, "file", tmp_path, dict(os.environ), ".txt"), scratch)

        seed = SEEDS[case.program]
        pool = Pool([maker(job) for job in range(jobs)], os.environ)
        journal = Journal(tmp_path / "out")
        limit = max(case.size, len(seed.data))
        settings = Settings(seconds, limit, executions=executions, tests_between=False)
        campaign = Campaign(
            rules.for_seed(seed.data, seed.path), pool, settings, lambda *given: Said("ok"), journal,
            random.Random(number),
        )  # fmt: skip
        try:
            for _ in campaign.run((seed,)):
                if campaign.best >= case.ratio and (campaign.hangs or not case.hangs):
                    break
        finally:
            pool.close()
            journal.close()
        return campaign

    return run


@pytest.mark.parametrize("case", SMALL, ids=lambda case: f"{case.program}-{case.size}")
def test_the_smaller_sizes(fuzz: Fuzz, case: Case) -> None:
    found = fuzz(case, 3, float("inf"), 20_000, 1)
    assert found.best >= case.ratio, f"{found.best:.1f} after {found.executions} executions"
    assert all(len(one.data) <= max(case.size, len(SEEDS[case.program].data)) for one in found.corpus)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
@pytest.mark.parametrize("case", (*SMALL, *LARGE), ids=lambda case: f"{case.program}-{case.size}")
def test_all_sizes_from_ten_seeds(fuzz: Fuzz, case: Case, number: int) -> None:
    """Seconds are those of an idle machine with two cores; a busy one gets as much longer as it is busy."""
    busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    found = fuzz(case, number, 110.0 * busy, None, 2)
    assert found.best >= case.ratio, f"{found.best:.1f} after {found.executions} executions"
    assert found.hangs or not case.hangs
