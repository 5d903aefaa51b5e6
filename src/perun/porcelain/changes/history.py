"""What the versions of a history measured.

It is read once from the profiles, and from then on from two caches: the series of each version, and the table
of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from perun.errors import DamagedStore, PerunError
from perun.machine import class_of
from perun.measurement.summary import Summary, summaries
from perun.models.student import quantile
from perun.plugin.api import MinorVersion
from perun.porcelain.changes.data import History, SeriesKey
from perun.porcelain.changes.table import Cell, Column, State, Table
from perun.porcelain.check.comparable import conditions
from perun.porcelain.repository import Repository
from perun.porcelain.walking import first_parents
from perun.profile.helpers import ProfileInfo
from perun.profile.incomplete import text_of as why_incomplete
from perun.profile.measured import CONFIDENCE
from perun.store.series import ProfileSeries

Progress = Callable[[int, int], None]
"""Called with the number of versions that are read, and of all."""
_OF_MEDIAN: Final = 1.2533
"""The standard error of a median in those of the mean, of normal values."""


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
    versions: list[MinorVersion], measured: Iterable[str], table: Table, damaged: list[str]
) -> History:
    """What these versions, the oldest first, measured by the table.

    :param measured: those with an index; the table may know others that had one.
    """
    place_of = {one.checksum: place for place, one in enumerate(versions)}
    kept = sorted(place_of[one] for one in table.measured(measured) if one in place_of)
    columns = [table.place[versions[place].checksum] for place in kept]
    conditions = [table.conditions[one] for one in columns]
    return History(versions, kept, table.keys, table.values[:, columns], conditions, damaged)


def table_of(
    repo: Repository, states: Mapping[str, State], progress: Progress, known: Table | None = None
) -> tuple[Table, dict[str, list[str]]]:
    """The table with the columns of these versions, and by version what cannot be read.

    :param states: of the indexes, as :func:`states_of`.
    :param known: the table as it was the last time; it is read from its file if it is not given.
    """
    table = Table.load(repo) if known is None else known
    damaged: dict[str, list[str]] = {}
    fresh: dict[str, Column] = {}
    for number, (checksum, state) in enumerate(states.items()):
        if not table.holds(checksum, state):
            progress(number, len(states))
            messages: list[str] = []
            with suppress(DamagedStore):
                fresh[checksum] = _read_version(repo, checksum, state, messages)
            if messages:
                damaged[checksum] = messages
    progress(len(states), len(states))
    table.add(fresh)
    if fresh:
        table.save(repo)
    return table, damaged


def _read_version(repo: Repository, checksum: str, state: State, damaged: list[str]) -> Column:
    try:
        profiles = list(_profiles(repo, checksum, damaged))
    except DamagedStore as problem:
        damaged.append(problem.message)
        raise
    whole = [(info, one) for info, one in profiles if not one.incomplete]
    under = {(info.configuration, one.machine): one.conditions for info, one in whole}
    incomplete = dict.fromkeys(info.configuration for info, one in profiles if one.incomplete)
    return Column(state, _cells(whole), under, tuple(incomplete), len(profiles))


def _profiles(
    repo: Repository, minor: str, damaged: list[str]
) -> Iterator[tuple[ProfileInfo, ProfileSeries]]:
    """The profiles of the version that can be read, with their series."""
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
        if info.checksum in found:
            yield info, found[info.checksum]


def _of_profile(repo: Repository, info: ProfileInfo) -> ProfileSeries:
    profile = repo.store.objects.get(info.checksum)
    described = profile.get("machine")
    machine = class_of(described) if isinstance(described, dict) else ""
    under = tuple(conditions(profile).items())
    own = summaries(profile)
    return ProfileSeries(machine, why_incomplete(profile), under, tuple(own), tuple(own.values()))


def _cells(profiles: Sequence[tuple[ProfileInfo, ProfileSeries]]) -> dict[SeriesKey, Cell]:
    """What a version measured: of several profiles of one configuration, the mean weighted by their
    samples."""
    parts: dict[SeriesKey, list[Summary]] = {}
    for info, profile in profiles:
        configuration = info.configuration
        for name, one in zip(profile.names, profile.summaries, strict=True):
            if one.median > 0:
                key = SeriesKey(configuration, "" if name.exact else profile.machine, *name)
                parts.setdefault(key, []).append(one)
    return {key: _pooled(own) for key, own in parts.items()}


def _pooled(parts: Sequence[Summary]) -> Cell:
    """The mean of the medians weighted by their samples, with its interval by Student's t."""
    count = sum(one.samples for one in parts)
    value = sum(one.median * one.samples for one in parts) / count
    errors = [
        _OF_MEDIAN * one.spread * math.sqrt(one.samples) / count for one in parts if one.spread is not None
    ]
    if len(errors) < len(parts):
        return Cell(value, math.nan, count)
    return Cell(value, quantile(1 - CONFIDENCE, count - len(parts)) * math.hypot(*errors), count)


def possible(history: History, before: int, after: int) -> tuple[MinorVersion, ...]:
    """The versions after the one at position `before` of the history up to that at `after`."""
    return tuple(history.versions[before + 1 : after + 1])
