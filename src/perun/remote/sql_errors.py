"""What databases answer, in words of who uses the remote.

The first line of what the driver says is all that is looked at and told: the others are the statement, with
what is stored.
"""

from __future__ import annotations

import re
from typing import Final

from perun.errors import RemoteError
from perun.remote.contract import Remote
from perun.remote.refusals import AGAIN, Refusal, told

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
    return told(remote, _ANSWERS, text, key=key, done=done, said=said) or RemoteError(
        f"{remote.url}: {key} cannot be {done}: {said}",
        "see that the database is there, and that you may use it",
    )


def was_cut(problem: Exception) -> bool:
    """Whether the line was cut, so that another attempt may succeed."""
    return getattr(problem, "connection_invalidated", False) or _CUT.search(_said(problem)) is not None


def _said(problem: Exception) -> str:
    lines = str(getattr(problem, "orig", None) or problem).strip().splitlines()
    return lines[0] if lines else type(problem).__name__
