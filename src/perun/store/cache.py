"""What is made of profiles, so that it need not be made again: one SQLite file that can be deleted any time.

What is kept of a profile has its checksum as the key, so it never goes out of date; what is kept of a version
says which state of its index it is of. A sum of key and content finds what is damaged: that is not there, and
is made of the objects again, as is all where the file is missing, cannot be read, or is of another format.

The journal is the one that is rolled back: a log that is written ahead needs memory which processes share, so
no network file system has it, and readers would have to write to the folder. Nothing is flushed to the disk:
a failure of the power may damage the file, a killed process does not.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args
from weakref import finalize
from zlib import crc32

from perun.core.regular import open_for_writing, open_regular
from perun.store import tree

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

Kind = Literal["facts", "series", "names", "columns", "summaries", "steps", "found"]
T = TypeVar("T")
FILE: Final = "measured.sqlite"
FORMAT: Final = 3
"""To be raised whenever what is kept has another form, or another meaning."""
_TABLES: Final[dict[str, str]] = {
    kind: f"CREATE TABLE {kind} (key TEXT PRIMARY KEY, data BLOB, sum INTEGER) WITHOUT ROWID"
    for kind in get_args(Kind)
}
_SETTINGS: Final = ("synchronous = OFF", "trusted_schema = OFF", "cell_size_check = ON")
"""Nothing that a file brings along is executed."""
_OF_EARLIER_RELEASES: Final = ("facts", "series", "summaries.json")
_OF_OTHER_FORM: Final = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
_WAIT: Final = 1.0
"""Seconds that a command waits for another one that writes, before it goes on without the cache."""
_AT_ONCE: Final = 500
_LARGEST_JOURNAL: Final = 1 << 40
_DAMAGE: Final = {11, 26}
"""What SQLite tells of a file that is damaged, or is no database: SQLITE_CORRUPT and SQLITE_NOTADB."""
_NAMES_ANOTHER_FILE: Final = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
"""The end of a journal that names another file, which SQLite removes when it is done. Perun writes none."""


class Cache:
    """Entries by their kinds and keys. What cannot be written is not kept, and nothing here raises.

    :ivar path: the file. :ivar problem: why it is not used; empty if it is, or there is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem = ""
        self._turn = threading.RLock()
        self._driver: sqlite3.Connection | None = None
        self._process = 0
        self._of_parents: list[sqlite3.Connection] = []
        self._damaged = False

    def get(self, kind: Kind, keys: Iterable[str], decode: Callable[[bytes], T]) -> dict[str, T]:
        """The entries that are there, in the order of the keys.

        :param decode: makes of an entry what was kept; one of which it cannot is not there.
        """
        wanted = list(keys)
        found: dict[str, T] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            some = list(filter(_is_text, wanted[start : start + _AT_ONCE]))
            marks = ",".join("?" * len(some))
            rows = self._read(f"SELECT key, data, sum FROM {kind} WHERE key IN ({marks})", some)
            found.update(_decoded(rows, decode))
        return {key: found[key] for key in wanted if key in found} if len(wanted) > 1 else found

    def all(self, kind: Kind, decode: Callable[[bytes], T]) -> dict[str, T]:
        """All entries of the kind, as :meth:`get`."""
        return dict(_decoded(self._read(f"SELECT key, data, sum FROM {kind}"), decode))

    def put(self, kind: Kind, entries: Mapping[str, bytes], remove: Collection[str] = ()) -> None:
        """Write the entries in place of those that have their keys, and of those that are to be removed: all
        of it or nothing."""
        if not entries and not remove:
            return
        # A name of a file that is no text has no entry.
        rows = [(key, data, _sum(key, data)) for key, data in entries.items() if _is_text(key)]
        with self._turn:
            for _ in range(2):  # again where the file was damaged
                try:
                    driver = self._opened(makes=True)
                    if driver is not None:
                        with _Transaction(driver):
                            gone = [(key,) for key in remove if _is_text(key)]
                            driver.executemany(f"DELETE FROM {kind} WHERE key = ?", gone)
                            driver.executemany(f"INSERT OR REPLACE INTO {kind} VALUES (?, ?, ?)", rows)
                    return
                except _errors() as problem:
                    self._fail(problem)
                    if not self._damaged:
                        return

    def keep_only(self, kind: Kind, keys: Collection[str]) -> None:
        """Remove the entries with other keys."""
        there = {key for (key,) in self._read(f"SELECT key FROM {kind}")}
        self.put(kind, {}, there.difference(keys))

    def clear(self) -> None:
        """Forget all."""
        with self._turn:
            self._close()
            for path in (f"{self.path}-journal", self.path):
                with suppress(OSError):
                    os.unlink(path)
            self.problem, self._damaged = "", False
            self.remove_older()

    def damage(self) -> str:
        """What is wrong with the file; empty if nothing is, if there is none, or it is of another format."""
        said = self._read("PRAGMA quick_check(1)")
        if said and said != [("ok",)]:
            return str(said[0][0])
        for kind in _TABLES:
            for key, data, sum_ in self._read(f"SELECT key, data, sum FROM {kind}"):
                if not _is_sound(key, data, sum_):
                    return f"an entry of its {kind} is damaged"
        return self.problem if self._damaged else ""

    def remove_older(self) -> None:
        """Remove the caches of earlier releases."""
        for name in _OF_EARLIER_RELEASES:
            path = self.path.with_name(name)
            with suppress(OSError):
                if path.is_dir() and not path.is_symlink():
                    for one in tree.listing(path):
                        os.unlink(path / one)
                    path.rmdir()
                else:
                    path.unlink()

    def _read(self, statement: str, values: Sequence[str] = ()) -> list[Any]:
        with self._turn:
            try:
                driver = self._opened(makes=False)
                return [] if driver is None else driver.execute(statement, values).fetchall()
            except _errors() as problem:
                self._fail(problem)
                return []

    def _fail(self, problem: Exception) -> None:
        # What the driver itself cannot read, such as a key that is no text, has no code of SQLite.
        unknown = 0 if isinstance(problem, (OSError, ImportError)) else min(_DAMAGE)
        self._damaged = getattr(problem, "sqlite_errorcode", unknown) & 0xFF in _DAMAGE
        self.problem = str(problem)
        self._close()

    def _close(self) -> None:
        if self._driver is not None:
            self._leave_to_parent()
        if self._driver is not None:
            self._driver.close()
        self._driver = None

    def _leave_to_parent(self) -> None:
        if self._process != os.getpid() and self._driver is not None:
            self._of_parents.append(self._driver)  # never closed here: the parent still uses it
            self._driver = None

    def _opened(self, *, makes: bool) -> sqlite3.Connection | None:
        """The connection; None where there is no file, or none that is used.

        :param makes: whether one is made in place of a missing or a damaged one, or one of another format.
        """
        self._leave_to_parent()
        if self._driver is not None:
            return self._driver
        if self._damaged and makes:
            self.clear()
        if self.problem or (driver := self._connected(makes=makes)) is None:
            return None
        try:
            for setting in _SETTINGS:
                driver.execute(f"PRAGMA {setting}")
            if not (_is_ours(driver) or (makes and self._made(driver))):
                driver.close()
                if not makes:
                    return None
                self.clear()
                return self._opened(makes=True)
        except BaseException:
            driver.close()
            raise
        self._driver, self._process = driver, os.getpid()
        finalize(self, _end, driver, self._process)
        return driver

    def _connected(self, *, makes: bool) -> sqlite3.Connection | None:
        """A connection to the file, of which nothing is known yet."""
        try:
            mode = os.lstat(self.path).st_mode
        except FileNotFoundError:
            if not makes:
                return None
            self.path.parent.mkdir(parents=True, exist_ok=True)
            open_for_writing(self.path, append=True).close()  # with the permissions that the user sets
            mode = os.lstat(self.path).st_mode
        if not stat.S_ISREG(mode):
            self.problem = "it is not a regular file"
        elif _may_remove_others(f"{self.path}-journal"):
            self.problem = "its journal names another file"
        else:
            module = _sqlite()
            made: sqlite3.Connection = module.connect(
                str(self.path), timeout=_WAIT, isolation_level=None, check_same_thread=False
            )
            return made
        return None

    def _made(self, driver: sqlite3.Connection) -> bool:
        """Make the tables, unless there are others; whether they are there now."""
        with _Transaction(driver):
            if not driver.execute("SELECT 1 FROM sqlite_master").fetchall():
                for statement in _TABLES.values():
                    driver.execute(statement)
                driver.execute(f"PRAGMA user_version = {FORMAT}")
                self.remove_older()
        return _is_ours(driver)


class _Transaction:
    """What the block does is done as a whole, or not at all where it raises."""

    def __init__(self, driver: sqlite3.Connection) -> None:
        self._driver = driver

    def __enter__(self) -> None:
        self._driver.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._driver.execute("COMMIT")
        finally:
            if self._driver.in_transaction:
                self._driver.execute("ROLLBACK")


def _end(driver: sqlite3.Connection, process: int) -> None:
    """Close the connection when its cache is gone, or Perun ends; not in a forked process, whose parent uses
    it."""
    if os.getpid() == process:
        driver.close()


def _decoded(rows: Iterable[tuple[str, bytes, int]], decode: Callable[[bytes], T]) -> Iterator[tuple[str, T]]:
    for key, data, sum_ in rows:
        if _is_sound(key, data, sum_):
            try:
                value = decode(data)
            except _OF_OTHER_FORM:
                continue
            yield key, value


NUMBER: Final = (int, float)


def of_types(values: Sequence[object], types: Sequence[type | tuple[type, ...]]) -> None:
    """Make sure of the types of what was decoded: an entry with others is not there.

    :raises TypeError: where one is of another type, or there are more or fewer.
    """
    if len(values) != len(types) or not all(map(isinstance, values, types)):
        raise TypeError(f"{values} are not of the types {types}")


def _is_text(key: str) -> bool:
    return key.isascii() or key.encode(errors="replace").decode() == key


def _sum(key: str, data: bytes) -> int:
    return crc32(data, crc32(key.encode()))


def _is_sound(key: Any, data: Any, sum_: Any) -> bool:
    return isinstance(key, str) and isinstance(data, bytes) and _sum(key, data) == sum_


def _is_ours(driver: sqlite3.Connection) -> bool:
    """Whether it has our tables in this format, and nothing else."""
    tables = driver.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return dict(tables) == _TABLES and driver.execute("PRAGMA user_version").fetchall() == [(FORMAT,)]


def _may_remove_others(journal: str) -> bool:
    with suppress(FileNotFoundError), open_regular(journal, _LARGEST_JOURNAL) as file:
        file.seek(-min(8, file.seek(0, os.SEEK_END)), os.SEEK_END)
        return file.read() == _NAMES_ANOTHER_FILE
    return False


def _sqlite() -> Any:
    """The module that speaks to SQLite: the part of it in C, as the rest takes longer to load than `status`
    takes to answer."""
    try:
        import _sqlite3
    except ImportError:
        import sqlite3

        return sqlite3
    return _sqlite3


def _errors() -> tuple[type[Exception], ...]:
    """What opening, reading and writing the file may raise."""
    try:
        return OSError, ImportError, TypeError, ValueError, _sqlite().Error
    except ImportError:  # a Python without it
        return OSError, ImportError
