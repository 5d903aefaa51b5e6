"""Detectors of change points: five ways to see where the level of a series changes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


# Where a series may change at all: the places that stand out at one of several widths.
#
# Searches that take long for all places look at these alone.

CANDIDATE_WIDTHS: Final = (4, 8, 16, 32)
"""Points before and after a place whose means are compared."""
MOST: Final = 48
"""Places that are kept of each width: the most outstanding ones."""


def candidates(values: Floats) -> list[int]:
    """Places from 1 to n - 1, ascending, where a level may begin, for values of the shape (n,)."""
    import numpy as np

    count = len(values)
    sums = np.concatenate(([0.0], np.cumsum(values)))
    found: set[int] = set()
    for width in CANDIDATE_WIDTHS:
        if count < 2 * width:
            break
        places = np.arange(width, count - width + 1)
        contrast = np.abs(sums[places + width] - 2 * sums[places] + sums[places - width])
        padded = np.pad(contrast, width // 2, constant_values=-1.0)
        highest = np.lib.stride_tricks.sliding_window_view(padded, 2 * (width // 2) + 1).max(axis=1)
        peaks = np.flatnonzero(contrast >= highest)
        peaks = peaks[np.argsort(-contrast[peaks], kind="stable")][
            : MOST // (1 + CANDIDATE_WIDTHS.index(width))
        ]
        found.update(int(place) for place in places[peaks])
    return sorted(found)


# Change points by E-divisive means.
#
# Each segment is divided where the energy distance of its two parts is the largest, as long as the parts
# differ significantly. D. Matteson, N. James: A Nonparametric Approach for Multiple Change Point Analysis of
# Multivariate Data, JASA 109 (2014). Their permutation test is replaced by the rank sum of the two parts,
# which needs no random numbers, corrected for the choice of the best place. Places are those that stand out
# (`candidates`).

SHORTEST: Final = 4
SIGNIFICANCE: Final = 0.001


def energy_changes(values: Floats, significance: float = SIGNIFICANCE) -> list[int]:
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


# Change points beside a slope: the jump of a line that goes on at the same slope.
#
# A machine that slowly becomes slower moves a series without any commit. In each window the series is fitted
# by least squares with a constant, a slope and a step in the middle; the t statistic of the step says whether
# it jumps. Several widths are tried: narrow ones for levels that soon change again, wide ones for small
# steps. Ordinary segmented regression, as in A. Wagner et al.: Segmented Regression Analysis of Interrupted
# Time Series, J. Clin. Pharm. Ther. 27 (2002), at every point.

JUMP_WIDTHS: Final = (12, 24, 48)
"""Points on either side of a window."""
JUMP_THRESHOLD: Final = 4.6
"""|t| of the step from which on a point is a candidate."""


def jump_changes(values: Floats) -> list[int]:
    """The first positions of new levels in the values, shape (n,)."""
    import numpy as np

    found: list[tuple[float, int, int]] = []
    for width in JUMP_WIDTHS:
        if len(values) < 2 * width:
            break
        t = np.abs(jump_statistic(values, width))
        while t[place := int(np.argmax(t))] > JUMP_THRESHOLD:
            found.append((float(t[place]), place, width))
            t[max(0, place - width + 1) : place + width] = 0
    chosen: list[int] = []
    for _, place, _ in sorted(found, reverse=True):
        if all(abs(place - other) >= JUMP_WIDTHS[0] // 2 for other in chosen):
            chosen.append(place)
    return sorted(chosen)


def jump_statistic(values: Floats, width: int) -> Floats:
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


# How much a series moves without a change of its level: the noise, and how it hangs together in time.

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


# The cheapest division of a series into levels, for any cost of a level.


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


# Change points in the space of a Gaussian kernel.
#
# The cost of a segment is the spread of its points in the kernel's space, so that a change of any kind
# counts, not of the mean alone, and a spike costs at most 1. S. Arlot, A. Celisse, Z. Harchaoui: A Kernel
# Multiple Change-point Algorithm via Model Selection, JMLR 20 (2019). The bandwidth is a multiple of the
# noise of neighbours and not of the whole spread, which holds the changes. The search is exact over the
# places that stand out (`candidates`).

KERNEL_PRICE: Final = 1.9
"""What a level costs, in multiples of ln n."""
BANDWIDTH: Final = 1.5
"""The width of the kernel, in standard deviations of the noise."""


def kernel_changes(values: Floats) -> list[int]:
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
    return [int(bounds[i]) for i in cheapest(costs, KERNEL_PRICE * np.log(count))]


# Change points as the fewest levels that fit: the L1 Potts functional.
#
# The sum of absolute deviations from the median of each level, plus a price for each level, is least.
# Absolute deviations make it robust against spikes. M. Storath, A. Weinmann, M. Unser: Jump-Penalized Least
# Absolute Values Estimation of Scalar or Circle-Valued Signals, Information and Inference 6 (2017); asv finds
# its steps so. The search is exact over the places that stand out (`candidates`), and values count as the
# mean of their quantile of `BINS`.

POTTS_PRICE: Final = 2.6
"""What a level costs, in multiples of ln n and of the mean absolute deviation of the noise."""
BINS: Final = 64
_ABSOLUTE: Final = 0.7978845608028654
"""The mean absolute deviation of a normal distribution, sqrt(2 / pi), in standard deviations."""


def potts_changes(values: Floats) -> list[int]:
    """The first positions of new levels in the values, shape (n,)."""
    import numpy as np

    count = len(values)
    if count < 2 * SHORTEST or np.ptp(values) == 0:
        return []
    noise = max(deviation_of_differences(values) * _ABSOLUTE, np.ptp(values) * 1e-6)
    bounds = np.array([0, *candidates(values), count])
    costs = np.where(lengths(bounds) >= SHORTEST, deviations(values, bounds), np.inf)
    return [int(bounds[i]) for i in cheapest(costs, POTTS_PRICE * noise * np.log(count))]


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


# Change points by t tests of neighbouring windows, the newer points weighing less the farther they are.
#
# That is how Mozilla's Perfherder watches its benchmarks: each point is where a change may begin, the
# weighted means of the windows before and after it are compared by Welch's t, and a local maximum of |t|
# above a threshold is a change.

WIDTH: Final = 20
"""Points of each window. The weights fall linearly from 1 to 1/WIDTH."""
FEWEST: Final = 5
WINDOW_THRESHOLD: Final = 5.0
"""|t| from which on a point is a candidate."""


def window_changes(values: Floats) -> list[int]:
    """The first positions of new levels in the values, shape (n,)."""
    import numpy as np

    count = len(values)
    if count < 2 * FEWEST:
        return []
    t = np.abs(window_statistic(values))
    found: list[int] = []
    for place in np.argsort(-t):
        if t[place] < WINDOW_THRESHOLD:
            break
        if all(abs(place - other) >= WIDTH for other in found):
            found.append(int(place))
    return sorted(found)


def window_statistic(values: Floats) -> Floats:
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
