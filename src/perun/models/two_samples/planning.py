"""How many pairs show an effect, given the noise: planning of a comparison before it is made.

The power of the signed-rank test is that of normal differences, from simulations with a fixed seed: with few
pairs the test has few p-values, which no formula for many pairs knows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perun.models.two_samples import signed_ranks
from perun.models.two_samples.ratio import POWER

Floats = NDArray[np.float64]

_LEVEL: Final = 0.05
_SAMPLES: Final = 1000
_EFFICIENCY: Final = math.sqrt(3 / math.pi)
"""Of the signed ranks relative to the mean, where differences are normal (Hollander, Wolfe and Chicken,
Nonparametric Statistical Methods, 3rd ed. 2014, section 3.11)."""


def deviation(differences: Floats) -> float:
    """The standard deviation of normal differences of which the signed ranks give an interval as wide as of
    these: so a few outliers count no more than they do there.

    :param differences: shape (n,), n at least 6.
    """
    low, high = signed_ranks.interval(differences, _LEVEL)
    error = (high - low) / 2 / NormalDist().inv_cdf(1 - _LEVEL / 2)
    return _EFFICIENCY * error * math.sqrt(differences.size)


def power(shift: float, pairs: int, level: float) -> float:
    """The probability that so many pairs show a shift, in standard deviations, in a two-sided test."""
    below = signed_ranks.critical_value(pairs, level)
    if below < 0:
        return 0.0
    values = _normal(pairs) + min(abs(shift), 1e6)
    ranks = np.argsort(np.argsort(np.abs(values), axis=1), axis=1) + 1
    positive = np.where(values > 0, ranks, 0).sum(axis=1)
    return float(np.mean(np.minimum(positive, pairs * (pairs + 1) // 2 - positive) <= below))


def pairs_needed(
    deviation: float, effect: float, levels: Mapping[int, float], wanted: float = POWER
) -> int | None:
    """The first look at which an effect, e.g. 0.02 for 2 %, is seen with the probability wanted; else None.

    :param levels: the level of each look by its number of pairs, ascending.
    """
    looks = list(levels)
    shift = math.log1p(effect) / deviation if deviation else math.inf
    first, last = 0, len(looks)
    while first < last:
        middle = (first + last) // 2
        if power(shift, looks[middle], levels[looks[middle]]) >= wanted:
            last = middle
        else:
            first = middle + 1
    return looks[first] if first < len(looks) else None


def smallest(deviation: float, pairs: int, level: float, wanted: float = POWER) -> float:
    """The smallest effect that so many pairs show with the probability wanted; infinite where none is."""
    if power(math.inf, pairs, level) < wanted:
        return math.inf
    low, high = 0.0, 64.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle, pairs, level) >= wanted else (middle, high)
    return math.expm1(min(high * deviation, 700.0))


@lru_cache(maxsize=4)
def _normal(pairs: int) -> Floats:
    return np.random.default_rng(pairs).normal(size=(_SAMPLES, pairs))
