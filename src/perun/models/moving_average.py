"""Moving averages: mean, weighted mean, median and exponential mean over a window (manual 5.1.5)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.models.decay import smoothing_factor
from perun.models.points import Floats, r_square, scaled, usable
from perun.models.record import NoModel
from perun.models.rolling import (
    DEFAULT_WINDOW,
    OrderStatistics,
    Window,
    exponential_mean,
    fast_mean,
    fast_weighted_mean,
    rolling_mean,
    rolling_median,
    rolling_weighted_mean,
)

if TYPE_CHECKING:
    pass


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


Smoother = Callable[[Floats, int, Window], Floats]


def simple(
    x: Floats, y: Floats, width: int = 0, window: Window = DEFAULT_WINDOW, kind: str = ""
) -> MovingAverage | NoModel:
    """Simple moving average: the mean of each window, weighted if `kind` names a window function.

    :param x: shape (n,). :param y: shape (n,). :param width: points in a window; 0: see :func:`best_width`.
    :param kind: one of :data:`perun.models.rolling.KINDS`.
    """
    if not kind:
        return _smoothed(x, y, width, window, rolling_mean, fast_mean)
    exact, quick = partial(rolling_weighted_mean, kind=kind), partial(fast_weighted_mean, kind=kind)
    return _smoothed(x, y, width, window, exact, quick)


def median(x: Floats, y: Floats, width: int = 0, window: Window = DEFAULT_WINDOW) -> MovingAverage | NoModel:
    """Simple moving median: parameters are those of :func:`simple`."""
    values: OrderStatistics | None = None

    def quick(unit: Floats, width: int, window: Window) -> Floats:
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
    x: Floats, y: Floats, width: int, window: Window, smoother: Smoother, quick: Smoother
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
