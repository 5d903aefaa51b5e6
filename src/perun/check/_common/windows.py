"""Where along x two curves differ: eight statistics of each window of points, compared one by one.

The statistics of a window are its integral (by trapezoids), mean, median, maximum, minimum, sum, and lower
and upper quartile. Each scores 0, 0.5 or 1, with the sign of its change, at limits of 0.1 and 0.25 of its
balance, see :mod:`perun.check._common.relative`; the scores of a window are added up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from perun.check._common.difference import Samples
from perun.check._common.relative import ROUNDING, Floats, Limits, balance, bounded, relative_error, verdict
from perun.profile.changes import PerformanceChange

STATISTICS: Final = ("integral", "mean", "median", "max", "min", "sum", "q25", "q75")
Run = tuple[PerformanceChange, float, float, float]


class Windows(NamedTuple):
    """How points are divided into windows, and how their scores are judged.

    :param share: of the points that make a window.
    :param fewest: points below which there is one window only.
    :param no_change: share of the highest score up to which a window is unchanged.
    :param maybe: share of the highest score up to which it may have changed.
    """

    share: float = 0.05
    fewest: int = 40
    no_change: float = 0.2
    maybe: float = 0.5

    def width(self, points: int) -> int:
        """The number of points in a window."""
        return points if points < self.fewest else min(max(2, int(self.share * points)), points)


class LocalChange(NamedTuple):
    """What became of a curve.

    :param rate: mean relative error of the statistics over the windows; that of their geometric mean, or of
        the means of the curves, where these decide; 0 where it is unknown.
    :param runs: change, mean relative error, first and last x of each run of neighbouring windows of one
        verdict, without those that did not change.
    """

    change: PerformanceChange
    rate: float
    runs: tuple[Run, ...] = ()


def compare(samples: Samples, limits: Limits, windows: Windows) -> LocalChange:
    """Compare two curves at two points at least.

    The verdict is that of the mean balance over all windows, at the limits of a single statistic. Where each
    version is the slower one on average, relative to the other, as parts got much slower and other parts much
    faster, it is that of the geometric mean of the ratios, which is the same in both directions. Where that
    contradicts the means of the two curves, the verdict is that of these means, and no more than a maybe.

    Nothing changed either where the means of the curves differ by no more than the first limit, and the
    curves by no more than the scatter of what was measured: noise is large relative to a curve near 0.

    What one curve has as 0 and the other has not (as an empty bucket) says nothing: it is left out.
    """
    x, baseline, target, _ = samples
    width = windows.width(x.size)
    before, after = (statistics(x, values, width) for values in (baseline, target))
    balances, errors = balance(before, after), _means(relative_error(before, after))
    kinds = _verdicts(balances, limits, windows)
    decisive, rate = _mean(_means(balances)), _mean(errors)
    if np.isnan(decisive):
        return LocalChange(PerformanceChange.Unknown, 0.0)
    means = float(baseline.mean()), float(target.mean())
    whole = float(balance(*means))
    contradictory = rate > 0 and _mean(_means(relative_error(after, before))) > 0
    if contradictory:
        ratio = _geometric_mean(before, after)
        decisive, rate = float(balance(1.0, ratio)), ratio - 1
        contradictory = not decisive * whole > 0
        if contradictory:
            decisive, rate = whole, float(np.nan_to_num(relative_error(*means)))
    if verdict(whole, limits) is PerformanceChange.NoChange and samples.within_scatter:
        return LocalChange(PerformanceChange.NoChange, rate)
    change = verdict(decisive, limits, certain=not contradictory)
    return LocalChange(change, rate, tuple(_runs(kinds, errors, x, width)))


def statistics(x: Floats, values: Floats, width: int) -> Floats:
    """The statistics of each window, shape (windows, 8); what is left at the end is a shorter window.

    A window of one point has no integral (NaN).
    """
    whole = x.size // width * width
    found = [_of_windows(x[:whole].reshape(-1, width), values[:whole].reshape(-1, width))]
    if whole < x.size:
        found.append(_of_windows(x[None, whole:], values[None, whole:]))
    return np.concatenate(found)


def _of_windows(x: Floats, values: Floats) -> Floats:
    """Statistics of rows, shape (rows, 8)."""
    with np.errstate(over="ignore"):
        middles = values[:, :-1] / 2 + values[:, 1:] / 2
        integral = (np.diff(x) * middles).sum(1) if x.shape[1] > 1 else np.full(len(x), np.nan)
        total = values.sum(1)
        lower, median, upper = np.percentile(values, [25, 50, 75], axis=1)
        mean = (values / x.shape[1]).sum(1)
    columns = (integral, mean, median, values.max(1), values.min(1), total, lower, upper)
    return np.stack(columns, axis=1)


def _verdicts(balances: Floats, limits: Limits, windows: Windows) -> list[PerformanceChange]:
    size = np.abs(np.nan_to_num(balances))
    scores = np.where(
        size <= limits.no_change + ROUNDING, 0.0, np.where(size <= limits.maybe + ROUNDING, 0.5, 1.0)
    )
    share = (np.sign(np.nan_to_num(balances)) * scores).sum(1) / len(STATISTICS)
    judged = Limits(windows.no_change, windows.maybe)
    return [verdict(float(one), judged) for one in share]


def _runs(kinds: list[PerformanceChange], means: Floats, x: Floats, width: int) -> Iterator[Run]:
    start = 0
    for end in range(1, len(kinds) + 1):
        if end < len(kinds) and kinds[end] is kinds[start]:
            continue
        if kinds[start] is not PerformanceChange.NoChange:
            last = min(end * width, x.size) - 1
            yield kinds[start], _mean(means[start:end]), float(x[start * width]), float(x[last])
        start = end


def _geometric_mean(before: Floats, after: Floats) -> float:
    """The geometric mean of after / before, of shape (windows, statistics); NaN where none is above 0."""
    positive = (before > 0) & (after > 0) & np.isfinite(before) & np.isfinite(after)
    with np.errstate(all="ignore"):
        logarithms = np.where(positive, np.log(np.abs(after)) - np.log(np.abs(before)), np.nan)
        return float(np.exp(_mean(_means(logarithms))))


def _means(values: Floats) -> Floats:
    """The mean of each row without NaN; NaN where a row has nothing else."""
    known = np.isfinite(values)
    count = known.sum(1)
    with np.errstate(all="ignore"):
        mean = bounded((np.where(known, values, 0.0) / np.maximum(count, 1)[:, None]).sum(1))
    return np.where(count > 0, mean, np.nan)


def _mean(values: Floats) -> float:
    return float(_means(values[None, :])[0])
