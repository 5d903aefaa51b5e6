"""Samples measured apart: the test of Mann and Whitney and the Hodges-Lehmann estimate of the shift.

Sources: H. B. Mann and D. R. Whitney, On a Test of Whether one of Two Random Variables is Stochastically
Larger than the Other, Ann. Math. Stat. 18, 1947; M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric
Statistical Methods, 3rd ed. 2014, sections 4.1 to 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.models.two_samples.shape import medians

Floats = NDArray[np.float64]

EXACT_UP_TO: Final = 2500
"""Product of the two sizes up to which the distribution of the statistic is exact."""
_VALUES_AT_ONCE: Final = 1 << 20
"""Differences that are in memory at once, of as many samples as that allows."""
_NORMAL: Final = NormalDist()


class Compared(NamedTuple):
    """What is known of the shift from baseline to target of k pairs of samples; arrays of shape (k,).

    :param shifts: the Hodges-Lehmann estimates. :param lows: and :param highs: bounds of each interval.
    :param p_values: two-sided, of no shift.
    """

    shifts: Floats
    lows: Floats
    highs: Floats
    p_values: Floats


def compare(baselines: Floats, targets: Floats, alpha: float, inflations: Sequence[float]) -> Compared:
    """Compare the k-th row of one side with the k-th of the other.

    :param baselines: shape (k, m). :param targets: shape (k, n); finite, neither m nor n is 0.
    :param alpha: level of the intervals. :param inflations: for each row, as of :func:`interval`.
    """
    m, n = baselines.shape[1], targets.shape[1]
    step = max(1, _VALUES_AT_ONCE // (m * n))
    parts = [
        _compare(baselines[at : at + step], targets[at : at + step], alpha, inflations[at : at + step])
        for at in range(0, len(baselines), step)
    ]
    return parts[0] if len(parts) == 1 else Compared(*map(np.concatenate, zip(*parts, strict=True)))


def _compare(baselines: Floats, targets: Floats, alpha: float, inflations: Sequence[float]) -> Compared:
    m, n = baselines.shape[1], targets.shape[1]
    differences = (targets[:, :, np.newaxis] - baselines[:, np.newaxis, :]).reshape(-1, m * n)
    statistics = (differences > 0).sum(axis=1) + (differences == 0).sum(axis=1) / 2
    p_values = _p_values(baselines, targets, statistics, inflations)
    differences.sort(axis=1)
    below = np.array([critical_value(m, n, alpha, inflation) for inflation in inflations])
    rows, bounded = np.arange(len(differences)), below >= 0
    lows = np.where(bounded, differences[rows, below], -math.inf)
    highs = np.where(bounded, differences[rows, m * n - 1 - np.maximum(below, 0)], math.inf)
    return Compared(medians(differences), lows, highs, p_values)


def _p_values(
    baselines: Floats, targets: Floats, statistics: Floats, inflations: Sequence[float]
) -> Floats:
    """The p-values of the Mann-Whitney statistics of each row, with ties counted as halves."""
    m, n = baselines.shape[1], targets.shape[1]
    extremes = np.minimum(statistics, m * n - statistics)
    tied = _ties(np.concatenate([baselines, targets], axis=1))
    exact = _distribution(*sorted((m, n))) if m * n <= EXACT_UP_TO else None
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


def shift(baseline: Floats, target: Floats) -> float:
    """The median of all differences target - baseline; shapes (m,) and (n,), neither empty."""
    return float(_one(baseline, target, 0.5).shifts[0])


def interval(baseline: Floats, target: Floats, alpha: float, inflation: float = 1.0) -> tuple[float, float]:
    """Bounds of the shift that hold with a probability of at least 1 - `alpha`; infinite for too few values.

    :param baseline: shape (m,). :param target: shape (n,); both finite and not empty.
    :param inflation: factor of the standard deviation of the statistic, above 1 if values depend on those
        before them; the normal distribution is used then.
    """
    found = _one(baseline, target, alpha, inflation)
    return float(found.lows[0]), float(found.highs[0])


def p_value(baseline: Floats, target: Floats, inflation: float = 1.0) -> float:
    """The two-sided p-value of no shift, with ties counted as halves; parameters as :func:`interval`."""
    return float(_one(baseline, target, 0.5, inflation).p_values[0])


def _one(baseline: Floats, target: Floats, alpha: float, inflation: float = 1.0) -> Compared:
    return compare(baseline[np.newaxis], target[np.newaxis], alpha, (inflation,))


@lru_cache(maxsize=4096)
def critical_value(m: int, n: int, alpha: float, inflation: float = 1.0) -> int:
    """The largest u with P(U <= u) <= `alpha` / 2, U the Mann-Whitney statistic; -1 if there is none."""
    if inflation == 1.0 and m * n <= EXACT_UP_TO:
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
