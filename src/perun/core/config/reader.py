"""YAML files as a tree with places, and a refusal of whatever could hang.

Only the events of the YAML parser are used; the scalars stay as they are written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core.errors import ConfigError
from perun.core.regular import IrregularFile, TooLarge, read_regular

if TYPE_CHECKING:
    from collections.abc import Iterator


# Scalars of YAML as they are written, and what they mean.
#
# What a plain scalar means is decided by whoever knows what is wanted: a workload written `1.0` or `~` stays
# the text it is, a switch written `yes` becomes true.

_INT = r"[-+]?[0-9]+"
_BASED = r"0o[0-7]+|0x[0-9a-fA-F]+"
_FLOAT = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
_CONSTANTS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}


class ConfigScalar(str):
    """A scalar as it is written, with its line (from 1) and whether it is plain, that is not quoted."""

    line: int
    plain: bool

    def __new__(cls, text: str, line: int, plain: bool) -> ConfigScalar:
        """Make the text."""
        self = super().__new__(cls, text)
        self.line = line
        self.plain = plain
        return self


def resolve(text: ConfigScalar) -> Any:
    """What a scalar means by the rules of YAML 1.2: null, a truth value, a number or text."""
    if not text.plain:
        return str(text)
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if len(text) < 400:
        import re

        if re.fullmatch(_INT, text):
            return int(text)
        if re.fullmatch(_BASED, text):
            return int(text[2:], 8 if text[1] == "o" else 16)
        if re.fullmatch(_FLOAT, text):
            return float(text)
    return str(text)


def resolve_all(value: Any) -> Any:
    """`value` with every scalar resolved; values that are resolved already stay as they are."""
    if isinstance(value, ConfigScalar):
        return resolve(value)
    if isinstance(value, Mapping):
        return {str(key): resolve_all(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [resolve_all(item) for item in value]
    return value


def is_null(value: Any) -> bool:
    """Whether nothing is written, or null."""
    return value is None or (
        isinstance(value, ConfigScalar) and value.plain and _CONSTANTS.get(value, 0) is None
    )


MAX_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 50
MAX_NODES: Final = 50_000
"""Limits on one file; aliases count as often as they are used."""

_OF_A_REPOSITORY: Final = ".perun"
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {_TAG + name for name in ("null", "bool", "int", "float")}
_ALLOWED_TAGS = _PLAIN_TAGS | {None, "!", _TAG + "str", _TAG + "seq", _TAG + "map"}


class MappingEntry(NamedTuple):
    """One key of a mapping with its value."""

    key: Node
    value: Node


class Node:
    """One value of a file and the part of the text that it takes.

    `start` and `end` are character offsets, the end that of the last character that belongs to the value;
    `line` and `column` count from 1 and 0. `size` is the number of nodes and `height` that of the levels
    below, aliases expanded.
    """

    __slots__ = ("column", "end", "flow", "height", "line", "size", "start", "value")

    def __init__(
        self, value: ConfigScalar | list[Node] | dict[str, MappingEntry], event: Any, flow: bool = True
    ) -> None:
        self.value = value
        self.flow = flow
        self.size = 1
        self.height = 0
        self.start, self.end = event.start_mark.index, event.end_mark.index
        self.line, self.column = event.start_mark.line + 1, event.start_mark.column


def read_text(path: Path) -> str | None:
    """The text of a configuration file, None if there is no such file.

    A link in a `.perun` may lead to another file of the same project, and nowhere else.

    :raises ConfigError: if it is not a file, cannot be read, is too large or not UTF-8.
    """
    try:
        return _content(path).decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IrregularFile:
        hint = "move it away, then set the keys again: perun config set KEY VALUE"
        raise ConfigError(f"{path} is not a file", hint) from None
    except TooLarge:
        raise ConfigError(
            f"{path} is larger than the {MAX_BYTES} bytes that a configuration may have"
        ) from None
    except OSError as problem:
        raise ConfigError(f"{path} cannot be read: {problem.strerror}", "check its permissions") from None
    except UnicodeDecodeError as problem:
        raise ConfigError(f"{path} is not UTF-8 at byte {problem.start}", "save it as UTF-8") from None


def _content(path: Path) -> bytes:
    try:
        return read_regular(path, MAX_BYTES)
    except IrregularFile:
        if not path.is_symlink():
            raise
    target = Path(os.path.realpath(path))
    if path.parent.name == _OF_A_REPOSITORY and not target.is_relative_to(path.parent.parent.resolve()):
        raise ConfigError(
            f"{path} is a link to {target}, outside of its project",
            "put the file itself there, or a link to a file of the project",
        )
    return read_regular(target, MAX_BYTES)


def parse(text: str, source: str) -> Node | None:
    """The tree of one YAML document, None if it holds nothing but comments.

    :param source: name of the file for the messages.
    :raises ConfigError: with `source:line:column`, if the text is not YAML, holds a key twice or one
        that is not text, a tag or alias that is not known, or more than the limits of this module allow.
    """
    try:
        text.encode()
    except UnicodeEncodeError:  # an argument of the command line, whose bytes may be any
        raise ConfigError(f"{source} is not UTF-8", "write it as UTF-8") from None
    return _Builder(source).build(text)


def values(node: Node) -> Any:
    """The tree as mappings, lists and :class:`ConfigScalar`; merge keys (`<<`) are merged."""
    if isinstance(node.value, ConfigScalar):
        return node.value
    if isinstance(node.value, list):
        return [values(item) for item in node.value]
    merged: dict[str, Any] = {}
    for name, entry in node.value.items():
        if name == "<<":
            given = values(entry.value)
            for mapping in reversed(given if isinstance(given, list) else [given]):
                merged.update(mapping if isinstance(mapping, dict) else {name: mapping})
    own = {entry.key.value: values(entry.value) for name, entry in node.value.items() if name != "<<"}
    return {**merged, **own}


def loads(text: str, source: str) -> Any:
    """What YAML text means, as plain data with every scalar resolved; None if it holds nothing.

    :raises ConfigError: as :func:`parse` does.
    """
    node = parse(text, source)
    return None if node is None else resolve_all(values(node))


class _Builder:
    """Builds the tree from events with a stack of its own, so that deep nesting ends in an error."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.open: list[Node] = []
        self.keys: list[Node | None] = []
        self.names: list[str | None] = []
        self.anchors: dict[str, Node] = {}
        self.root: Node | None = None

    def build(self, text: str) -> Node | None:
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        try:
            for event in _events(text):
                self._take(event, text)
        except MarkedYAMLError as problem:
            mark = problem.problem_mark or problem.context_mark
            place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
            what = problem.problem or problem.context or "cannot be parsed"
            raise ConfigError(f"{self.source}{place}: not YAML: {what}", _syntax_hint(what)) from None
        except YAMLError as problem:
            position = getattr(problem, "position", 0)
            line = text.count("\n", 0, position if isinstance(position, int) else 0) + 1
            raise ConfigError(f"{self.source}:{line}: not YAML: {str(problem).splitlines()[0]}") from None
        return self.root

    def _take(self, event: Any, text: str) -> None:
        kind = type(event).__name__
        if kind == "ScalarEvent":
            plain = event.tag in _PLAIN_TAGS or (event.tag is None and event.implicit[0])
            node = Node(ConfigScalar(event.value, event.start_mark.line + 1, plain), event)
            if event.style in ("|", ">"):
                # The parser's end of a block is after the empty lines and comments that follow it.
                node.end = node.start + len(text[node.start : node.end].rstrip())
            self._close(node, event)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._check_tag(event)
            if len(self.open) >= MAX_DEPTH:
                raise self._error(event, f"nested deeper than {MAX_DEPTH} levels")
            self.open.append(Node({} if kind[0] == "M" else [], event, bool(event.flow_style)))
            self.keys.append(None)
            self.names.append(event.anchor)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self.keys.pop()
            node = self.open.pop()
            if node.flow:
                node.end = event.end_mark.index
            self._close(node, event, self.names.pop())
        elif kind == "AliasEvent":
            if event.anchor not in self.anchors:
                raise self._error(event, f"the alias *{event.anchor} is used before its value is complete")
            target = self.anchors[event.anchor]
            node = Node(target.value, event)
            node.size, node.height = target.size, target.height
            self._attach(node, event)
        elif kind == "DocumentStartEvent" and self.root is not None:
            raise self._error(event, "holds a second document, but only one is allowed")

    def _close(self, node: Node, event: Any, anchor: str | None = None) -> None:
        self._check_tag(event)
        anchor = anchor or getattr(event, "anchor", None)
        if anchor:
            self.anchors[anchor] = node
        self._attach(node, event)

    def _attach(self, node: Node, event: Any) -> None:
        """Put a complete value where it belongs."""
        if not self.open:
            self.root = node
            return
        parent = self.open[-1]
        parent.size += node.size
        parent.height = max(parent.height, node.height + 1)
        if parent.height > MAX_DEPTH:
            raise self._error(event, f"nested deeper than {MAX_DEPTH} levels")
        if parent.size > MAX_NODES:
            raise self._error(event, f"holds more than {MAX_NODES} values, aliases expanded")
        if not parent.flow:
            parent.end = node.end
        if isinstance(parent.value, list):
            parent.value.append(node)
        elif isinstance(parent.value, dict):
            self._attach_to_mapping(parent.value, node, event)

    def _attach_to_mapping(self, mapping: dict[str, MappingEntry], node: Node, event: Any) -> None:
        key = self.keys[-1]
        if key is None:
            self.keys[-1] = self._checked_key(mapping, node, event)
        else:
            mapping[str(key.value)] = MappingEntry(key, node)
            self.keys[-1] = None

    def _checked_key(self, mapping: dict[str, MappingEntry], node: Node, event: Any) -> Node:
        key = node.value
        if not isinstance(key, ConfigScalar):
            raise self._error(event, "a key must be text, not a list or mapping")
        if key.plain and not isinstance(resolve(key), str):
            raise self._error(event, f"the key {str(key) or '(empty)'} is not text", "put it in quotes")
        if key in mapping:
            what = f"the key {str(key)!r} is given twice"
            raise self._error(event, what, f"remove one; the first is in line {mapping[key].key.line}")
        return node

    def _check_tag(self, event: Any) -> None:
        tag = getattr(event, "tag", None)
        if tag not in _ALLOWED_TAGS:
            raise self._error(event, f"the tag {str(tag)[:60]!r} is not supported", "remove the tag")

    def _error(self, event: Any, what: str, hint: str = "") -> ConfigError:
        mark = event.start_mark
        return ConfigError(f"{self.source}:{mark.line + 1}:{mark.column + 1}: {what}", hint)


def _events(text: str) -> Iterator[Any]:
    from ruamel.yaml import YAML

    return iter(YAML(typ="safe", pure=False).parse(text.removeprefix("\ufeff")))


def _syntax_hint(problem: str) -> str:
    if "cannot start any token" in problem:
        return "indent with blanks, not tabs, and put values that begin with %, @ or ` in quotes"
    if "mapping values" in problem:
        return "put a value that holds ': ' in quotes"
    return ""
