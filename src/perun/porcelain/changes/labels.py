"""What a step is called: the label of `perun check`, what acknowledges it, and what else there is to say."""

from __future__ import annotations

from typing import Final

from perun.measurement.verdict import DEFAULTS, mirrored
from perun.models.change_points.voting import DETECTORS
from perun.porcelain.acknowledged import Acknowledged, Entry
from perun.porcelain.changes.data import Step, VersionChanges
from perun.porcelain.check.report import may_fail
from perun.profile.changes import PerformanceChange
from perun.wording import listed

_SHORT: Final = 7
"""Digits of a checksum."""


def result_of(step: Step) -> PerformanceChange:
    """The label of a step by the bounds of its interval, as `perun check` labels ratios.

    Unknown where the machine changed with it; at most a Maybe where cost moved between functions, or a later
    version takes it back, so that nothing became slower in the end.
    """
    if step.conditions:
        return PerformanceChange.Unknown
    low, high = step.low, step.high
    found = PerformanceChange.Degradation
    if step.ratio < 1:
        low, high, found = 1 / high, 1 / low, PerformanceChange.Optimization
    exact = step.votes == ("exact",)
    if step.moved_with or step.taken_back or low <= 1 + (DEFAULTS.exact if exact else DEFAULTS.threshold):
        found = PerformanceChange(found.value // 2)
    elif low > 1 + DEFAULTS.severe:
        found = PerformanceChange(found.value // 2 * 3)
    return mirrored(found) if step.series.larger_is_better else found


def entry_of(one: VersionChanges, step: Step, acknowledged: Acknowledged) -> Entry | None:
    """What acknowledges the step; only what may fail needs it."""
    if not may_fail(result_of(step)):
        return None
    return acknowledged.covers_any([version.checksum for version in one.possible], step.series.location)


def remark_of(step: Step) -> str:
    """`5 of 5 detectors, taken back by 4baf672`; may be empty."""
    parts = []
    if step.votes != ("exact",):
        parts.append(f"{len(step.votes)} of {len(DETECTORS)} detectors")
    if step.moved_with:
        parts.append(f"moved {'from' if step.ratio > 1 else 'to'} {listed(step.moved_with, 2)}")
    if step.taken_back:
        parts.append(f"taken back by {step.taken_back[:_SHORT]}")
    if step.takes_back:
        parts.append(f"takes back {step.takes_back[:_SHORT]}")
    return ", ".join(parts)
