"""The indexes of minor versions: which profiles are registered in each (manual 13.2.1)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from perun.atomic import NewFile
from perun.errors import ProfileError, ProfileNotFound
from perun.store import tree
from perun.store.files import ON_DISK, Files
from perun.store.index_file import IndexEntry, Parsed, parse, serialize

if TYPE_CHECKING:
    from pathlib import Path

    from perun.profile.head import Head

__all__ = ["IndexEntry", "Indexes", "complete", "resolve"]


class Indexes:
    """The indexes below `.perun/objects`.

    :param lock: the lock of the repository, taken by what writes.
    :param head_of: gives the head of a registered profile by its checksum, for the indexes of old releases.
    :param files: those of the store.
    """

    def __init__(
        self,
        root: Path,
        lock: Callable[[], AbstractContextManager[None]],
        head_of: Callable[[str], Head],
        files: Files = ON_DISK,
    ) -> None:
        self._files = files
        self.root = root
        self._folder = str(root)
        self._lock = lock
        self._head_of = head_of

    def path(self, minor: str) -> Path:
        """The file of the index, there or not."""
        return tree.minor_path(self.root, minor)

    def state(self, minor: str) -> tuple[int, int] | None:
        """The time and the size of the index of a minor version, which are others once it is changed; None
        without one. Quick, as histories are long."""
        try:
            status = self._files.state(f"{self._folder}/{minor[:2]}/{minor[2:]}")
        except OSError:
            return None
        return (status.st_mtime_ns, status.st_size) if tree.is_minor_version(minor) else None

    def states(self, minors: Sequence[str]) -> dict[str, tuple[int, int]]:
        """The states of those of the minor versions that have an index, as :meth:`state`; all of a history at
        once."""
        names = (f"{minor[:2]}/{minor[2:]}" for minor in minors)
        found = zip(minors, self._files.states(self._folder, names), strict=True)
        return {
            minor: (status.st_mtime_ns, status.st_size)
            for minor, status in found if status is not None and tree.is_minor_version(minor)
        }  # fmt: skip

    def read(self, minor: str) -> list[IndexEntry]:
        """The profiles registered in the minor version, by path and time; none if it has no index.

        :raises DamagedStore: if the index is damaged.
        """
        entries, certain = self._parse(minor)
        if not certain:
            entries = resolve(entries, self._head_of)
        return sorted(complete(entries, self._head_of), key=lambda entry: entry.key)

    def types(self, minor: str) -> list[str]:
        """The types of the profiles registered in the minor version; quicker than :meth:`read`."""
        return [entry.head.type for entry in complete(self._parse(minor).entries, self._head_of)]

    def add(self, minor: str, entries: Iterable[IndexEntry]) -> list[IndexEntry]:
        """Register the entries whose path and time are not there yet; those that were not.

        :raises DamagedStore: if the index is damaged; it is left alone.
        """
        return self.add_many({minor: entries})[minor]

    def add_many(self, entries: Mapping[str, Iterable[IndexEntry]]) -> dict[str, list[IndexEntry]]:
        """As :meth:`add` for the entries of each minor version; none is registered if an index is damaged."""
        with self._lock():
            files: list[NewFile] = []
            added = {}
            for minor, new in entries.items():
                known = {entry.key: entry for entry in self.read(minor)}
                before = set(known)
                for entry in new:
                    known.setdefault(entry.key, entry)
                added[minor] = [entry for key, entry in known.items() if key not in before]
                if added[minor]:
                    files.append(NewFile(self.path(minor), [serialize(known.values())]))
            self._files.write_many(files, self.root)
            return added

    def remove(self, minor: str, entries: Iterable[IndexEntry]) -> None:
        """Take the entries (by path and time) out of the index; the objects stay.

        :raises ProfileNotFound: if one of them is not registered; then none is removed.
        """
        with self._lock():
            known = {entry.key: entry for entry in self.read(minor)}
            for entry in entries:
                if known.pop(entry.key, None) is None:
                    what = f"{entry.path} is not registered in {minor}"
                    raise ProfileNotFound(what, "perun status lists the registered profiles")
            self._files.write(self.path(minor), serialize(known.values()))

    def has(self, minor: str) -> bool:
        """Whether there is a file for the index of the minor version; quicker than anything that reads it."""
        return self._files.exists(f"{self._folder}/{minor[:2]}/{minor[2:]}")

    def minors(self, objects: Collection[str] = ()) -> Iterator[str]:
        """The minor versions that have an index, or something damaged that may have been one, sorted.

        It opens every file of the tree but those of these objects.
        """

        def may_be(name: str) -> bool:
            return name not in objects and tree.is_minor_version(name)

        for name, start in tree.beginnings(self.root, self._files, may_be):
            if tree.may_be_index(start):
                yield name

    def _parse(self, minor: str) -> Parsed:
        path = self.path(minor)
        data = tree.read(path, files=self._files)
        return parse(data, str(path)) if data is not None else Parsed([], certain=True)


def complete(entries: Iterable[IndexEntry], head_of: Callable[[str], Head]) -> list[IndexEntry]:
    """The entries, with what version 1 does not hold read from the profiles themselves.

    An entry whose profile is missing or damaged stays as it is.

    :param head_of: gives the head of a profile by its checksum.
    """
    return [entry if entry.head.type else _completed(entry, head_of) for entry in entries]


def resolve(entries: Iterable[IndexEntry], head_of: Callable[[str], Head]) -> list[IndexEntry]:
    """The entries of an uncertain index (see :class:`Parsed`), with args and workload from the profiles.

    Releases before 0.22 wrote args and workload where 0.28 writes workload and label, and nothing in the
    file says which; if 0.28 added to an older index, it holds both kinds. If a profile is missing or
    damaged, the last field decides: a label is mostly empty, a workload hardly ever.

    :param head_of: gives the head of a profile by its checksum.
    """
    return [_resolved(entry, head_of) for entry in entries]


def _resolved(entry: IndexEntry, head_of: Callable[[str], Head]) -> IndexEntry:
    stored = entry.head
    if not (stored.args or stored.workload):
        return entry
    try:
        profile = head_of(entry.checksum)
    except ProfileError:
        profile = stored if stored.workload else stored._replace(args="", workload=stored.args)
    return entry._replace(head=stored._replace(args=profile.args, workload=profile.workload))


def _completed(entry: IndexEntry, head_of: Callable[[str], Head]) -> IndexEntry:
    try:
        return entry._replace(head=head_of(entry.checksum))
    except ProfileError:
        return entry
