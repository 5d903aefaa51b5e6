"""What `perun changes` found in the words of `perun check`, whose formats show it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from perun.cli.answers.measured import SHORT
from perun.models.change_points.voting import DETECTORS
from perun.porcelain.acknowledged import Acknowledged, Entry
from perun.porcelain.changes.data import Changes, Step, VersionChanges
from perun.porcelain.check.report import Comparison, MethodResult, VersionReport, is_degradation, may_fail
from perun.porcelain.trend import text_of
from perun.profile.amounts import readable_pair
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.head import Configuration, Head
from perun.profile.helpers import ProfileInfo
from perun.profile.verdict import DEFAULTS, mirrored
from perun.wording import listed

METHOD: Final = "change_points"
"""What found the changes, where a format names the method."""


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


def fails(found: Changes, acknowledged: Acknowledged, level: str) -> bool:
    """Whether `--fail-on level` fails on one of the steps."""
    return any(
        is_degradation(result_of(step), level) and entry_of(one, step, acknowledged) is None
        for one in found.found
        for step in one.steps
    )


def undecided(found: Changes, acknowledged: Acknowledged) -> bool:
    """Whether of one of the steps it is unknown whether a version brought it."""
    return any(
        result_of(step) is PerformanceChange.Unknown and entry_of(one, step, acknowledged) is None
        for one in found.found
        for step in one.steps
    )


def reports(found: Changes, acknowledged: Acknowledged) -> Iterator[VersionReport]:
    """The versions that changed something, the newest first, after the newest measured one with what each
    configuration was searched for without a change."""
    measured = found.history.measured
    if measured and found.series > found.short:
        yield VersionReport(found.history.versions[measured[-1]], tuple(_unchanged(found)))
    for one in reversed(found.found):
        if one.steps:
            yield VersionReport(one.version, tuple(_comparisons(one, acknowledged)))


def remark_of(step: Step) -> str:
    """`5 of 5 detectors, taken back by 4baf672`; may be empty."""
    parts = []
    if step.votes != ("exact",):
        parts.append(f"{len(step.votes)} of {len(DETECTORS)} detectors")
    if step.moved_with:
        parts.append(f"moved {'from' if step.ratio > 1 else 'to'} {listed(step.moved_with, 2)}")
    if step.taken_back:
        parts.append(f"taken back by {step.taken_back[:SHORT]}")
    if step.takes_back:
        parts.append(f"takes back {step.takes_back[:SHORT]}")
    return ", ".join(parts)


def _unchanged(found: Changes) -> Iterator[Comparison]:
    changed = {step.series.configuration for one in found.found for step in one.steps}
    for configuration in dict.fromkeys(key.configuration for key in found.history.keys):
        if configuration not in changed:
            change = DegradationInfo(PerformanceChange.NoChange, text_of(configuration), "-", "-")
            yield Comparison(_info(configuration), results=(MethodResult(METHOD, (change,)),))


def _comparisons(one: VersionChanges, acknowledged: Acknowledged) -> Iterator[Comparison]:
    groups: defaultdict[Configuration, list[Step]] = defaultdict(list)
    for step in one.steps:
        groups[step.series.configuration].append(step)
    notes = _notes(one)
    for configuration, steps in groups.items():
        entries = {step.series.location: entry_of(one, step, acknowledged) for step in steps}
        yield Comparison(
            _info(configuration),
            baseline_version=one.since,
            results=(MethodResult(METHOD, tuple(map(_change, steps))),),
            notes=notes,
            acknowledged={place: entry for place, entry in entries.items() if entry is not None},
        )


def _notes(one: VersionChanges) -> tuple[str, ...]:
    others = [version.checksum[:SHORT] for version in one.possible[:-1]]
    if not others:
        return ()
    return (f"or one of the versions before it that were not measured: {listed(others, 4)}",)


def _info(configuration: Configuration) -> ProfileInfo:
    collector, cmd, args, workload, postprocessors = configuration
    return ProfileInfo("", "", Head("", cmd, args, workload, collector, postprocessors), 0)


def _change(step: Step) -> DegradationInfo:
    before, after = readable_pair(step.before.value, step.after.value, step.series.unit)
    rule = remark_of(step)
    if step.conditions:
        rule = f"{rule}, but the machine changed then: {listed(step.conditions, 4)}".removeprefix(", but ")
    return DegradationInfo(
        result_of(step),
        step.series.location,
        before,
        after,
        "ratio",
        step.ratio,
        interval=None if step.votes == ("exact",) else (step.low, step.high),
        sizes=(step.before.points, step.after.points),
        rule=rule,
        values=(step.before.value, step.after.value),
        unit=step.series.unit,
    )
