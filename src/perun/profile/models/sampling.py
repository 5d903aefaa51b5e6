"""The models of two versions as points at the same x, as many as the models themselves have values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from perun.profile.models.difference import scatter_of
from perun.profile.models.functions import Floats, evaluate
from perun.profile.models.parts import Part
from perun.profile.models.regressogram import regressogram
from perun.profile.models.result import NoModel
from perun.profile.strategies import ModelRecord

REGRESSOGRAM = "regressogram"


class Points(NamedTuple):
    """Two curves, all of shape (n,), finite, x ascending.

    :param scatter: the larger standard deviation of what was measured about the two curves.
    """

    x: Floats
    baseline: Floats
    target: Floats
    scatter: Floats


def sampled(parts: Sequence[Part], points: int) -> Points | None:
    """Both curves at equal distances over all parts, without what is between two parts.

    There are as many points as the model with fewer values has, or as the pieces of one together; `points`
    where all models are formulas. An x where one of the two has no value is left out; None where fewer than
    two x are left.
    """
    if not parts:
        return None
    sides = [
        {id(record): record for record in side} for side in zip(*(part[2:] for part in parts), strict=True)
    ]
    counts = [sum(len(record.values) for record in side.values()) for side in sides]
    number = max(2, min(filter(None, counts), default=points))
    x = np.linspace(parts[0].start, parts[-1].end, number)
    baseline, target, scatter = (np.full(number, np.nan) for _ in range(3))
    for part in parts:
        inside = (x >= part.start) & (x <= part.end)
        baseline[inside] = evaluate(part.baseline, x[inside])
        target[inside] = evaluate(part.target, x[inside])
        scatter[inside] = np.maximum(scatter_of(part.baseline, x[inside]), scatter_of(part.target, x[inside]))
    known = np.isfinite(baseline) & np.isfinite(target) & np.isfinite(scatter)
    if np.count_nonzero(known) < 2:
        return None
    return Points(x[known], baseline[known], target[known], scatter[known])


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
