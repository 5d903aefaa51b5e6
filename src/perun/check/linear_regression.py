"""Linear Regression: the difference of the best models, and whether it is a line (manual 8.2.5)."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from perun.check._common.differences import OTHER, DifferenceCheck, polynomial_residuals, scaled
from perun.models.curves import Floats

_LEVEL: Final = 0.05
_STRAIGHT: Final = 0.95
_CURVED: Final = 0.9
_BETTER: Final = 0.01


class LinearRegression(DifferenceCheck):
    """Reports every uid, also the unchanged ones; rates are in percent of the baseline.

    Whether and how much a uid changed is what FAST says as well. The type of a change is that of a linear
    regression of the difference on x: `constant`, `linear`, `quadratic` or `other`.
    """

    name: ClassVar[str] = "linear_regression"
    short: ClassVar[str] = "LREG"
    help: ClassVar[str] = (
        "Compares the best models of each uid: 25 % more is a degradation, of a type by linear regression."
    )

    @staticmethod
    def kind_of(x: Floats, difference: Floats) -> str:
        """`constant`, `linear` or `quadratic` by a linear regression of the difference; else :data:`OTHER`.

        It is constant where the line rises or falls by at most 5 % of the largest difference from the first x
        to the last; linear with R^2 above 0.95; quadratic where a parabola has an R^2 above 0.9 that is at
        least 0.01 above that of the line. A line through a parabola may be level as well: such a difference
        is constant only where it varies by no more than these 5 % in all.
        """
        d = scaled(difference)
        rest = list(polynomial_residuals(x, d, degrees=3))
        total, line, parabola = (*rest, 0.0, 0.0)[:3]
        curved = len(rest) > 2 and total - parabola > _CURVED * total and line - parabola >= _BETTER * total
        if float(d.max() - d.min()) <= _LEVEL or (_rise(x, d) <= _LEVEL and not curved):
            return "constant"
        if total - line > _STRAIGHT * total:
            return "linear"
        return "quadratic" if curved else OTHER


def _rise(x: Floats, d: Floats) -> float:
    """How much the regression line rises or falls from the first x to the last."""
    u = x - x.mean()
    square = float(np.sum(u * u))
    return abs(float(np.sum(u * d))) / square * float(x[-1] - x[0]) if square else 0.0


PLUGIN = LinearRegression
