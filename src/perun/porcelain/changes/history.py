"""What the versions of a history measured.

It is read once from the profiles, and from then on from the cache: the series of each profile, and a column
of the table for each version.
"""

from __future__ import annotations

import math
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Final, NamedTuple

from perun.errors import DamagedStore, PerunError
from perun.measurement.comparable import Conditions, conditions
from perun.measurement.estimate import Point, Readings, estimate, point
from perun.measurement.noise import WINDOW
from perun.measurement.series import readings
from perun.plugin.api import MinorVersion
from perun.porcelain.changes.data import History, SeriesKey
from perun.porcelain.changes.table import MANY, Cell, Column, State, Table, cells_of, load, save
from perun.porcelain.repository import Repository
from perun.porcelain.walking import ancestors, first_parents
from perun.profile.helpers import ProfileInfo
from perun.store.facts import Fact, fact_of
from perun.store.series import ProfileSeries

Progress = Callable[[int, int], None]
"""Called with the number of versions that are read, and of all."""
_MOST_KEPT: Final = 300_000
"""Readings of versions that are kept in memory."""


def read(repo: Repository, revision: str | None, progress: Progress) -> History:
    """What was measured along the first parents of a version, HEAD if None.

    :raises VersionControlError: if there is no such version.
    """
    versions = list(first_parents(repo, repo.version(revision)))[::-1]
    measured = states_of(repo, versions)
    table, damaged = table_of(repo, measured, progress)
    return along(versions, measured, table, [message for own in damaged.values() for message in own])


def states_of(repo: Repository, versions: Iterable[MinorVersion]) -> dict[str, State]:
    """The states of the indexes of those of the versions that have one."""
    return repo.store.indexes.states([one.checksum for one in versions])


def along(versions: list[MinorVersion], measured: Iterable[str], table: Table, damaged: list[str]) -> History:
    """What these versions, the oldest first, measured by the table.

    :param measured: those with an index; the table may know others that had one.
    """
    place_of = {one.checksum: place for place, one in enumerate(versions)}
    kept = sorted(place_of[one] for one in table.measured(measured) if one in place_of)
    columns = [table.place[versions[place].checksum] for place in kept]
    conditions = [table.conditions[one] for one in columns]
    cells = tuple(one[:, columns] for one in table.cells)
    known = {one.configuration for one in table.headlines}
    leading = table.headlines | {one for one in table.keys if one.configuration not in known}
    return History(versions, kept, table.keys, cells, frozenset(leading), conditions, damaged)


def table_of(
    repo: Repository, states: Mapping[str, State], progress: Progress, known: Table | None = None
) -> tuple[Table, dict[str, list[str]]]:
    """The table with the columns of these versions, and by version what cannot be read.

    :param states: of the indexes, as :func:`states_of`.
    :param known: the table as it was the last time; without it, it is made of what the cache has.
    """
    table = Table() if known is None else known
    missing = {checksum: state for checksum, state in states.items() if not table.holds(checksum, state)}
    kept = load(repo.store.cache, missing)
    damaged: dict[str, list[str]] = {}
    columns: dict[str, Column] = {}
    fresh: dict[str, Column] = {}
    for number, (checksum, state) in enumerate(missing.items()):
        column = kept.get(checksum)
        if column is None:
            progress(number, len(missing))
            messages: list[str] = []
            with suppress(DamagedStore):
                column = fresh[checksum] = _read_version(repo, checksum, state, messages)
            if messages:
                damaged[checksum] = messages
        if column is not None:
            columns[checksum] = column
    progress(len(states), len(states))
    table.add(columns)
    save(repo.store.cache, fresh)
    return table, damaged


def _read_version(repo: Repository, checksum: str, state: State, damaged: list[str]) -> Column:
    try:
        profiles = _profiles(repo, checksum, damaged)
    except DamagedStore as problem:
        damaged.append(problem.message)
        raise
    whole = [one for one in profiles if not one.fact.incomplete]
    whole.sort(key=lambda one: one.info.time)
    under = {(one.info.configuration, one.fact.machine): one.series.conditions for one in whole}
    incomplete = dict.fromkeys(one.info.configuration for one in profiles if one.fact.incomplete)
    found = _by_key(whole)
    headlines = {
        (one.info.configuration, stands.location)
        for one in whole if (stands := one.fact.processor or one.fact.headline) is not None
    }  # fmt: skip
    leading = tuple(key for key in found if (key.configuration, key.location) in headlines)
    cells = cells_of([cell(point(own, key.kind)) for key, own in found.items()])
    return Column(state, tuple(found), cells, under, tuple(incomplete), len(profiles), leading)


class _Known(NamedTuple):
    """A registered profile, and what the cache has of it."""

    info: ProfileInfo
    fact: Fact
    series: ProfileSeries


def _profiles(repo: Repository, minor: str, damaged: list[str]) -> list[_Known]:
    """The profiles of the version that can be read."""
    store = repo.store
    infos = [entry.info() for entry in store.indexes.read(minor)]
    checksums = dict.fromkeys(info.checksum for info in infos)
    facts, series = store.facts.of(checksums), store.series.of(checksums)
    for checksum in checksums:
        if checksum not in facts or checksum not in series:
            try:
                profile = store.objects.get(checksum)
                own = readings(profile)
                under = conditions(profile)
                fact, one = fact_of(profile), ProfileSeries(under, tuple(own), tuple(own.values()))
            except PerunError as problem:
                damaged.append(problem.message)
                continue
            facts[checksum], series[checksum] = fact, one
            store.facts.keep({checksum: fact})
            store.series.keep({checksum: one})
    return [
        _Known(info, facts[info.checksum], series[info.checksum])
        for info in infos if info.checksum in facts and info.checksum in series
    ]  # fmt: skip


def _by_key(profiles: Iterable[_Known]) -> dict[SeriesKey, list[tuple[Readings, Conditions]]]:
    """What each profile of a version measured of each series, in the order of measuring."""
    found: dict[SeriesKey, list[tuple[Readings, Conditions]]] = {}
    for info, fact, series in sorted(profiles, key=lambda one: one.info.time):
        for name, one in zip(series.names, series.readings, strict=True):
            key = SeriesKey(info.configuration, "" if name.exact else fact.machine, *name)
            found.setdefault(key, []).append((one, series.conditions))
    return {key: own for key, own in found.items() if all(one.rounds for one, _ in own)}


def cell(of: Point) -> Cell:
    """What the table keeps of a point."""
    value = estimate(of)
    half = value.half_width
    error = 0.0 if of.repeats else of.error_of(of.workloads, logarithmic=of.positive).size
    session = of.rounds[0].session
    mark = 0 if session.startswith("#") else max(zlib.crc32(session.encode()), MANY + 1)
    if of.sessions > 1 or of.workloads != ("",):
        mark = MANY
    return Cell(
        value.value, half or math.nan, error if math.isfinite(error) else math.nan,
        of.size, len(of.rounds), of.sessions, mark,
    )  # fmt: skip


class Points:
    """The points of series at versions, which are read as they are asked for.

    :param head: the newest version of the history.
    """

    def __init__(self, repo: Repository, head: str, line: Iterable[str]) -> None:
        self._repo = repo
        self._head = head
        self._line = frozenset(line)
        self._kept: OrderedDict[str, dict[SeriesKey, list[tuple[Readings, Conditions]]]] = OrderedDict()

    def at(self, version: str, key: SeriesKey) -> Point | None:
        """What the version measured of the series; None if it did not."""
        if version not in self._kept:
            whole: list[_Known] = []
            with suppress(PerunError):
                whole = [one for one in _profiles(self._repo, version, []) if not one.fact.incomplete]
            self._kept[version] = _by_key(whole)
            while len(self._kept) > 1 and sum(map(len, self._kept.values())) > _MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(version)
        own = self._kept[version].get(key)
        return point(own, key.kind) if own else None

    def before(self, version: str, key: SeriesKey, line: Iterable[str]) -> list[Point]:
        """The points of the series before the version, the nearest first, as many as are looked at.

        :param line: the versions along first parents that have one, the nearest first.
        """
        found = [one for other in line if (one := self.at(other, key)) is not None][:WINDOW]
        if len(found) < WINDOW and self.merged:
            others = (one.checksum for one in ancestors(self._repo, version))
            more = (self.at(other, key) for other in others if other in self.merged)
            found += [one for one in more if one is not None][: WINDOW - len(found)]
        return found

    @cached_property
    def merged(self) -> frozenset[str]:
        """The versions with profiles that are no first parents, but were merged."""
        every = (one.checksum for one in self._repo.vcs.walk_subjects(self._head))
        return frozenset(self._repo.store.indexes.states([one for one in every if one not in self._line]))


def possible(history: History, before: int, after: int) -> tuple[MinorVersion, ...]:
    """The versions after the one at position `before` of the history up to that at `after`."""
    return tuple(history.versions[before + 1 : after + 1])
