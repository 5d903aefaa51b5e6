"""Ends of an axis, and where values lie between them, safe for the largest floats."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from perun.view._common.chart import Floats

Span = tuple[float, float]
"""The lower and the upper end of an axis, in its unit."""

LARGEST: Final = sys.float_info.max
_Values = TypeVar("_Values", "float", "Floats")


def widened(low: float, high: float, margin: float) -> Span:
    """The span, made wider where it is too narrow to divide by.

    :param margin: by how much both ends move, as a share of their size.
    """
    if high / 2 > low / 2:
        return low, high
    room = abs(low) * margin or 0.5
    return max(low - room, -LARGEST), min(high + room, LARGEST)


def share_of(values: _Values, span: Span) -> _Values:
    """Where the values lie: 0 at the lower end of the span, 1 at the upper one, linear beyond."""
    # The halves keep the difference of very large numbers finite.
    low, high = span[0] / 2, span[1] / 2
    return (values / 2 - low) / (high - low)
