"""Standard errors of the difference of two versions, estimated from few values: by Student's t."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.models import student

Floats = NDArray[np.float64]

CONFIDENCE: Final = 0.99
"""Of the interval that decides on what is definite."""
WEAKER: Final = 0.95
"""Of the interval that decides on a maybe."""
STEADY: Final = 0.005
"""Standard deviation, as a share, up to which measurements do not scatter: nothing timed is so even."""
MIN_OTHERS: Final = 3
"""Other functions from which on they tell of the noise: Student's quantiles of fewer are no help."""


class Error(NamedTuple):
    """A standard error, and its degrees of freedom; infinite where it is not known."""

    value: float
    freedom: float

    def half_width(self, confidence: float) -> float:
        """Half the width of an interval of that confidence."""
        if not 0 < self.value < math.inf:
            return self.value
        return student.quantile(round(1 - confidence, 9), self.freedom) * self.value


NONE: Final = Error(0.0, 1.0)
UNKNOWN: Final = Error(math.inf, 1.0)


def error_of_means(old: Floats, new: Floats, *, paired: bool = False) -> Error:
    """The standard error of the difference of two means (Student, The Probable Error of a Mean, 1908).

    :param old: shape (m,), m > 1. :param new: shape (n,), n > 1.
    :param paired: whether values of the same place belong together, if there are as many.
    """
    if paired and old.size == new.size:
        return Error(float(np.std(new - old, ddof=1)) / math.sqrt(old.size), old.size - 1)
    freedom = old.size + new.size - 2
    squares = sum(float(np.sum((side - side.mean()) ** 2)) for side in (old, new))
    return Error(math.sqrt(squares / freedom * (1 / old.size + 1 / new.size)), freedom)


def error_of_others(ratios: Floats) -> Iterator[Error]:
    """The error of the log ratio of each function, by those of the others of the same two runs.

    Most of them did not change, so that their mean is known to be 0, and k of them have k degrees of freedom.

    :param ratios: shape (n,), of all functions.
    """
    squares = ratios * ratios
    freedom = ratios.size - 1
    for others in float(squares.sum()) - squares:
        if freedom < MIN_OTHERS:
            yield UNKNOWN
        else:
            yield Error(math.sqrt(max(float(others), 0.0) / freedom), freedom)
