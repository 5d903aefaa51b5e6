"""What a profile measured, in one value, and how two such values differ.

Lists of profiles show that value beside that of an earlier version. It is a fact of one profile, and the
difference of two of them is no verdict: `perun check` and `perun compare` give those.

`perun status` and `perun log` load this; which value stands for a profile, :mod:`perun.profile.main_value`
says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from perun.models.student import quantile

CONFIDENCE: Final = 0.95
"""Of the interval of a difference."""


class Measured(NamedTuple):
    """The value that stands for a profile.

    :param metric: what it is: `real time`, `peak memory`, `instructions`, or the name of a series.
    :param value: the mean of the repeated measurements, in `unit`; always finite.
    :param unit: as the profile gives it, else "".
    :param spread: the standard deviation of the measurements; None of a single one.
    :param samples: how many measurements there are.
    :param larger_is_better: whether a growth is an improvement.
    """

    metric: str
    value: float
    unit: str
    spread: float | None
    samples: int
    larger_is_better: bool = False


def of_values(
    metric: str, values: Sequence[float], unit: str, larger_is_better: bool = False
) -> Measured:
    """The value of measurements of one metric, one at least, all finite."""
    count = len(values)
    mean = math.fsum(values) / count
    spread = None
    if count > 1:
        # Scaled, as the squares of huge and of tiny amounts are out of the range of floats.
        scale = max(abs(value - mean) for value in values) or 1.0
        squares = math.fsum(((value - mean) / scale) ** 2 for value in values)
        spread = scale * math.sqrt(squares / (count - 1))
    return Measured(metric, mean, unit, spread, count, larger_is_better)


def precision(one: Measured) -> float | None:
    """Half the width of the interval of the mean at 95 %, as a share of it; None of a single measurement."""
    if one.spread is None or not one.value:
        return None
    return _half_width(one.spread / math.sqrt(one.samples), one.samples - 1) / abs(one.value)


def _half_width(error: float, freedom: float) -> float:
    """Half the width of the interval of a value by its standard error and the degrees of freedom of that."""
    return quantile(1 - CONFIDENCE, freedom) * error
