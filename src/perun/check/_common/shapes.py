"""What kind of function the difference of two curves is: the type of a change, in three ways.

None of them depends on the unit of the amounts or on which of the two curves comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from perun.models.curves import Floats
from perun.models.regression.fits import MODELS
from perun.models.regression.methods import Plan, full

OTHER: Final = "other"
"""The type of a difference that is none of those that are looked for."""
DEGREES: Final = ("constant", "linear", "quadratic", "cubic")

_ROUNDING: Final = 1e-9
_LEVEL: Final = 0.05
_STRAIGHT: Final = 0.95
_CURVED: Final = 0.9
_BETTER: Final = 0.01
_UNEXPLAINED: Final = 0.05**2

Shape = Callable[[Floats, Floats], str]
"""A function of ascending x and of the differences there, both of shape (n,), that gives the type."""


def polynomial(x: Floats, difference: Floats) -> str:
    """The lowest degree, of :data:`DEGREES`, of a polynomial that the difference is; :data:`OTHER` if none.

    It is one where the sum of the squared residuals is at most 1/400 of the sum of the squared differences,
    i.e. where the polynomial is 5 % off on average.
    """
    d = _scaled(difference)
    total = float(np.sum(d * d))
    for name, residuals in zip(DEGREES, _residuals(x, d), strict=False):
        if residuals <= _UNEXPLAINED * total:
            return name
    return OTHER


def straight(x: Floats, difference: Floats) -> str:
    """`constant`, `linear` or `quadratic` by a linear regression of the difference on x; else :data:`OTHER`.

    It is constant where the line rises or falls by at most 5 % of the largest difference from the first x to
    the last; linear with R^2 above 0.95; quadratic where a parabola has an R^2 above 0.9 that is at least
    0.01 above that of the line. A line through a parabola may be level as well: such a difference is constant
    only where it varies by no more than these 5 % in all.
    """
    d = _scaled(difference)
    residuals = list(_residuals(x, d, degrees=3))
    total, line, parabola = (*residuals, 0.0, 0.0)[:3]
    curved = len(residuals) > 2 and total - parabola > _CURVED * total and line - parabola >= _BETTER * total
    if float(d.max() - d.min()) <= _LEVEL or (_rise(x, d) <= _LEVEL and not curved):
        return "constant"
    if total - line > _STRAIGHT * total:
        return "linear"
    return "quadratic" if curved else OTHER


def regression(x: Floats, difference: Floats) -> str:
    """The best model of a full regression of the difference, its sign being that of its mean.

    A constant is rated by how little a line explains the difference (1 - R^2), which a parabola on a level
    line passes too. Here it is the best where no other model explains half of the difference.
    """
    d = _scaled(difference)
    d = d if d.sum() >= 0 else -d
    if float(d.max() - d.min()) <= _ROUNDING:
        return "constant"
    fits = full(x, d, Plan([model for model in MODELS if model != "constant"])).fits
    highest = max((fit.r_square for fit in fits), default=0.0)
    if highest <= 0.5:
        return "constant"
    return next(fit.model for fit in fits if fit.r_square >= highest - _ROUNDING)


def _scaled(difference: Floats) -> Floats:
    return difference / (float(np.abs(difference).max()) or 1.0)


def _rise(x: Floats, d: Floats) -> float:
    """How much the regression line rises or falls from the first x to the last."""
    u = x - x.mean()
    square = float(np.sum(u * u))
    return abs(float(np.sum(u * d))) / square * float(x[-1] - x[0]) if square else 0.0


def _residuals(x: Floats, d: Floats, degrees: int = len(DEGREES)) -> Iterator[float]:
    """Sums of the squared residuals of polynomials of degree 0, 1 ..., as many as the number of x allows.

    The powers of x are made orthogonal one after the other, so that each adds to the fit of those before.
    """
    half = float(x[-1] - x[0]) / 2
    u = (x - (x[0] + x[-1]) / 2) / half if half else np.zeros_like(x)
    known: list[Floats] = []
    rest = d.copy()
    for degree in range(min(degrees, len(x))):
        power = u**degree
        for one in known:
            power = power - one * float(np.sum(power * one))
        length = float(np.sum(power * power)) ** 0.5
        if length <= _ROUNDING:
            return
        known.append(power / length)
        rest -= known[-1] * float(np.sum(rest * known[-1]))
        yield float(np.sum(rest * rest))
