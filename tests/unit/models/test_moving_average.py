import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import windows

from perun.models.moving_average import (
    KINDS,
    AverageWindow,
    MovingAverage,
    best_width,
    exponential,
    median,
    simple,
    weights,
)
from perun.models.points import Floats, r_square
from perun.models.record import NoModel

POINTS = st.lists(st.tuples(st.floats(), st.floats()), max_size=30)
WIDTHS = st.sampled_from([0, 1, 2, 3, 10, 100])
WINDOWS = st.builds(AverageWindow, st.booleans(), st.sampled_from([0, 1, 2, 5]))


def made(model: MovingAverage | NoModel) -> MovingAverage:
    assert isinstance(model, MovingAverage)
    return model


def arrays(points: list[tuple[float, float]]) -> tuple[Floats, Floats]:
    return np.array([x for x, _ in points], float), np.array([y for _, y in points], float)


def test_the_example_of_the_manual() -> None:
    x = np.arange(6.0)
    model = made(simple(x, 3 * x**3))
    assert model.stats.tolist() == [0.0, 3.0, 24.0, 81.0, 192.0, 375.0] and model[1:] == (1, 0.0, 5.0, 1.0)


def test_points_are_taken_in_the_order_of_x() -> None:
    x, y = np.array([5.0, 5, 1, 2]), np.array([7.0, 3, 1, 2])
    assert made(simple(x, y, 1)).stats.tolist() == [1, 2, 7, 3]
    assert made(simple(x, y, 2, AverageWindow(center=False, min_periods=1))).stats.tolist() == [
        1,
        1.5,
        4.5,
        5,
    ]
    assert made(exponential(x, y)).stats.tolist() == [1, 2, 7, 3]


def test_a_point_without_an_average_is_not_explained() -> None:
    x, y = np.arange(10.0), np.arange(10.0)
    model = made(simple(x, y, 3))
    assert np.isnan(model.stats[[0, -1]]).all()
    unexplained = 2 * 4.5**2  # both ends, as far from the mean as they are
    assert model.r_square == pytest.approx(1 - unexplained / ((y - y.mean()) ** 2).sum())
    assert made(simple(x, y, 3, AverageWindow(min_periods=1))).r_square == pytest.approx(
        1 - 2 * 0.5**2 / 82.5
    )
    y = np.full(4, 0.5)
    assert r_square(y, np.array([np.nan, 0.5, 0.5, 0.5])) == 1
    assert r_square(y, np.array([0.5, 0.5, 0.25, 0.5])) == 0


def test_exponential_needs_points() -> None:
    x = np.arange(5.0)
    assert np.isnan(made(exponential(x, x, "com", 1, min_periods=3)).stats).tolist() == [1, 1, 0, 0, 0]
    assert isinstance(exponential(x, x, "com", 1, min_periods=6), NoModel)


def searched(x: Floats, y: Floats, smoother: Callable[[int], Floats]) -> int:
    """The rule for an automatic width, word for word."""
    w = min(x.size, max(1, int(0.05 * (x.max() - x.min()))))
    while True:
        estimate = smoother(w)
        estimate = np.where(np.isnan(estimate), y.mean(), estimate)
        r2 = 1 - ((y - estimate) ** 2).sum() / ((y - y.mean()) ** 2).sum()
        if r2 >= 0.88 or w == 1:
            return w
        w -= max(1, int(min(0.9 * w - 1, 0.15 * (w - 1) * (0.88 - r2))))


@pytest.mark.slow
@pytest.mark.each_value("method", "window")
@pytest.mark.parametrize("method", ["sma", "smm", "triang"])
@pytest.mark.parametrize("window", [AverageWindow(), AverageWindow(False), AverageWindow(True, 1)])
def test_automatic_width_follows_the_rule(method: str, window: AverageWindow) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is what moving averages are compared with")
    rng = np.random.default_rng(11)
    widths = set()
    x = np.arange(1500.0) * 3
    for y in (
        np.sin(x / 100) + 0.3 * rng.normal(size=x.size),
        x**2 + 1e5 * rng.normal(size=x.size),
        rng.normal(size=x.size).cumsum(),
        rng.normal(size=x.size),
    ):

        def smoother(width: int, y: Floats = y) -> Floats:
            rolling = pandas.Series(y).rolling(
                width,
                center=window.center,
                min_periods=window.min_periods or None,
                win_type="triang" if method == "triang" else None,
            )
            return np.asarray(rolling.median() if method == "smm" else rolling.mean())

        kind = "triang" if method == "triang" else ""
        model = median(x, y, 0, window) if method == "smm" else simple(x, y, 0, window, kind)
        assert made(model).width == searched(x, y, smoother)
        widths.add(made(model).width)
    assert len(widths) > 2


def test_automatic_width_is_no_more_than_there_are_points() -> None:
    tried: list[int] = []

    def fit(width: int) -> float:
        tried.append(width)
        return 1.0

    assert best_width(np.array([0.0, 1e308]), fit) == 2 and best_width(np.array([-1e308, 1e308]), fit) == 2
    assert best_width(np.array([0.0, 1e-300]), fit) == 1 and best_width(np.arange(201.0), fit) == 10
    assert tried == [2, 2, 1, 10]


def test_automatic_width_is_found_soon_where_all_are_nearly_good() -> None:
    tried: list[int] = []

    def fit(width: int) -> float:
        tried.append(width)
        return 0.879999 if width > 1234 else 0.88

    assert best_width(np.arange(1_000_000.0), fit) == 1234 and len(tried) < 130


@pytest.mark.parametrize(("x", "y", "reason"), [
    ([], [], "no point"),
    ([1.0], [2.0], "one point"),
    ([3.0, 3.0, 3.0], [1.0, 2.0, 3.0], "x are equal"),
    ([1.0, 2.0, 3.0], [math.nan, math.inf, 1.0], "one point"),
])  # fmt: skip
def test_no_model(x: list[float], y: list[float], reason: str) -> None:
    for function in (simple, median, exponential):
        model = function(np.array(x), np.array(y))
        assert isinstance(model, NoModel) and reason in model.reason


def test_no_window_has_enough_points() -> None:
    x = np.arange(4.0)
    for model in (simple(x, x, 5), median(x, x, 5), simple(x, x, 2, AverageWindow(), "bartlett")):
        assert isinstance(model, NoModel) and "window of width" in model.reason


def check(model: MovingAverage | NoModel, y: Floats) -> None:
    if isinstance(model, NoModel):
        assert model.reason
        return
    values = model.stats[~np.isnan(model.stats)]
    finite = y[np.isfinite(y)]
    assert values.size
    slack = 1e-290 * np.abs(finite).max()  # of values that are so much less than the largest
    assert finite.min() - slack <= values.min() <= values.max() <= finite.max() + slack
    assert -math.inf < model.r_square <= 1 and model.x_start < model.x_end


@given(POINTS, WIDTHS, WINDOWS, st.sampled_from(["", *KINDS]))
def test_any_data_simple(
    points: list[tuple[float, float]], width: int, window: AverageWindow, kind: str
) -> None:
    x, y = arrays(points)
    check(simple(x, y, width, window, kind), y)


@given(POINTS, WIDTHS, WINDOWS)
def test_any_data_median(points: list[tuple[float, float]], width: int, window: AverageWindow) -> None:
    x, y = arrays(points)
    check(median(x, y, width, window), y)


@given(
    POINTS,
    st.sampled_from([("com", 0.0), ("com", 1e308), ("span", 3.0), ("halflife", 5e-324), ("alpha", 5e-324)]),
    st.integers(0, 5),
)
def test_any_data_exponential(points, decay: tuple[str, float], needed: int) -> None:
    x, y = arrays(points)
    check(exponential(x, y, *decay, needed), y)


# -- moving average windows --------------------------------------------------------------------------


EDGE_WIDTHS = (*range(1, 40), 500, 501)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_as_scipy(kind: str) -> None:
    function = getattr(windows, kind)
    for width in EDGE_WIDTHS:
        expected = function(width, 14) if kind == "kaiser" else function(width)
        found = weights(kind, width, np.arange(width))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)
        # A weight of exactly 0 decides whether a window that is cut short has a mean.
        assert np.array_equal(found == 0, expected == 0)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_part_of_a_window_too_wide_for_the_memory(kind: str) -> None:
    part = weights(kind, 10**12, np.arange(5 * 10**11, 5 * 10**11 + 3))
    np.testing.assert_allclose(part, 1.0, atol=1e-9)
