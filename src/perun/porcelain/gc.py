"""`perun gc`: remove what is not kept, here or at a remote, and give back the room that nothing needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from perun.errors import ProfileNotFound, UsageError, VersionControlError
from perun.porcelain.repository import Repository
from perun.porcelain.sharing.known import Known
from perun.porcelain.sharing.registered import caches
from perun.remote import cleaning
from perun.remote.cleaning import Progress
from perun.remote.contract import Remote
from perun.remote.register import Entry
from perun.store.index import IndexEntry
from perun.store.linking import unlink

DAY: Final = 86400.0
"""Seconds of a day."""


@dataclass(frozen=True)
class Keep:
    """Which registered profiles are kept: those that any of these says; all if none is set.

    :param days: those measured in the last so many days. :param tags: those of versions with a tag.
    :param last: those of the last so many versions with profiles, by the dates of the commits.
    """

    days: float | None = None
    tags: bool = False
    last: int | None = None

    def __post_init__(self) -> None:
        if (self.days is not None and self.days < 0) or (self.last is not None and self.last < 0):
            raise UsageError("--keep-days and --keep-last take no negative number", "e.g. --keep-days 90")

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
    :param unknown: profiles of a remote that were kept as their versions are not in this clone.
    """

    entries: list[Entry]
    deleted: list[str]
    freed: int
    waiting: int = 0
    moved: int = 0
    unknown: int = 0


def collect_here(
    repo: Repository,
    keep: Keep,
    *,
    now: float,
    dry_run: bool = False,
    progress: Progress = lambda done, total: None,
) -> Collected:
    """Unlink what is not kept, and delete the objects that no index names then.

    Pending profiles, statistics and the changes that were found stay. The lock of the repository is held, so
    that nobody can be about to register what is deleted.

    :param now: seconds since 1970.
    :raises DamagedStore: if an index is damaged; nothing is removed then.
    """
    store = repo.store
    with store.lock():
        registered = [
            Entry(minor, one.checksum, one.time, one.path)
            for minor in store.indexes.minors()
            for one in store.indexes.read(minor)
        ]
        gone = list(_not_kept(repo, registered, keep, now, known_only=False))
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
    return Collected(gone, objects, freed)


def collect_remote(
    repo: Repository,
    remote: Remote,
    keep: Keep,
    *,
    grace: float,
    now: float,
    dry_run: bool = False,
    progress: Progress = lambda done, total: None,
) -> Collected:
    """Record at the remote that what is not kept is removed, and delete there what nothing needs.

    Profiles of versions that are not in this clone are kept where tags or positions decide: they cannot be
    known. Others may push and pull meanwhile (:mod:`perun.remote.cleaning`).

    :param grace: seconds for which a piece that nothing needs is kept. :param now: seconds since 1970.
    :raises RemoteError: if the remote cannot be read or written.
    """
    known = Known(remote, caches(repo))
    entries = [one.entry for one in known.refresh()]
    known.keep()
    gone = list(_not_kept(repo, entries, keep, now, known_only=True))
    unknown = 0
    if keep.tags or keep.last is not None:
        here = _dates(repo, {entry.minor for entry in entries})
        unknown = sum(entry.minor not in here for entry in entries)
    if dry_run:
        planned = cleaning.planned(known, gone)
        return Collected(gone, planned.deleted, planned.freed, 0, planned.moved, unknown)
    cleaning.remove(known, gone, now=now)
    done = cleaning.clean(known, grace=grace, now=now, progress=progress)
    known.refresh()
    known.keep()
    return Collected(gone, done.deleted, done.freed, done.waiting, done.moved, unknown)


def _not_kept(
    repo: Repository, entries: Iterable[Entry], keep: Keep, now: float, *, known_only: bool
) -> Iterator[Entry]:
    """The profiles that nothing keeps.

    :param known_only: keep those of versions that are not in this clone, where their age does not decide.
    """
    entries = list(entries)
    if keep.is_all:
        return
    versions = {entry.minor for entry in entries}
    kept = _kept_versions(repo, versions, keep, known_only=known_only)
    for entry in entries:
        is_recent = keep.days is not None and entry.time >= now - keep.days * DAY
        if not is_recent and entry.minor not in kept:
            yield entry


def _kept_versions(repo: Repository, versions: set[str], keep: Keep, *, known_only: bool) -> set[str]:
    if not keep.tags and keep.last is None:
        return set()
    kept = {checksum for _name, checksum in repo.vcs.tags()} if keep.tags else set()
    dates = _dates(repo, versions)
    if keep.last:
        kept.update(sorted(dates, key=lambda one: (dates[one], one), reverse=True)[: keep.last])
    return kept | (versions - dates.keys()) if known_only else kept


def _dates(repo: Repository, versions: Iterable[str]) -> dict[str, str]:
    """The dates of the versions that are in this clone."""
    left = set(versions)
    found = {}
    for one in repo.vcs.walk_subjects(repo.version(None)) if left else ():
        if one.checksum in left:
            found[one.checksum] = one.date
    for version in left - found.keys():
        try:
            found[version] = repo.vcs.get_minor_version_info(version).date
        except VersionControlError:
            continue
    return found


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
