"""What registered profiles measured of each series, in a few numbers a round, so that a history is told
without reading profiles; kept in the cache by their checksums.

What the series of a profile are called is kept apart, by the checksum of the names: most versions of a
program have the same functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from perun.core.errors import PerunError
from perun.measurement.comparable import conditions
from perun.measurement.estimate import Readings
from perun.measurement.series import SeriesName, readings
from perun.store.cache import Cache
from perun.store.summaries import ProfileSummary, profile_summary_of

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.store import Store


class ProfileSeries(NamedTuple):
    """What is kept of one profile.

    :param conditions: the name and the value of each condition that comparisons look at.
    :param names: of the series; the same list for all profiles that have the same ones.
    :param readings: of each of them.
    """

    conditions: tuple[tuple[str, str], ...]
    names: Sequence[SeriesName]
    readings: Sequence[Readings]


class _Kept(NamedTuple):
    conditions: tuple[tuple[str, str], ...]
    names: str
    readings: tuple[Readings, ...]


class SeriesCache:
    """The series of the profiles of one repository."""

    def __init__(self, cache: Cache) -> None:
        import msgspec

        self._cache = cache
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(_Kept).decode
        self._decode_names = msgspec.msgpack.Decoder(tuple[SeriesName, ...]).decode
        self._names: dict[str, tuple[SeriesName, ...] | None] = {}

    def of(self, checksums: Iterable[str]) -> dict[str, ProfileSeries]:
        """The series of those of the profiles that are known."""
        found = {}
        for checksum, one in self._cache.get("series", checksums, self._decode).items():
            names = self._names_of(one.names)
            if names is not None:
                found[checksum] = ProfileSeries(one.conditions, names, one.readings)
        return found

    def keep(self, profiles: Mapping[str, ProfileSeries]) -> None:
        """Note the series of profiles, by their checksums."""
        kept = {
            checksum: self._encode(_Kept(one.conditions, self._keep_names(one.names), tuple(one.readings)))
            for checksum, one in profiles.items()
        }
        self._cache.put("series", kept)

    def _names_of(self, checksum: str) -> tuple[SeriesName, ...] | None:
        if checksum not in self._names:
            self._names[checksum] = self._cache.get("names", [checksum], self._decode_names).get(checksum)
        return self._names[checksum]

    def _keep_names(self, names: Sequence[SeriesName]) -> str:
        data = self._encode(names)
        checksum = hashlib.sha256(data).hexdigest()[:32]
        if self._names_of(checksum) is None:
            self._names[checksum] = tuple(names)
            self._cache.put("names", {checksum: data})
        return checksum


class KnownProfile(NamedTuple):
    """What the cache has of a registered profile."""

    summary: ProfileSummary
    series: ProfileSeries


def known_profiles(
    store: Store,
    checksums: Iterable[str],
    failed: Callable[[PerunError], None],
    read: Callable[[str], Profile],
    readings_of: Callable[[Profile], Mapping[SeriesName, Readings]] = readings,
) -> dict[str, KnownProfile]:
    """What profiles measured: of the cache, else of the profiles themselves; then the cache has it, too.

    :param failed: is given why one is left out, as it cannot be read. :param read: reads one.
    :param readings_of: as :func:`~perun.measurement.series.readings`.
    """
    wanted = dict.fromkeys(checksums)
    summaries, series = store.profile_summaries.of(wanted), store.series.of(wanted)
    summed: dict[str, ProfileSummary] = {}
    made: dict[str, ProfileSeries] = {}
    for checksum in wanted:
        if checksum in summaries and checksum in series:
            continue
        try:
            profile = read(checksum)
            if checksum not in series:
                own = readings_of(profile)
                made[checksum] = ProfileSeries(conditions(profile), tuple(own), tuple(own.values()))
            if checksum not in summaries:
                summed[checksum] = profile_summary_of(profile)
        except PerunError as problem:
            failed(problem)
    store.profile_summaries.keep(summed)
    store.series.keep(made)
    summaries |= summed
    series |= made
    return {
        one: KnownProfile(summaries[one], series[one])
        for one in wanted if one in summaries and one in series
    }  # fmt: skip
