"""What the versions of a history measured.

It is read once from the profiles, and from then on from the cache: the series of each profile, and a column
of the table for each version.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.core.errors import DamagedStore, PerunError
from perun.history.baseline import limiting_processor_times, summaries_by_series
from perun.history.changes.data import Conditions as data_Conditions
from perun.history.changes.data import History, SeriesKey
from perun.measurement.changes import MANY
from perun.measurement.comparable import Conditions
from perun.measurement.estimate import Kind, Point, Readings, estimate, point
from perun.measurement.noise import WINDOW
from perun.measurement.series import SeriesName, read_of, without_samples
from perun.plugin.api import MinorVersion
from perun.profile.head import Configuration
from perun.profile.helpers import ProfileInfo
from perun.profile.sampled import SAMPLED
from perun.repository.repository import Repository
from perun.repository.walking import ancestors, first_parents
from perun.store.cache import Cache
from perun.store.series import ProfileSeries, known_profiles
from perun.store.summaries import ProfileSummary

# The table of what all versions measured, of whatever branch.
#
# A row for each series and a column for each version. The cache keeps each column with the state of the index
# that it was made of.

ROOM: Final = 64
"""Columns for which there is room beyond those of a table, so that it can grow."""
State = tuple[int, int]


class Cell(NamedTuple):
    """What one version measured of a series.

    :param half: half the width of the interval of the value at 95 %, NaN where it is not known.
    :param error: the standard error of the value as it is compared, by its own measurements; NaN where it is
        not known. :param samples: how many there are. :param rounds: of them. :param sessions: of these.
    :param mark: what stands for the only session; 0 where that has no name, :data:`MANY` where there are
        several sessions or workloads.
    :param shared: what stands for the rounds that several versions share; 0 where there are none.
    :param own: whether there are others beside these.
    """

    value: float
    half: float
    error: float
    samples: int
    rounds: int
    sessions: int
    mark: int
    shared: int = 0
    own: bool = True


_TYPES: Final = ("<f8", "<f4", "<f4", "<i4", "<i4", "<i4", "<u4", "<u4", "?")
_CELL: Final = np.dtype(list(zip(Cell._fields, _TYPES, strict=True)))
_NOTHING: Final = Cell(np.nan, np.nan, np.nan, 0, 0, 0, 0, 0, False)


class VersionColumn(NamedTuple):
    """What one version measured. :param state: of its index, which says whether the column still holds.

    :param keys: of the series; the same object for all columns of the cache that have the same ones.
    :param cells: of each of them, as :func:`cells_of`.
    :param incomplete: configurations of profiles that lack a part of their run; they count for nothing else.
    :param profiles: how many can be read. :param headlines: the series that stand for one of them.
    """

    state: State
    keys: Sequence[SeriesKey]
    cells: NDArray[np.void]
    conditions: data_Conditions
    incomplete: tuple[Configuration, ...] = ()
    profiles: int = 0
    headlines: tuple[SeriesKey, ...] = ()


def cells_of(cells: Iterable[Cell]) -> NDArray[np.void]:
    """The cells as one array, shape (n,)."""
    return np.array(list(cells), _CELL)


class HistoryTable:
    """Columns that were read so far.

    :ivar row: of each series, in order. :ivar place: the column of each version.
    :ivar headlines: those of them that stand for a profile.
    :ivar values: shape (keys, columns), NaN where nothing was measured. :ivar halves: and :ivar counts: as of
        :class:`Cell`, of the same shape; :ivar cells: all of it.
    """

    def __init__(self) -> None:
        self.row: dict[SeriesKey, int] = {}
        self.headlines: set[SeriesKey] = set()
        self.place: dict[str, int] = {}
        self.states: list[State] = []
        self.conditions: list[data_Conditions] = []
        self.incomplete: list[tuple[Configuration, ...]] = []
        self.profiles: list[int] = []
        self._cells = np.empty((0, 0), _CELL)
        """The cells, with room for further columns."""
        self._look()

    def _look(self) -> None:
        there = self._cells[:, : len(self.place)]
        self.cells: tuple[NDArray[Any], ...] = tuple(there[name] for name in Cell._fields)
        self.values: NDArray[np.float64]
        self.halves: NDArray[np.float32]
        self.counts: NDArray[np.int32]
        self.values, self.halves, _, self.counts, *_ = self.cells

    @property
    def keys(self) -> list[SeriesKey]:
        """The series, by their rows."""
        return list(self.row)

    def holds(self, checksum: str, state: State) -> bool:
        """Whether the column of the version is that of its index as it is now."""
        place = self.place.get(checksum)
        return place is not None and self.states[place] == state

    def measured(self, versions: Iterable[str]) -> list[str]:
        """Those of the versions of which anything was measured, in their order."""
        there = np.any(np.isfinite(self.values), axis=0)
        return [one for one in versions if (place := self.place.get(one)) is not None and there[place]]

    def add(self, columns: Mapping[str, VersionColumn]) -> None:
        """Add columns; those of versions that are there already are replaced."""
        if not columns:
            return
        row, before = self.row, len(self.place)
        alike: dict[int, list[str]] = {}  # most versions have the same series
        for checksum, column in columns.items():
            if id(column.keys) not in alike:
                for key in column.keys:
                    row.setdefault(key, len(row))
            alike.setdefault(id(column.keys), []).append(checksum)
            self.place.setdefault(checksum, len(self.place))
        self._make_room(len(row), len(self.place))
        more = len(self.place) - before
        self.states += [(0, -1)] * more
        self.conditions += [{}] * more
        self.incomplete += [()] * more
        self.profiles += [0] * more
        for checksum, column in columns.items():
            place = self.place[checksum]
            self._cells[:, place] = np.array(_NOTHING, _CELL)
            self.headlines.update(column.headlines)
            self.states[place], self.conditions[place] = column.state, column.conditions
            self.incomplete[place], self.profiles[place] = column.incomplete, column.profiles
        for own in alike.values():
            keys = columns[own[0]].keys
            rows = np.fromiter((row[key] for key in keys), np.intp, len(keys))
            places = np.fromiter((self.place[checksum] for checksum in own), np.intp, len(own))
            self._cells[np.ix_(rows, places)] = np.stack([columns[one].cells for one in own], axis=1)
        self._look()

    def _make_room(self, rows: int, columns: int) -> None:
        """Let the table have so many rows, and as many columns or more."""
        old = self._cells
        if old.shape[0] == rows and old.shape[1] >= columns:
            return
        self._cells = np.full((rows, columns + ROOM), np.array(_NOTHING, _CELL))
        self._cells[: old.shape[0], : old.shape[1]] = old


class _Kept(NamedTuple):
    """A column of the cache. :param names: of its keys. :param headlines: places in them."""

    state: State
    names: str
    cells: bytes
    conditions: list[tuple[Configuration, str, tuple[tuple[str, str], ...]]]
    incomplete: tuple[Configuration, ...]
    profiles: int
    headlines: tuple[int, ...]


def load(cache: Cache, states: Mapping[str, State]) -> dict[str, VersionColumn]:
    """The columns of those of the versions that the cache has in these states, in their order."""
    import msgspec

    decode = msgspec.msgpack.Decoder(_Kept).decode
    kept = {
        checksum: one
        for checksum, one in cache.get("columns", states, decode).items() if one.state == states[checksum]
    }  # fmt: skip
    names = dict.fromkeys(one.names for one in kept.values())
    keys = cache.get("names", names, msgspec.msgpack.Decoder(tuple[SeriesKey, ...]).decode)
    known: dict[object, data_Conditions] = {}
    found = {}
    for checksum, one in kept.items():
        own = keys.get(one.names, ())
        if len(one.cells) == len(own) * _CELL.itemsize:
            cells = np.frombuffer(one.cells, _CELL)
            under = {(configuration, machine): values for configuration, machine, values in one.conditions}
            under = known.setdefault(tuple(under.items()), under)  # most are measured alike
            leading = tuple(own[number] for number in one.headlines)
            found[checksum] = VersionColumn(
                one.state, own, cells, under, one.incomplete, one.profiles, leading
            )
    return found


def save(cache: Cache, columns: Mapping[str, VersionColumn]) -> None:
    """Keep the columns of versions."""
    import msgspec

    encode = msgspec.msgpack.Encoder().encode
    names: dict[str, bytes] = {}
    kept = {}
    for checksum, one in columns.items():
        data = encode(one.keys)
        name = hashlib.sha256(data).hexdigest()[:32]
        names[name] = data
        under = [(*key, values) for key, values in one.conditions.items()]
        leading = set(one.headlines)
        places = tuple(number for number, key in enumerate(one.keys) if key in leading)
        kept[checksum] = encode(
            _Kept(one.state, name, one.cells.tobytes(), under, one.incomplete, one.profiles, places)
        )
    cache.put("names", names)
    cache.put("columns", kept)


Progress = Callable[[int, int], None]
"""Called with the number of versions that are read, and of all."""
_MOST_KEPT: Final = 300_000
"""Readings of versions that are kept in memory."""
_MOST_POINTS: Final = 1 << 15
"""Points that are: those of a thousand series at the versions before one."""


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


def along(
    versions: list[MinorVersion], measured: Iterable[str], table: HistoryTable, damaged: list[str]
) -> History:
    """What these versions, the oldest first, measured by the table.

    :param measured: those with an index; the table may know others that had one.
    """
    place_of = {one.checksum: place for place, one in enumerate(versions)}
    kept = sorted(place_of[one] for one in table.measured(measured) if one in place_of)
    columns = [table.place[versions[place].checksum] for place in kept]
    conditions = [table.conditions[one] for one in columns]
    cells = tuple(one[:, columns] for one in table.cells)
    _without_samples(table, cells)
    known = {one.configuration for one in table.headlines}
    leading = table.headlines | {one for one in table.keys if one.configuration not in known}
    return History(versions, kept, table.keys, cells, frozenset(leading), conditions, damaged)


def _without_samples(table: HistoryTable, cells: tuple[NDArray[Any], ...]) -> None:
    """Set what samples say of functions to 0 at versions where none was in them."""
    wholes = {
        (one.configuration, one.machine): table.row[one] for one in table.headlines if one.type == SAMPLED
    }
    for key, row in table.row.items() if wholes else ():
        whole = wholes.get((key.configuration, key.machine))
        if whole is None or key.kind is not Kind.SAMPLED:
            continue
        none = np.isnan(cells[0][row]) & np.isfinite(cells[0][whole])
        for name, own in zip(Cell._fields, cells, strict=True):
            own[row, none] = 0 if name in ("value", "half", "error") else own[whole, none]


def table_of(
    repo: Repository, states: Mapping[str, State], progress: Progress, known: HistoryTable | None = None
) -> tuple[HistoryTable, dict[str, list[str]]]:
    """The table with the columns of these versions, and by version what cannot be read.

    :param states: of the indexes, as :func:`states_of`.
    :param known: the table as it was the last time; without it, it is made of what the cache has.
    """
    table = HistoryTable() if known is None else known
    missing = {checksum: state for checksum, state in states.items() if not table.holds(checksum, state)}
    kept = load(repo.store.cache, missing)
    damaged: dict[str, list[str]] = {}
    columns: dict[str, VersionColumn] = {}
    fresh: dict[str, VersionColumn] = {}
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


def _read_version(repo: Repository, checksum: str, state: State, damaged: list[str]) -> VersionColumn:
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
    series = summaries_by_series((one.info for one in whole), {one.info: one.fact for one in whole})
    headlines = {
        (wanted.configuration, one.location)
        for wanted, facts in series.items()
        for one in limiting_processor_times(facts) or (fact.headline for fact in facts) if one is not None
    }  # fmt: skip
    leading = tuple(key for key in found if (key.configuration, key.location) in headlines)
    cells = cells_of([cell(point(own, key.kind)) for key, own in found.items()])
    return VersionColumn(state, tuple(found), cells, under, tuple(incomplete), len(profiles), leading)


class _Known(NamedTuple):
    """A registered profile, and what the cache has of it."""

    info: ProfileInfo
    fact: ProfileSummary
    series: ProfileSeries


def _profiles(repo: Repository, minor: str, damaged: list[str]) -> list[_Known]:
    """The profiles of the version that can be read."""
    store = repo.store
    infos = [entry.info() for entry in store.indexes.read(minor)]
    known = known_profiles(
        store,
        (info.checksum for info in infos),
        lambda problem: damaged.append(problem.message),
        store.objects.get,
    )
    return [_Known(info, *known[info.checksum]) for info in infos if info.checksum in known]


def _by_key(profiles: Iterable[_Known]) -> dict[SeriesKey, list[tuple[Readings, Conditions]]]:
    """What each profile of a version measured of each series, in the order of measuring."""
    found: dict[SeriesKey, list[tuple[Readings, Conditions]]] = {}
    ordered = sorted(profiles, key=lambda one: one.info.time)
    sampled: defaultdict[Configuration, dict[SeriesName, None]] = defaultdict(dict)
    for info, _, series in ordered:
        sampled[info.configuration].update((name, None) for name in series.names if name.type == SAMPLED)
    for info, fact, series in ordered:
        own = dict(zip(series.names, series.readings, strict=True))
        for name in dict.fromkeys((*own, *sampled[info.configuration])):
            if (one := read_of(own, name)) is not None:
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
    if of.sessions > 1 or of.workloads != ("",) or of.shared:
        mark = MANY
    shared = max(zlib.crc32(repr(sorted(of.shared)).encode()), 1) if of.shared else 0
    return Cell(
        value.value, half or math.nan, error if math.isfinite(error) else math.nan,
        of.size, len(of.rounds), of.sessions, mark, shared, len(of.rounds) > len(of.shared),
    )  # fmt: skip


class HistoryPoints:
    """The points of series at versions, which are read as they are asked for.

    :param head: the newest version of the history.
    """

    def __init__(self, repo: Repository, head: str, line: Iterable[str]) -> None:
        self._repo = repo
        self._head = head
        self._line = frozenset(line)
        self._before: tuple[str, list[str]] = "", []
        self._kept: OrderedDict[str, dict[SeriesKey, list[tuple[Readings, Conditions]]]] = OrderedDict()
        self._count = 0
        # A version is one of those before many others.
        self._point = lru_cache(_MOST_POINTS)(self._read_point)

    def at(self, version: str, key: SeriesKey) -> Point | None:
        """What the version measured of the series; None if it did not."""
        return self._point(version, key)

    def _read_point(self, version: str, key: SeriesKey) -> Point | None:
        if version not in self._kept:
            whole: list[_Known] = []
            with suppress(PerunError):
                whole = [one for one in _profiles(self._repo, version, []) if not one.fact.incomplete]
            self._kept[version] = _by_key(whole)
            self._count += len(self._kept[version])
            while len(self._kept) > 1 and self._count > _MOST_KEPT:
                self._count -= len(self._kept.popitem(last=False)[1])
        self._kept.move_to_end(version)
        kept = self._kept[version]
        own = kept.get(key)
        if own is None and key.kind is Kind.SAMPLED:
            other = (own for one, own in kept.items() if one._replace(location=key.location) == key)
            own = [(without_samples(one), under) for one, under in next(other, ())]
        return point(own, key.kind) if own else None

    def before(self, version: str, key: SeriesKey, line: Iterable[str]) -> list[Point]:
        """The points of the series before the version, the nearest first, as many as are looked at.

        :param line: the versions along first parents that have one, the nearest first.
        """
        found = list(islice((one for other in line if (one := self.at(other, key)) is not None), WINDOW))
        if len(found) < WINDOW and self.merged:
            more = (self.at(other, key) for other in self._merged_before(version))
            found += islice((one for one in more if one is not None), WINDOW - len(found))
        return found

    def _merged_before(self, version: str) -> list[str]:
        """Those of :attr:`merged` that are ancestors of the version; all series of a version ask in turn."""
        if self._before[0] != version:
            walk = (one.checksum for one in ancestors(self._repo, version))
            self._before = version, [one for one in walk if one in self.merged]
        return self._before[1]

    @cached_property
    def merged(self) -> frozenset[str]:
        """The versions with profiles that are no first parents, but were merged."""
        every = (one.checksum for one in self._repo.vcs.walk_subjects(self._head))
        return frozenset(self._repo.store.indexes.states([one for one in every if one not in self._line]))


def possible(history: History, before: int, after: int) -> tuple[MinorVersion, ...]:
    """The versions after the one at position `before` of the history up to that at `after`."""
    return tuple(history.versions[before + 1 : after + 1])
