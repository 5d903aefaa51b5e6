"""Few samples measured apart: the permutation test, which needs no ranks and no distribution.

Were there no difference, each division of all the values into two samples of these sizes would be equally
likely; the p-value is the share of divisions that differ at least as much.

Sources: E. J. G. Pitman, Significance Tests which May be Applied to Samples from any Populations, Suppl. J.
R. Stat. Soc. 4, 1937; B. Phipson and G. K. Smyth, Permutation P-values Should Never Be Zero, Stat. Appl.
Genet. Mol. Biol. 9, 2010 (the given division is among them).
"""

from __future__ import annotations

import math
from itertools import chain, combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEW: Final = 8
"""Size of a sample below which this test is worth its time."""
MOST_DIVISIONS: Final = 20_000
_ROUNDING: Final = 1e-12


def is_feasible(m: int, n: int) -> bool:
    """Whether all divisions of m + n values can be gone through."""
    return math.comb(m + n, m) <= MOST_DIVISIONS


def p_value(baseline: Floats, target: Floats) -> float:
    """The two-sided p-value of no difference of the means, of all divisions.

    :param baseline: shape (m,). :param target: shape (n,); both finite, not empty, and :func:`is_feasible`.
    """
    values = np.concatenate([baseline, target])
    m, size = baseline.size, values.size
    chosen = np.fromiter(chain.from_iterable(combinations(range(size), m)), np.intp).reshape(-1, m)
    # The mean of the other part is a falling function of this sum.
    sums = values[chosen].sum(axis=1)
    slack = _ROUNDING * max(1.0, float(np.abs(values).sum()))
    seen = float(baseline.sum())
    below, above = (sums <= seen + slack).mean(), (sums >= seen - slack).mean()
    return float(min(1.0, 2 * min(below, above)))
