"""Deviations from means, and lines over two variables, that stay exact for any finite numbers.

The deviations are taken in two passes with a correction (Chan, Golub and LeVeque: Algorithms for Computing
the Sample Variance, The American Statistician 37, 1983), after a division by a power of two where squares
could overflow.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BLOCK: Final = 1 << 16
_SMALL: Final = 2.0**-250
_LARGE: Final = 2.0**250


class Column(NamedTuple):
    """A variable divided by two to the power of `exponent`; `square` is the sum of squared deviations."""

    deviations: Floats
    mean: float
    exponent: int
    square: float


class Line(NamedTuple):
    """A line over two columns, in the units of the columns."""

    intercept: float
    slope: float
    r_square: float


def column(values: Floats) -> Column:
    """The column of finite values, shape (n,), n > 0."""
    low, high = float(values.min()), float(values.max())
    largest = max(-low, high)
    exponent = 0 if _SMALL < largest < _LARGE or not largest else math.frexp(largest)[1]
    if exponent:
        values = np.ldexp(values, -exponent)
    if low == high:
        return Column(np.zeros_like(values), float(values[0]), exponent, 0.0)
    mean = float(values.mean())
    deviations = values - mean
    correction = float(deviations.mean())
    deviations -= correction
    return Column(deviations, mean + correction, exponent, dot(deviations, deviations))


def line_over(x: Column, y: Column) -> Line:
    """The line by least squares; :param x: not all equal."""
    if not y.square:
        return Line(y.mean, 0.0, 0.0)
    product = dot(x.deviations, y.deviations)
    slope = product / x.square
    correlation = product / math.sqrt(x.square) / math.sqrt(y.square)
    # Two points fit any line, which says nothing about the model.
    r_square = correlation * correlation if len(x.deviations) > 2 else 0.0
    return Line(y.mean - slope * x.mean, slope, r_square)


def dot(one: Floats, other: Floats) -> float:
    """The sum of products, in blocks that stay in the cache; pairwise sums do not depend on the machine."""
    count = len(one)
    if count <= _BLOCK:
        return float((one * other).sum())
    starts = range(0, count, _BLOCK)
    return math.fsum(
        float((one[start : start + _BLOCK] * other[start : start + _BLOCK]).sum()) for start in starts
    )
