"""Kernel regression with a Gaussian kernel, ridge regression, and kernel smoothing (manual 3.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perun.models.kernel.local import (
    Floats,
    KernelEstimate,
    KernelPoints,
    Regression,
    finished,
    fitted,
    leave_one_out,
    points_of,
    windows,
)
from perun.models.record import NoModel

# Bandwidths of kernel regression: rules of thumb, and the search for the best one (manual 3.4).
#
# A = min(standard deviation, interquartile range / 1.349) of x; n is the number of points.

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


def search(points: KernelPoints, settings: EstimatorSettings) -> float:
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


def _widest_gap(points: KernelPoints) -> float:
    """The largest distance of a single point to its nearest neighbour."""
    gaps = np.diff(points.x)
    nearest = np.minimum(np.append(gaps, np.inf), np.insert(gaps, 0, np.inf))
    return float(np.where(points.counts > 1, 0, nearest).max())


def cross_validation(points: KernelPoints, bandwidth: float, regression: Regression) -> float:
    """CV(h): the mean square error if each point is estimated from all others; NaN if one cannot be."""
    return float(np.mean(np.square(points.y - leave_one_out(points, bandwidth, regression))))


def aic(points: KernelPoints, bandwidth: float, regression: Regression) -> float:
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


_CRITERIA: Final[dict[str, Callable[[KernelPoints, float, Regression], float]]] = {
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


# Kernel regression with a Gaussian kernel, whose bandwidth is searched for, given, or made by a rule.
#
# These are the modes `estimator-settings`, `user-selection` and `method-selection` of the manual (3.4).

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
    return (
        bandwidth
        if isinstance(bandwidth, NoModel)
        else _gaussian_estimate(points, bandwidth, settings.regression)
    )


@np.errstate(all="ignore")
def user_selection(
    x: ArrayLike, y: ArrayLike, bandwidth: float, regression: Regression = "ll"
) -> KernelEstimate | NoModel:
    """The estimate with the given bandwidth; so small a one that no other x has any weight gives means.

    :param x: shape (n,). :param y: shape (n,).
    """
    points = points_of(x, y)
    return points if isinstance(points, NoModel) else _gaussian_estimate(points, bandwidth, regression)


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
    return _gaussian_estimate(points, rule_of_thumb(points.x[points.group], rule), regression)


def _gaussian_estimate(
    points: KernelPoints, bandwidth: float, regression: Regression
) -> KernelEstimate | NoModel:
    if not 0 < bandwidth < np.inf:
        return NoModel(f"its bandwidth would be {bandwidth:g}")
    values: Floats = fitted(points, bandwidth, regression)[0]
    return finished(points, values, bandwidth, correlation=True)


# Gaussian kernel whose width is chosen from a range (manual 3.4, mode `kernel-ridge`).
#
# The estimate is Nadaraya and Watson's with the kernel exp(-gamma (x - x_i)^2), as the manual defines it: the
# name of the mode notwithstanding, no ridge penalty is involved.


@np.errstate(all="ignore")
def ridge(x: ArrayLike, y: ArrayLike, gammas: Sequence[float]) -> KernelEstimate | NoModel:
    """The estimate with that gamma, above 0, which has the least mean square error in leave-one-out.

    Of equally good ones the first is taken. One that leaves a point without neighbours is no candidate.

    :param x: shape (n,). :param y: shape (n,).
    """
    points = points_of(x, y)
    if isinstance(points, NoModel):
        return points
    errors = [leave_one_out_error(points, gamma) for gamma in gammas]
    if not errors or not np.isfinite(min(errors)):
        return NoModel("with every gamma of the range, some x is too far from all others")
    gamma = gammas[int(np.argmin(errors))]
    return finished(points, fitted(points, _bandwidth(gamma), "lc")[0], gamma)


def leave_one_out_error(points: KernelPoints, gamma: float) -> float:
    """Mean square error if each point is estimated from all others; infinite if one cannot be."""
    error = float(np.mean(np.square(points.y - leave_one_out(points, _bandwidth(gamma), "lc"))))
    return error if np.isfinite(error) else np.inf


def _bandwidth(gamma: float) -> float:
    """The h of exp(-z^2 / 2), z = (x - x_i) / h, that is exp(-gamma (x - x_i)^2)."""
    return float((2 * gamma) ** -0.5)


# Kernel smoothing: five kernels, and three ways to use them (manual 3.4, mode `kernel-smoothing`).
#
# With weights K((x_j - x_i) / h) around x_i, the estimate is their weighted mean of y (spatial average), or
# the constant term of the line (local linear, with normal weights only) or of the polynomial of order q in
# x_j - x_i (local polynomial) that minimises the weighted sum of squares (J. Fan and I. Gijbels: LocalMoments
# Polynomial Modelling and Its Applications, 1996, section 3.1).
#
# Kernels of finite support are stretched to variance 1, so that a bandwidth means about the same for all of
# them; those of order 4, whose variance is 0, are as they are. Factors are left out, as they cancel.

Method = Literal["spatial-average", "local-linear", "local-polynomial"]

_ELEMENTS: Final = 1 << 18
"""Weights of one block, 2 MB; :data:`_ROWS` distinct x at most."""
_ROWS: Final = 256
_ILL_CONDITIONED: Final = 1e10
"""Condition number from which on normal equations, which square it, lose more than half of the digits."""
_INSIDE: Final = 1.01
"""By how much of its reach the outermost neighbour is inside, so that its weight is not next to 0."""
_FACTORS: Final[dict[str, float]] = {"scott": 1.0, "silverman": (4 / 3) ** 0.2}


class Kernel(NamedTuple):
    """A kernel.

    :param weights: of z = (x_j - x_i) / h.
    :param reach: weights of a larger |z| are 0, or vanish in floating point beside that of x_i itself.
    :param fit_reach: weights of a smaller |z| are large enough to fit a polynomial.
    :param positive: whether no weight is below 0.
    """

    weights: Callable[[Floats], Floats]
    reach: float
    fit_reach: float
    positive: bool


def _normal(z: Floats) -> Floats:
    return np.exp(-0.5 * z * z)


def _epanechnikov(z: Floats) -> Floats:
    return np.maximum(1 - z * z / 5, 0)


def _tricube(z: Floats) -> Floats:
    part: Floats = np.maximum(1 - np.abs(z / _TRICUBE) ** 3, 0)
    return part * part * part


def _normal4(z: Floats) -> Floats:
    return (3 - z * z) * np.exp(-0.5 * z * z)


def _epanechnikov4(z: Floats) -> Floats:
    return np.where(np.abs(z) <= 1, 9 - 15 * z * z, 0)


_TRICUBE: Final = (243 / 35) ** 0.5
KERNELS: Final[Mapping[str, Kernel]] = {
    "epanechnikov": Kernel(_epanechnikov, 5**0.5, 5**0.5 / _INSIDE, True),
    "tricube": Kernel(_tricube, _TRICUBE, _TRICUBE / _INSIDE, True),
    "normal": Kernel(_normal, 9.0, 6.0, True),
    "epanechnikov4": Kernel(_epanechnikov4, 1.0, 1.0, False),
    "normal4": Kernel(_normal4, 9.5, 6.0, False),
}
"""The kernels by the names of the manual."""


@np.errstate(all="ignore")
def smoothing(
    x: ArrayLike,
    y: ArrayLike,
    kernel: str = "epanechnikov",
    method: Method = "spatial-average",
    bandwidth: float | Rule = "scott",
    order: int = 3,
) -> KernelEstimate | NoModel:
    """The smoothed y.

    It takes of the order of n times the points within reach of one; weights are made in blocks of 2 MB.
    A bandwidth within whose reach some x has not enough neighbours for a local polynomial is replaced by
    the smallest one that will do.

    :param x: shape (n,). :param y: shape (n,).
    :param kernel: one of :data:`KERNELS`; for `local-linear` it is always `normal`.
    :param bandwidth: itself, or the rule that makes it, see :func:`spread_rule`.
    :param order: of the local polynomial, at least 1.
    """
    points = points_of(x, y)
    if isinstance(points, NoModel):
        return points
    size = spread_rule(points, bandwidth) if isinstance(bandwidth, str) else bandwidth
    if not 0 < size < np.inf:
        return NoModel(f"its bandwidth would be {size:g}")
    if method == "local-linear":
        return finished(points, fitted(points, size, "ll")[0], size)
    if method == "spatial-average":
        return finished(points, _spatial_average(points, size, KERNELS[kernel]), size)
    if points.x.size <= order:
        return NoModel(f"a local polynomial of order {order} needs more than {order} different x")
    size = max(size, _widest_neighbourhood(points.x, order) / KERNELS[kernel].fit_reach)
    return finished(points, _local_polynomial(points, size, KERNELS[kernel], order), size)


def spread_rule(points: KernelPoints, rule: Rule) -> float:
    """Scott's sigma n^(-1/5), or Silverman's sigma (3 n / 4)^(-1/5), for a kernel of variance 1."""
    deviation = float(np.std(points.x[points.group], ddof=1))
    return _FACTORS[rule] * deviation * bandwidth_rate(points.y.size)


def _blocks(x: Floats, reach: float) -> Iterator[tuple[slice, slice]]:
    """Slices of the distinct x, each with the slice of those that any of its x reaches."""
    for rows, low, high in windows(x, reach, np.arange(x.size), _ROWS, _ELEMENTS):
        yield rows, slice(low, high)


def _spatial_average(points: KernelPoints, bandwidth: float, kernel: Kernel) -> Floats:
    values = np.empty(points.x.size)
    for rows, near in _blocks(points.x, bandwidth * kernel.reach):
        weights = kernel.weights((points.x[near] - points.x[rows, None]) / bandwidth)
        values[rows] = (weights @ points.total[near]) / (weights @ points.counts[near])
    return values + points.mean


def _local_polynomial(points: KernelPoints, bandwidth: float, kernel: Kernel, order: int) -> Floats:
    """By the normal equations; if these are ill-conditioned, by an orthogonal decomposition."""
    values = np.empty(points.x.size)
    powers = np.arange(order + 1)
    for rows, near in _blocks(points.x, bandwidth * kernel.reach):
        z = (points.x[near] - points.x[rows, None]) / bandwidth
        weights = kernel.weights(z)
        # Up to 1, so that powers of z neither overflow nor vanish.
        z /= kernel.reach
        moments, products = _moments(z, weights, points.counts[near], points.total[near], order)
        matrices = moments[:, powers[:, None] + powers]
        # Ones on the diagonal lower the condition number; kernels of order 4 may have moments below 0.
        scale = np.sqrt(np.abs(np.diagonal(matrices, axis1=1, axis2=2)))
        scale[scale == 0] = 1
        matrices = matrices / (scale[:, :, None] * scale[:, None, :])
        # Only the constant term is wanted, whose scale is divided out last.
        solution = np.linalg.pinv(matrices, hermitian=True) @ (products / scale)[:, :, None]
        values[rows] = solution[:, 0, 0] / scale[:, 0]
        if kernel.positive:
            for row in np.flatnonzero(~(np.linalg.cond(matrices) < _ILL_CONDITIONED)):
                values[rows.start + row] = _least_squares(z[row], weights[row], points, near, order)
    return values + points.mean


def _moments(z: Floats, weights: Floats, count: Floats, total: Floats, order: int) -> tuple[Floats, Floats]:
    """Sums of weights count z^k for k to 2 order, and of weights total z^k for k to order."""
    moments, products = np.empty((z.shape[0], 2 * order + 1)), np.empty((z.shape[0], order + 1))
    factor = weights.copy()
    for power in range(2 * order + 1):
        moments[:, power] = factor @ count
        if power <= order:
            products[:, power] = factor @ total
        factor *= z
    return moments, products


def _least_squares(z: Floats, weights: Floats, points: KernelPoints, near: slice, order: int) -> float:
    root = np.sqrt(weights * points.counts[near])
    design = np.vander(z, order + 1, increasing=True) * root[:, None]
    solution = np.linalg.lstsq(design, root * points.total[near] / points.counts[near])[0]
    return float(solution[0])


def _widest_neighbourhood(x: Floats, neighbours: int) -> float:
    """The largest distance from a distinct x to the last of so many nearest ones of the others."""
    # The nearest ones and x itself are neighbours in order: take the best of all such runs that hold x.
    nearest = np.full(x.size, np.inf)
    position = np.arange(x.size)
    for before in range(neighbours + 1):
        first = position - before
        possible = np.flatnonzero((first >= 0) & (first + neighbours < x.size))
        left = x[possible] - x[first[possible]]
        right = x[first[possible] + neighbours] - x[possible]
        nearest[possible] = np.minimum(nearest[possible], np.maximum(left, right))
    return float(nearest.max())
