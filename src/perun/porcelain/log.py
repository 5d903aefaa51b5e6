"""`perun log`: the history of the project with what is stored for each version (manual 3.2.9)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from perun.errors import DamagedStore, VersionControlError
from perun.plugin.api import MinorVersion
from perun.porcelain.earlier import Value, Wanted, of_version, rules_of
from perun.porcelain.known import KnownFacts
from perun.porcelain.log_values import LogValue, WithValues
from perun.porcelain.repository import Repository
from perun.store.summaries import Snapshot, Summary


class LogEntry(NamedTuple):
    """One version; `summary` is None if nothing is stored for it, or `damage` says what cannot be read.

    `values` are those of its configurations, in the order in which they were measured first, if asked for.
    """

    version: MinorVersion
    summary: Summary | None
    damage: str = ""
    values: tuple[LogValue, ...] = ()


def log(
    repo: Repository,
    minor: str | None = None,
    *,
    subjects_only: bool = False,
    changes_only: bool = False,
    limit: int | None = None,
    ordered: bool = False,
    with_values: bool = False,
) -> Iterator[LogEntry]:
    """The ancestors of `minor` (HEAD if None), itself first, as a stream. It writes nothing but the cache.

    An entry names damage of the store, so that the other versions are still shown.

    :param subjects_only: `version.desc` may be the first line alone; faster on long histories.
    :param changes_only: leave out the versions for which no degradation or optimization is stored.
    :param limit: how many entries at most; all if None.
    :param ordered: children strictly before their parents, as what draws a graph needs it.
    :param with_values: also what was measured in each version. A version may have to wait for its ancestors.
    :raises VersionControlError: at once, if there is no such version.
    """
    head = "HEAD" if minor is None else repo.version(minor)
    walk = _walk(repo, subjects_only, ordered)
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
    entries: Iterator[LogEntry]
    entries = _entries(itertools.chain((first,), versions), summaries)
    if with_values:
        entries = _with_values(repo, entries)
    return itertools.islice(filter(_tells_change, entries) if changes_only else entries, limit)


def _walk(
    repo: Repository, subjects_only: bool, ordered: bool
) -> Callable[[str], Iterator[MinorVersion]]:
    if subjects_only:
        return partial(repo.vcs.walk_subjects, ordered=ordered)
    return partial(_whole_in_order, repo) if ordered else repo.vcs.walk_minor_versions


def _whole_in_order(repo: Repository, head: str) -> Iterator[MinorVersion]:
    """The ancestors with their whole messages, children strictly before parents."""
    whole = repo.vcs.walk_minor_versions(head)
    early: dict[str, MinorVersion] = {}
    for version in repo.vcs.walk_subjects(head, ordered=True):
        while version.checksum not in early:  # nearly always the next one
            one = next(whole)
            early[one.checksum] = one
        yield early.pop(version.checksum)


def _with_values(repo: Repository, entries: Iterator[LogEntry]) -> Iterator[LogEntry]:
    known = KnownFacts(repo)

    def values_of(entry: LogEntry) -> Mapping[Wanted, Value]:
        if entry.summary is None or not entry.summary.profiles:
            return {}
        try:
            return of_version(repo, entry.version.checksum, known)
        except DamagedStore:
            return {}  # it was damaged since it was counted

    joined = WithValues(_version_of, values_of, rules_of(repo)).join(entries)
    return (entry._replace(values=values) if values else entry for entry, values in joined)


def _version_of(entry: LogEntry) -> tuple[str, tuple[str, ...]]:
    return entry.version.checksum, entry.version.parents


def _tells_change(entry: LogEntry) -> bool:
    # What is damaged may have been a change.
    summary = entry.summary
    return bool(entry.damage or (summary and (summary.degradations or summary.optimizations)))


def _entries(versions: Iterable[MinorVersion], summaries: Snapshot) -> Iterator[LogEntry]:
    try:
        for version in versions:
            yield _entry(version, summaries)
    finally:
        summaries.keep()


def _entry(version: MinorVersion, summaries: Snapshot) -> LogEntry:
    try:
        return LogEntry(version, summaries.get(version.checksum))
    except DamagedStore as problem:
        return LogEntry(version, None, problem.message)
