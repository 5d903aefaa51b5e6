"""How much a series moves without a change of its level: the noise, and how it hangs together in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_OF_NORMAL: Final = 1.4826
MOST_CORRELATED: Final = 0.9
"""The largest autocorrelation that is believed: beyond it, a level of its own explains the series better."""


def deviation_of_differences(values: Floats) -> float:
    """The standard deviation of the noise around levels that rarely change: by the MAD of the differences of
    neighbours, as a step is in one of them only; 0 for fewer than two values."""
    import numpy as np

    if len(values) < 2:
        return 0.0
    differences = np.diff(values)
    mad = median(np.abs(differences - median(differences)))
    spread = mad * _OF_NORMAL / np.sqrt(2)
    if spread > 0:
        return float(spread)
    return float(np.mean(np.abs(differences)) * np.sqrt(np.pi) / 2)


def median(values: Floats) -> float:
    """The median of one value or more, shape (n,): that of numpy in a fifth of its time where they are few.

    Thousands of them are taken after each commit.
    """
    import numpy as np

    ordered = np.sort(values)
    middle = len(ordered) // 2
    return float(ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2)


def autocorrelation(residuals: Floats) -> float:
    """The correlation of neighbours of residuals around their levels, shape (n,), from 0 to
    `MOST_CORRELATED`.

    That of signs by the arcsine law, so that spikes do not count more than others; the bias of short series,
    -(1 + 3 rho) / n, is taken off (Kendall 1954).
    """
    import numpy as np

    count = len(residuals)
    if count < 8:
        return 0.0
    signs = np.sign(residuals - np.median(residuals))
    agreement = float(np.mean(signs[1:] * signs[:-1]))
    rho = np.sin(np.pi / 2 * agreement)
    rho = (rho + 1 / count) / (1 - 3 / count)
    return float(np.clip(rho, 0.0, MOST_CORRELATED))


def effective_count(count: float, rho: float) -> float:
    """Of how many independent points `count` points are worth whose neighbours correlate by rho (AR(1))."""
    return count * (1 - rho) / (1 + rho)
