"""Which part of a change costs what the whole does: costs of parts add up, about."""

from __future__ import annotations

from typing import Final

from perun.measurement.verdict import Verdict

_LEADS: Final = 0.6
"""Part of what a group costs that one of its halves costs at least to be searched alone."""
_CONFIRMS: Final = 0.8
"""Part of the difference that has to go with what is named, to be certain."""
_NEARER: Final = 0.5
"""... and of the difference that the whole interval of what is left has to be away from."""


def first_leads(low: float, middle: float, high: float) -> bool | None:
    """Whether the first of two halves costs most of what both cost, or the second; None where neither does.

    :param low: the cost without either, :param middle: with the first one, and :param high: with both.
    """
    share = (middle - low) / (high - low) if high != low else 0.5
    return True if share >= _LEADS else False if 1 - share >= _LEADS else None


def confirms(ends: tuple[float, float], value: float, beside: Verdict, *, without: bool) -> bool:
    """Whether a part makes the difference of the ends: without it the first is left, or it alone gives the
    second.

    :param value: what was measured, and :param beside: what it is beside the first end.
    """
    before, after = ends
    bounds = (beside.low * before, beside.high * before) if before > 0 else (value, value)
    wanted, far = before if without else after, abs(after - before)
    return abs(value - wanted) <= (1 - _CONFIRMS) * far and all(
        abs(one - wanted) < _NEARER * far for one in bounds
    )
