"""What breaks the assumptions behind a comparison: values that depend on those before them, and two modes."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MIN_VALUES: Final = 8
"""Values below which neither correlation nor modes can be told from chance."""
SEPARATION: Final = 3.5
"""Ashman's D from which on there are two modes; the halves of many normally distributed values have 2.7."""
SMALLEST_MODE: Final = 0.15
"""Share of the values that a mode has at least; fewer are outliers."""

_STEADY: Final = 2.576
"""Quantile of the normal distribution for a two-sided level of 1 %."""


class Modes(NamedTuple):
    """Two groups of values, far apart.

    :param low: median of the lower group; :param high: of the upper one.
    :param share: part of the values in the upper group.
    """

    low: float
    high: float
    share: float


def autocorrelation(values: Floats) -> float:
    """The correlation of each value with the next one, in [-1, 1]; 0 if it cannot be told from none.

    The limit is two standard errors, 2 / sqrt(n).

    :param values: shape (n,), in the order in which they were measured.
    """
    if values.size < MIN_VALUES:
        return 0.0
    centred = values - np.median(values)
    total = float((centred**2).sum())
    if total == 0:
        return 0.0
    rho = float((centred[1:] * centred[:-1]).sum()) / total
    return rho if abs(rho) > 2 / math.sqrt(values.size) else 0.0


def trend(values: Floats) -> float:
    """How steadily the values rise (to 1) or fall (to -1): their rank correlation with the order of
    measuring, 0 if that cannot be told from none at a level of 1 %.

    Source: C. Spearman, The Proof and Measurement of Association between Two Things, Am. J. Psychol. 15,
    1904; its standard error is 1 / sqrt(n - 1).

    :param values: shape (n,), in the order in which they were measured.
    """
    size = values.size
    if size < MIN_VALUES:
        return 0.0
    ordered = np.sort(values)
    ranks = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / 2
    ranks -= ranks.mean()
    order = np.arange(size) - (size - 1) / 2
    scale = math.sqrt(float((ranks**2).sum()) * float((order**2).sum()))
    rho = float((ranks * order).sum()) / scale if scale else 0.0
    return rho if abs(rho) * math.sqrt(size - 1) > _STEADY else 0.0


def inflation(rho: float) -> float:
    """The factor by which a lag-1 correlation widens the standard error of a mean; at least 1.

    n correlated values tell as much as n (1 - rho) / (1 + rho) independent ones.
    """
    rho = min(max(rho, 0.0), 0.95)
    return math.sqrt((1 + rho) / (1 - rho))


def modes(values: Floats) -> Modes | None:
    """The two modes of the values, None if they have one.

    The values are cut where the sum of squares within both parts is least. The parts are modes if Ashman's
    D, the distance of their medians over the root mean square of their standard deviations, is at least
    :func:`separation` and the smaller part holds :data:`SMALLEST_MODE` of the values.

    Source: K. M. Ashman, C. M. Bird, S. E. Zepf, Detecting Bimodality in Astronomical Datasets,
    Astron. J. 108, 1994.

    :param values: shape (n,).
    """
    count = values.size
    if count < MIN_VALUES:
        return None
    ordered = np.sort(values)
    fewest = max(3, math.ceil(SMALLEST_MODE * count))
    sizes = np.arange(fewest, count - fewest + 1)
    sums, squares = np.cumsum(ordered), np.cumsum(ordered**2)
    lower = squares[sizes - 1] - sums[sizes - 1] ** 2 / sizes
    rest = count - sizes
    upper = squares[-1] - squares[sizes - 1] - (sums[-1] - sums[sizes - 1]) ** 2 / rest
    cut = int(sizes[np.argmin(lower + upper)])
    parts = ordered[:cut], ordered[cut:]
    low, high = (float(np.median(part)) for part in parts)
    variance = sum(float(np.var(part, ddof=1)) for part in parts) / 2
    if high - low <= separation(count) * math.sqrt(variance):
        return None
    return Modes(low, high, (count - cut) / count)


def separation(count: int) -> float:
    """Ashman's D that `count` values of one normal distribution, cut in two, exceed in 2 % of cases or fewer.

    The formula follows simulated quantiles for 8 to 200 values.
    """
    return max(SEPARATION, 2.7 + 16 / math.pow(count, 0.75))
