"""Simulated comparisons of a program with itself: false alarms at every time at which one may stop."""

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from perun.models.two_samples import rank_tests
from perun.running.compare import plan
from perun.running.compare.decide import InterimPlan

stats = pytest.importorskip("scipy.stats", reason="scipy, what tests are compared with, is missing")
ALPHA = 0.01
MAX_PAIRS = 100
SIZES = InterimPlan(MAX_PAIRS).sizes


@pytest.fixture(scope="module")
def simulated() -> ModuleType:
    """The module of the benchmarks, which prints the powers of the same tests."""
    path = Path(__file__).parents[4] / "benchmarks" / "simulated.py"
    spec = importlib.util.spec_from_file_location("simulated", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["simulated"] = module
    spec.loader.exec_module(module)
    return module


def levels(*, ends: int | None = None) -> dict[int, float]:
    """The level of each look of a comparison; `ends`: pairs after which the time is over."""
    looks = InterimPlan(MAX_PAIRS)
    planned = {size: looks.level(ALPHA, size, ends=False) for size in SIZES if ends is None or size < ends}
    return planned if ends is None else {**planned, ends: looks.level(ALPHA, ends, ends=True)}


def most_by_chance(sequences: int) -> float:
    """False alarms that are exceeded once in a thousand times where the level is exactly 1 %."""
    return float(stats.binom.isf(0.001, sequences, ALPHA))


@pytest.mark.parametrize("kind", ["normal", "lognormal", "bimodal", "correlated"])
@pytest.mark.parametrize("sequences", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_false_alarms_stay_within_the_level_at_every_look(simulated, kind: str, sequences: int) -> None:
    counted = simulated.alarms(simulated.NOISES[kind], levels(), sequences, seed=len(kind))
    assert counted == sorted(counted) and max(counted) <= most_by_chance(sequences)
    assert counted[-1] > 0, "the level is used"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "lognormal"])
def test_so_they_do_in_the_longest_series(simulated: ModuleType, kind: str) -> None:
    looks = InterimPlan(plan.MAX_PAIRS)
    planned = {size: looks.level(ALPHA, size, ends=False) for size in looks.sizes}
    counted = simulated.alarms(simulated.NOISES[kind], planned, 1000, seed=5)
    assert 0 < max(counted) <= most_by_chance(1000)


@pytest.mark.parametrize("kind", ["normal", "correlated"])
@pytest.mark.parametrize("ends", [12, 33, 70])
@pytest.mark.parametrize("sequences", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_so_they_do_where_the_time_is_over_between_two_looks(simulated, kind, ends, sequences: int) -> None:
    counted = simulated.alarms(simulated.NOISES[kind], levels(ends=ends), sequences, seed=ends)
    assert counted[-1] <= most_by_chance(sequences)


def test_looking_at_a_fixed_level_does_not(simulated: ModuleType) -> None:
    """What the levels of the looks are for: the simulation can tell the difference."""
    fixed = dict.fromkeys(SIZES, ALPHA)
    assert simulated.alarms(simulated.normal, fixed, 2000, seed=1)[-1] > 2 * most_by_chance(2000)


def test_blocks_of_a_correlated_series_do_not(simulated: ModuleType) -> None:
    """Why what is compared is measured in turns."""
    runs = simulated.correlated(np.random.default_rng(2), 300, 60)
    assert np.mean(simulated.mann_whitney(*simulated.in_blocks(runs)) <= ALPHA) > 0.3


def test_the_tests_of_the_simulation_are_those_of_scipy(simulated: ModuleType) -> None:
    generator = np.random.default_rng(3)
    old, new = generator.normal(0, 1, (5, 20)), generator.normal(0.4, 2, (5, 20))
    expected = [stats.ttest_ind(a, b, equal_var=False).pvalue for a, b in zip(old, new, strict=True)]
    assert simulated.welch(old, new) == pytest.approx(expected)
    assert simulated.mann_whitney(old, new) == pytest.approx(
        [stats.mannwhitneyu(a, b, method="exact").pvalue for a, b in zip(old, new, strict=True)]
    )
    assert rank_tests.RANK_SUMS_EXACT_UP_TO >= 400
    seen = simulated.seen(new - old, {20: 0.05})
    for difference, found in zip(new - old, seen[:, 0], strict=True):
        assert found == (stats.wilcoxon(difference, method="exact").pvalue <= 0.05)


def test_correlated_noise_is(simulated: ModuleType) -> None:
    runs = simulated.correlated(np.random.default_rng(4), 50, 400)
    centred = runs - runs.mean(axis=1, keepdims=True)
    rho = float((centred[:, 1:] * centred[:, :-1]).sum() / (centred**2).sum())
    assert math.isclose(rho, 0.9, abs_tol=0.05)
