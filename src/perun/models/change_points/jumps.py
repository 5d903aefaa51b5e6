"""Change points beside a slope: the jump of a line that goes on at the same slope.

A machine that slowly becomes slower moves a series without any commit. In each window the series is fitted by
least squares with a constant, a slope and a step in the middle; the t statistic of the step says whether it
jumps. Several widths are tried: narrow ones for levels that soon change again, wide ones for small steps.
Ordinary segmented regression, as in A. Wagner et al.: Segmented Regression Analysis of Interrupted Time
Series, J. Clin. Pharm. Ther. 27 (2002), at every point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

WIDTHS: Final = (12, 24, 48)
"""Points on either side of a window."""
THRESHOLD: Final = 4.6
"""|t| of the step from which on a point is a candidate."""


def changes(values: Floats) -> list[int]:
    """The first positions of new levels in the values, shape (n,)."""
    import numpy as np

    found: list[tuple[float, int, int]] = []
    for width in WIDTHS:
        if len(values) < 2 * width:
            break
        t = np.abs(statistic(values, width))
        while t[place := int(np.argmax(t))] > THRESHOLD:
            found.append((float(t[place]), place, width))
            t[max(0, place - width + 1) : place + width] = 0
    chosen: list[int] = []
    for _, place, _ in sorted(found, reverse=True):
        if all(abs(place - other) >= WIDTHS[0] // 2 for other in chosen):
            chosen.append(place)
    return sorted(chosen)


def statistic(values: Floats, width: int) -> Floats:
    """The t statistic of a step at each point between the `width` points before and after it, shape (n,); 0
    where a window is not whole."""
    import numpy as np

    count = len(values)
    design = np.ones((2 * width, 3))
    design[:, 1] = np.arange(2 * width) - width + 0.5
    design[:width, 2] = 0
    inverse = np.linalg.inv(design.T @ design)
    solve = inverse @ design.T
    windows = np.lib.stride_tricks.sliding_window_view(values, 2 * width)
    centred = windows - windows.mean(axis=1, keepdims=True)
    coefficients = centred @ solve.T
    squares = (centred**2).sum(axis=1) - ((centred @ design) * coefficients).sum(axis=1)
    variance = np.maximum(squares, 0) / (2 * width - 3)
    variance = np.maximum(variance, np.median(variance) / 16)
    with np.errstate(all="ignore"):
        t = coefficients[:, 2] / np.sqrt(variance * inverse[2, 2])
    found = np.zeros(count)
    found[width : width + len(t)] = np.nan_to_num(t, posinf=1e9, neginf=-1e9)
    return found
