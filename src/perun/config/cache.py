"""Parsed configuration files, so that reading commands need no YAML parser (half of their time).

An entry holds the whole text of the file it was made from and is used only where the file still holds
the same text. Times of files play no part, so there is no moment at which a change could be missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perun.config.schema import KEYS, Scope
from perun.errors import ConfigError

if TYPE_CHECKING:
    from perun.config.layers import Layer

FORMAT: Final = 1
MAX_BYTES: Final = 8 << 20


def read(path: Path) -> Mapping[str, Any]:
    """The entries by absolute path of their file: text, values, warnings. A damaged cache is empty."""
    import json

    try:
        if path.stat().st_size > MAX_BYTES:
            return {}
        data = json.loads(path.read_bytes())
        if data["format"] != FORMAT:
            return {}
        return {file: entry for file, entry in data["files"].items() if _is_entry(entry)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def refresh(layers: Sequence[Layer], path: Path) -> bool:
    """Write the entries of the files of `layers` where they differ from what is there.

    :raises OSError: where the cache cannot be written.
    """
    old = read(path)
    new: dict[str, Any] = {}
    for layer in layers:
        assert layer.path is not None
        file = str(layer.path)
        entry = _entry(layer.name, layer.path, old.get(file))
        if entry is not None:
            new[file] = entry
    if new == old:
        return False
    import json

    from perun import atomic

    atomic.write(path, json.dumps({"format": FORMAT, "files": new}).encode())
    return True


def _entry(name: str, path: Path, old: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    from perun.config.layers import parse_layer
    from perun.config.reader import read_text

    try:
        text = read_text(path)
        if text is None or (old is not None and old["text"] == text):
            return old if text is not None else None
        layer = parse_layer(name, path, text)
    except ConfigError:
        return None
    return {"text": text, "values": _without_trust(layer.values), "warnings": list(layer.warnings)}


def _without_trust(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without those that decide whose code is run: a cache in a repository could be forged."""
    hidden = {key.name.partition(".")[0] for key in KEYS.values() if key.scope is Scope.SHARED}
    return {section: value for section, value in values.items() if section not in hidden}


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("text"), str)
        and isinstance(entry.get("values"), dict)
        and isinstance(entry.get("warnings"), list)
        and all(isinstance(warning, str) for warning in entry["warnings"])
    )
