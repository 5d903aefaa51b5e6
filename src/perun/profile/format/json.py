"""Profiles as JSON: reading, checking and writing them (manual 2.1).

The bytes that are read may come from anywhere: whatever they hold, the result is a profile or a
:class:`~perun.errors.ProfileError`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from perun.errors import ProfileError
from perun.profile.format import bulk, older, validation
from perun.profile.format.columns import is_packed, unpacked
from perun.profile.format.core import Profile
from perun.profile.format.validation import validate

__all__ = [
    "SIZE_LIMIT",
    "decode_head",
    "dumps_object",
    "dumps_pending",
    "loads",
    "pending_pieces",
    "validate",
]

SIZE_LIMIT: Final = 512 << 20
"""Bytes of JSON that are read at most; as much again, and some more, is needed in memory."""

_MSGSPEC_FROM: Final = 1 << 20  # bytes; json decodes them in the time that importing msgspec takes
_NUMBERS: Final = {int, float}
_PIECE: Final = 1 << 18
_NUMBERS_PER_PIECE: Final = 512
_FAST_NUMBERS_FROM: Final = 1 << 16  # json encodes them in the time that importing msgspec takes
_WRITTEN_FIRST: Final = ("origin", "header", "collector_info", "postprocessors")
"""The regions of the head stand in front, in this order, so that a reader of the head stops behind them."""


def loads(data: bytes, source: str, *, limit: int = SIZE_LIMIT) -> Profile:
    """The profile that `data` holds, in any layout that Perun reads.

    :param source: where it comes from, for the message.
    :param limit: number of bytes that are read at most.
    :raises ProfileError: if it is not UTF-8, not JSON, not a profile, or larger than `limit`.
    """
    _check_size(data, source, limit)
    if _uses_msgspec(data):
        try:
            regions = bulk.regions(data)
            validate(regions, source)
            return Profile(regions)
        except bulk.Unsuitable:
            pass  # if it is not simply wrong, the more lenient reader can read it
    regions = _decode(data, source, None)
    validate(regions, source)
    profile = Profile(regions)
    profile.pack()
    return profile


def decode_head(data: bytes, source: str, *, limit: int = SIZE_LIMIT) -> dict[str, Any]:
    """The regions `header`, `collector_info`, `postprocessors` and `origin`, checked, in today's layout.

    Resources are skipped, and not checked.

    :raises ProfileError: as :func:`loads`, for these regions.
    """
    _check_size(data, source, limit)
    regions = _decode(data, source, _head_of(data))
    validation.head(regions, source)
    return {
        "header": older.header(regions["header"]),
        "collector_info": older.unit(regions["collector_info"]),
        "postprocessors": [older.unit(one) for one in regions.get("postprocessors", ())],
        "origin": regions.get("origin") or "",
    }


def dumps_object(profile: Profile) -> bytes:
    """The profile as the body of an object (manual 13.2.2): one line of ASCII, without `origin`.

    :raises ProfileError: if a value has no JSON.
    """
    buffer = io.BytesIO()  # hands out what it holds without a copy
    regions = profile.regions()
    regions.pop("origin", None)
    buffer.writelines(_encoded(regions, _COMPACT))
    return buffer.getvalue()


def dumps_pending(profile: Profile) -> bytes:
    """As :func:`pending_pieces`, in one."""
    buffer = io.BytesIO()
    buffer.writelines(pending_pieces(profile))
    return buffer.getvalue()


def pending_pieces(profile: Profile) -> Iterator[bytes]:
    """The profile as a job file, piece by piece: JSON in ASCII with indent 2, lists of numbers on one line.

    :raises ProfileError: if a value has no JSON.
    """
    return _encoded(profile.regions(), _PRETTY)


class _Style(NamedTuple):
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


def _encoded(regions: dict[str, Any], style: _Style) -> Iterator[bytes]:
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


def _regions(regions: Mapping[str, Any], style: _Style) -> Iterator[str]:
    opening = "{" + style.line(1)
    for key, value in regions.items():
        yield opening + _key(key, style)
        if key == "resources" and isinstance(value, Mapping) and value:
            yield from _groups(value, style)
        else:
            yield style.text(value, style.line(1))
        opening = "," + style.line(1)
    yield style.line(0) + "}"


def _groups(groups: Mapping[str, Any], style: _Style) -> Iterator[str]:
    opening = "{" + style.line(2)
    for key, columns in groups.items():
        yield opening + _key(key, style)
        if isinstance(columns, Mapping) and columns:
            inner = "{" + style.line(3)
            for name, column in columns.items():
                yield inner + _key(name, style)
                if is_packed(column):
                    yield from _numbers(column, style)
                else:
                    yield style.text(column, style.line(3))
                inner = "," + style.line(3)
            yield style.line(2) + "}"
        else:
            yield style.text(columns, style.line(2))
        opening = "," + style.line(2)
    yield style.line(1) + "}"


def _numbers(column: Any, style: _Style) -> Iterator[str]:
    """A packed column, some numbers at a time."""
    opening = "["
    encode = _fast_numbers() if len(column) >= _FAST_NUMBERS_FROM else _plain_numbers
    for start in range(0, len(column), _NUMBERS_PER_PIECE):
        text = encode(column[start : start + _NUMBERS_PER_PIECE].tolist())
        yield opening + (text if style.between == "," else text.replace(",", style.between))
        opening = style.between
    yield "]"


def _plain_numbers(values: list[Any]) -> str:
    import json

    return json.dumps(values, separators=(",", ":"))[1:-1]


def _fast_numbers() -> Callable[[list[Any]], str]:
    import msgspec

    encode = msgspec.json.encode

    def encoded(values: list[Any]) -> str:
        text: bytes = encode(values)
        # msgspec writes the digits that Python does, except where Python uses an exponent, NaN or Infinity.
        if b"e" in text or b"n" in text or b"0.0000" in text:
            return _plain_numbers(values)
        return text[1:-1].decode("ascii")

    return encoded


def _key(key: Any, style: _Style) -> str:
    import json

    if not isinstance(key, str):
        raise TypeError(f"the key {key!r} is not text")
    return json.dumps(key) + style.colon


def _check_size(data: bytes, source: str, limit: int) -> None:
    if len(data) > limit:
        raise ProfileError(
            f"{source}: {len(data)} bytes of profile, more than the limit of {limit} (profiles.max_size)",
            "collect fewer resources, e.g. with a coarser sampling, or raise the limit",
        )


def _uses_msgspec(data: bytes) -> bool:
    return len(data) >= _MSGSPEC_FROM or "msgspec" in sys.modules


def _decode(data: bytes, source: str, regions: Any) -> dict[str, Any]:
    """The regions; decoded by Python's own reader of JSON if `regions` is None."""
    try:
        if regions is None:
            regions = _decode_leniently(data)
    except RecursionError:
        raise ProfileError(
            f"{source}: the JSON is nested too deeply", "no collector writes such a profile"
        ) from None
    except ValueError as problem:
        raise ProfileError(
            f"{source}: not JSON in UTF-8: {problem}",
            "the file is damaged or no profile; collect it again or restore the file",
        ) from None
    if not isinstance(regions, dict):
        raise ProfileError(
            f"{source}: expected a mapping of regions", "section 2.1 of the manual describes the format"
        )
    return regions


def _head_of(data: bytes) -> dict[str, Any] | None:
    """The head as msgspec decodes it; None if msgspec is not used, or refuses the JSON."""
    if not _uses_msgspec(data):
        return None
    import msgspec

    try:
        regions = msgspec.structs.asdict(msgspec.json.decode(data, type=_head_struct()))
        return {key: value for key, value in regions.items() if value is not msgspec.UNSET}
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


@cache
def _head_struct() -> Any:
    import msgspec

    regions = ("header", "collector_info", "postprocessors", "origin")
    return msgspec.defstruct("Head", [(region, Any, msgspec.UNSET) for region in regions])


def _decode_leniently(data: bytes) -> Any:
    import json

    return json.loads(data.decode("utf-8"))


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
    elif is_packed(value):
        parts.append(encode(unpacked(value)))
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
    import json

    parts: list[str] = []
    _pretty(value, newline, parts, json.JSONEncoder().encode)
    return "".join(parts)


def _compact_text(value: Any, newline: str) -> str:
    import json

    return json.dumps(value, separators=(",", ":"), default=_default)


_PRETTY: Final = _Style("  ", ", ", ": ", _pretty_text)
_COMPACT: Final = _Style(None, ",", ":", _compact_text)


def _default(value: Any) -> Any:
    if is_packed(value):
        return unpacked(value)
    raise TypeError(f"{value!r} has no JSON")


def _no_json(problem: Exception) -> ProfileError:
    reason = "nested too deeply" if isinstance(problem, RecursionError) else problem
    return ProfileError(
        f"the profile cannot be written as JSON: {reason}",
        "the collector or postprocessor must use text, numbers, lists and mappings with text as keys only",
    )
