"""Student's t distribution: what a standard error that was itself estimated allows to be said.

Source: W. H. Press, S. A. Teukolsky, W. T. Vetterling, B. P. Flannery, Numerical Recipes, 3rd ed. 2007,
sections 6.4 (the incomplete beta function as a continued fraction, evaluated by the method of Lentz) and
6.14 (the distribution).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

_TINY: Final = 1e-300
_MAX_TERMS: Final = 1000


def p_value(t: float, freedom: float) -> float:
    """The probability of a statistic at least as far from 0 as `t`.

    :param freedom: degrees of freedom, above 0, not necessarily whole.
    """
    if math.isnan(t):
        return 1.0
    if math.isinf(t):
        return 0.0
    square = t * t
    return _incomplete_beta(freedom / (freedom + square), square / (freedom + square), freedom / 2, 0.5)


@lru_cache(maxsize=1024)
def quantile(alpha: float, freedom: float) -> float:
    """The t whose :func:`p_value` is `alpha`, in (0, 1); to 1e-10 of itself.

    The p-value falls convexly, so Newton's method comes from below and never goes beyond.
    """
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    t = 1.0 if p_value(1.0, freedom) > alpha else 0.0
    step = 1.0
    while step > 1e-11 * t and t < 1e300:
        density = math.exp(scale - (freedom + 1) / 2 * math.log1p(t * t / freedom))
        step = (p_value(t, freedom) - alpha) / (2 * density) if density else math.inf
        t += step
    return t


def _incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b) of x in [0, 1]; `rest` is 1 - x, not rounded."""
    if x <= 0 or rest <= 0:
        return float(rest <= 0)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    # The logarithm of the nearer one of 0 and 1 is exact to the last digit this way.
    logarithm += a * (math.log(x) if x < 0.5 else math.log1p(-rest))
    logarithm += b * (math.log(rest) if rest < 0.5 else math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return math.exp(logarithm) * _continued_fraction(x, a, b) / a
    return 1 - math.exp(logarithm) * _continued_fraction(rest, b, a) / b


def _continued_fraction(x: float, a: float, b: float) -> float:
    numerator, denominator = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = denominator
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            denominator = 1 / _not_zero(1 + term * denominator)
            numerator = _not_zero(1 + term / numerator)
            step = numerator * denominator
            value *= step
        if abs(step - 1) < 1e-15:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
