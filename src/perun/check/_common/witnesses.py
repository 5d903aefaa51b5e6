"""What confirms that a change is severe: a second metric, or a second measurement."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from perun.check._common.series_pairs import Samples, SeriesPair, without_ratio
from perun.measurement.series import CPU, PARTS_OF_CPU, Floats
from perun.models.two_samples.ratio import MIN_VALUES, Ratio, of_pairs, of_samples, of_sizes
from perun.profile.verdict import Thresholds

Repeats = Callable[[], Iterable[tuple[Samples, Samples]]]
"""Other sessions in which the same two versions were measured side by side."""


def no_repeats() -> Iterable[tuple[Samples, Samples]]:
    """There was one session, or none."""
    return ()


def large_changes(pairs: Sequence[SeriesPair], thresholds: Thresholds) -> dict[str, dict[bool, set[str]]]:
    """By uid and by whether it got worse: the metrics that changed by more than what is severe."""
    limit = 1 + thresholds.severe
    found: dict[str, dict[bool, set[str]]] = {}
    for pair in pairs:
        metric, ratio = pair.old.metric, pair.ratio
        low, high = (ratio.low, ratio.high) if ratio is not None else _counts_ratio(pair)
        for grown in (True, False):
            if low > limit if grown else high < 1 / limit:
                worse = grown is not metric.larger_is_better
                found.setdefault(metric.uid, {}).setdefault(worse, set()).add(metric.subtype)
    return found


def _counts_ratio(pair: SeriesPair) -> tuple[float, float]:
    if not pair.exact or pair.old.values[0] <= 0:
        return 0.0, math.inf
    ratio = float(pair.new.values[0]) / float(pair.old.values[0])
    return ratio, ratio


class Witnesses:
    """What may confirm that a change is severe: another metric of the uid, another session of the two
    versions, or both halves of the pooled profiles.

    :param large: see :func:`large_changes`.
    """

    def __init__(
        self, large: Mapping[str, Mapping[bool, set[str]]], repeats: Repeats, thresholds: Thresholds
    ) -> None:
        self.large_changes = large
        self._repeats = repeats
        self._thresholds = thresholds

    def of(self, pair: SeriesPair) -> str:
        """What confirms the pair; empty where nothing does, or the change is not so large."""
        if pair.ratio is None or not self._is_severe(pair.ratio, pair.ratio):
            return ""
        if self._has_another_metric(pair, pair.ratio):
            return "a second metric"
        if pair.ratio.paired:
            for old, new in self._repeats():
                again = _again(pair, old, new, self._thresholds.confidence)
                if again is not None and self._is_severe(again, pair.ratio):
                    return f"a second session ({again.low:.4g} to {again.high:.4g})"
            return ""
        halves = _halves(pair, self._thresholds.confidence)
        agree = halves and all(self._is_severe(half, pair.ratio) for half in halves)
        return "each half of the pooled profiles" if agree else ""

    def _has_another_metric(self, pair: SeriesPair, ratio: Ratio) -> bool:
        """Whether another metric of the uid changed as much; `user` and `sys` are no others beside `cpu`."""
        metric = pair.old.metric
        worse = (ratio.estimate > 1) is not metric.larger_is_better
        others = set(self.large_changes.get(metric.uid, {}).get(worse, ())) - {metric.subtype}
        return bool(others - {CPU, *PARTS_OF_CPU} if metric.subtype in (CPU, *PARTS_OF_CPU) else others)

    def _is_severe(self, ratio: Ratio, like: Ratio) -> bool:
        limit = 1 + self._thresholds.severe
        return ratio.low > limit if like.estimate > 1 else ratio.high < 1 / limit


def _again(pair: SeriesPair, old: Samples, new: Samples, confidence: float) -> Ratio | None:
    """The ratio of the same series in another session; None where there is none."""
    before, after = old.series.get(pair.location), new.series.get(pair.location)
    if before is None or after is None or without_ratio(before, after):
        return None
    if before.values.size != after.values.size or before.values.size < MIN_VALUES:
        return None
    return of_pairs(before.values, after.values, confidence)


def _halves(pair: SeriesPair, confidence: float) -> list[Ratio]:
    """The ratios of the older and of the newer profiles of both sides; none where one has less than two."""
    if pair.old.runs is None or pair.new.runs is None:
        return []
    parts = [
        (series.values[chosen], None if series.sizes is None else series.sizes[chosen])
        for series in (pair.old, pair.new)
        for chosen in _half_of(series.runs)
    ]
    found = []
    for (old, old_sizes), (new, new_sizes) in ((parts[0], parts[2]), (parts[1], parts[3])):
        if min(old.size, new.size) < MIN_VALUES:
            return []
        ratio = None
        if old_sizes is not None and new_sizes is not None:
            ratio = of_sizes(old, old_sizes, new, new_sizes, confidence)
        found.append(ratio or of_samples(old, new, confidence))
    return found


def _half_of(runs: Floats | None) -> Iterator[NDArray[np.bool_]]:
    """Which values are of the older half of the profiles, and which of the newer one."""
    assert runs is not None
    numbers = np.unique(runs)
    newer = runs >= numbers[numbers.size // 2]
    yield ~newer
    yield newer
