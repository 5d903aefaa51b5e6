"""The table of what all versions measured, of whatever branch: one file, which can be deleted at any time.

A row for each series and a column for each version, so that a history of ten thousand versions is one read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun import atomic
from perun.porcelain.changes.data import Conditions, SeriesKey
from perun.porcelain.repository import Repository
from perun.profile.head import Configuration
from perun.store import tree

FORMAT: Final = 2
MOST_BYTES: Final = 1 << 29
"""Largest table that is read."""
_FILE: Final = "table"
"""A line of JSON that describes the table, and the numbers as they are in memory."""
State = tuple[int, int]


class Cell(NamedTuple):
    """What one version measured of a series.

    :param half: half the width of the interval of the value at 95 %, NaN where it is not known.
    :param samples: how many there are.
    """

    value: float
    half: float
    samples: int


class Column(NamedTuple):
    """What one version measured. :param state: of its index, which says whether the column still holds.

    :param incomplete: configurations of profiles that lack a part of their run; they count for nothing else.
    :param profiles: how many can be read.
    """

    state: State
    cells: Mapping[SeriesKey, Cell]
    conditions: Conditions
    incomplete: tuple[Configuration, ...] = ()
    profiles: int = 0


class Table:
    """All columns that were read so far.

    :ivar row: of each series, in order. :ivar place: the column of each version.
    :ivar values: shape (keys, columns), NaN where nothing was measured. :ivar halves: and :ivar counts: as of
        :class:`Cell`, of the same shape.
    """

    def __init__(self) -> None:
        self.row: dict[SeriesKey, int] = {}
        self.place: dict[str, int] = {}
        self.states: list[State] = []
        self.conditions: list[Conditions] = []
        self.incomplete: list[tuple[Configuration, ...]] = []
        self.profiles: list[int] = []
        self.values: NDArray[np.float64] = np.empty((0, 0))
        self.halves: NDArray[np.float32] = np.empty((0, 0), np.float32)
        self.counts: NDArray[np.int32] = np.empty((0, 0), np.int32)

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
        there = np.isfinite(self.values).sum(axis=0) > 0
        return [one for one in versions if (place := self.place.get(one)) is not None and there[place]]

    def add(self, columns: Mapping[str, Column]) -> None:
        """Add columns; those of versions that are there already are replaced."""
        if not columns:
            return
        row = self.row
        for column in columns.values():
            for key in column.cells:
                row.setdefault(key, len(row))
        for checksum in columns:
            self.place.setdefault(checksum, len(self.place))
        shape = len(row), len(self.place)
        self.values = _grown(self.values, shape, np.nan)
        self.halves = _grown(self.halves, shape, np.nan)
        self.counts = _grown(self.counts, shape, 0)
        self.states += [(0, -1)] * (len(self.place) - len(self.states))
        self.conditions += [{}] * (len(self.place) - len(self.conditions))
        self.incomplete += [()] * (len(self.place) - len(self.incomplete))
        self.profiles += [0] * (len(self.place) - len(self.profiles))
        for checksum, column in columns.items():
            place = self.place[checksum]
            rows = np.fromiter((row[key] for key in column.cells), np.intp, len(column.cells))
            cells = list(column.cells.values())
            self.values[:, place], self.halves[:, place], self.counts[:, place] = np.nan, np.nan, 0
            self.values[rows, place] = [cell.value for cell in cells]
            self.halves[rows, place] = [cell.half for cell in cells]
            self.counts[rows, place] = [cell.samples for cell in cells]
            self.states[place], self.conditions[place] = column.state, column.conditions
            self.incomplete[place], self.profiles[place] = column.incomplete, column.profiles

    @classmethod
    def load(cls, repo: Repository) -> Table:
        """The table as it was saved; an empty one if there is none, or none that can be read."""
        table = cls()
        # What is not a table fails in one of many ways, and is made anew.
        with suppress(Exception):
            content = tree.read(repo.store.series.path(_FILE), MOST_BYTES) or b""
            end = content.index(b"\n")
            table._read(json.loads(content[:end]), memoryview(content)[end + 1 :])
            return table
        return cls()

    def _read(self, described: Mapping[str, Any], data: memoryview) -> None:
        """:raises Exception: where it is no table; it may be half read then."""
        if described["format"] != FORMAT:
            raise ValueError("another format")
        self.row = {_key(one): number for number, one in enumerate(described["keys"])}
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
        shape = len(described["keys"]), len(versions)
        count = shape[0] * shape[1]
        self.values = np.frombuffer(data[: 8 * count]).reshape(shape)
        self.halves = np.frombuffer(data[8 * count : 12 * count], np.float32).reshape(shape)
        self.counts = np.frombuffer(data[12 * count :], np.int32).reshape(shape)

    def save(self, repo: Repository) -> None:
        """Keep the table; where it cannot be written, it is made again the next time."""
        # Most versions are measured under the same conditions.
        known: dict[str, int] = {}
        distinct = {id(one): one for one in self.conditions}
        texts = {
            name: json.dumps([[*key, value] for key, value in one.items()]) for name, one in distinct.items()
        }
        under = [known.setdefault(texts[id(one)], len(known)) for one in self.conditions]
        described = {
            "format": FORMAT,
            "keys": self.keys,
            "versions": list(self.place),
            "states": self.states,
            "conditions": [json.loads(text) for text in known],
            "under": under,
            "profiles": self.profiles,
            "incomplete": [[place, lacking] for place, lacking in enumerate(self.incomplete) if lacking],
        }
        with suppress(OSError), atomic.writing(repo.store.series.path(_FILE)) as file:
            file.write(json.dumps(described).encode() + b"\n")
            for numbers in (self.values, self.halves, self.counts):
                file.write(np.ascontiguousarray(numbers).tobytes())


def _grown(old: NDArray[Any], shape: tuple[int, int], fill: float) -> NDArray[Any]:
    new = np.full(shape, fill, old.dtype)
    new[: old.shape[0], : old.shape[1]] = old
    return new


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
