"""Clusters of amounts: against the definition written as a loop, and on whatever amounts there may be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.models.clusters import Window, sliding_window, sort_order

FINITE = st.lists(st.integers(-50, 50).map(lambda number: number / 4), max_size=40)
ANY = st.lists(st.floats() | st.sampled_from([0.0, -0.0, 1.0, 1e308, -1e308, 5e-324]), max_size=40)
WINDOWS = st.builds(
    Window,
    st.floats(0, 1e308) | st.integers(0, 9).map(float) | st.sampled_from([0.01, 0.1, 0.5]),
    st.sampled_from(["absolute", "relative", "weighted"]),
    st.floats(0, 1e308) | st.sampled_from([0.01, 0.1, 1.0]),
    st.sampled_from(["absolute", "relative"]),
)


def array(values: list[float]) -> np.ndarray:
    return np.array(values, dtype=float)


def slid(values: list[float], *window: float | str) -> list[int]:
    return sliding_window(array(values), Window(*window)).tolist()


def by_definition(amounts: list[float], window: Window) -> list[int]:
    """The same with a loop over the amounts, and nothing computed beforehand."""
    clusters = [0] * len(amounts)
    number, taken, first = 0, [], math.nan
    for position in sorted(range(len(amounts)), key=amounts.__getitem__):
        amount = amounts[position]
        reach = abs(first) * window.height if window.height_kind == "relative" else window.height
        used = len({*taken, amount}) if window.width_kind == "weighted" else len(taken) + 1
        width = window.width * len(amounts) if window.width_kind == "relative" else window.width
        if not taken or used > width or amount > first + reach:
            number, taken, first = number + 1, [], amount
        taken.append(amount)
        clusters[position] = number
    return clusters


def test_sort_order_is_the_rank() -> None:
    assert sort_order(array([3, 1, 2])).tolist() == [3, 1, 2]
    assert sort_order(array([5, 5, 1, 5])).tolist() == [2, 3, 1, 4]
    assert sort_order(array([math.nan, 0, -1])).tolist() == [3, 2, 1]
    assert sort_order(array([])).tolist() == []


@pytest.mark.parametrize(
    ("window", "clusters"),
    [
        # The example of the manual: of 100 and a height of 0.1, everything from 100 to 110.
        ((9, "absolute", 0.1, "relative"), [1, 1, 1, 2, 3]),
        ((2, "absolute", 0.1, "relative"), [1, 1, 2, 2, 3]),
        ((9, "absolute", 10, "absolute"), [1, 1, 1, 2, 3]),
        ((9, "absolute", 11, "absolute"), [1, 1, 1, 1, 2]),
        ((9, "absolute", 1000, "absolute"), [1, 1, 1, 1, 1]),
        ((0.4, "relative", 1000, "absolute"), [1, 1, 2, 2, 3]),
        ((0.6, "relative", 1000, "absolute"), [1, 1, 1, 2, 2]),
        ((0.01, "relative", 1000, "absolute"), [1, 2, 3, 4, 5]),
        ((0, "absolute", 1000, "absolute"), [1, 2, 3, 4, 5]),
    ],
)
def test_width_and_height(window: tuple[float, str, float, str], clusters: list[int]) -> None:
    assert slid([100, 104, 110, 111, 300], *window) == clusters


def test_weighted_width_takes_all_occurrences() -> None:
    amounts = [1, 1, 1, 2, 3, 3, 9]
    assert slid(amounts, 1, "weighted", 100, "absolute") == [1, 1, 1, 2, 3, 3, 4]
    assert slid(amounts, 0.01, "weighted", 100, "absolute") == [1, 1, 1, 2, 3, 3, 4]
    assert slid(amounts, 2, "weighted", 100, "absolute") == [1, 1, 1, 1, 2, 2, 2]
    assert slid(amounts, 2, "weighted", 5, "absolute") == [1, 1, 1, 1, 2, 2, 3]


def test_zero_and_negative_amounts() -> None:
    assert slid([0, 0, 1], 9, "absolute", 0.5, "relative") == [1, 1, 2]
    assert slid([-100, -91, -90, -89], 9, "absolute", 0.1, "relative") == [1, 1, 1, 2]


def test_rounding_does_not_move_the_edge() -> None:
    for first in (0.3, 0.7, 1.1, 2.3, 100.1, 1e-9, 1e17):
        for height in (0.1, 0.2, 0.7):
            highest = float(f"{first * (1 + height):.15g}")
            assert slid([first, highest], 9, "absolute", height, "relative") == [1, 1]
    # 29 % of 100 is 29, although 0.29 * 100 is a little less.
    assert slid([1.0] * 100, 0.29, "relative", 1, "absolute").count(1) == 29


def test_amounts_that_are_no_number_come_last() -> None:
    nan = math.nan
    assert slid([nan, 1, nan, 5], 1, "absolute", 1, "absolute") == [3, 1, 3, 2]
    assert slid([nan, nan], 1, "relative", 1, "relative") == [1, 1]
    assert slid([], 1, "relative", 1, "relative") == []


@given(FINITE, WINDOWS)
def test_as_defined(amounts: list[float], window: Window) -> None:
    # Sizes that no rounding can move across an edge.
    exact = window._replace(
        width=max(1, math.floor(min(window.width, 50))), height=math.floor(min(window.height, 9)) / 2
    )
    assert sliding_window(array(amounts), exact).tolist() == by_definition(amounts, exact)


@pytest.mark.filterwarnings("error")
@given(ANY, WINDOWS)
def test_any_amounts_get_clusters_from_1_without_gaps(amounts: list[float], window: Window) -> None:
    for clusters in (sliding_window(array(amounts), window), sort_order(array(amounts))):
        assert clusters.shape == (len(amounts),)
        assert set(clusters.tolist()) == set(range(1, clusters.max(initial=0) + 1))
        ascending = clusters[np.argsort(array(amounts), kind="stable")]
        assert (np.diff(ascending) >= 0).all()
