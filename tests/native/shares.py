"""Shares of functions among samples, beside the true ones."""

import math
from collections.abc import Hashable, Mapping
from typing import TypeVar

Z = 2.576
"""Of the interval that holds a share in 99 of 100 cases."""
Name = TypeVar("Name", bound=Hashable)


def outside(counts: Mapping[Name, int], truth: Mapping[Name, float]) -> dict[Name, float]:
    """The functions whose shares of the samples lie outside of their intervals of 99 %, with these shares.

    :param counts: samples by function. :param truth: their true shares, of all that is counted.
    """
    total = sum(counts.values())
    assert total
    return {
        name: counts[name] / total
        for name, share in truth.items()
        if abs(counts[name] / total - share) > Z * math.sqrt(share * (1 - share) / total)
    }
