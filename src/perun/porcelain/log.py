"""`perun log`: the history of the project with what is stored for each version (manual 3.2.9)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from perun.errors import DamagedStore, VersionControlError
from perun.plugin.api import MinorVersion
from perun.porcelain.repository import Repository
from perun.store.summaries import Snapshot, Summary


class LogEntry(NamedTuple):
    """One version; `summary` is None if nothing is stored for it, or `damage` says what cannot be read."""

    version: MinorVersion
    summary: Summary | None
    damage: str = ""


def log(
    repo: Repository,
    minor: str | None = None,
    *,
    subjects_only: bool = False,
    changes_only: bool = False,
    limit: int | None = None,
) -> Iterator[LogEntry]:
    """The ancestors of `minor` (HEAD if None), itself first, as a stream. Reads only.

    An entry names damage of the store, so that the other versions are still shown.

    :param subjects_only: `version.desc` may be the first line alone; faster on long histories.
    :param changes_only: leave out the versions for which no degradation or optimization is stored.
    :param limit: how many entries at most; all if None.
    :raises VersionControlError: at once, if there is no such version.
    """
    head = "HEAD" if minor is None else repo.version(minor)
    walk = repo.vcs.walk_subjects if subjects_only else repo.vcs.walk_minor_versions
    versions = walk(head)
    try:
        try:
            first = next(versions)
        except VersionControlError:
            # Not every system knows the spelling HEAD, and this tells better that there is no version yet.
            versions = walk(repo.version(minor))
            first = next(versions)
    except StopIteration:
        return iter(())
    summaries = repo.store.summaries.load()
    entries = (_entry(version, summaries) for version in itertools.chain((first,), versions))
    return itertools.islice(filter(_tells_change, entries) if changes_only else entries, limit)


def _tells_change(entry: LogEntry) -> bool:
    # What is damaged may have been a change.
    summary = entry.summary
    return bool(entry.damage or (summary and (summary.degradations or summary.optimizations)))


def _entry(version: MinorVersion, summaries: Snapshot) -> LogEntry:
    try:
        return LogEntry(version, summaries.get(version.checksum))
    except DamagedStore as problem:
        return LogEntry(version, None, problem.message)
