"""Changes of performance between the models of two profiles; numpy is imported here (manual 8.2.4-8.2.6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from perun.check._common import relative
from perun.check._common.difference import Limits, compare, sample
from perun.check._common.evidence import judged
from perun.check._common.model_pairs import ModelPair, model_pairs
from perun.check._common.params import DifferenceParams
from perun.check._common.parts import extent, parts
from perun.check._common.runs import Runs
from perun.check._common.shapes import Shape
from perun.models.record import ModelRecord
from perun.profile.amounts import written
from perun.profile.changes import DegradationInfo, PerformanceChange

if TYPE_CHECKING:
    from perun.profile.factory import Profile


def changes(
    baseline: Profile, target: Profile, params: DifferenceParams, shape: Shape
) -> Iterator[DegradationInfo]:
    """One change for each uid, in the order of their names, see :mod:`perun.check._common.difference`.

    A change is no more than the points of the two profiles show, and than the noise of their runs allows, see
    :mod:`perun.check._common.evidence`. Where the worse model fits worse than `params.r_square`, a change is
    Unknown.

    Its type is that of the difference of the models, its rate and its relative rate are in percent of the
    baseline, its values the means of both curves over the x that they have in common.

    :param shape: gives the type.
    :raises ProfileError: where one of the profiles has no models of a regression analysis.
    """
    runs = Runs(baseline, target, params.apart / 100)
    for pair in model_pairs(baseline, target):
        yield pair.unpaired or _change(pair, params, shape, runs)


def _change(pair: ModelPair, params: DifferenceParams, shape: Shape, runs: Runs) -> DegradationInfo:
    common = parts(pair.baseline, pair.target)
    if not common:
        return DegradationInfo(
            PerformanceChange.Unknown, pair.uid, extent(pair.baseline), extent(pair.target)
        )
    samples = sample(common)
    names = _names([part.baseline for part in common]), _names([part.target for part in common])
    if samples is None:
        return DegradationInfo(PerformanceChange.Unknown, pair.uid, *names)
    found = compare(common, samples, Limits(params.unchanged, params.changed))
    measured = runs.measured(pair.uid, common)
    limits = relative.Limits(params.unchanged / 100, params.changed / 100)
    change, rule = judged(found.change, common, params.r_square, measured, limits)
    unchanged = change is PerformanceChange.NoChange
    means = float(np.mean(samples.baseline)), float(np.mean(samples.target))
    return DegradationInfo(
        res=change,
        loc=pair.uid,
        fb=f"{written(means[0], pair.unit)} ({names[0]})",
        tt=f"{written(means[1], pair.unit)} ({names[1]})",
        t="-" if unchanged else shape(samples.x, samples.difference),
        rd=found.rate,
        ct="r_square",
        cr=min(part.r_square for part in common),
        # Of parts, the relative change is a share in every method.
        pi=[] if unchanged else [(kind, rate / 100, start, end) for kind, rate, start, end in found.runs],
        rdr=found.rate,
        rule=rule,
        values=means,
        unit=pair.unit,
    )


def _names(records: list[ModelRecord]) -> str:
    """The kinds of the models along x: `constant, linear`."""
    kinds = [record.type for record in records]
    return ", ".join(kind for at, kind in enumerate(kinds) if not at or kinds[at - 1] != kind)
