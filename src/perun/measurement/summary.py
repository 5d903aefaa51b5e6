"""A profile in a few numbers for each of its series: what a long history is read from.

numpy is imported by what this reads, so this module is only loaded by what computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.measurement.series import Metric, measurements

if TYPE_CHECKING:
    from perun.profile.factory import Profile

MOST: Final = 5000
"""Series that are kept of one profile: the largest ones."""
_FEW: Final = 100
"""Values whose median is found sooner without numpy."""


class Name(NamedTuple):
    """What a series of a profile measures.

    :param location: `./prog [cpu]`, as :attr:`perun.measurement.series.Metric.location`.
    :param type: and :param subtype: of the resources. :param unit: of the numbers, else "".
    :param exact: whether it is counted. :param larger_is_better: whether a growth is an improvement.
    """

    location: str
    type: str
    subtype: str
    unit: str
    exact: bool
    larger_is_better: bool


class Summary(NamedTuple):
    """The values of a series.

    :param samples: how many there are. :param median: of the values; finite.
    :param spread: their standard deviation by the median absolute deviation; None of a single value.
    """

    samples: int
    median: float
    spread: float | None


def summaries(profile: Profile) -> dict[Name, Summary]:
    """The series of the profile in its order. Times of single calls are left out: their sum and their number
    are series of their own."""
    found = {
        _name(series.metric): _summary(series.values)
        for series in measurements(profile).values()
        if not series.of_one_run
    }
    if len(found) > MOST:
        least = sorted((abs(one.median) for one in found.values()), reverse=True)[MOST]
        found = {name: one for name, one in found.items() if abs(one.median) > least}
    return found


def _name(metric: Metric) -> Name:
    return Name(
        metric.location, metric.type, metric.subtype, metric.unit, metric.exact, metric.larger_is_better
    )


def _summary(values: NDArray[np.float64]) -> Summary:
    if values.size > _FEW:
        median = float(np.median(values))
        spread = float(np.median(np.abs(values - median)))
    else:
        few = values.tolist()
        median = _median(few)
        spread = _median([abs(one - median) for one in few])
    return Summary(int(values.size), median, spread * 1.4826 if values.size > 1 else None)


def _median(values: list[float]) -> float:
    """The same number as that of numpy, which takes many times longer for a few values."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
