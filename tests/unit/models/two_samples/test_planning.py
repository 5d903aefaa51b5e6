"""How many pairs are needed, against tests of simulated pairs by scipy."""

import math

import numpy as np
import pytest

from perun.models.two_samples import sequential
from perun.models.two_samples import sequential as planning

stats = pytest.importorskip("scipy.stats", reason="scipy, what powers are compared with, is missing")


@pytest.mark.parametrize(("pairs", "shift", "level"), [(10, 1.5, 0.01), (20, 0.8, 0.01), (60, 0.4, 0.05)])
def test_power_is_how_often_the_test_of_scipy_sees_a_shift(pairs: int, shift: float, level: float) -> None:
    samples = np.random.default_rng(pairs).normal(shift, 1, (300, pairs))
    seen = [stats.wilcoxon(sample, method="exact").pvalue <= level for sample in samples]
    # Three standard errors of the difference of two shares, of a thousand and of three hundred.
    assert planning.power(shift, pairs, level) == pytest.approx(np.mean(seen), abs=0.1)


def test_no_shift_is_seen_no_more_often_than_the_level() -> None:
    assert planning.power(0, 30, 0.05) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)
    assert planning.power(5, 4, 0.01) == 0, "four pairs have no p-value of 1 %"


def test_the_deviation_of_normal_differences_is_theirs_and_ignores_outliers() -> None:
    values = np.random.default_rng(1).normal(0, 0.03, 400)
    assert planning.deviation(values) == pytest.approx(0.03, rel=0.15)
    values[:8] = 5
    assert planning.deviation(values) == pytest.approx(0.03, rel=0.25)


def test_pairs_needed_and_the_smallest_effect_agree() -> None:
    sizes = list(range(10, 101, 5))
    levels = dict(zip(sizes, sequential.nominal_levels(0.01, sizes, 100), strict=True))
    for effect in (0.02, 0.05, 0.1):
        pairs = planning.pairs_needed(0.04, effect, levels)
        assert pairs is not None and planning.smallest(0.04, pairs, levels[pairs]) <= effect * 1.02
        if pairs > 10:
            fewer = pairs - 5
            assert planning.smallest(0.04, fewer, levels[fewer]) > effect * 0.98
    assert planning.pairs_needed(0.04, 0.001, levels) is None
    assert planning.pairs_needed(0.0, 0.001, levels) == 10
    assert planning.smallest(0.04, 4, 0.01) == math.inf
