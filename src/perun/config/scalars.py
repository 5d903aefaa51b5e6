"""Scalars of YAML as they are written, and what they mean.

What a plain scalar means is decided by whoever knows what is wanted: a workload written `1.0` or `~` stays
the text it is, a switch written `yes` becomes true.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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


class Text(str):
    """A scalar as it is written, with its line (from 1) and whether it is plain, that is not quoted."""

    line: int
    plain: bool

    def __new__(cls, text: str, line: int, plain: bool) -> Text:
        """Make the text."""
        self = super().__new__(cls, text)
        self.line = line
        self.plain = plain
        return self


def resolve(text: Text) -> Any:
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
    if isinstance(value, Text):
        return resolve(value)
    if isinstance(value, Mapping):
        return {str(key): resolve_all(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [resolve_all(item) for item in value]
    return value


def is_null(value: Any) -> bool:
    """Whether nothing is written, or null."""
    return value is None or (isinstance(value, Text) and value.plain and _CONSTANTS.get(value, 0) is None)
