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
    return float(autocorrelations(values[np.newaxis])[0])


def autocorrelations(rows: Floats) -> Floats:
    """The :func:`autocorrelation` of each row, shape (k,); rows of shape (k, n), C-contiguous."""
    size = rows.shape[1]
    if size < MIN_VALUES:
        return np.zeros(len(rows))
    centred = rows - medians(np.sort(rows))[:, np.newaxis]
    totals = (centred**2).sum(axis=1)
    totals[totals == 0] = math.inf
    rho: Floats = (centred[:, 1:] * centred[:, :-1]).sum(axis=1) / totals
    rho[np.abs(rho) <= 2 / math.sqrt(size)] = 0.0
    return rho


def trend(values: Floats) -> float:
    """How steadily the values rise (to 1) or fall (to -1): their rank correlation with the order of
    measuring, 0 if that cannot be told from none at a level of 1 %.

    Source: C. Spearman, The Proof and Measurement of Association between Two Things, Am. J. Psychol. 15,
    1904; its standard error is 1 / sqrt(n - 1).

    :param values: shape (n,), in the order in which they were measured.
    """
    return float(trends(values[np.newaxis])[0])


def trends(rows: Floats) -> Floats:
    """The :func:`trend` of each row, shape (k,); rows of shape (k, n)."""
    size = rows.shape[1]
    if size < MIN_VALUES:
        return np.zeros(len(rows))
    ranks = _centred_ranks(rows)
    order = np.arange(size) - (size - 1) / 2
    scales = np.sqrt((ranks**2).sum(axis=1) * float((order**2).sum()))
    scales[scales == 0] = math.inf
    rho: Floats = (ranks * order).sum(axis=1) / scales
    rho[np.abs(rho) * math.sqrt(size - 1) <= _STEADY] = 0.0
    return rho


def _centred_ranks(rows: Floats) -> Floats:
    """The rank of each value in its row, less the mean of all ranks; equal values share theirs."""
    size = rows.shape[1]
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    places = np.arange(size)
    first = np.ones(rows.shape, bool)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=first[:, 1:])
    middles: Floats = np.broadcast_to(places + 0.5, rows.shape)
    if not first.all():
        last = np.ones_like(first)
        last[:, :-1] = first[:, 1:]
        starts = np.maximum.accumulate(np.where(first, places, 0), axis=1)
        ends = np.minimum.accumulate(np.where(last, places + 1, size)[:, ::-1], axis=1)[:, ::-1]
        middles = (starts + ends) / 2
    ranks = np.empty(rows.shape)
    np.put_along_axis(ranks, order, middles - size / 2, axis=1)
    return ranks


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
    return modes_of_each(np.sort(values)[np.newaxis])[0]


def modes_of_each(ordered: Floats) -> list[Modes | None]:
    """The :func:`modes` of each row; rows of shape (k, n), each ascending."""
    count = ordered.shape[1]
    if count < MIN_VALUES:
        return [None] * len(ordered)
    cuts = _cuts(ordered)
    places = np.arange(count)
    below = places < cuts[:, np.newaxis]
    variances = sum(_variances(ordered, part) for part in (below, ~below)) / 2
    rows = np.arange(len(ordered))
    low, high = (
        (ordered[rows, (start + end - 1) // 2] + ordered[rows, (start + end) // 2]) / 2
        for start, end in ((np.zeros_like(cuts), cuts), (cuts, np.full_like(cuts, count)))
    )
    apart = high - low > separation(count) * np.sqrt(variances)
    return [
        Modes(float(low[row]), float(high[row]), float(count - cuts[row]) / count) if apart[row] else None
        for row in rows
    ]


def _cuts(ordered: Floats) -> NDArray[np.intp]:
    """The size of the lower part of each row where the sum of squares within both parts is least."""
    count = ordered.shape[1]
    fewest = max(3, math.ceil(SMALLEST_MODE * count))
    sizes = np.arange(fewest, count - fewest + 1)
    sums, squares = np.cumsum(ordered, axis=1), np.cumsum(ordered**2, axis=1)
    head, head_squares = sums[:, sizes - 1], squares[:, sizes - 1]
    lower = head_squares - head**2 / sizes
    upper = squares[:, -1:] - head_squares - (sums[:, -1:] - head) ** 2 / (count - sizes)
    found: NDArray[np.intp] = sizes[np.argmin(lower + upper, axis=1)]
    return found


def _variances(rows: Floats, part: NDArray[np.bool_]) -> Floats:
    """The variance of that part of each row, of two values at least."""
    sizes = part.sum(axis=1)
    means = np.where(part, rows, 0.0).sum(axis=1) / sizes
    squares: Floats = np.where(part, rows - means[:, np.newaxis], 0.0) ** 2
    return np.asarray(squares.sum(axis=1) / (sizes - 1))


def medians(ordered: Floats) -> Floats:
    """The median of each row, shape (k,); rows of shape (k, n), each ascending."""
    size = ordered.shape[1]
    found: Floats = (ordered[:, (size - 1) // 2] + ordered[:, size // 2]) / 2
    return found


def separation(count: int) -> float:
    """Ashman's D that `count` values of one normal distribution, cut in two, exceed in 2 % of cases or fewer.

    The formula follows simulated quantiles for 8 to 200 values.
    """
    return max(SEPARATION, 2.7 + 16 / math.pow(count, 0.75))
