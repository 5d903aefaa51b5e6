"""Moving averages: mean, weighted mean, median and exponential mean over a window (manual 5.1.5)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.models.decay import smoothing_factor
from perun.models.points import r_square, scaled, usable
from perun.models.record import NoModel

if TYPE_CHECKING:
    pass


# Means and medians over a window that moves along values: those of pandas' `rolling` and `ewm`.
#
# Values are scaled (see :func:`perun.models.points.scaled`), so that no sum of them overflows.

# Window functions of weighted moving averages, symmetric, as :mod:`scipy.signal.windows` has them.
#
# They are written down here because importing that module takes a second, more than a whole moving average.
#
# F. J. Harris: On the use of windows for harmonic analysis with the discrete Fourier transform. Proc. IEEE 66
# (1978); A. H. Nuttall: Some windows with very good sidelobe behavior. IEEE Trans. ASSP 29 (1981);
# Y. H. Ha, J. A. Pearce: A new window and comparison to standard windows. IEEE Trans. ASSP 37 (1989).

Floats = NDArray[np.float64]

_KAISER_BETA: Final = 14.0  # of the manual: "a good starting point"


def weights(kind: str, width: int, position: NDArray[np.int64]) -> Floats:
    """The weights at some positions of a window.

    :param kind: one of :data:`KINDS`. :param width: points in the whole window.
    :param position: from 0 to width - 1, shape (n,). :returns: shape (n,), at most 1.
    """
    if width == 1:
        return np.ones(position.size)
    return KINDS[kind](position.astype(np.float64), width)


def _boxcar(position: Floats, width: int) -> Floats:
    return np.ones(position.size)


def _triang(position: Floats, width: int) -> Floats:
    nearest = np.minimum(position, width - 1 - position) + 1
    return 2 * nearest / (width + 1) if width % 2 else (2 * nearest - 1) / width


def _bartlett(position: Floats, width: int) -> Floats:
    return np.where(position <= (width - 1) / 2, 2 * position / (width - 1), 2 - 2 * position / (width - 1))


def _cosines(*factors: float) -> Callable[[Floats, int], Floats]:
    def window(position: Floats, width: int) -> Floats:
        angle = np.where(position == width - 1, np.pi, position * (2 * np.pi / (width - 1)) - np.pi)
        total = np.zeros(position.size)
        for multiple, factor in enumerate(factors):
            total += factor * np.cos(multiple * angle)
        return total

    return window


def _parzen(position: Floats, width: int) -> Floats:
    distance = np.abs(position - (width - 1) / 2)
    share = distance / (width / 2)
    near = 1 - 6 * share**2 + 6 * share**3
    return np.where(distance <= (width - 1) / 4, near, 2 * (1 - share) ** 3)


def _bohman(position: Floats, width: int) -> Floats:
    share = np.abs(position * (2 / (width - 1)) - 1)
    inner = (1 - share) * np.cos(np.pi * share) + np.sin(np.pi * share) / np.pi
    return np.where((position == 0) | (position == width - 1), 0.0, inner)


def _barthann(position: Floats, width: int) -> Floats:
    share = np.abs(position / (width - 1) - 0.5)
    return 0.62 - 0.48 * share + 0.38 * np.cos(2 * np.pi * share)


def _kaiser(position: Floats, width: int) -> Floats:
    share = (position - (width - 1) / 2) / ((width - 1) / 2)
    return np.asarray(np.i0(_KAISER_BETA * np.sqrt(1 - share**2)) / np.i0(_KAISER_BETA))


KINDS: Final[Mapping[str, Callable[[Floats, int], Floats]]] = {
    "boxcar": _boxcar,
    "triang": _triang,
    "blackman": _cosines(0.42, 0.50, 0.08),
    "hamming": _cosines(0.54, 1.0 - 0.54),
    "bartlett": _bartlett,
    "parzen": _parzen,
    "bohman": _bohman,
    "blackmanharris": _cosines(0.35875, 0.48829, 0.14128, 0.01168),
    "nuttall": _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "barthann": _barthann,
    "kaiser": _kaiser,
}
"""The window functions of the manual, of a position and the width of the window."""


# The k-th smallest value of each of many windows, by numpy alone.
#
# A wavelet matrix (F. Claude, G. Navarro, A. Ordóñez: The wavelet matrix, Information Systems 47, 2015) of
# the ranks of the values answers for all windows at once, one bit of the rank at a time: in O(log n) for each
# window, however wide it is.

Places = NDArray[np.int32]
"""Positions among up to 2^30 values; 64 bits would take half as much time again."""


class OrderStatistics(NamedTuple):
    """Values prepared for :meth:`smallest`; made by :meth:`of`.

    :param ascending: the values in ascending order, shape (n,).
    :param levels: for each bit of the ranks, the highest first, where the first i ranks of its level end on
        the next one: at i those without the bit, at n + 1 + i those with it, which lie behind them; shape
        (bits, 2 (n + 1)).
    """

    ascending: Floats
    levels: Places

    @classmethod
    def of(cls, values: Floats) -> OrderStatistics:
        """The values prepared for any number of windows, in O(n log n) time and memory.

        :param values: shape (n,), n > 0, none of them NaN.
        """
        size = values.size
        order = np.argsort(values, kind="stable")
        ranks = np.empty(size, np.int32)
        ranks[order] = np.arange(size, dtype=np.int32)
        bits = (size - 1).bit_length()
        levels = np.zeros((bits, 2, size + 1), np.int32)
        for (without, with_bit), bit in zip(levels, reversed(range(bits)), strict=True):
            lacks = (ranks >> bit) & 1 == 0
            np.cumsum(lacks, out=without[1:])
            # Ranks with the bit go behind all that lack it, so that the next level has them side by side.
            with_bit[:] = np.arange(size + 1, dtype=np.int32) - without + without[-1]
            ranks = np.concatenate((ranks[lacks], ranks[~lacks]))
        return cls(values[order], levels.reshape(bits, 2 * (size + 1)))

    def smallest(self, first: Places, end: Places, place: Places) -> Floats:
        """The value that has `place` smaller ones in the window from `first` up to, without, `end`.

        :param first, end, place: shape (windows,), with 0 <= first < end <= n and 0 <= place < end - first.
        :returns: shape (windows,).
        """
        rank = np.zeros_like(first)
        for level in self.levels:
            lower = level.take(end) - level.take(first)  # ranks of the window without the bit
            above = (place >= lower).astype(np.int32)
            rank = (rank << 1) | above
            # Arithmetic with 0 and 1: `np.where` takes three times as long on bits that nothing predicts.
            place = place - lower * above
            branch = above * np.int32(self.ascending.size + 1)
            first, end = level.take(first + branch), level.take(end + branch)
        return self.ascending[rank]


_LONG_KERNEL: Final = 400
"""Weights from which on the Fourier transform is quicker than a direct sum."""


class AverageWindow(NamedTuple):
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


DEFAULT_WINDOW: Final = AverageWindow()


def rolling_mean(y: Floats, width: int, window: AverageWindow) -> Floats:
    """The mean of each window; if there is none, NaN.

    :param y: shape (n,). :param width: points in a window. :returns: shape (n,).
    """
    return _mean(y, width, window, _exact_sums)


def fast_mean(y: Floats, width: int, window: AverageWindow) -> Floats:
    """As :func:`rolling_mean`, but the rounding error is that of the sum of all values."""
    return _mean(y, width, window, _running_sums)


def rolling_weighted_mean(y: Floats, width: int, window: AverageWindow, kind: str) -> Floats:
    """The weighted mean of each window; if it is cut short, with the weights of the points that it has.

    Parameters are those of :func:`rolling_mean`; `kind` is one of
    :data:`perun.models.moving_average.KINDS`.
    """
    return _weighted_mean(y, width, window, kind, _correlate)


def fast_weighted_mean(y: Floats, width: int, window: AverageWindow, kind: str) -> Floats:
    """As :func:`rolling_weighted_mean`, but the rounding error is that of the largest sum."""
    return _weighted_mean(y, width, window, kind, _correlate_by_fourier)


def rolling_median(values: OrderStatistics, width: int, window: AverageWindow) -> Floats:
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


def _mean(y: Floats, width: int, window: AverageWindow, sums: Callable[[Floats, int], Floats]) -> Floats:
    before, behind = window.reach(width, y.size)
    counts = _counts(y.size, before, behind)
    means = sums(np.pad(y, (before, behind)), before + behind + 1) / counts
    return _where(counts >= window.needs(width), means, y)


def _weighted_mean(
    y: Floats, width: int, window: AverageWindow, kind: str, sums: Callable[[Floats, Floats], Floats]
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


# Moving averages: mean, weighted mean, median and exponential mean over a window that moves (manual 5.1.5).
#
# Results are those of pandas' `rolling` and `ewm`, NaN if a window has too few points.

GOOD_FIT: Final = 0.88
"""Coefficient of determination at which the search for a width ends."""
_FIRST_WIDTH: Final = 0.05  # of the interval of x
_MIN_WIDTHS: Final = 100
_MAX_POINT_VISITS: Final = 10_000_000
"""Points that the search of a width visits, all widths together: 100 widths of 100,000 points. Some 60 widths
are enough for its long steps, but if wide windows fit nearly well enough, it takes steps of 1."""


class MovingAverage(NamedTuple):
    """A moving average of points in the order of x.

    :param stats: the average at each point, NaN if there is none, shape (points,).
    :param width: points in a window, or the number that says how quickly an exponential average forgets.
    :param r_square: coefficient of determination; a point without an average is not explained.
    """

    stats: Floats
    width: float
    x_start: float
    x_end: float
    r_square: float


Smoother = Callable[[Floats, int, AverageWindow], Floats]


def simple(
    x: Floats, y: Floats, width: int = 0, window: AverageWindow = DEFAULT_WINDOW, kind: str = ""
) -> MovingAverage | NoModel:
    """Simple moving average: the mean of each window, weighted if `kind` names a window function.

    :param x: shape (n,). :param y: shape (n,). :param width: points in a window; 0: see :func:`best_width`.
    :param kind: one of :data:`perun.models.moving_average.KINDS`.
    """
    if not kind:
        return _smoothed(x, y, width, window, rolling_mean, fast_mean)
    exact, quick = partial(rolling_weighted_mean, kind=kind), partial(fast_weighted_mean, kind=kind)
    return _smoothed(x, y, width, window, exact, quick)


def median(
    x: Floats, y: Floats, width: int = 0, window: AverageWindow = DEFAULT_WINDOW
) -> MovingAverage | NoModel:
    """Simple moving median: parameters are those of :func:`simple`."""
    values: OrderStatistics | None = None

    def quick(unit: Floats, width: int, window: AverageWindow) -> Floats:
        nonlocal values
        values = values or OrderStatistics.of(unit)  # the search tries many widths on the same points
        return rolling_median(values, width, window)

    return _smoothed(x, y, width, window, quick, quick)


def exponential(
    x: Floats, y: Floats, decay: str = "com", value: float = 0.0, min_periods: int = 0
) -> MovingAverage | NoModel:
    """Exponential moving average: the mean of a point and all before it, with weights (1 - alpha)^distance.

    :param decay: one of :data:`perun.models.moving_average.DECAYS`, which says what `value` is.
    :param min_periods: points needed for an average, counting from the first one.
    """
    import numpy as np

    points = usable(x, y)
    if isinstance(points, NoModel):
        return points
    x, y = points
    unit, exponent = scaled(y)
    stats = exponential_mean(unit, smoothing_factor(decay, value))
    stats[: max(0, min_periods - 1)] = np.nan
    return _model(x, unit, exponent, stats, value)


def _smoothed(
    x: Floats, y: Floats, width: int, window: AverageWindow, smoother: Smoother, quick: Smoother
) -> MovingAverage | NoModel:
    """The model by `smoother`; the search for a width may round as `quick` does."""
    points = usable(x, y)
    if isinstance(points, NoModel):
        return points
    x, y = points
    unit, exponent = scaled(y)
    found = width or best_width(x, lambda width: r_square(unit, quick(unit, width, window)))
    return _model(x, unit, exponent, smoother(unit, found, window), found)


def _model(x: Floats, unit: Floats, exponent: int, stats: Floats, width: float) -> MovingAverage | NoModel:
    import numpy as np

    if np.all(np.isnan(stats)):
        return NoModel(f"no window of width {width:g} gives a value for its {x.size} points")
    fit = r_square(unit, stats)
    return MovingAverage(np.ldexp(stats, exponent), width, float(x[0]), float(x[-1]), fit)


def best_width(x: Floats, fit: Callable[[int], float]) -> int:
    """The first width that fits well enough, from a twentieth of the interval of x downwards.

    With a coefficient of determination R2 the width w shrinks by max(1, int(min(0.9 w - 1,
    0.15 (w - 1) (0.88 - R2)))). It is never more than the number of points. Where that would take too long
    (see :data:`_MAX_POINT_VISITS`), bisection finds the widest one that fits well enough, as if the
    coefficient grew with each shorter window.

    :param x: in ascending order. :param fit: coefficient of determination of a width.
    """
    width = max(1, int(min(_FIRST_WIDTH * (float(x[-1]) - float(x[0])), x.size)))
    for _ in range(max(_MIN_WIDTHS, _MAX_POINT_VISITS // x.size)):
        reached = fit(width)
        if width == 1 or reached >= GOOD_FIT:
            return width
        width -= max(1, int(min(0.9 * width - 1, 0.15 * (width - 1) * (GOOD_FIT - reached))))
    good, bad = 1, width + 1
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fit(middle) >= GOOD_FIT else (good, middle)
    return good
