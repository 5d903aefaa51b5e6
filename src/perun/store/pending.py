"""Pending profiles: files of `.perun/jobs` that no minor version has yet (manual 13.2), how they get into the
index of a version, and how they are taken out again."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from perun.core.errors import DamagedStore, LockTimeout, ProfileError, ProfileNotFound
from perun.profile.head import ProfileHeader
from perun.profile.helpers import MAX_NAME_BYTES, ProfileInfo
from perun.store import tree
from perun.store import tree as limits
from perun.store.files import ON_DISK, Draft, Files
from perun.store.index import NEWEST_TIME, IndexEntry, parse, serialize
from perun.store.summaries import profile_summary_of

if TYPE_CHECKING:
    import hashlib

    from perun.profile.factory import Profile
    from perun.store import Store
    from perun.store.objects import Checksums


SUFFIX = ".perf"
CACHE = ".index"
_Infos = list[ProfileInfo]


class DamagedProfile(NamedTuple):
    """A file among the pending profiles that is none, and why."""

    path: Path
    message: str


class PendingScan(NamedTuple):
    """The pending profiles, and the files that only look like some; each sorted by name."""

    profiles: list[ProfileInfo]
    damaged: list[DamagedProfile]


class Pending:
    """The pending profiles of one repository.

    The head of each profile is kept in `.perun/jobs/.index`, in the layout of an index. That is a cache:
    an entry holds only if the file was last touched before the cache was written; whatever else is
    there is read anew. Only writers write it.

    :param root: `.perun/jobs`.
    :param lock: the lock of the repository, taken by what writes.
    :param checksums: the file of their checksums. :param limit: largest accepted size of a profile, in bytes.
    :param files: those of the store.
    """

    def __init__(
        self,
        root: Path,
        lock: Callable[[], AbstractContextManager[None]],
        checksums: Path,
        limit: int = limits.DEFAULT,
        columnar_from: int | None = None,
        files: Files = ON_DISK,
    ) -> None:
        self.root = root
        self._files = files
        self.limit = limit
        self._columnar_from = columnar_from
        self._checksums_path = checksums
        self._lock = lock
        self._postponed = 0

    @cached_property
    def checksums(self) -> Checksums:
        """The checksums of the profiles that Perun itself wrote."""
        from perun.store.objects import Checksums

        return Checksums(self._checksums_path, lambda name: self._files.exists(self.root / name), self._files)

    def list(self) -> _Infos:
        """The pending profiles, sorted by name; damaged ones are left out, see :meth:`scan`."""
        return self.scan().profiles

    def scan(self) -> PendingScan:
        """The pending profiles and the damaged ones."""
        cached = self._cached()
        found = PendingScan([], [])
        glimpse = self._files.glimpse(self.root)
        for name in sorted(tree.listing(self.root, glimpse)):
            if not name.endswith(SUFFIX):
                continue
            path = self.root / name
            try:
                found.profiles.append(self._entry(path, cached.get(name), glimpse).info(str(path)))
            except FileNotFoundError:
                continue  # taken away meanwhile
            except OSError as problem:
                found.damaged.append(DamagedProfile(path, limits.refused(path, problem).message))
            except ProfileError as problem:
                found.damaged.append(DamagedProfile(path, problem.message))
        return found

    def save(
        self,
        profile: Profile,
        name: str,
        announce: Callable[[str], None] | None = None,
        taken: Iterable[str] = (),
    ) -> Path:
        """Write the profile to `name.perf`, or `name(1).perf` and so on if that is taken.

        A name too long for the file system is cut.

        :param announce: told the SHA-1 of the file, before there is any.
        :param taken: names of files that are not to be used, besides those of the pending profiles.
        :returns: the file.
        :raises ProfileError: if `name` cannot be the name of a file.
        """
        from perun.profile.format.head import COLUMNAR_FROM, job_pieces

        columnar_from = COLUMNAR_FROM if self._columnar_from is None else self._columnar_from
        stem = _stem(name)
        sha1 = tree.sha1_of(b"", tree.OPENSSL_FROM)
        pieces = _hashed(job_pieces(profile, columnar_from), sha1)
        with self._files.drafted(self.root, pieces) as draft:
            if announce is not None:
                announce(sha1.hexdigest())
            with self._lock(), self._files.together():
                path = self._claim(draft, stem, sha1.hexdigest(), taken)
        # The end of the draft changes the file once more: a cache from before that would not be believed.
        with suppress(LockTimeout), self._lock(), self._files.together():
            self._refresh()
        return path

    def find(self, sha1: str, known: Container[str] = ()) -> Path | None:
        """The pending profile whose file has this SHA-1, else None; those of `known` names are left out."""
        for name in sorted(tree.listing(self.root, self._files)):
            if name.endswith(SUFFIX) and name not in known:
                with suppress(OSError):
                    if tree.sha1_of_file(self.root / name, self.limit, self._files) == sha1:
                        return self.root / name
        return None

    def load(self, path: Path | str, uids: Container[str] | None = None) -> Profile:
        """The pending profile; `path` is its file, or its base name alone.

        :param uids: only its resources that have one of these uids, flattened. Of a profile by columns no
            more than these is read then.
        :raises ProfileNotFound: if there is no such file; :raises ProfileError: if it is damaged.
        """
        from perun.profile.format.head import load

        path = self.root / path
        with _naming_file(path), self._files.opened(path, self.limit) as file:
            return load(file, str(path), limit=self.limit, uids=uids)

    def check(self, path: Path | str) -> str:
        """Whether it is a profile; of JSON larger than :data:`limits.READ_WHOLE` only the head is looked at.

        :returns: the SHA-1 of the file in hexadecimal digits, empty if only its head was read.
        Errors as :meth:`load`.
        """
        from perun.profile.format.head import verify

        path = self.root / path
        with _naming_file(path), self._files.opened(path, self.limit) as file:
            if verify(file, str(path), limit=self.limit, read_whole=limits.READ_WHOLE):
                return tree.sha1_of_file(path, self.limit, self._files)
        return ""

    def info(self, path: Path | str) -> ProfileInfo:
        """The pending profile, or one anywhere else, as lists show it; errors as :meth:`load`."""
        path = self.root / path
        with _naming_file(path):
            return self._read_head(path, self._files.state(path).st_mtime_ns // 10**9).info(str(path))

    def regions(self, path: Path | str) -> dict[str, Any]:
        """The regions of the profile that are its head (:func:`perun.profile.format.head.decode`); errors as
        :meth:`load`."""
        from perun.profile.format.head import decode

        path = self.root / path
        with _naming_file(path), self._files.opened(path, self.limit) as file:
            return decode(tree.pieces(file, self.limit), str(path))

    def remove(self, paths: Iterable[Path | str]) -> None:
        """Remove pending profiles, damaged ones too; files or base names.

        :raises ProfileNotFound: if one is not pending; then none is removed.
        """
        with self._lock(), self._files.together():
            chosen = [self.root / path for path in paths]
            for path in chosen:
                if path.parent.resolve() != self.root.resolve() or not path.name.endswith(SUFFIX):
                    hint = f"pending profiles are files in {self.root}"
                    raise ProfileNotFound(f"{path} is not a pending profile", hint)
                if not self._files.exists(path):
                    raise ProfileNotFound(f"there is no pending profile {path}")
            for path in chosen:
                with suppress(FileNotFoundError):
                    self._files.remove(path)
            self._refresh()

    def is_cache_valid(self) -> bool:
        """Whether the cache of heads can be read, and what it would be used for is right."""
        try:
            data = tree.read(self.root / CACHE, files=self._files)
            parse(data or b"", str(self.root / CACHE))
        except DamagedStore:
            return False
        for name, cached in self._cached().items():
            with suppress(OSError, ProfileError):
                entry = self._entry(self.root / name, cached, self._files)
                read = self._read_head(self.root / name, entry.time)
                if entry != read._replace(checksum=entry.checksum):
                    return False
        return True

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Write the cache of heads once, at the end of the block: it needs the time of each profile."""
        self._postponed += 1
        try:
            yield
        finally:
            self._postponed -= 1
            if not self._postponed:
                with suppress(LockTimeout), self._lock():
                    self._refresh()

    def refresh(self) -> None:
        """Write the cache of heads anew, from the files themselves."""
        with self._lock():
            with suppress(FileNotFoundError):
                self._files.remove(self.root / CACHE)
            self._refresh()

    def _cached(self) -> dict[str, tuple[IndexEntry, int]]:
        # Entries by name, each with the time (ns) when the cache was written.
        path = self.root / CACHE
        try:
            # Asked first: if the cache is replaced meanwhile, what changed since the older one is read anew.
            written = self._files.state(path).st_mtime_ns
            entries, certain = parse(self._files.read(path, limits.INDEX), str(path))
        except (OSError, DamagedStore):
            return {}
        # Without its checksum it was written by an old release, whose layout is a guess.
        return {entry.path: (entry, written) for entry in entries} if certain else {}

    def _refresh(self) -> None:
        if self._postponed:
            return
        entries = [
            IndexEntry(info.time, _path_checksum(info.realpath), info.source, info.head)
            for info in self.list()
            if 0 <= info.time <= NEWEST_TIME and _is_utf8(info.source)
        ]
        # Without it the files are read anew: no reason to fail after what really counts is done.
        with suppress(OSError):
            self._files.write(self.root / CACHE, serialize(entries))

    def free_name(self, name: str, taken: Container[str]) -> str:
        """The name of a profile, or that with a number, which neither a pending one has nor one of `taken`.

        :raises ProfileError: if `name` cannot be the name of a file.
        """
        pending = set(tree.listing(self.root, self._files))
        return next(one for one in _numbered(_stem(name)) if one not in pending and one not in taken)

    def _claim(self, draft: Draft, stem: str, sha1: str, not_free: Iterable[str]) -> Path:
        # The name is not known before it is taken: the checksum is noted for the one that is tried.
        taken = {*tree.listing(self.root, self._files), *not_free}
        for name in _numbered(stem):
            if name not in taken:
                self.checksums.note(name, sha1, draft.time)
                if draft.claim(self.root / name):
                    return self.root / name
        raise AssertionError  # there is always another number

    def _entry(self, path: Path, cached: tuple[IndexEntry, int] | None, files: Files) -> IndexEntry:
        status = files.state(path)
        seconds = status.st_mtime_ns // 10**9
        if cached is not None:
            entry, written = cached
            # The change time cannot be set back, so that a file moved here with an old date is noticed too.
            if entry.time == seconds and max(status.st_mtime_ns, status.st_ctime_ns) < written:
                return entry
        return self._read_head(path, seconds)

    def _read_head(self, path: Path, seconds: int) -> IndexEntry:
        from perun.profile.format.head import decode

        with self._files.opened(path, self.limit) as file:
            regions = decode(tree.pieces(file, self.limit), str(path), origin=False)
        return IndexEntry(seconds, "", path.name, ProfileHeader.of(regions))


def _numbered(stem: str) -> Iterator[str]:
    """The names of files that are tried, one after the other."""
    yield stem + SUFFIX
    for number in itertools.count(1):
        yield f"{stem}({number}){SUFFIX}"


def _hashed(pieces: Iterable[bytes], sha1: hashlib._Hash) -> Iterator[bytes]:
    """The pieces, each of which goes through the SHA-1."""
    for piece in pieces:
        sha1.update(piece)
        yield piece


@contextmanager
def _naming_file(path: Path) -> Iterator[None]:
    """Turn the error of a file that cannot be read into an error of the store, which names it."""
    try:
        yield
    except FileNotFoundError:
        raise ProfileNotFound(
            f"there is no pending profile {path}", "perun status lists the profiles"
        ) from None
    except OSError as problem:
        raise limits.refused(path, problem) from None


def _stem(name: str) -> str:
    stem = name.removesuffix(SUFFIX)
    # A hidden one would not be seen, or be taken for the unfinished file of a process that was ended.
    if not stem or stem[0] == "." or "/" in stem or "\0" in stem or not _is_utf8(stem):
        raise ProfileError(
            f"{name!r} cannot be the name of a profile",
            "use a name without slashes that does not begin with a dot",
        )
    return stem.encode()[:MAX_NAME_BYTES].decode(errors="ignore")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _path_checksum(path: str) -> str:
    return tree.sha1(os.fsencode(path)).hex()


# Registering profiles in a minor version and taking them out again (manual 13.2.3).
#
# Objects are written first, then the index that names them, once for all of them, then the cache of the
# summaries. A process that dies in between leaves at most objects that nobody names.


class RegisteredEntries(NamedTuple):
    """The entries that are registered now, and those whose path and time were registered before."""

    added: list[IndexEntry]
    duplicates: list[IndexEntry]


def link(store: Store, minor: str, items: Iterable[tuple[Profile, str, float]]) -> RegisteredEntries:
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
        store.profile_summaries.keep({
            checksum: profile_summary_of(profile)
            for checksum, (profile, _, _) in zip(checksums, items, strict=True)
        })  # fmt: skip
    new = set(map(id, added))
    return RegisteredEntries(added, [entry for entry in entries if id(entry) not in new])


def unlink(store: Store, minor: str, entries: Iterable[IndexEntry]) -> None:
    """Take profiles out of the minor version; their objects stay.

    :raises ProfileNotFound: if one of them is not registered; then none is removed.
    """
    with store.lock():
        store.indexes.remove(minor, entries)
        store.summaries.update([minor])


def _entry(profile: Profile, path: str, time: float, checksum: str) -> IndexEntry:
    seconds = min(max(int(time), 0), NEWEST_TIME)
    return IndexEntry(seconds, checksum, path.rpartition("/")[2], ProfileHeader.of(profile))
