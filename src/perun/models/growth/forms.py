"""Least squares of y = c0 + c1 f(n) for the usual orders of growth, and their comparison on one scale.

The scale is Akaike's information criterion with the correction for few points, AICc. It counts what a form
leaves unexplained and how many coefficients it takes for that; a coefficient of determination does neither
fairly across forms.

Sources: K. P. Burnham and D. R. Anderson, Model Selection and Multimodel Inference, 2nd ed. 2002, sections
2.2 to 2.4 (AICc; for least squares it is N ln(RSS / N) + 2 K + 2 K (K + 1) / (N - K - 1)); N. R. Draper and
H. Smith, Applied Regression Analysis, 3rd ed. 1998, section 9.2 (weights).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perun.models import student

# Robust points of measurements over a size: one for each size, or for few sizes next to each other.
#
# A median does not move when one call of hundreds is interrupted, and the median of a growing function's
# values is its value at the median of the sizes, whatever the function: sizes may be put together.

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


Floats = NDArray[np.float64]

CONSTANT: Final = "1"
POWER: Final = "n^b"
"""The form whose exponent is a coefficient, see :mod:`perun.models.growth.forms`."""
EVIDENCE: Final = 10.0
"""Difference of AICc above which the worse model has essentially no support (Burnham and Anderson, 2.6)."""
_LARGEST_POWER_OF_TWO: Final = 64
"""Size up to which 2^n is an order of growth that somebody waited for."""
_RESOLUTION: Final = 1e-10
"""Mean weighted square that counts as no error: 1e-5 of the values."""


class GrowthForm(NamedTuple):
    """f(n), and the sizes up to which it is considered."""

    values: Callable[[Floats], Floats]
    up_to: float = math.inf


FORMS: Final[Mapping[str, GrowthForm]] = {
    "log n": GrowthForm(np.log),
    "n": GrowthForm(lambda n: n),
    "n log n": GrowthForm(lambda n: n * np.log(n)),
    "n^2": GrowthForm(lambda n: n**2),
    "n^3": GrowthForm(lambda n: n**3),
    "2^n": GrowthForm(np.exp2, _LARGEST_POWER_OF_TWO),
}
"""The orders that grow, the slowest first; :data:`CONSTANT` comes before them."""


class LinearForm(NamedTuple):
    """y = c0 + c1 f.

    :param rss: weighted sum of the squared residuals, at least what is taken for no error.
    :param variances: of c0, of both together, and of c1; in the units of a residual variance of 1.
    :param points: how many were fitted.
    """

    c0: float
    c1: float
    rss: float
    variances: tuple[float, float, float]
    points: int

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the residuals."""
        return self.points - (1 if self.variances[2] == 0 else 2)


def estimate(
    points: Centres, f: Floats, fitted: LinearForm, combination: tuple[float, float]
) -> tuple[float, float]:
    """a0 c0 + a1 c1 of a fit, and its variance: the larger one of that which the weights give and of HC3,
    which holds also if the weights are wrong.

    Source: J. G. MacKinnon and H. White, Some Heteroskedasticity-Consistent Covariance Matrix Estimators with
    Improved Finite Sample Properties, J. Econometrics 29, 1985.

    :param f: the form that was fitted at the sizes, shape (k,), zeros for a constant.
    :param combination: a0 and a1.
    """
    a0, a1 = combination
    v00, v01, v11 = fitted.variances
    usual = fitted.rss / max(fitted.freedom, 1) * (a0 * a0 * v00 + 2 * a0 * a1 * v01 + a1 * a1 * v11)
    residual = points.y - fitted.c0 - fitted.c1 * f
    leverage = points.weight * (v00 + 2 * f * v01 + f * f * v11)
    effect = points.weight * (a0 * (v00 + f * v01) + a1 * (v01 + f * v11))
    consistent = float(((effect * residual / np.maximum(1 - leverage, 1e-3)) ** 2).sum())
    return a0 * fitted.c0 + a1 * fitted.c1, max(usual, consistent)


def floor(points: Centres) -> float:
    """The sum of squares that is taken for no error."""
    return points.x.size * _RESOLUTION


def constant(points: Centres) -> LinearForm:
    """y = c0, the weighted mean; :param points: at least one."""
    total = float(points.weight.sum())
    c0 = float((points.weight * points.y).sum()) / total
    rss = float((points.weight * (points.y - c0) ** 2).sum())
    return LinearForm(c0, 0.0, max(rss, floor(points)), (1 / total, 0.0, 0.0), points.x.size)


def line(points: Centres, f: Floats) -> LinearForm | None:
    """y = c0 + c1 f; None if that is not defined, or does not grow.

    :param f: values of the form at the sizes, shape (k,).
    """
    found = any_line(points, f)
    return found if found is not None and found.c1 > 0 else None


def any_line(points: Centres, f: Floats) -> LinearForm | None:
    """y = c0 + c1 f, also one that falls; None if f is the same everywhere, or too large for a number."""
    weight, total = points.weight, float(points.weight.sum())
    with np.errstate(all="ignore"):
        mean_f, mean_y = float((weight * f).sum()) / total, float((weight * points.y).sum()) / total
        df, dy = f - mean_f, points.y - mean_y
        square = float((weight * df * df).sum())
    if not 0 < square < math.inf:
        return None
    c1 = float((weight * df * dy).sum()) / square
    rss = float((weight * (dy - c1 * df) ** 2).sum())
    variances = 1 / total + mean_f**2 / square, -mean_f / square, 1 / square
    return LinearForm(mean_y - c1 * mean_f, c1, max(rss, floor(points)), variances, points.x.size)


def lines(points: Centres) -> dict[str, LinearForm]:
    """All forms that can be fitted, by name; :data:`CONSTANT` always is one."""
    found = {CONSTANT: constant(points)}
    for name, form in FORMS.items():
        if points.x[-1] <= form.up_to:
            with np.errstate(over="ignore"):
                values = form.values(points.x)
            fitted = line(points, values)
            if fitted is not None:
                found[name] = fitted
    return found


def misfit(rss: float, points: int) -> float:
    """-2 ln(likelihood) of normal residuals whose variance is estimated, without what all forms share."""
    return points * math.log(rss / points)


def aicc(deviance: float, points: int, parameters: int) -> float:
    """AICc of a fit with so many parameters, that of the variance included; infinite if points are too
    few for them."""
    left = points - parameters - 1
    return deviance + 2 * parameters * points / left if left > 0 else math.inf


def criterion(rss: float, points: int, parameters: int) -> float:
    """AICc of a fit by its weighted sum of squared residuals."""
    return aicc(misfit(rss, points), points, parameters)


def choose(criteria: Mapping[str, float], level: str) -> str:
    """The form of the lowest AICc; the level one, unless there is :data:`EVIDENCE` against it.

    A function that does not grow is the usual case, and noise makes some growing form fit it a little better.

    :param criteria: AICc by form. :param level: the name of the form that does not grow.
    """
    best = min(criteria, key=criteria.__getitem__)
    return best if criteria[best] < criteria.get(level, math.inf) - EVIDENCE else level


# y = c0 + c1 n^b with an exponent that is estimated, and which differences of two exponents are possible.
#
# For each b of a grid the rest is a straight line, so the residuals are known as a function of b: its
# profile. It is fitted as c0 + c1 (n^b - 1) / b, which is the same family and goes on through b = 0, the
# logarithm (G. E. P. Box and D. R. Cox, An Analysis of Transformations, J. R. Stat. Soc. B 26, 1964). Bounds
# are where the profile has risen too far: D. M. Bates and D. G. Watts, Nonlinear Regression Analysis, 1988,
# section 6.1 (profile t).

STEP: Final = 0.025
GRID: Final[Floats] = np.arange(-40.0, 241.0, dtype=np.float64) * STEP
"""The exponents considered, -1 (it levels off) to 6."""
FINE: Final[Floats] = np.arange(-400.0, 2401.0, dtype=np.float64) * (STEP / 10)
"""The same closer together, for counts: of what does not scatter, a grid is all that an interval would be."""
_DIFFERENCES: Final[Floats] = np.arange(1.0 - GRID.size, GRID.size, dtype=np.float64) * STEP
_NORMAL: Final = NormalDist()


class ResidualProfile(NamedTuple):
    """The weighted sum of squared residuals at each exponent, shape (g,). :param at: the exponents."""

    rss: Floats
    points: int
    at: Floats = GRID

    @property
    def best(self) -> float:
        """The exponent that fits best."""
        return float(self.at[np.argmin(self.rss)])

    def rise(self, alpha: float) -> Floats:
        """How much worse each exponent fits than the best, as the square of a standard normal quantile would
        be: the squared t of each exponent, shrunk so that both have the same quantile at `alpha`."""
        freedom = max(self.points - 3, 1)
        squared = freedom * (self.rss / self.rss.min() - 1)
        shrunk = _NORMAL.inv_cdf(1 - alpha / 2) / student.quantile(alpha, freedom)
        return np.asarray(squared * shrunk**2)


class ExponentDifference(NamedTuple):
    """The exponent of the target less that of the baseline, its bounds, and the p-value of no difference."""

    estimate: float
    low: float
    high: float
    p_value: float


def profile(points: Centres, at: Floats = GRID) -> ResidualProfile:
    """The profile of the points; a curve that would have to fall counts as level.

    :param points: at least three. :param at: exponents, 0 among them, shape (g,).
    """
    logarithm = np.log(points.x / points.x[0])
    with np.errstate(all="ignore"):
        columns = np.expm1(np.outer(at, logarithm)) / at[:, None]
    columns[at == 0] = logarithm
    columns /= columns[:, -1:]
    weight = points.weight / points.weight.sum()
    df = columns - columns @ weight[:, None]
    dy = points.y - float(points.y @ weight)
    square = (df * df) @ points.weight
    slope = (df * dy) @ points.weight / square
    rss = ((dy - slope[:, None] * df) ** 2) @ points.weight
    level = float((dy * dy) @ points.weight)
    return ResidualProfile(np.maximum(np.where(slope > 0, rss, level), floor(points)), points.x.size, at)


def bounds(found: ResidualProfile, alpha: float) -> tuple[float, float]:
    """Exponents between which the true one is with a probability of 1 - `alpha`; infinite at the ends of the
    grid."""
    return crossings(found.at, found.rise(alpha), alpha)


def difference(baseline: ResidualProfile, target: ResidualProfile, alpha: float) -> ExponentDifference:
    """The difference of two exponents, with bounds that hold with a probability of 1 - `alpha`.

    How well a difference fits is how well the best pair of exponents with this difference does. Both are of
    :data:`GRID`.
    """
    old, new = baseline.rise(alpha), target.rise(alpha)
    size = GRID.size
    padded = np.full(3 * size - 2, np.inf)
    padded[size - 1 : 2 * size - 1] = new
    # Row d of the windows holds the rise of the target at GRID[i] + difference d, for each i.
    windows = np.lib.stride_tricks.sliding_window_view(padded, size)
    rise = (windows + old).min(axis=1)
    low, high = crossings(_DIFFERENCES, rise, alpha)
    p_value = min(1.0, 2 * _NORMAL.cdf(-math.sqrt(float(rise[size - 1]))))
    return ExponentDifference(float(_DIFFERENCES[np.argmin(rise)]), low, high, p_value)


def column(sizes: Floats, exponent: float) -> Floats:
    """The form at sizes, shape (k,): n^b, or ln n for b = 0; falling powers are turned round."""
    if abs(exponent) < STEP / 2:
        return np.log(sizes)
    return np.asarray(math.copysign(1, exponent) * sizes**exponent)


def crossings(at: Floats, rise: Floats, alpha: float) -> tuple[float, float]:
    """The first and the last place where the rise passes the limit, between two points of the grid by the
    line through the roots of both."""
    limit, root = _NORMAL.inv_cdf(1 - alpha / 2), np.sqrt(rise)
    inside = np.flatnonzero(root <= limit)
    first, last = int(inside[0]), int(inside[-1])

    def crossing(inner: int, outer: int) -> float:
        part = (limit - root[inner]) / (root[outer] - root[inner])
        return float(at[inner] + part * (at[outer] - at[inner]))

    return (
        crossing(first, first - 1) if first else -math.inf,
        crossing(last, last + 1) if last < at.size - 1 else math.inf,
    )
