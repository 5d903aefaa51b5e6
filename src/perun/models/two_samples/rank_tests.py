"""Tests and estimates by ranks: Mann and Whitney, Wilcoxon, Hodges and Lehmann, permutations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, combinations
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.models.two_samples.shape import medians

# Samples measured apart: the test of Mann and Whitney and the Hodges-Lehmann estimate of the shift.
#
# Sources: H. B. Mann and D. R. Whitney, On a Test of Whether one of Two Random Variables is Stochastically
# Larger than the Other, Ann. Math. Stat. 18, 1947; M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric
# Statistical Methods, 3rd ed. 2014, sections 4.1 to 4.3.

Floats = NDArray[np.float64]

RANK_SUMS_EXACT_UP_TO: Final = 2500
"""Product of the two sizes up to which the distribution of the statistic is exact."""
_VALUES_AT_ONCE: Final = 1 << 20
"""Differences that are in memory at once, of as many samples as that allows."""
_NORMAL: Final = NormalDist()


class ShiftEstimates(NamedTuple):
    """What is known of the shift from baseline to target of k pairs of samples; arrays of shape (k,).

    :param shifts: the Hodges-Lehmann estimates. :param lows: and :param highs: bounds of each interval.
    :param p_values: two-sided, of no shift.
    """

    shifts: Floats
    lows: Floats
    highs: Floats
    p_values: Floats


def compare(baselines: Floats, targets: Floats, alpha: float, inflations: Sequence[float]) -> ShiftEstimates:
    """Compare the k-th row of one side with the k-th of the other.

    :param baselines: shape (k, m). :param targets: shape (k, n); finite, neither m nor n is 0.
    :param alpha: level of the intervals. :param inflations: for each row the factor of the
        standard deviation of the statistic, above 1 if values depend on those before them; the normal
        distribution is used then.
    """
    m, n = baselines.shape[1], targets.shape[1]
    step = max(1, _VALUES_AT_ONCE // (m * n))
    parts = [
        _compare(baselines[at : at + step], targets[at : at + step], alpha, inflations[at : at + step])
        for at in range(0, len(baselines), step)
    ]
    return parts[0] if len(parts) == 1 else ShiftEstimates(*map(np.concatenate, zip(*parts, strict=True)))


def _compare(baselines: Floats, targets: Floats, alpha: float, inflations: Sequence[float]) -> ShiftEstimates:
    m, n = baselines.shape[1], targets.shape[1]
    differences = (targets[:, :, np.newaxis] - baselines[:, np.newaxis, :]).reshape(-1, m * n)
    statistics = (differences > 0).sum(axis=1) + (differences == 0).sum(axis=1) / 2
    p_values = _rank_sum_p_values(baselines, targets, statistics, inflations)
    differences.sort(axis=1)
    below = np.array([rank_sum_critical_value(m, n, alpha, inflation) for inflation in inflations])
    rows, bounded = np.arange(len(differences)), below >= 0
    lows = np.where(bounded, differences[rows, below], -math.inf)
    highs = np.where(bounded, differences[rows, m * n - 1 - np.maximum(below, 0)], math.inf)
    return ShiftEstimates(medians(differences), lows, highs, p_values)


def _rank_sum_p_values(
    baselines: Floats, targets: Floats, statistics: Floats, inflations: Sequence[float]
) -> Floats:
    """The p-values of the Mann-Whitney statistics of each row, with ties counted as halves."""
    m, n = baselines.shape[1], targets.shape[1]
    extremes = np.minimum(statistics, m * n - statistics)
    tied = _ties(np.concatenate([baselines, targets], axis=1))
    exact = _distribution(*sorted((m, n))) if m * n <= RANK_SUMS_EXACT_UP_TO else None
    total = m + n
    found = []
    for extreme, ties, inflation in zip(extremes.tolist(), tied.tolist(), inflations, strict=True):
        if inflation == 1.0 and exact is not None and not ties:
            found.append(min(1.0, 2 * float(exact[: int(extreme) + 1].sum())))
            continue
        deviation = math.sqrt(m * n / 12 * (total + 1 - ties / (total * (total - 1)))) * inflation
        z = (extreme + 0.5 - m * n / 2) / deviation if deviation else math.inf
        found.append(min(1.0, 2 * _NORMAL.cdf(z)))
    return np.array(found)


def _ties(values: Floats) -> Floats:
    """The sum of t^3 - t over the groups of t equal values of each row, shape (k,); 0 without ties."""
    ordered = np.sort(values, axis=1)
    first = np.ones(ordered.shape, bool)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=first[:, 1:])
    if first.all():
        return np.zeros(len(values))
    starts = np.flatnonzero(first)
    sizes = np.diff(starts, append=first.size).astype(float)
    found: Floats = np.bincount(starts // ordered.shape[1], sizes**3 - sizes, len(values)).astype(np.float64)
    return found


@lru_cache(maxsize=4096)
def rank_sum_critical_value(m: int, n: int, alpha: float, inflation: float = 1.0) -> int:
    """The largest u with P(U <= u) <= `alpha` / 2, U the Mann-Whitney statistic; -1 if there is none."""
    if inflation == 1.0 and m * n <= RANK_SUMS_EXACT_UP_TO:
        cumulative = np.cumsum(_distribution(*sorted((m, n))))
        return int(np.searchsorted(cumulative, alpha / 2 * (1 + 1e-12), side="right")) - 1
    deviation = math.sqrt(m * n * (m + n + 1) / 12) * inflation
    return max(-1, math.floor(m * n / 2 + _NORMAL.inv_cdf(alpha / 2) * deviation - 0.5))


@lru_cache(maxsize=256)
def _distribution(m: int, n: int) -> Floats:
    """Probabilities of U = 0 ... m n without ties.

    U is the sum of the ranks of m values among m + n, less the smallest such sum. `counts[k, s]` is the
    number of choices of k of the ranks seen so far whose ranks, less the smallest possible ones, sum up to s.
    """
    counts = np.zeros((m + 1, m * n + 1))
    counts[0, 0] = 1.0
    for rank in range(m + n):
        for chosen in range(min(m, rank + 1), 0, -1):
            excess = rank - chosen + 1
            if excess <= n:
                counts[chosen, excess:] += counts[chosen - 1, : counts.shape[1] - excess]
    return np.asarray(counts[m] / math.comb(m + n, m))


# Pairs: the signed-rank test of Wilcoxon and the estimate of Hodges and Lehmann that belongs to it.
#
# The differences are taken to be symmetric about their centre. Where the order within each pair is random
# that holds exactly if nothing changed, whatever the noise is and however it is correlated from pair to pair.
#
# Sources: F. Wilcoxon, Individual Comparisons by Ranking Methods, Biometrics Bulletin 1, 1945; J. L. Hodges
# and E. L. Lehmann, Estimates of Location Based on Rank Tests, Ann. Math. Stat. 34, 1963; M. Hollander,
# D. A. Wolfe, E. Chicken, Nonparametric Statistical Methods, 3rd ed. 2014, sections 3.1 to 3.3.

SIGNED_RANKS_EXACT_UP_TO: Final = 100
"""Pairs up to which the distribution of the statistic is exact; beyond, the normal one is right to 1e-4."""


def walsh_averages(differences: Floats) -> Floats:
    """The means of all pairs of differences, each with itself too, ascending; shape (n (n + 1) / 2,).

    :param differences: shape (n,), finite.
    """
    rows, columns = _triangle(differences.size)
    return np.sort((differences[rows] + differences[columns]) / 2)


def signed_rank_interval(differences: Floats, alpha: float) -> tuple[float, float]:
    """Bounds of the centre that hold with a probability of at least 1 - `alpha`.

    They are what the two-sided signed-rank test of level `alpha` does not reject. Where there are too few
    differences for any bound they are infinite: five for a level of 10 %, eight for 1 %.

    :param differences: shape (n,), finite.
    """
    return centre_with_interval(differences, alpha)[1:]


def centre_with_interval(differences: Floats, alpha: float) -> tuple[float, float, float]:
    """The median of the Walsh averages, the Hodges-Lehmann estimate of the centre, and the bounds of
    :func:`signed_rank_interval`, which come of the same averages."""
    averages = walsh_averages(differences)
    middle, below = float(np.median(averages)), signed_rank_critical_value(differences.size, alpha)
    if below < 0:
        return middle, -math.inf, math.inf
    return middle, float(averages[below]), float(averages[-1 - below])


def signed_rank_p_value(differences: Floats) -> float:
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
    if count <= SIGNED_RANKS_EXACT_UP_TO:
        return float(min(1.0, 2 * _sign_distribution(tuple(sorted(doubled.tolist())))[: extreme + 1].sum()))
    mean, variance = doubled.sum() / 2, float((doubled.astype(float) ** 2).sum()) / 4
    return min(1.0, 2 * NormalDist().cdf((extreme + 1 - mean) / math.sqrt(variance)))


@lru_cache(maxsize=1024)
def signed_rank_critical_value(count: int, alpha: float) -> int:
    """The largest t with P(T <= t) <= `alpha` / 2, T the signed-rank statistic of `count` pairs; -1 for
    none."""
    if count <= SIGNED_RANKS_EXACT_UP_TO:
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


# Few samples measured apart: the permutation test, which needs no ranks and no distribution.
#
# Were there no difference, each division of all the values into two samples of these sizes would be equally
# likely; the p-value is the share of divisions that differ at least as much.
#
# Sources: E. J. G. Pitman, Significance Tests which May be Applied to Samples from any Populations, Suppl. J.
# R. Stat. Soc. 4, 1937; B. Phipson and G. K. Smyth, Permutation P-values Should Never Be Zero, Stat. Appl.
# Genet. Mol. Biol. 9, 2010 (the given division is among them).

FEW: Final = 8
"""Size of a sample below which this test is worth its time."""
MAX_DIVISIONS: Final = 20_000
_ROUNDING: Final = 1e-12


def is_feasible(m: int, n: int) -> bool:
    """Whether all divisions of m + n values can be gone through."""
    return math.comb(m + n, m) <= MAX_DIVISIONS


def p_values(baselines: Floats, targets: Floats) -> Floats:
    """The two-sided p-values of no difference of the means of each row, of all divisions; shape (k,).

    :param baselines: shape (k, m). :param targets: shape (k, n); both finite and :func:`is_feasible`.
    """
    values = np.concatenate([baselines, targets], axis=1)
    m, size = baselines.shape[1], values.shape[1]
    divisions = _divisions(size, m)
    step = max(1, _VALUES_AT_ONCE // divisions.size)
    return np.concatenate(
        [
            _permutation_p_values(values[at : at + step], baselines[at : at + step].sum(axis=1), divisions)
            for at in range(0, len(values), step)
        ]
    )


def _permutation_p_values(values: Floats, seen: Floats, divisions: NDArray[np.intp]) -> Floats:
    # The mean of the other part is a falling function of this sum.
    sums = values[:, divisions].sum(axis=2)
    slack = _ROUNDING * np.maximum(1.0, np.abs(values).sum(axis=1))
    below = (sums <= (seen + slack)[:, np.newaxis]).mean(axis=1)
    above = (sums >= (seen - slack)[:, np.newaxis]).mean(axis=1)
    found: Floats = np.minimum(1.0, 2 * np.minimum(below, above))
    return found


@lru_cache(maxsize=16)
def _divisions(size: int, chosen: int) -> NDArray[np.intp]:
    """The positions in each choice of so many of `size` values, shape (choices, chosen)."""
    positions = chain.from_iterable(combinations(range(size), chosen))
    return np.fromiter(positions, np.intp).reshape(-1, chosen)
