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
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perun.models.two_samples import rank_tests
from perun.models.two_samples.ratio import POWER

Floats = NDArray[np.float64]

SPENDING_POWER: Final = 0.5
"""Exponent of the spending function alpha t^POWER: a third of the level is spent on the first tenth of the
pairs, so that 10 of 100 pairs can decide at a level of 1 %, of which 10 pairs alone cannot use less than 1 /
512."""
EARLY: Final = 100
"""Pairs that decide nearly everything that matters, and :data:`EARLY_SHARE`: what of the level they may spend
where there are more; the rest is spent with the logarithm of the number."""
EARLY_SHARE: Final = 0.75

_GRID: Final = 600
_EXACT: Final = 1e-12
_FARTHEST: Final = 40.0
"""Standard deviations that nothing exceeds."""
_NORMAL: Final = NormalDist()


def spent(alpha: float, size: int, most: int, power: float = SPENDING_POWER) -> float:
    """The part of the level that may be spent up to so many of `most` pairs."""
    early = min(most, EARLY)
    share = EARLY_SHARE if most > early else 1.0
    if size <= early:
        return float(alpha * share * (size / early) ** power)
    return alpha * (share + (1 - share) * math.log(size / early) / math.log(most / early))


def nominal_levels(
    alpha: float, sizes: Sequence[int], most: int, power: float = SPENDING_POWER, *, ends: bool = False
) -> list[float]:
    """The two-sided level of each look, so that the probability of any false alarm is at most `alpha`.

    The statistic is taken to be a sum of independent increments, as the signed-rank statistic nearly is.

    :param sizes: pairs at each look, ascending. :param most: pairs at which the series ends at the latest.
    :param ends: the last look is the end of the series, as the time for it is over: what is left of the level
        is spent there. The end must not depend on what was measured.
    """
    return [level_of(bound) for bound in boundaries(alpha, sizes, most, power, ends=ends)]


def level_of(bound: float) -> float:
    """The two-sided level that belongs to one of :func:`boundaries`."""
    return 2 * _NORMAL.cdf(-bound)


def boundaries(
    alpha: float, sizes: Sequence[int], most: int, power: float = SPENDING_POWER, *, ends: bool = False
) -> Iterator[float]:
    """The absolute value that a standard normal statistic must exceed at each look, computed one after the
    other; parameters as above."""
    for look in range(1, len(sizes) + 1):
        yield _boundary(alpha, tuple(sizes[:look]), most, power, ends=ends and look == len(sizes))


def level(
    alpha: float, sizes: Sequence[int], most: int, power: float = SPENDING_POWER, *, ends: bool = False
) -> float:
    """The last of :func:`nominal_levels`; those before it are not made again."""
    return level_of(_boundary(alpha, tuple(sizes), most, power, ends=ends))


@lru_cache(maxsize=256)
def _boundary(alpha: float, sizes: tuple[int, ...], most: int, power: float, *, ends: bool) -> float:
    due = alpha if ends else spent(alpha, sizes[-1], most, power)
    return _looked(alpha, sizes[:-1], most, power).bound(sizes[-1], due)


class Looked(NamedTuple):
    """After a look: its size, the part of the level that is spent, and the probability of each sum of the
    increments that no look has stopped, by the rule of the midpoint."""

    size: int
    paid: float
    sums: Floats
    weights: Floats

    def bound(self, size: int, due: float) -> float:
        """That of the next look, which spends what is due.

        The logarithm of the tail is concave, so that Newton's steps find where it is the level, or halves
        where they go too far.
        """
        level = due - self.paid
        low, high, found = 0.0, _FARTHEST, 1.0
        while high - low > _EXACT:
            tail, slope = self.exceeding(size, found)
            low, high = (found, high) if tail > level else (low, found)
            change = math.log(tail / level) * tail / slope if tail > 0 < slope and level > 0 else math.inf
            if abs(change) < _EXACT:
                break
            found = found + change if low < found + change < high else (low + high) / 2
        return found

    def exceeding(self, size: int, bound: float) -> tuple[float, float]:
        """The probability that the next look is beyond the bound, and how fast that falls with it."""
        step, scale = math.sqrt(size - self.size), math.sqrt(size)
        ends = np.concatenate([bound * scale - self.sums, bound * scale + self.sums]) / step
        weights = np.tile(self.weights, 2)
        slope = float(weights @ np.exp(-0.5 * ends**2)) * scale / (step * math.sqrt(2 * math.pi))
        return float(weights @ _upper_tail(ends)), slope

    def after(self, size: int, bound: float, paid: float) -> Looked:
        """The same after the next look."""
        limit, step = bound * math.sqrt(size), math.sqrt(size - self.size)
        width = 2 * limit / _GRID
        sums: Floats = -limit + width * (np.arange(_GRID, dtype=np.float64) + 0.5)
        distance = (sums[:, None] - self.sums[None, :]) / step
        density = np.exp(-0.5 * distance**2) @ self.weights / (step * math.sqrt(2 * math.pi))
        left: Floats = density * width
        return Looked(size, paid, sums, left)


BEGIN: Final = Looked(0, 0.0, np.zeros(1), np.ones(1))


@lru_cache(maxsize=256)
def _looked(alpha: float, sizes: tuple[int, ...], most: int, power: float) -> Looked:
    """What is left after looks of these sizes."""
    if not sizes:
        return BEGIN
    bound = _boundary(alpha, sizes, most, power, ends=False)
    paid = spent(alpha, sizes[-1], most, power)
    return _looked(alpha, sizes[:-1], most, power).after(sizes[-1], bound, paid)


def _upper_tail(z: np.ndarray) -> np.ndarray:
    return 0.5 * np.array([math.erfc(value) for value in z / math.sqrt(2)])


# How many pairs show an effect, given the noise: planning of a comparison before it is made.
#
# The power of the signed-rank test is that of normal differences, from simulations with a fixed seed: with
# few pairs the test has few p-values, which no formula for many pairs knows.

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
    low, high = rank_tests.signed_rank_interval(differences, _LEVEL)
    error = (high - low) / 2 / NormalDist().inv_cdf(1 - _LEVEL / 2)
    return _EFFICIENCY * error * math.sqrt(differences.size)


def power(shift: float, pairs: int, level: float) -> float:
    """The probability that so many pairs show a shift, in standard deviations, in a two-sided test."""
    below = rank_tests.signed_rank_critical_value(pairs, level)
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


# Many tests at once: how many of the findings may be false.


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    """The adjusted p-values, in the order given, shape (n,); those up to q are wrong in a share of q on
    average.

    Source: Y. Benjamini and Y. Hochberg, Controlling the False Discovery Rate, J. R. Stat. Soc. B 57, 1995.

    :param p_values: shape (n,), in [0, 1].
    """
    given = np.asarray(p_values, np.float64)
    order = np.argsort(given, kind="stable")
    scaled = given[order] * given.size / np.arange(1, given.size + 1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return adjusted
