"""The search downhill, step by step against scipy's."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.models import student
from perun.models.kernel.estimates import minimum
from perun.models.moving_average import AverageWindow, OrderStatistics, rolling_median

FUNCTIONS: dict[str, Callable[[float], float]] = {
    "parabola": lambda x: (x - 3) ** 2,
    "valley far away": lambda x: abs(x - 1e4) ** 1.5,
    "waves": lambda x: math.sin(5 * x) + x * x / 40,
    "steps": lambda x: math.floor(abs(x - 2) * 4),
    "level": lambda x: 1.0,
    "nothing below -1": lambda x: (x + 0.99) ** 2 if x >= -1 else math.nan,
    "infinite beyond 2": lambda x: -x if x < 2 else math.inf,
    "no end": lambda x: -x,
}


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # scipy's, of the infinity
@pytest.mark.filterwarnings("ignore:Maximum number of function evaluations:RuntimeWarning")
@pytest.mark.parametrize("start", [1.0, 1.25, 0.0, 40.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_step_is_that_of_scipy(name: str, start: float) -> None:
    optimize = pytest.importorskip("scipy.optimize", reason="the oracle scipy is not installed")
    function = FUNCTIONS[name]
    paths: tuple[list[float], list[float]] = ([], [])

    def followed(path: list[float]) -> Callable[[float], float]:
        def call(x: float) -> float:
            path.append(float(x))
            return function(float(x))

        return call

    ours = minimum(followed(paths[0]), start, evaluations=200)
    theirs = optimize.fmin(lambda x: followed(paths[1])(x[0]), [start], maxfun=200, maxiter=200, disp=False)
    # scipy asks for the value in the middle a second time, where it shrinks to that point.
    mine, expected = ([x for x, _ in itertools.groupby(path)] for path in paths)
    both = min(len(mine), len(expected))
    assert mine[:both] == pytest.approx(expected[:both], rel=1e-12, abs=1e-12)
    if len(paths[1]) < 200:
        assert ours == pytest.approx(float(theirs[0]), rel=1e-12, abs=1e-12)
    assert len(paths[0]) <= 202


def test_the_tolerances_end_the_search() -> None:
    calls: list[float] = []

    def parabola(x: float) -> float:
        calls.append(x)
        return (x - 3) ** 2

    assert minimum(parabola, 1.0, x_tolerance=1e-9, y_tolerance=1e-12) == pytest.approx(3, abs=1e-6)
    exact = len(calls)
    calls.clear()
    assert minimum(parabola, 1.0, x_tolerance=0.1, y_tolerance=0.1) == pytest.approx(3, abs=0.5)
    assert len(calls) < exact


# -- Student's t distribution against scipy ----------------------------------------------------------


stats = pytest.importorskip("scipy.stats", reason="scipy, what the distribution is compared with, is missing")
FREEDOM = st.floats(0.5, 1e5)


@given(st.floats(-200, 200), FREEDOM)
def test_p_values_are_those_of_scipy(t: float, freedom: float) -> None:
    assert student.p_value(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-7, abs=1e-12)


@given(st.floats(1e-5, 0.99), st.floats(1, 1e5))
def test_quantiles_are_those_of_scipy(alpha: float, freedom: float) -> None:
    assert student.quantile(alpha, freedom) == pytest.approx(stats.t.isf(alpha / 2, freedom), rel=1e-6)


def test_no_statistic_and_an_infinite_one() -> None:
    assert student.p_value(float("nan"), 3) == 1 and student.p_value(float("inf"), 3) == 0


# -- Order statistics of windows, against sorting each of them, and scipy's rank filter --------------


@given(st.lists(st.sampled_from([-1.5, 0.0, 1.0, 2.0]) | st.floats(allow_nan=False), min_size=1, max_size=40))
def test_every_place_of_every_window(values: list[float]) -> None:
    questions = [
        (first, end, place)
        for first in range(len(values))
        for end in range(first + 1, len(values) + 1)
        for place in range(end - first)
    ]
    first, end, place = np.array(questions, np.int32).T
    expected = [sorted(values[first:end])[place] for first, end, place in questions]
    assert OrderStatistics.of(np.array(values)).smallest(first, end, place).tolist() == expected


@pytest.mark.parametrize("width", [1, 2, 3, 64, 101, 999])
def test_medians_as_the_rank_filter_of_scipy(width: int) -> None:
    ndimage = pytest.importorskip("scipy.ndimage", reason="the oracle scipy is not installed")
    y = np.random.default_rng(width).integers(0, 300, 1000) / 7
    upper = ndimage.rank_filter(y, width // 2, size=width)
    lower = ndimage.rank_filter(y, (width - 1) // 2, size=width)
    found = rolling_median(OrderStatistics.of(y), width, AverageWindow())
    whole = ~np.isnan(found)
    assert whole.sum() == 1000 - width + 1
    assert found[whole].tolist() == ((upper + lower) / 2)[whole].tolist()
