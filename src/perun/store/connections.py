"""Databases that a store can be in: SQLite, by Python's own module, and PostgreSQL, by psycopg.

Both are spoken to in the SQL that they share, without a library between: importing SQLAlchemy takes longer
than all that `perun status` does.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlsplit

from perun.core.errors import LockTimeout, PluginError, RemoteError, UsageError
from perun.core.extras import LINE, install_command
from perun.core.wording import without_secrets
from perun.store.lock import Lock

if TYPE_CHECKING:
    import sqlite3

    import psycopg

    Driver = sqlite3.Connection | psycopg.Connection[Any]

OWN: Final = "sqlite"
"""The database of the project itself, in its `.perun`."""
FILE: Final = "store.sqlite"
"""The file of that database."""
EXAMPLES: Final = "sqlite, sqlite:////srv/perf.sqlite, postgresql://host/database"
_WAIT: Final = 60
"""Seconds that a writer waits for others, and who connects for the server."""
_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS perun_store (format INTEGER NOT NULL, counter BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS perun_files (folder {text} NOT NULL, name {text} NOT NULL,"
    " content BIGINT NOT NULL, size BIGINT NOT NULL, modified BIGINT NOT NULL, changed BIGINT NOT NULL,"
    " PRIMARY KEY (folder, name))",
    "CREATE TABLE IF NOT EXISTS perun_blocks (content BIGINT NOT NULL, start BIGINT NOT NULL,"
    " data {blob} NOT NULL, PRIMARY KEY (content, start))",
)
_FORMAT: Final = 1


class Connection(ABC):
    """A connection to a database, which is made when it is needed. Threads take turns.

    A process that was forked gets one of its own.

    :ivar url: the database, without anything secret.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._turn = threading.RLock()
        self._depth = 0
        self._driver: Driver | None = None
        self._process = 0
        self._of_parents: list[Driver] = []
        self._is_store = False

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows that the statement answers; `?` stands for the values.

        :raises RemoteError: if the database cannot be reached, or refuses.
        """
        with self._turn, self._naming():
            return self._execute(self._connected(), statement, values)

    def insert(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Execute the statement for each row of values, which may be large; errors as :meth:`execute`."""
        with self._turn, self._naming():
            driver = self._connected()
            for row in rows:
                self._execute(driver, statement, row)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What the block does is done as a whole, or not at all where it raises; blocks may be nested."""
        with self._turn:
            if self._depth:
                yield
                return
            with self._naming():
                driver = self._connected()
                self._execute(driver, self._begin, ())
            self._depth += 1
            try:
                yield
            except BaseException:
                self._depth -= 1
                self._roll_back(driver)
                raise
            self._depth -= 1
            with self._naming():
                try:
                    self._execute(driver, "COMMIT", ())
                except BaseException:
                    self._roll_back(driver)
                    raise

    def create(self) -> None:
        """Make the tables of a store, if there are none."""
        with self._turn, self._naming():
            driver = self._connected(makes=True)
            self._prepare(driver)
            self._is_store = True
            try:
                with self.transaction():
                    for statement in (self._alone, *_TABLES):
                        self._execute(driver, statement.format(text=self._text, blob=self._blob), ())
                    if not self._execute(driver, "SELECT format FROM perun_store", ()):
                        self._execute(driver, "INSERT INTO perun_store VALUES (?, 0)", (_FORMAT,))
            finally:
                self._is_store = False

    def close(self) -> None:
        """End the connection."""
        with self._turn:
            if self._driver is not None:
                _end(self._driver, self._process)
            self._driver = None

    @abstractmethod
    def now(self) -> int:
        """The time in nanoseconds since 1970, by one clock for all who use the database."""

    @abstractmethod
    def lock(self, timeout: float, after_kill: Callable[[], object]) -> Lock:
        """The lock of whoever writes to the store."""

    _alone = ""
    """Has others that make the tables at the same moment wait."""
    _text: str
    _blob: str
    _begin = "BEGIN"
    _errors: tuple[type[Exception], ...] = ()
    _hint = ""

    @abstractmethod
    def _connect(self, *, makes: bool) -> Driver: ...

    @abstractmethod
    def _execute(self, driver: Any, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]: ...

    def _prepare(self, driver: Any) -> None:  # noqa: B027 - one of them needs none
        """What is done to a database before its tables are made."""

    def _is_lost(self, driver: Any) -> bool:
        return False

    def _connected(self, *, makes: bool = False) -> Any:
        if self._driver is not None and self._process != os.getpid():
            self._of_parents.append(self._driver)  # never closed here: the parent still uses it
            self._driver, self._depth = None, 0
        if self._driver is not None and self._is_lost(self._driver):
            self._driver = None
        if self._driver is None:
            self._driver = self._connect(makes=makes)
            self._process = os.getpid()
            weakref.finalize(self, _end, self._driver, self._process)
        if not makes and not self._is_store:
            self._check(self._driver)
        return self._driver

    def _check(self, driver: Any) -> None:
        try:
            rows = self._execute(driver, "SELECT format FROM perun_store", ())
        except self._errors as problem:
            if self._is_lost(driver) or "perun_store" not in str(problem):
                raise
            rows = []
        if not rows:
            raise RemoteError(f"{self.url} holds no store of Perun yet", "make it with: perun init")
        if rows[0][0] != _FORMAT:
            raise RemoteError(
                f"the store in {self.url} has the format {rows[0][0]}, this Perun knows {_FORMAT}",
                "install a newer Perun",
            )
        self._is_store = True

    def _roll_back(self, driver: Any) -> None:
        try:
            self._execute(driver, "ROLLBACK", ())
        except self._errors:
            self.close()  # with the connection the transaction ends, too

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except self._errors as problem:
            # The first line of what the driver says: others may quote what is stored.
            said = str(problem).strip().splitlines()
            message = said[0] if said else type(problem).__name__
            raise RemoteError(f"{self.url}: {message}", self._hint) from None


def _end(driver: Driver, process: int) -> None:
    """Close the connection, but not that of the parent of a process that was forked."""
    if process == os.getpid():
        driver.close()


class SqliteConnection(Connection):
    """A database in one file. :param path: the file. :param url: as it is shown."""

    _text, _blob, _begin, _alone = "TEXT", "BLOB", "BEGIN IMMEDIATE", "SELECT 1"
    _hint = "see that you may write to the file and its folder, and that the disk is not full"

    def __init__(self, path: Path, url: str) -> None:
        import sqlite3

        super().__init__(url)
        self.path = path
        self._errors = (sqlite3.Error,)

    def now(self) -> int:
        """As the interface describes it."""
        return time.time_ns()

    def lock(self, timeout: float, after_kill: Callable[[], object]) -> Lock:
        """As the interface describes it: beside the database, as several projects may share it."""
        return Lock(self.path.with_name(self.path.name + ".lock"), timeout, after_kill)

    def _connect(self, *, makes: bool) -> sqlite3.Connection:
        import sqlite3

        if not makes and not self.path.exists():
            hint = "make it with: perun init; or bring the file back, if it was moved"
            raise RemoteError(f"the database of the store is not there: {self.path}", hint)
        address = f"file:{quote(str(self.path))}?mode={'rwc' if makes else 'rw'}"
        driver = sqlite3.connect(
            address, timeout=_WAIT, isolation_level=None, check_same_thread=False, uri=True
        )
        # What is committed outlasts a failure of the power; nothing that a file brings along is executed.
        try:
            for setting in ("synchronous = FULL", "trusted_schema = OFF", "cell_size_check = ON"):
                driver.execute(f"PRAGMA {setting}")
        except BaseException:
            driver.close()
            raise
        return driver

    def _prepare(self, driver: sqlite3.Connection) -> None:
        driver.execute("PRAGMA journal_mode = WAL")  # readers and a writer do not wait for each other

    def _execute(
        self, driver: sqlite3.Connection, statement: str, values: Sequence[object]
    ) -> list[tuple[Any, ...]]:
        return driver.execute(statement, values).fetchall()


class PostgresqlConnection(Connection):
    """A database of a PostgreSQL server. :param url: as its library takes it, without a password."""

    _text, _blob = 'TEXT COLLATE "C"', "BYTEA"
    _alone = "SELECT pg_advisory_xact_lock(1885697391)"
    _hint = (
        "see that the server runs, that the database is there and you may use it, and that its password is "
        "in PGPASSWORD or ~/.pgpass"
    )

    def __init__(self, url: str) -> None:
        import psycopg

        super().__init__(url)
        self._errors = (psycopg.Error,)
        self.is_locked = False

    def now(self) -> int:
        """As the interface describes it."""
        asked = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000000 AS BIGINT)"
        found: int = self.execute(asked)[0][0]
        return found

    def lock(self, timeout: float, after_kill: Callable[[], object]) -> Lock:
        """As the interface describes it: one of the server, for all who use the same tables."""
        return _AdvisoryLock(self, timeout)

    def _connect(self, *, makes: bool) -> psycopg.Connection[Any]:
        import psycopg

        if self.is_locked:
            raise RemoteError(
                f"the connection to {self.url} was lost, and the lock of the store with it", "run it again"
            )
        self._is_store = False
        return psycopg.connect(self.url, autocommit=True, **LINE)

    def _is_lost(self, driver: psycopg.Connection[Any]) -> bool:
        return driver.closed

    def _execute(
        self, driver: psycopg.Connection[Any], statement: str, values: Sequence[object]
    ) -> list[tuple[Any, ...]]:
        cursor = driver.execute(statement.replace("?", "%s").encode(), values or None, binary=True)
        return cursor.fetchall() if cursor.description else []


class _AdvisoryLock(Lock):
    """A lock of the server, which goes with the connection, and so with the process."""

    _TRY: Final = "SELECT pg_try_advisory_lock(1885697390, hashtext(current_schema()))"
    _FREE: Final = "SELECT pg_advisory_unlock(1885697390, hashtext(current_schema()))"

    def __init__(self, connection: PostgresqlConnection, timeout: float) -> None:
        super().__init__(Path(connection.url), timeout)
        self._connection = connection

    def _acquire(self) -> None:
        deadline = time.monotonic() + self._timeout
        pause = 0.002
        while not self._connection.execute(self._TRY)[0][0]:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise LockTimeout(
                    f"another process holds the lock of {self._connection.url}; waited {self._timeout:g} s",
                    "wait until it ends, or end it; the lock goes with its connection",
                )
            time.sleep(min(pause, remaining))
            pause = min(pause * 2, 0.05)
        self._connection.is_locked = True

    def _release(self) -> None:
        try:
            self._connection.execute(self._FREE)
        except RemoteError:
            self._connection.close()  # the lock goes with the connection
        finally:
            self._connection.is_locked = False


def checked_url(url: str) -> str:
    """The URL, if it can be that of a store.

    :raises UsageError: if it is of no known kind, names no place, or has a password in it: it is stored in
        the configuration, and shown.
    """
    if without_secrets(url) != url:
        raise UsageError(
            "the URL of the store has a password in it, which would be stored and shown",
            "leave it out: PostgreSQL finds it in PGPASSWORD or ~/.pgpass",
        )
    try:
        parts = urlsplit(url)
    except ValueError as problem:
        raise UsageError(f"{url!r} is no URL: {problem}", f"e.g. {EXAMPLES}") from None
    is_file = parts.scheme == "sqlite" and not parts.netloc and not parts.query and len(parts.path) > 1
    if url == OWN or is_file or (parts.scheme == "postgresql" and len(parts.path) > 1):
        return url
    raise UsageError(f"{url!r} is no URL of a store", f"e.g. {EXAMPLES}")


def absolute_url(url: str, folder: Path) -> str:
    """The checked URL; one of a file that is relative, from `folder` on.

    :raises UsageError: as :func:`checked_url`.
    """
    parts = urlsplit(checked_url(url))
    if url == OWN or parts.scheme != "sqlite":
        return url
    return f"sqlite:///{quote(os.path.normpath(folder / unquote(parts.path[1:])))}"


def connected(url: str, perun_folder: Path) -> Connection:
    """The database of the URL. Nothing is asked of it yet.

    :param perun_folder: `.perun`, where the database `sqlite` is, and from which relative paths lead.
    :raises UsageError: as :func:`checked_url`. :raises PluginError: if what it needs is not installed.
    """
    parts = urlsplit(checked_url(url))
    try:
        if url == OWN:
            path = perun_folder / FILE
            return SqliteConnection(path, str(path))
        if parts.scheme == "sqlite":
            return SqliteConnection(perun_folder / unquote(parts.path[1:]), url)
        return PostgresqlConnection(url)
    except ModuleNotFoundError as problem:
        raise PluginError(
            f"a store in this database needs {problem.name}", f"install it: {install_command('sql')}"
        ) from None
