"""Polynomial Regression: the difference of the best models, and its degree (manual 8.2.6)."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from perun.check._common.differences import DEGREES, OTHER, DifferenceCheck, polynomial_residuals, scaled
from perun.models.curves import Floats

_UNEXPLAINED: Final = 0.05**2


class PolynomialRegression(DifferenceCheck):
    """Reports every uid, also the unchanged ones; rates are in percent of the baseline.

    Whether and how much a uid changed is what FAST says as well. The type of a change is the lowest degree of
    a polynomial that the difference is: `constant`, `linear`, `quadratic`, `cubic` or `other`.
    """

    name: ClassVar[str] = "polynomial_regression"
    short: ClassVar[str] = "PREG"
    help: ClassVar[str] = (
        "Compares the best models of each uid: 25 % more is a degradation, of a type by polynomial degree."
    )

    @staticmethod
    def kind_of(x: Floats, difference: Floats) -> str:
        """The lowest degree, of :data:`DEGREES`, of a polynomial that the difference is; else :data:`OTHER`.

        It is one where the sum of the squared residuals is at most 1/400 of the sum of the squared
        differences, i.e. where the polynomial is 5 % off on average.
        """
        d = scaled(difference)
        total = float(np.sum(d * d))
        for name, rest in zip(DEGREES, polynomial_residuals(x, d), strict=False):
            if rest <= _UNEXPLAINED * total:
                return name
        return OTHER


PLUGIN = PolynomialRegression
