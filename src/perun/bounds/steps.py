"""Steps of the analysis, which limit it alike on every machine and at any load.

A step is about what a linear expression takes to be made. What the stages do most counts itself where it is
done, so the count belongs to the thread of the analysis and no stage hands it on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PER_SECOND: Final = 60_000
"""Steps that a limit of one second is. They take a quarter to a half of one, so that time limits only
what does not count itself."""


class TooManySteps(Exception):
    """The analysis has taken the steps that it has."""


class Count:
    """The steps that were taken, and how many there are."""

    __slots__ = ("limit", "taken")

    def __init__(self, limit: float) -> None:
        self.taken = 0
        self.limit = limit


_count = Count(math.inf)


def take(number: int = 1) -> None:
    """Count steps. Raises `TooManySteps` where there are no more."""
    _count.taken += number
    if _count.taken > _count.limit:
        raise TooManySteps


def left() -> float:
    """The steps that can be taken yet."""
    return max(_count.limit - _count.taken, 0)


@contextmanager
def limited(limit: float) -> Iterator[Count]:
    """Within the block so many steps can be taken; those of the block around it count them, too, after it."""
    global _count
    outer, own = _count, Count(limit)
    _count = own
    try:
        yield own
    finally:
        _count = outer
        outer.taken += own.taken
