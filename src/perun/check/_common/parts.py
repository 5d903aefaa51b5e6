"""The best models of two versions side by side, part by part of the x that they have in common.

Where every model of a uid is made of all its points, there is one part. The methods `bisection` and
`interval` of the regression analysis make models of pieces of x; then the best model at an x is the best one
of those whose interval holds it, and a new part begins wherever that changes in one of the two versions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from perun.models.curves import interval
from perun.models.record import ModelRecord
from perun.profile.strategies import best


class Part(NamedTuple):
    """An interval of x, and the best model on it in both versions."""

    start: float
    end: float
    baseline: ModelRecord
    target: ModelRecord

    @property
    def r_square(self) -> float:
        """The lower R^2 of the two: how much the comparison can be relied on."""
        return min(self.baseline.r_square, self.target.r_square)


def parts(baseline: Sequence[ModelRecord], target: Sequence[ModelRecord]) -> list[Part]:
    """The parts of the x that both versions have models for, ascending; empty where there is none."""
    sides = [[(record, interval(record)) for record in records] for records in (baseline, target)]
    found = {bound for side in sides for _, bounds in side if bounds for bound in bounds}
    edges = sorted(filter(math.isfinite, found))
    result: list[Part] = []
    for start, end in pairwise(edges):
        old, new = (
            best(record for record, bounds in side if bounds and bounds[0] <= start and end <= bounds[1])
            for side in sides
        )
        if old is None or new is None:
            continue
        last = result[-1] if result else None
        if last and (last.end, last.baseline, last.target) == (start, old, new):
            result[-1] = last._replace(end=end)
        else:
            result.append(Part(start, end, old, new))
    return result


def without_fringes(found: list[Part]) -> list[Part]:
    """The parts without those that are there because two pieces do not end at quite the same x.

    Such a part covers less than half of both pieces. Where all do, none is left out.
    """
    return [part for part in found if _covers(part)] or found


def extent(records: Sequence[ModelRecord]) -> str:
    """What the models are of, as text: why those of two versions without a common x cannot be compared."""
    bounds = [one for one in map(interval, records) if one]
    if not bounds:
        return "models without an interval"
    return f"models for x = {min(one[0] for one in bounds):g} to {max(one[1] for one in bounds):g}"


def _covers(part: Part) -> bool:
    lengths = [end - start for start, end in filter(None, map(interval, (part.baseline, part.target)))]
    return part.end - part.start >= min(lengths) / 2
