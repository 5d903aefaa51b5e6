"""Registering profiles in a minor version and taking them out again (manual 13.2.3).

Objects are written first, then the index that names them, once for all of them, then the cache of the
summaries. A process that dies in between leaves at most objects that nobody names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from perun.profile.head import Head
from perun.store.index import NEWEST_TIME, IndexEntry
from perun.store.summaries import fact_of

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.store import Store


class Linked(NamedTuple):
    """The entries that are registered now, and those whose path and time were registered before."""

    added: list[IndexEntry]
    duplicates: list[IndexEntry]


def link(store: Store, minor: str, items: Iterable[tuple[Profile, str, float]]) -> Linked:
    """Register profiles in the minor version; their origins are not looked at and not stored.

    :param items: each profile with the base name and the modification time (seconds) of its file.
    :raises DamagedStore: if the index is damaged; nothing is written then.
    """
    items = list(items)
    with store.lock(), store.files.together():
        store.indexes.read(minor)  # refuses a wrong name and a damaged index before anything is written
        checksums = store.objects.put_many(profile for profile, _, _ in items)
        entries = [
            _entry(profile, path, time, checksum)
            for (profile, path, time), checksum in zip(items, checksums, strict=True)
        ]
        for (_, _, time), checksum in zip(items, checksums, strict=True):
            store.objects.set_time(checksum, time)
        added = store.indexes.add(minor, entries)
        if added:
            store.summaries.update([minor])
        store.facts.keep({
            checksum: fact_of(profile)
            for checksum, (profile, _, _) in zip(checksums, items, strict=True)
        })  # fmt: skip
    new = set(map(id, added))
    return Linked(added, [entry for entry in entries if id(entry) not in new])


def unlink(store: Store, minor: str, entries: Iterable[IndexEntry]) -> None:
    """Take profiles out of the minor version; their objects stay.

    :raises ProfileNotFound: if one of them is not registered; then none is removed.
    """
    with store.lock():
        store.indexes.remove(minor, entries)
        store.summaries.update([minor])


def _entry(profile: Profile, path: str, time: float, checksum: str) -> IndexEntry:
    seconds = min(max(int(time), 0), NEWEST_TIME)
    return IndexEntry(seconds, checksum, path.rpartition("/")[2], Head.of(profile))
