"""A remote in a database: `sqlite:///perf.db`, `postgresql://host/database`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from perun.core.errors import RemoteError
from perun.core.extras import LINE
from perun.store.remote.contract import (
    AGAIN,
    MAX_PIECE,
    PieceInfo,
    Refusal,
    Remote,
    checked,
    is_key,
    refusal_in,
)

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Engine, Select, Table


# What databases answer, in words of who uses the remote.
#
# The first line of what the driver says is all that is looked at and told: the others are the statement, with
# what is stored.

_ROOM: Final = 300
_CUT: Final = re.compile(
    r"closed the connection|closed unexpectedly|connection (is|was) (closed|lost)|terminating connection"
)


_ANSWERS: Final = (
    Refusal.of(
        r"No space left|disk is full|[Dd]isk quota",
        "{key} cannot be {done}: the disk of the database is full",
        "make room there, and push again: what was sent is not sent again",
    ),
    Refusal.of(
        r"authentication failed|no password supplied|no pg_hba\.conf entry",
        "the server does not accept the credentials",
        "PostgreSQL finds the password in PGPASSWORD or ~/.pgpass, the user in the URL (?user=) or PGUSER",
    ),
    Refusal.of(
        r"role \".*\" does not exist|database \".*\" does not exist",
        "{said}",
        "ask who runs the server, or correct the URL: perun remote remove, perun remote add",
    ),
    Refusal(
        _CUT,
        "{key} cannot be {done}: the line to the server was cut",
        AGAIN,
    ),
    Refusal.of(
        r"certificate|SSL error|not support SSL",
        "this machine does not trust the certificate of the server, or the server has none",
        "see that the clock of this machine is right; PostgreSQL's sslmode and sslrootcert can be in the URL",
    ),
    Refusal.of(
        r"Connection refused|failed to resolve host|could not translate host|Name or service not known|"
        r"No route to host|[Nn]etwork is unreachable|timeout expired|timed out|No such file or directory",
        "the server cannot be reached",
        "see that it runs, that the network is there, and that the URL is right",
    ),
    Refusal.of(
        r"permission denied|readonly database|read-only transaction|no schema has been selected to create",
        "{key} cannot be {done}: you may not do that there",
        "ask who owns the database; `perun pull` needs to read only",
    ),
    Refusal.of(
        r"unable to open database file",
        "{key} cannot be {done}: {said}",
        "see that its folder is there, and that you may use it",
    ),
    Refusal.of(
        r"database is locked",
        "{key} cannot be {done}: others have used the database for a minute",
        AGAIN,
    ),
    Refusal.of(
        r"not a database|malformed",
        "{key} cannot be {done}: {said}",
        "see that the URL is right; a damaged database is restored from a copy",
    ),
)


def named(remote: Remote, key: str, done: str, problem: Exception) -> RemoteError:
    """The error that tells what an exception of SQLAlchemy is about.

    :param done: what was to become of the piece: read, written, listed or removed.
    """
    text = _said(problem)
    # Of a connection that fails the driver tells where to before it tells why.
    said = text.rpartition("FATAL:")[2].strip()[:_ROOM]
    return refusal_in(remote, _ANSWERS, text, key=key, done=done, said=said) or RemoteError(
        f"{remote.url}: {key} cannot be {done}: {said}",
        "see that the database is there, and that you may use it",
    )


def was_cut(problem: Exception) -> bool:
    """Whether the line was cut, so that another attempt may succeed."""
    return getattr(problem, "connection_invalidated", False) or _CUT.search(_said(problem)) is not None


def _said(problem: Exception) -> str:
    lines = str(getattr(problem, "orig", None) or problem).strip().splitlines()
    return lines[0] if lines else type(problem).__name__


T = TypeVar("T")

_WAIT: Final = 60
"""Seconds that a writer waits for others."""
_ATTEMPTS: Final = 4
"""How often is done what changes nothing when it is repeated, where the line is cut in the middle of it."""
_PAUSE: Final = 0.2
"""Seconds before the second attempt, doubled before each further one."""
_AT_ONCE: Final = 1000
"""Names that are listed by a query."""


class SqlRemote(Remote):
    """Pieces are the rows of one table, which is made when the first piece is put.

    :param url: as SQLAlchemy takes it. A password is not part of it: PostgreSQL's library finds it where it
        always does (`PGPASSWORD`, `~/.pgpass`).
    """

    def __init__(self, url: str) -> None:
        import sqlalchemy as sql
        from sqlalchemy.engine import make_url

        address = make_url(url)
        self._shown = address.render_as_string(hide_password=True)
        self._is_sqlite = address.get_backend_name() == "sqlite"
        if self._is_sqlite:
            self._engine: Engine = sql.create_engine(address, connect_args={"timeout": _WAIT})
            # pysqlite begins no transaction before the first change: what was read may be old by then.
            sql.event.listen(self._engine, "connect", _leave_transactions)
            sql.event.listen(self._engine, "begin", _begin)
        else:
            driver = {"postgresql": "postgresql+psycopg"}.get(address.drivername, address.drivername)
            address = address.set(drivername=driver)
            self._engine = sql.create_engine(address, pool_size=self.parallel, connect_args=LINE)
        # PostgreSQL orders text by the language of its database, where nothing else is said.
        self._order = "C" if address.get_backend_name() == "postgresql" else None
        self._pieces: Table = sql.Table(
            "perun_pieces",
            sql.MetaData(),
            sql.Column("key", sql.String(600, self._order), primary_key=True),
            sql.Column("data", sql.LargeBinary, nullable=False),
        )
        self._has_table = False

    @property
    def url(self) -> str:
        """As the interface describes it."""
        return self._shown

    def put(self, key: str, data: bytes) -> bool:
        """As the interface describes it. Where the line is cut it is tried again; if the first attempt has
        arrived after all, the piece counts as one that was there."""
        return self._put(key, data)

    def _put(self, key: str, data: bytes, attempts: int = _ATTEMPTS) -> bool:
        from sqlalchemy.exc import IntegrityError

        checked(key)

        def put(connection: Connection) -> bool:
            if self._size(connection, key) is not None:
                return False
            connection.execute(self._pieces.insert().values(key=key, data=data))
            return True

        try:
            return self._writing(key, "written", put, attempts)
        except IntegrityError:  # another one put it meanwhile
            return False

    def get(self, key: str, limit: int = MAX_PIECE) -> bytes:
        """As the interface describes it."""
        import sqlalchemy as sql

        checked(key)

        def get(connection: Connection) -> bytes | None:
            size = self._size(connection, key)
            if size is None:
                return None
            if size > limit:
                raise self.too_large(key, limit)
            asked = sql.select(self._pieces.c.data).where(self._pieces.c.key == key)
            return connection.execute(asked).scalar_one_or_none()

        return self._found(key, self._reading(key, "read", get, None))

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """As the interface describes it."""
        import sqlalchemy as sql

        checked(key)

        def get(connection: Connection) -> bytes | None:
            part = sql.func.substr(self._pieces.c.data, start + 1, length, type_=sql.LargeBinary)
            asked = sql.select(part).where(self._pieces.c.key == key)
            return connection.execute(asked).scalar_one_or_none()

        return self._found(key, self._reading(key, "read", get, None))

    def list(self, prefix: str) -> Iterator[PieceInfo]:
        """As the interface describes it."""
        import sqlalchemy as sql

        key: ColumnElement[str] = self._pieces.c.key
        if self._order:  # a table of an earlier release says nothing of it
            key = sql.collate(key, self._order)
        size = sql.func.length(self._pieces.c.data)
        after = prefix
        while True:
            asked = sql.select(key, size).where(key > after, key.startswith(prefix, autoescape=True))
            page = asked.order_by(key).limit(_AT_ONCE)
            rows: Sequence[Any] = self._reading(prefix, "listed", partial(_all, page), ())
            yield from (PieceInfo(name, size) for name, size in rows if is_key(name))
            if len(rows) < _AT_ONCE:
                return
            after = rows[-1][0]

    def replace(self, key: str, data: bytes, expected: bytes | None) -> bool:
        """As the interface describes it. It is sent once only, so that the answer is sure."""
        if expected is None:
            return self._put(key, data, 1)
        checked(key)
        pieces = self._pieces

        def replace(connection: Connection) -> bool:
            change = pieces.update().where(pieces.c.key == key, pieces.c.data == expected)
            return connection.execute(change.values(data=data)).rowcount == 1

        return self._writing(key, "written", replace, 1)

    def delete(self, key: str) -> None:
        """As the interface describes it."""
        checked(key)
        change = self._pieces.delete().where(self._pieces.c.key == key)
        self._writing(key, "removed", lambda connection: connection.execute(change))

    def close(self) -> None:
        """As the interface describes it."""
        self._engine.dispose()

    def _size(self, connection: Connection, key: str) -> int | None:
        import sqlalchemy as sql

        asked = sql.select(sql.func.length(self._pieces.c.data)).where(self._pieces.c.key == key)
        size: int | None = connection.execute(asked).scalar_one_or_none()
        return size

    def _found(self, key: str, data: bytes | None) -> bytes:
        if data is None:
            raise self.missing(key)
        return data

    def _reading(self, key: str, done: str, read: Callable[[Connection], T], nothing: T) -> T:
        """What is read; `nothing` where no piece was ever put."""
        import sqlalchemy as sql

        def work() -> T:
            with self._engine.connect() as connection:
                if not self._has_table and not sql.inspect(connection).has_table(self._pieces.name):
                    return nothing
                self._has_table = True
                return read(connection)

        return self._again(key, done, work)

    def _writing(self, key: str, done: str, write: Callable[[Connection], T], attempts: int = _ATTEMPTS) -> T:
        from sqlalchemy.exc import IntegrityError, ProgrammingError

        writing = self._engine.execution_options(writes=True)

        def make() -> None:
            try:
                self._pieces.create(writing, checkfirst=True)
            except (IntegrityError, ProgrammingError):  # another one made it meanwhile
                self._pieces.create(writing, checkfirst=True)

        def work() -> T:
            with writing.begin() as connection:
                return write(connection)

        if not self._has_table:
            self._again(key, done, make)
            self._has_table = True
        return self._again(key, done, work, attempts)

    def _again(self, key: str, done: str, work: Callable[[], T], attempts: int = _ATTEMPTS) -> T:
        """What `work` gives; it is repeated where the line is cut.

        :param done: what becomes of the piece, for messages.
        :raises IntegrityError: if there is such a row already. :raises RemoteError: for all else.
        """
        from sqlalchemy.exc import IntegrityError, SQLAlchemyError

        for attempt in range(attempts):
            try:
                return work()
            except IntegrityError:
                raise
            except SQLAlchemyError as problem:
                if attempt + 1 == attempts or not was_cut(problem):
                    raise named(self, key, done, problem) from None
                time.sleep(_PAUSE * 2**attempt)
        raise AssertionError("the last attempt returns or raises")


def _all(asked: Select[Any], connection: Connection) -> Sequence[Any]:
    return connection.execute(asked).all()


def _leave_transactions(connection: Any, _record: object) -> None:
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
