"""Samples measured apart: the test of Mann and Whitney and the Hodges-Lehmann estimate of the shift.

Sources: H. B. Mann and D. R. Whitney, On a Test of Whether one of Two Random Variables is Stochastically
Larger than the Other, Ann. Math. Stat. 18, 1947; M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric
Statistical Methods, 3rd ed. 2014, sections 4.1 to 4.3.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EXACT_UP_TO: Final = 2500
"""Product of the two sizes up to which the distribution of the statistic is exact."""


def shift(baseline: Floats, target: Floats) -> float:
    """The median of all differences target - baseline; shapes (m,) and (n,), neither empty."""
    return float(np.median(_differences(baseline, target)))


def interval(baseline: Floats, target: Floats, alpha: float, inflation: float = 1.0) -> tuple[float, float]:
    """Bounds of the shift that hold with a probability of at least 1 - `alpha`; infinite for too few values.

    :param baseline: shape (m,). :param target: shape (n,); both finite and not empty.
    :param inflation: factor of the standard deviation of the statistic, above 1 if values depend on those
        before them; the normal distribution is used then.
    """
    below = critical_value(baseline.size, target.size, alpha, inflation)
    if below < 0:
        return -math.inf, math.inf
    differences = np.sort(_differences(baseline, target))
    return float(differences[below]), float(differences[-1 - below])


def p_value(baseline: Floats, target: Floats, inflation: float = 1.0) -> float:
    """The two-sided p-value of no shift, with ties counted as halves; parameters as :func:`interval`."""
    m, n = baseline.size, target.size
    ordered = np.sort(baseline)
    below, up_to = (np.searchsorted(ordered, target, side=side) for side in ("left", "right"))
    statistic = float((below + up_to).sum()) / 2
    extreme = min(statistic, m * n - statistic)
    values = np.concatenate([baseline, target])
    _, ties = np.unique(values, return_counts=True)
    if inflation == 1.0 and m * n <= EXACT_UP_TO and ties.max() == 1:
        return float(min(1.0, 2 * _distribution(*sorted((m, n)))[: int(extreme) + 1].sum()))
    total = m + n
    tied = float((ties.astype(float) ** 3 - ties).sum()) / (total * (total - 1))
    deviation = math.sqrt(m * n / 12 * (total + 1 - tied)) * inflation
    if deviation == 0:
        return 1.0
    return min(1.0, 2 * NormalDist().cdf((extreme + 0.5 - m * n / 2) / deviation))


def critical_value(m: int, n: int, alpha: float, inflation: float = 1.0) -> int:
    """The largest u with P(U <= u) <= `alpha` / 2, U the Mann-Whitney statistic; -1 if there is none."""
    if inflation == 1.0 and m * n <= EXACT_UP_TO:
        cumulative = np.cumsum(_distribution(*sorted((m, n))))
        return int(np.searchsorted(cumulative, alpha / 2 * (1 + 1e-12), side="right")) - 1
    deviation = math.sqrt(m * n * (m + n + 1) / 12) * inflation
    return max(-1, math.floor(m * n / 2 + NormalDist().inv_cdf(alpha / 2) * deviation - 0.5))


def _differences(baseline: Floats, target: Floats) -> Floats:
    return np.subtract.outer(target, baseline).ravel()


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
