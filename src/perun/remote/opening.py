"""Remotes by their URLs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from perun.errors import PluginError, UsageError
from perun.extras import install_command
from perun.remote.contract import Remote
from perun.remote.file import FileRemote
from perun.remote.sql import SqlRemote

KINDS = {
    "file:///srv/perf": "a folder that all can reach",
    "sqlite:////srv/perf.db": "a database in one file",
    "postgresql://host/database": "a database",
}
"""An example of each kind, and what it is."""
_SQL = ("sqlite", "postgresql")


def opened(url: str) -> Remote:
    """The remote of a checked URL. Nothing is asked of it yet.

    :raises PluginError: if what its kind needs is not installed.
    """
    parts = urlsplit(checked_url(url))
    if parts.scheme == "file":
        return FileRemote(Path(unquote(parts.path)))
    try:
        return SqlRemote(url)
    except ModuleNotFoundError as problem:
        raise PluginError(
            f"a remote in a database needs {problem.name}", f"install it: {install_command('sql')}"
        ) from None


def checked_url(url: str) -> str:
    """The URL, if it can be that of a remote.

    :raises UsageError: if it is of no known kind, names no place, or has a password in it: it is stored in
        the configuration, and shown.
    """
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError as problem:
        raise UsageError(f"{url!r} is no URL: {problem}", _examples()) from None
    if password is not None or "password=" in parts.query:
        raise UsageError(
            "the URL of the remote has a password in it, which would be stored and shown",
            "leave it out: PostgreSQL finds it in PGPASSWORD or ~/.pgpass",
        )
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and len(parts.path) > 1:
        return url
    if parts.scheme in _SQL and len(parts.path) > 1:
        return url
    raise UsageError(f"{url!r} is no URL of a remote", _examples())


def _examples() -> str:
    return "e.g. " + ", ".join(KINDS)
