"""The changes that a check finds are stored with the version, for `perun log` and `perun status`."""

from __future__ import annotations

from collections.abc import Sequence

from perun.plugin.api import MinorVersion
from perun.porcelain.check.report import Comparison, command_of
from perun.porcelain.repository import Repository
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.store.changes import ChangeRecord


def store_changes(repo: Repository, version: MinorVersion, comparisons: Sequence[Comparison]) -> None:
    """Store the changes of the version; they replace those of earlier checks of these configurations.

    :raises ProfileError: if the file of changes is damaged.
    """
    found: dict[tuple[str, str, str], ChangeRecord] = {}
    commands = set()
    for comparison in comparisons:
        if comparison.baseline_version is None or all(one.reason for one in comparison.results):
            continue
        if comparison.incomplete or comparison.environment:  # what an earlier check found still holds
            continue
        command = command_of(comparison.target)
        commands.add(command)
        for change in comparison.changes:
            record = ChangeRecord(change, comparison.baseline_version.checksum, command)
            known = found.get(record.key)
            # Two methods may report the same type at the same place: the file has room for the worse.
            if known is None or _urgency(record) < _urgency(known):
                found[record.key] = record
    if not commands:
        return
    stored = {
        record.key: record
        for record in repo.store.changes.read(version.checksum)
        if record.command in commands
    }
    if found == stored:
        return
    gone = (record._replace(info=_without_change(record.info)) for record in stored.values())
    repo.store.changes.merge(version.checksum, [*gone, *found.values()])


def _urgency(record: ChangeRecord) -> tuple[bool, int]:
    """A key to sort by: degradations from the worst, then optimizations, then what could not be compared."""
    kind = record.info.result
    incomparable = (
        PerformanceChange.Unknown,
        PerformanceChange.NotInBaseline,
        PerformanceChange.NotInTarget,
    )
    return kind in incomparable, kind.value


def _without_change(info: DegradationInfo) -> DegradationInfo:
    return DegradationInfo(PerformanceChange.NoChange, info.location, "", "", info.type)
