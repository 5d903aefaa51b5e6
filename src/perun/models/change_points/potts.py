"""Change points as the fewest levels that fit: the L1 Potts functional.

The sum of absolute deviations from the median of each level, plus a price for each level, is least. Absolute
deviations make it robust against spikes. M. Storath, A. Weinmann, M. Unser: Jump-Penalized Least Absolute
Values Estimation of Scalar or Circle-Valued Signals, Information and Inference 6 (2017); asv finds its steps
so. The search is exact over the places that stand out (`candidates`), and values count as the mean of their
quantile of `BINS`.
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
PRICE: Final = 2.6
"""What a level costs, in multiples of ln n and of the mean absolute deviation of the noise."""
BINS: Final = 64
_ABSOLUTE: Final = 0.7978845608028654
"""The mean absolute deviation of a normal distribution, sqrt(2 / pi), in standard deviations."""


def changes(values: Floats) -> list[int]:
    """The first positions of new levels in the values, shape (n,)."""
    import numpy as np

    count = len(values)
    if count < 2 * SHORTEST or np.ptp(values) == 0:
        return []
    noise = max(deviation_of_differences(values) * _ABSOLUTE, np.ptp(values) * 1e-6)
    bounds = np.array([0, *candidates(values), count])
    costs = np.where(lengths(bounds) >= SHORTEST, deviations(values, bounds), np.inf)
    return [int(bounds[i]) for i in cheapest(costs, PRICE * noise * np.log(count))]


def deviations(values: Floats, bounds: NDArray[np.intp]) -> Floats:
    """The sum of absolute deviations from the median between each bound and each later one, shape (m, m)."""
    import numpy as np

    order = np.argsort(values, kind="stable")
    bins = np.empty(len(values), np.intp)
    bins[order] = np.arange(len(values)) * BINS // len(values)
    number = np.zeros((len(values) + 1, BINS))
    number[np.arange(1, len(values) + 1), bins] = 1
    mean = np.bincount(bins, values, BINS) / np.maximum(np.bincount(bins, minlength=BINS), 1)
    below = np.cumsum(np.cumsum(number, axis=0)[bounds], axis=1)  # points up to a bound and a bin
    sums = np.cumsum(np.diff(below, axis=1, prepend=0) * mean, axis=1)
    points = below[None, :, :] - below[:, None, :]
    total = points[:, :, -1]
    median = np.argmax(points * 2 >= total[:, :, None], axis=2)
    row, column = np.indices(total.shape)
    low = sums[column, median] - sums[row, median]
    less = points[row, column, median]
    every = sums[None, :, -1] - sums[:, None, -1]
    found: Floats = every - 2 * low + mean[median] * (2 * less - total)
    return found
