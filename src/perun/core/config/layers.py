"""The hierarchy of configurations (manual 11.1): local from the nearest up, shared, built-in.

What the command line sets is passed to the verbs as arguments, and is no layer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core.config import schema
from perun.core.config.convert import checked
from perun.core.config.reader import Node, parse, read_text
from perun.core.config.schema import ConfigKey, KeyKind, Scope
from perun.core.errors import ConfigError
from perun.core.regular import open_regular

LOCAL_FILE: Final = "local.yml"
SHARED_FILE: Final = "shared.yml"
MISSING: Final = object()
"""What a layer answers for a key that it does not set."""


class Layer(NamedTuple):
    """The values of one configuration, nested and in their types.

    :param name: `local` (the nearest), `parent`, `shared` or `defaults`.
    :param path: the file, None for a layer without one.
    :param origin: `file`, `cache`, `missing` (there is no such file) or `memory`.
    """

    name: str
    path: Path | None
    values: Mapping[str, Any]
    origin: str
    warnings: tuple[str, ...] = ()

    def get(self, key: str) -> Any:
        """The value of a dotted key or section in this layer alone, :data:`MISSING` if it is not set."""
        value: Any = self.values
        for part in schema.ALIASES.get(key, key).split("."):
            if not isinstance(value, Mapping) or part not in value:
                return MISSING
            value = value[part]
        return _copy(value)

    def __str__(self) -> str:
        return str(self.path) if self.path else {"defaults": "built-in defaults"}.get(self.name, self.name)


class Config(NamedTuple):
    """All layers, the one that decides first at the front."""

    layers: tuple[Layer, ...]

    def get(self, key: str) -> Any:
        """The effective value of a key; that of a gathered key is a list, that of a section a mapping.

        :raises ConfigError: if there is no such key; the hint names the nearest one.
        """
        if key in schema.SECTIONS or self._is_method(key):
            return self.section(key)
        row = schema.find(key)
        if row.scope is Scope.GATHERED:
            return self.gather(key)
        layer = self._setter(key, row)
        if layer is not None:
            return layer.get(key)
        return None if row.kind is KeyKind.SETTINGS else _copy(row.default)

    def gather(self, key: str) -> list[Any]:
        """The items of a list from all layers, the nearest local first, shared last (manual 11.1).

        The built-in list takes part if there is no shared configuration, or if no layer sets the key.

        :raises ConfigError: if there is no such key, or it does not hold a list.
        """
        row = schema.find(key)
        if not isinstance(row.default, list):
            raise ConfigError(f"{key} does not hold a list")
        found = [layer.get(key) for layer in self._layers_of(key, row) if layer.name != "defaults"]
        lists = [value for value in found if value is not MISSING]
        has_shared = any(layer.name == "shared" and layer.origin != "missing" for layer in self.layers)
        if not lists or not has_shared:
            lists.append(_copy(row.default))
        return [item for items in lists for item in items]

    def origin(self, key: str) -> Layer:
        """The layer that the value of the key comes from; of a gathered key the first of them.

        :raises ConfigError: if there is no such key.
        """
        row = schema.find(key)
        return self._setter(key, row) or self.layers[-1]

    def section(self, name: str) -> dict[str, Any]:
        """All keys of a section with their effective values; {} for settings of a check that has none.

        :param name: e.g. `degradation`, or `degradation.<method>`.
        :raises ConfigError: if there is no such section.
        """
        top, _, rest = name.partition(".")
        if top not in schema.SECTIONS or (rest and top != schema.SETTINGS_SECTION):
            raise ConfigError(f"there is no section {name!r} in the configuration", schema.nearest(name))
        merged: dict[str, Any] = {}
        for layer in reversed(self.layers):
            found = layer.get(name)
            if isinstance(found, Mapping):
                _merge(merged, found)
        for row in schema.KEYS.values():
            if not rest and row.name.startswith(name + ".") and "<" not in row.name:
                value = self.get(row.name)
                if row.kind is not KeyKind.IGNORED or value is not None:
                    merged[row.name.partition(".")[2]] = value
        return merged

    def layer(self, name: str) -> Layer | None:
        """The first layer of that name, e.g. `local` or `shared`; None for none."""
        return next((layer for layer in self.layers if layer.name == name), None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is accepted but should be changed, naming file and line."""
        return tuple(warning for layer in self.layers for warning in layer.warnings)

    def _setter(self, key: str, row: ConfigKey) -> Layer | None:
        return next((one for one in self._layers_of(key, row) if one.get(key) is not MISSING), None)

    def _layers_of(self, key: str, row: ConfigKey) -> list[Layer]:
        """The layers that may set the key, the one that decides first at the front."""
        if row.scope is Scope.LOCAL:
            return [layer for layer in self.layers if layer.name in ("local", "defaults")]
        if row.scope is Scope.SHARED:
            return [layer for layer in self.layers if layer.name in ("shared", "defaults")]
        return list(self.layers)

    def _is_method(self, key: str) -> bool:
        """Whether the key names settings of a check that some layer holds."""
        if not key.startswith(schema.SETTINGS_SECTION + ".") or key in schema.KEYS or key.count(".") != 1:
            return False
        return any(isinstance(layer.get(key), Mapping) for layer in self.layers)


class _FileReader:
    """Reads configuration files, through the cache of parsed ones if that knows the same text."""

    def __init__(self, cache: Path | None) -> None:
        self.cache = cache

    @cached_property
    def entries(self) -> Mapping[str, Any]:

        return read(self.cache) if self.cache else {}

    def layer(self, name: str, path: Path) -> Layer:
        from perun.core.config.reader import read_text

        text = read_text(path)
        if text is None:
            return Layer(name, path, {}, "missing")
        return self._cached(name, path, text) or parse_layer(name, path, text)

    def _cached(self, name: str, path: Path, text: str) -> Layer | None:
        entry = self.entries.get(str(path))
        if entry is None or entry["text"] != text:
            return None
        try:
            values, _ = checked(entry["values"], str(path), _kind(name))
        except ConfigError:
            return None  # of a release with other keys, or damaged
        return Layer(name, path, values, "cache", tuple(entry["warnings"]))


def load(perun_dirs: Sequence[Path], shared_dir: Path, cache: Path | None = None) -> Config:
    """The configuration of the instance whose `.perun` folder is the first of `perun_dirs`.

    Nothing is written; a file that is not there is an empty layer.

    :param perun_dirs: absolute `.perun` folders, the nearest first; may be empty.
    :param shared_dir: absolute folder of `shared.yml`.
    :param cache: file with parsed configurations, see :func:`refresh_cache`.
    :raises ConfigError: names file, line and key of what is wrong.
    """
    reader = _FileReader(cache)
    layers = [
        reader.layer("parent" if n else "local", folder / LOCAL_FILE) for n, folder in enumerate(perun_dirs)
    ]
    layers.append(reader.layer("shared", shared_dir / SHARED_FILE))
    layers.append(Layer("defaults", None, schema.defaults(), "memory"))
    return Config(tuple(layers))


def read_file(path: Path) -> Layer:
    """One configuration file, parsed and checked; which kind it is, its name says.

    :raises ConfigError: names file, line and key of what is wrong.
    """
    name = "shared" if path.name == SHARED_FILE else "local"
    return _FileReader(None).layer(name, path)


def parse_layer(name: str, path: Path, text: str) -> Layer:
    """The layer that the text of a file holds.

    :raises ConfigError: names file, line and key of what is wrong.
    """
    from perun.core.config.reader import is_null, parse, values

    node = parse(text, str(path))
    if node is None or is_null(node.value):
        return Layer(name, path, {}, "file")
    if not isinstance(node.value, dict):
        what = "a list" if isinstance(node.value, list) else "text"
        raise ConfigError(
            f"{path}:{node.line}: a configuration holds sections with keys, not {what}",
            "write e.g. `general:` and below it `  editor: vim`",
        )
    found, warnings = checked(values(node), str(path), _kind(name))
    return Layer(name, path, found, "file", warnings)


def refresh_cache(config: Config, cache: Path) -> bool:
    """Bring the cache of parsed files up to date; whether anything was written.

    Called by commands that write anyway and hold the lock; files that are wrong are left out.

    :raises OSError: if the cache cannot be written.
    """

    def parse(name: str, path: Path, text: str) -> tuple[Mapping[str, Any], Sequence[str]]:
        layer = parse_layer(name, path, text)
        return layer.values, layer.warnings

    return refresh([(layer.name, layer.path) for layer in config.layers if layer.path], cache, parse)


def _kind(name: str) -> str:
    return "local" if name == "parent" else name


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value


def _merge(below: dict[str, Any], above: Mapping[str, Any]) -> None:
    for key, value in above.items():
        inner = below.get(key)
        if isinstance(value, Mapping) and isinstance(inner, dict):
            _merge(inner, value)
        else:
            below[key] = _copy(value)


# Parsed configuration files, so that reading commands need no YAML parser (half of their time).
#
# An entry holds the whole text of the file it was made from and is used only if the file still holds
# the same text. Times of files play no part, so there is no moment at which a change could be missed.
#
# It says what runs, so it is kept in the cache folder of the user, never in a repository, and a file of
# another user is not read.

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

    from perun.core import atomic

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    atomic.write(path, json.dumps({"format": FORMAT, "files": new}).encode(), private=True)
    return True


def _entry(name: str, path: Path, old: Mapping[str, Any] | None, parse: Parse) -> Mapping[str, Any] | None:
    from perun.core.config.reader import read_text

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


# Where in its file a value of the configuration stands, for the messages of those who find it wrong.
#
# Only a mistake needs that, so the file is read once more instead of keeping the lines of all values.


def place_of(layer: Layer, keys: Sequence[str | int], message: str = "") -> str:
    """`file:line` of the value that the keys and positions lead to, as far as they lead.

    :param message: what is wrong with a mapping; the line is that of the key of it, or of one below it, that
        is named first.
    """
    if layer.path is None:
        return str(layer)
    try:
        text = read_text(layer.path)
        node = parse(text, str(layer.path)) if text is not None else None
    except ConfigError:
        node = None
    if node is None:
        return str(layer.path)
    line = 0
    for key in keys:
        line, node = _step(node, key, line)
    return f"{layer.path}:{_named(node, message) or line or node.line}"


def item_place(config: Config, key: str, position: int, message: str = "") -> str:
    """`file:line` of an item of a list, as :meth:`Config.get` counts them; see :func:`place_of`."""
    for layer in config.layers:
        items = layer.get(key)
        if items is MISSING:
            continue
        if position < len(items):
            return place_of(layer, [*key.split("."), position], message)
        position -= len(items)
    return str(config.layers[-1])


def _step(node: Node, key: str | int, line: int) -> tuple[int, Node]:
    value = node.value
    if isinstance(value, dict) and key in value:
        entry = value[str(key)]
        return entry.key.line, entry.value
    if isinstance(value, list) and isinstance(key, int) and key < len(value):
        return value[key].line, value[key]
    return line, node


def _named(node: Node, message: str) -> int:
    """The line of the key that the message names first; 0 if it names none."""
    plain = message.replace("-", "_")
    found = []
    for name, line in _keys(node):
        match = re.search(rf"(?<![\w]){re.escape(name.replace('-', '_'))}(?![\w])", plain)
        if match:
            found.append((match.start(), line))
    return min(found)[1] if found else 0


def _keys(node: Node) -> list[tuple[str, int]]:
    if isinstance(node.value, list):
        return [one for item in node.value for one in _keys(item)]
    if not isinstance(node.value, dict):
        return []
    own = [(name, entry.key.line) for name, entry in node.value.items() if name not in ("id", "name", "type")]
    return own + [one for entry in node.value.values() for one in _keys(entry.value)]
