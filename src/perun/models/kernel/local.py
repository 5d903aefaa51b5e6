"""LocalMoments-constant (Nadaraya-Watson) and local-linear estimates with Gaussian weights.

Q. Li and J. S. Racine: Nonparametric Econometrics, 2007, sections 2.1 and 2.4. With weights K_j around x_i,

    local constant:  sum K_j y_j / sum K_j
    local linear:    a of the a and b that minimise sum K_j (y_j - a - b (x_j - x_i))^2

if those of the second have no unique solution, the one of least norm is taken, as by `pinv`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray

from perun.models.record import NoModel

# What every kernel regression starts and ends with: points by distinct x, and the finished estimate.

Floats = NDArray[np.float64]

_LARGEST: Final = 1e100
"""Beyond it, products of three values come near the largest floating-point number."""
_EQUAL_Y: Final = 1e-12
"""Relative difference up to which an estimate is the y that all points have."""


class KernelPoints(NamedTuple):
    """The points of one model, those of equal x together: most measurements repeat a few sizes many times.

    :param x: the distinct x, ascending, shape (m,).
    :param counts: how many points each of them has, shape (m,).
    :param total: the sum of their deviations from `mean`, shape (m,).
    :param group: the position in `x` of each point in ascending order of x, shape (n,).
    :param y: y of each point in that order, shape (n,).
    :param mean: mean of y.
    """

    x: Floats
    counts: Floats
    total: Floats
    group: NDArray[np.intp]
    y: Floats
    mean: float


class KernelEstimate(NamedTuple):
    """A finished model.

    :param x: x of all points, ascending, shape (n,).
    :param values: the estimate at each of them, shape (n,).
    :param bandwidth: the bandwidth that was used in the end; of a kernel ridge, gamma.
    :param r_square: the coefficient of determination.
    """

    x: Floats
    values: Floats
    bandwidth: float
    r_square: float


def points_of(x: ArrayLike, y: ArrayLike) -> KernelPoints | NoModel:
    """The points in ascending order of x, or why there can be no model of them.

    :param x: values of the independent variable, shape (n,); :param y: of the dependent one, shape (n,).
    """
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    trouble = _reason_against(xs, ys)
    if trouble:
        return NoModel(trouble)
    order = np.argsort(xs, kind="stable")
    xs, ys = xs[order], ys[order]
    starts = np.flatnonzero(np.concatenate(([True], xs[1:] != xs[:-1])))
    count = np.diff(np.append(starts, xs.size))
    mean = float(ys.mean())
    return KernelPoints(
        xs[starts],
        count.astype(np.float64),
        np.add.reduceat(ys - mean, starts),
        np.repeat(np.arange(starts.size), count),
        ys,
        mean,
    )


def windows(
    x: Floats, reach: float, rows: NDArray[np.intp], most: int, elements: int
) -> Iterator[tuple[slice, int, int]]:
    """Slices of `rows` that lie close together, each with the range of x that any of them reaches.

    Weights of rows and the x that these reach are then one rectangle, which is a product of matrices.

    :param x: ascending, shape (m,). :param rows: ascending positions in `x`.
    :param most: rows of a slice. :param elements: rows times x that a slice may reach, unless it has one row.
    """
    low = np.searchsorted(x, x[rows] - reach, side="left")
    high = np.searchsorted(x, x[rows] + reach, side="right")
    # Across a gap the rectangle would be mostly zeros.
    gaps = np.flatnonzero(np.diff(rows) > most) + 1
    start = 0
    for end in (*gaps.tolist(), rows.size):
        while start < end:
            stop = min(start + most, end)
            while stop - start > 1 and (stop - start) * (high[stop - 1] - low[start]) > elements:
                stop = (start + stop) // 2
            yield slice(start, stop), int(low[start]), int(high[stop - 1])
            start = stop


def _reason_against(x: Floats, y: Floats) -> str:
    """Why there can be no model of the points, as a clause; empty if there can be one."""
    if x.size < 2:
        return "it has one point only" if x.size else "it has no point"
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return "a value is not a finite number"
    if x.min() == x.max():
        return "all x are equal"
    if max(np.abs(x).max(), np.abs(y).max()) > _LARGEST:
        return f"a value is beyond {_LARGEST:g}"
    return ""


def finished(
    points: KernelPoints, values: Floats, bandwidth: float, *, correlation: bool = False
) -> KernelEstimate | NoModel:
    """The model of which `values` are the estimates at the distinct x.

    :param correlation: take the coefficient of determination for the squared correlation of y with the
        estimate, as Li and Racine do (Nonparametric Econometrics, 2007, section 2.5), not for 1 - SSE / SST.
    """
    if not (np.isfinite(values).all() and np.isfinite(bandwidth)):
        return NoModel(f"the estimate with bandwidth {bandwidth:g} is no finite number everywhere")
    estimate = values[points.group]
    fit = (_squared_correlation if correlation else _determination)(points.y, estimate)
    if not np.isfinite(fit):
        return NoModel(f"the estimate with bandwidth {bandwidth:g} is too far from the points")
    return KernelEstimate(points.x[points.group], estimate, float(bandwidth), fit)


def _determination(y: Floats, estimate: Floats) -> float:
    spread = float(np.square(y - y.mean()).sum())
    if y.min() == y.max() or not spread:
        return _equal_y(y, estimate)
    return 1 - float(np.square(y - estimate).sum()) / spread


def _squared_correlation(y: Floats, estimate: Floats) -> float:
    """The formula of both deviations from the mean of the estimate; 0 if the estimate is level."""
    mean = estimate.mean()
    of_y, of_estimate = y - mean, estimate - mean
    if y.min() == y.max():
        return _equal_y(y, estimate)
    # One norm after the other, as their product may be too large for floating point.
    lengths = float(np.linalg.norm(of_y)), float(np.linalg.norm(of_estimate))
    return min(1.0, float((of_y / lengths[0]) @ (of_estimate / lengths[1])) ** 2) if all(lengths) else 0.0


def _equal_y(y: Floats, estimate: Floats) -> float:
    return float(np.abs(estimate - y).max() <= _EQUAL_Y * np.abs(y).max())


# Sums of Gaussian weights around each distinct x, of which Gaussian kernel regression is made.
#
# For a bandwidth h and z = (x_j - x_i) / h the weight is exp(-z^2 / 2). All sums over j at all i need n^2
# weights. Here they cost of the order of n: the x-axis is cut into boxes of width h, the points of each box
# are replaced by their moments against Chebyshev polynomials, and the moments of near boxes are turned into a
# Chebyshev series of the sum in each box (Fong and Darve: The black-box fast multipole method, Journal of
# Computational Physics 228, 2009). As boxes have the width of the kernel, the matrices that do so are the
# same for all data and bandwidths. The error is of the order of rounding, compared with the sum of all
# weights; if an estimate hangs on much smaller weights, as at an outlier, or on the slope among points
# much closer together than h, they are added one by one.
#
# Memory: of the order of 1 KB for each distinct x, and some tens of MB for weights that are added one by one.

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


def moments_of_others(points: KernelPoints, bandwidth: float, slopes: bool) -> LocalMoments:
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


def _direct_sums(points: KernelPoints, bandwidth: float, rows: NDArray[np.intp]) -> LocalMoments:
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


def _box_sums(points: KernelPoints, place: Floats) -> LocalMoments:
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


Regression = Literal["ll", "lc"]

_SINGULAR: Final = 1e-15
"""Ratio of singular values from which on `numpy.linalg.pinv` takes a matrix for singular."""
_ILL_CONDITIONED: Final = 1e-6
"""Variance of z, as a share of its mean square, below which the slope is undetermined."""


def fitted(points: KernelPoints, bandwidth: float, regression: Regression) -> tuple[Floats, Floats]:
    """The estimate at each distinct x, and the sum of the weights it is made of; both of shape (m,)."""
    local = moments_of_others(points, bandwidth, regression == "ll")
    own = points.total / points.counts
    values = _local_estimate(local, points.counts, own, bandwidth, points.mean, regression)
    return values, local.weight + points.counts


def leave_one_out(points: KernelPoints, bandwidth: float, regression: Regression) -> Floats:
    """The estimate for each point that is made of all points but itself; shape (n,).

    Where no other point has any weight, it is NaN for `lc`, and 0, the solution of least norm, for `ll`.
    """
    distinct = moments_of_others(points, bandwidth, regression == "ll")
    local = LocalMoments(*(values[points.group] for values in distinct))
    own = points.counts[points.group] - 1
    sums = points.total[points.group] - (points.y - points.mean)
    mean = np.where(own > 0, sums / np.maximum(own, 1), 0)
    return _local_estimate(local, own, mean, bandwidth, points.mean, regression)


def _local_estimate(
    local: LocalMoments, own: Floats, own_y: Floats, bandwidth: float, offset: float, regression: Regression
) -> Floats:
    """The estimate from the other points and the `own` ones at x_i, whose mean y is `own_y`."""
    weight = local.weight + own
    share = local.weight / np.where(weight > 0, weight, 1)
    y = share * local.y + (1 - share) * own_y + offset
    if regression == "lc":
        return np.where(weight > 0, y, np.nan)
    # Mean, variance and covariance of two groups of points, the others and the own ones at z = 0, from those
    # of the groups: no sum is made twice, and no large ones are subtracted.
    apart = share * (1 - share)
    z = share * local.z
    variance = share * local.variance + apart * local.z**2
    covariance = share * local.covariance + apart * local.z * (local.y - own_y)
    slope = covariance / np.where(variance > 0, variance, 1)
    least = _least_norm(y, z, variance, covariance, bandwidth)
    values = np.where(_singular(variance, z, bandwidth), least, y - z * slope)
    return np.where(weight > 0, values, 0)


def _in_units_of_x(variance: Floats, bandwidth: float) -> Floats:
    # The square of the bandwidth itself may be beyond all floats.
    return np.square(bandwidth * np.sqrt(variance))


def _largest(variance: Floats, z: Floats, bandwidth: float) -> Floats:
    """The larger eigenvalue of the matrix [[1, m], [m, v + m^2]] of the mean m and the variance v of x."""
    mean = bandwidth * z
    square = _in_units_of_x(variance, bandwidth) + mean**2
    return (1 + square + np.hypot(1 - square, 2 * mean)) / 2


def _singular(variance: Floats, z: Floats, bandwidth: float) -> NDArray[np.bool_]:
    # The second condition keeps large units of x, in which the first one always holds, from mattering.
    determinant = _in_units_of_x(variance, bandwidth)
    return (determinant <= _SINGULAR * _largest(variance, z, bandwidth) ** 2) & (
        variance <= _ILL_CONDITIONED * (variance + z**2)
    )


def _least_norm(y: Floats, z: Floats, variance: Floats, covariance: Floats, bandwidth: float) -> Floats:
    mean = bandwidth * z
    product = bandwidth * (z * y + covariance)
    return (y + mean * product) / _largest(variance, z, bandwidth) ** 2
