"""What every non-parametric model starts and ends with: the points it can use, and how well it fits them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perun.models.record import NoModel

Floats = NDArray[np.float64]


def usable(x: Floats, y: Floats) -> tuple[Floats, Floats] | NoModel:
    """The points that are finite, in the order of x, those of equal x in the order they came.

    :param x: shape (n,). :param y: shape (n,).
    :returns: x and y, both of shape (m,) with m from 2 to n, and x[0] < x[-1].
    """
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite], y[finite]
    if x.size < 2:
        return NoModel("it has no point" if not x.size else "it has one point only")
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    return NoModel("all x are equal") if x[0] == x[-1] else (x, y)


def scaled(values: Floats) -> tuple[Floats, int]:
    """`values` divided by the power of 2 that brings the largest magnitude into [0.5, 1), and its exponent.

    Neither sums nor squares of such values overflow, nor do all of them vanish; `np.ldexp` scales back.
    The division is exact but for values less than 1e-290 of the largest one.
    """
    exponent = int(np.frexp(np.abs(values).max())[1])
    with np.errstate(under="ignore"):
        return np.ldexp(values, -exponent), exponent


def r_square(y: Floats, estimate: Floats) -> float:
    """Coefficient of determination, 1 - sum (y - estimate)^2 / sum (y - mean y)^2; may be below 0.

    A point that has no estimate (NaN) is one that the model does not explain: it counts as if the mean were
    its estimate. Of equal y the coefficient is 1 if the estimates are right, else 0.

    :param y: scaled values, shape (n,). :param estimate: shape (n,).
    """
    centred = y - y.mean()
    residual = np.where(np.isnan(estimate), centred, y - estimate)
    if y.min() == y.max():
        return float(bool(np.all(np.isnan(estimate) | (estimate == y))))
    with np.errstate(under="ignore"):
        # No scalar product: the library behind it starts threads, which cost more than the sum.
        return float(1 - np.square(residual).sum() / np.square(centred).sum())
