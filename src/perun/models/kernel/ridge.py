"""Gaussian kernel whose width is chosen from a range (manual 3.4, mode `kernel-ridge`).

The estimate is Nadaraya and Watson's with the kernel exp(-gamma (x - x_i)^2), as the manual defines it: the
name of the mode notwithstanding, no ridge penalty is involved.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from perun.models.kernel.local import fitted, leave_one_out
from perun.models.kernel.points import KernelEstimate, Points, finished, points_of
from perun.models.result import NoModel


@np.errstate(all="ignore")
def ridge(x: ArrayLike, y: ArrayLike, gammas: Sequence[float]) -> KernelEstimate | NoModel:
    """The estimate with that gamma, above 0, which has the least mean square error in leave-one-out.

    Of equally good ones the first is taken. One that leaves a point without neighbours is no candidate.

    :param x: shape (n,). :param y: shape (n,).
    """
    points = points_of(x, y)
    if isinstance(points, NoModel):
        return points
    errors = [leave_one_out_error(points, gamma) for gamma in gammas]
    if not errors or not np.isfinite(min(errors)):
        return NoModel("with every gamma of the range, some x is too far from all others")
    gamma = gammas[int(np.argmin(errors))]
    return finished(points, fitted(points, _bandwidth(gamma), "lc")[0], gamma)


def leave_one_out_error(points: Points, gamma: float) -> float:
    """Mean square error if each point is estimated from all others; infinite if one cannot be."""
    error = float(np.mean(np.square(points.y - leave_one_out(points, _bandwidth(gamma), "lc"))))
    return error if np.isfinite(error) else np.inf


def _bandwidth(gamma: float) -> float:
    """The h of exp(-z^2 / 2), z = (x - x_i) / h, that is exp(-gamma (x - x_i)^2)."""
    return float((2 * gamma) ** -0.5)
