"""Looking at the data again and again without more false alarms: group sequential boundaries.

Whoever tests at 1 % after every few pairs, and stops at the first success, is wrong far more often than in 1
%. Here the error level is spent look by look, as Lan and DeMets showed; at the end no more than the level is
spent, wherever one stops. The interval at each look is the one that belongs to the level of that look:
together all of them hold with a probability of 1 - alpha ("repeated confidence intervals").

Sources: K. K. G. Lan and D. L. DeMets, Discrete Sequential Boundaries for Clinical Trials, Biometrika 70,
1983; K. Kim and D. L. DeMets, Design and Analysis of Group Sequential Tests Based on the Type I Error
Spending Rate Function, Biometrika 74, 1987 (the power family); C. Jennison and B. W. Turnbull, Interim
Analyses: The Repeated Confidence Interval Approach, J. R. Stat. Soc. B 51, 1989; P. Armitage, C. K. McPherson
and B. C. Rowe, Repeated Significance Tests on Accumulating Data, J. R. Stat. Soc. A 132, 1969 (the
recursion).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import numpy as np

POWER: Final = 0.5
"""Exponent of the spending function alpha t^POWER: a third of the level is spent on the first tenth of the
pairs, so that 10 of 100 pairs can decide at a level of 1 %, of which 10 pairs alone cannot use less than 1 /
512."""

_GRID: Final = 600
_NORMAL: Final = NormalDist()


def spent(alpha: float, fraction: float, power: float = POWER) -> float:
    """The part of the level that may be spent up to this fraction of all pairs, in [0, 1]."""
    return float(alpha * min(1.0, fraction) ** power)


def nominal_levels(
    alpha: float, sizes: Sequence[int], most: int, power: float = POWER, *, ends: bool = False
) -> list[float]:
    """The two-sided level of each look, so that the probability of any false alarm is at most `alpha`.

    The statistic is taken to be a sum of independent increments, as the signed-rank statistic nearly is.

    :param sizes: pairs at each look, ascending. :param most: pairs at which the series ends at the latest.
    :param ends: the last look is the end of the series, as the time for it is over: what is left of the level
        is spent there. The end must not depend on what was measured.
    """
    return [2 * _NORMAL.cdf(-bound) for bound in boundaries(alpha, sizes, most, power, ends=ends)]


def boundaries(
    alpha: float, sizes: Sequence[int], most: int, power: float = POWER, *, ends: bool = False
) -> list[float]:
    """The absolute value that a standard normal statistic must exceed at each look; parameters as above."""
    bounds: list[float] = []
    paid = 0.0
    grid, density = np.zeros(1), np.ones(1)  # of the sum of the increments, if no look has stopped it
    before = 0
    for look, size in enumerate(sizes, 1):
        due = alpha if ends and look == len(sizes) else spent(alpha, size / most, power)
        step = math.sqrt(size - before)
        bound = _bound(grid, density, step, math.sqrt(size), due - paid)
        bounds.append(bound)
        paid, before = due, size
        grid, density = _advanced(grid, density, step, bound * math.sqrt(size))
    return bounds


def _bound(grid: np.ndarray, weights: np.ndarray, step: float, scale: float, level: float) -> float:
    """The bound of |sum| / scale that is exceeded with the probability `level`, by bisection."""
    low, high = 0.0, 40.0
    for _ in range(50):
        middle = (low + high) / 2
        if _exceeding(grid, weights, step, middle * scale) > level:
            low = middle
        else:
            high = middle
    return high


def _exceeding(grid: np.ndarray, weights: np.ndarray, step: float, limit: float) -> float:
    above = _upper_tail((limit - grid) / step) + _upper_tail((limit + grid) / step)
    return float((weights * above).sum())


def _advanced(
    grid: np.ndarray, weights: np.ndarray, step: float, limit: float
) -> tuple[np.ndarray, np.ndarray]:
    """Points within the limit, and the probability that belongs to each, by the rule of the midpoint."""
    width = 2 * limit / _GRID
    points = -limit + width * (np.arange(_GRID) + 0.5)
    distance = (points[:, None] - grid[None, :]) / step
    density = np.exp(-0.5 * distance**2) @ weights / (step * math.sqrt(2 * math.pi))
    return points, density * width


def _upper_tail(z: np.ndarray) -> np.ndarray:
    return 0.5 * np.array([math.erfc(value) for value in z.ravel() / math.sqrt(2)]).reshape(z.shape)
