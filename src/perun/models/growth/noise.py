"""A comparison of two versions with the noise between their runs, which the points of one run do not show."""

from __future__ import annotations

import math

from perun.models import student
from perun.models.growth.comparison import Comparison, Quotient


def widened(found: Comparison, error: float, freedom: float, most: float, alpha: float) -> Comparison:
    """The comparison with wider bounds of its ratios, and higher p-values.

    :param error: standard error of the logarithm of a ratio, by the runs, with `freedom` degrees of freedom.
    :param most: the most that runs make of the logarithm of a ratio.
    :param alpha: probability with which an interval may miss.
    """
    if not error > 0:
        return found
    quantile = student.quantile(alpha, freedom)
    half = min(quantile * error, most)
    return found._replace(
        factor=_widened(found.factor, half, quantile, freedom),
        level=_widened(found.level, half, quantile, freedom),
        largest=_widened(found.largest, half, quantile, freedom),
    )


def _widened(quotient: Quotient, half: float, quantile: float, freedom: float) -> Quotient:
    estimate, low, high, p_value = quotient
    if not 0 < estimate < math.inf:
        return quotient
    centre = math.log(estimate)
    below = math.hypot(half, centre - math.log(low)) if low > 0 else math.inf
    above = math.hypot(half, math.log(high) - centre) if high < math.inf else math.inf
    by_runs = student.p_value(centre * quantile / half, freedom)
    return Quotient(
        estimate, math.exp(centre - below), _exp(centre + above), max(p_value, by_runs)
    )


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 700 else math.inf
