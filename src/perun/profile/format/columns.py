"""Columns of a group of resources: numbers side by side, eight bytes each, if all are of one kind.

A column is a `list`, or packed in an `array.array` of 64-bit whole numbers or of floats. Packing changes no
value and no type: what is mixed, or too large for 64 bits, or no number at all, stays a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, Union

if TYPE_CHECKING:
    from array import array

Column: TypeAlias = Union[list[Any], "array[int]", "array[float]"]
PACKED_FROM: Final = 32
"""Length from which a column is packed; below that an array takes as much memory as a list."""

_CODES: Final = {int: "q", float: "d"}
_SLICE: Final = 1 << 20


def is_packed(column: Any) -> bool:
    """Whether the column is an array: then all its values are `int`, or all are `float`."""
    return hasattr(column, "typecode")


def pack(values: list[Any]) -> Column:
    """The values as a packed column if that can be, else the list itself."""
    if len(values) < PACKED_FROM or type(values[0]) not in _CODES:
        return values
    kinds = set(map(type, values))
    return _packed(values, _CODES[kinds.pop()]) if len(kinds) == 1 else values


def pack_decoded(values: list[Any], text: bytes) -> Column:
    """As :func:`pack`, for values that were decoded from the JSON `text`, which tells their kinds at once."""
    if len(values) < PACKED_FROM:
        return values
    if type(values[0]) is float and _count(text, b".") == len(values):
        return _packed(values, "d")  # every number has its point, and what is no number is refused
    if type(values[0]) is int and not _count(text, b"e"):
        return _packed(values, "q")  # neither true nor false
    return pack(values)


def unpacked(column: Column) -> list[Any]:
    """The column as a list; the same one if it is a list."""
    return column if isinstance(column, list) else column.tolist()


def extended(column: Column, values: list[Any]) -> Column:
    """The column with more values at its end: the same object, changed, wherever that can be."""
    if isinstance(column, list):
        column.extend(values)
        return column
    code = column.typecode
    alike = {_CODES.get(kind) for kind in set(map(type, values))} <= {code}
    tail = _packed(values, code) if alike else values
    if isinstance(tail, list):
        return column.tolist() + tail
    try:
        column.extend(tail)  # type: ignore[arg-type]  # both are of the same kind
    except BufferError:  # numpy looks at it
        column = column[:]
        column.extend(tail)  # type: ignore[arg-type]
    return column


def _count(text: bytes, letter: bytes) -> int:
    # In slices, as msgspec's piece of a text is only a view, which has to be copied to be searched.
    view = memoryview(text)
    return sum(bytes(view[start : start + _SLICE]).count(letter) for start in range(0, len(view), _SLICE))


def _packed(values: list[Any], code: str) -> Column:
    from array import array

    try:
        return array(code, values)
    except (TypeError, OverflowError):
        return values
