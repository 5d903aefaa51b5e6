"""The cheapest division of a series into levels, for any cost of a level."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def cheapest(costs: Floats, price: float) -> list[int]:
    """Which inner bounds divide the series at the least sum of costs and prices, by dynamic programming.

    :param costs: of the level from bound i to bound j, i < j, shape (m, m); infinite where there can be none.
    :param price: of each level.
    :returns: numbers of bounds from 1 to m - 2, ascending. As in optimal partitioning: B. Jackson et al.: An
        Algorithm for Optimal Partitioning of Data on an Interval, IEEE Signal Processing Letters 12 (2005).
    """
    import numpy as np

    count = len(costs)
    best = np.zeros(count)
    origin = [0] * count
    for j in range(1, count):
        sums = best[:j] + costs[:j, j] + price
        origin[j] = int(np.argmin(sums))
        best[j] = sums[origin[j]]
    found: list[int] = []
    bound = origin[-1]
    while bound > 0:
        found.append(bound)
        bound = origin[bound]
    return found[::-1]


def lengths(bounds: Floats) -> Floats:
    """Points from each bound to each later one, shape (m, m); 0 or less elsewhere."""
    return bounds[None, :] - bounds[:, None]
