"""Which version is looked at next, on positions alone: 0 is the good end, the last one the bad end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import NamedTuple


class Bounds(NamedTuple):
    """Between which positions the change is.

    :param low: the last one that is like the good end. :param high: the first one after it that is like the
        bad end. :param open: those between them of which nothing is known.
    """

    low: int
    high: int
    open: tuple[int, ...]

    @property
    def steps(self) -> int:
        """About how many positions more have to be looked at."""
        return math.ceil(math.log2(len(self.open) + 1))


def bounds(is_bad: Mapping[int, bool], skipped: Set[int]) -> Bounds:
    """Where the newest change is.

    :param is_bad: of positions that are known, whether they are like the bad end; both ends are among them.
    :param skipped: positions that cannot be looked at.
    """
    low = max(place for place, bad in is_bad.items() if not bad)
    high = min(place for place, bad in is_bad.items() if bad and place > low)
    return Bounds(low, high, tuple(place for place in range(low + 1, high) if place not in skipped))


def middle(found: Bounds) -> int | None:
    """The position to look at next, None if there is no more.

    The middle; where positions are skipped, those of the van der Corput sequence (1/2, 1/4, 3/4, 1/8, ...) in
    turn, as neighbours of what does not build seldom do.
    """
    if not found.open:
        return None
    number = found.high - found.low - len(found.open)  # 1 + how many are skipped
    wanted = found.low + (found.high - found.low) * _van_der_corput(number)
    return min(found.open, key=lambda place: abs(place - wanted))


def _van_der_corput(number: int) -> float:
    """The fraction whose binary digits are those of the number, mirrored at the point; 1 gives 1/2."""
    value, place = 0.0, 0.5
    while number:
        value += place * (number & 1)
        number >>= 1
        place /= 2
    return value
