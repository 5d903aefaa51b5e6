"""Profiles written as JSON, piece by piece: the layouts of job files and of objects (manual 2.1, 13.2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, groupby, islice
from typing import Any, Final, NamedTuple

from perun.core.errors import ProfileError
from perun.profile.format.columns import CompressedColumn, is_packed, unpacked

_NUMBERS: Final = {int, float}
_TEXT: Final = {str}
_LIST: Final = {list}
_PIECE: Final = 1 << 18
_NUMBERS_PER_PIECE: Final = 512
_FAST_NUMBERS_FROM: Final = 1 << 16  # json encodes them in the time that importing msgspec takes
_WRITTEN_FIRST: Final = ("origin", "header", "collector_info", "postprocessors")
"""The regions of the head stand in front, in this order, so that a reader of the head stops behind them."""


class JsonStyle(NamedTuple):
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


def encoded(regions: dict[str, Any], style: JsonStyle) -> Iterator[bytes]:
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


def _regions(regions: Mapping[str, Any], style: JsonStyle) -> Iterator[str]:
    opening = "{" + style.line(1)
    for key, value in regions.items():
        yield opening + _key(key, style)
        if key == "resources" and isinstance(value, Mapping) and value:
            yield from _groups(value, style)
        elif key == "resource_type_map" and style.indent is None and isinstance(value, Mapping) and value:
            yield from _constants(value, style)
        else:
            yield style.text(value, style.line(1))
        opening = "," + style.line(1)
    yield style.line(0) + "}"


def _constants(constants: Mapping[str, Any], style: JsonStyle) -> Iterator[str]:
    """The constants of groups, compact; frames that are the same object are encoded once."""
    frames: dict[int, str] = {}
    opening, waiting = "{", iter(constants.items())
    while some := dict(islice(waiting, _NUMBERS_PER_PIECE)):
        stacks, others = [], dict(some)
        for key, own in some.items():
            if type(own) is dict and type(trace := own.get("trace")) is list:
                for frame in trace:
                    if id(frame) not in frames:
                        frames[id(frame)] = style.text(frame, "")
                stacks.append(f'"trace":[{",".join([frames[id(frame)] for frame in trace])}]')
                others[key] = {**own, "trace": None}
        # No text has that, as quotes in texts are escaped.
        between = style.text(others, "")[1:-1].split('"trace":null')
        if len(between) == len(stacks) + 1:
            yield opening + "".join(chain.from_iterable(zip(between, [*stacks, ""], strict=True)))
        else:
            yield opening + style.text(some, "")[1:-1]
        opening = ","
    yield "}"


def _groups(groups: Mapping[str, Any], style: JsonStyle) -> Iterator[str]:
    opening = "{" + style.line(2)
    for are_short, run in groupby(groups.items(), _is_short):
        while are_short and style.indent is None and (some := dict(islice(run, _NUMBERS_PER_PIECE))):
            yield opening + style.text(some, "")[1:-1]
            opening = ","
        for key, columns in run:
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


def _is_short(group: tuple[Any, Any]) -> bool:
    """Whether all columns of a group are lists, as those are that nobody packed, and all keys texts: then
    many groups are written at once."""
    key, columns = group
    return (
        type(key) is str
        and type(columns) is dict
        and set(map(type, columns)) <= _TEXT
        and set(map(type, columns.values())) == _LIST
    )


def _numbers(parts: Iterable[Any], count: int, style: JsonStyle) -> Iterator[str]:
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


def _key(key: Any, style: JsonStyle) -> str:
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


PRETTY: Final = JsonStyle("  ", ", ", ": ", _pretty_text)
COMPACT: Final = JsonStyle(None, ",", ":", _compact_text)


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


# Call stacks that many groups of resources share, each stored once in a profile by columns.
#
# In JSON every group spells its `trace`, frame by frame. In the directory of a profile by columns the `trace`
# is the number of a stack, which is a list of numbers of frames; both lists stand beside the groups.

REGION: Final = "stacks"
"""The key of both lists in a directory."""


class InvalidStacks(Exception):
    """Numbers of frames or stacks that there are not; the text says which."""


class StackConstants(NamedTuple):
    """Constants of groups with numbers in place of stacks.

    :param stacks: `frames`: JSON values, mostly mappings, all different; `stacks`: lists of their numbers.
    """

    constants: dict[str, Any]
    stacks: dict[str, list[Any]]


def frames_in(constants: Any) -> int:
    """The number of frames in the stacks of groups, each counted as often as JSON spells it.

    :param constants: the region `resource_type_map`, of any form.
    """
    return sum(map(len, _traces(constants))) if isinstance(constants, Mapping) else 0


def _traces(constants: Mapping[str, Any]) -> list[list[Any]]:
    return [
        own["trace"]
        for own in constants.values()
        if isinstance(own, Mapping) and isinstance(own.get("trace"), list)
    ]


def share(constants: Any) -> StackConstants | None:
    """The groups with each different stack once; None where they have none, or a `trace` that is no list.

    :param constants: the region `resource_type_map`, of any form.
    """
    if not isinstance(constants, Mapping):
        return None
    with_trace = sum(isinstance(own, Mapping) and "trace" in own for own in constants.values())
    if not with_trace or with_trace > len(_traces(constants)):
        return None
    numbers = _Numbers()
    try:
        found = {
            key: {**own, "trace": numbers.of(own["trace"])} if "trace" in own else own
            for key, own in constants.items()
        }
    except (TypeError, ValueError, RecursionError):
        return None  # no JSON: who writes the profile says so
    return StackConstants(
        found, {"frames": numbers.frames, "stacks": [list(stack) for stack in numbers.stacks]}
    )


class _Numbers:
    """Numbers of frames and of stacks in the order in which they come first."""

    def __init__(self) -> None:
        self.frames: list[Any] = []
        self.stacks: dict[tuple[int, ...], int] = {}
        self._of_text: dict[str, int] = {}
        self._of_object: dict[int, int] = {}

    def of(self, trace: list[Any]) -> int:
        known = self._of_object
        stack = tuple([known.get(id(frame)) or self._frame(frame) for frame in trace])
        return self.stacks.setdefault(stack, len(self.stacks))

    def _frame(self, frame: Any) -> int:
        number = self._of_object.get(id(frame))
        if number is None:
            # By its JSON: 1, 1.0 and true are equal, but not the same.
            number = self._of_text.setdefault(COMPACT.text(frame, ""), len(self.frames))
            if number == len(self.frames):
                self.frames.append(frame)
            self._of_object[id(frame)] = number  # it lives as long as the profile
        return number


def restore(constants: dict[str, Any], stacks: Any, most: int) -> None:
    """Put the stacks in place of their numbers; groups get lists of their own, of common frames.

    :param stacks: as :func:`share` makes it, but from a file. :param most: frames of all groups at most.
    :raises InvalidStacks: where it is not, or there are more.
    """
    frames, lists = (stacks.get("frames"), stacks.get("stacks")) if isinstance(stacks, dict) else (0, 0)
    if not isinstance(frames, list) or not isinstance(lists, list):
        raise InvalidStacks("its directory has no lists of stacks")
    for own in constants.values():
        if not isinstance(own, dict) or "trace" not in own:
            continue
        stack = _item(lists, own["trace"])
        if not isinstance(stack, list):
            raise InvalidStacks("its directory has a stack that is no list")
        most -= len(stack)
        if most < 0:
            raise InvalidStacks("its stacks have more frames than JSON of the largest size holds")
        own["trace"] = [_item(frames, number) for number in stack]


def _item(items: list[Any], number: Any) -> Any:
    if type(number) is not int or not 0 <= number < len(items):
        raise InvalidStacks("its directory refers to a stack or a frame that it does not have")
    return items[number]
