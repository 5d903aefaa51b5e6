"""The search for a minimum downhill, without derivatives, in one dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_STEP: Final = 0.05
_STEP_FROM_ZERO: Final = 0.00025
"""Where the second point is, as a share of the first one: customary, as in MATLAB's fminsearch."""


def minimum(
    function: Callable[[float], float],
    start: float,
    *,
    x_tolerance: float = 1e-4,
    y_tolerance: float = 1e-4,
    evaluations: int = 1000,
) -> float:
    """A place where the function has a local minimum, by Nelder and Mead's method.

    J. C. Lagarias et al.: Convergence properties of the Nelder-Mead simplex method in low dimensions, SIAM
    Journal on Optimization 9, 1998, with its coefficients: reflection 1, expansion 2, contraction 1/2. In one
    dimension a simplex is a pair of points, and the worse one moves.

    :param function: its value at `start` is not NaN; a point where it is is worse than any other.
    :param x_tolerance: absolute; the search ends when the points are this near and
    :param y_tolerance: the values too.
    :param evaluations: calls of the function at which it ends at the latest, but for a step that has begun.
    """
    calls = 0

    def valued(x: float) -> tuple[float, float]:
        nonlocal calls
        calls += 1
        value = function(x)
        return value, x

    best, worst = valued(start), valued(start * (1 + _STEP) if start else _STEP_FROM_ZERO)
    while True:
        if worst[0] < best[0]:
            best, worst = worst, best
        near = abs(worst[1] - best[1]) <= x_tolerance and abs(worst[0] - best[0]) <= y_tolerance
        if near or calls >= evaluations:
            return best[1]
        worst = _moved(valued, best, worst)


def _moved(
    valued: Callable[[float], tuple[float, float]], best: tuple[float, float], worst: tuple[float, float]
) -> tuple[float, float]:
    """What takes the place of the worse point."""

    def beyond(share: float) -> tuple[float, float]:
        """The point behind the best one, by a share of the distance of the worse one."""
        return valued((1 + share) * best[1] - share * worst[1])

    reflected = beyond(1)
    if reflected[0] < best[0]:
        return min(reflected, beyond(2), key=_value)
    if reflected[0] < worst[0]:
        contracted = beyond(0.5)
        if contracted[0] <= reflected[0]:
            return contracted
    # In one dimension the contraction inside and the simplex that shrinks are the same point: the middle.
    return beyond(-0.5)


def _value(point: tuple[float, float]) -> float:
    return point[0]
