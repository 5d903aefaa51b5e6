"""Local Statistics: statistics of windows of the models of baseline and target (manual 3.2.13)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import numpy as np

from perun.check._common.differences import IntegralParams, ModelCheck, Samples, judged, sampled
from perun.check._common.model_pairs import ModelInterval, ModelPair, keys_of, parts
from perun.check._common.points import (
    ROUNDING,
    Floats,
    LocationPoints,
    RelativeLimits,
    Runs,
    balance,
    bounded,
    relative_error,
    verdict,
)
from perun.models.record import ModelRecord, NoModel
from perun.models.regressogram import regressogram
from perun.plugin.params import param
from perun.profile.changes import DegradationInfo, PerformanceChange


@dataclass(frozen=True)
class LocalParams(IntegralParams):
    """Besides, how the points are divided into windows, and when one of these has changed."""

    window: float = param(0.05, metavar="<share>", minimum=0, help="Share of the points in one window.")
    fewest: int = param(
        40, metavar="<points>", minimum=0, help="Fewer points than these are one window altogether."
    )
    window_no_change: float = param(
        0.2, metavar="<share>", minimum=0, help="Up to this share of its highest score a window is unchanged."
    )
    window_maybe: float = param(
        0.5,
        metavar="<share>",
        minimum=0,
        help="Up to this share of its highest score a window is not certain.",
    )
    points: int = param(
        1000, metavar="<points>", minimum=2, help="Points at which models are compared that are formulas."
    )


class LocalStatistics(ModelCheck[LocalParams]):
    """Reports every uid that has models, also the unchanged ones, and where along x it changed.

    The models are compared at as many points as the one with fewer values has (formulas: at 1000), at equal
    distances over the x that both have in common. Of regressograms with unlike numbers of buckets the one
    with more is made anew from the resources with as many as the other has. The points are divided into
    windows of 5 %, and of each window eight statistics are compared; see :mod:`perun.check.local_statistics`.

    The rate of a change is the mean relative error of the statistics over all windows, its relative rate the
    same in percent; the changed windows are its partial intervals. Growth is judged by that rate: up to 0.10
    is no change, up to 0.25 maybe one. A decrease is judged as the growth that it undoes, relative to the
    smaller value, as is each statistic: a uniform one is a maybe from -0.0909 (-1/11) and certain from -0.2.
    So exchanging baseline and target mirrors every verdict, of a uid as of a part of it. Of models that do
    not fit exactly, what lies within the scatter of the measured points is no change, unless the means of the
    models differ by more than 0.10.

    Where the worse model of a pair has an `r_square` below 0.15, a change is Unknown, as are models without a
    common x. The models are chosen by `--models-type`.
    """

    name: ClassVar[str] = "local_statistics"
    short: ClassVar[str] = "LOC"
    help: ClassVar[str] = "Compares statistics of the models of each uid window by window, and says where."
    Params: ClassVar[type] = LocalParams

    TYPE: ClassVar[str] = "local"

    def compared(self, pair: ModelPair, params: LocalParams, runs: Runs) -> DegradationInfo:
        """The change of the statistics of all windows, and the runs of windows that changed."""
        common = parts(*_alike(pair, runs.sources))
        samples = as_fine(common, params.points)
        if samples is None:
            return pair.unknown(self.TYPE)
        windows = Windows(params.window, params.fewest, params.window_no_change, params.window_maybe)
        found = compare(samples, params.limits, windows)
        result = judged(pair, found.change, common, params, runs)
        means = float(samples.baseline.mean()), float(samples.target.mean())
        info = pair.change(self.TYPE, result, means, (found.rate, 100 * found.rate), common)
        if info.result is not PerformanceChange.Unknown:
            info.partial_intervals = list(found.runs)
        return info


def _alike(
    pair: ModelPair, sources: tuple[LocationPoints, LocationPoints]
) -> tuple[tuple[ModelRecord, ...], tuple[ModelRecord, ...]]:
    """The models of both, two regressograms with as many buckets as the one that has fewer."""
    sides = pair.baseline, pair.target
    if not all(len(side) == 1 and side[0].type == REGRESSOGRAM for side in sides):
        return sides
    fewest = min(len(side[0].values) for side in sides)
    made = []
    for (record,), source in zip(sides, sources, strict=True):
        points = None
        if len(record.values) > fewest:
            points = source.of(pair.uid, *keys_of(record.model))
        made.append((with_buckets(record, points.x, points.y, fewest) if points else record,))
    return made[0], made[1]


PLUGIN = LocalStatistics


# Where along x two curves differ: eight statistics of each window of points, compared one by one.
#
# The statistics of a window are its integral (by trapezoids), mean, median, maximum, minimum, sum, and lower
# and upper quartile. Each scores 0, 0.5 or 1, with the sign of its change, at limits of 0.1 and 0.25 of its
# balance, see :mod:`perun.check._common.points`; the scores of a window are added up.

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


def compare(samples: Samples, limits: RelativeLimits, windows: Windows) -> LocalChange:
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


def _verdicts(balances: Floats, limits: RelativeLimits, windows: Windows) -> list[PerformanceChange]:
    size = np.abs(np.nan_to_num(balances))
    scores = np.where(
        size <= limits.no_change + ROUNDING, 0.0, np.where(size <= limits.maybe + ROUNDING, 0.5, 1.0)
    )
    share = (np.sign(np.nan_to_num(balances)) * scores).sum(1) / len(STATISTICS)
    judged = RelativeLimits(windows.no_change, windows.maybe)
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


# The models of two versions as points at the same x, as many as the models themselves have values.

REGRESSOGRAM = "regressogram"


def as_fine(parts: Sequence[ModelInterval], points: int) -> Samples | None:
    """Both curves, sampled as finely as the coarser one is known; None where fewer than two x are left.

    There are as many points as the model with fewer values has, or as the pieces of one together; `points`
    where all models are formulas.
    """
    sides = [
        {id(record): record for record in side} for side in zip(*(part[2:] for part in parts), strict=True)
    ]
    counts = [sum(len(record.values) for record in side.values()) for side in sides]
    number = max(2, min(filter(None, counts), default=points))
    samples = sampled(parts, number)
    return samples if samples.x.size >= 2 else None


def with_buckets(record: ModelRecord, x: Floats, y: Floats, number: int) -> ModelRecord:
    """The regressogram made anew of its points with another number of buckets; itself where it cannot be.

    :param x: shape (n,). :param y: shape (n,).
    """
    model = regressogram(x, y, number, str(record.model.get("statistic_function") or "mean"))
    if isinstance(model, NoModel):
        return record
    return record._replace(
        values=tuple(model.stats.tolist()), x_start=model.x_start, x_end=model.x_end, r_square=model.r_square
    )
