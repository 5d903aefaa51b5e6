"""Where in its file a value of the configuration stands, for the messages of those who find it wrong.

Only a mistake needs that, so the file is read once more instead of keeping the lines of all values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from perun.config.layers import MISSING, Config, Layer
from perun.config.reader import Node, parse, read_text
from perun.errors import ConfigError


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
