"""Order statistics of windows, against sorting each of them, and scipy's rank filter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.models.rolling import OrderStatistics, Window, rolling_median


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
    found = rolling_median(OrderStatistics.of(y), width, Window())
    whole = ~np.isnan(found)
    assert whole.sum() == 1000 - width + 1
    assert found[whole].tolist() == ((upper + lower) / 2)[whole].tolist()
