"""Pairs: the signed-rank test of Wilcoxon and the estimate of Hodges and Lehmann that belongs to it.

The differences are taken to be symmetric about their centre. Where the order within each pair is random that
holds exactly if nothing changed, whatever the noise is and however it is correlated from pair to pair.

Sources: F. Wilcoxon, Individual Comparisons by Ranking Methods, Biometrics Bulletin 1, 1945; J. L. Hodges
and E. L. Lehmann, Estimates of Location Based on Rank Tests, Ann. Math. Stat. 34, 1963; M. Hollander,
D. A. Wolfe, E. Chicken, Nonparametric Statistical Methods, 3rd ed. 2014, sections 3.1 to 3.3.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EXACT_UP_TO: Final = 100
"""Pairs up to which the distribution of the statistic is exact; beyond, the normal one is right to 1e-4."""


def walsh_averages(differences: Floats) -> Floats:
    """The means of all pairs of differences, each with itself too, ascending; shape (n (n + 1) / 2,).

    :param differences: shape (n,), finite.
    """
    rows, columns = _triangle(differences.size)
    return np.sort((differences[rows] + differences[columns]) / 2)


def centre(differences: Floats) -> float:
    """The median of the Walsh averages, the Hodges-Lehmann estimate of the centre; shape (n,), n > 0."""
    return float(np.median(walsh_averages(differences)))


def interval(differences: Floats, alpha: float) -> tuple[float, float]:
    """Bounds of the centre that hold with a probability of at least 1 - `alpha`.

    They are what the two-sided signed-rank test of level `alpha` does not reject. Where there are too few
    differences for any bound they are infinite: five for a level of 10 %, eight for 1 %.

    :param differences: shape (n,), finite.
    """
    return centre_with_interval(differences, alpha)[1:]


def centre_with_interval(differences: Floats, alpha: float) -> tuple[float, float, float]:
    """The :func:`centre` and the bounds of its :func:`interval`, which come of the same averages."""
    averages = walsh_averages(differences)
    middle, below = float(np.median(averages)), critical_value(differences.size, alpha)
    if below < 0:
        return middle, -math.inf, math.inf
    return middle, float(averages[below]), float(averages[-1 - below])


def p_value(differences: Floats) -> float:
    """The two-sided p-value of a centre of 0; 1 if all differences are 0.

    Differences of 0 are left out, and ties get their mean rank. Up to :data:`EXACT_UP_TO` differences it is
    that of all assignments of signs, also with ties.

    :param differences: shape (n,), finite.
    """
    differences = differences[differences != 0]
    count = differences.size
    if not count:
        return 1.0
    doubled = _doubled_ranks(np.abs(differences))
    positive = int(doubled[differences > 0].sum())
    extreme = min(positive, int(doubled.sum()) - positive)
    if count <= EXACT_UP_TO:
        return float(min(1.0, 2 * _sign_distribution(tuple(sorted(doubled.tolist())))[: extreme + 1].sum()))
    mean, variance = doubled.sum() / 2, float((doubled.astype(float) ** 2).sum()) / 4
    return min(1.0, 2 * NormalDist().cdf((extreme + 1 - mean) / math.sqrt(variance)))


@lru_cache(maxsize=1024)
def critical_value(count: int, alpha: float) -> int:
    """The largest t with P(T <= t) <= `alpha` / 2, T the signed-rank statistic of `count` pairs; -1 for
    none."""
    if count <= EXACT_UP_TO:
        cumulative = np.cumsum(_sign_distribution(tuple(range(1, count + 1))))
        # The sums of exact probabilities are off by rounding only.
        return int(np.searchsorted(cumulative, alpha / 2 * (1 + 1e-12), side="right")) - 1
    mean = count * (count + 1) / 4
    deviation = math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    return math.floor(mean + NormalDist().inv_cdf(alpha / 2) * deviation - 0.5)


@lru_cache(maxsize=16)
def _triangle(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The positions of all pairs of so many values, each with itself too."""
    rows, columns = np.triu_indices(size)
    return rows, columns


@lru_cache(maxsize=256)
def _sign_distribution(ranks: tuple[int, ...]) -> Floats:
    """Probabilities of each sum of the ranks with a positive sign, signs being equally likely."""
    probabilities = np.zeros(sum(ranks) + 1)
    probabilities[0] = 1.0
    reach = 0
    for rank in ranks:
        reach += rank
        shifted = probabilities[: reach + 1 - rank].copy()
        probabilities[: reach + 1] /= 2
        probabilities[rank : reach + 1] += shifted / 2
    return probabilities


def _doubled_ranks(values: Floats) -> NDArray[np.int64]:
    """Twice the rank of each value from 1, ties sharing their mean: whole numbers."""
    ordered = np.sort(values)
    first = np.searchsorted(ordered, values, side="left")
    last = np.searchsorted(ordered, values, side="right")
    return (first + last + 1).astype(np.int64)
