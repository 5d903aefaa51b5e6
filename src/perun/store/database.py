"""The files of a store in a database: rows that name them, and blocks of their bytes.

A file is written by one transaction, so nothing is ever half there, and a copy that is made by the means of
the database is whole. Only what a store must not lose is there: caches, logs and temporary files stay in
`.perun`.

The table `perun_store` has the format, and the number of the last change, which is the time (ns) as long as
the clock goes forward. A row of `perun_files` is a file: the number of the change that made its content, its
size, its modification time, the number of its last change. `perun_blocks` has the bytes of a content, from a
place on.
"""

from __future__ import annotations

import errno
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from perun.core.atomic import NewFile
from perun.core.regular import TooLarge
from perun.store.connections import Connection
from perun.store.files import DiskFiles, Draft, Files, FileState
from perun.store.unpacking import BlockRef

if TYPE_CHECKING:
    from perun.store.lock import Lock


# The content of a file of a database (:mod:`perun.store.database`), block by block.

BLOCK: Final = 1 << 20
"""Bytes of a block at most."""
_IN_MEMORY: Final = 16 << 20


class UnfinishedFile(tempfile.SpooledTemporaryFile[bytes]):
    """What a file is to hold. :ivar time: its modification time (ns), once that is known."""

    time: int | None = None


def unfinished() -> Any:
    """A file that is written, on the disk once it is large."""
    return UnfinishedFile(_IN_MEMORY)


class DatabaseBlocks(BlockRef):
    """A content, of which one block at a time is in memory."""

    def __init__(self, connection: Connection, content: int, size: int, source: str) -> None:
        super().__init__(size)
        self._connection = connection
        self._content = content
        self._source = source
        self._start = 0
        self._block = memoryview(b"")

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer of bytes
        """As files do it.

        :raises OSError: if the content was replaced or removed meanwhile.
        """
        if self._at >= self._size:
            return 0
        if not self._start <= self._at < self._start + len(self._block):
            self._load()
        piece = self._block[self._at - self._start :][: len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _load(self) -> None:
        asked = (
            "SELECT start, data FROM perun_blocks WHERE content = ? AND start <= ?"
            " ORDER BY start DESC LIMIT 1"
        )
        rows = self._connection.execute(asked, self._content, self._at)
        if not rows or self._at >= rows[0][0] + len(rows[0][1]):
            raise OSError(errno.ESTALE, "it was replaced or removed while it was read", self._source)
        self._start, self._block = rows[0][0], memoryview(rows[0][1])


def blocks_of(file: UnfinishedFile) -> Iterator[tuple[int, bytes]]:
    """The content in blocks, each with its place."""
    file.seek(0)
    start = 0
    while data := file.read(BLOCK):
        yield start, data
        start += len(data)


def joined(rows: list[tuple[Any, ...]]) -> bytes:
    """The content of rows that end with a block each, None where there is none."""
    return b"".join(data for _, _, data in rows if data is not None)


KEPT: Final = ("objects", "jobs", "stats", "sums")
"""The folders of `.perun` that are in the database."""
_AT_ONCE: Final = 8 << 20
"""Bytes up to which a file is read as a whole, by one statement."""
_LARGEST: Final = 1 << 63

_INSERT_FILE: Final = (
    "INSERT INTO perun_files (folder, name, content, size, modified, changed) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (folder, name) DO UPDATE SET content = excluded.content, size = excluded.size,"
    " modified = excluded.modified, changed = excluded.changed"
)
_INSERT_BLOCK: Final = "INSERT INTO perun_blocks (content, start, data) VALUES (?, ?, ?)"
_NEXT: Final = "UPDATE perun_store SET counter = CASE WHEN counter < ? THEN ? ELSE counter + 1 END"


class DatabaseFiles(Files):
    """The files of the folders :data:`KEPT`; all others are on the disk.

    :param root: the folder `.perun`.
    """

    def __init__(self, root: Path, connection: Connection) -> None:
        self._root = root
        self._connection = connection
        self._disk = DiskFiles(root)
        self._roots = tuple({f"{os.path.abspath(root)}/", f"{os.path.realpath(root)}/"})

    def _key(self, path: Path | str) -> tuple[str, str] | None:
        """Folder and name of a file of the database; None if the path is none."""
        text = os.path.abspath(path)
        for root in self._roots:
            if text.startswith(root):
                key = text[len(root) :]
                if key.partition("/")[0] in KEPT:
                    folder, _, name = key.rpartition("/")
                    return folder, name
        return None

    def holds(self, path: Path | str) -> bool:
        """Whether it is a path of the database, there or not."""
        return self._key(path) is not None

    def opened(self, path: Path | str, limit: int) -> BinaryIO:
        """As the interface describes it."""
        key = self._key(path)
        if key is None:
            return self._disk.opened(path, limit)
        asked = (
            "SELECT f.size, f.content, b.data FROM perun_files f LEFT JOIN perun_blocks b"
            " ON b.content = f.content AND (b.start = 0 OR f.size <= ?)"
            " WHERE f.folder = ? AND f.name = ? ORDER BY b.start"
        )
        rows = self._asked(path, asked, min(limit, _AT_ONCE), *key)
        size, content, _ = rows[0]
        if size > limit:
            raise _too_large(path, size, limit)
        if size <= _AT_ONCE:
            return io.BytesIO(joined(rows))
        return io.BufferedReader(DatabaseBlocks(self._connection, content, size, str(path)))

    def read(self, path: Path | str, limit: int) -> bytes:
        """As the interface describes it."""
        key = self._key(path)
        if key is None:
            return self._disk.read(path, limit)
        asked = (
            "SELECT f.size, f.content, b.data FROM perun_files f LEFT JOIN perun_blocks b"
            " ON b.content = f.content AND f.size <= ? WHERE f.folder = ? AND f.name = ? ORDER BY b.start"
        )
        rows = self._asked(path, asked, limit, *key)
        if rows[0][0] > limit:
            raise _too_large(path, rows[0][0], limit)
        return joined(rows)

    def state(self, path: Path | str) -> FileState | os.stat_result:
        """As the interface describes it."""
        key = self._key(path)
        if key is None:
            return self._disk.state(path)
        asked = "SELECT modified, changed, size FROM perun_files WHERE folder = ? AND name = ?"
        return FileState(*self._asked(path, asked, *key)[0])

    def states(self, folder: Path | str, names: Iterable[str]) -> Iterator[FileState | os.stat_result | None]:
        """As the interface describes it; all that is below the folder is asked for at once."""
        key = self._key(folder)
        if key is None:
            return self._disk.states(folder, names)
        own = "/".join(filter(None, key))
        asked = (
            "SELECT folder, name, modified, changed, size FROM perun_files"
            " WHERE folder = ? OR (folder > ? AND folder < ?)"
        )
        rows = self._connection.execute(asked, own, *_below(own)) if _is_storable(own) else []
        known = {f"{of}/{name}"[len(own) + 1 :]: FileState(*state) for of, name, *state in rows}
        return map(known.get, names)

    def exists(self, path: Path | str) -> bool:
        """As the interface describes it."""
        if self._key(path) is None:
            return self._disk.exists(path)
        return self.is_file(path) or self.is_folder(path)

    def is_file(self, path: Path | str) -> bool:
        """As the interface describes it."""
        key = self._key(path)
        if key is None:
            return self._disk.is_file(path)
        asked = "SELECT 1 FROM perun_files WHERE folder = ? AND name = ?"
        return _is_storable(*key) and bool(self._connection.execute(asked, *key))

    def is_folder(self, path: Path | str) -> bool:
        """As the interface describes it."""
        key = self._key(path)
        if key is None:
            return self._disk.is_folder(path)
        folder = "/".join(filter(None, key))
        asked = "SELECT 1 FROM perun_files WHERE folder = ? OR (folder > ? AND folder < ?) LIMIT 1"
        return _is_storable(folder) and bool(self._connection.execute(asked, folder, *_below(folder)))

    def listing(self, folder: Path | str) -> list[str]:
        """As the interface describes it."""
        key = self._key(folder)
        if key is None:
            return self._disk.listing(folder)
        name = "/".join(filter(None, key))
        if not _is_storable(name):
            return []
        return self._names(name) + self._folders(name)

    def _names(self, folder: str) -> list[str]:
        rows = self._connection.execute("SELECT name FROM perun_files WHERE folder = ?", folder)
        return [name for (name,) in rows]

    def _folders(self, folder: str) -> list[str]:
        asked = "SELECT DISTINCT folder FROM perun_files WHERE folder > ? AND folder < ?"
        rows = self._connection.execute(asked, *_below(folder))
        return list({one[len(folder) + 1 :].partition("/")[0] for (one,) in rows})

    def beginnings(
        self, folder: Path | str, names: Iterable[str], length: int
    ) -> Iterator[tuple[str, bytes]]:
        """As the interface describes it."""
        key = self._key(folder)
        if key is None:
            yield from self._disk.beginnings(folder, names, length)
            return
        asked = (
            "SELECT f.name, substr(b.data, 1, ?) FROM perun_files f JOIN perun_blocks b"
            " ON b.content = f.content AND b.start = 0 WHERE f.folder = ?"
        )
        found = dict(self._connection.execute(asked, length, "/".join(filter(None, key))))
        for name in names:
            yield name, bytes(found.get(name, b""))

    @contextmanager
    def writing(self, path: Path) -> Iterator[BinaryIO]:
        """As the interface describes it."""
        key = self._key(path)
        if key is None:
            with self._disk.writing(path) as disk_file:
                yield disk_file
            return
        with unfinished() as file:
            yield file
            self._put(path, key, file, getattr(file, "time", None))

    def write_many(self, files: Iterable[NewFile], folder: Path) -> None:
        """As the interface describes it, by one transaction."""
        with self._connection.transaction():
            for path, pieces, modified in files:
                with self.writing(Path(path)) as file:
                    file.writelines(pieces)
                if modified is not None:
                    with suppress(OverflowError):
                        self.set_time(path, modified)

    def time_of(self, file: BinaryIO) -> int:
        """As the interface describes it."""
        if not isinstance(file, UnfinishedFile):
            return self._disk.time_of(file)
        if file.time is None:
            file.time = self._connection.now()
        return file.time

    @contextmanager
    def drafted(self, folder: Path, pieces: Iterable[bytes]) -> Iterator[Draft]:
        """As the interface describes it."""
        with unfinished() as file:
            file.writelines(pieces)
            yield _DatabaseDraft(self, file, self.time_of(file))

    def append(self, path: Path, data: bytes) -> int:
        """As the interface describes it."""
        key = self._key(path)
        if key is None:
            return self._disk.append(path, data)
        with self._connection.transaction():
            change = self._next()
            asked = "SELECT content, size FROM perun_files WHERE folder = ? AND name = ?"
            rows = self._connection.execute(asked, *key)
            content, size = rows[0] if rows else (change, 0)
            self._connection.execute(_INSERT_BLOCK, content, size, data)
            size += len(data)
            self._connection.execute(_INSERT_FILE, *key, content, size, change, change)
        return int(size)

    def set_time(self, path: Path | str, time: int) -> None:
        """As the interface describes it."""
        key = self._key(path)
        if key is None:
            self._disk.set_time(path, time)
            return
        if not -_LARGEST <= time < _LARGEST:
            raise OverflowError("the time is out of range")
        with self._connection.transaction():
            if not self.is_file(path):
                raise _missing(path)
            change = "UPDATE perun_files SET modified = ?, changed = ? WHERE folder = ? AND name = ?"
            self._connection.execute(change, time, self._next(), *key)

    def remove(self, path: Path) -> None:
        """As the interface describes it."""
        key = self._key(path)
        if key is None:
            self._disk.remove(path)
            return
        with self._connection.transaction():
            asked = "SELECT content FROM perun_files WHERE folder = ? AND name = ?"
            ((content,),) = self._asked(path, asked, *key)
            self._connection.execute("DELETE FROM perun_files WHERE folder = ? AND name = ?", *key)
            self._connection.execute("DELETE FROM perun_blocks WHERE content = ?", content)

    def remove_folder(self, path: Path) -> None:
        """As the interface describes it: it went with its last file."""
        if self._key(path) is None:
            self._disk.remove_folder(path)

    def together(self) -> AbstractContextManager[None]:
        """As the interface describes it."""
        return self._connection.transaction()

    def lock(self, timeout: float, after_kill: Callable[[], object]) -> Lock:
        """As the interface describes it."""
        return self._connection.lock(timeout, after_kill)

    def signature(self) -> object:
        """As the interface describes it."""
        return self._connection.execute("SELECT counter FROM perun_store")[0][0]

    def create(self, folders: tuple[str, ...]) -> None:
        """As the interface describes it."""
        self._disk.create(tuple(name for name in folders if name not in KEPT))
        self._connection.create()

    def glimpse(self, folder: Path | str) -> Files:
        """As the interface describes it."""
        return _Glimpse(self._root, self._connection)

    def close(self) -> None:
        """As the interface describes it."""
        self._connection.close()

    def put_new(self, path: Path, file: UnfinishedFile, time: int) -> bool:
        """Make the file, if there is none of that name; whether that was done."""
        key = self._key(path)
        assert key is not None, "only the pending profiles of the store are drafted"
        with self._connection.transaction():
            if self.is_file(path):
                return False
            self._put(path, key, file, time)
        return True

    def _put(self, path: Path, key: tuple[str, str], file: UnfinishedFile, time: int | None) -> None:
        if not all(key) or not _is_storable(*key):
            raise OSError(errno.EINVAL, "no name of a file of the store", str(path))
        with self._connection.transaction():
            change = self._next()
            asked = "SELECT content FROM perun_files WHERE folder = ? AND name = ?"
            before = self._connection.execute(asked, *key)
            size = file.seek(0, io.SEEK_END)
            self._connection.insert(_INSERT_BLOCK, ((change, *block) for block in blocks_of(file)))
            modified = change if time is None else time
            self._connection.execute(_INSERT_FILE, *key, change, size, modified, change)
            for (content,) in before:
                self._connection.execute("DELETE FROM perun_blocks WHERE content = ?", content)

    def _next(self) -> int:
        """The number of a change, larger than all before it. By asking for it, writers take turns."""
        now = self._connection.now()
        self._connection.execute(_NEXT, now, now)
        number: int = self._connection.execute("SELECT counter FROM perun_store")[0][0]
        return number

    def _asked(self, path: Path | str, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a file, of which there is one at least.

        :raises FileNotFoundError: if there is none.
        """
        if not all(_is_storable(one) for one in values if isinstance(one, str)):
            raise _missing(path)
        rows = self._connection.execute(statement, *values)
        if not rows:
            raise _missing(path)
        return rows


class _Glimpse(DatabaseFiles):
    """The state of all files of a folder is asked for when it is listed."""

    def __init__(self, root: Path, connection: Connection) -> None:
        super().__init__(root, connection)
        self._known: dict[str, dict[str, FileState]] = {}

    def _names(self, folder: str) -> list[str]:
        asked = "SELECT name, modified, changed, size FROM perun_files WHERE folder = ?"
        rows = self._connection.execute(asked, folder)
        self._known[folder] = {name: FileState(*state) for name, *state in rows}
        return list(self._known[folder])

    def state(self, path: Path | str) -> FileState | os.stat_result:
        key = self._key(path)
        if key is None or key[0] not in self._known:
            return super().state(path)
        state = self._known[key[0]].get(key[1])
        if state is None:
            raise _missing(path)
        return state


class _DatabaseDraft(Draft):
    def __init__(self, files: DatabaseFiles, file: UnfinishedFile, time: int) -> None:
        self._files = files
        self._file = file
        self.time = time

    def claim(self, path: Path) -> bool:
        return self._files.put_new(path, self._file, self.time)


def _below(folder: str) -> tuple[str, str]:
    """Between what the names of all folders below it are."""
    return f"{folder}/", f"{folder}0"  # the character behind the slash


def _is_storable(*names: str) -> bool:
    """Whether a database takes the names: text that is UTF-8, without a zero byte."""
    try:
        return not any(b"\0" in name.encode() for name in names)
    except UnicodeEncodeError:
        return False


def _missing(path: Path | str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def _too_large(path: Path | str, size: int, limit: int) -> TooLarge:
    return TooLarge(errno.EFBIG, f"it has {size} bytes, more than the limit of {limit}", str(path))
