"""Changes of configuration files that touch nothing but the key in question.

Only the text of the value is replaced; comments, order, quotes, indentation and line ends of
everything else stay as they are. The result is read back before it is written: if more than the one
key would change, nothing is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perun.core import atomic
from perun.core.config import templates
from perun.core.config.convert import checked
from perun.core.config.layers import SHARED_FILE
from perun.core.config.reader import (
    ConfigScalar,
    MappingEntry,
    Node,
    is_null,
    parse,
    read_text,
    resolve_all,
    values,
)
from perun.core.config.schema import ALIASES, KEYS, SETTINGS_SECTION, ConfigKey, KeyKind, find, put
from perun.core.config.templates import default_shared
from perun.core.errors import ConfigError

_YAML_KINDS = frozenset((KeyKind.TEXTS, KeyKind.CHOICES, KeyKind.UNITS, KeyKind.RULES, KeyKind.SETTINGS))
"""Kinds whose value is read as YAML; the others are the text itself."""


def set_value(path: Path, key: str, text: str) -> Any:
    """Set a key in a configuration file and return its value as :meth:`Config.get` will.

    A missing local file is made; a missing shared one with the documented defaults. Sections are made
    if they are missing.

    :param path: `local.yml` or `shared.yml`; a symbolic link is written through.
    :param text: the value; YAML for keys that hold lists or mappings, else the text itself.
    :raises ConfigError: if the key or value is wrong, or the file cannot be read, parsed or written.
    """
    name, value = checked_value(path, key, text)
    old = _Document(path)
    for alias, target in ALIASES.items():
        if target == name:
            old = old.without(alias)
    _write(path, old.with_value(name, _tidy(value)))
    return value


def append(path: Path, key: str, items: Sequence[Any]) -> None:
    """Append items to the list of a key in a configuration file; the comments within the list stay, too.

    :param items: as :meth:`Config.get` gives them. A list that is missing or empty is made.
    :raises ConfigError: as :func:`set_value`.
    """
    old = _Document(path)
    there = old.list_of(key)
    text = templates.inline([*there, *items])
    if not there or not old.holds_list(key):
        set_value(path, key, text)
        return
    checked_value(path, key, text)
    _write(path, old.with_items(key, [_tidy(item) for item in items]))


def unset(path: Path, key: str) -> bool:
    """Remove a key, known or not, from a configuration file; whether it was there.

    :raises ConfigError: if the file cannot be read, parsed or written.
    """
    old = _Document(path)
    new = old.without(key)
    if new is old:
        return False
    _write(path, new)
    return True


def add_default_shared(path: Path, overwrite: bool = False) -> bool:
    """Write the documented default configuration to `path`; False if a file is there and shall stay.

    :raises ConfigError: if it cannot be written.
    """
    if path.exists() and not overwrite:
        return False
    write_text(path, default_shared())
    return True


def write_text(path: Path, text: str) -> None:
    """Make `text` the content of a configuration file, through a symbolic link; wholly or not at all.

    :raises ConfigError: if it cannot be written.
    """
    try:
        atomic.write(Path(os.path.realpath(path)), text.encode("utf-8"))
    except OSError as problem:
        raise ConfigError(f"{path} cannot be written: {problem.strerror}", "check its permissions") from None


class _Document:
    """The text of a configuration file with its tree."""

    def __init__(self, path: Path, text: str | None = None) -> None:
        self.path = path
        self.text = _initial(path) if text is None else text
        self.newline = "\r\n" if "\r\n" in self.text else "\n"
        root = parse(self.text, str(path))
        self.root = None if root is None or is_null(root.value) else root
        if self.root is not None and not isinstance(self.root.value, dict):
            raise ConfigError(f"{path}:{self.root.line}: a configuration holds sections with keys")

    def data(self) -> dict[str, Any]:
        """All values as plain data."""
        return {} if self.root is None else dict(resolve_all(values(self.root)))

    def with_value(self, name: str, value: Any) -> _Document:
        """The document with the dotted key set."""
        expected = self.data()
        put(expected, name, value)
        return self._verified(self._set(name.split("."), value), expected, name)

    def list_of(self, name: str) -> list[Any]:
        """The items of the dotted key; one text is a list of one, too."""
        value = self._value(name)
        if value is None or isinstance(value, dict):
            return []
        return value if isinstance(value, list) else [value]

    def holds_list(self, name: str) -> bool:
        """Whether the dotted key is there, and holds a list."""
        return isinstance(self._value(name), list)

    def _value(self, name: str) -> Any:
        value: Any = self.data()
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def with_items(self, name: str, items: Sequence[Any]) -> _Document:
        """The document with more items at the end of the list of the dotted key, which has one at least."""
        expected = self.data()
        put(expected, name, [*self.list_of(name), *items])
        node = self.root
        for part in name.split("."):
            assert node is not None and isinstance(node.value, dict)
            node = node.value[part].value
        assert node is not None and isinstance(node.value, list)
        last = node.value[-1].end
        if node.flow:
            return self._verified(
                self._splice(last, last, f", {templates.inline(items)[1:-1]}"), expected, name
            )
        end = self._end_of_line(last)
        lines = self.newline + self._lines(templates.block(list(items), node.column))
        return self._verified(self._splice(end, end, lines), expected, name)

    def without(self, name: str) -> _Document:
        """The document without the dotted key; itself if the key is not there."""
        node, expected = self.root, self.data()
        inner = expected
        *sections, last = name.split(".")
        for part in sections:
            if node is None or not isinstance(node.value, dict) or part not in node.value:
                return self
            node, inner = node.value[part].value, inner[part]
        if node is None or not isinstance(node.value, dict) or last not in node.value:
            return self
        del inner[last]
        if not inner and sections and not node.flow:
            outer = expected
            for part in sections[:-1]:
                outer = outer[part]
            outer[sections[-1]] = None
        return self._verified(self._remove(node, node.value[last]), expected, name)

    def _verified(self, text: str, expected: dict[str, Any], name: str) -> _Document:
        try:
            new = _Document(self.path, text)
            if json.dumps(new.data(), sort_keys=True) == json.dumps(expected, sort_keys=True):
                return new
        except ConfigError:
            pass
        raise ConfigError(
            f"{self.path}: {name} cannot be changed without changing other values as well",
            "change it by hand: perun config edit",
        )

    def _set(self, parts: list[str], value: Any) -> str:
        node = self.root
        if node is None:
            return self._append(parts[0], _nested(parts[1:], value), 0)
        for depth, part in enumerate(parts):
            below = _nested(parts[depth + 1 :], value)
            assert isinstance(node.value, dict)
            if part not in node.value:
                return self._insert(node, part, below)
            found = node.value[part]
            if depth == len(parts) - 1 or not isinstance(found.value.value, dict) or not found.value.value:
                if depth < len(parts) - 1 and found.value.value and not is_null(found.value.value):
                    where = f"{self.path}:{found.value.line}: {'.'.join(parts[: depth + 1])}"
                    raise ConfigError(f"{where} is a section and must hold keys")
                return self._replace(found, below, node.flow)
            node = found.value
        raise AssertionError("unreachable: a key has at least one part")

    def _append(self, key: str, value: Any, indent: int) -> str:
        text = self.text
        if text and not text.endswith("\n"):
            text += self.newline
        gap = self.newline if text.strip() and not text.endswith(self.newline * 2) else ""
        return text + gap + self._lines(templates.entry(key, value, indent)) + self.newline

    def _insert(self, node: Node, key: str, value: Any) -> str:
        """The text with a new key as the last one of the mapping."""
        assert isinstance(node.value, dict)
        if node.flow:
            start = self.text.index("{", node.start) + 1
            ends = [start] + [max(one.key.end, one.value.end) for one in node.value.values()]
            comma = ", " if node.value else ""
            return self._splice(
                ends[-1], ends[-1], f"{comma}{templates.scalar(key)}: {templates.inline(value)}"
            )
        first = next(iter(node.value.values()))
        if node is self.root:
            return self._append(key, value, first.key.column)
        end = self._end_of_line(node.end)
        return self._splice(
            end, end, self.newline + self._lines(templates.entry(key, value, first.key.column))
        )

    def _replace(self, found: MappingEntry, value: Any, flow: bool) -> str:
        """The text with another value for a key that is there."""
        key, old = found
        if flow:
            written = f"{self.text[key.start : key.end]}: {templates.inline(value)}"
            return self._splice(key.start, max(key.end, old.end), written)
        colon = self.text.index(":", key.end) + 1
        lines = self._lines(templates.block(value, key.column + 2)) if templates.is_block(value) else ""
        if old.start > self._end_of_line(colon):
            start = self.text.rindex("\n", 0, old.start) + 1
            between = self.text[colon:start]
            if lines:
                return self._splice(start, old.end, lines)
            return self._splice(
                colon, old.end, f" {templates.inline(value)}{between.removesuffix(self.newline)}"
            )
        end = colon if old.start == old.end else old.end
        if not lines:
            return self._splice(colon, end, " " + templates.inline(value))
        rest = self._end_of_line(end)
        return self._splice(colon, rest, self.text[end:rest].rstrip() + self.newline + lines)

    def _remove(self, node: Node, found: MappingEntry) -> str:
        key, old = found
        text, start, end = self.text, key.start, max(key.end, old.end)
        if node.flow:
            after = len(text) - len(text[end:].lstrip())
            before = len(text[:start].rstrip())
            if text[after : after + 1] == ",":
                end = after + 1 + len(text[after + 1 :]) - len(text[after + 1 :].lstrip(" "))
            elif text[before - 1 : before] == ",":
                start = before - 1
            return self._splice(start, end, "")
        line = text.find("\n", end)
        return self._splice(text.rfind("\n", 0, start) + 1, len(text) if line < 0 else line + 1, "")

    def _splice(self, start: int, end: int, new: str) -> str:
        return self.text[:start] + new + self.text[end:]

    def _end_of_line(self, position: int) -> int:
        end = self.text.find("\n", position)
        return len(self.text) if end < 0 else end - (self.text[end - 1 : end] == "\r")

    def _lines(self, lines: list[str]) -> str:
        return self.newline.join(lines)


def _write(path: Path, document: _Document) -> None:
    mark = "\ufeff" if (read_text(path) or "").startswith("\ufeff") else ""
    write_text(path, mark + document.text)


def _initial(path: Path) -> str:
    text = read_text(path)
    if text is None and path.name == SHARED_FILE:
        return default_shared()
    return (text or "").removeprefix("\ufeff")


def checked_value(path: Path, key: str, text: str) -> tuple[str, Any]:
    """The present name of a key, and what :meth:`Config.get` gives once `text` is set; nothing is written.

    :raises ConfigError: if there is no such key, or the text is not of its kind.
    """
    name = ALIASES.get(key, key)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(f"the value for {name} is not UTF-8") from None
    given = _parsed(name, _row(name, text), text)
    kind = "shared" if path.name == SHARED_FILE else "local"
    nested: dict[str, Any] = {}
    put(nested, name, given)
    result, warnings = checked(nested, str(path), kind)
    if warnings:
        raise ConfigError(warnings[0])
    for part in name.split("."):
        result = result[part]
    return name, result


def _row(name: str, text: str) -> ConfigKey:
    is_method = name.startswith(SETTINGS_SECTION + ".") and name.count(".") == 1 and name not in KEYS
    if is_method and isinstance(_yaml(text), dict):
        return KEYS["degradation.<method>"]
    row = find(name)
    if row.kind is KeyKind.IGNORED:
        raise ConfigError(f"{name} has no effect", "older releases wrote it; it may be removed")
    return row


def _parsed(name: str, row: ConfigKey, text: str) -> Any:
    if row.kind not in _YAML_KINDS:
        return text
    try:
        given = _yaml(text)
    except ConfigError:
        if text.lstrip()[:1] in ("[", "{") or row.kind in (KeyKind.UNITS, KeyKind.RULES):
            raise
        given = text
    if row.kind is KeyKind.SETTINGS:
        return given
    if not text.strip() or (is_null(given) and row.kind in (KeyKind.UNITS, KeyKind.RULES)):
        return []
    if row.kind in (KeyKind.TEXTS, KeyKind.CHOICES) and not isinstance(given, list):
        return text
    return [given] if isinstance(given, dict) else given


def _yaml(text: str) -> Any:
    node = parse(text, "the given value")
    return None if node is None else _without_place(values(node))


def _without_place(value: Any) -> Any:
    """The same without lines, which are those of the value, not of the file."""
    if isinstance(value, dict):
        return {str(key): _without_place(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_place(item) for item in value]
    return ConfigScalar(value, 0, value.plain)


def _tidy(value: Any) -> Any:
    """The value as a person would write it: units without parameters have none."""
    if isinstance(value, list):
        return [_tidy(item) for item in value]
    if isinstance(value, dict) and value.keys() == {"name", "params"} and not value["params"]:
        return {"name": value["name"]}
    return value


def _nested(parts: list[str], value: Any) -> Any:
    for part in reversed(parts):
        value = {part: value}
    return value
