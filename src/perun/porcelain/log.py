"""`perun log`: the history of the project with what is stored for each version (manual 3.2.9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from perun.plugin.api import MinorVersion
from perun.porcelain.repository import Repository
from perun.store.summaries import Summary


class LogEntry(NamedTuple):
    """One version; `summary` is None where nothing is stored for it."""

    version: MinorVersion
    summary: Summary | None


def log(repo: Repository, minor: str | None = None, *, subjects_only: bool = False) -> Iterator[LogEntry]:
    """The ancestors of `minor` (HEAD where None), itself first, as a stream. Reads only.

    :param subjects_only: `version.desc` may be the first line alone; faster on long histories.
    """
    head = "HEAD" if minor is None else repo.version(minor)
    summaries = repo.store.summaries.load()
    walk = repo.vcs.walk_subjects if subjects_only else repo.vcs.walk_minor_versions
    for version in walk(head):
        yield LogEntry(version, summaries.get(version.checksum))
