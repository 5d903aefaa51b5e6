"""Numbers of profiles and changes per minor version, for `perun log`.

They are kept in one file that can be deleted at any time. Each number holds only as long as the index
and the changes it was counted from have the times and sizes they had then; else it is counted anew.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from perun import atomic
from perun.errors import DamagedStore
from perun.measurement.verdict import severity, sum_of
from perun.store import tree
from perun.store.files import ON_DISK, Files

if TYPE_CHECKING:
    from pathlib import Path

    from perun.store.changes import Changes
    from perun.store.index import Indexes

_FORMAT = 2
_MISSING = [0, -1]
_NO_FILES = _MISSING + _MISSING
_Stored = dict[str, list[Any]]


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

    def __init__(self, stored: _Stored, indexes: Indexes, changes: Changes, files: Files) -> None:
        self._stored = stored
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
        stored = self._stored.get(minor)
        if stored is not None and stored[:4] == _signature(f"{self._root}/{folder}/{name}", self._files):
            return Summary(stored[4], stored[5], stored[6])
        return _count(minor, self._indexes, self._changes)


class Summaries:
    """The summaries of one repository.

    :param path: the file of the cache, on the disk.
    :param lock: the lock of the repository, taken by :meth:`update`.
    :param files: those of the store, of the indexes and changes.
    """

    def __init__(
        self,
        path: Path,
        indexes: Indexes,
        changes: Changes,
        lock: Callable[[], AbstractContextManager[None]],
        files: Files = ON_DISK,
    ) -> None:
        self.path = path
        self._files = files
        self._indexes = indexes
        self._changes = changes
        self._lock = lock

    def load(self) -> Snapshot:
        """The summaries as they are now; writes nothing."""
        return Snapshot(self._read() or {}, self._indexes, self._changes, self._files)

    def update(self, minors: Iterable[str], objects: Collection[str] = ()) -> None:
        """Count the given minor versions anew, and all if there is no cache yet; for writers.

        :param objects: checksums of objects, which are not looked at for indexes.
        """
        with self._lock():
            stored = self._read()
            try:
                if stored is None:
                    stored = {}
                    minors = {*self._indexes.minors(objects), *self._changes.minors()}
                for minor in minors:
                    self._refresh(stored, minor)
            except DamagedStore:
                return  # a cache must not stop a writer, and whoever reads the damaged folder will say so
            content = {"format": _FORMAT, "minors": stored}
            # What is not up to date is counted anew: no reason to fail after what really counts is done.
            with suppress(OSError):
                atomic.write(self.path, json.dumps(content, separators=(",", ":")).encode())

    def wrong(self) -> list[str]:
        """The minor versions of which the cache would give wrong numbers; `[""]` if it cannot be read."""
        stored = self._read()
        if stored is None:
            return [""] if os.path.lexists(self.path) else []
        found = []
        for minor, known in stored.items():
            with suppress(DamagedStore):
                if tree.is_minor_version(minor) and self._is_wrong(minor, known):
                    found.append(minor)
        return found

    def _is_wrong(self, minor: str, known: list[Any]) -> bool:
        if known[:4] != _signature(str(self._indexes.path(minor)), self._files):
            return False  # it is counted anew
        return Summary(known[4], known[5], known[6]) != _count(minor, self._indexes, self._changes)

    def rebuild(self) -> None:
        """Count all minor versions anew."""
        with self._lock():
            self.path.unlink(missing_ok=True)
            self.update([])

    def _refresh(self, stored: _Stored, minor: str) -> None:
        stored.pop(minor, None)
        # Before the files are read: if they are replaced meanwhile, the old signature will not fit them.
        signature = _signature(str(self._indexes.path(minor)), self._files)
        if signature == _NO_FILES:
            return
        with suppress(DamagedStore):
            stored[minor] = [*signature, *_count(minor, self._indexes, self._changes)]

    def _read(self) -> _Stored | None:
        try:
            content = json.loads(tree.read(self.path) or b"")
            minors: _Stored = content["minors"]
            valid = content["format"] == _FORMAT and all(map(_is_valid, minors.values()))
            return minors if valid else None
        except (DamagedStore, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None


def _is_valid(stored: Any) -> bool:
    return (
        isinstance(stored, list)
        and [type(value) for value in stored] == [int, int, int, int, dict, int, int]
        and all(type(number) is int for number in stored[4].values())
    )


def _signature(index: str, files: Files) -> list[int]:
    return _status(index, files) + _status(index + tree.CHANGES_SUFFIX, files)


def _status(path: str, files: Files) -> list[int]:
    try:
        status = files.state(path)
    except OSError:
        return _MISSING
    return [status.st_mtime_ns, status.st_size]


def _count(minor: str, indexes: Indexes, changes: Changes) -> Summary:
    profiles = Counter(indexes.types(minor))
    records = changes.read(minor)
    places = {(record.command, record.info.location) for record in records}
    found = [
        severity(record.info.result)
        for record in records
        # A part counts only where its sum is not known: it is no change besides that of the sum.
        if (record.command, sum_of(record.info.location)) not in places
    ]
    return Summary(
        dict(profiles), sum(one < 0 for one in found), sum(one > 0 for one in found)
    )
