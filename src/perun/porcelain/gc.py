"""`perun gc`: remove what is not kept, here or at a remote, and give back the room that nothing needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from perun.errors import ProfileNotFound, UsageError
from perun.porcelain import walking
from perun.porcelain.repository import Repository
from perun.porcelain.sharing.known import Known
from perun.porcelain.sharing.registered import caches
from perun.remote import cleaning
from perun.remote.cleaning import Progress
from perun.remote.contract import Remote
from perun.remote.register import Entry
from perun.store.facts import key_of
from perun.store.index import IndexEntry
from perun.store.linking import unlink

DAY: Final = 86400.0
"""Seconds of a day."""


@dataclass(frozen=True)
class Keep:
    """Which registered profiles are kept: those that any of these says; all if none is set.

    :param days: those measured in the last so many days. :param tags: those of versions with a tag.
    :param last: those of the last so many versions with profiles, by the dates of the commits.
    :param unknown: whether those stay of which this clone cannot know that: it lacks the version, or tags.
    """

    days: float | None = None
    tags: bool = False
    last: int | None = None
    unknown: bool = True

    def __post_init__(self) -> None:
        if (self.days is not None and self.days < 0) or (self.last is not None and self.last < 0):
            raise UsageError("--keep-days and --keep-last take no negative number", "e.g. --keep-days 90")
        if not self.unknown and self.last is None and not self.tags:
            hint = "give one of these, too, or leave it out"
            raise UsageError("--unknown is about what --keep-last and --keep-tags cannot know", hint)

    @property
    def is_all(self) -> bool:
        """Whether no registered profile is removed."""
        return self.days is None and self.last is None and not self.tags


class Collected(NamedTuple):
    """What was removed, or would be.

    :param entries: registered profiles that are not kept. :param deleted: the objects, or the pieces of a
        remote, that were deleted, and :param freed: their bytes, of a remote those of packs.
    :param waiting: bytes of a remote that a later gc deletes. :param moved: bytes there that were copied, so
        that the pack that they were in could be deleted.
    :param unknown: profiles of which this clone cannot know whether they are kept; they are where `keep` does
        not say otherwise, and among the entries where it does. :param lacks: what to do about that.
    """

    entries: list[Entry]
    deleted: list[str]
    freed: int
    waiting: int = 0
    moved: int = 0
    unknown: Collection[Entry] = ()
    lacks: str = ""


def collect_here(
    repo: Repository,
    keep: Keep,
    *,
    now: float,
    dry_run: bool = False,
    agreed: Collection[Entry] | None = None,
    progress: Progress = lambda done, total: None,
) -> Collected:
    """Unlink what is not kept, and delete the objects that no index names then.

    Pending profiles, statistics and the changes that were found stay. The lock of the repository is held, so
    that nobody can be about to register what is deleted.

    :param now: seconds since 1970. :param agreed: what may be removed at most; anything if None.
    :raises DamagedStore: if an index is damaged; nothing is removed then.
    """
    store = repo.store
    with store.lock():
        registered = [
            Entry(minor, one.checksum, one.time, one.path)
            for minor in store.indexes.minors()
            for one in store.indexes.read(minor)
        ]
        gone, unknown, lacks = _not_kept(repo, registered, keep, now, agreed)
        left = {entry.checksum for entry in set(registered).difference(gone)}
        objects = [checksum for checksum in store.objects.ids() if checksum not in left]
        freed = sum(_size(repo, checksum) for checksum in objects)
        if not dry_run:
            for minor, entries in _by_version(gone):
                unlink(store, minor, [IndexEntry(one.time, one.checksum, one.name) for one in entries])
            for number, checksum in enumerate(objects, 1):
                with suppress(ProfileNotFound):  # removed by hand, meanwhile
                    store.objects.delete(checksum)
                progress(number, len(objects))
            _clean_cache(repo, left)
    return Collected(gone, objects, freed, unknown=unknown, lacks=lacks)


def _clean_cache(repo: Repository, left: Collection[str]) -> None:
    """Forget what is kept of profiles and versions that are gone, and the caches of earlier releases."""
    store = repo.store
    store.cache.keep_only("facts", {*left, *map(key_of, store.pending.list())})
    store.cache.keep_only("series", left)
    minors = set(store.indexes.minors())
    store.cache.keep_only("columns", minors)
    store.cache.keep_only("summaries", minors.union(store.changes.minors()))
    store.cache.remove_older()


def collect_remote(
    repo: Repository,
    remote: Remote,
    keep: Keep,
    *,
    grace: float,
    now: float,
    dry_run: bool = False,
    agreed: Collection[Entry] | None = None,
    progress: Progress = lambda done, total: None,
) -> Collected:
    """Record at the remote that what is not kept is removed, and delete there what nothing needs.

    Others may push and pull meanwhile (:mod:`perun.remote.cleaning`).

    :param grace: seconds for which a piece that nothing needs is kept. :param now: seconds since 1970.
    :param agreed: as of :func:`collect_here`.
    :raises RemoteError: if the remote cannot be read or written.
    """
    known = Known(remote, caches(repo))
    entries = [one.entry for one in known.refresh()]
    known.keep()
    gone, unknown, lacks = _not_kept(repo, entries, keep, now, agreed)
    if dry_run:
        planned = cleaning.planned(known, gone)
        return Collected(gone, planned.deleted, planned.freed, 0, planned.moved, unknown, lacks)
    cleaning.remove(known, gone, now=now)
    done = cleaning.clean(known, grace=grace, now=now, progress=progress)
    known.refresh()
    known.keep()
    return Collected(gone, done.deleted, done.freed, done.waiting, done.moved, unknown, lacks)


def _not_kept(
    repo: Repository, entries: Collection[Entry], keep: Keep, now: float, agreed: Collection[Entry] | None
) -> tuple[list[Entry], list[Entry], str]:
    """The profiles that nothing keeps, those of which that cannot be known here, and how that is mended.

    What a clone does not know may be the newest version of all, or one with a tag.
    """
    if keep.is_all:
        return [], [], ""
    versions = {entry.minor for entry in entries}
    kept: set[str] = set()
    unknown: set[str] = set()
    lacks = ""
    if keep.last is not None or keep.tags:
        infos = walking.infos(repo, versions)
        lacks = repo.vcs.missing_tags() if keep.tags else repo.vcs.missing_history()
        unknown = versions if keep.tags and lacks else versions - infos.keys()
        dates = sorted(((info.date, minor) for minor, info in infos.items()), reverse=True)
        kept = {minor for _, minor in dates[: keep.last or 0]}
        kept.update(checksum for _name, checksum in repo.vcs.tags() if keep.tags)
    oldest = None if keep.days is None else now - keep.days * DAY
    old = [one for one in entries if one.minor not in kept and (oldest is None or one.time < oldest)]
    gone = [one for one in old if not (keep.unknown and one.minor in unknown)]
    if agreed is not None:
        gone = [one for one in gone if one in agreed]
    return gone, [one for one in old if one.minor in unknown], lacks


def _by_version(entries: Iterable[Entry]) -> Iterator[tuple[str, list[Entry]]]:
    by_version: dict[str, list[Entry]] = {}
    for entry in entries:
        by_version.setdefault(entry.minor, []).append(entry)
    yield from by_version.items()


def _size(repo: Repository, checksum: str) -> int:
    try:
        return repo.store.objects.size(checksum)
    except OSError:
        return 0
