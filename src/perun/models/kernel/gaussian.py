"""Kernel regression with a Gaussian kernel, whose bandwidth is searched for, given, or made by a rule.

These are the modes `estimator-settings`, `user-selection` and `method-selection` of the manual (3.4).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from perun.models.kernel.bandwidth import Criterion, EstimatorSettings, Rule, best, rule_of_thumb
from perun.models.kernel.local import Regression, fitted
from perun.models.kernel.points import Floats, KernelEstimate, Points, finished, points_of
from perun.models.result import NoModel

__all__ = [
    "Criterion",
    "EstimatorSettings",
    "KernelEstimate",
    "Regression",
    "Rule",
    "estimator_settings",
    "method_selection",
    "user_selection",
]


_DEFAULTS = EstimatorSettings()


@np.errstate(all="ignore")
def estimator_settings(
    x: ArrayLike, y: ArrayLike, settings: EstimatorSettings = _DEFAULTS
) -> KernelEstimate | NoModel:
    """The estimate with the bandwidth that the settings lead to.

    The search takes some dozens of estimates of all points: of 2,000 points a tenth of a second, of 100,000
    with different x some seconds. A search in sub-samples (`efficient`) is another estimate of the bandwidth,
    but no quicker, as its time is of the order of n, too.

    :param x: shape (n,). :param y: shape (n,).
    """
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    points = points_of(xs, ys)
    if isinstance(points, NoModel):
        return points
    bandwidth = best(xs, ys, settings)
    return bandwidth if isinstance(bandwidth, NoModel) else _estimate(points, bandwidth, settings.regression)


@np.errstate(all="ignore")
def user_selection(
    x: ArrayLike, y: ArrayLike, bandwidth: float, regression: Regression = "ll"
) -> KernelEstimate | NoModel:
    """The estimate with the given bandwidth; so small a one that no other x has any weight gives means.

    :param x: shape (n,). :param y: shape (n,).
    """
    points = points_of(x, y)
    return points if isinstance(points, NoModel) else _estimate(points, bandwidth, regression)


@np.errstate(all="ignore")
def method_selection(
    x: ArrayLike, y: ArrayLike, rule: Rule = "scott", regression: Regression = "ll"
) -> KernelEstimate | NoModel:
    """The estimate with the bandwidth of a rule of thumb.

    :param x: shape (n,). :param y: shape (n,).
    """
    points = points_of(x, y)
    if isinstance(points, NoModel):
        return points
    return _estimate(points, rule_of_thumb(points.x[points.group], rule), regression)


def _estimate(points: Points, bandwidth: float, regression: Regression) -> KernelEstimate | NoModel:
    if not 0 < bandwidth < np.inf:
        return NoModel(f"its bandwidth would be {bandwidth:g}")
    values: Floats = fitted(points, bandwidth, regression)[0]
    return finished(points, values, bandwidth, correlation=True)
