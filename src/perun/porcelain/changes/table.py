"""The table of what all versions measured, of whatever branch.

A row for each series and a column for each version. The cache keeps each column with the state of the index
that it was made of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.porcelain.changes.data import Conditions, SeriesKey
from perun.profile.head import Configuration
from perun.store.cache import Cache

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
    """

    value: float
    half: float
    error: float
    samples: int
    rounds: int
    sessions: int
    mark: int


MANY: Final = 1
_TYPES: Final = ("<f8", "<f4", "<f4", "<i4", "<i4", "<i4", "<u4")
_CELL: Final = np.dtype(list(zip(Cell._fields, _TYPES, strict=True)))
_NOTHING: Final = Cell(np.nan, np.nan, np.nan, 0, 0, 0, 0)


class Column(NamedTuple):
    """What one version measured. :param state: of its index, which says whether the column still holds.

    :param keys: of the series; the same object for all columns of the cache that have the same ones.
    :param cells: of each of them, as :func:`cells_of`.
    :param incomplete: configurations of profiles that lack a part of their run; they count for nothing else.
    :param profiles: how many can be read. :param headlines: the series that stand for one of them.
    """

    state: State
    keys: Sequence[SeriesKey]
    cells: NDArray[np.void]
    conditions: Conditions
    incomplete: tuple[Configuration, ...] = ()
    profiles: int = 0
    headlines: tuple[SeriesKey, ...] = ()


def cells_of(cells: Iterable[Cell]) -> NDArray[np.void]:
    """The cells as one array, shape (n,)."""
    return np.array(list(cells), _CELL)


class Table:
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
        self.conditions: list[Conditions] = []
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

    def add(self, columns: Mapping[str, Column]) -> None:
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


def load(cache: Cache, states: Mapping[str, State]) -> dict[str, Column]:
    """The columns of those of the versions that the cache has in these states, in their order."""
    import msgspec

    decode = msgspec.msgpack.Decoder(_Kept).decode
    kept = {
        checksum: one
        for checksum, one in cache.get("columns", states, decode).items() if one.state == states[checksum]
    }  # fmt: skip
    names = dict.fromkeys(one.names for one in kept.values())
    keys = cache.get("names", names, msgspec.msgpack.Decoder(tuple[SeriesKey, ...]).decode)
    known: dict[object, Conditions] = {}
    found = {}
    for checksum, one in kept.items():
        own = keys.get(one.names, ())
        if len(one.cells) == len(own) * _CELL.itemsize:
            cells = np.frombuffer(one.cells, _CELL)
            under = {(configuration, machine): values for configuration, machine, values in one.conditions}
            under = known.setdefault(tuple(under.items()), under)  # most are measured alike
            leading = tuple(own[number] for number in one.headlines)
            found[checksum] = Column(one.state, own, cells, under, one.incomplete, one.profiles, leading)
    return found


def save(cache: Cache, columns: Mapping[str, Column]) -> None:
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
