"""The user: which files are his own, and where his settings and caches lie."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from perun.core import atomic
from perun.core.regular import open_regular


def own_users(environ: Mapping[str, str]) -> frozenset[int]:
    """The users whose files count as one's own: oneself, and under sudo who called it, as in git."""
    user = os.geteuid()
    caller = environ.get("SUDO_UID", "")
    if user == 0 and caller.isascii() and caller.isdigit() and len(caller) < 11:
        return frozenset((user, int(caller)))
    return frozenset((user,))


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Where Perun keeps what it can make again: `$XDG_CACHE_HOME/perun`, else `~/.cache/perun`; else None."""
    folder = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(folder):  # so says the specification of these folders
        folder = os.path.join(environ.get("HOME", ""), ".cache")
    return Path(folder, "perun") if os.path.isabs(folder) else None


def shared_folder(environ: Mapping[str, str]) -> Path:
    """The folder of `shared.yml`: `$PERUN_CONFIG_DIR`, else `~/.config/perun` (manual 11.1)."""
    if environ.get("PERUN_CONFIG_DIR"):
        return Path(environ["PERUN_CONFIG_DIR"])
    return Path(environ.get("HOME") or "~").expanduser() / ".config" / "perun"


# Folders of a `.perun` that are links: Perun would read, write and delete elsewhere.

_BELOW = ("objects", "cache", "hooks", "stats", "tmp", "workloads")
"""Folders in which Perun creates folders."""
_FOLLOWED = frozenset({"plugins"})
"""A link here needs no question: files in this folder run only if the user trusts them, wherever they are."""


def links_of(perun_folder: Path) -> list[Path]:
    """The `.perun` itself and the folders in it, as far as they are links to folders.

    It reads only the names in a few folders, because each command calls it. Links to files are not included:
    no file of a `.perun` is opened through a link.
    """
    found = [perun_folder] if perun_folder.is_symlink() else []
    for folder in (perun_folder, *(perun_folder / name for name in _BELOW)):
        found += _links_in(folder)
    return found


def _links_in(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            links = [one.name for one in entries if one.is_symlink() and one.is_dir()]
    except OSError:
        return  # it does not exist, or the code that reads it reports why it cannot
    yield from (folder / name for name in sorted(links) if name not in _FOLLOWED)


# The mark of the user on what Perun writes into a repository, and later runs from there.
#
# A journal, a queue or the results of fuzzing name commands. They lie where a clone or a pull may have
# brought them, so each carries a code of authentication (HMAC) by a key that only this user has. The key lies
# with his decisions of trust, and the code is of the repository, too: what is copied from another one has
# none.

FIELD: Final = "mark"
"""The key of the mark, where what it is of is a mapping."""
FOLDER: Final = "trust"
"""Folder of the key and of the decisions of trust, among the settings of the user."""
_KEY: Final = "key"
_BYTES: Final = 32


def marked(root: Path, environ: Mapping[str, str], kind: str, what: Mapping[str, Any]) -> dict[str, Any]:
    """`what` with its mark as one more key.

    :param root: of the repository. :param kind: of the file, e.g. `bisections`.
    """
    bare = {key: value for key, value in what.items() if key != FIELD}
    return {**bare, FIELD: mark(root, environ, kind, bare)}


def is_marked(root: Path, environ: Mapping[str, str], kind: str, what: Mapping[str, Any]) -> bool:
    """Whether :func:`marked` has made it, for this user and this repository."""
    bare = {key: value for key, value in what.items() if key != FIELD}
    return holds(root, environ, kind, bare, what.get(FIELD))


def mark(root: Path, environ: Mapping[str, str], kind: str, what: Any) -> str:
    """The mark of JSON data; empty where no key can be kept, as the settings cannot be written."""
    key = _key(environ) or _new_key(environ)
    return _code(key, root, kind, what) if key else ""


def holds(root: Path, environ: Mapping[str, str], kind: str, what: Any, given: object) -> bool:
    """Whether `given` is the mark of the data; never where the user has no key."""
    key = _key(environ)
    if not key or not isinstance(given, str):
        return False
    code = _code(key, root, kind, what)
    return hmac.compare_digest(given.encode("utf-8", "replace"), code.encode())


def digest(kind: str, what: Any) -> str:
    """A SHA-256 of JSON data, which any change of it changes."""
    return hashlib.sha256(_bytes([kind, what])).hexdigest()


def _code(key: bytes, root: Path, kind: str, what: Any) -> str:
    return hmac.new(key, _bytes([kind, os.fspath(root.resolve()), what]), "sha256").hexdigest()


def _bytes(what: Any) -> bytes:
    """The same for what was written as JSON and read again; names of files may be no UTF-8."""
    return json.dumps(what, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")


def _key(environ: Mapping[str, str]) -> bytes:
    with suppress(OSError), open_regular(_path(environ), _BYTES) as file:
        if os.fstat(file.fileno()).st_uid in own_users(environ):
            data = file.read(_BYTES)
            return data if len(data) == _BYTES else b""
    return b""


def _new_key(environ: Mapping[str, str]) -> bytes:
    """A key, also if another process makes one at the same time; empty if none can be kept."""
    path = _path(environ)
    own = path.with_name(atomic.temporary_name())
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic.write(own, os.urandom(_BYTES), private=True)
        try:
            with suppress(OSError):  # another process was first, or there are no hard links
                os.link(own, path)
            if not _key(environ):  # that, or what is there is damaged
                os.replace(own, path)
        finally:
            own.unlink(missing_ok=True)
    except OSError:
        return b""
    return _key(environ)


def _path(environ: Mapping[str, str]) -> Path:
    return shared_folder(environ) / FOLDER / _KEY
