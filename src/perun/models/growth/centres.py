"""Robust points of measurements over a size: one for each size, or for few sizes next to each other.

A median does not move when one call of hundreds is interrupted, and the median of a growing function's values
is its value at the median of the sizes, whatever the function: sizes may be put together.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

MAX_CENTRES: Final = 64
"""About as many points at most; more of them make no order of growth clearer."""
ENOUGH: Final = 5
"""Measurements of which a median ignores one or two that were disturbed."""
NEAR: Final = 1.5
"""Largest ratio of sizes that become one point because each of them has too few measurements."""
_TRUSTED: Final = 25
"""Measurements of a point from which on more do not count: what is left then is not their scatter."""
_SMALLEST: Final = 1e-9
"""Part of the largest value that smaller ones count as: of 0 no share can be taken."""
_LARGEST: Final = 1e70
"""What can be raised to the fourth power."""
_NORMAL_MAD: Final = 1.4826


class Centres(NamedTuple):
    """Points, by size.

    :param x: sizes, ascending, shape (k,). :param y: medians, shape (k,).
    :param weight: 1 / variance of each median up to a common factor, such that sum(weight y^2) = k; shape
        (k,).
    :param measurements: how many they are made of.
    """

    x: Floats
    y: Floats
    weight: Floats
    measurements: int

    @property
    def span(self) -> float:
        """The largest size by the smallest one; 0 if there is none."""
        return float(self.x[-1] / self.x[0]) if self.x.size else 0.0

    def within(self, low: float, high: float) -> Centres:
        """The points of sizes from `low` to `high`."""
        inside = (self.x >= low) & (self.x <= high)
        return self._replace(x=self.x[inside], y=self.y[inside], weight=self.weight[inside])


def centres(x: ArrayLike, y: ArrayLike) -> Centres:
    """Points of measurements; those whose size is not above 0 are left out, no order of growth is defined
    there, and those that are too large to be squared twice.

    The weights follow the variance function sigma = s |y|^theta with theta in [0, 1], estimated from the
    deviations within the points where these have enough measurements, else 1: run times scatter by a share
    of themselves. Source: R. J. Carroll and D. Ruppert, Transformation and Weighting in Regression, 1988,
    chapter 3 (the power of the mean).

    :param x: sizes, shape (n,), in any order. :param y: measurements, shape (n,); both finite.
    """
    size, value = np.asarray(x, np.float64), np.asarray(y, np.float64)
    usable = (size > 0) & (np.abs(value) < _LARGEST)
    size, value = size[usable], value[usable]
    if not size.size:
        return Centres(size, value, size, 0)
    order = np.argsort(size, kind="stable")
    size, value = size[order], value[order]
    starts = _starts(size)
    count = np.diff(np.append(starts, size.size))
    middle, median = _medians(size, starts, count), _medians(value, starts, count)
    deviation = np.abs(value - np.repeat(median, count))
    spread = _NORMAL_MAD * _medians(deviation, starts, count)
    return Centres(middle, median, _weights(median, spread, count.astype(np.float64)), size.size)


def _medians(values: Floats, starts: NDArray[np.intp], count: NDArray[np.intp]) -> Floats:
    """The median of each point, shape (k,)."""
    ordered = values[np.lexsort((values, np.repeat(np.arange(count.size), count)))]
    return np.asarray((ordered[starts + (count - 1) // 2] + ordered[starts + count // 2]) / 2)


def _starts(size: Floats) -> NDArray[np.intp]:
    """Where each point begins in the ascending sizes: equal sizes stay together."""
    first = np.flatnonzero(np.concatenate([[True], size[1:] != size[:-1]]))
    wanted = max(ENOUGH, size.size / MAX_CENTRES)
    starts = [0]
    for begin in first[1:].tolist():
        if begin - starts[-1] >= wanted or size[begin] > NEAR * size[starts[-1]]:
            starts.append(begin)
    return np.array(starts)


def _weights(y: Floats, spread: Floats, count: Floats) -> Floats:
    magnitude = np.abs(y)
    largest = float(magnitude.max())
    if largest < 1 / _LARGEST:
        return np.ones_like(y)
    magnitude = np.maximum(magnitude / largest, _SMALLEST)
    known = (count >= ENOUGH) & (spread > 0)
    theta = _theta(np.log(magnitude[known]), np.log(spread[known])) if known.sum() >= ENOUGH else 1.0
    weight = np.minimum(count, _TRUSTED) / magnitude ** (2 * theta)
    return np.asarray(weight * (y.size / float((weight * y * y).sum())))


def _theta(level: Floats, deviation: Floats) -> float:
    """The median of the slopes between all pairs (Theil and Sen), within [0, 1]; 1 if levels are equal."""
    rows, columns = np.triu_indices(level.size, 1)
    run = level[columns] - level[rows]
    apart = np.abs(run) > 0.1
    if not apart.any():
        return 1.0
    slopes = (deviation[columns] - deviation[rows])[apart] / run[apart]
    return min(1.0, max(0.0, float(np.median(slopes))))
