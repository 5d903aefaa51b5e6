"""Bandwidths of kernel regression: rules of thumb, and the search for the best one (manual 3.4).

A = min(standard deviation, interquartile range / 1.349) of x; n is the number of points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.models.kernel.local import Floats, Points, Regression, fitted, leave_one_out, points_of
from perun.models.record import NoModel

# The search for a minimum downhill, without derivatives, in one dimension.

_STEP: Final = 0.05
_STEP_FROM_ZERO: Final = 0.00025
"""Where the second point is, as a share of the first one: customary, as in MATLAB's fminsearch."""


def minimum(
    function: Callable[[float], float],
    start: float,
    *,
    x_tolerance: float = 1e-4,
    y_tolerance: float = 1e-4,
    evaluations: int = 1000,
) -> float:
    """A place where the function has a local minimum, by Nelder and Mead's method.

    J. C. Lagarias et al.: Convergence properties of the Nelder-Mead simplex method in low dimensions, SIAM
    Journal on Optimization 9, 1998, with its coefficients: reflection 1, expansion 2, contraction 1/2. In one
    dimension a simplex is a pair of points, and the worse one moves.

    :param function: its value at `start` is not NaN; a point where it is is worse than any other.
    :param x_tolerance: absolute; the search ends when the points are this near and
    :param y_tolerance: the values too.
    :param evaluations: calls of the function at which it ends at the latest, but for a step that has begun.
    """
    calls = 0

    def valued(x: float) -> tuple[float, float]:
        nonlocal calls
        calls += 1
        value = function(x)
        return value, x

    best, worst = valued(start), valued(start * (1 + _STEP) if start else _STEP_FROM_ZERO)
    while True:
        if worst[0] < best[0]:
            best, worst = worst, best
        near = abs(worst[1] - best[1]) <= x_tolerance and abs(worst[0] - best[0]) <= y_tolerance
        if near or calls >= evaluations:
            return best[1]
        worst = _moved(valued, best, worst)


def _moved(
    valued: Callable[[float], tuple[float, float]], best: tuple[float, float], worst: tuple[float, float]
) -> tuple[float, float]:
    """What takes the place of the worse point."""

    def beyond(share: float) -> tuple[float, float]:
        """The point behind the best one, by a share of the distance of the worse one."""
        return valued((1 + share) * best[1] - share * worst[1])

    reflected = beyond(1)
    if reflected[0] < best[0]:
        return min(reflected, beyond(2), key=_value)
    if reflected[0] < worst[0]:
        contracted = beyond(0.5)
        if contracted[0] <= reflected[0]:
            return contracted
    # In one dimension the contraction inside and the simplex that shrinks are the same point: the middle.
    return beyond(-0.5)


def _value(point: tuple[float, float]) -> float:
    return point[0]


Criterion = Literal["cv_ls", "aic"]
Rule = Literal["scott", "silverman"]

_NORMAL_IQR: Final = 1.349
"""Interquartile range of a normal distribution in standard deviations, as the manual rounds it."""
_TOLERANCE: Final = 1e-4
"""Of bandwidth and criterion, as scipy's `fmin` has it, which statsmodels searches with."""


class EstimatorSettings(NamedTuple):
    """How the best bandwidth is looked for; the names and meanings are those of the manual.

    :param seed: of the random numbers for `randomize`, so that the same data give the same model.
    """

    regression: Regression = "ll"
    criterion: Criterion = "cv_ls"
    efficient: bool = False
    randomize: bool = False
    n_sub_samples: int = 50
    n_re_samples: int = 25
    return_median: bool = False
    seed: int = 0


def rule_of_thumb(x: Floats, rule: Rule) -> float:
    """Scott's 1.059 A n^(-1/5), or Silverman's 0.9 A n^(-1/5) (B. W. Silverman: Density Estimation, 1986).

    Where half of the points have the same x, so that their interquartile range is 0, A is the deviation.
    """
    upper, lower = np.percentile(x, (75, 25))
    spread = _robust_spread(float(np.std(x, ddof=1)), float(upper - lower) / _NORMAL_IQR)
    return {"scott": 1.059, "silverman": 0.9}[rule] * spread * bandwidth_rate(x.size)


def bandwidth_rate(number: int) -> float:
    """n^(-1/5), in proportion to which the best bandwidth shrinks with the number n of points."""
    return float(number**-0.2)


def best(x: Floats, y: Floats, settings: EstimatorSettings) -> float | NoModel:
    """The bandwidth that the settings lead to.

    :param x: shape (n,), in the order of measurement, in which sub-samples are cut; :param y: shape (n,).
    """
    if not settings.efficient:
        points = points_of(x, y)
        return points if isinstance(points, NoModel) else search(points, settings)
    parts = _sub_samples(x.size, settings)
    scales = [scale for part in parts if (scale := _scale(x[part], y[part], settings))]
    if not scales:
        return NoModel(f"no sub-sample of {settings.n_sub_samples} points has a bandwidth")
    middle = np.median(scales) if settings.return_median else np.mean(scales)
    return float(middle) * _dispersion(x) * bandwidth_rate(x.size)


def search(points: Points, settings: EstimatorSettings) -> float:
    """The bandwidth at which the criterion has a minimum, found downhill from the normal reference.

    Nelder and Mead's method from 1.06 sigma n^(-1/5) on, with the tolerances that statsmodels has too, which
    are absolute; if x has so small a unit that they would end the search at once, the tolerance
    is a hundredth of the start.
    """
    # The bandwidth that is best for normally distributed x (Silverman 1986).
    start = 1.06 * float(np.std(points.x[points.group])) * bandwidth_rate(points.y.size)
    criterion = _CRITERIA[settings.criterion]
    if not np.isfinite(criterion(points, start, settings.regression)):
        # Some point has no neighbour at this bandwidth; at a tenth of the widest gap its weight is no 0.
        start = max(start, _widest_gap(points) / 10)
        if not np.isfinite(criterion(points, start, settings.regression)):
            return start

    def objective(bandwidth: float) -> float:
        size = abs(bandwidth)  # weights are those of the square, so both signs mean the same
        return criterion(points, size, settings.regression) if 0 < size < np.inf else np.nan

    tolerance = min(_TOLERANCE, 1e-2 * start)
    return abs(minimum(objective, start, x_tolerance=tolerance, y_tolerance=_TOLERANCE))


def _widest_gap(points: Points) -> float:
    """The largest distance of a single point to its nearest neighbour."""
    gaps = np.diff(points.x)
    nearest = np.minimum(np.append(gaps, np.inf), np.insert(gaps, 0, np.inf))
    return float(np.where(points.counts > 1, 0, nearest).max())


def cross_validation(points: Points, bandwidth: float, regression: Regression) -> float:
    """CV(h): the mean square error if each point is estimated from all others; NaN if one cannot be."""
    return float(np.mean(np.square(points.y - leave_one_out(points, bandwidth, regression))))


def aic(points: Points, bandwidth: float, regression: Regression) -> float:
    """AIC_c(h) of Hurvich, Simonoff and Tsai (JRSS B 60, 1998); the trace is that of the `lc` weights.

    It is infinite if the trace is n - 2 or more, beyond which the formula would praise an estimate that
    goes through all points.
    """
    values, weights = fitted(points, bandwidth, regression)
    error = np.mean(np.square(points.y - values[points.group]))
    trace, number = float(np.sum(points.counts / weights)), points.y.size
    if trace + 2 >= number:
        return np.inf
    return float(np.log(error)) + (1 + trace / number) / (1 - (trace + 2) / number)


_CRITERIA: Final[dict[str, Callable[[Points, float, Regression], float]]] = {
    "cv_ls": cross_validation,
    "aic": aic,
}


def _sub_samples(number: int, settings: EstimatorSettings) -> Iterator[NDArray[np.intp]]:
    size, everything = settings.n_sub_samples, np.arange(number)
    if not settings.randomize:
        for start in range(0, number, size):
            yield everything[start : start + size]
        return
    generator = np.random.default_rng(settings.seed)
    for _ in range(settings.n_re_samples):
        generator.shuffle(everything)
        yield everything[:size]


def _scale(x: Floats, y: Floats, settings: EstimatorSettings) -> float:
    """The bandwidth of a sub-sample, divided by its dispersion and rate; 0 if it has none."""
    points = points_of(x, y)
    if isinstance(points, NoModel):
        return 0
    unit = _dispersion(x) * bandwidth_rate(settings.n_sub_samples)
    scale = search(points, settings) / unit if unit else 0
    return scale if np.isfinite(scale) else 0


def _dispersion(x: Floats) -> float:
    """A of the sub-samples: with the deviation of a population and quantiles at 0.4 + 0.2 p + n p."""
    ascending = np.sort(x)
    upper, lower = _quantile(ascending, 0.75), _quantile(ascending, 0.25)
    return _robust_spread(float(np.std(x)), (upper - lower) / _NORMAL_IQR)


def _quantile(ascending: Floats, p: float) -> float:
    """R. J. Hyndman and Y. Fan: Sample Quantiles in Statistical Packages, 1996, with Cunnane's 0.4."""
    place = min(max(ascending.size * p + 0.4 + 0.2 * p, 1), ascending.size)
    below = min(int(place), ascending.size - 1)
    return float(ascending[below - 1] + (place - below) * (ascending[below] - ascending[below - 1]))


def _robust_spread(deviation: float, from_quartiles: float) -> float:
    return min(deviation, from_quartiles) if from_quartiles > 0 else deviation
