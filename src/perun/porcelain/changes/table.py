"""The table of what all versions measured, of whatever branch: a cache, which can be deleted at any time.

A row for each series and a column for each version, so that a history of ten thousand versions is one read.
The newest columns are kept in a small file beside it, so that one more version does not write all of it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun import atomic
from perun.porcelain.changes.data import Conditions, SeriesKey
from perun.porcelain.repository import Repository
from perun.profile.head import Configuration
from perun.regular import open_regular
from perun.store import tree

FORMAT: Final = 5
MOST_BYTES: Final = 1 << 29
"""Largest table that is read."""
_FILE: Final = "table"
"""A line of JSON that describes the table, and the numbers as they are in memory."""
_NEW_FILE: Final = "table-new.json"
"""The columns that the file of the table does not have."""
MOST_NEW: Final = 64
"""Columns of that file."""
_KINDS: Final = (
    (np.float64, np.nan), (np.float32, np.nan), (np.float32, np.nan),
    (np.int32, 0), (np.int32, 0), (np.int32, 0), (np.uint32, 0),
)  # fmt: skip
"""Of what a :class:`Cell` has: the type, and what stands for nothing."""
State = tuple[int, int]
_Condition = tuple[Configuration, str, tuple[tuple[str, str], ...]]
"""How conditions are stored: the configuration and the machine that they are of, and they."""


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


class Column(NamedTuple):
    """What one version measured. :param state: of its index, which says whether the column still holds.

    :param incomplete: configurations of profiles that lack a part of their run; they count for nothing else.
    :param profiles: how many can be read. :param headlines: the series that stand for one of them.
    """

    state: State
    cells: Mapping[SeriesKey, Cell]
    conditions: Conditions
    incomplete: tuple[Configuration, ...] = ()
    profiles: int = 0
    headlines: tuple[SeriesKey, ...] = ()


class Table:
    """All columns that were read so far.

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
        self._numbers: list[NDArray[Any]] = [np.empty((0, 0), kind) for kind, _ in _KINDS]
        """Values, halves and counts with room for further columns."""
        self._stamp = ""
        """What stands for the file that the table was read from."""
        self._new: dict[str, Column] = {}
        """The columns that this file does not have."""
        self._look()

    def _look(self) -> None:
        self.cells = tuple(one[:, : len(self.place)] for one in self._numbers)
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
        for column in columns.values():
            for key in column.cells:
                row.setdefault(key, len(row))
        for checksum in columns:
            self.place.setdefault(checksum, len(self.place))
        self._make_room(len(row), len(self.place))
        self._look()
        for numbers, (_, nothing) in zip(self._numbers, _KINDS, strict=True):
            numbers[:, before:] = nothing
        more = len(self.place) - before
        self.states += [(0, -1)] * more
        self.conditions += [{}] * more
        self.incomplete += [()] * more
        self.profiles += [0] * more
        self._new.update(columns)
        for checksum, column in columns.items():
            place = self.place[checksum]
            rows = np.fromiter((row[key] for key in column.cells), np.intp, len(column.cells))
            self.headlines.update(column.headlines)
            fields = zip(*column.cells.values(), strict=True) if column.cells else ((),) * len(_KINDS)
            for numbers, (_, nothing), own in zip(self.cells, _KINDS, fields, strict=True):
                numbers[:, place] = nothing
                numbers[rows, place] = own
            self.states[place], self.conditions[place] = column.state, column.conditions
            self.incomplete[place], self.profiles[place] = column.incomplete, column.profiles

    def _make_room(self, rows: int, columns: int) -> None:
        """Let the numbers have so many rows, and as many columns or more."""
        old = self._numbers
        if old[0].shape[0] == rows and old[0].shape[1] >= columns:
            return
        self._numbers = []
        for one, (kind, nothing) in zip(old, _KINDS, strict=True):
            new = np.full((rows, columns + MOST_NEW), nothing, kind)
            new[: one.shape[0], : one.shape[1]] = one
            self._numbers.append(new)

    @classmethod
    def load(cls, repo: Repository) -> Table:
        """The table as it was saved; an empty one if there is none, or none that can be read."""
        table = cls()
        # What is not a table fails in one of many ways, and is made anew.
        try:
            with open_regular(repo.store.series.path(_FILE), MOST_BYTES) as file:
                table._read(json.loads(file.readline()), file)
        except Exception:
            return cls()
        with suppress(Exception):
            table._read_new(tree.read(repo.store.series.path(_NEW_FILE)) or b"")
        return table

    def _read(self, described: Mapping[str, Any], file: BinaryIO) -> None:
        """:raises Exception: where it is no table; it may be half read then."""
        if described["format"] != FORMAT:
            raise ValueError("another format")
        self._stamp = str(described["stamp"])
        self.row = {_key(one): number for number, one in enumerate(described["keys"])}
        keys = list(self.row)
        self.headlines = {keys[number] for number in described["headlines"]}
        versions = [str(one) for one in described["versions"]]
        self.place = {one: number for number, one in enumerate(versions)}
        self.states = [(int(time), int(size)) for time, size in described["states"]]
        known = [_conditions(one) for one in described["conditions"]]
        self.conditions = [known[number] for number in described["under"]]
        self.profiles = [int(count) for count in described["profiles"]]
        self.incomplete = [()] * len(versions)
        for place, lacking in described["incomplete"]:
            self.incomplete[place] = tuple(map(_configuration, lacking))
        if {len(self.states), len(self.conditions), len(self.profiles), len(self.place)} != {len(versions)}:
            raise ValueError("columns are missing")
        rows, columns = len(described["keys"]), len(versions)
        size = sum(np.dtype(kind).itemsize for kind, _ in _KINDS) * rows * columns
        if len(self.row) != rows or os.fstat(file.fileno()).st_size - file.tell() != size:
            raise ValueError("numbers are missing")
        self._numbers = [np.empty((rows, columns + MOST_NEW), kind) for kind, _ in _KINDS]
        for numbers in self._numbers:
            for row in numbers:
                if file.readinto(row[:columns].data) != row[:columns].nbytes:  # type: ignore[attr-defined]
                    raise ValueError("numbers are missing")
        self._look()

    def _read_new(self, data: bytes) -> None:
        """Add the columns of the file of new ones, if it belongs to the table.

        :raises Exception: where it is no such file; nothing is added then.
        """
        import msgspec

        read = msgspec.json.decode(data, type=_NewFile)
        if read.format == FORMAT and read.stamp == self._stamp:
            self.add({checksum: one.column(read.keys) for checksum, one in read.columns.items()})

    def save(self, repo: Repository) -> None:
        """Keep the table; where it cannot be written, it is made again the next time."""
        path = repo.store.series.path
        with suppress(OSError):
            if self._stamp and len(self._new) <= MOST_NEW:
                self._save_new(path(_NEW_FILE))
            else:
                self._save_all(path(_FILE))

    def _save_new(self, path: Path) -> None:
        import msgspec

        keys: dict[SeriesKey, int] = {}
        columns = {checksum: _NewColumn.of(one, keys) for checksum, one in self._new.items()}
        atomic.write(path, msgspec.json.encode(_NewFile(FORMAT, self._stamp, tuple(keys), columns)))

    def _save_all(self, path: Path) -> None:
        # Most versions are measured under the same conditions.
        known: dict[str, int] = {}
        distinct = {id(one): one for one in self.conditions}
        texts = {name: json.dumps(_stored(one)) for name, one in distinct.items()}
        under = [known.setdefault(texts[id(one)], len(known)) for one in self.conditions]
        stamp = os.urandom(8).hex()
        described = {
            "format": FORMAT,
            "stamp": stamp,
            "keys": self.keys,
            "headlines": [number for number, one in enumerate(self.keys) if one in self.headlines],
            "versions": list(self.place),
            "states": self.states,
            "conditions": [json.loads(text) for text in known],
            "under": under,
            "profiles": self.profiles,
            "incomplete": [[place, lacking] for place, lacking in enumerate(self.incomplete) if lacking],
        }
        with atomic.writing(path) as file:
            file.write(json.dumps(described).encode() + b"\n")
            for numbers in self.cells:
                file.write(np.ascontiguousarray(numbers).data)
        self._stamp, self._new = stamp, {}


class _NewColumn(NamedTuple):
    """A column of the file of new ones. :param cells: places of the keys, and what a :class:`Cell` has."""

    state: State
    cells: tuple[tuple[int, float, float | None, float | None, int, int, int, int], ...]
    conditions: list[_Condition]
    incomplete: tuple[Configuration, ...]
    profiles: int
    headlines: tuple[SeriesKey, ...]

    @classmethod
    def of(cls, column: Column, keys: dict[SeriesKey, int]) -> _NewColumn:
        """The column. :param keys: the places of keys, to which new ones are added."""
        cells = tuple(
            (
                keys.setdefault(key, len(keys)), one.value, _known(one.half), _known(one.error), one.samples,
                one.rounds, one.sessions, one.mark,
            )
            for key, one in column.cells.items()
        )  # fmt: skip
        under = _stored(column.conditions)
        return cls(column.state, cells, under, column.incomplete, column.profiles, column.headlines)

    def column(self, keys: Sequence[SeriesKey]) -> Column:
        """It again."""
        cells = {
            keys[place]: Cell(
                value, math.nan if half is None else half, math.nan if error is None else error, *rest
            )
            for place, value, half, error, *rest in self.cells
        }
        under = {(configuration, machine): values for configuration, machine, values in self.conditions}
        return Column(self.state, cells, under, self.incomplete, self.profiles, self.headlines)


class _NewFile(NamedTuple):
    format: int
    stamp: str
    keys: tuple[SeriesKey, ...]
    columns: dict[str, _NewColumn]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _stored(conditions: Conditions) -> list[_Condition]:
    return [(*key, value) for key, value in conditions.items()]


def _key(stored: list[Any]) -> SeriesKey:
    configuration, *rest = stored
    return SeriesKey(_configuration(configuration), *rest)


def _configuration(stored: list[Any]) -> Configuration:
    collector, cmd, args, workload, postprocessors = stored
    return Configuration(collector, cmd, args, workload, tuple(postprocessors))


def _conditions(stored: list[Any]) -> Conditions:
    return {
        (_configuration(configuration), machine): tuple((name, value) for name, value in values)
        for configuration, machine, values in stored
    }
