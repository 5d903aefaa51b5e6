"""What `perun changes` found in the words of `perun check`, whose formats show it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from perun.cli.answers.data import SHORT
from perun.core.wording import listed
from perun.history.acknowledged import Acknowledged
from perun.history.changes.data import Changes, Step, VersionChanges
from perun.history.check.report import Comparison, MethodResult, VersionReport, is_degradation
from perun.history.trend import text_of
from perun.profile.amounts import readable_pair
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.head import Configuration, ProfileHeader
from perun.profile.helpers import ProfileInfo

METHOD: Final = "change_points"
"""What found the changes, where a format names the method."""


def fails(found: Changes, acknowledged: Acknowledged, level: str) -> bool:
    """Whether `--fail-on level` fails on one of the steps."""
    return any(
        is_degradation(_label(step), level) and one.entry_of(step, acknowledged) is None
        for one in found.found
        for step in (*one.steps, *one.doubtful)
    )


def _label(step: Step) -> PerformanceChange:
    """What a gate takes the step for: at most a Maybe where a later version takes it back, where cost moved
    between functions, or where it is of a part, as then nothing is slower in the end, or something else says
    so."""
    if step.decides and (step.taken_back or step.moved_with or not step.leads):
        return PerformanceChange(1 if step.verdict.value > 0 else -1)
    return step.verdict


def undecided(found: Changes, acknowledged: Acknowledged) -> bool:
    """Whether of one of the steps it is unknown whether a version brought it."""
    return any(
        step.verdict is PerformanceChange.Unknown and one.entry_of(step, acknowledged) is None
        for one in found.found
        for step in one.doubtful
    )


def reports(found: Changes, acknowledged: Acknowledged) -> Iterator[VersionReport]:
    """The versions that changed something, the newest first, after the newest measured one with what each
    configuration was searched for without a change."""
    measured = found.history.measured
    if measured and found.series > found.short:
        yield VersionReport(found.history.versions[measured[-1]], tuple(_unchanged(found)))
    for one in reversed(found.found):
        if one.steps or one.doubtful:
            yield VersionReport(one.version, tuple(_comparisons(one, acknowledged)))


def _unchanged(found: Changes) -> Iterator[Comparison]:
    changed = {step.series.configuration for one in found.found for step in (*one.steps, *one.doubtful)}
    for configuration in dict.fromkeys(key.configuration for key in found.history.keys):
        if configuration not in changed:
            change = DegradationInfo(PerformanceChange.NoChange, text_of(configuration), "-", "-")
            yield Comparison(_info(configuration), results=(MethodResult(METHOD, (change,)),))


def _comparisons(one: VersionChanges, acknowledged: Acknowledged) -> Iterator[Comparison]:
    groups: defaultdict[Configuration, list[Step]] = defaultdict(list)
    for step in (*one.steps, *one.doubtful):
        groups[step.series.configuration].append(step)
    notes = _notes(one)
    for configuration, steps in groups.items():
        entries = {step.series.location: one.entry_of(step, acknowledged) for step in steps}
        yield Comparison(
            _info(configuration),
            baseline_version=one.since,
            results=(MethodResult(METHOD, tuple(change_of(step, _label(step)) for step in steps)),),
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
    return ProfileInfo("", "", ProfileHeader("", cmd, args, workload, collector, postprocessors), 0)


def change_of(step: Step, label: PerformanceChange | None = None) -> DegradationInfo:
    """The step as `perun check` tells of changes. :param label: another word than its own."""
    before, after = readable_pair(*step.values, step.series.unit)
    exact = step.low == step.high
    return DegradationInfo(
        label or step.verdict,
        step.series.location,
        before,
        after,
        "ratio",
        step.ratio,
        interval=None if exact else (step.low, step.high),
        sizes=(step.before.samples, step.after.samples),
        rule=", ".join(filter(None, (step.reason, step.remark))),
        values=step.values,
        unit=step.series.unit,
    )
