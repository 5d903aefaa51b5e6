"""The changes that a check finds are stored with the version, for `perun log` and `perun status`."""

from __future__ import annotations

from collections.abc import Sequence

from perun.plugin.api import MinorVersion
from perun.porcelain.check.report import Comparison, command_of
from perun.porcelain.repository import Repository
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.store.changes import ChangeRecord, serialize


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
        # The file has room for one change of a type at a place.
        for change in comparison.places:
            record = ChangeRecord(change, comparison.baseline_version.checksum, command)
            found[record.key] = record
    if not commands:
        return
    stored = {
        record.key: record
        for record in repo.store.changes.read(version.checksum)
        if record.command in commands
    }
    if serialize(found.values()) == serialize(stored.values()):
        return
    gone = (record._replace(info=_without_change(record.info)) for record in stored.values())
    repo.store.changes.merge(version.checksum, [*gone, *found.values()])


def _without_change(info: DegradationInfo) -> DegradationInfo:
    return DegradationInfo(PerformanceChange.NoChange, info.location, "", "", info.type)
