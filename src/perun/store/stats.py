"""Statistics that collectors and checks keep per minor version, in `.perun/stats` (manual 3.6.6)."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from perun.core.errors import DamagedStore, ProfileNotFound, UsageError
from perun.store import tree
from perun.store import tree as limits
from perun.store.files import ON_DISK, Files

INDEX = ".index"
_CHUNK = 1 << 18
_INDEX_HINT = "make it anew with: perun stats sync"
_HINT = "remove it; statistics are made again when they are needed"


class Stats:
    """Named files of statistics, each an object of id -> values, and an index of the versions that have any.

    :param root: `.perun/stats`.
    :param lock: the lock of the repository, taken by what writes.
    :param limit: largest accepted size of a file before compression, in bytes.
    :param files: those of the store.
    """

    def __init__(
        self,
        root: Path,
        lock: Callable[[], AbstractContextManager[None]],
        limit: int = limits.DEFAULT,
        files: Files = ON_DISK,
    ) -> None:
        self.root = root
        self._files = files
        self._limit = limit
        self._lock = lock

    def path(self, minor: str, name: str) -> Path:
        """The file of statistics, there or not.

        :raises UsageError: if `name` is not a plain file name.
        """
        if not name or "/" in name or "\0" in name or name.startswith("."):
            raise UsageError(f"{name!r} cannot be the name of statistics", "give a file name without slashes")
        return self.folder(minor) / name

    def folder(self, minor: str) -> Path:
        """The folder of the minor version, there or not.

        :raises DamagedStore: if it is a link: files elsewhere would be read, written and deleted.
        """
        folder = tree.minor_path(self.root, minor)
        if folder.is_symlink():
            raise DamagedStore(f"{folder} is a link, and no folder of statistics", "remove the link")
        return folder

    def versions(self) -> list[tuple[str, str]]:
        """The minor versions of the index with their dates, newest first.

        :raises DamagedStore: if the index is damaged.
        """
        path = self.root / INDEX
        data = read_json(path, list, _INDEX_HINT, self._limit, self._files)
        for item in data or ():
            if not (isinstance(item, list) and len(item) == 2 and all(isinstance(one, str) for one in item)):
                message = f"{path} is not a list of versions and dates: {str(item)[:80]}"
                raise DamagedStore(message, _INDEX_HINT)
        return [(minor, date) for minor, date in data or ()]

    def names(self, minor: str) -> list[str]:
        """The names of the statistics of the minor version, sorted."""
        names = tree.listing(self.folder(minor), self._files)
        return sorted(name for name in names if not name.startswith("."))

    def get(self, minor: str, name: str) -> dict[str, Any]:
        """The statistics: id -> values.

        :raises ProfileNotFound: if there are none; :raises DamagedStore: if the file is damaged.
        """
        path = self.path(minor, name)
        data: dict[str, Any] | None = read_json(path, dict, _HINT, self._limit, self._files)
        if data is None:
            raise ProfileNotFound(
                f"there are no statistics {name} of {minor}", "perun stats list-files lists all"
            )
        return data

    def add(self, minor: str, date: str, name: str, values: Mapping[str, Any]) -> Path:
        """Store the values under their ids, replacing those of the same ids; the file.

        :param date: of the minor version, `YYYY-MM-DD HH:MM:SS`.
        """
        path = self.path(minor, name)
        with self._lock():
            versions = dict(self.versions())  # a damaged index is refused before anything is written
            known: dict[str, Any] = read_json(path, dict, _HINT, self._limit, self._files) or {}
            known.update(values)
            write_json(path, known, self._files)
            if versions.get(minor) != date:
                versions[minor] = date
                self._write_index(versions)
        return path

    def delete(self, minor: str, name: str, keep_folder: bool = False) -> None:
        """Remove one file of statistics, and the folder of the version if that is empty then.

        :raises ProfileNotFound: if there is none.
        """
        path = self.path(minor, name)
        with self._lock():
            self.versions()  # a damaged index is refused before anything is removed
            try:
                self._files.remove(path)
            except FileNotFoundError:
                raise ProfileNotFound(f"there are no statistics {name} of {minor}") from None
            if not keep_folder or not self._files.is_folder(self.folder(minor)):
                self._drop_if_empty(minor)

    def delete_minor(self, minor: str, keep_folder: bool = False) -> None:
        """Remove all statistics of the minor version.

        :raises ProfileNotFound: if it has none.
        """
        folder = self.folder(minor)
        with self._lock():
            if not self._files.is_folder(folder):
                raise ProfileNotFound(f"there are no statistics of {minor}")
            self.versions()
            self._refuse_folders(folder)
            for name in tree.listing(folder, self._files):
                self._files.remove(folder / name)
            if not keep_folder or not self._files.is_folder(self.folder(minor)):
                self._drop_if_empty(minor)

    def delete_all(self, keep_folders: bool = False) -> None:
        """Remove the statistics of all minor versions; files that are none of these stay."""
        with self._lock():
            self.versions()
            found = self.found()
            for minor in found:
                self._refuse_folders(self.folder(minor))
            for minor in found:
                self.delete_minor(minor, keep_folders)

    def size(self, minor: str, name: str) -> int:
        """Bytes that the file of statistics takes on the disk.

        :raises ProfileNotFound: if there is none.
        """
        try:
            return self._files.state(self.path(minor, name)).st_size
        except FileNotFoundError:
            raise ProfileNotFound(f"there are no statistics {name} of {minor}") from None

    def foreign_files(self, is_kept: Callable[[str], bool]) -> list[Path]:
        """What is in the folder but cannot be statistics, sorted.

        That are files beside the folders of versions, folders of versions that are not kept, and in those of
        kept ones whatever is no file of compressed JSON.

        :param is_kept: whether statistics of a minor version of that name stay.
        """
        found = []
        for outer in self._within(self.root):
            inside = self._within(outer) if self._files.is_folder(outer) else []
            versions = [path for path in inside if tree.is_minor_version(outer.name + path.name)]
            if len(outer.name) != 2 or not versions:
                found += [] if outer.name == INDEX or self._is_empty_folder(outer) else [outer]
                continue
            found += [path for path in inside if path not in versions]
            for path in versions:
                if not self._files.is_folder(path) or not is_kept(outer.name + path.name):
                    found.append(path)
                else:
                    found += [one for one in self._within(path) if not self._is_statistics(one)]
        return found

    def _within(self, folder: Path) -> list[Path]:
        return [folder / name for name in sorted(tree.listing(folder, self._files))]

    def clean(
        self,
        date: Callable[[str], str | None],
        *,
        keep_foreign: bool = False,
        keep_empty: bool = False,
        keep_unknown: bool = True,
    ) -> list[Path]:
        """Remove what cannot be statistics and empty folders, and make the index anew; what was removed.

        :param date: as of :meth:`sync`. :param keep_unknown: keep statistics of versions without a date.
        """
        is_kept = (lambda _: True) if keep_unknown else (lambda minor: date(minor) is not None)
        removed: list[Path] = []
        with self._lock():
            for path in [] if keep_foreign else self.foreign_files(is_kept):
                self._remove_all(path)
                removed.append(path)
            if not keep_empty:
                removed += self._remove_empty_folders()
            self.sync(date)
        return removed

    def _remove_empty_folders(self) -> list[Path]:
        removed = []
        outer = self._within(self.root)
        inner = [path for one in outer if self._files.is_folder(one) for path in self._within(one)]
        for folder in (*inner, *outer):
            if self._is_empty_folder(folder):
                self._files.remove_folder(folder)
                removed.append(folder)
        return removed

    def _remove_all(self, path: Path) -> None:
        """Remove the file, or the folder with all below it."""
        if not self._files.is_folder(path):
            self._files.remove(path)
            return
        for one in self._within(path):
            self._remove_all(one)
        self._files.remove_folder(path)

    def found(self) -> list[str]:
        """The minor versions that have a folder, whatever the index says, sorted."""
        names = [name for name in tree.names(self.root, self._files) if tree.is_minor_version(name)]
        return [name for name in names if self._files.is_folder(self.folder(name))]

    def sync(self, date: Callable[[str], str | None]) -> None:
        """Make the index anew from the folders that are there.

        :param date: the date of a minor version; None if it is not known: then what the index says stays.
        """
        with self._lock():
            known: dict[str, str] = {}
            with suppress(DamagedStore):
                known = dict(self.versions())
            self._write_index({minor: date(minor) or known.get(minor, "") for minor in self.found()})

    def _drop_if_empty(self, minor: str) -> None:
        folder = self.folder(minor)
        if tree.listing(folder, self._files):
            return
        self._files.remove_folder(folder)
        if not tree.listing(folder.parent, self._files):
            self._files.remove_folder(folder.parent)
        versions = dict(self.versions())
        if versions.pop(minor, None) is not None:
            self._write_index(versions)

    def _write_index(self, dates: Mapping[str, str]) -> None:
        newest_first = sorted(dates.items(), key=lambda item: (item[1], item[0]), reverse=True)
        write_json(self.root / INDEX, [list(item) for item in newest_first], self._files)

    def _refuse_folders(self, folder: Path) -> None:
        for path in self._within(folder):
            if self._files.is_folder(path):
                raise UsageError(f"{path} is no statistics", "remove it first: perun stats clean")

    def _is_empty_folder(self, path: Path) -> bool:
        return self._files.is_folder(path) and not tree.listing(path, self._files)

    def _is_statistics(self, path: Path) -> bool:
        if path.name.startswith("."):
            return False
        size, first, last = 0, b"", b""
        try:
            with self._files.opened(path, self._limit) as file:
                for piece in inflated(file, self._limit):
                    first = first or piece.lstrip()[:1]
                    last = piece.rstrip()[-1:] or last
                    size += len(piece)
            if size > limits.READ_WHOLE:
                # One such file may fill the memory, so it is not decoded, and is kept if it may be an object.
                return first + last == b"{}"
            return read_json(path, dict, _HINT, self._limit, self._files) is not None
        except (OSError, zlib.error, ValueError, DamagedStore):
            return False


def read_json(path: Path, kind: type, hint: str, limit: int = limits.DEFAULT, files: Files = ON_DISK) -> Any:
    """What the JSON compressed in a file holds; None if there is no file.

    :param kind: the type it must have: dict or list.
    :param limit: of its size before compression, in bytes.
    :raises DamagedStore: if it is anything else.
    """
    try:
        with files.opened(path, limit) as file:
            value = json.loads(_joined(inflated(file, limit)))
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise limits.refused(path, problem) from None
    except (zlib.error, ValueError, RecursionError) as problem:
        raise DamagedStore(f"{path} is not compressed JSON: {problem}", hint) from None
    if not isinstance(value, kind):
        raise DamagedStore(f"{path} is not a JSON {kind.__name__}", hint)
    return value


def inflate(data: bytes, limit: int = limits.DEFAULT) -> bytes:
    """What zlib compressed to `data`; errors as :func:`inflated`."""
    return _joined(inflated(io.BytesIO(data), limit))


def _joined(pieces: Iterable[bytes]) -> bytes:
    buffer = io.BytesIO()  # hands out what it holds without a copy
    buffer.writelines(pieces)
    return buffer.getvalue()


def inflated(file: BinaryIO, limit: int) -> Iterator[bytes]:
    """What zlib compressed to the content of the file, piece by piece.

    :raises zlib.error: if it is damaged. :raises ValueError: if it is cut short, or too large.
    """
    stream = zlib.decompressobj()
    size = 0
    while not stream.eof:
        data = stream.unconsumed_tail or file.read(_CHUNK)
        piece = stream.decompress(data, _CHUNK)
        size += len(piece)
        if size > limit:
            raise ValueError(f"it holds more than {limit} bytes ({limits.KEY})")
        if not piece and not data and not stream.eof:
            raise ValueError("it is cut short")
        yield piece


def deflate(content: bytes, source: str, limit: int = limits.DEFAULT) -> bytes:
    """`content` compressed.

    :raises UsageError: names `source`, where it is larger than :func:`inflate` reads.
    """
    if len(content) > limit:
        raise UsageError(f"{source} would hold {len(content)} bytes, more than {limit}", "split it up")
    return zlib.compress(content)


def write_json(path: Path, value: Any, files: Files = ON_DISK) -> None:
    """Make the file hold the value, as :func:`read_json` reads it."""
    files.write(path, deflate(json.dumps(value).encode(), str(path)))
