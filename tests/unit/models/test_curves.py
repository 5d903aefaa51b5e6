"""Models as functions: values, intervals, and integrals against sums of many small steps."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from perun.models.curves import evaluate, integral, interval
from perun.models.record import ModelRecord
from perun.profile.records import record_of

FORMULAS = ("constant", "linear", "logarithmic", "quadratic", "power", "exponential")


def formula(kind: str, *coefficients: float, start: Any = 1, end: Any = 100) -> ModelRecord:
    values = [{"name": f"b{number}", "value": value} for number, value in enumerate(coefficients)]
    model = {"uid": "f", "model": kind, "method": "full", "r_square": 1.0, "coeffs": values}
    return record_of(model | {"x_start": start, "x_end": end})


def of_values(kind: str, values: list[float | None], start: float = 0, end: float = 4) -> ModelRecord:
    key = "kernel_stats" if kind == "kernel_regression" else "bucket_stats"
    return record_of(
        {"uid": "f", "model": kind, "r_square": 1.0, key: values, "x_start": start, "x_end": end}
    )


def at(record: ModelRecord, *x: float) -> list[float]:
    return evaluate(record, np.array(x, np.float64)).tolist()


@pytest.mark.parametrize(("record", "x", "y"), [
    (formula("constant", 7, 0), 3, 7),
    (formula("linear", 1, 2), 3, 7),
    (formula("logarithmic", 1, 2), math.e**3, 7),
    (formula("quadratic", 1, 2, 3), 4, 57),
    (formula("power", 2, 3), 10, 2000),  # at x, not at log10 x
    (formula("exponential", 3, 2), 5, 96),
])  # fmt: skip
def test_formulas(record: ModelRecord, x: float, y: float) -> None:
    assert at(record, x) == pytest.approx([y])


@pytest.mark.parametrize("kind", ["logarithmic", "power"])
def test_not_defined_from_zero_downwards(kind: str) -> None:
    record = formula(kind, 2, 3, start=-5)
    assert np.isnan(at(record, -1, 0)).all() and interval(record) == (0, 100)
    assert math.isnan(integral(record, -1, 2))


def test_no_warnings_and_no_wrong_numbers() -> None:
    assert at(formula("exponential", 1, 1e10), 1e10) == [math.inf]
    assert np.isnan(at(formula("power", 1, -2), 0)).all() and np.isnan(at(formula("strange", 1, 2), 1)).all()
    assert integral(formula("exponential", 1, 1e10), 0, 1e10) == math.inf
    assert math.isnan(integral(formula("strange", 1, 2), 1, 2))


def test_regressogram_is_a_step_function() -> None:
    record = of_values("regressogram", [1, 2, 0, 4])
    assert at(record, 0, 0.99, 1, 2.5, 3, 4) == [1, 1, 2, 0, 4, 4]
    assert np.isnan(at(record, -0.01, 4.01)).all() and interval(record) == (0, 4)
    assert integral(record, 0, 4) == 7 and integral(record, 0.5, 3.25) == pytest.approx(0.5 + 2 + 1)
    assert math.isnan(integral(record, 0, 4.5))


@pytest.mark.parametrize("kind", ["moving_average", "kernel_regression"])
def test_other_values_are_joined_by_lines(kind: str) -> None:
    record = of_values(kind, [1, 3, 2, 2, 4])
    assert at(record, 0, 0.5, 1, 3.75, 4) == [1, 2, 3, 3.5, 4]
    assert np.isnan(at(record, -0.01, 4.01)).all()
    assert integral(record, 0, 4) == pytest.approx(2 + 2.5 + 2 + 3)
    assert integral(record, 0.5, 1) == pytest.approx(1.25)


def test_a_moving_average_starts_where_its_window_is_full() -> None:
    record = of_values("moving_average", [None, 3, None, 2, math.nan])
    assert interval(record) == (1, 3) and at(record, 1, 2, 3) == [3, 2.5, 2]
    assert np.isnan(at(record, 0.5, 3.5)).all()
    assert integral(record, 1, 3) == pytest.approx(5)
    assert interval(of_values("moving_average", [None, 3, None])) is None
    assert np.isnan(at(of_values("moving_average", [None]), 1)).all()


COEFFICIENT = st.floats(0.01, 100)
X = st.floats(0, 50)


@given(st.sampled_from(FORMULAS), COEFFICIENT, st.floats(-3, 3), st.floats(-2, 2), X, X)
def test_closed_integrals(kind: str, b0: float, b1: float, b2: float, one: float, other: float) -> None:
    start, end = sorted((one, other))
    b1 = 2.0 ** (b1 / 4) if kind == "exponential" else b1
    assume(end - start > 1e-3)
    if kind == "power" and b1 < 0:
        start, end = start + 1, end + 1
    record = formula(kind, b0, b1, b2)
    x = np.linspace(start, end, 20_001)
    width = x[1] - x[0]
    sums = float(np.sum(evaluate(record, x[:-1] + width / 2)) * width)
    scale = float(np.sum(np.abs(evaluate(record, x[:-1] + width / 2))) * width)
    assert integral(record, start, end) == pytest.approx(sums, rel=1e-3, abs=2e-3 * scale)
    assert integral(record, end, start) == -integral(record, start, end)


@given(COEFFICIENT, st.floats(1, 50), st.floats(-1e-9, 1e-9))
def test_integral_of_the_power_minus_one(b0: float, start: float, near: float) -> None:
    expected = b0 * math.log((start + 10) / start)
    assert integral(formula("power", b0, -1 + near), start, start + 10) == pytest.approx(expected, rel=1e-6)


@given(st.sampled_from(FORMULAS), COEFFICIENT, COEFFICIENT, st.floats(0, 10), st.floats(0, 10))
def test_integrals_add_up(kind: str, b0: float, b1: float, one: float, other: float) -> None:
    record = formula(kind, b0, min(b1, 10), 1)
    low, high = sorted((one, other))
    parts = integral(record, low, high) + integral(record, high, 10)
    scale = abs(integral(record, 0, 10)) + 1
    assert parts == pytest.approx(integral(record, low, 10), rel=1e-9, abs=1e-9 * scale)


def test_integral_over_many_magnitudes() -> None:
    assert integral(formula("power", 2, 2), 1e-300, 3) == pytest.approx(18)
    assert integral(formula("power", 2, 2), 0, 3) == pytest.approx(18)
    assert math.isnan(integral(formula("power", 2, -1), 0, 3))
    assert integral(formula("logarithmic", 5, 1), 0, 1) == pytest.approx(4)
    assert integral(formula("exponential", 2, 1), 0, 3) == pytest.approx(6)
    assert integral(formula("exponential", 1, 0.5), 0, 5000) == pytest.approx(1 / math.log(2))
