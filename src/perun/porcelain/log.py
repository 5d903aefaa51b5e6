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
    """One version; `summary` is None where nothing is stored for it, or `damage` says what cannot be read."""

    version: MinorVersion
    summary: Summary | None
    damage: str = ""


def log(repo: Repository, minor: str | None = None, *, subjects_only: bool = False) -> Iterator[LogEntry]:
    """The ancestors of `minor` (HEAD where None), itself first, as a stream. Reads only.

    What is damaged in the store is told with its version, so that the others are still shown.

    :param subjects_only: `version.desc` may be the first line alone; faster on long histories.
    :raises VersionControlError: at once, where there is no such version.
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
    return (_entry(version, summaries) for version in itertools.chain((first,), versions))


def _entry(version: MinorVersion, summaries: Snapshot) -> LogEntry:
    try:
        return LogEntry(version, summaries.get(version.checksum))
    except DamagedStore as problem:
        return LogEntry(version, None, problem.message)
