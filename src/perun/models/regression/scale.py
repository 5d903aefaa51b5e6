"""One scale for all models of the same points: the share of the variance that each explains.

What is modelled scatters about its curve either by the same amount everywhere, or in proportion to the height
of the curve, as times do. In the first case the scale is the variance of y, in the second that of ln y. Which
one it is, is said by the likelihood of the points (G. E. P. Box and D. R. Cox, An Analysis of
Transformations, J. R. Stat. Soc. B 26, 1964): that of normal residuals of y about the best curve fitted to y,
against that of normal residuals of ln y about the best one fitted to ln y.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from perun.models.regression.columns import Column, Floats, dot

_ROUNDING: Final = 1e-18
"""Mean square, relative to the height of the curve, that is rounding: 1e-9 of the values."""


def is_relative(y: Column, r_square: float, ln_y: Column, of_logarithms: float) -> bool:
    """Whether the points scatter in proportion to the height of their curve.

    :param y: the values; :param r_square: of the best curve fitted to them.
    :param ln_y: their logarithms; :param of_logarithms: R^2 of the best curve fitted to these.
    """
    count = len(y.deviations)
    # ln of the geometric mean, in the units of the column: what the change of variables contributes.
    height = ln_y.mean - y.exponent * math.log(2)
    constant = _ln(y.square * (1 - r_square) / count) - 2 * height
    relative = _ln(ln_y.square * (1 - of_logarithms) / count)
    least = math.log(_ROUNDING)
    return max(relative, least) < max(constant, least)


def explained(of: Column, values: Floats) -> float:
    """The share of the variance that a curve explains; negative where the mean is nearer.

    :param of: what the curve is to be. :param values: of the curve, shape (n,), in the units of the column;
        it explains nothing of a point where that is not finite.
    """
    if not of.square:
        return 0.0
    with np.errstate(all="ignore"):
        rest = np.where(np.isfinite(values), of.deviations + of.mean - values, of.deviations)
        return 1 - dot(rest, rest) / of.square


def _ln(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
