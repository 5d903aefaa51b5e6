"""Remotes by their URLs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from perun.core.errors import PluginError, UsageError
from perun.core.extras import install_command
from perun.core.wording import without_secrets
from perun.store.remote import cloud
from perun.store.remote.contract import Remote
from perun.store.remote.file import FileRemote
from perun.store.remote.git import SCHEME as GIT
from perun.store.remote.git import GitRemote, place_of
from perun.store.remote.sql import SqlRemote

KINDS = {
    "file:///srv/perf": "a folder that all can reach",
    "s3://bucket/perf": "an object store: also gs:// and az://",
    "sqlite:////srv/perf.db": "a database in one file",
    "postgresql://host/database": "a database",
    "git:origin": "a remote of git",
}
"""An example of each kind, and what it is."""
_SQL = ("sqlite", "postgresql")


def opened(
    url: str,
    *,
    folder: Path = Path("."),
    environ: Mapping[str, str] | None = None,
    scratch: Path | None = None,
) -> Remote:
    """The remote of a URL. Nothing is asked of it yet.

    :param folder: the repository of the user, whose git knows the remotes of `git:`.
    :param environ: the environment of the user.
    :param scratch: where what is under way may be for a while; a folder of the system if None.
    :raises UsageError: if the URL is none of a remote.
    :raises PluginError: if what its kind needs is not installed.
    """
    parts = urlsplit(checked_url(url))
    if parts.scheme == "file":
        return FileRemote(Path(unquote(parts.path)))
    if parts.scheme == GIT:
        return GitRemote(url, folder, environ or {}, scratch)
    is_cloud = parts.scheme in cloud.SCHEMES
    try:
        return cloud.CloudRemote(url, environ or {}) if is_cloud else SqlRemote(url)
    except ModuleNotFoundError as problem:
        what, extra = ("an object store", "s3") if is_cloud else ("a database", "sql")
        raise PluginError(
            f"a remote in {what} needs {problem.name}", f"install it: {install_command(extra)}"
        ) from None


def checked_url(url: str) -> str:
    """The URL, if it can be that of a remote.

    :raises UsageError: if it is of no known kind, names no place, or has a password in it, or what may be a
        token in the place of a user: it is stored in the configuration, and shown.
    """
    if without_secrets(url) != url:
        raise UsageError(
            "the URL of the remote has a password or a token in it, which would be stored and shown",
            "leave it out: it is found where its kind of remote has it, see docs/sharing.md",
        )
    try:
        parts = urlsplit(url)
    except ValueError as problem:
        raise UsageError(f"{url!r} is no URL: {problem}", _examples()) from None
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and len(parts.path) > 1:
        return url
    if parts.scheme in _SQL and len(parts.path) > 1:
        return url
    if parts.scheme == GIT:
        place_of(url)
        return url
    if parts.scheme in cloud.SCHEMES:
        cloud.parsed(url)
        return url
    raise UsageError(f"{url!r} is no URL of a remote", _examples())


def _examples() -> str:
    return "e.g. " + ", ".join(KINDS)
