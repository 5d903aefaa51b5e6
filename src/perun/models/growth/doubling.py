"""How many times as much is spent where the size doubles: one number for an order of growth.

It is 2^b of the y = c0 + c1 n^b that fits best (:mod:`perun.models.growth.exponent`): 1 of what does not
grow, 2 of what is linear, 4 of what is quadratic. As a ratio it is above 0, and the logarithm to the base 2
of the ratio of two of them is the difference of their exponents.
"""

from __future__ import annotations

from typing import Final

from numpy.typing import ArrayLike

from perun.models.growth import exponent
from perun.models.growth.centres import centres
from perun.models.growth.comparison import MIN_SIZES, SPAN
from perun.models.result import NoModel
from perun.wording import plural

MIN_RISE: Final = 1.1
"""Largest by smallest cost below which it does not grow."""


def doubling(sizes: ArrayLike, costs: ArrayLike) -> float | NoModel:
    """The number, from 1 to 64; or why the measurements do not tell it.

    :param sizes: and :param costs: finite, shape (n,); sizes that are not above 0 are left out.
    """
    points = centres(sizes, costs)
    if points.x.size < MIN_SIZES:
        return NoModel(f"it was measured at {plural(points.x.size, 'size')}, and {MIN_SIZES} are needed")
    if points.span < SPAN:
        return NoModel(
            f"the largest size is {points.span:.2g} times the smallest one, and {SPAN:g} times are needed"
        )
    if points.y.max() <= MIN_RISE * max(float(points.y.min()), 0.0):
        return 1.0
    return float(2.0 ** max(exponent.profile(points).best, 0.0))
