"""The mark of the user on what Perun writes into a repository, and later runs from there.

A journal, a queue or the results of fuzzing name commands. They lie where a clone or a pull may have
brought them, so each carries a code of authentication (HMAC) by a key that only this user has. The key lies
with his decisions of trust, and the code is of the repository, too: what is copied from another one has
none.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from perun.core import atomic
from perun.core.regular import open_regular
from perun.repository.user import own_users, shared_folder

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
