"""Pending profiles: files of `.perun/jobs` that no minor version has yet (manual 13.2)."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perun import atomic
from perun.errors import DamagedStore, ProfileError, ProfileNotFound
from perun.profile.helpers import MAX_NAME_BYTES, ProfileInfo
from perun.store import tree
from perun.store.index_file import NEWEST_TIME, IndexEntry, parse, serialize

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.store.sums import Sums

SUFFIX = ".perf"
CACHE = ".index"
_Infos = list[ProfileInfo]


class DamagedProfile(NamedTuple):
    """A file among the pending profiles that is none, and why."""

    path: Path
    message: str


class Scan(NamedTuple):
    """The pending profiles, and the files that only look like some; each sorted by name."""

    profiles: list[ProfileInfo]
    damaged: list[DamagedProfile]


class Pending:
    """The pending profiles of one repository.

    The head of each profile is kept in `.perun/jobs/.index`, in the layout of an index. That is a cache:
    an entry holds only where the file was last touched before the cache was written; whatever else is
    there is read anew. Only writers write it.

    :param root: `.perun/jobs`.
    :param lock: the lock of the repository, taken by what writes.
    :param sums: the file of their checksums.
    """

    def __init__(
        self, root: Path, lock: Callable[[], AbstractContextManager[None]], sums: Path
    ) -> None:
        self.root = root
        self._sums_path = sums
        self._lock = lock

    @cached_property
    def sums(self) -> Sums:
        """The checksums of the profiles that Perun itself wrote."""
        from perun.store.sums import Sums

        return Sums(self._sums_path, lambda name: os.path.lexists(self.root / name))

    def list(self) -> _Infos:
        """The pending profiles, sorted by name; damaged ones are left out, see :meth:`scan`."""
        return self.scan().profiles

    def scan(self) -> Scan:
        """The pending profiles and the damaged ones."""
        cached = self._cached()
        found = Scan([], [])
        for name in sorted(tree.listing(self.root)):
            if not name.endswith(SUFFIX):
                continue
            path = self.root / name
            try:
                found.profiles.append(_entry(path, cached.get(name)).info(str(path)))
            except FileNotFoundError:
                continue  # taken away meanwhile
            except OSError as problem:
                found.damaged.append(DamagedProfile(path, tree.unreadable(path, problem).message))
            except ProfileError as problem:
                found.damaged.append(DamagedProfile(path, problem.message))
        return found

    def save(self, profile: Profile, name: str, announce: Callable[[str], None] | None = None) -> Path:
        """Write the profile to `name.perf`, or `name(1).perf` and so on where that is taken.

        A name too long for the file system is cut.

        :param announce: told the SHA-1 of the file, before there is any.
        :returns: the file.
        :raises ProfileError: where `name` cannot be the name of a file.
        """
        from perun.profile.formats import dumps_pending

        stem = _stem(name)
        data = dumps_pending(profile)
        if announce is not None:
            announce(tree.sha1(data).hex())
        with self._lock():
            path = self._create(stem, data)
            self._refresh()
        return path

    def find(self, sha1: str, known: Container[str] = ()) -> Path | None:
        """The pending profile whose file has this SHA-1, else None; those of `known` names are left out."""
        for name in sorted(tree.listing(self.root)):
            if name.endswith(SUFFIX) and name not in known:
                data = tree.read(self.root / name)
                if data is not None and tree.sha1(data).hex() == sha1:
                    return self.root / name
        return None

    def load(self, path: Path | str) -> Profile:
        """The pending profile; `path` is its file, or its base name alone.

        :raises ProfileNotFound: where there is no such file; :raises ProfileError: where it is damaged.
        """
        from perun.profile.formats import loads

        path = self.root / path
        data = tree.read(path)
        if data is None:
            raise ProfileNotFound(f"there is no pending profile {path}", "perun status lists what there is")
        return loads(data, str(path))

    def remove(self, paths: Iterable[Path | str]) -> None:
        """Remove pending profiles, damaged ones too; files or base names.

        :raises ProfileNotFound: where one is not pending; then none is removed.
        """
        with self._lock():
            chosen = [self.root / path for path in paths]
            for path in chosen:
                if path.parent.resolve() != self.root.resolve() or not path.name.endswith(SUFFIX):
                    raise ProfileNotFound(f"{path} is not a pending profile", f"those lie in {self.root}")
                if not os.path.lexists(path):
                    raise ProfileNotFound(f"there is no pending profile {path}")
            for path in chosen:
                path.unlink(missing_ok=True)
            self._refresh()

    def is_cache_valid(self) -> bool:
        """Whether the cache of heads can be read, and what it would be used for is right."""
        try:
            data = tree.read(self.root / CACHE)
            parse(data or b"", str(self.root / CACHE))
        except DamagedStore:
            return False
        for name, cached in self._cached().items():
            with suppress(OSError, ProfileError):
                entry = _entry(self.root / name, cached)
                if entry != _read_head(self.root / name, entry.time)._replace(checksum=entry.checksum):
                    return False
        return True

    def refresh(self) -> None:
        """Write the cache of heads anew, from the files themselves."""
        with self._lock():
            (self.root / CACHE).unlink(missing_ok=True)
            self._refresh()

    def _cached(self) -> dict[str, tuple[IndexEntry, int]]:
        # Entries by name, each with the time (ns) when the cache was written.
        path = self.root / CACHE
        try:
            with open(path, "rb", opener=tree.at_once) as file:
                written = os.fstat(file.fileno()).st_mtime_ns
                entries, certain = parse(file.read() or b"", str(path))
        except (OSError, DamagedStore):
            return {}
        # Without its checksum it was written by an old release, whose layout is a guess.
        return {entry.path: (entry, written) for entry in entries} if certain else {}

    def _refresh(self) -> None:
        entries = [
            IndexEntry(
                info.time, _path_checksum(info.realpath), info.source, info.type,
                info.cmd, info.args, info.workload, info.collector, info.postprocessors,
            )
            for info in self.list()
            if 0 <= info.time <= NEWEST_TIME and _is_utf8(info.source)
        ]  # fmt: skip
        # Without it the files are read anew: no reason to fail after what really counts is done.
        with suppress(OSError):
            atomic.write(self.root / CACHE, serialize(entries))

    def _create(self, stem: str, data: bytes) -> Path:
        # Old releases and users with `cp` take no lock, so that only the file system can say who was first.
        # The name is not known before it is taken: the checksum is noted for the one that is tried.
        temporary = self.root / f"{atomic.temporary_name()}.new"
        atomic.write(temporary, data)
        try:
            written = temporary.stat().st_mtime_ns
            taken = set(tree.listing(self.root))
            number = 0
            while True:
                name = stem + (f"({number})" if number else "") + SUFFIX
                number += 1
                if name not in taken:
                    self.sums.note(name, data, written)
                    if _claim(temporary, self.root / name):
                        return self.root / name
        finally:
            temporary.unlink(missing_ok=True)


def _entry(path: Path, cached: tuple[IndexEntry, int] | None) -> IndexEntry:
    status = os.stat(path)
    seconds = status.st_mtime_ns // 10**9
    if cached is not None:
        entry, written = cached
        # The change time cannot be set back, so that a file moved here with an old date is noticed too.
        if entry.time == seconds and max(status.st_mtime_ns, status.st_ctime_ns) < written:
            return entry
    return _read_head(path, seconds)


def _claim(temporary: Path, path: Path) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError:  # no hard links here
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            return False
        os.replace(temporary, path)
    return True


def _read_head(path: Path, seconds: int) -> IndexEntry:
    from perun.profile.helpers import header_of

    data = tree.read(path)
    if data is None:
        raise FileNotFoundError(path)
    head = header_of(data, str(path))
    return IndexEntry(seconds, "", path.name, *head[:6])


def _stem(name: str) -> str:
    stem = name.removesuffix(SUFFIX)
    # A hidden one would not be seen, or be taken for the unfinished file of a process that was ended.
    if not stem or stem[0] == "." or "/" in stem or "\0" in stem or not _is_utf8(stem):
        raise ProfileError(
            f"{name!r} cannot be the name of a profile", "give one without slashes and a dot in front"
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
