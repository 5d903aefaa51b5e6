"""Student's t distribution against scipy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.models import student

stats = pytest.importorskip("scipy.stats", reason="scipy, what the distribution is compared with, is missing")
FREEDOM = st.floats(0.5, 1e5)


@given(st.floats(-200, 200), FREEDOM)
def test_p_values_are_those_of_scipy(t: float, freedom: float) -> None:
    assert student.p_value(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-7, abs=1e-12)


@given(st.floats(1e-5, 0.99), st.floats(1, 1e5))
def test_quantiles_are_those_of_scipy(alpha: float, freedom: float) -> None:
    assert student.quantile(alpha, freedom) == pytest.approx(stats.t.isf(alpha / 2, freedom), rel=1e-6)


def test_no_statistic_and_an_infinite_one() -> None:
    assert student.p_value(float("nan"), 3) == 1
    assert student.p_value(float("inf"), 3) == 0
