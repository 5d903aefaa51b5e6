"""Sums of Gaussian weights around each distinct x, of which Gaussian kernel regression is made.

For a bandwidth h and z = (x_j - x_i) / h the weight is exp(-z^2 / 2). All sums over j at all i need n^2
weights. Here they cost of the order of n: the x-axis is cut into boxes of width h, the points of each box
are replaced by their moments against Chebyshev polynomials, and the moments of near boxes are turned into a
Chebyshev series of the sum in each box (Fong and Darve: The black-box fast multipole method, Journal of
Computational Physics 228, 2009). As boxes have the width of the kernel, the matrices that do so are the
same for all data and bandwidths. The error is of the order of rounding, compared with the sum of all
weights; if an estimate hangs on much smaller weights, as at an outlier, or on the slope among points
much closer together than h, they are added one by one.

Memory: of the order of 1 KB for each distinct x, and some tens of MB for weights that are added one by one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from perun.models.kernel.points import Floats, Points, windows

_ORDER: Final = 18
"""Chebyshev polynomials in a box: the series of exp(-z^2 / 2) z^2 over one unit of z is exact to 1e-16."""
_BOXES: Final = 10
"""Boxes to each side that count: weights beyond are less than 1e-21."""
_DIRECT_UP_TO: Final = 64
"""Number of distinct x up to which summing over all pairs takes less time than the boxes do."""
_MAX_BOXES: Final = 2.0**53
"""Beyond it the numbers of neighbouring boxes are the same floating-point number."""
_UNDERFLOW: Final = 38.7
"""Weights at that many bandwidths and more are 0 in floating point."""
_MIN_WEIGHT: Final = 0.1
"""A sum of weights below it has lost digits: the boxes are exact to 1e-16 of the sum of all that is near."""
_MIN_VARIANCE: Final = 1e-8
"""A variance of z below it is mostly what is left of rounding by the subtraction of the squared mean."""
_MIN_SPREAD: Final = 0.01
"""Share of the mean square of z that its variance needs, for the same reason."""
_ROWS: Final = 64
_ELEMENTS: Final = 1 << 20
"""Weights that are in memory at a time: 8 MB."""


class LocalMoments(NamedTuple):
    """Weighted moments of the points with another x than x_i, for each distinct x_i; all of shape (m,).

    :param weight: their sum of weights; if it is 0 the others are 0, too.
    :param z: their mean z; :param y: their mean deviation of y from the mean of all.
    :param variance: the mean square of z about its mean.
    :param covariance: the mean product of z and y about their means.
    """

    weight: Floats
    z: Floats
    y: Floats
    variance: Floats
    covariance: Floats


def moments_of_others(points: Points, bandwidth: float, slopes: bool) -> LocalMoments:
    """Weighted moments of all points with another x, around each distinct x.

    :param bandwidth: h, above 0.
    :param slopes: whether more than `weight` and `y` will be used.
    """
    boxes = (points.x - points.x[0]) / bandwidth
    if points.x.size <= _DIRECT_UP_TO or not boxes[-1] < _MAX_BOXES:
        return _direct_sums(points, bandwidth, np.arange(points.x.size))
    local = _box_sums(points, boxes)
    own = points.counts - 1
    reliable = local.weight + own > _MIN_WEIGHT
    if slopes:
        reliable &= _slopes_are_reliable(local, own)
    doubtful = np.flatnonzero(~reliable)
    if doubtful.size:
        exact = _direct_sums(points, bandwidth, doubtful)
        for values, right in zip(local, exact, strict=True):
            values[doubtful] = right
    return local


def _slopes_are_reliable(local: LocalMoments, own: Floats) -> NDArray[np.bool_]:
    """Where rounding errors, which are those of numbers of size 1, are small compared with the variance.

    :param own: weight of the points at x_i themselves, of which one is left out.
    """
    share = local.weight / (local.weight + own)
    variance = local.variance + (1 - share) * local.z**2
    return (share * variance > _MIN_VARIANCE) & (variance > _MIN_SPREAD * (local.variance + local.z**2))


def _direct_sums(points: Points, bandwidth: float, rows: NDArray[np.intp]) -> LocalMoments:
    """The moments at the distinct x of these positions, weight by weight."""
    local = LocalMoments(*(np.zeros(rows.size) for _ in LocalMoments._fields))
    for part, low, high in windows(points.x, bandwidth * _UNDERFLOW, rows, _ROWS, _ELEMENTS):
        z = (points.x[low:high] - points.x[rows[part], None]) / bandwidth
        # z of a point far outside may be so large that its square, times a weight of 0, is no number.
        np.clip(z, -_UNDERFLOW, _UNDERFLOW, out=z)
        kernel = np.exp(-0.5 * z * z)
        # The points at x_i itself are no others.
        kernel[np.arange(z.shape[0]), rows[part] - low] = 0
        count, total = points.counts[low:high], points.total[low:high]
        weight = kernel @ count
        scale = np.where(weight > 0, weight, 1)
        mean_z, mean_y = ((kernel * z) @ count) / scale, (kernel @ total) / scale
        # From here on z is counted from its mean: differences of large sums would lose digits.
        z -= mean_z[:, None]
        kernel *= z
        local.weight[part], local.z[part], local.y[part] = weight, mean_z, mean_y
        local.variance[part] = ((kernel * z) @ count) / scale
        local.covariance[part] = (kernel @ total - mean_y * (kernel @ count)) / scale
    return local


def _box_sums(points: Points, place: Floats) -> LocalMoments:
    """The moments by way of boxes; `place` is x in bandwidths, counted from the first one."""
    box = place.astype(np.intp)
    # Each point in its own box, which the polynomials see as -1 to 1.
    series = np.asarray(chebyshev.chebvander(2 * (place - box) - 1, _ORDER - 1), np.float64)
    sums = _sums(series, box, points.counts, points.total)
    # A point at x_i weighs 1 and has z = 0, so that these leave the first and the fourth sum only.
    weight = sums[0] - points.counts
    scale = np.where(weight > 0, weight, 1)
    z, y = sums[1] / scale, (sums[3] - points.total) / scale
    return LocalMoments(np.maximum(weight, 0), z, y, sums[2] / scale - z**2, sums[4] / scale - z * y)


def _sums(series: Floats, box: NDArray[np.intp], counts: Floats, total: Floats) -> Floats:
    """Sums over all points of counts K, counts z K, counts z^2 K, total K and total z K; shape (5, m)."""
    # x ascends: points of one box lie side by side, and empty boxes, which may be most, take no room.
    first = np.concatenate(([True], box[1:] != box[:-1]))
    starts, series_of = np.flatnonzero(first), np.cumsum(first) - 1
    filled = box[starts]
    charge_of_counts, charge_of_total = (
        np.add.reduceat(series * values[:, None], starts) for values in (counts, total)
    )
    of_counts, of_total = np.zeros((filled.size, 3 * _ORDER)), np.zeros((filled.size, 2 * _ORDER))
    for offset, matrix in enumerate(_translations(), -_BOXES):
        source = np.searchsorted(filled, filled + offset)
        target = np.flatnonzero(filled.take(source, mode="clip") == filled + offset)
        source = source[target]
        of_counts[target] += charge_of_counts[source] @ matrix
        of_total[target] += charge_of_total[source] @ matrix[:, : 2 * _ORDER]
    sums = np.empty((5, box.size))
    # In pieces, as the coefficients of each point's box are copied: 18 numbers for a point.
    for part in range(0, box.size, _ELEMENTS // _ORDER):
        rows = slice(part, part + _ELEMENTS // _ORDER)
        for position in range(5):
            coefficients = of_counts if position < 3 else of_total
            column = position % 3 * _ORDER
            near = coefficients[series_of[rows], column : column + _ORDER]
            np.einsum("ij,ij->i", series[rows], near, out=sums[position, rows])
    return sums


@lru_cache(maxsize=1)
def _translations() -> Floats:
    """For each offset of boxes: moments of the source, times this, are the series of K, z K and z^2 K.

    Shape (2 _BOXES + 1, _ORDER, 3 _ORDER).
    """
    # Values at the Chebyshev nodes make the coefficients of a series by a discrete cosine transform, of which
    # the first coefficient gets half.
    nodes = chebyshev.chebpts1(_ORDER)
    to_series = chebyshev.chebvander(nodes, _ORDER - 1) * (2 / _ORDER)
    to_series[:, 0] /= 2
    matrices = np.empty((2 * _BOXES + 1, _ORDER, 3 * _ORDER))
    for number in range(2 * _BOXES + 1):
        z = (nodes[:, None] - nodes) / 2 + (number - _BOXES)
        kernel = np.exp(-0.5 * z * z)
        for power in range(3):
            matrices[number, :, power * _ORDER : (power + 1) * _ORDER] = (
                to_series.T @ (kernel * z**power) @ to_series
            )
    return matrices
