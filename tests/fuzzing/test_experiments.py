"""The three experiments of the manual's chapter 10: programs with `std::regex_search`, compiled here.

The ratios of executed lines are at least those of its tables. In `make test` the two quickest ones have one
short budget, which executions limit and no clock, and the smaller sizes; in `make test-all` all of them have
ten seeds of the random numbers and all sizes, within two minutes each.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import experiments
import pytest
from experiments import LARGE, SMALL, Case

from compiling import CompilerCache
from perun.fuzz.campaign import Campaign
from shared import folder_of_run, made_once

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")

Fuzz = Callable[..., Campaign]


@pytest.fixture(scope="session")
def regex_program(compile_once: CompilerCache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that searches each line of a file with the expression that it gets."""
    folder = folder_of_run(tmp_path_factory) / "regex"
    made_once(folder, lambda new: (new / "search.cpp").write_text(experiments.SOURCE))
    return compile_once("g++", *experiments.COMPILED, folder / "search.cpp")


@pytest.fixture
def fuzz(regex_program: Path, tmp_path: Path) -> Fuzz:
    """Search for slow inputs of a case, until its ratio is reached, and the hang found, or the limit is."""

    def run(case: Case, number: int, **limits: object) -> Campaign:
        campaign, end = experiments.begin(case, regex_program, tmp_path, number, **limits)  # type: ignore[arg-type]
        try:
            experiments.search(case, campaign, regex_program, tmp_path)
        finally:
            end()
        return campaign

    return run


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow if case.program == "trim" else ()) for case in SMALL],
    ids=[f"{case.program}-{case.size}" for case in SMALL],
)
def test_the_smaller_sizes(fuzz: Fuzz, case: Case) -> None:
    campaign = fuzz(case, 3, seconds=float("inf"), executions=20_000, jobs=1)
    found = campaign.found
    assert found.best >= case.ratio, f"{found.best:.1f} after {campaign.executions} executions"
    limit = max(case.size, len(experiments.SEEDS[case.program].data))
    assert all(len(one.data) <= limit for one in found.corpus)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
@pytest.mark.parametrize("case", (*SMALL, *LARGE), ids=lambda case: f"{case.program}-{case.size}")
def test_all_sizes_from_ten_seeds(fuzz: Fuzz, case: Case, number: int) -> None:
    """Within two minutes of two cores, however many other programs use these as well."""
    campaign = fuzz(case, number)
    found = campaign.found
    assert found.best >= case.ratio, f"{found.best:.1f} after {campaign.executions} executions"
    assert found.hangs or not case.hangs
