"""Regressogram: a step function over buckets of equal width (manual 5.1.4).

The number of buckets is that of :func:`numpy.histogram_bin_edges`. Its rules are written down here once
more, because numpy makes the edges at once, of which an outlier can demand more than fit into the memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.models.points import Floats, r_square, scaled, usable
from perun.models.record import NoModel

MAX_BUCKETS: Final = 1_000_000
"""Buckets that a model may have; more of them would be empty, and the profile hundreds of megabytes."""


class Regressogram(NamedTuple):
    """Buckets of equal width that cover the interval from `x_start` to `x_end`.

    :param stats: the value in each bucket, 0 if it has no point, shape (buckets,).
    :param r_square: coefficient of determination of the step function.
    """

    stats: Floats
    x_start: float
    x_end: float
    r_square: float


def regressogram(
    x: Floats, y: Floats, buckets: int | str = "doane", statistic: str = "mean"
) -> Regressogram | NoModel:
    """The mean or the median of y in each bucket of x; a bucket includes its left edge, the last one both.

    :param x: shape (n,). :param y: shape (n,). :param buckets: their number, or one of :data:`METHODS`.
    :param statistic: `mean` or `median`.
    """
    points = usable(x, y)
    if isinstance(points, NoModel):
        return points
    x, y = points
    # The rules are ratios of lengths on the x-axis, so that a scale does not change them.
    unit_x, (unit_y, exponent) = scaled(x)[0], scaled(y)
    wanted = buckets if isinstance(buckets, int) else _number_of_buckets(unit_x, METHODS[buckets])
    if not wanted <= MAX_BUCKETS:
        return NoModel(f"it would get {wanted:.3g} buckets, more than {MAX_BUCKETS}")
    number = int(wanted)
    edges = np.linspace(unit_x[0], unit_x[-1], number + 1)
    bucket = np.minimum(np.searchsorted(edges, unit_x, side="right") - 1, number - 1)
    stats = (_medians if statistic == "median" else _means)(bucket, unit_y, number)
    fit = r_square(unit_y, stats[bucket])
    return Regressogram(np.ldexp(stats, exponent), float(x[0]), float(x[-1]), fit)


def _means(bucket: NDArray[np.intp], y: Floats, number: int) -> Floats:
    counts = np.bincount(bucket, minlength=number)
    means = np.bincount(bucket, weights=y, minlength=number) / np.maximum(counts, 1)
    # Only rounding can lead out of the range; the mean of equal values shall be that value.
    return np.where(counts, np.clip(means, y.min(), y.max()), 0.0)


def _medians(bucket: NDArray[np.intp], y: Floats, number: int) -> Floats:
    # Sorted by bucket, then by y, each bucket is a slice, whose middle is its median.
    ascending = y[np.lexsort((y, bucket))]
    counts = np.bincount(bucket, minlength=number)
    filled = np.flatnonzero(counts)
    count = counts[filled]
    begin = np.cumsum(count) - count
    medians = np.zeros(number)
    medians[filled] = (ascending[begin + (count - 1) // 2] + ascending[begin + count // 2]) / 2
    return medians


def _number_of_buckets(x: Floats, width_of: Callable[[Floats], float]) -> float:
    """The number of buckets as a whole or an infinite number; x is in ascending order and scaled."""
    width = width_of(x)
    if not width > 0:
        return 1
    number = float(_extent(x)) / float(width)
    return number if math.isinf(number) else math.ceil(number)


def _extent(x: Floats) -> float:
    return float(x[-1] - x[0])


def _sqrt(x: Floats) -> float:
    return _extent(x) / math.sqrt(x.size)


def _sturges(x: Floats) -> float:
    """H. A. Sturges: The choice of a class interval. JASA 21 (1926)."""
    return _extent(x) / float(np.log2(x.size) + 1.0)


def _rice(x: Floats) -> float:
    return float(_extent(x) / (2.0 * x.size ** (1.0 / 3)))


def _scott(x: Floats) -> float:
    """D. W. Scott: On optimal and data-based histograms. Biometrika 66 (1979)."""
    return float((24.0 * np.pi**0.5 / x.size) ** (1.0 / 3.0) * np.std(x))


def _fd(x: Floats) -> float:
    """D. Freedman, P. Diaconis: On the histogram as a density estimator. Z. Wahrsch. 57 (1981)."""
    upper, lower = np.percentile(x, [75, 25])
    return float(2.0 * (upper - lower) * x.size ** (-1.0 / 3.0))


def _auto(x: Floats) -> float:
    """The smaller width of Sturges and of Freedman and Diaconis, the latter at least half of `sqrt`."""
    return min(max(_fd(x), _sqrt(x) / 2), _sturges(x))


def _doane(x: Floats) -> float:
    """D. P. Doane: Aesthetic frequency classifications. The American Statistician 30 (1976)."""
    deviation = np.std(x)
    if x.size <= 2 or not deviation > 0:
        return 0.0
    skewness = np.mean(((x - np.mean(x)) / deviation) ** 3)
    error = np.sqrt(6.0 * (x.size - 2) / ((x.size + 1.0) * (x.size + 3)))
    return float(_extent(x) / (1.0 + np.log2(x.size) + np.log2(1.0 + np.absolute(skewness) / error)))


def _stone(x: Floats) -> float:
    """C. J. Stone: An asymptotically optimal histogram selection rule. Berkeley Conference (1984)."""
    extent = _extent(x)

    def loss(number: int) -> float:
        edges = np.linspace(x[0], x[-1], number + 1)
        positions = np.searchsorted(x, edges[:-1])  # of the first point in each bucket
        shares = np.diff(positions, append=x.size) / x.size
        return float((2 - (x.size + 1) * np.square(shares).sum()) / (extent / number))

    return extent / min(range(1, max(100, math.isqrt(x.size)) + 1), key=loss)


METHODS: Final[Mapping[str, Callable[[Floats], float]]] = {
    "auto": _auto,
    "doane": _doane,
    "fd": _fd,
    "rice": _rice,
    "scott": _scott,
    "sqrt": _sqrt,
    "stone": _stone,
    "sturges": _sturges,
}
"""Width of a bucket by the method's name; 0 if the data give none, which makes one bucket."""
