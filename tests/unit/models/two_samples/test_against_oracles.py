"""Ranks, intervals and adjusted p-values against scipy, statsmodels and definitions written as loops."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.models.two_samples import rank_tests, ratio, sequential, shape
from perun.models.two_samples import sequential as many

stats = pytest.importorskip("scipy.stats", reason="scipy, what ranks are compared with, is missing")

DISTINCT = st.lists(st.integers(-1000, 1000), min_size=1, max_size=12, unique_by=abs)
TIED = st.lists(st.integers(-5, 5), min_size=1, max_size=10)


def array(values: list[int]) -> np.ndarray:
    return np.array(values, float)


@given(DISTINCT.filter(lambda values: 0 not in values))
def test_signed_ranks_give_the_exact_p_value_of_scipy(values: list[int]) -> None:
    expected = stats.wilcoxon(array(values), method="exact").pvalue
    assert rank_tests.signed_rank_p_value(array(values)) == pytest.approx(expected, abs=1e-12)


@given(TIED)
def test_signed_ranks_with_ties_give_the_p_value_of_all_signs(values: list[int]) -> None:
    kept = [value for value in values if value]
    ranks = stats.rankdata(np.abs(kept)) if kept else []
    total = sum(ranks)
    seen = sum(rank for rank, value in zip(ranks, kept, strict=True) if value > 0)
    extreme = min(seen, total - seen)
    sums = [sum(itertools.compress(ranks, signs)) for signs in itertools.product([0, 1], repeat=len(kept))]
    expected = min(1.0, 2 * sum(one <= extreme for one in sums) / len(sums)) if kept else 1.0
    assert rank_tests.signed_rank_p_value(array(values)) == pytest.approx(expected, abs=1e-12)


@given(DISTINCT, st.sampled_from([0.01, 0.05, 0.1, 0.3]))
def test_the_interval_of_pairs_holds_what_the_test_does_not_reject(values: list[int], alpha: float) -> None:
    low, high = rank_tests.signed_rank_interval(array(values), alpha)
    for inside in np.linspace(max(low, -2000), min(high, 2000), 7)[1:-1] + 1e-7:
        assert rank_tests.signed_rank_p_value(array(values) - inside) > alpha
    for outside in (low - 1e-6, high + 1e-6):
        if math.isfinite(outside):
            assert rank_tests.signed_rank_p_value(array(values) - outside) <= alpha * (1 + 1e-9)


def test_the_fewest_pairs_that_give_an_interval() -> None:
    assert rank_tests.signed_rank_interval(np.arange(1.0, 8), 0.01) == (-math.inf, math.inf)
    low, high = rank_tests.signed_rank_interval(np.arange(1.0, 9), 0.01)
    assert (low, high) == (1.0, 8.0)


@pytest.mark.parametrize("count", [30, 100, 101, 400])
def test_many_pairs_agree_with_scipy(count: int) -> None:
    values = np.random.default_rng(count).normal(0.15, 1, count)
    method = "exact" if count <= rank_tests.SIGNED_RANKS_EXACT_UP_TO else "approx"
    expected = stats.wilcoxon(values, method=method, correction=True).pvalue
    assert rank_tests.signed_rank_p_value(values) == pytest.approx(expected, rel=1e-4)


def rank_sum_p_value(baseline: np.ndarray, target: np.ndarray) -> float:
    return float(rank_tests.compare(baseline[np.newaxis], target[np.newaxis], 0.5, [1.0]).p_values[0])


@given(
    st.lists(st.integers(0, 500), min_size=1, max_size=8, unique=True),
    st.lists(st.integers(501, 900), min_size=1, max_size=8, unique=True),
    st.integers(-600, 100),
)
def test_rank_sums_give_the_exact_p_value_of_scipy(first: list[int], second: list[int], move: int) -> None:
    baseline, target = array(first), array(second) + move + 0.5
    expected = stats.mannwhitneyu(baseline, target, method="exact").pvalue
    assert rank_sum_p_value(baseline, target) == pytest.approx(expected, abs=1e-12)


def test_rank_sums_with_ties_and_of_many_values_agree_with_scipy() -> None:
    generator = np.random.default_rng(1)
    for m, n in ((20, 30), (60, 70), (5, 9)):
        baseline = generator.integers(0, 9, m).astype(float)
        target = generator.integers(1, 10, n).astype(float)
        expected = stats.mannwhitneyu(baseline, target, method="asymptotic").pvalue
        assert rank_sum_p_value(baseline, target) == pytest.approx(expected, rel=1e-9)
    baseline, target = generator.normal(size=60), generator.normal(size=60)
    expected = stats.mannwhitneyu(baseline, target, method="asymptotic").pvalue
    assert rank_sum_p_value(baseline, target) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("m", "n"), [(8, 8), (5, 20), (30, 40)])
def test_the_interval_of_samples_holds_what_the_test_does_not_reject(m: int, n: int) -> None:
    generator = np.random.default_rng(m)
    baseline, target = generator.normal(0, 1, m), generator.normal(1, 1, n)
    found = rank_tests.compare(baseline[np.newaxis], target[np.newaxis], 0.05, [1.0])
    low, high = found.lows[0], found.highs[0]
    assert low < found.shifts[0] < high
    for inside in np.linspace(low, high, 9)[1:-1]:
        assert rank_sum_p_value(baseline, target - inside) > 0.05
    for outside in (low - 1e-6, high + 1e-6):
        assert rank_sum_p_value(baseline, target - outside) <= 0.05


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_adjusted_p_values_are_those_of_statsmodels(p_values: list[float]) -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest", reason="statsmodels is not installed")
    expected = multitest.multipletests(p_values, method="fdr_bh")[1]
    assert many.benjamini_hochberg(p_values) == pytest.approx(expected)


def test_boundaries_of_one_look_are_those_of_a_single_test() -> None:
    assert list(sequential.boundaries(0.05, [50], 50)) == [pytest.approx(1.959964, abs=1e-5)]


@pytest.mark.parametrize(("looks", "expected"), [(2, 2.178), (5, 2.413), (10, 2.555)])
def test_equal_boundaries_spend_what_pocock_computed(looks: int, expected: float) -> None:
    """Table 2.1 of Jennison and Turnbull, Group Sequential Methods, 2000: constant bounds of level 0.05."""
    paid, look = 0.0, sequential.BEGIN
    for size in range(1, looks + 1):
        paid += look.exceeding(size, expected)[0]
        look = look.after(size, expected, paid)
    assert paid == pytest.approx(0.05, abs=2e-4)


def test_the_levels_of_all_looks_stay_within_what_is_spent() -> None:
    sizes = list(range(10, 101, 5))
    levels = sequential.nominal_levels(0.01, sizes, 100)
    assert levels[0] == pytest.approx(0.01 * math.sqrt(0.1), rel=1e-6)
    assert levels[0] > 2 / 2**10, "ten pairs can decide"
    assert max(levels) < 0.01 < sum(levels)


@given(st.integers(0, 2**32 - 1))
def test_a_ratio_turns_round_with_its_samples(seed: int) -> None:
    generator = np.random.default_rng(seed)
    old, new = generator.lognormal(0, 0.1, 12), generator.lognormal(0.05, 0.1, 12)
    for compare in (ratio.of_pairs, ratio.of_samples):
        there, back = compare(old, new, 0.95), compare(new, old, 0.95)
        assert there.estimate * back.estimate == pytest.approx(1)
        # Correlation by chance may leave no bounds at all: 0 and infinite.
        assert there.low == pytest.approx(1 / back.high) and there.p_value == pytest.approx(back.p_value)


def test_two_modes_are_found_and_one_is_not() -> None:
    generator = np.random.default_rng(5)
    one = [shape.modes(generator.normal(10, 1, size)) for size in (10, 20, 40, 100) for _ in range(250)]
    assert sum(found is not None for found in one) <= 30
    both = np.concatenate([generator.normal(10, 0.2, 14), generator.normal(14, 0.2, 6)])
    found = shape.modes(generator.permutation(both))
    assert found is not None
    assert (round(found.low), round(found.high), found.share) == (10, 14, 0.3)


def test_correlation_is_told_from_noise() -> None:
    generator = np.random.default_rng(6)
    noise = [shape.autocorrelation(generator.normal(size=40)) for _ in range(200)]
    assert sum(rho != 0 for rho in noise) < 30
    walk = np.zeros(60)
    for n in range(1, 60):
        walk[n] = 0.8 * walk[n - 1] + generator.normal()
    assert 0.5 < shape.autocorrelation(walk) < 1
    assert shape.inflation(0.8) == pytest.approx(3)


@pytest.mark.parametrize(
    ("baseline", "target", "complaint"),
    [([1, 2], [1, 2, 3], "as many values"), ([1, 0], [1, 1], "positive"), ([1], [1], "at least 2")],
)
def test_what_has_no_ratio_is_refused(baseline: list[float], target: list[float], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ratio.of_pairs(baseline, target, 0.99)
