"""Parsed configuration files, so that reading commands need no YAML parser (half of their time).

An entry holds the whole text of the file it was made from and is used only if the file still holds
the same text. Times of files play no part, so there is no moment at which a change could be missed.

It says what runs, so it is kept in the cache folder of the user, never in a repository, and a file of another
user is not read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from perun.errors import ConfigError
from perun.regular import open_regular

Parse = Callable[[str, Path, str], tuple[Mapping[str, Any], Sequence[str]]]
"""From the name of a layer, its file and its text to the values and warnings; may raise ConfigError."""

FORMAT: Final = 1
MAX_BYTES: Final = 8 << 20


def read(path: Path) -> Mapping[str, Any]:
    """The entries by absolute path of their file: text, values, warnings. A damaged cache is empty."""
    import json

    try:
        with open_regular(path, MAX_BYTES) as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid():
                return {}
            data = json.loads(file.read(status.st_size))
        if data["format"] != FORMAT:
            return {}
        return {file: entry for file, entry in data["files"].items() if _is_entry(entry)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def refresh(files: Iterable[tuple[str, Path]], path: Path, parse: Parse) -> bool:
    """Write the entries of `files`, each with the name of its layer, if they differ from what is there.

    :raises OSError: if the cache cannot be written.
    """
    old = read(path)
    new: dict[str, Any] = {}
    for name, file in files:
        entry = _entry(name, file, old.get(str(file)), parse)
        if entry is not None:
            new[str(file)] = entry
    if new == old:
        return False
    import json

    from perun import atomic

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    atomic.write(path, json.dumps({"format": FORMAT, "files": new}).encode(), private=True)
    return True


def _entry(name: str, path: Path, old: Mapping[str, Any] | None, parse: Parse) -> Mapping[str, Any] | None:
    from perun.config.reader import read_text

    try:
        text = read_text(path)
        if text is None or (old is not None and old["text"] == text):
            return old if text is not None else None
        values, warnings = parse(name, path, text)
    except ConfigError:
        return None
    return {"text": text, "values": values, "warnings": list(warnings)}


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("text"), str)
        and isinstance(entry.get("values"), dict)
        and isinstance(entry.get("warnings"), list)
        and all(isinstance(warning, str) for warning in entry["warnings"])
    )
