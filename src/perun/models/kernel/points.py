"""What every kernel regression starts and ends with: points by distinct x, and the finished estimate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perun.models.result import NoModel

Floats = NDArray[np.float64]

_LARGEST: Final = 1e100
"""Beyond it, products of three values come near the largest floating-point number."""
_EQUAL_Y: Final = 1e-12
"""Relative difference up to which an estimate is the y that all points have."""


class Points(NamedTuple):
    """The points of one model, those of equal x together: most measurements repeat a few sizes many times.

    :param x: the distinct x, ascending, shape (m,).
    :param counts: how many points each of them has, shape (m,).
    :param total: the sum of their deviations from `mean`, shape (m,).
    :param group: the position in `x` of each point in ascending order of x, shape (n,).
    :param y: y of each point in that order, shape (n,).
    :param mean: mean of y.
    """

    x: Floats
    counts: Floats
    total: Floats
    group: NDArray[np.intp]
    y: Floats
    mean: float


class KernelEstimate(NamedTuple):
    """A finished model.

    :param x: x of all points, ascending, shape (n,).
    :param values: the estimate at each of them, shape (n,).
    :param bandwidth: the bandwidth that was used in the end; of a kernel ridge, gamma.
    :param r_square: the coefficient of determination.
    """

    x: Floats
    values: Floats
    bandwidth: float
    r_square: float


def points_of(x: ArrayLike, y: ArrayLike) -> Points | NoModel:
    """The points in ascending order of x, or why there can be no model of them.

    :param x: values of the independent variable, shape (n,); :param y: of the dependent one, shape (n,).
    """
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    trouble = _reason_against(xs, ys)
    if trouble:
        return NoModel(trouble)
    order = np.argsort(xs, kind="stable")
    xs, ys = xs[order], ys[order]
    starts = np.flatnonzero(np.concatenate(([True], xs[1:] != xs[:-1])))
    count = np.diff(np.append(starts, xs.size))
    mean = float(ys.mean())
    return Points(
        xs[starts],
        count.astype(np.float64),
        np.add.reduceat(ys - mean, starts),
        np.repeat(np.arange(starts.size), count),
        ys,
        mean,
    )


def windows(
    x: Floats, reach: float, rows: NDArray[np.intp], most: int, elements: int
) -> Iterator[tuple[slice, int, int]]:
    """Slices of `rows` that lie close together, each with the range of x that any of them reaches.

    Weights of rows and the x that these reach are then one rectangle, which is a product of matrices.

    :param x: ascending, shape (m,). :param rows: ascending positions in `x`.
    :param most: rows of a slice. :param elements: rows times x that a slice may reach, unless it has one row.
    """
    low = np.searchsorted(x, x[rows] - reach, side="left")
    high = np.searchsorted(x, x[rows] + reach, side="right")
    # Across a gap the rectangle would be mostly zeros.
    gaps = np.flatnonzero(np.diff(rows) > most) + 1
    start = 0
    for end in (*gaps.tolist(), rows.size):
        while start < end:
            stop = min(start + most, end)
            while stop - start > 1 and (stop - start) * (high[stop - 1] - low[start]) > elements:
                stop = (start + stop) // 2
            yield slice(start, stop), int(low[start]), int(high[stop - 1])
            start = stop


def _reason_against(x: Floats, y: Floats) -> str:
    """Why there can be no model of the points, as a clause; empty if there can be one."""
    if x.size < 2:
        return "it has one point only" if x.size else "it has no point"
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return "a value is not a finite number"
    if x.min() == x.max():
        return "all x are equal"
    if max(np.abs(x).max(), np.abs(y).max()) > _LARGEST:
        return f"a value is beyond {_LARGEST:g}"
    return ""


def finished(
    points: Points, values: Floats, bandwidth: float, *, correlation: bool = False
) -> KernelEstimate | NoModel:
    """The model of which `values` are the estimates at the distinct x.

    :param correlation: take the coefficient of determination for the squared correlation of y with the
        estimate, as Li and Racine do (Nonparametric Econometrics, 2007, section 2.5), not for 1 - SSE / SST.
    """
    if not (np.isfinite(values).all() and np.isfinite(bandwidth)):
        return NoModel(f"the estimate with bandwidth {bandwidth:g} is no finite number everywhere")
    estimate = values[points.group]
    fit = (_squared_correlation if correlation else _determination)(points.y, estimate)
    if not np.isfinite(fit):
        return NoModel(f"the estimate with bandwidth {bandwidth:g} is too far from the points")
    return KernelEstimate(points.x[points.group], estimate, float(bandwidth), fit)


def _determination(y: Floats, estimate: Floats) -> float:
    spread = float(np.square(y - y.mean()).sum())
    if y.min() == y.max() or not spread:
        return _equal_y(y, estimate)
    return 1 - float(np.square(y - estimate).sum()) / spread


def _squared_correlation(y: Floats, estimate: Floats) -> float:
    """The formula of both deviations from the mean of the estimate; 0 if the estimate is level."""
    mean = estimate.mean()
    of_y, of_estimate = y - mean, estimate - mean
    if y.min() == y.max():
        return _equal_y(y, estimate)
    # One norm after the other, as their product may be too large for floating point.
    lengths = float(np.linalg.norm(of_y)), float(np.linalg.norm(of_estimate))
    return min(1.0, float((of_y / lengths[0]) @ (of_estimate / lengths[1])) ** 2) if all(lengths) else 0.0


def _equal_y(y: Floats, estimate: Floats) -> float:
    return float(np.abs(estimate - y).max() <= _EQUAL_Y * np.abs(y).max())
