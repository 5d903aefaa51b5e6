"""Memory profiles: which resources are allocations, which release memory, and which sum others up.

A resource of the collector `memory` stands for allocations or releases. Further ones sum up a function or
the program: their subtype is a part of their uid (`list.c:push:peak`). What adds resources up must leave
these out, or it counts every byte several times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.profile.uid import flatten

if TYPE_CHECKING:
    from perun.profile.format.core import Profile

RELEASES: Final = frozenset({"free", "delete", "delete[]"})
"""Subtypes of the resources that release memory."""
SUMMARIES: Final = frozenset({"allocated", "allocations", "peak", "leaked", "temporary", "lost"})
"""Subtypes of the resources that sum others up."""
SIZES: Final = frozenset(
    {"peak", "leaked", "definitely-lost", "indirectly-lost", "possibly-lost", "still-reachable"}
)
"""Fields of resources that are parts of their `amount`, so that they have its unit."""
LEFT_OUT: Final = "left-out"
"""Key of the region `memory`: totals of what the options of the collector left out of the resources."""


def is_summary(resource: Mapping[str, Any]) -> bool:
    """Whether a resource, or the fields that a group of them shares, sums up other resources."""
    uid = resource.get("uid")
    return isinstance(uid, Mapping) and flatten(resource.get("subtype")) in SUMMARIES and "memory" in uid


def is_release(resource: Mapping[str, Any]) -> bool:
    """Whether a resource, or the fields that a group of them shares, releases memory."""
    return flatten(resource.get("subtype")) in RELEASES


class Totals(NamedTuple):
    """What a run allocated: sizes in the unit of the profile, numbers of blocks, and the time in seconds.

    `peak` is the largest size of the heap, at `peak_time`; `leaked` was never released.
    """

    peak: float
    peak_time: float
    leaked: float
    leaked_blocks: float
    allocated: float
    allocations: float
    temporary: float


def totals(profile: Profile) -> Totals | None:
    """The totals of a memory profile, which its resources add up to; None where the profile does not have
    them, as those of older releases."""
    run = profile.get("memory")
    if not isinstance(run, Mapping) or "peak" not in run:
        return None
    names = ("peak", "peak-time", "leaked", "leaked-blocks", "allocated", "allocations", "temporary")
    return Totals(*(number_of(run.get(name, 0)) or 0.0 for name in names))


def notes(profile: Profile) -> list[str]:
    """What the collector could not find out, e.g. the names of functions, in sentences for the reader."""
    run = profile.get("memory")
    found = run.get("notes") if isinstance(run, Mapping) else None
    return [str(note) for note in found] if isinstance(found, (list, tuple)) else []


def number_of(value: Any) -> float | None:
    """The value as a float; None if it is not a finite number."""
    try:
        number = float(value) if isinstance(value, (int, float)) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
