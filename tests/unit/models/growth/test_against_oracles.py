"""Fits, criteria, profiles and ratios against statsmodels, scipy and definitions written as loops."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perun.models.growth import comparison, forms
from perun.models.growth import forms as exponent
from perun.models.growth.forms import Centres, centres

sm = pytest.importorskip("statsmodels.api", reason="statsmodels, what fits are compared with, is missing")
optimize = pytest.importorskip("scipy.optimize", reason="scipy, what fits are compared with, is missing")


Curve = Callable[[np.ndarray], np.ndarray]


def points(seed: int, size: int = 12, curve: Curve = lambda n: 3 + 2 * n) -> Centres:
    generator = np.random.default_rng(seed)
    x = np.sort(generator.choice(np.arange(1.0, 25), size, replace=False))
    y = curve(x) * generator.normal(1, 0.05, size)
    weight = generator.uniform(0.2, 5, size)
    return Centres(x, y, weight, size)


@pytest.mark.parametrize("form", forms.FORMS)
@pytest.mark.parametrize("seed", range(5))
def test_lines_are_those_of_statsmodels(form: str, seed: int) -> None:
    made = points(seed, curve=lambda n: 3 + forms.FORMS[form].values(n))
    f = forms.FORMS[form].values(made.x)
    fitted = forms.line(made, f)
    assert fitted is not None
    expected = sm.WLS(made.y, np.column_stack([np.ones_like(f), f]), weights=made.weight).fit()
    assert (fitted.c0, fitted.c1) == pytest.approx(tuple(expected.params), rel=1e-6)
    assert fitted.rss == pytest.approx(expected.ssr, rel=1e-6)
    robust = expected.get_robustcov_results("HC3")
    for a in ((1.0, 0.0), (0.0, 1.0), (1.0, float(f.mean()))):
        vector = np.array(a)
        value, variance = forms.estimate(made, f, fitted, a)
        assert value == pytest.approx(vector @ expected.params, rel=1e-6)
        both = [vector @ one.cov_params() @ vector for one in (expected, robust)]
        assert variance == pytest.approx(max(both), rel=1e-5)


def test_a_constant_is_that_of_statsmodels() -> None:
    made = points(7, curve=lambda n: 0 * n + 4)
    expected = sm.WLS(made.y, np.ones_like(made.y), weights=made.weight).fit()
    fitted = forms.constant(made)
    assert (fitted.c0, fitted.rss, fitted.freedom) == pytest.approx((expected.params[0], expected.ssr, 11))


def test_differences_of_aicc_are_those_of_statsmodels() -> None:
    made = points(3)
    found, expected = {}, {}
    for form, parameters in (("n", 3), ("n^2", 3), ("1", 2)):
        fitted = forms.lines(made)[form]
        found[form] = forms.aicc(forms.misfit(fitted.rss, 12), 12, parameters)
        columns = [np.ones_like(made.x)] + ([forms.FORMS[form].values(made.x)] if form != "1" else [])
        result = sm.WLS(made.y, np.column_stack(columns), weights=made.weight).fit()
        # Burnham and Anderson count the variance as a parameter.
        count = 12 / (12 - parameters - 1)
        expected[form] = -2 * result.llf + 2 * parameters * count
    for form in ("n^2", "1"):
        assert found[form] - found["n"] == pytest.approx(expected[form] - expected["n"], rel=1e-6)
    assert forms.aicc(1.0, 4, 3) == math.inf


@pytest.mark.parametrize("b", [0.5, 1.0, 1.7, 3.0])
def test_the_exponent_is_that_of_a_nonlinear_fit(b: float) -> None:
    made = points(int(10 * b), 20, lambda n: 5 + 2 * n**b)
    found = exponent.profile(made)
    expected, _ = optimize.curve_fit(
        lambda n, c0, c1, e: c0 + c1 * n**e, made.x, made.y, (5, 2, b), 1 / np.sqrt(made.weight), maxfev=20000
    )
    assert found.best == pytest.approx(expected[2], abs=exponent.STEP)
    low, high = exponent.bounds(found, 0.01)
    assert low < b < high


@given(st.integers(0, 10_000))
def test_the_bounds_of_a_difference_are_those_of_all_pairs(seed: int) -> None:
    old, new = (exponent.profile(points(seed + k, 8)) for k in (0, 1))
    found = exponent.difference(old, new, 0.05)
    rise = old.rise(0.05)[:, None] + new.rise(0.05)[None, :]
    apart = np.round((exponent.GRID[None, :] - exponent.GRID[:, None]) / exponent.STEP).astype(int)
    limit = 1.959963985**2
    possible = apart[rise <= limit] * exponent.STEP
    assert 0 <= possible.min() - max(found.low, -7.0) + 1e-9 <= exponent.STEP
    assert 0 <= min(found.high, 7.0) - possible.max() + 1e-9 <= exponent.STEP
    same = rise[apart == 0].min()
    assert found.p_value == pytest.approx(math.erfc(math.sqrt(same / 2)))


@example(2.00001, 1.0, 1.0, 1.0)
@given(st.floats(0.1, 10), st.floats(0.01, 4), st.floats(0.1, 10), st.floats(0.01, 4))
def test_fieller_bounds_are_the_ratios_that_the_test_does_not_reject(b, vb, t: float, vt: float) -> None:
    low, high = comparison._fieller(b, vb, t, vt, 2.0)
    # Near to each bound, but by more than its rounding: a bound may be as large as a million.
    near = [one + side * max(1e-6, 1e-6 * one) for one in (low, high) for side in (-1, 1)]
    for r in np.concatenate([np.linspace(0, 12, 25), near]):
        if 0 <= r < math.inf and min(abs(r - low), abs(r - high)) > 1e-7:
            kept = (t - r * b) ** 2 <= 4 * (vt + r * r * vb)
            # Where the baseline may be 0, both large and small ratios are possible: all between are kept too.
            assert low <= r <= high if kept else (not low <= r <= high or math.isinf(high))


def test_medians_and_counts_of_points() -> None:
    made = centres([4, 4, 4, 4, 4, 0, 9, 9, 9, 9, 9], [1, 2, 300, 2, 3, 8, 5, 5, 6, 7, 5])
    assert made.x.tolist() == [4, 9] and made.y.tolist() == [2, 5] and made.measurements == 10
    assert float((made.weight * made.y**2).sum()) == pytest.approx(2)


def test_sizes_with_few_values_are_put_together() -> None:
    made = centres(np.arange(1.0, 1001), np.arange(1.0, 1001))
    assert 40 <= made.x.size <= 80
    assert made.x == pytest.approx(made.y), "the median of growing values is the value at the median size"
    assert made.span > 500


def test_one_interrupted_call_changes_nothing() -> None:
    x = np.repeat(np.geomspace(10, 1000, 8).round(), 20)
    y = 5 + 2 * x
    disturbed = y.copy()
    disturbed[70] *= 250
    assert centres(x, disturbed).y.tolist() == centres(x, y).y.tolist()
