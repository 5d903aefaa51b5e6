"""The models of two versions as points at the same x, as many as the models themselves have values."""

from __future__ import annotations

from collections.abc import Sequence

from perun.check._common.difference import Samples, sampled
from perun.check._common.parts import Part
from perun.models.curves import Floats
from perun.models.record import ModelRecord
from perun.models.regressogram import regressogram
from perun.models.result import NoModel

REGRESSOGRAM = "regressogram"


def as_fine(parts: Sequence[Part], points: int) -> Samples | None:
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
