"""LocalMoments-constant (Nadaraya-Watson) and local-linear estimates with Gaussian weights.

Q. Li and J. S. Racine: Nonparametric Econometrics, 2007, sections 2.1 and 2.4. With weights K_j around x_i,

    local constant:  sum K_j y_j / sum K_j
    local linear:    a of the a and b that minimise sum K_j (y_j - a - b (x_j - x_i))^2

if those of the second have no unique solution, the one of least norm is taken, as by `pinv`.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from perun.models.kernel.points import Floats, Points
from perun.models.kernel.sums import LocalMoments, moments_of_others

Regression = Literal["ll", "lc"]

_SINGULAR: Final = 1e-15
"""Ratio of singular values from which on `numpy.linalg.pinv` takes a matrix for singular."""
_ILL_CONDITIONED: Final = 1e-6
"""Variance of z, as a share of its mean square, below which the slope is undetermined."""


def fitted(points: Points, bandwidth: float, regression: Regression) -> tuple[Floats, Floats]:
    """The estimate at each distinct x, and the sum of the weights it is made of; both of shape (m,)."""
    local = moments_of_others(points, bandwidth, regression == "ll")
    own = points.total / points.counts
    values = _estimate(local, points.counts, own, bandwidth, points.mean, regression)
    return values, local.weight + points.counts


def leave_one_out(points: Points, bandwidth: float, regression: Regression) -> Floats:
    """The estimate for each point that is made of all points but itself; shape (n,).

    Where no other point has any weight, it is NaN for `lc`, and 0, the solution of least norm, for `ll`.
    """
    distinct = moments_of_others(points, bandwidth, regression == "ll")
    local = LocalMoments(*(values[points.group] for values in distinct))
    own = points.counts[points.group] - 1
    sums = points.total[points.group] - (points.y - points.mean)
    mean = np.where(own > 0, sums / np.maximum(own, 1), 0)
    return _estimate(local, own, mean, bandwidth, points.mean, regression)


def _estimate(
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
