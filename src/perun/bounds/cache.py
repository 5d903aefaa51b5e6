"""The cache of bounds, by the content of what is analysed: the preprocessed source and all options.

The analysis is a pure function of these, so an entry never gets old. Part of its key are the sources of the
analysis itself: no version number has to be kept by hand.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Final

from perun.bounds.answer import SourceBounds
from perun.core import atomic

MAX_ENTRIES: Final = 4096
"""Sources that the cache holds; those that were not used for the longest time go first."""
_SUFFIX: Final = ".json"
_LATEST: Final = ".latest"
"""Suffix of the file that names the newest entry of a source."""


def key_of(*parts: object) -> str:
    """The key of what these parts are, bytes or anything that its `repr` tells."""
    digest = hashlib.sha256(analysis_version().encode())
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


@cache
def analysis_version() -> str:
    """Twelve hexadecimal digits that change with the analysis: with its modules and the libraries it uses."""
    from importlib.metadata import PackageNotFoundError, version

    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    for library in ("pycparser", "z3-solver"):
        with contextlib.suppress(PackageNotFoundError):
            digest.update(version(library).encode())
    return digest.hexdigest()[:12]


def read(folder: Path | None, key: str, path: str) -> SourceBounds | None:
    """What the cache has of the source; None where it has nothing that can be read."""
    if folder is None:
        return None
    file = folder / f"{key}{_SUFFIX}"
    try:
        found = SourceBounds.from_json(path, json.loads(file.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    with contextlib.suppress(OSError):
        os.utime(file)
    return found


def latest(folder: Path | None, name: str, path: str) -> SourceBounds | None:
    """The version of a source that was analysed last; None where the cache has none."""
    if folder is None:
        return None
    try:
        key = (folder / f"{name}{_LATEST}").read_text("ascii")
    except (OSError, ValueError):
        return None
    return read(folder, key, path) if key.isalnum() else None


def write(folder: Path | None, found: SourceBounds) -> None:
    """Keep what was found, if it has a key and the folder can be written."""
    if folder is not None and found.key:
        with contextlib.suppress(OSError):
            atomic.write(folder / f"{found.key}{_SUFFIX}", json.dumps(found.to_json()).encode())
            atomic.write(folder / f"{found.name}{_LATEST}", found.key.encode())


def prune(folder: Path | None) -> None:
    """Remove what was not used for the longest time, beyond :data:`MAX_ENTRIES`."""
    if folder is None:
        return
    with contextlib.suppress(OSError):
        files = [file for file in folder.iterdir() if file.suffix in (_SUFFIX, _LATEST)]
        if len(files) > MAX_ENTRIES:
            files.sort(key=lambda file: file.stat().st_mtime)
            for file in files[: len(files) - MAX_ENTRIES]:
                file.unlink(missing_ok=True)
