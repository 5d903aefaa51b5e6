"""What several checks need."""

from __future__ import annotations

from math import ceil
from typing import Final

_SLOWEST: Final = 0.05
"""Share of the calls that the trimmed mean leaves out: those that the system interrupted are among them."""
ENOUGH_TO_TRIM: Final = 3
"""Calls of which one can be left out."""


def without_slowest(calls: int) -> int:
    """How many calls are left without the slowest 5 % (at least one); of fewer than 3 calls all.

    Which calls the system interrupted is not known, but an interruption is far longer than most calls.
    """
    return calls if calls < ENOUGH_TO_TRIM else calls - ceil(_SLOWEST * calls)
