"""Clusters of amounts: which of them belong together, numbered from 1 in ascending order (manual 5.1.3).

Whatever the amounts are, they get a cluster: those that are no number (NaN) come last.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDING = 4
"""Units in the last place that the upper edge of a window may be off, being computed from three numbers that
were rounded themselves: 0.33 shall be in the window of 0.3 that is 0.1 high."""


class ClusterWindow(NamedTuple):
    """How large the window is whose amounts become one cluster.

    :param width: how many amounts it takes at most: this number (`absolute`), this share of all of them
        (`relative`), or so many different amounts, each with all its occurrences (`weighted`). It takes one
        at least.
    :param height: how much larger than the first amount the others may be: by this (`absolute`), or by this
        multiple of the first amount (`relative`).
    """

    width: float
    width_kind: Literal["absolute", "relative", "weighted"]
    height: float
    height_kind: Literal["absolute", "relative"]


def sort_order(amounts: Floats) -> Ints:
    """The rank of each amount from 1; equal ones are ranked in their order.

    :param amounts: shape (n,), in any order. :returns: shape (n,).
    """
    ranks = np.empty(amounts.size, dtype=np.int64)
    ranks[np.argsort(amounts, kind="stable")] = np.arange(1, amounts.size + 1)
    return ranks


def sliding_window(amounts: Floats, window: ClusterWindow) -> Ints:
    """The cluster of each amount; the window begins a new one at the first amount it cannot take.

    All amounts that are no number are one cluster, the last.

    :param amounts: shape (n,), in any order. :returns: shape (n,).
    """
    order = np.argsort(amounts, kind="stable")
    ascending = amounts[order]
    numbers = int(np.count_nonzero(~np.isnan(ascending)))
    begins = np.zeros(amounts.size, dtype=np.int64)
    begins[_beginnings(ascending[:numbers], window)] = 1
    begins[numbers : numbers + 1] = 1
    clusters = np.empty(amounts.size, dtype=np.int64)
    clusters[order] = np.cumsum(begins)
    return clusters


def _beginnings(ascending: Floats, window: ClusterWindow) -> list[int]:
    """Positions where a window begins; each one ends where the next begins."""
    if not ascending.size:
        return []
    # Where a window that began at each of the positions would end, all at once: only the steps from one
    # beginning to the next have to be made one after the other.
    ends = np.minimum(_ends_by_width(ascending, window), _ends_by_height(ascending, window)).tolist()
    beginnings = []
    position = 0
    while position < len(ends):
        beginnings.append(position)
        position = ends[position]
    return beginnings


def _ends_by_width(ascending: Floats, window: ClusterWindow) -> Ints:
    size = ascending.size
    if window.width_kind == "weighted":
        _, firsts = np.unique(ascending, return_index=True)
        edges = np.append(firsts, size)
        here = np.searchsorted(firsts, np.arange(size), side="right") - 1
        last = np.minimum(here + _whole(window.width, firsts.size), firsts.size)
        return np.asarray(edges[last], dtype=np.int64)
    width = window.width * size if window.width_kind == "relative" else window.width
    return np.arange(size, dtype=np.int64) + _whole(width, size)


def _ends_by_height(ascending: Floats, window: ClusterWindow) -> Ints:
    with np.errstate(over="ignore", invalid="ignore"):
        reach = np.abs(ascending) * window.height if window.height_kind == "relative" else window.height
        highest = ascending + reach
        highest += _ROUNDING * np.spacing(np.abs(highest))
    # Beyond the range of a float the highest is NaN, which is sorted behind all numbers: no limit.
    return np.searchsorted(ascending, highest, side="right")


def _whole(width: float, most: int) -> int:
    """`width` as a number of things of which there are `most`, but for rounding rounded down."""
    return max(1, int(min(width + 1e-9, most)))
