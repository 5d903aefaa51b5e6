"""Numbers of profiles and changes per minor version, for `perun log`.

Each number that the cache has holds only as long as the index and the changes it was counted from have the
times and sizes they had then; else it is counted anew.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core.errors import DamagedStore
from perun.measurement.estimate import Headline, Kind, Round, Sample
from perun.measurement.verdict import severity, sum_of
from perun.store import tree
from perun.store.cache import NUMBER, Cache, of_types
from perun.store.files import ON_DISK, Files

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.profile.helpers import ProfileInfo
    from perun.store.changes import ChangeStore
    from perun.store.index import Indexes


_MISSING = [0, -1]
_NO_FILES = _MISSING + _MISSING


class Summary(NamedTuple):
    """What a minor version has: registered profiles by type, and found changes by direction."""

    profiles: Mapping[str, int]
    degradations: int
    optimizations: int

    @property
    def total(self) -> int:
        """The number of registered profiles of any type."""
        return sum(self.profiles.values())


class Snapshot:
    """The summaries at one moment: a folder of the store is listed once, when it is first asked about."""

    def __init__(self, cache: Cache, indexes: Indexes, changes: ChangeStore, files: Files) -> None:
        self._cache = cache
        self._stored = cache.all("summaries", _read)
        self._new: dict[str, bytes] = {}
        self._files = files.glimpse(indexes.root)
        self._indexes = indexes
        self._changes = changes
        self._root = str(indexes.root)
        self._folders: dict[str, frozenset[str]] = {}

    def get(self, minor: str) -> Summary | None:
        """The summary of a minor version; None if it has neither index nor changes.

        :raises DamagedStore: if one of them is damaged.
        """
        folder, name = minor[:2], minor[2:]
        names = self._folders.get(folder)
        if names is None:
            names = self._folders[folder] = frozenset(tree.listing(f"{self._root}/{folder}", self._files))
        if name not in names and name + tree.CHANGES_SUFFIX not in names:
            return None
        if not tree.is_minor_version(minor):
            return None
        # Before the files are read: if they are replaced meanwhile, the signature will not fit them.
        signature = _signature(f"{self._root}/{folder}/{name}", self._files)
        stored = self._stored.get(minor)
        if stored is not None and stored[0] == signature:
            return stored[1]
        found = _count(minor, self._indexes, self._changes)
        self._new[minor] = _encoded(signature, found)
        return found

    def keep(self) -> None:
        """Let the cache have what had to be counted."""
        self._cache.put("summaries", self._new)


class Summaries:
    """The summaries of one repository.

    :param lock: the lock of the repository, taken by :meth:`update`.
    :param files: those of the store, of the indexes and changes.
    """

    def __init__(
        self,
        cache: Cache,
        indexes: Indexes,
        changes: ChangeStore,
        lock: Callable[[], AbstractContextManager[None]],
        files: Files = ON_DISK,
    ) -> None:
        self._cache = cache
        self._files = files
        self._indexes = indexes
        self._changes = changes
        self._lock = lock

    def load(self) -> Snapshot:
        """The summaries as they are now."""
        return Snapshot(self._cache, self._indexes, self._changes, self._files)

    def update(self, minors: Iterable[str]) -> None:
        """Count the given minor versions anew; for writers."""
        with self._lock():
            found = {minor: self._counted(minor) for minor in minors}
            kept = {minor: data for minor, data in found.items() if data is not None}
            self._cache.put("summaries", kept, found.keys() - kept.keys())

    def wrong(self) -> list[str]:
        """The minor versions of which the cache would give wrong numbers."""
        found = []
        for minor, (signature, summary) in self._cache.all("summaries", _read).items():
            with suppress(DamagedStore):
                if tree.is_minor_version(minor) and (
                    signature == _signature(str(self._indexes.path(minor)), self._files)
                    and summary != _count(minor, self._indexes, self._changes)
                ):
                    found.append(minor)
        return found

    def rebuild(self) -> None:
        """Count all minor versions anew."""
        with self._lock():
            self._cache.keep_only("summaries", ())
            self.update({*self._indexes.minors(), *self._changes.minors()})

    def _counted(self, minor: str) -> bytes | None:
        """What is kept of the version; None if it has no files, or damaged ones."""
        signature = _signature(str(self._indexes.path(minor)), self._files)
        if signature != _NO_FILES:
            with suppress(DamagedStore):
                return _encoded(signature, _count(minor, self._indexes, self._changes))
        return None


def _read(data: bytes) -> tuple[list[int], Summary]:
    *signature, types, degradations, optimizations = json.loads(data)
    of_types([degradations, optimizations, types, *signature], (int, int, dict, *[int] * len(signature)))
    of_types([*types.values()], [int] * len(types))
    return signature, Summary(types, degradations, optimizations)


def _encoded(signature: Sequence[int], found: Summary) -> bytes:
    return json.dumps([*signature, *found]).encode()


def _signature(index: str, files: Files) -> list[int]:
    return _status(index, files) + _status(index + tree.CHANGES_SUFFIX, files)


def _status(path: str, files: Files) -> list[int]:
    try:
        status = files.state(path)
    except OSError:
        return _MISSING
    return [status.st_mtime_ns, status.st_size]


def _count(minor: str, indexes: Indexes, changes: ChangeStore) -> Summary:
    profiles = Counter(indexes.types(minor))
    records = changes.read(minor)
    places = {(record.command, record.info.location) for record in records}
    found = [
        severity(record.info.result)
        for record in records
        # A part counts only where its sum is not known: it is no change besides that of the sum.
        if (record.command, sum_of(record.info.location)) not in places
    ]
    return Summary(dict(profiles), sum(one < 0 for one in found), sum(one > 0 for one in found))


# What a list of profiles says of each beyond its index: its machine, why it is incomplete, what it measured.
#
# That is kept in the cache, so that a list need not read the profiles.

READ_BY_LISTS = 1 << 20
"""Size in bytes up to which a list reads a profile that is not known; `fsck --repair` reads larger ones."""


class ProfileSummary(NamedTuple):
    """What is known of one profile: the class of its machine, empty if it does not say, why it is
    incomplete, empty if it is complete, the series that stands for it, if there is one, of a pending profile
    the minor version that it is of, and of a command its processor time."""

    machine: str = ""
    incomplete: str = ""
    headline: Headline | None = None
    origin: str = ""
    processor: Headline | None = None


class ProfileSummaries:
    """The facts of the profiles of one repository, by :func:`key_of`."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def of(self, keys: Iterable[str]) -> dict[str, ProfileSummary]:
        """The facts that are known."""
        return self._cache.get("facts", keys, _read_facts)

    def keep(self, facts: Mapping[str, ProfileSummary]) -> None:
        """Note the facts, where that can be done."""
        encoded = {key: json.dumps(fact, default=attrgetter("value")).encode() for key, fact in facts.items()}
        self._cache.put("facts", encoded)


def key_of(info: ProfileInfo) -> str:
    """What a profile is known by: its checksum, or as a pending one that of :func:`pending_key`."""
    return info.checksum or pending_key(info.source, info.time)


def pending_key(name: str, time: int) -> str:
    """What a pending profile is known by: its name, and its time in seconds since 1970."""
    return f"{time} {name}"


def profile_summary_of(profile: Profile) -> ProfileSummary:
    """What is known of the profile."""
    from perun.core.machine import class_of
    from perun.measurement.headline import headline, processor_time
    from perun.profile.incomplete import text_of

    described = profile.get("machine")
    machine = class_of(described) if isinstance(described, dict) else ""
    origin = str(profile.get("origin") or "")
    return ProfileSummary(machine, text_of(profile), headline(profile), origin, processor_time(profile))


def _read_facts(data: bytes) -> ProfileSummary:
    machine, incomplete, headline, origin, processor = json.loads(data)
    of_types((machine, incomplete, origin), (str, str, str))
    read, limits = (None if one is None else _headline(*one) for one in (headline, processor))
    return ProfileSummary(machine, incomplete, read, origin, limits)


def _headline(
    metric: str, location: str, unit: str, better: bool, kind: str, rounds: list[Any],
    levels: tuple[float, float] | None, whole: float, noise: tuple[float, float] | None,
    conditions: list[tuple[str, str]], limits: bool = True,
) -> Headline:  # fmt: skip
    of_types((metric, location, unit, better, whole, limits), (str, str, str, bool, NUMBER, bool))
    for pair in (levels, noise):
        of_types(pair or (), (NUMBER, NUMBER) if pair else ())
    read = tuple(
        Round(session, number, {name: Sample(*sample) for name, sample in samples.items()}, measured)
        for session, number, samples, measured in rounds
    )
    for one in read:
        of_types((*one[:2], one.measured), (str, int, str))
        for sample in one.samples.values():
            of_types(sample, _SAMPLE)
    for condition in conditions:
        of_types(condition, (str, str))
    return Headline(
        metric, location, unit, better, Kind(kind), read, levels and (levels[0], levels[1]), whole,
        noise and (noise[0], noise[1]), tuple((name, value) for name, value in conditions),
        limits,
    )  # fmt: skip


_SAMPLE: Final = (int, NUMBER, (*NUMBER, type(None)), bool)
