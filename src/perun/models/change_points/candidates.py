"""Where a series may change at all: the places that stand out at one of several widths.

Searches that take long for all places look at these alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

WIDTHS: Final = (4, 8, 16, 32)
"""Points before and after a place whose means are compared."""
MOST: Final = 48
"""Places that are kept of each width: the most outstanding ones."""


def candidates(values: Floats) -> list[int]:
    """Places from 1 to n - 1, ascending, where a level may begin, for values of the shape (n,)."""
    import numpy as np

    count = len(values)
    sums = np.concatenate(([0.0], np.cumsum(values)))
    found: set[int] = set()
    for width in WIDTHS:
        if count < 2 * width:
            break
        places = np.arange(width, count - width + 1)
        contrast = np.abs(sums[places + width] - 2 * sums[places] + sums[places - width])
        padded = np.pad(contrast, width // 2, constant_values=-1.0)
        highest = np.lib.stride_tricks.sliding_window_view(padded, 2 * (width // 2) + 1).max(axis=1)
        peaks = np.flatnonzero(contrast >= highest)
        peaks = peaks[np.argsort(-contrast[peaks], kind="stable")][: MOST // (1 + WIDTHS.index(width))]
        found.update(int(place) for place in places[peaks])
    return sorted(found)
