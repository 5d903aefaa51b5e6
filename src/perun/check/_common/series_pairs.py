"""The series of two profiles, place by place, and their ratios; those of equal sizes are compared at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from perun.measurement.series import Series, measurements
from perun.models.two_samples.many import benjamini_hochberg
from perun.models.two_samples.ratio import Ratio, Sample, described, of_each, of_pairs, of_sizes
from perun.profile.verdict import Thresholds

if TYPE_CHECKING:
    from perun.profile.factory import Profile

MIN_EQUAL: Final = 3
"""Equal measurements of each side that show that something other than a time is exact."""


class SeriesPair(NamedTuple):
    """The series of one location in both profiles, and what is known of their ratio.

    :param exact: whether both are counted, and each run counted the same.
    :param ratio: None where they are counted, or where there is none. :param weaker: the same with the
        interval of less confidence, where that may tell more.
    """

    location: str
    old: Series
    new: Series
    exact: bool
    ratio: Ratio | None = None
    weaker: Ratio | None = None


class Samples:
    """The series of a profile, and what is known of each by itself, computed when it is first needed."""

    def __init__(self, profile: Profile) -> None:
        self.series = measurements(profile)
        self._described: dict[str, Sample] = {}

    def described(self, locations: Sequence[str]) -> list[Sample]:
        """What is known of the series of these locations, all of whose values are positive."""
        missing = [location for location in locations if location not in self._described]
        if missing:
            found = described([self.series[location].values for location in missing])
            self._described.update(zip(missing, found, strict=True))
        return [self._described[location] for location in locations]


def is_exact(before: Series, after: Series) -> bool:
    """Whether both are counted, and each run counted the same."""
    if before.sizes is not None or after.sizes is not None:
        return False
    values = before.values, after.values
    if any(one.size > 1 and (one != one[0]).any() for one in values):
        return False
    repeated = min(one.size for one in values) >= MIN_EQUAL
    return before.metric.exact or (repeated and before.metric.type not in ("time", "mixed"))


def measured(
    pairs: list[SeriesPair], old: Samples, new: Samples, thresholds: Thresholds, *, paired: bool
) -> list[SeriesPair]:
    """The pairs with their ratios, whose p-values are adjusted for how many there are.

    Those have none that are counted, or have values that are not positive.
    """
    where = [
        place
        for place, pair in enumerate(pairs)
        if not pair.exact
        and pair.old.metric.unit == pair.new.metric.unit
        and not without_ratio(pair.old, pair.new)
    ]
    if not where:
        return pairs
    ratios = _ratios([pairs[place] for place in where], old, new, thresholds.confidence, paired=paired)
    p_values = benjamini_hochberg([ratio.p_value for ratio in ratios]).tolist()
    measured = list(pairs)
    for place, ratio, p_value in zip(where, ratios, p_values, strict=True):
        measured[place] = pairs[place]._replace(ratio=ratio._replace(p_value=p_value))
    open_ = [place for place, ratio in zip(where, ratios, strict=True) if ratio.low <= 1 <= ratio.high]
    weaker = _ratios([pairs[place] for place in open_], old, new, thresholds.weaker, paired=paired)
    for place, ratio in zip(open_, weaker, strict=True):
        measured[place] = measured[place]._replace(weaker=ratio)
    return measured


def _ratios(
    pairs: Sequence[SeriesPair], old: Samples, new: Samples, confidence: float, *, paired: bool
) -> list[Ratio]:
    """The ratio of each pair; all that are compared as two samples are so at once."""
    alone = [_ratio_of_parts(pair, confidence, paired=paired) for pair in pairs]
    left = [pair.location for pair, ratio in zip(pairs, alone, strict=True) if ratio is None]
    together = iter(of_each(old.described(left), new.described(left), confidence))
    return [ratio or next(together) for ratio in alone]


def _ratio_of_parts(pair: SeriesPair, confidence: float, *, paired: bool) -> Ratio | None:
    """The ratio of values that belong together one by one, or size by size; None where they do not."""
    before, after = pair.old, pair.new
    if paired and not before.of_one_run and before.values.size == after.values.size:
        return of_pairs(before.values, after.values, confidence)
    if before.sizes is None or after.sizes is None:
        return None
    return of_sizes(before.values, before.sizes, after.values, after.sizes, confidence)


def without_ratio(before: Series, after: Series) -> int:
    """How many values are not positive, so that they have no logarithm."""
    return sum(int(np.count_nonzero(one.values <= 0)) for one in (before, after))
