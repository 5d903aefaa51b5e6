"""Means and medians over a window that moves along values: those of pandas' `rolling` and `ewm`.

Values are scaled (see :func:`perun.models.points.scaled`), so that no sum of them overflows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.models.moving.order_statistics import OrderStatistics
from perun.models.moving.windows import weights
from perun.models.points import Floats

_LONG_KERNEL: Final = 400
"""Weights from which on the Fourier transform is quicker than a direct sum."""


class Window(NamedTuple):
    """Which points make the average at a point.

    :param center: as many before it as behind (one more before it, if the width is even); else the point
        itself and those before it.
    :param min_periods: points needed for an average; 0: as many as the window is wide.
    """

    center: bool = True
    min_periods: int = 0

    def reach(self, width: int, size: int) -> tuple[int, int]:
        """How many points before and behind a point can be in its window, of `size` points in all."""
        before = width // 2 if self.center else width - 1
        return min(before, size - 1), min(width - 1 - before, size - 1)

    def needs(self, width: int) -> int:
        """Points needed for an average in a window of that width."""
        return min(self.min_periods, width) or width


DEFAULT_WINDOW: Final = Window()


def rolling_mean(y: Floats, width: int, window: Window) -> Floats:
    """The mean of each window; if there is none, NaN.

    :param y: shape (n,). :param width: points in a window. :returns: shape (n,).
    """
    return _mean(y, width, window, _exact_sums)


def fast_mean(y: Floats, width: int, window: Window) -> Floats:
    """As :func:`rolling_mean`, but the rounding error is that of the sum of all values."""
    return _mean(y, width, window, _running_sums)


def rolling_weighted_mean(y: Floats, width: int, window: Window, kind: str) -> Floats:
    """The weighted mean of each window; if it is cut short, with the weights of the points that it has.

    Parameters are those of :func:`rolling_mean`; `kind` is one of
    :data:`perun.models.moving.windows.KINDS`.
    """
    return _weighted_mean(y, width, window, kind, _correlate)


def fast_weighted_mean(y: Floats, width: int, window: Window, kind: str) -> Floats:
    """As :func:`rolling_weighted_mean`, but the rounding error is that of the largest sum."""
    return _weighted_mean(y, width, window, kind, _correlate_by_fourier)


def rolling_median(values: OrderStatistics, width: int, window: Window) -> Floats:
    """The median of each window; if there is none, NaN.

    :param values: prepared once for many widths, shape (n,). :param width: points in a window.
    :returns: shape (n,).
    """
    size = values.ascending.size
    before, behind = window.reach(width, size)
    position = np.arange(size, dtype=np.int32)
    first, end = np.maximum(position - before, 0), np.minimum(position + behind, size - 1) + 1
    counts = end - first
    medians = values.smallest(first, end, counts // 2)
    even = np.flatnonzero(counts % 2 == 0)
    if even.size:
        lower = values.smallest(first[even], end[even], counts[even] // 2 - 1)
        medians[even] = (lower + medians[even]) / 2
    medians[counts < window.needs(width)] = np.nan
    return medians


def exponential_mean(y: Floats, alpha: float) -> Floats:
    """The mean of each value and all before it, with weights (1 - alpha)^distance.

    :param y: scaled values, shape (n,). :param alpha: more than 0, at most 1. :returns: shape (n,).
    """
    keep = 1 - alpha
    sums = itertools.accumulate(y.tolist(), lambda total, value: keep * total + value)
    with np.errstate(divide="ignore", under="ignore"):  # log(1 - 1)
        # The sum of the weights, 1 + (1 - alpha) + (1 - alpha)^2 + ...
        total = -np.expm1(np.arange(1, y.size + 1) * np.log1p(-alpha)) / alpha
    means = np.fromiter(sums, np.float64, y.size) / total
    return np.asarray(np.clip(means, y.min(), y.max()))


def _mean(y: Floats, width: int, window: Window, sums: Callable[[Floats, int], Floats]) -> Floats:
    before, behind = window.reach(width, y.size)
    counts = _counts(y.size, before, behind)
    means = sums(np.pad(y, (before, behind)), before + behind + 1) / counts
    return _where(counts >= window.needs(width), means, y)


def _weighted_mean(
    y: Floats, width: int, window: Window, kind: str, sums: Callable[[Floats, Floats], Floats]
) -> Floats:
    before, behind = window.reach(width, y.size)
    # Of a window wider than twice the points only the weights that some point can have are made.
    first = (width // 2 if window.center else width - 1) - before
    kernel = weights(kind, width, np.arange(first, first + before + behind + 1))
    enough = _counts(y.size, before, behind) >= window.needs(width)
    total = _weight_sums(kernel, y.size, before, behind)
    with np.errstate(under="ignore", divide="ignore", invalid="ignore"):
        means = sums(np.pad(y, (before, behind)), kernel) / total
    return _where(enough & (total != 0), means, y)


def _counts(size: int, before: int, behind: int) -> Floats:
    """The number of points in each window, which may lie partly beyond the ends."""
    position = np.arange(size, dtype=np.float64)
    return np.minimum(position + behind, size - 1) - np.maximum(position - before, 0) + 1


def _weight_sums(kernel: Floats, size: int, before: int, behind: int) -> Floats:
    """The sum of the weights that points have, for each of `size` windows."""
    if kernel.size > size:  # both ends may cut the same window short
        return _correlate(np.pad(np.ones(size), (before, behind)), kernel)
    total = np.full(size, kernel.sum())
    total[:before] = np.cumsum(kernel[::-1])[behind : behind + before]
    total[size - behind :] = np.cumsum(kernel)[before : before + behind][::-1]
    return total


def _where(enough: NDArray[np.bool_], means: Floats, y: Floats) -> Floats:
    # Only rounding can lead out of the range of the values; the mean of equal ones shall be that value.
    return np.where(enough, np.clip(means, y.min(), y.max()), np.nan)


def _exact_sums(padded: Floats, width: int) -> Floats:
    """The sum of each window of `width` values in `padded`.

    A window is the end of one block of `width` values and the beginning of the next. Unlike with one running
    sum, a value adds rounding errors only to the windows that it is in.
    """
    windows = padded.size - width + 1
    blocks = np.pad(padded, (0, -padded.size % width)).reshape(-1, width)
    sums = np.cumsum(blocks[:, ::-1], axis=1)[:, ::-1].ravel()[:windows]
    beginnings = np.cumsum(blocks, axis=1)
    beginnings[:, -1] = 0  # where a window is a block itself
    return np.asarray(sums + beginnings.ravel()[width - 1 : width - 1 + windows])


def _running_sums(padded: Floats, width: int) -> Floats:
    running = np.concatenate(([0.0], np.cumsum(padded)))
    return np.asarray(running[width:] - running[:-width])


def _correlate(padded: Floats, kernel: Floats) -> Floats:
    """The sum of values times weights for each place that the kernel can have in `padded`."""
    return np.asarray(np.correlate(padded, kernel), dtype=np.float64)


def _correlate_by_fourier(padded: Floats, kernel: Floats) -> Floats:
    if kernel.size < _LONG_KERNEL:
        return _correlate(padded, kernel)
    # A power of two is the fastest length; the product is circular, but wraps only into what is cut off.
    length = 1 << (padded.size - 1).bit_length()
    spectrum = np.fft.rfft(padded, length) * np.fft.rfft(kernel[::-1], length)
    return np.asarray(np.fft.irfft(spectrum, length)[kernel.size - 1 : padded.size])
