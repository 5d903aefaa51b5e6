"""A profile in a few numbers for each of its series: what a long history is read from.

numpy is imported by what this reads, so this module is only loaded by what computes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from perun.profile.measurements import Series, measurements

if TYPE_CHECKING:
    from perun.profile.factory import Profile

MOST: Final = 5000
"""Series that are kept of one profile: the largest ones."""


class Summary(NamedTuple):
    """One series of a profile.

    :param location: `./prog [cpu]`, as :attr:`perun.profile.measurements.Metric.location`.
    :param type: and :param subtype: of the resources. :param unit: of the numbers, else "".
    :param exact: whether it is counted. :param larger_is_better: whether a growth is an improvement.
    :param samples: how many values there are. :param median: of the values; finite.
    :param spread: their standard deviation by the median absolute deviation; None of a single value.
    """

    location: str
    type: str
    subtype: str
    unit: str
    exact: bool
    larger_is_better: bool
    samples: int
    median: float
    spread: float | None


def summaries(profile: Profile) -> list[Summary]:
    """The series of the profile in its order. Times of single calls are left out: their sum and their number
    are series of their own."""
    found = [_summary(series) for series in measurements(profile).values() if not series.of_one_run]
    if len(found) > MOST:
        least = sorted((abs(one.median) for one in found), reverse=True)[MOST]
        found = [one for one in found if abs(one.median) > least]
    return found


def _summary(series: Series) -> Summary:
    metric, values = series.metric, series.values
    median = float(np.median(values))
    spread = float(np.median(np.abs(values - median))) * 1.4826 if values.size > 1 else None
    return Summary(
        metric.location, metric.type, metric.subtype, metric.unit, metric.exact, metric.larger_is_better,
        int(values.size), median, spread,
    )  # fmt: skip
