"""Few measurements, and those of several sizes of input: permutations, strata, and steady trends."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perun.models.two_samples import rank_tests, shape
from perun.models.two_samples import ratio as strata
from perun.models.two_samples.ratio import described, of_each, of_pairs, of_samples, of_sizes
from shared import examples

stats = pytest.importorskip("scipy.stats", reason="scipy, what these are compared with, is missing")

FEW = st.lists(st.floats(-100, 100).map(lambda value: round(value, 3)), min_size=2, max_size=5)


@settings(max_examples=examples(30))
@given(FEW, FEW)
def test_permutations_give_the_p_value_of_scipy(baseline: list[float], target: list[float]) -> None:
    def difference(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        # Rounded, as sums of the same values in another order differ in their last digits.
        return np.round(np.mean(x, axis=axis) - np.mean(y, axis=axis), 9)

    expected = stats.permutation_test(
        (baseline, target), difference, n_resamples=np.inf, vectorized=True, alternative="two-sided"
    ).pvalue
    (found,) = rank_tests.p_values(np.array([baseline]), np.array([target]))
    assert found == pytest.approx(min(1.0, expected), abs=1e-9)


def test_few_samples_are_permuted_and_larger_ones_ranked() -> None:
    generator = np.random.default_rng(4)
    old, new = generator.lognormal(0, 0.1, 7), generator.lognormal(0.1, 0.1, 6)
    assert of_samples(old, new, 0.99).p_value == rank_tests.p_values(np.log([old]), np.log([new]))[0]
    assert rank_tests.is_feasible(7, 7) and not rank_tests.is_feasible(7, 40)
    many = of_samples(old, generator.lognormal(0.1, 0.1, 40), 0.99)
    assert 0 < many.p_value <= 1


@given(st.lists(st.integers(-20, 20), min_size=8, max_size=40))
def test_a_trend_is_the_rank_correlation_of_scipy(values: list[int]) -> None:
    found = shape.trend(np.array(values, float))
    if len(set(values)) == 1:
        assert found == 0
        return
    expected = stats.spearmanr(values, range(len(values))).statistic
    significant = abs(expected) * math.sqrt(len(values) - 1) > stats.norm.ppf(0.995)
    assert found == pytest.approx(expected if significant else 0.0)


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_medians_of_strata_are_those_of_each_size(seed: int, kinds: int) -> None:
    generator = np.random.default_rng(seed)
    values, sizes = generator.normal(size=30), generator.integers(0, kinds, 30).astype(float)
    wanted = np.unique(sizes)
    expected = [np.median(values[sizes == one]) for one in wanted]
    assert strata.medians(values, sizes, wanted).tolist() == expected


def sized(generator: np.random.Generator, factor: float, sizes: np.ndarray) -> np.ndarray:
    return factor * sizes**2 * generator.lognormal(0, 0.05, sizes.size)


@pytest.mark.parametrize("sizes", [np.repeat([10.0, 100, 1000, 4000], 6), np.arange(1.0, 40)])
def test_sizes_do_not_hide_a_change(sizes: np.ndarray) -> None:
    generator = np.random.default_rng(2)
    old, new = sized(generator, 1, sizes), sized(generator, 1.2, generator.permutation(sizes))
    found = of_sizes(old, sizes, sized(generator, 1.2, sizes), sizes, 0.99)
    assert found is not None and 1.1 < found.low < 1.2 < found.high < 1.3
    assert found.p_value < 0.01 and not found.paired
    # As one sample they cannot be told apart: sizes differ more than versions.
    assert of_samples(old, new, 0.99).low < 1


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [np.repeat([10.0, 100, 1000, 4000], 5), np.arange(1.0, 30)])
def test_without_a_change_there_are_no_more_alarms_than_the_level(sizes: np.ndarray) -> None:
    generator = np.random.default_rng(9)
    false = 0
    for _ in range(200):
        found = of_sizes(sized(generator, 1, sizes), sizes, sized(generator, 1, sizes), sizes, 0.95)
        assert found is not None
        false += not found.low < 1 < found.high
    assert false <= 200 * 0.05 + 2 * math.sqrt(200 * 0.05 * 0.95)


def test_sizes_that_are_not_common_are_left_out() -> None:
    old, new = np.array([1.0, 2, 3, 4]), np.array([10.0, 10, 2, 3])
    found = of_sizes(old, np.array([1.0, 1, 2, 2]), new, np.array([7.0, 8, 1, 2]), 0.95)
    assert found is not None and found.sizes == (4, 2)
    assert of_sizes(old, np.array([1.0, 1, 2, 2]), new, np.array([3.0, 3, 4, 4]), 0.95) is None
    texts = np.array(["a", "a", "b", "b"])
    assert of_sizes(old, np.array([1.0, 1, 2, 2]), new, texts, 0.95) is None
    assert of_sizes(old, texts, new, texts, 0.95) is not None


def test_many_measurements_are_thinned_out_and_large_ratios_have_no_bound() -> None:
    generator = np.random.default_rng(0)
    found = of_samples(generator.lognormal(0, 0.1, 100_000), generator.lognormal(0.1, 0.1, 50_000), 0.99)
    assert found.sizes == (100_000, 50_000) and 1.05 < found.low < found.high < 1.15
    assert of_samples([1e-300] * 9, [1e300] * 9, 0.99).high == math.inf


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_the_interval_of_pairs_has_the_confidence_asked_for(confidence: float) -> None:
    generator = np.random.default_rng(5)
    old = generator.lognormal(0, 0.1, 20)
    new = 1.1 * old * generator.lognormal(0, 0.03, 20)
    found = of_pairs(old, new, confidence)
    expected = rank_tests.signed_rank_interval(np.log(new) - np.log(old), 1 - confidence)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx(expected)
    assert (found.confidence, found.paired, found.sizes) == (confidence, True, (20, 20))


def test_pairs_need_as_many_values_on_both_sides() -> None:
    with pytest.raises(ValueError, match="not 3 and 4"):
        of_pairs([1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0], 0.99)


def _odd_samples(generator: np.random.Generator, count: int) -> list[np.ndarray]:
    """Samples of few sizes, so that several have the same: plain, tied, equal, drifting and bimodal ones."""
    found = []
    for number in range(count):
        values = generator.lognormal(0, 0.05, int(generator.choice([2, 5, 8, 10, 30, 301])))
        if number % 5 == 1:
            values = np.round(values, 1)
        elif number % 5 == 2:
            values = np.full(values.size, values[0])
        elif number % 5 == 3:
            values *= np.exp(np.cumsum(generator.normal(0, 0.05, values.size)))
        elif number % 5 == 4:
            values[::3] *= 2
        found.append(values)
    return found


def test_many_samples_at_once_are_compared_as_each_by_itself() -> None:
    generator = np.random.default_rng(11)
    old, new = _odd_samples(generator, 120), generator.permutation(np.arange(120)).tolist()
    others = [old[number] * 1.01 for number in new]
    together = of_each(described(old), described(others), 0.99)
    for ratio, baseline, target in zip(together, old, others, strict=True):
        alone = of_samples(baseline, target, 0.99)
        assert ratio.sizes == alone.sizes == (baseline.size, target.size)
        numbers = "estimate", "low", "high", "p_value", "detectable", "correlation", "drift", "medians"
        for name in numbers:
            assert getattr(ratio, name) == pytest.approx(getattr(alone, name), rel=1e-12, abs=1e-12)
        assert [modes and modes.share for modes in ratio.modes] == [
            modes and modes.share for modes in alone.modes
        ]
    assert any(ratio.correlation for ratio in together) and any(any(ratio.modes) for ratio in together)


def test_what_is_known_of_a_sample_is_what_numpy_and_scipy_say() -> None:
    for values in _odd_samples(np.random.default_rng(12), 40):
        (found,) = described([values])
        logarithms = np.log(values)
        assert found.median == pytest.approx(np.median(logarithms), abs=1e-14)
        if values.size <= 300:
            assert found.deviation == pytest.approx(np.std(logarithms, ddof=1), abs=1e-14)
        if found.drift:
            expected = stats.spearmanr(logarithms, np.arange(values.size)).statistic
            assert found.drift == pytest.approx(expected, abs=1e-12)


def test_the_shown_values_agree_with_the_ratio() -> None:
    # The large sizes were measured more often on the one side, so that the medians of all say the contrary.
    old_sizes, new_sizes = np.repeat([1, 100], [20, 5]), np.repeat([1, 100], [5, 20])
    noise = np.random.default_rng(13).lognormal(0, 0.01, 25)
    found = of_sizes(old_sizes * noise, old_sizes, 0.9 * new_sizes * noise, new_sizes, 0.99)
    assert found is not None
    before, after = found.typical
    assert after / before == pytest.approx(0.9, rel=0.02) and before == pytest.approx(10, rel=0.05)
    # Medians on the other side of 1 than the estimate: their middle, with the ratio between both.
    odd = found._replace(medians=(1.0, 1.1))
    assert odd.typical[1] / odd.typical[0] == pytest.approx(found.estimate)
    assert math.prod(odd.typical) == pytest.approx(1.1)
