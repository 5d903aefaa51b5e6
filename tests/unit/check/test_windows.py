"""Statistics of windows, against scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.stats.mstats import mquantiles

from perun.check._common.differences import Samples
from perun.check._common.points import RelativeLimits, balance, relative_error, verdict
from perun.check.local_statistics import STATISTICS, Windows, compare, statistics
from perun.profile.changes import PerformanceChange


@given(
    st.lists(st.tuples(st.floats(0.01, 10), st.floats(-1e6, 1e6)), min_size=2, max_size=60),
    st.integers(2, 20),
)
def test_statistics(points: list[tuple[float, float]], width: int) -> None:
    x, values = np.cumsum([step for step, _ in points]), np.array([value for _, value in points])
    found = statistics(x, values, min(width, x.size))
    starts = range(0, x.size, min(width, x.size))
    assert found.shape == (len(starts), len(STATISTICS))
    for row, start in zip(found, starts, strict=True):
        window, places = values[start : start + width], x[start : start + width]
        quartiles = mquantiles(window, [0.25, 0.75], alphap=1, betap=1)
        expected = [
            trapezoid(window, places) if window.size > 1 else np.nan, np.mean(window), np.median(window),
            max(window), min(window), sum(window), *quartiles
        ]  # fmt: skip
        assert row == pytest.approx(expected, nan_ok=True, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize(("points", "width"), [(2, 2), (39, 39), (40, 2), (59, 2), (60, 3), (1000, 50)])
def test_width(points: int, width: int) -> None:
    assert Windows().width(points) == width


@pytest.mark.parametrize(("before", "after", "error", "balanced"), [
    (100, 111, 0.11, 0.11),
    (111, 100, -11 / 111, -0.11),
    (-10, -5, 0.5, 1),
    (-5, 5, 2, 2),
    (0, 0, 0, 0),
    (0, 1, np.nan, np.nan),
    (1, 0, np.nan, np.nan),
    (1, np.inf, np.nan, np.nan),
    (1e-300, 1e300, 1.7976931348623157e308, 1.7976931348623157e308),
])  # fmt: skip
def test_relative(before: float, after: float, error: float, balanced: float) -> None:
    assert float(relative_error(before, after)) == pytest.approx(error, nan_ok=True)
    assert float(balance(before, after)) == pytest.approx(balanced, nan_ok=True)
    assert float(balance(after, before)) == pytest.approx(-balanced, nan_ok=True)


@pytest.mark.parametrize(("size", "change"), [
    (0.1, PerformanceChange.NoChange),
    (1.1 / 1 - 1, PerformanceChange.NoChange),
    (0.1001, PerformanceChange.MaybeDegradation),
    (0.25, PerformanceChange.MaybeDegradation),
    (-0.25, PerformanceChange.MaybeOptimization),
    (0.2501, PerformanceChange.Degradation),
    (-1e300, PerformanceChange.Optimization),
    (np.nan, PerformanceChange.Unknown),
])  # fmt: skip
def test_verdict(size: float, change: PerformanceChange) -> None:
    assert verdict(size, RelativeLimits()) is change


@pytest.mark.parametrize(("target", "change", "rate"), [
    # Both versions are the slower one on average, relative to the other: the ratios decide.
    ([2.0] * 300 + [200.0] * 700, PerformanceChange.Degradation, 0.2**0.3 * 20**0.7 - 1),
    ([200.0] * 300 + [1.0] * 700, PerformanceChange.MaybeDegradation, 5.07),
])  # fmt: skip
def test_curves_that_cross(target: list[float], change: PerformanceChange, rate: float) -> None:
    """The second one takes a seventh by the ratios, and six times as much by the means: that is no more than
    a maybe."""
    x, ten = np.arange(1000.0), np.full(1000, 10.0)
    there = compare(Samples(x, ten, np.array(target), 0 * x), RelativeLimits(), Windows())
    assert (there.change, there.rate) == (change, pytest.approx(rate))
    back = compare(Samples(x, np.array(target), ten, 0 * x), RelativeLimits(), Windows())
    assert back.change.value == -there.change.value
