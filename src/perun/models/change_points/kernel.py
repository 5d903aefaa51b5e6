"""Change points in the space of a Gaussian kernel.

The cost of a segment is the spread of its points in the kernel's space, so that a change of any kind counts,
not of the mean alone, and a spike costs at most 1. S. Arlot, A. Celisse, Z. Harchaoui: A Kernel Multiple
Change-point Algorithm via Model Selection, JMLR 20 (2019). The bandwidth is a multiple of the noise of
neighbours and not of the whole spread, which holds the changes. The search is exact over the places that
stand out (`candidates`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from perun.models.change_points.candidates import candidates
from perun.models.change_points.noise import deviation_of_differences
from perun.models.change_points.partition import cheapest, lengths

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SHORTEST: Final = 4
PRICE: Final = 1.9
"""What a level costs, in multiples of ln n."""
BANDWIDTH: Final = 1.5
"""The width of the kernel, in standard deviations of the noise."""


def changes(values: Floats) -> list[int]:
    """The first positions of new levels in the values, shape (n,). Takes n^2 of memory and time."""
    import numpy as np

    count = len(values)
    if count < 2 * SHORTEST or np.ptp(values) == 0:
        return []
    width = max(BANDWIDTH * deviation_of_differences(values), np.ptp(values) * 1e-6)
    bounds = np.array([0, *candidates(values), count])
    scaled = (values / width).astype(np.float32)
    gram = scaled[:, None] - scaled[None, :]
    gram *= gram
    gram *= np.float32(-0.5)
    np.exp(gram, out=gram)
    rows = np.add.reduceat(gram, bounds[:-1], axis=0, dtype=np.float64)
    blocks = np.add.reduceat(rows, bounds[:-1], axis=1)
    sums = np.pad(blocks.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    diagonal = np.diagonal(sums)
    inner = diagonal[None, :] + diagonal[:, None] - 2 * sums
    points = lengths(bounds)
    costs = np.where(points >= SHORTEST, points - inner / np.maximum(points, 1), np.inf)
    return [int(bounds[i]) for i in cheapest(costs, PRICE * np.log(count))]
