"""Single measurements far from their neighbours: spikes, which are no change of level.

Hampel's identifier: a point is a spike if it lies more than `THRESHOLD` scaled MADs from the median of the
points around it. L. Davies, U. Gather: The Identification of Multiple Outliers, JASA 88 (1993).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

HALF_WINDOW: Final = 5
"""Points on either side. A new level of more points than that is a level, and no spike."""
THRESHOLD: Final = 4.0
LONGEST: Final = 2
"""Points in a row that can be spikes: three in a row are a short level."""
_OF_NORMAL: Final = 1.4826
"""The standard deviation of a normal distribution by its MAD."""


def spikes(values: Floats) -> Flags:
    """Which of the values, shape (n,), are spikes, shape (n,)."""
    import numpy as np

    count = len(values)
    if count < 2 * HALF_WINDOW + 1:
        return np.zeros(count, bool)
    windows = np.lib.stride_tricks.sliding_window_view(values, 2 * HALF_WINDOW + 1)
    median = np.median(windows, axis=1)
    mad = np.median(np.abs(windows - median[:, None]), axis=1)
    # At the ends the window of the first or last whole neighbourhood stands for the missing one.
    place = np.clip(np.arange(count) - HALF_WINDOW, 0, count - 2 * HALF_WINDOW - 1)
    usual = np.maximum(mad, np.median(mad))[place] * _OF_NORMAL
    far = np.abs(values - median[place]) > THRESHOLD * np.maximum(usual, np.finfo(float).tiny)
    single: Flags = far & ~_long_runs(far)
    return single


def _long_runs(flags: Flags) -> Flags:
    """The flags that stand in rows of more than `LONGEST`, and in those at the two ends of a series, where
    nobody knows yet whether a level begins."""
    import numpy as np

    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    found = np.zeros_like(flags)
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        if end - first > LONGEST:
            found[first:end] = True
    return found
