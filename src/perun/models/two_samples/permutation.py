"""Few samples measured apart: the permutation test, which needs no ranks and no distribution.

Were there no difference, each division of all the values into two samples of these sizes would be equally
likely; the p-value is the share of divisions that differ at least as much.

Sources: E. J. G. Pitman, Significance Tests which May be Applied to Samples from any Populations, Suppl. J.
R. Stat. Soc. 4, 1937; B. Phipson and G. K. Smyth, Permutation P-values Should Never Be Zero, Stat. Appl.
Genet. Mol. Biol. 9, 2010 (the given division is among them).
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import chain, combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEW: Final = 8
"""Size of a sample below which this test is worth its time."""
MAX_DIVISIONS: Final = 20_000
_VALUES_AT_ONCE: Final = 1 << 20
"""Values that are in memory at once, of as many samples as that allows."""
_ROUNDING: Final = 1e-12


def is_feasible(m: int, n: int) -> bool:
    """Whether all divisions of m + n values can be gone through."""
    return math.comb(m + n, m) <= MAX_DIVISIONS


def p_value(baseline: Floats, target: Floats) -> float:
    """The two-sided p-value of no difference of the means, of all divisions.

    :param baseline: shape (m,). :param target: shape (n,); both finite, not empty, and :func:`is_feasible`.
    """
    return float(p_values(baseline[np.newaxis], target[np.newaxis])[0])


def p_values(baselines: Floats, targets: Floats) -> Floats:
    """The :func:`p_value` of each row of both sides, shapes (k, m) and (k, n); shape (k,)."""
    values = np.concatenate([baselines, targets], axis=1)
    m, size = baselines.shape[1], values.shape[1]
    divisions = _divisions(size, m)
    step = max(1, _VALUES_AT_ONCE // divisions.size)
    return np.concatenate(
        [
            _p_values(values[at : at + step], baselines[at : at + step].sum(axis=1), divisions)
            for at in range(0, len(values), step)
        ]
    )


def _p_values(values: Floats, seen: Floats, divisions: NDArray[np.intp]) -> Floats:
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
