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
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.models.growth.centres import Centres

Floats = NDArray[np.float64]

CONSTANT: Final = "1"
POWER: Final = "n^b"
"""The form whose exponent is a coefficient, see :mod:`perun.models.growth.exponent`."""
EVIDENCE: Final = 10.0
"""Difference of AICc above which the worse model has essentially no support (Burnham and Anderson, 2.6)."""
_LARGEST_POWER_OF_TWO: Final = 64
"""Size up to which 2^n is an order of growth that somebody waited for."""
_RESOLUTION: Final = 1e-10
"""Mean weighted square that counts as no error: 1e-5 of the values."""


class Form(NamedTuple):
    """f(n), and the sizes up to which it is considered."""

    values: Callable[[Floats], Floats]
    up_to: float = math.inf


FORMS: Final[Mapping[str, Form]] = {
    "log n": Form(np.log),
    "n": Form(lambda n: n),
    "n log n": Form(lambda n: n * np.log(n)),
    "n^2": Form(lambda n: n**2),
    "n^3": Form(lambda n: n**3),
    "2^n": Form(np.exp2, _LARGEST_POWER_OF_TWO),
}
"""The orders that grow, the slowest first; :data:`CONSTANT` comes before them."""


class Line(NamedTuple):
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
    points: Centres, f: Floats, fitted: Line, combination: tuple[float, float]
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


def constant(points: Centres) -> Line:
    """y = c0, the weighted mean; :param points: at least one."""
    total = float(points.weight.sum())
    c0 = float((points.weight * points.y).sum()) / total
    rss = float((points.weight * (points.y - c0) ** 2).sum())
    return Line(c0, 0.0, max(rss, floor(points)), (1 / total, 0.0, 0.0), points.x.size)


def line(points: Centres, f: Floats) -> Line | None:
    """y = c0 + c1 f; None if that is not defined, or does not grow.

    :param f: values of the form at the sizes, shape (k,).
    """
    found = any_line(points, f)
    return found if found is not None and found.c1 > 0 else None


def any_line(points: Centres, f: Floats) -> Line | None:
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
    return Line(mean_y - c1 * mean_f, c1, max(rss, floor(points)), variances, points.x.size)


def lines(points: Centres) -> dict[str, Line]:
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
