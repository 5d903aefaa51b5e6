"""`perun fsck`: verify everything that is stored, and rebuild what can be rebuilt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from perun.core.errors import (
    ConfigError,
    LockTimeout,
    NotPerunRepository,
    PerunError,
    ProfileNotFound,
    UsageError,
)
from perun.history import acknowledged
from perun.history.changes.history import table_of
from perun.plugin.api import Report, silent
from perun.repository import copies, hooks, journal, stats, walking
from perun.repository.repository import BISECTIONS, PERUN_FOLDER, Repository
from perun.running.run import builds, matrix
from perun.running.run.builds import CachedBuild
from perun.sharing.known import CachingReader, caches
from perun.store.fsck import FsckFinding, rebuild_caches
from perun.store.fsck import fsck as check_store
from perun.store.index import IndexEntry
from perun.store.pending import unlink
from perun.store.remote import cleaning
from perun.store.remote.cleaning import Progress
from perun.store.remote.contract import Remote
from perun.store.remote.register import RegisterEntry
from perun.store.summaries import key_of
from perun.store.temp import TempFile


def fsck(repo: Repository, report: Report = silent, *, repair: bool = False) -> Iterator[FsckFinding]:
    """Whatever is damaged, missing or left over, as a stream. Reads only, but with `repair`.

    :param repair: do what each finding offers; what was done is in it. No repair removes the only copy of
        anything.
    """
    with repo.store.lock() if repair else nullcontext():
        for finding in _findings(repo, report):
            yield _repaired(finding) if repair and finding.repair is not None else finding


def rebuild(repo: Repository, report: Report = silent) -> int:
    """Make all caches anew: what lists show, and what `perun changes` and the dashboard read of a history.

    :returns: how many versions have profiles. :raises LockTimeout: if another process holds the lock.
    """
    store = repo.store
    with store.lock():
        report("caches of lists", 0, 0)
        rebuild_caches(store)
        states = {one: state for one in store.indexes.minors() if (state := store.indexes.state(one))}
        table_of(repo, states, lambda done, total: report("versions", done, total))
    return len(states)


def _repaired(finding: FsckFinding) -> FsckFinding:
    assert finding.repair is not None
    try:
        return finding._replace(done=finding.repair())
    except (PerunError, OSError) as problem:
        return finding._replace(message=f"{finding.message}; repairing it failed: {problem}")


def _findings(repo: Repository, report: Report) -> Iterator[FsckFinding]:
    date = partial(stats.date_of, repo)
    yield from check_store(repo.store, lambda done, total: report("", done, total), date)
    yield from _journals(repo)
    yield from _acknowledged(repo)
    yield from _working_copies(repo)
    for path, message in builds.damaged(repo):
        yield FsckFinding("info", path, message, partial(_remove_build, path))
    for hook, repair in hooks.problems(repo):
        yield FsckFinding("warning", hook.path, hook.problem, repair)


def _journals(repo: Repository) -> Iterator[FsckFinding]:
    """Damaged journals of batches, of bisections and of an in-place run."""
    for folder in (matrix.folder(repo), repo.root / PERUN_FOLDER / BISECTIONS):
        for path, message in journal.damaged(folder):
            yield FsckFinding("error", path, message)
    try:
        copies.read_journal(repo)
    except PerunError as problem:
        yield FsckFinding("error", repo.in_place_journal, problem.message)


def _acknowledged(repo: Repository) -> Iterator[FsckFinding]:
    """The list of acknowledged changes, where it is none."""
    path = acknowledged.path_of(repo)
    try:
        acknowledged.Acknowledgements.load(repo)
    except ConfigError as problem:
        yield FsckFinding("error", path, f"{problem.message}; {problem.hint}")


def _working_copies(repo: Repository) -> Iterator[FsckFinding]:
    for path in copies.leftovers(repo):
        message = "left over from an interrupted run"
        yield FsckFinding("info", path, message, partial(_remove_working_copy, repo, path))


def _remove_working_copy(repo: Repository, path: Path) -> str:
    copies.remove_leftover(repo, path)
    return "removed"


def _remove_build(path: Path) -> str:
    return "removed" if builds.remove(path) else "it is in use"


# `perun gc`: remove what is not kept, here or at a remote, and give back the room that nothing needs.

DAY: Final = 86400.0
"""Seconds of a day."""


@dataclass(frozen=True)
class RetentionPolicy:
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


class CleaningResult(NamedTuple):
    """What was removed, or would be.

    :param entries: registered profiles that are not kept. :param deleted: the objects, or the pieces of a
        remote, that were deleted, and :param freed: their bytes, of a remote those of packs.
    :param waiting: bytes of a remote that a later gc deletes. :param moved: bytes there that were copied, so
        that the pack that they were in could be deleted.
    :param unknown: profiles of which this clone cannot know whether they are kept; they are where `keep` does
        not say otherwise, and among the entries where it does. :param lacks: what to do about that.
    :param builds: versions that were built here and are kept for later runs, and :param gone_builds: those
        that are kept no longer.
    """

    entries: list[RegisterEntry]
    deleted: list[str]
    freed: int
    waiting: int = 0
    moved: int = 0
    unknown: Collection[RegisterEntry] = ()
    lacks: str = ""
    builds: Sequence[CachedBuild] = ()
    gone_builds: Sequence[CachedBuild] = ()


def collect_here(
    repo: Repository,
    keep: RetentionPolicy,
    *,
    now: float,
    dry_run: bool = False,
    agreed: Collection[RegisterEntry] | None = None,
    with_builds: bool = False,
    progress: Progress = lambda done, total: None,
) -> CleaningResult:
    """Unlink what is not kept, and delete the objects that no index names then.

    Pending profiles, statistics and the changes that were found stay. The lock of the repository is held, so
    that nobody can be about to register what is deleted.

    :param now: seconds since 1970. :param agreed: what may be removed at most; anything if None.
    :param with_builds: remove also versions that were built and are kept, but those in use.
    :raises DamagedStore: if an index is damaged; nothing is removed then.
    """
    store = repo.store
    with store.lock():
        registered = [
            RegisterEntry(minor, one.checksum, one.time, one.path)
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
    kept = builds.found(repo)
    gone_builds = [one for one in kept if dry_run or builds.remove(one.path)] if with_builds else []
    if with_builds and not dry_run:
        for path in builds.unfinished(repo):
            builds.remove(path)
    left_builds = [one for one in kept if one not in gone_builds]
    return CleaningResult(
        gone, objects, freed, unknown=unknown, lacks=lacks, builds=left_builds, gone_builds=gone_builds
    )


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
    keep: RetentionPolicy,
    *,
    grace: float,
    now: float,
    dry_run: bool = False,
    agreed: Collection[RegisterEntry] | None = None,
    progress: Progress = lambda done, total: None,
) -> CleaningResult:
    """Record at the remote that what is not kept is removed, and delete there what nothing needs.

    Others may push and pull meanwhile (:mod:`perun.store.remote.cleaning`).

    :param grace: seconds for which a piece that nothing needs is kept. :param now: seconds since 1970.
    :param agreed: as of :func:`collect_here`.
    :raises RemoteError: if the remote cannot be read or written.
    """
    known = CachingReader(remote, caches(repo))
    entries = [one.entry for one in known.refresh()]
    known.keep()
    gone, unknown, lacks = _not_kept(repo, entries, keep, now, agreed)
    if dry_run:
        planned = cleaning.planned(known, gone)
        return CleaningResult(gone, planned.deleted, planned.freed, 0, planned.moved, unknown, lacks)
    cleaning.remove(known, gone, now=now)
    done = cleaning.clean(known, grace=grace, now=now, progress=progress)
    known.refresh()
    known.keep()
    return CleaningResult(gone, done.deleted, done.freed, done.waiting, done.moved, unknown, lacks)


def _not_kept(
    repo: Repository,
    entries: Collection[RegisterEntry],
    keep: RetentionPolicy,
    now: float,
    agreed: Collection[RegisterEntry] | None,
) -> tuple[list[RegisterEntry], list[RegisterEntry], str]:
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


def _by_version(entries: Iterable[RegisterEntry]) -> Iterator[tuple[str, list[RegisterEntry]]]:
    by_version: dict[str, list[RegisterEntry]] = {}
    for entry in entries:
        by_version.setdefault(entry.minor, []).append(entry)
    yield from by_version.items()


def _size(repo: Repository, checksum: str) -> int:
    try:
        return repo.store.objects.size(checksum)
    except OSError:
        return 0


# `perun temp`: the temporary files of collectors and postprocessors (manual 3.6.3 - 3.6.5).

SORTED_BY = ("name", "protection", "size")
PROTECTION = ("all", "unprotected", "protected")


def files(repo: Repository, root: str, *, sort_by: str = "name", protection: str = "all") -> list[TempFile]:
    """The files below `root` (in `.perun/tmp`, all of it where empty), the largest first where by size.

    Flags of files that are gone are removed, if the repository can be written.

    :raises ProfileNotFound: if there is no such file or folder.
    """
    temp = repo.store.temp
    found = [
        file
        for file in temp.files(root)
        if protection == "all" or file.protected == (protection == "protected")
    ]
    if temp.stale():
        with suppress(OSError, NotPerunRepository, LockTimeout):
            temp.sync()
    if sort_by == "protection":
        return sorted(found, key=lambda file: (not file.protected, file.path))
    if sort_by == "size":
        return sorted(found, key=lambda file: (-file.size, file.path))
    return found


def delete(
    repo: Repository, path: str, *, warn: bool = False, force: bool = False, keep_folders: bool = False
) -> tuple[int, list[str]]:
    """Delete a file or folder of `.perun/tmp`; protected files only if `force` is set.

    :param warn: delete nothing at all if there are protected files.
    :return: how many files were deleted, and the protected ones that stayed.
    :raises UsageError: if `warn` finds protected files. :raises ProfileNotFound: if nothing is there.
    """
    temp = repo.store.temp
    with repo.store.lock():
        found = temp.files(path)
        protected = [file.path for file in found if file.protected]
        if protected and warn and not force:
            raise UsageError(
                f"nothing was deleted, because these files are protected: {', '.join(protected)}",
                "delete them too with --force, or the others alone without --warn",
            )
        kept = temp.delete(path, force=force, keep_folders=keep_folders)
    return len(found) - len(kept), kept


def sync(repo: Repository) -> list[str]:
    """Remove the flags of files that are gone; the paths of these files."""
    gone = repo.store.temp.stale()
    repo.store.temp.sync()
    return gone
