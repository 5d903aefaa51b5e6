"""The scale of an axis: linear, or logarithmic where the range of the values asks for it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from perun.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perun.view._common.chart import Floats

SCALES: Final = ("auto", "linear", "log")
_RATIO: Final = 1000.0
"""A linear axis of this range shows its smallest values within a pixel."""
_LOW_SHARE: Final = 0.1
"""On a linear axis, most values of a skewed distribution lie below this share of the largest one."""


def is_logarithmic(chosen: str, values: Sequence[Floats], option: str) -> bool:
    """Whether the axis of the values is logarithmic.

    By `auto` it is where all values are above 0, the largest is more than 1,000 times the smallest, and the
    median is below a tenth of the largest: numbers evenly spaced from 1 to 10,000 keep a linear axis.

    :param chosen: one of :data:`SCALES`. :param values: what the axis shows, shape (n,) each; NaN is
        left out.
    :param option: the option that chose it, for the message.
    :raises UsageError: if a logarithmic axis is chosen and cannot show some value.
    """
    import numpy as np

    if chosen == "linear":
        return False
    known = np.concatenate([*values, np.empty(0)])
    known = known[~np.isnan(known)]
    least = float(known.min()) if known.size else 0.0
    if chosen == "log":
        if least <= 0:
            raise UsageError(
                f"{option} log: a logarithmic axis has no place for {least:g}", f"leave out {option} log"
            )
        return True
    if least <= 0:
        return False
    largest = float(known.max())
    return largest / least > _RATIO and float(np.median(known)) < largest * _LOW_SHARE


def note_of(axis: str, chosen: str, *, log: bool) -> str:
    """The note of a chart whose axis is logarithmic without having been chosen so; empty of any other.

    :param axis: `x` or `y`. :param chosen: its scale, one of :data:`SCALES`.
    """
    if not log or chosen != "auto":
        return ""
    change = f"--{axis}-scale linear changes that"
    return f"the {axis} axis is logarithmic, as its values differ so much ({change})"


def decade_below(value: float) -> float:
    """The largest power of ten that is smaller than the value, which is above 0: where bars start."""
    power = math.ceil(math.log10(value)) - 1
    return max(10.0**power, 5e-324) if power > -323 else 5e-324
