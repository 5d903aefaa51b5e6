"""What `perun changes` found in the words of `perun check`, whose formats show it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from perun.cli.answers.measured import SHORT
from perun.porcelain.acknowledged import Acknowledged
from perun.porcelain.changes.data import Changes, Step, VersionChanges
from perun.porcelain.changes.labels import entry_of, remark_of, result_of
from perun.porcelain.check.report import Comparison, MethodResult, VersionReport, is_degradation
from perun.porcelain.trend import text_of
from perun.profile.amounts import readable_pair
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.head import Configuration, Head
from perun.profile.helpers import ProfileInfo
from perun.wording import listed

METHOD: Final = "change_points"
"""What found the changes, where a format names the method."""


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
