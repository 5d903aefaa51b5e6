"""`perun log`: the history of the project with what is stored for each version (manual 3.2.9)."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Final, Generic, NamedTuple, TypeVar

from perun.core.errors import DamagedStore, VersionControlError
from perun.history.baseline import (
    MOST_VERSIONS,
    BaselineComparison,
    HeadlineSeries,
    KnownSummaries,
    Line,
    SeriesValue,
    compare_with_line,
    rules_of,
    values_of_version,
)
from perun.measurement.difference import Rules
from perun.measurement.noise import WINDOW, Kept
from perun.measurement.verdict import seen_again
from perun.plugin.versions import MinorVersion
from perun.repository.repository import Repository
from perun.store.summaries import Snapshot, Summary

# What was measured in each version of a history, judged beside the version before, as a stream.

LOOK_AHEAD: Final = MOST_VERSIONS
"""Versions that are looked at for earlier values before a version is given with those that were found."""

_T = TypeVar("_T")


class LogValue(NamedTuple):
    """The value of one series in a version, and those of its ancestors that it is judged by.

    :param again: whether a newer version has seen the same.
    """

    wanted: HeadlineSeries
    judged: BaselineComparison
    line: Line = ()
    again: bool = False


class _Seen(Generic[_T]):
    """An item of the stream that was not given yet, and the lines of its values as far as they were followed.

    :ivar cursor: the first parent to look at next; empty after the last one.
    :ivar pure: whether there are none but first parents in its lines.
    """

    __slots__ = ("checksum", "cursor", "item", "lines", "number", "open", "parents", "pure", "values")

    def __init__(
        self,
        item: _T,
        number: int,
        checksum: str,
        parents: tuple[str, ...],
        values: Mapping[HeadlineSeries, SeriesValue],
    ) -> None:
        self.item = item
        self.number = number
        self.checksum = checksum
        self.parents = parents
        self.cursor = parents[0] if parents else ""
        self.values = values
        self.open = set(values)
        self.pure = True
        self.lines: dict[HeadlineSeries, deque[tuple[str, SeriesValue]]] = {one: deque() for one in values}

    def take(self, other: _Seen[_T]) -> None:
        """Add the values of an ancestor; the lines of all series, so that they end at the same one."""
        for one, value in other.values.items():
            line = self.lines.get(one)
            if line is not None:
                line.append((other.checksum, value))
                if len(line) == WINDOW:
                    self.open.discard(one)

    def leave_to(self, parent: _Seen[_T]) -> None:
        """Give the lines to the first parent, of which they are the rest."""
        if not self.pure or not parent.values.keys() <= self.values.keys():
            return
        parent.cursor = self.cursor
        for one in parent.values:
            line = parent.lines[one] = self.lines[one]
            line.popleft()  # the parent itself
            if len(line) >= WINDOW:
                parent.open.discard(one)


def nowhere(version: str, wanted: HeadlineSeries) -> bool:
    """That no version beyond the walk has seen anything."""
    return False


class LogValues(Generic[_T]):
    """Joins each version of a walk with its values and the verdicts on them.

    The walk gives children before their parents, as far as the clocks of their authors agree. A version is
    held back until all is known that a verdict looks at, history ends, or :data:`LOOK_AHEAD` more versions
    were seen.

    :param version_of: the checksum and the parents of an item of the walk.
    :param values_of: the values of an item; they are asked for once.
    :param newer: whether a version beyond the walk has seen again what a version measured.
    """

    def __init__(
        self,
        version_of: Callable[[_T], tuple[str, tuple[str, ...]]],
        values_of: Callable[[_T], Mapping[HeadlineSeries, SeriesValue]],
        rules: Rules,
        look_ahead: int = LOOK_AHEAD,
        newer: Callable[[str, HeadlineSeries], bool] = nowhere,
    ) -> None:
        self._version_of = version_of
        self._values_of = values_of
        self._rules = rules
        self._look_ahead = look_ahead
        self._newer = newer
        # In the order of the walk: the item that is given next, and all behind it.
        self._seen: dict[str, _Seen[_T]] = {}
        self._kept: Kept = {}
        self._again: dict[str, set[HeadlineSeries]] = {}  # what newer versions have seen again

    def join(self, items: Iterable[_T]) -> Iterator[tuple[_T, tuple[LogValue, ...]]]:
        """The items in their order, each with its values."""
        held: deque[_Seen[_T]] = deque()
        for number, item in enumerate(items):
            values = self._values_of(item)
            if not (held or values):
                yield item, ()
                continue
            one = _Seen(item, number, *self._version_of(item), values)
            held.append(one)
            self._seen[one.checksum] = one
            while held and (self._is_complete(held[0]) or number - held[0].number >= self._look_ahead):
                yield self._given(held.popleft())
        while held:
            self._add_others(held[0])
            yield self._given(held.popleft())

    def _is_complete(self, one: _Seen[_T]) -> bool:
        """Follow the first parents as far as they were seen."""
        while one.open and (other := self._seen.get(one.cursor)) is not None:
            one.take(other)
            one.cursor = other.parents[0] if other.parents else ""
        return not one.open

    def _add_others(self, one: _Seen[_T]) -> None:
        """Where first parents do not suffice, the other ancestors follow them, in the order of the walk."""
        if self._is_complete(one):
            return
        one.pure = False
        ancestors, line = set(one.parents), one.parents[:1]
        for other in self._seen.values():
            if other.checksum in line:
                line = other.parents[:1]
            elif other.checksum in ancestors:
                one.take(other)
            else:
                continue
            ancestors.update(other.parents)

    def _given(self, one: _Seen[_T]) -> tuple[_T, tuple[LogValue, ...]]:
        del self._seen[one.checksum]
        given = []
        for wanted, value in one.values.items():
            again = wanted in self._again.get(one.checksum, ())
            line = list(islice(one.lines[wanted], WINDOW))
            beyond = (lambda: True) if again else partial(self._newer, one.checksum, wanted)
            found = compare_with_line(value, line, self._rules, again=beyond, kept=self._kept)
            if found.verdict is not None and seen_again(found.verdict, beyond):
                self._again.setdefault(found.since, set()).add(wanted)
            given.append(LogValue(wanted, found, line, again))
        self._again.pop(one.checksum, None)
        parent = self._seen.get(one.parents[0]) if one.parents else None
        if parent is not None and parent.cursor != one.cursor:
            one.leave_to(parent)
        return one.item, tuple(given)


class ChangeConfirmation:
    """What the versions between another one and the current one have seen of it again, by the rule of
    :func:`log`. The walk from the current version is made when it is first asked for, and only as far."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._known: dict[str, set[HeadlineSeries]] = {}
        self._rest: Iterator[tuple[MinorVersion, tuple[LogValue, ...]]] | None = None

    def __call__(self, version: str, wanted: HeadlineSeries) -> bool:
        """Whether a newer version has seen the same value of the series."""
        for one, values in self._walk() if version not in self._known else ():
            self._known[one.checksum] = {value.wanted for value in values if value.again}
            if one.checksum == version:
                break
        return wanted in self._known.get(version, ())

    def _walk(self) -> Iterator[tuple[MinorVersion, tuple[LogValue, ...]]]:
        if self._rest is None:
            repo, known = self._repo, KnownSummaries(self._repo)

            def values_of(version: MinorVersion) -> Mapping[HeadlineSeries, SeriesValue]:
                with suppress(DamagedStore):
                    if repo.store.indexes.has(version.checksum):
                        return values_of_version(repo, version.checksum, known)
                return {}

            def walk() -> Iterator[MinorVersion]:
                with suppress(VersionControlError):  # there is no current version
                    yield from repo.vcs.walk_subjects(repo.version(None))

            own = LogValues[MinorVersion](lambda one: (one.checksum, one.parents), values_of, rules_of(repo))
            self._rest = own.join(walk())
        return self._rest


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
    since: str | None = None,
) -> Iterator[LogEntry]:
    """The ancestors of `minor` (HEAD if None), itself first, as a stream. It writes nothing but the cache.

    An entry names damage of the store, so that the other versions are still shown.

    :param subjects_only: `version.desc` may be the first line alone; faster on long histories.
    :param changes_only: leave out the versions for which no degradation or optimization is stored.
    :param limit: how many entries at most; all if None.
    :param ordered: children strictly before their parents, as what draws a graph needs it.
    :param with_values: also what was measured in each version. A version may have to wait for its ancestors.
    :param since: only versions that are newer; see :func:`perun.repository.walking.since`.
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
        entries = _with_values(repo, entries, beyond=minor is not None)
    if since is not None:  # not before: a difference may be from an older version
        from perun.repository.walking import newer_than

        newer = newer_than(repo, since)
        entries = (entry for entry in entries if newer(entry.version))
    return itertools.islice(filter(_tells_change, entries) if changes_only else entries, limit)


def _walk(repo: Repository, subjects_only: bool, ordered: bool) -> Callable[[str], Iterator[MinorVersion]]:
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


def _with_values(repo: Repository, entries: Iterator[LogEntry], *, beyond: bool) -> Iterator[LogEntry]:
    """:param beyond: whether there may be newer versions than those of the entries."""
    known = KnownSummaries(repo)

    def values_of(entry: LogEntry) -> Mapping[HeadlineSeries, SeriesValue]:
        if entry.summary is None or not entry.summary.profiles:
            return {}
        try:
            return values_of_version(repo, entry.version.checksum, known)
        except DamagedStore:
            return {}  # it was damaged since it was counted

    newer = ChangeConfirmation(repo) if beyond else nowhere
    joined = LogValues(_version_of, values_of, rules_of(repo), newer=newer).join(entries)
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
