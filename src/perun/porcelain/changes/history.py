"""What the versions of a history measured.

It is read once from the profiles, and from then on from two caches: the series of each version, and the table
of all of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun import atomic
from perun.errors import DamagedStore, PerunError
from perun.machine import class_of
from perun.plugin.api import MinorVersion
from perun.porcelain.changes.data import Conditions, History, SeriesKey
from perun.porcelain.check.comparable import conditions
from perun.porcelain.repository import Repository
from perun.porcelain.walking import first_parents
from perun.profile.head import Configuration
from perun.profile.helpers import ProfileInfo
from perun.profile.incomplete import text_of as why_incomplete
from perun.profile.summary import summaries
from perun.store import tree
from perun.store.series import ProfileSeries

Progress = Callable[[int, int], None]
"""Called with the number of versions that are read, and of all."""
FORMAT: Final = 1
_TABLE: Final = "table"
"""A line of JSON that describes the table, and the values as they are in memory."""
MOST_BYTES: Final = 1 << 29
"""Largest table that is read."""


class _Column(NamedTuple):
    """What one version measured. :param state: of its index, which says whether the column still holds."""

    state: tuple[int, int]
    values: Mapping[SeriesKey, float]
    conditions: Conditions


def read(repo: Repository, revision: str | None, progress: Progress) -> History:
    """What was measured along the first parents of a version, HEAD if None.

    :raises VersionControlError: if there is no such version.
    """
    versions = list(first_parents(repo, repo.version(revision)))[::-1]
    measured = [place for place, one in enumerate(versions) if repo.store.indexes.has(one.checksum)]
    table = _Table.load(repo)
    damaged: list[str] = []
    fresh: dict[str, _Column] = {}
    for number, place in enumerate(measured):
        checksum = versions[place].checksum
        if not table.holds(checksum, _state(repo, checksum)):
            progress(number, len(measured))
            with suppress(DamagedStore):
                fresh[checksum] = _read_version(repo, checksum, damaged)
    progress(len(measured), len(measured))
    table.add(fresh)
    if fresh:
        table.save(repo)
    kept = [place for place in measured if table.has_values(versions[place].checksum)]
    columns = [table.place[versions[place].checksum] for place in kept]
    return History(
        versions, kept, table.keys, table.values[:, columns], [table.conditions[one] for one in columns],
        damaged
    )


def _read_version(repo: Repository, checksum: str, damaged: list[str]) -> _Column:
    state = _state(repo, checksum)
    try:
        profiles = list(_profiles(repo, checksum, damaged))
    except DamagedStore as problem:
        damaged.append(problem.message)
        raise
    under = {(info.configuration, one.machine): one.conditions for info, one in profiles}
    return _Column(state, _values(profiles), under)


def _state(repo: Repository, checksum: str) -> tuple[int, int]:
    """The time and the size of the index of a version."""
    try:
        status = os.stat(repo.store.indexes.path(checksum))
    except OSError:
        return 0, -1
    return status.st_mtime_ns, status.st_size


def _profiles(
    repo: Repository, minor: str, damaged: list[str]
) -> Iterator[tuple[ProfileInfo, ProfileSeries]]:
    """The complete profiles of the version, with their series."""
    infos = [entry.info() for entry in repo.store.indexes.read(minor)]
    known = repo.store.series.of_version(minor)
    found: dict[str, ProfileSeries] = {}
    for info in infos:
        one = known.get(info.checksum)
        if one is None:
            try:
                one = _of_profile(repo, info)
            except PerunError as problem:
                damaged.append(problem.message)
                continue
        found[info.checksum] = one
    if found.keys() - known.keys():
        repo.store.series.keep(minor, found)
    for info in infos:
        if info.checksum in found and not found[info.checksum].incomplete:
            yield info, found[info.checksum]


def _of_profile(repo: Repository, info: ProfileInfo) -> ProfileSeries:
    profile = repo.store.objects.get(info.checksum)
    described = profile.get("machine")
    machine = class_of(described) if isinstance(described, dict) else ""
    under = tuple(conditions(profile).items())
    own = summaries(profile)
    return ProfileSeries(machine, why_incomplete(profile), under, tuple(own), tuple(own.values()))


def _values(profiles: Sequence[tuple[ProfileInfo, ProfileSeries]]) -> dict[SeriesKey, float]:
    """What a version measured: of several profiles of one configuration, the mean weighted by their
    samples."""
    sums: dict[SeriesKey, tuple[float, int]] = {}
    for info, profile in profiles:
        configuration = info.configuration
        for name, one in zip(profile.names, profile.summaries, strict=True):
            if one.median > 0:
                key = SeriesKey(configuration, "" if name.exact else profile.machine, *name)
                total, count = sums.get(key, (0.0, 0))
                sums[key] = total + one.median * one.samples, count + one.samples
    return {key: total / count for key, (total, count) in sums.items()}


class _Table:
    """All columns that were read so far, of whatever branch: one file, which can be deleted at any time.

    :ivar place: the column of each version. :ivar values: shape (keys, columns).
    """

    def __init__(self) -> None:
        self.keys: list[SeriesKey] = []
        self.place: dict[str, int] = {}
        self.states: list[tuple[int, int]] = []
        self.conditions: list[Conditions] = []
        self.values: NDArray[np.float64] = np.empty((0, 0))

    def holds(self, checksum: str, state: tuple[int, int]) -> bool:
        """Whether the column of the version is that of its index as it is now."""
        place = self.place.get(checksum)
        return place is not None and self.states[place] == state

    def has_values(self, checksum: str) -> bool:
        """Whether anything was measured of the version."""
        place = self.place.get(checksum)
        return place is not None and bool(np.isfinite(self.values[:, place]).any())

    def add(self, columns: Mapping[str, _Column]) -> None:
        """Add columns; those of versions that are there already are replaced."""
        if not columns:
            return
        row = {key: number for number, key in enumerate(self.keys)}
        for column in columns.values():
            for key in column.values:
                row.setdefault(key, len(row))
        for checksum in columns:
            self.place.setdefault(checksum, len(self.place))
        values = np.full((len(row), len(self.place)), np.nan)
        values[: self.values.shape[0], : self.values.shape[1]] = self.values
        self.states += [(0, -1)] * (len(self.place) - len(self.states))
        self.conditions += [{}] * (len(self.place) - len(self.conditions))
        for checksum, column in columns.items():
            place = self.place[checksum]
            rows = np.fromiter((row[key] for key in column.values), np.intp, len(column.values))
            values[:, place] = np.nan
            values[rows, place] = np.fromiter(column.values.values(), np.float64, len(rows))
            self.states[place], self.conditions[place] = column.state, column.conditions
        self.keys, self.values = list(row), values

    @classmethod
    def load(cls, repo: Repository) -> _Table:
        """The table as it was saved; an empty one if there is none, or none that can be read."""
        table = cls()
        # What is not a table fails in one of many ways, and is made anew.
        with suppress(Exception):
            content = tree.read(repo.store.series.path(_TABLE), MOST_BYTES) or b""
            line, _, data = content.partition(b"\n")
            described = json.loads(line)
            keys = [_key(one) for one in described["keys"]]
            columns = [_conditions(one) for one in described["conditions"]]
            states = [(int(time), int(size)) for time, size in described["states"]]
            versions = [str(one) for one in described["versions"]]
            values = np.frombuffer(data).reshape(len(keys), len(versions))
            if described["format"] == FORMAT and len(states) == len(columns) == len(versions):
                table.keys, table.values, table.states, table.conditions = keys, values, states, columns
                table.place = {one: number for number, one in enumerate(versions)}
        return table

    def save(self, repo: Repository) -> None:
        """Keep the table; where it cannot be written, it is made again the next time."""
        described = {
            "format": FORMAT,
            "keys": self.keys,
            "versions": list(self.place),
            "states": self.states,
            "conditions": [[[*key, value] for key, value in one.items()] for one in self.conditions],
        }
        with suppress(OSError), atomic.writing(repo.store.series.path(_TABLE)) as file:
            file.write(json.dumps(described).encode() + b"\n")
            file.write(np.ascontiguousarray(self.values).tobytes())


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


def possible(history: History, before: int, after: int) -> tuple[MinorVersion, ...]:
    """The versions after the one at position `before` of the history up to that at `after`."""
    return tuple(history.versions[before + 1 : after + 1])
