"""What the versions of a history measured: read once from the profiles, and from the cache from then on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perun.errors import DamagedStore, PerunError
from perun.machine import class_of
from perun.plugin.api import MinorVersion
from perun.porcelain.changes.data import History, SeriesKey
from perun.porcelain.check.comparable import conditions
from perun.porcelain.repository import Repository
from perun.porcelain.walking import first_parents, since
from perun.profile.head import Configuration
from perun.profile.helpers import ProfileInfo
from perun.profile.incomplete import text_of as why_incomplete
from perun.profile.summary import Summary, summaries
from perun.store.series import ProfileSeries

Progress = Callable[[int, int], None]
"""Called with the number of versions that are read, and of all."""
Wanted = Callable[[Configuration, Summary], bool]
_NO_PROGRESS: Final[Progress] = lambda done, total: None  # noqa: E731


def read(
    repo: Repository,
    revision: str | None,
    start: str | None,
    wanted: Wanted,
    progress: Progress = _NO_PROGRESS,
) -> History:
    """What was measured along the first parents of a version, HEAD if None.

    :param start: a version, which is left out with its ancestors, or a date, which is not.
    :param wanted: which series are looked at.
    :raises VersionControlError: if there is no such version.
    """
    newest_first = list(since(repo, first_parents(repo, repo.version(revision)), start))
    versions = newest_first[::-1]
    measured = [place for place, one in enumerate(versions) if repo.store.indexes.has(one.checksum)]
    columns: list[dict[SeriesKey, float]] = []
    under: list[dict[tuple[Configuration, str], tuple[tuple[str, str], ...]]] = []
    kept: list[int] = []
    damaged: list[str] = []
    for number, place in enumerate(measured):
        progress(number, len(measured))
        try:
            profiles = list(_profiles(repo, versions[place].checksum, damaged))
        except DamagedStore as problem:
            damaged.append(problem.message)
            continue
        column = _column(profiles, wanted)
        if column:
            columns.append(column)
            kept.append(place)
            under.append(
                {(info.configuration, one.machine): one.conditions for info, one in profiles}
            )
    progress(len(measured), len(measured))
    keys = list(dict.fromkeys(key for column in columns for key in column))
    return History(versions, kept, keys, _matrix(keys, columns), under, damaged, 0)


def _profiles(
    repo: Repository, minor: str, damaged: list[str]
) -> Iterator[tuple[ProfileInfo, ProfileSeries]]:
    """The complete profiles of the version, with their series."""
    infos = [entry.info() for entry in repo.store.indexes.read(minor)]
    known = repo.store.series.of_version(minor)
    new = False
    found: dict[str, ProfileSeries] = {}
    for info in infos:
        one = known.get(info.checksum)
        if one is None:
            try:
                one = _of_profile(repo, info)
            except PerunError as problem:
                damaged.append(problem.message)
                continue
            new = True
        found[info.checksum] = one
    if new:
        repo.store.series.keep(minor, found)
    for info in infos:
        if info.checksum in found and not found[info.checksum].incomplete:
            yield info, found[info.checksum]


def _of_profile(repo: Repository, info: ProfileInfo) -> ProfileSeries:
    profile = repo.store.objects.get(info.checksum)
    described = profile.get("machine")
    machine = class_of(described) if isinstance(described, dict) else ""
    under = tuple(conditions(profile).items())
    return ProfileSeries(machine, why_incomplete(profile), under, tuple(summaries(profile)))


def _column(
    profiles: Sequence[tuple[ProfileInfo, ProfileSeries]], wanted: Wanted
) -> dict[SeriesKey, float]:
    """What a version measured: of several profiles of one configuration, the mean weighted by their
    samples."""
    sums: dict[SeriesKey, tuple[float, int]] = {}
    for info, profile in profiles:
        for one in profile.series:
            if one.median <= 0 or not wanted(info.configuration, one):
                continue
            machine = "" if one.exact else profile.machine
            key = SeriesKey(
                info.configuration, machine, one.location, one.type, one.subtype, one.unit, one.exact,
                one.larger_is_better,
            )  # fmt: skip
            total, count = sums.get(key, (0.0, 0))
            sums[key] = total + one.median * one.samples, count + one.samples
    return {key: total / count for key, (total, count) in sums.items()}


def _matrix(keys: Sequence[SeriesKey], columns: Sequence[dict[SeriesKey, float]]) -> NDArray[np.float64]:
    row = {key: number for number, key in enumerate(keys)}
    values = np.full((len(keys), len(columns)), np.nan)
    for number, column in enumerate(columns):
        places = np.fromiter((row[key] for key in column), np.intp, len(column))
        values[places, number] = np.fromiter(column.values(), np.float64, len(column))
    return values


def possible(history: History, before: int, after: int) -> tuple[MinorVersion, ...]:
    """The versions after the one at position `before` of the history up to that at `after`."""
    return tuple(history.versions[before + 1 : after + 1])
