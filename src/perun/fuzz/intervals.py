"""Choosing the parent of the next mutations: by five intervals of scores with linear weights (manual 9.7)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Final, TypeVar

INTERVALS: Final = 5

T = TypeVar("T")


def choose(members: Sequence[T], score: Callable[[T], float], random: Random) -> T:
    """One of the members: the better its score, the likelier.

    The range of the scores is divided into five intervals of the same width, on a logarithmic scale, as one
    outlier would have an interval of its own and all others share the lowest. The k-th interval from below
    weighs k; within one all are alike. Intervals without a member do not take part.

    :raises IndexError: if there are no members.
    """
    groups = divide(members, score)
    weights = [number for number, group in groups]
    ((_, chosen),) = random.choices(groups, weights)
    return random.choice(chosen)


def divide(members: Sequence[T], score: Callable[[T], float]) -> list[tuple[int, list[T]]]:
    """The intervals that have members, lowest first: their number, 1 to 5, and their members.

    A score below the smallest positive float counts as that.
    """
    levels = [math.log(max(score(one), 5e-324)) for one in members]
    low, high = min(levels, default=0.0), max(levels, default=0.0)
    width = (high - low) / INTERVALS
    groups: dict[int, list[T]] = {}
    for one, level in zip(members, levels, strict=True):
        number = min(int((level - low) / width), INTERVALS - 1) if width > 0 else INTERVALS - 1
        groups.setdefault(number + 1, []).append(one)
    return sorted(groups.items(), key=lambda group: group[0])
