"""The models of a profile as functions: their values, their intervals and their integrals.

A parametric model is its formula (manual 5.1.2). A regressogram is a step function with steps of equal width;
a moving average and a kernel regression are straight lines between their values. A profile does not keep the
x of these values: they are taken to be at equal distances over the interval of the model.

A model is one piece. A uid may have several, one for each part of its x, from the methods `bisection` and
`interval` of the regression analysis; each of them is a model of its own here, with its own interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perun.models.record import ModelRecord

Floats = NDArray[np.float64]

_STEPS: Final = "regressogram"
_POSITIVE: Final = ("logarithmic", "power")
"""Models that are defined for x > 0 only."""


def evaluate(record: ModelRecord, x: Floats) -> Floats:
    """The values of the model, shape (n,); NaN if it is not defined, and never a warning.

    A formula is also defined outside the interval that it was fitted on, a model of values is not. A value
    that is too large for a number is infinite.

    :param x: shape (n,), in any order.
    """
    x = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        if not record.is_parametric:
            return _steps(record, x) if record.type == _STEPS else _lines(record, x)
        formula = _FORMULAS.get(record.type)
        values = formula(record, x) if formula else np.full(x.shape, np.nan)
        if record.type in _POSITIVE:
            values = np.where(x > 0, values, np.nan)
    return values


def interval(record: ModelRecord) -> tuple[float, float] | None:
    """Where the model has values: its interval without the ends that it is not defined at; None if nowhere.

    Both bounds are infinite if a formula comes without an interval. That of a logarithmic or a power model
    starts at 0 at the least, though neither needs to have a value there.
    """
    start, end = record.x_start, record.x_end
    if record.is_parametric:
        start, end = (-math.inf if math.isnan(start) else start), (math.inf if math.isnan(end) else end)
        start = max(start, 0.0) if record.type in _POSITIVE else start
    elif record.type != _STEPS:
        x = _knots(record)[0]
        start, end = (float(x[0]), float(x[-1])) if x.size else (math.nan, math.nan)
    return (start, end) if start < end else None


def integral(record: ModelRecord, start: float, end: float) -> float:
    """The integral of the model from `start` to `end`; NaN if it is not defined on all of the way.

    That of a formula is closed; that of values is summed up by Simpson's rule on each step, or between each
    two neighbouring values, for which the rule is exact.
    """
    if not (math.isfinite(start) and math.isfinite(end)):
        return math.nan
    if start > end:
        return -integral(record, end, start)
    with np.errstate(all="ignore"):
        if not record.is_parametric:
            return _simpson(record, start, end)
        if record.type in _POSITIVE and start < 0:
            return math.nan
        closed = _INTEGRALS.get(record.type)
        try:
            return closed(record, start, end) if closed else math.nan
        except OverflowError:
            return math.inf


def _constant(record: ModelRecord, x: Floats) -> Floats:
    return np.full(x.shape, record.b0)


def _linear(record: ModelRecord, x: Floats) -> Floats:
    return record.b0 + record.b1 * x


def _quadratic(record: ModelRecord, x: Floats) -> Floats:
    return record.b0 + (record.b1 + record.b2 * x) * x


def _logarithmic(record: ModelRecord, x: Floats) -> Floats:
    return record.b0 + record.b1 * np.log(x)


def _power(record: ModelRecord, x: Floats) -> Floats:
    return np.asarray(record.b0 * np.power(x, record.b1))


def _exponential(record: ModelRecord, x: Floats) -> Floats:
    return np.asarray(record.b0 * np.power(record.b1, x))


_FORMULAS: Final[Mapping[str, Callable[[ModelRecord, Floats], Floats]]] = {
    "constant": _constant,
    "linear": _linear,
    "logarithmic": _logarithmic,
    "quadratic": _quadratic,
    "power": _power,
    "exponential": _exponential,
}
COEFFICIENTS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_FORMULAS, ("b0", "b1")),
    "constant": ("b0",),
    "quadratic": ("b0", "b1", "b2"),
}
"""The coefficients that each formula needs."""


def _steps(record: ModelRecord, x: Floats) -> Floats:
    """Steps include their left edge, the last one both."""
    start, end, values = record.x_start, record.x_end, np.asarray(record.values, np.float64)
    if not (values.size and start < end):
        return np.full(x.shape, np.nan)
    edges = np.linspace(start, end, values.size + 1)
    inside = (x >= start) & (x <= end)
    step = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, values.size - 1)
    return np.where(inside, values[step], np.nan)


def _lines(record: ModelRecord, x: Floats) -> Floats:
    knots, values = _knots(record)
    if not knots.size:
        return np.full(x.shape, np.nan)
    return np.interp(x, knots, values, left=np.nan, right=np.nan)


def _knots(record: ModelRecord) -> tuple[Floats, Floats]:
    """The x that the model has values at, and these; a moving average has none if its window was short."""
    values = np.asarray(record.values, np.float64)
    if not record.x_start < record.x_end or values.size < 2:
        return np.empty(0), np.empty(0)
    known = np.isfinite(values)
    return np.linspace(record.x_start, record.x_end, values.size)[known], values[known]


def _simpson(record: ModelRecord, start: float, end: float) -> float:
    whole = interval(record)
    if whole is None or not (record.values and whole[0] <= start and end <= whole[1]):
        return math.nan
    if record.type == _STEPS:
        knots = np.linspace(record.x_start, record.x_end, len(record.values) + 1)
    else:
        knots = _knots(record)[0]
    # Those outside become steps without a width.
    x = np.concatenate(([start], np.clip(knots, start, end), [end]))
    middle = evaluate(record, (x[:-1] + x[1:]) / 2)
    if record.type == _STEPS:  # its edges have the values of its middle
        return float(np.sum(np.diff(x) * middle))
    at = evaluate(record, x)
    return float(np.sum(np.diff(x) * (at[:-1] + 4 * middle + at[1:]) / 6))


def _integral_of_polynomial(record: ModelRecord, start: float, end: float) -> float:
    b1 = 0.0 if record.type == "constant" else record.b1
    b2 = record.b2 if record.type == "quadratic" else 0.0
    middle, half = (start + end) / 2, (end - start) / 2
    # Around the middle, where nothing is lost by taking large numbers from one another.
    return 2 * half * (record.b0 + (b1 + b2 * middle) * middle + b2 * half * half / 3)


def _integral_of_logarithmic(record: ModelRecord, start: float, end: float) -> float:
    def times_log(x: float) -> float:
        return x * math.log(x) if x else 0.0  # its limit

    width = end - start
    return (record.b0 - record.b1) * width + record.b1 * (times_log(end) - times_log(start))


def _integral_of_power(record: ModelRecord, start: float, end: float) -> float:
    exponent = record.b1 + 1
    if start == end:
        return 0.0
    if not start:
        return float(record.b0 * end**exponent) / exponent if exponent > 0 else math.nan
    # b0 (end^k - start^k) / k, also if k is 0 or next to it.
    width = math.log(end) - math.log(start)
    largest = float((end if exponent > 0 else start) ** exponent)
    return record.b0 * largest * _mean_decay(abs(exponent) * width) * width


def _integral_of_exponential(record: ModelRecord, start: float, end: float) -> float:
    if record.b1 <= 0:
        return math.nan
    largest = float(record.b1 ** (end if record.b1 > 1 else start))
    return record.b0 * largest * _mean_decay(abs(math.log(record.b1)) * (end - start)) * (end - start)


def _mean_decay(x: float) -> float:
    """The mean of e^-t from 0 to x, (1 - e^-x) / x, which is 1 at 0."""
    return -math.expm1(-x) / x if x else 1.0


_INTEGRALS: Final[Mapping[str, Callable[[ModelRecord, float, float], float]]] = {
    "constant": _integral_of_polynomial,
    "linear": _integral_of_polynomial,
    "quadratic": _integral_of_polynomial,
    "logarithmic": _integral_of_logarithmic,
    "power": _integral_of_power,
    "exponential": _integral_of_exponential,
}
