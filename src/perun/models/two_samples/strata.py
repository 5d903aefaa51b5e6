"""Samples of measurements of several sizes of input: like is compared with like.

The time of a function of ten elements and that of a thousand differ more than any two versions. So each value
is compared with those of the same size, and what the sizes have in common is the ratio of the two samples.

Sources: J. L. Hodges and E. L. Lehmann, Rank Methods for Combination of Independent Experiments in Analysis
of Variance, Ann. Math. Stat. 33, 1962 (aligned ranks); M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric
Statistical Methods, 3rd ed. 2014, section 7.6.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MIN_AS_PAIRS: Final = 8
"""Sizes from which on each is a pair of medians: fewer pairs give no interval of 99 %."""


def common(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """The sizes that both samples have, ascending; none if one has numbers and the other has texts."""
    if old.dtype.kind != new.dtype.kind:
        return old[:0]
    return np.intersect1d(old, new)


def medians(values: Floats, sizes: NDArray[Any], wanted: NDArray[Any]) -> Floats:
    """The median of the values of each wanted size, all of which there are; shape of `wanted`.

    :param values: shape (n,). :param sizes: the size of each, shape (n,).
    """
    order = np.argsort(sizes, kind="stable")
    ordered = sizes[order]
    starts = np.searchsorted(ordered, wanted, "left")
    ends = np.searchsorted(ordered, wanted, "right")
    found = [np.median(values[order[start:end]]) for start, end in zip(starts, ends, strict=True)]
    return np.array(found, np.float64)


def aligned(
    old: Floats, old_sizes: NDArray[Any], new: Floats, new_sizes: NDArray[Any], wanted: NDArray[Any]
) -> tuple[Floats, Floats, float]:
    """The values less the middle of their size, and how much wider than theirs the interval has to be.

    The middle is that of the medians of both samples, so that half of the difference stays on each side. Each
    middle is computed from the values, which so seem nearer to each other than they are.

    :param old: logarithms, shape (m,), and :param new: (n,); values of sizes not wanted are left out.
    """
    middles = (medians(old, old_sizes, wanted) + medians(new, new_sizes, wanted)) / 2
    sides = []
    for values, sizes in ((old, old_sizes), (new, new_sizes)):
        kept = np.isin(sizes, wanted)
        sides.append(values[kept] - middles[np.searchsorted(wanted, sizes[kept])])
    total = sides[0].size + sides[1].size
    return sides[0], sides[1], math.sqrt(total / max(total - wanted.size, 1))
