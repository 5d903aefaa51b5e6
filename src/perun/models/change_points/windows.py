"""Change points by t tests of neighbouring windows, the newer points weighing less the farther they are.

That is how Mozilla's Perfherder watches its benchmarks: each point is where a change may begin, the weighted
means of the windows before and after it are compared by Welch's t, and a local maximum of |t| above a
threshold is a change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

WIDTH: Final = 20
"""Points of each window. The weights fall linearly from 1 to 1/WIDTH."""
FEWEST: Final = 5
THRESHOLD: Final = 5.0
"""|t| from which on a point is a candidate."""


def changes(values: Floats) -> list[int]:
    """The first positions of new levels in the values, shape (n,)."""
    import numpy as np

    count = len(values)
    if count < 2 * FEWEST:
        return []
    t = np.abs(statistic(values))
    found: list[int] = []
    for place in np.argsort(-t):
        if t[place] < THRESHOLD:
            break
        if all(abs(place - other) >= WIDTH for other in found):
            found.append(int(place))
    return sorted(found)


def statistic(values: Floats) -> Floats:
    """Welch's t of the window that begins at each point against the one that ends before it, shape (n,); 0
    where a window has fewer than `FEWEST` points."""
    import numpy as np

    count = len(values)
    weights = np.arange(WIDTH, 0, -1) / WIDTH
    padded = np.concatenate((np.full(WIDTH, np.nan), values, np.full(WIDTH, np.nan)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, WIDTH)
    after = _moments(windows[WIDTH : WIDTH + count], weights)
    before = _moments(windows[:count], weights[::-1])
    enough = (before[2] >= FEWEST) & (after[2] >= FEWEST)
    with np.errstate(all="ignore"):
        error = np.sqrt(before[1] / before[3] + after[1] / after[3])
        # A window may be constant by chance, and an exact series has no noise at all.
        least = np.median(error[enough]) / 4 if enough.any() else 0.0
        t = (after[0] - before[0]) / np.maximum(np.maximum(error, least), np.finfo(float).tiny)
    return np.where(enough, np.nan_to_num(t, posinf=1e9, neginf=-1e9), 0.0)


def _moments(windows: Floats, weights: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Weighted mean and variance of each window, its points, and how many the weights make of them."""
    import numpy as np

    there = ~np.isnan(windows)
    weight = np.where(there, weights, 0.0)
    values = np.where(there, windows, 0.0)
    total = weight.sum(axis=1)
    with np.errstate(all="ignore"):
        mean = (weight * values).sum(axis=1) / total
        worth = total**2 / (weight**2).sum(axis=1)
        variance = (weight * (values - mean[:, None]) ** 2).sum(axis=1) / total * worth / (worth - 1)
    return mean, variance, there.sum(axis=1).astype(float), worth
