"""Change points by E-divisive means.

Each segment is divided where the energy distance of its two parts is the largest, as long as the parts differ
significantly. D. Matteson, N. James: A Nonparametric Approach for Multiple Change Point Analysis of
Multivariate Data, JASA 109 (2014). Their permutation test is replaced by the rank sum of the two parts, which
needs no random numbers, corrected for the choice of the best place. Places are those that stand out
(`candidates`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from perun.models.change_points.candidates import candidates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SHORTEST: Final = 4
SIGNIFICANCE: Final = 0.001


def changes(values: Floats, significance: float = SIGNIFICANCE) -> list[int]:
    """The first positions of new levels in the values, shape (n,). Takes n^2 of memory and time."""
    import numpy as np

    if len(values) < 2 * SHORTEST:
        return []
    bounds = np.array([0, *candidates(values), len(values)])
    distances = np.abs(values[:, None] - values[None, :])
    rows = np.add.reduceat(distances, bounds[:-1], axis=0)
    blocks = np.add.reduceat(rows, bounds[:-1], axis=1)
    found: list[int] = []
    segments = [(0, len(bounds) - 1)]
    while segments:
        first, end = segments.pop()
        middle = first + _best(blocks[first:end, first:end], bounds[first : end + 1] - bounds[first])
        if middle == first:
            continue
        inside = values[bounds[first] : bounds[end]]
        if _p_value(inside, int(bounds[middle] - bounds[first])) < significance:
            found.append(int(bounds[middle]))
            segments += [(first, middle), (middle, end)]
    return sorted(found)


def _best(blocks: Floats, bounds: NDArray[np.intp]) -> int:
    """At which bound the two parts have the largest energy distance, weighted by their sizes; 0 for none.

    :param blocks: sums of distances between the points of two pieces, shape (m, m).
    :param bounds: of the pieces, from 0 to the number of points, shape (m + 1,).
    """
    import numpy as np

    count = bounds[-1]
    k = bounds[1:-1].astype(float)
    other = count - k
    allowed = (k >= SHORTEST) & (other >= SHORTEST)
    if not allowed.any():
        return 0
    whole = np.cumsum(blocks.sum(axis=1))[:-1]
    within_first = np.diagonal(blocks.cumsum(axis=0).cumsum(axis=1))[:-1]
    between = whole - within_first
    within_second = blocks.sum() - within_first - 2 * between
    energy = 2 * between / (k * other) - within_first / k**2 - within_second / other**2
    return 1 + int(np.argmax(np.where(allowed, energy * k * other / count, -np.inf)))


def _p_value(values: Floats, place: int) -> float:
    """How likely a rank sum as extreme as that of the first `place` values is, anywhere in the segment.

    The largest of many standardised sums exceeds z about as often as the bound of Miller and Siegmund says:
    Maximally Selected Chi Square Statistics, Biometrics 38 (1982).
    """
    import numpy as np

    count = len(values)
    order = np.argsort(values, kind="stable")
    ranks = np.empty(count)
    ranks[order] = np.arange(1, count + 1)
    _, inverse, repeats = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.bincount(inverse, ranks) / repeats)[inverse]
    squares = float(np.sum((ranks - ranks.mean()) ** 2))
    spread = math.sqrt(place * (count - place) / (count * (count - 1)) * squares)
    if spread == 0:
        return 1.0
    z = abs(float(ranks[:place].sum()) - place * (count + 1) / 2) / spread
    share = SHORTEST / count
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    if z < 1:
        return 1.0
    return min(1.0, density * (z - 1 / z) * math.log((1 - share) ** 2 / share**2) + 4 * density / z)
