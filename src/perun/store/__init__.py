"""The storage of Perun (manual 13.2): profiles by checksum, indexes of minor versions, pending jobs.

Readers take no lock and write nothing. Whoever writes holds the lock of the repository, replaces files
as a whole, and does so in an order after which the store is consistent at any moment: objects first,
then the index that names them, then what can be rebuilt.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from perun.store import tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from perun.store.cache import Cache
    from perun.store.changes import ChangeStore
    from perun.store.files import Files
    from perun.store.fsck import FsckFinding, Progress
    from perun.store.index import Indexes
    from perun.store.lock import Lock
    from perun.store.objects import FileObjects
    from perun.store.pending import Pending
    from perun.store.series import SeriesCache
    from perun.store.stats import Stats
    from perun.store.summaries import ProfileSummaries, Summaries
    from perun.store.temp import Temp

FOLDERS = ("objects", "jobs", "logs", "cache", "stats", "tmp")
"""The folders of `.perun`, all of them made by :meth:`Store.create`."""


class Store:
    """Everything below one `.perun` folder; its parts are made when they are first asked for.

    :param root: the `.perun` folder.
    :param lock_timeout: seconds that a writer waits for another one.
    :param limit: largest accepted size of a profile or of statistics, in bytes before compression;
        :data:`perun.store.tree.DEFAULT` if it is None.
    :param columnar_from: numbers from which a profile is stored by columns, 0 for never;
        :data:`perun.profile.format.head.COLUMNAR_FROM` if it is None.
    :param url: the database that holds it (:func:`perun.store.connections.checked_url`); empty for files.
    """

    def __init__(
        self,
        root: Path,
        lock_timeout: float = 60.0,
        limit: int | None = None,
        columnar_from: int | None = None,
        url: str = "",
    ) -> None:
        self.root = root
        self.url = url
        self._limit = limit
        self._columnar_from = columnar_from
        self._lock_timeout = lock_timeout

    def create(self) -> None:
        """Make the folders that are missing; what is there stays as it is."""
        self.files.create(FOLDERS)

    @cached_property
    def files(self) -> Files:
        """Where what the store keeps is: what is done with its paths is done there."""
        from perun.store.files import DiskFiles

        if not self.url:
            return DiskFiles(self.root)
        from perun.store.connections import connected
        from perun.store.database import DatabaseFiles

        return DatabaseFiles(self.root, connected(self.url, self.root))

    def lock(self) -> AbstractContextManager[None]:
        """The one lock of the repository, for writers; may be taken again by whoever holds it.

        :raises LockTimeout: on entering, if another process holds it for too long.
        """
        return self._lock.hold()

    @cached_property
    def _lock(self) -> Lock:
        return self.files.lock(self._lock_timeout, self._sweep)

    def _sweep(self) -> None:
        """Remove what a writer that was killed had not finished."""
        from perun.core.leftovers import sweep

        sweep(self.root)

    @cached_property
    def limit(self) -> int:
        """Largest accepted size of a profile or of statistics, in bytes."""
        from perun.store.tree import DEFAULT

        return DEFAULT if self._limit is None else self._limit

    @cached_property
    def objects(self) -> FileObjects:
        """Registered profiles by checksum."""
        from perun.profile.format.head import COLUMNAR_FROM
        from perun.store.objects import FileObjects

        columnar_from = COLUMNAR_FROM if self._columnar_from is None else self._columnar_from
        return FileObjects(self.root / "objects", self.limit, columnar_from, self.files)

    def object_path(self, checksum: str) -> Path:
        """The file of a registered profile, there or not; for lists, which load nothing that reads one."""
        return tree.object_path(self.root / "objects", checksum)

    @cached_property
    def indexes(self) -> Indexes:
        """The profiles registered in each minor version."""
        from perun.store.index import Indexes

        return Indexes(
            self.root / "objects", self.lock, lambda checksum: self.objects.head(checksum), self.files
        )

    @cached_property
    def changes(self) -> ChangeStore:
        """The changes of performance found in each minor version."""
        from perun.store.changes import ChangeStore

        return ChangeStore(self.root / "objects", self.lock, self.root / "sums" / "changes", self.files)

    @cached_property
    def pending(self) -> Pending:
        """Profiles that no minor version has yet."""
        from perun.store.pending import Pending

        sums = self.root / "sums" / "jobs"
        return Pending(self.root / "jobs", self.lock, sums, self.limit, self._columnar_from, self.files)

    @cached_property
    def cache(self) -> Cache:
        """What is made of profiles so that it need not be made again."""
        from perun.store.cache import FILE, Cache

        return Cache(self.root / "cache" / FILE)

    @cached_property
    def summaries(self) -> Summaries:
        """Numbers of profiles and changes per minor version, from a cache if it is valid."""
        from perun.store.summaries import Summaries

        return Summaries(self.cache, self.indexes, self.changes, self.lock, self.files)

    @cached_property
    def profile_summaries(self) -> ProfileSummaries:
        """What lists of profiles say of each beyond its index, a cache."""
        from perun.store.summaries import ProfileSummaries

        return ProfileSummaries(self.cache)

    @cached_property
    def series(self) -> SeriesCache:
        """The series of registered profiles in a few numbers each, a cache."""
        from perun.store.series import SeriesCache

        return SeriesCache(self.cache)

    @cached_property
    def stats(self) -> Stats:
        """Statistics that collectors keep per minor version."""
        from perun.store.stats import Stats

        return Stats(self.root / "stats", self.lock, self.limit, self.files)

    @cached_property
    def temp(self) -> Temp:
        """Temporary files."""
        from perun.store.temp import Temp

        return Temp(self.root / "tmp", self.lock, self.limit)

    def fsck(self, progress: Progress | None = None) -> Iterator[FsckFinding]:
        """All that is wrong or odd in the store, found by reading every file of it; changes nothing."""
        from perun.store.fsck import fsck

        return fsck(self, progress)
