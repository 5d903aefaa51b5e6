from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.models.decay import DECAYS, smoothing_factor
from perun.models.moving_average import (
    KINDS,
    AverageWindow,
    OrderStatistics,
    exponential_mean,
    fast_mean,
    fast_weighted_mean,
    rolling_mean,
    rolling_median,
    rolling_weighted_mean,
)
from perun.models.points import Floats

pandas = pytest.importorskip("pandas", reason="pandas is what rolling means are compared with")

WIDTHS = (1, 2, 3, 4, 5, 8, 9, 39, 40, 41, 64, 90)
RNG = np.random.default_rng(7)
DATA = {
    "normal": RNG.normal(size=40),
    "of all magnitudes": RNG.normal(size=40) * 10.0 ** RNG.integers(-6, 6, size=40),
    "an outlier": np.append(RNG.normal(size=39), 1e12)[RNG.permutation(40)],
    "a few values": RNG.integers(0, 3, 40).astype(float),
    "two points": np.array([1.0, 5.0]),
}


def configurations() -> list[tuple[int, AverageWindow]]:
    return [
        (width, AverageWindow(center, needed))
        for width in WIDTHS
        for center in (True, False)
        for needed in sorted({0, 1, width // 2, width})
    ]


def rolled(y: Floats, width: int, window: AverageWindow, kind: str | None = None) -> Any:
    needed = window.min_periods or None
    return pandas.Series(y).rolling(width, center=window.center, min_periods=needed, win_type=kind)


def compare(found: Floats, expected: Any, y: Floats) -> None:
    # pandas keeps one sum for all windows; what leaves it leaves a rounding error of the largest value.
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14 * np.abs(y).max())


@pytest.mark.parametrize("data", sorted(DATA))
def test_mean_as_pandas(data: str) -> None:
    y = DATA[data]
    for width, window in configurations():
        compare(rolling_mean(y, width, window), rolled(y, width, window).mean(), y)


@pytest.mark.parametrize("data", sorted(DATA))
def test_median_as_pandas(data: str) -> None:
    y = DATA[data]
    for width, window in configurations():
        compare(rolling_median(OrderStatistics.of(y), width, window), rolled(y, width, window).median(), y)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("data", ["normal", "a few values", "two points"])
@pytest.mark.each_value("kind", "data")
def test_weighted_mean_as_pandas(kind: str, data: str) -> None:
    y = DATA[data]
    options = {"beta": 14} if kind == "kaiser" else {}
    for width, window in configurations():
        expected = rolled(y, width, window, kind).mean(**options)
        compare(rolling_weighted_mean(y, width, window, kind), expected, y)


@pytest.mark.parametrize(("decay", "values"), [
    ("com", (0, 0.5, 3, 1e6, 1e300)),
    ("span", (1, 1.5, 20, 1e9)),
    ("halflife", (1e-9, 0.3, 5, 1e8)),
    ("alpha", (1e-9, 0.01, 0.5, 1)),
])  # fmt: skip
@pytest.mark.parametrize("data", sorted(DATA))
def test_exponential_mean_as_pandas(decay: str, values: tuple[float, ...], data: str) -> None:
    y = DATA[data]
    for value in values:
        expected = pandas.Series(y).ewm(**{decay: value}).mean()
        compare(exponential_mean(y, smoothing_factor(decay, value)), expected, y)


@pytest.mark.parametrize(("decay", "value"), [
    ("com", -0.1),
    ("span", 0.9),
    ("halflife", 0),
    ("alpha", 0),
    ("alpha", 1.1),
    ("com", float("inf")),
    ("com", float("nan")),
    ("half", 1),
])  # fmt: skip
def test_no_such_decay(decay: str, value: float) -> None:
    with pytest.raises(ValueError, match=decay):
        smoothing_factor(decay, value)


@given(st.sampled_from(sorted(DECAYS)), st.floats(min_value=0, allow_infinity=False))
def test_every_decay_that_is_taken_is_a_weight(decay: str, value: float) -> None:
    if DECAYS[decay].is_valid(value):
        assert 0 < smoothing_factor(decay, value) <= 1


def test_an_outlier_disturbs_only_its_own_windows() -> None:
    y = np.full(1000, 0.1)
    y[500] = 1e15
    means = rolling_mean(y, 5, AverageWindow())
    assert means[502] == pytest.approx(2e14)
    np.testing.assert_allclose(means[503:-2], 0.1, rtol=1e-15)


def test_quick_means_are_nearly_the_same() -> None:
    y = np.random.default_rng(3).normal(size=3000)
    for width in (1, 2, 399, 400, 1001):
        for window in (AverageWindow(), AverageWindow(False, 1)):
            for kind in ("triang", "bartlett", "kaiser"):
                exact = rolling_weighted_mean(y, width, window, kind)
                np.testing.assert_allclose(
                    fast_weighted_mean(y, width, window, kind)[5:-5], exact[5:-5], atol=1e-9
                )
            np.testing.assert_allclose(
                fast_mean(y, width, window), rolling_mean(y, width, window), atol=1e-11
            )


def test_windows_wider_than_memory() -> None:
    y = np.array([1.0, 2.0, 6.0])
    for window in (AverageWindow(True, 1), AverageWindow(False, 1)):
        assert rolling_mean(y, 10**15, window)[-1] == 3
        assert rolling_median(OrderStatistics.of(y), 10**15, window)[-1] == 2
        assert rolling_weighted_mean(y, 10**15, window, "hamming").shape == (3,)
    assert np.isnan(rolling_mean(y, 10**15, AverageWindow())).all()
