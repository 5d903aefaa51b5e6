"""Profiles written as JSON, piece by piece: the layouts of job files and of objects (manual 2.1, 13.2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from perun.errors import ProfileError
from perun.profile.format.columns import is_packed, unpacked
from perun.profile.format.compressed import CompressedColumn

_NUMBERS: Final = {int, float}
_PIECE: Final = 1 << 18
_NUMBERS_PER_PIECE: Final = 512
_FAST_NUMBERS_FROM: Final = 1 << 16  # json encodes them in the time that importing msgspec takes
_WRITTEN_FIRST: Final = ("origin", "header", "collector_info", "postprocessors")
"""The regions of the head stand in front, in this order, so that a reader of the head stops behind them."""


class Style(NamedTuple):
    """How JSON is laid out.

    :param indent: spaces of each level; None for no line breaks.
    :param text: the JSON of a value that stands on a line which begins like the second argument.
    """

    indent: str | None
    between: str
    colon: str
    text: Callable[[Any, str], str]

    def line(self, level: int) -> str:
        """A line break and the indent of the level."""
        return "" if self.indent is None else "\n" + level * self.indent


def encoded(regions: dict[str, Any], style: Style) -> Iterator[bytes]:
    """The JSON of the regions, the head first, in pieces of about :data:`_PIECE` bytes."""
    ordered = {key: regions[key] for key in _WRITTEN_FIRST if key in regions} | regions
    parts: list[str] = []
    size = 0
    try:
        for part in _regions(ordered, style):
            parts.append(part)
            size += len(part)
            if size > _PIECE:
                yield "".join(parts).encode("ascii")
                size = 0
                parts.clear()
    except (TypeError, ValueError, RecursionError) as problem:
        raise _no_json(problem) from None
    yield "".join(parts).encode("ascii")


def _regions(regions: Mapping[str, Any], style: Style) -> Iterator[str]:
    opening = "{" + style.line(1)
    for key, value in regions.items():
        yield opening + _key(key, style)
        if key == "resources" and isinstance(value, Mapping) and value:
            yield from _groups(value, style)
        else:
            yield style.text(value, style.line(1))
        opening = "," + style.line(1)
    yield style.line(0) + "}"


def _groups(groups: Mapping[str, Any], style: Style) -> Iterator[str]:
    opening = "{" + style.line(2)
    for key, columns in groups.items():
        yield opening + _key(key, style)
        if isinstance(columns, Mapping) and columns:
            inner = "{" + style.line(3)
            for name, column in columns.items():
                yield inner + _key(name, style)
                if isinstance(column, CompressedColumn):
                    yield from _numbers(column.parts(), len(column), style)
                elif is_packed(column):
                    yield from _numbers([column], len(column), style)
                else:
                    yield style.text(column, style.line(3))
                inner = "," + style.line(3)
            yield style.line(2) + "}"
        else:
            yield style.text(columns, style.line(2))
        opening = "," + style.line(2)
    yield style.line(1) + "}"


def _numbers(parts: Iterable[Any], count: int, style: Style) -> Iterator[str]:
    """A packed column, which may come in parts, some numbers at a time; :param count: of all its numbers."""
    opening = "["
    encode = _fast_numbers() if count >= _FAST_NUMBERS_FROM else _plain_numbers
    for part in parts:
        for start in range(0, len(part), _NUMBERS_PER_PIECE):
            text = encode(part[start : start + _NUMBERS_PER_PIECE].tolist())
            yield opening + (text if style.between == "," else text.replace(",", style.between))
            opening = style.between
    yield "]" if count else "[]"


def _json() -> Any:
    import json  # most of the time a head is read, which needs none of this

    return json


def _plain_numbers(values: list[Any]) -> str:
    text: str = _json().dumps(values, separators=(",", ":"))
    return text[1:-1]


def _fast_numbers() -> Callable[[list[Any]], str]:
    import msgspec

    encode = msgspec.json.encode

    def encoded_numbers(values: list[Any]) -> str:
        text: bytes = encode(values)
        # msgspec writes the digits that Python does, except where Python uses an exponent, NaN or Infinity.
        if b"e" in text or b"n" in text or b"0.0000" in text:
            return _plain_numbers(values)
        return text[1:-1].decode("ascii")

    return encoded_numbers


def _key(key: Any, style: Style) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r} is not text")
    text: str = _json().dumps(key)
    return text + style.colon


def _pretty(value: Any, newline: str, parts: list[str], encode: Callable[[Any], str]) -> None:
    """Append the JSON of `value` to `parts`; `newline` is a line break and the indent of its line."""
    inner = newline + "  "
    if isinstance(value, Mapping) and value:
        opening = "{" + inner
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not text")
            if isinstance(item, str):  # nearly all values of a trace; a call for each would double the time
                parts.append(f"{opening}{encode(key)}: {encode(item)}")
            else:
                parts.append(f"{opening}{encode(key)}: ")
                _pretty(item, inner, parts, encode)
            opening = "," + inner
        parts.append(newline + "}")
    elif is_packed(value) or isinstance(value, CompressedColumn):
        parts.append(encode(_default(value)))
    elif isinstance(value, (list, tuple)) and value and not set(map(type, value)) <= _NUMBERS:
        opening = "[" + inner
        for item in value:
            parts.append(opening)
            _pretty(item, inner, parts, encode)
            opening = "," + inner
        parts.append(newline + "]")
    elif type(value) is int:
        parts.append(repr(value))
    else:
        parts.append(encode(value))


def _pretty_text(value: Any, newline: str) -> str:
    parts: list[str] = []
    _pretty(value, newline, parts, _json().JSONEncoder().encode)
    return "".join(parts)


def _compact_text(value: Any, newline: str) -> str:
    text: str = _json().dumps(value, separators=(",", ":"), default=_default)
    return text


PRETTY: Final = Style("  ", ", ", ": ", _pretty_text)
COMPACT: Final = Style(None, ",", ":", _compact_text)


def _default(value: Any) -> Any:
    if isinstance(value, CompressedColumn):
        value = value.unpacked()
    if is_packed(value):
        return unpacked(value)
    raise TypeError(f"{value!r} has no JSON")


def _no_json(problem: Exception) -> ProfileError:
    reason = "nested too deeply" if isinstance(problem, RecursionError) else problem
    return ProfileError(
        f"the profile cannot be written as JSON: {reason}",
        "the collector or postprocessor must use text, numbers, lists and mappings with text as keys only",
    )
