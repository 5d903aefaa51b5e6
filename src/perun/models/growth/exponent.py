"""y = c0 + c1 n^b with an exponent that is estimated, and which differences of two exponents are possible.

For each b of a grid the rest is a straight line, so the residuals are known as a function of b: its profile.
It is fitted as c0 + c1 (n^b - 1) / b, which is the same family and goes on through b = 0, the logarithm
(G. E. P. Box and D. R. Cox, An Analysis of Transformations, J. R. Stat. Soc. B 26, 1964). Bounds are where
the profile has risen too far: D. M. Bates and D. G. Watts, Nonlinear Regression Analysis, 1988, section 6.1
(profile t).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.models import student
from perun.models.growth import forms
from perun.models.growth.centres import Centres

Floats = NDArray[np.float64]

STEP: Final = 0.025
GRID: Final[Floats] = np.arange(-40.0, 241.0, dtype=np.float64) * STEP
"""The exponents considered, -1 (it levels off) to 6."""
_DIFFERENCES: Final[Floats] = np.arange(1.0 - GRID.size, GRID.size, dtype=np.float64) * STEP
_NORMAL: Final = NormalDist()


class Profile(NamedTuple):
    """The weighted sum of squared residuals at each exponent of :data:`GRID`, shape (281,)."""

    rss: Floats
    points: int

    @property
    def best(self) -> float:
        """The exponent that fits best."""
        return float(GRID[np.argmin(self.rss)])

    def rise(self, alpha: float) -> Floats:
        """How much worse each exponent fits than the best, as the square of a standard normal quantile would
        be: the squared t of each exponent, shrunk so that both have the same quantile at `alpha`."""
        freedom = max(self.points - 3, 1)
        squared = freedom * (self.rss / self.rss.min() - 1)
        shrunk = _NORMAL.inv_cdf(1 - alpha / 2) / student.quantile(alpha, freedom)
        return np.asarray(squared * shrunk**2)


class Difference(NamedTuple):
    """The exponent of the target less that of the baseline, its bounds, and the p-value of no difference."""

    estimate: float
    low: float
    high: float
    p_value: float


def profile(points: Centres) -> Profile:
    """The profile of the points; a curve that would have to fall counts as level.

    :param points: at least three.
    """
    logarithm = np.log(points.x / points.x[0])
    with np.errstate(all="ignore"):
        columns = np.expm1(np.outer(GRID, logarithm)) / GRID[:, None]
    columns[np.abs(GRID) < STEP / 2] = logarithm
    columns /= columns[:, -1:]
    weight = points.weight / points.weight.sum()
    df = columns - columns @ weight[:, None]
    dy = points.y - float(points.y @ weight)
    square = (df * df) @ points.weight
    slope = (df * dy) @ points.weight / square
    rss = ((dy - slope[:, None] * df) ** 2) @ points.weight
    level = float((dy * dy) @ points.weight)
    return Profile(np.maximum(np.where(slope > 0, rss, level), forms.floor(points)), points.x.size)


def bounds(found: Profile, alpha: float) -> tuple[float, float]:
    """Exponents between which the true one is with a probability of 1 - `alpha`; infinite at the ends of the
    grid."""
    return crossings(GRID, found.rise(alpha), alpha)


def difference(baseline: Profile, target: Profile, alpha: float) -> Difference:
    """The difference of two exponents, with bounds that hold with a probability of 1 - `alpha`.

    How well a difference fits is how well the best pair of exponents with this difference does.
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
    return Difference(float(_DIFFERENCES[np.argmin(rise)]), low, high, p_value)


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
