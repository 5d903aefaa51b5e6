"""Local Statistics: statistics of windows of the models of baseline and target (manual 3.2.13)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from perun.check._common.params import IntegralParams
from perun.plugin.api import CheckContext
from perun.plugin.params import param
from perun.profile.changes import DegradationInfo, PerformanceChange

if TYPE_CHECKING:
    from perun.check._common.model_kinds import KindPair
    from perun.check._common.points import Points
    from perun.check._common.runs import Runs
    from perun.models.record import ModelRecord
    from perun.profile.factory import Profile

_TYPE: Final = "local"


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


class LocalStatistics:
    """Reports every uid that has models, also the unchanged ones, and where along x it changed.

    The models are compared at as many points as the one with fewer values has (formulas: at 1000), at equal
    distances over the x that both have in common. Of regressograms with unlike numbers of buckets the one
    with more is made anew from the resources with as many as the other has. The points are divided into
    windows of 5 %, and of each window eight statistics are compared; see :mod:`perun.check._common.windows`.

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

    def compare(
        self, baseline: Profile, target: Profile, params: LocalParams, ctx: CheckContext
    ) -> Iterator[DegradationInfo]:
        """Changes of type `local`, uids in the order of their names.

        Where `--models-type` has several models of a uid compared, the type names the model besides.

        :raises ProfileError: where a profile has no models of the wanted kind.
        """
        from perun.check._common.model_kinds import DEFAULT, kind_pairs
        from perun.check._common.runs import Runs

        runs = Runs(baseline, target, params.apart)
        for pair in kind_pairs(baseline, target, ctx.models_type or DEFAULT):
            yield pair.without_comparison(_TYPE) if pair.unpaired else _compared(pair, params, runs)


def _compared(pair: KindPair, params: LocalParams, runs: Runs) -> DegradationInfo:
    from perun.check._common.evidence import judged
    from perun.check._common.parts import parts
    from perun.check._common.relative import Limits
    from perun.check._common.sampling import as_fine
    from perun.check._common.windows import Windows, compare

    common = parts(*_alike(pair, runs.sources))
    samples = as_fine(common, params.points)
    if samples is None:
        return pair.without_comparison(_TYPE)
    limits = Limits(params.no_change, params.maybe)
    found = compare(
        samples,
        limits,
        Windows(params.window, params.fewest, params.window_no_change, params.window_maybe),
    )
    measured = runs.measured(pair.uid, common)
    change, rule = judged(found.change, common, params.r_square, measured, limits)
    means = float(samples.baseline.mean()), float(samples.target.mean())
    info = pair.change(_TYPE, change, means, found.rate, common)
    info.rule = rule
    if change is not PerformanceChange.Unknown:
        info.partial_intervals = list(found.runs)
    return info


def _alike(
    pair: KindPair, sources: tuple[Points, Points]
) -> tuple[tuple[ModelRecord, ...], tuple[ModelRecord, ...]]:
    """The models of both, two regressograms with as many buckets as the one that has fewer."""
    from perun.check._common.model_kinds import keys_of
    from perun.check._common.sampling import REGRESSOGRAM, with_buckets

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
