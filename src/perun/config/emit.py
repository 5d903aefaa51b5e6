"""Values as YAML text that every reader of YAML 1.1 and 1.2 understands the same way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_WORD = r"[A-Za-z0-9_./+=~^-]"
_PLAIN: Final = re.compile(rf"\.\.|([A-Za-z_]|\.{{0,2}}/){_WORD}*( {_WORD}+)*")
_CONSTANTS: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def scalar(text: str) -> str:
    """Text as one scalar on one line, in quotes if it could be read as something else."""
    if _PLAIN.fullmatch(text) and text.lower() not in _CONSTANTS:
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escaped, text)) + '"'


def inline(value: Any) -> str:
    """Any value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(str(key))}: {inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(inline, value)) + "]"
    if isinstance(value, str):
        return scalar(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(text, text)


def entry(key: str, value: Any, indent: int = 0) -> list[str]:
    """The lines of a key with its value; what holds other values has a line for each of them."""
    head = " " * indent + scalar(key) + ":"
    if is_block(value):
        return [head, *block(value, indent + 2)]
    return [f"{head} {inline(value)}"]


def block(value: Any, indent: int = 0) -> list[str]:
    """The lines of a mapping or list that is not empty."""
    if isinstance(value, Mapping):
        return [line for key, item in value.items() for line in entry(str(key), item, indent)]
    lines: list[str] = []
    for item in value:
        if is_block(item):
            first, *rest = block(item, indent + 2)
            lines += [" " * indent + "- " + first.lstrip(" "), *rest]
        else:
            lines.append(" " * indent + "- " + inline(item))
    return lines


def is_block(value: Any) -> bool:
    """Whether the value takes lines of its own below its key."""
    return isinstance(value, (Mapping, list, tuple)) and bool(value)


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
