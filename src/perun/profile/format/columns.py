"""Columns of a group of resources: numbers side by side, eight bytes each, if all are of one kind.

A column is a `list`, or packed in an `array.array` of 64-bit whole numbers or of floats. Packing changes no
value and no type: what is mixed, or too large for 64 bits, or no number at all, stays a list.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, Union
from zlib import crc32

from perun.core.errors import ProfileError

if TYPE_CHECKING:
    from array import array

    from numpy.typing import NDArray


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


# Any bytes as ASCII without zero bytes: seven bits in each, eight for seven bytes.
#
# So a profile by columns is text to releases that do not know its layout, which then say that it is no
# profile, where bytes that are no UTF-8 would stop all that they do. A zero byte, which ends the header of an
# object, is written as 1 2, and 1 as 1 3.

_BITS: Final = 7


def packed(data: bytes) -> bytes:
    """The bytes as ASCII, the lowest seven bits first."""
    import numpy as np

    groups = -(-len(data) // 7)
    eights = np.zeros((groups, 8), np.uint8)
    eights[:, :7] = np.frombuffer(data + bytes(7 * groups - len(data)), np.uint8).reshape(groups, 7)
    numbers = eights.view("<u8")
    shifts = np.arange(0, 8 * _BITS, _BITS, dtype=np.uint64)
    text = ((numbers >> shifts) & np.uint64(0x7F)).astype(np.uint8).tobytes()
    return _escaped(text[: -(-len(data) * 8 // 7)])


def unpacked_bits(text: bytes | memoryview) -> bytes | None:
    """The bytes that :func:`packed` made `text` of; None if it made none such."""
    import numpy as np

    escaped = bytes(text)
    text = escaped.replace(b"\x01\x02", b"\0").replace(b"\x01\x03", b"\x01")
    size = len(text) * 7 // 8
    if -(-size * 8 // 7) != len(text) or _escaped(text) != escaped:
        return None
    groups = -(-len(text) // 8)
    sevens = np.frombuffer(text + bytes(8 * groups - len(text)), np.uint8).reshape(groups, 8)
    if (sevens > 0x7F).any():
        return None
    numbers = np.zeros(groups, np.uint64)
    for place in range(8):
        numbers |= sevens[:, place].astype(np.uint64) << np.uint64(_BITS * place)
    data = numbers.astype("<u8").view(np.uint8).reshape(groups, 8)[:, :7].tobytes()
    return data[:size] if not any(data[size:]) else None


def _escaped(text: bytes) -> bytes:
    return text.replace(b"\x01", b"\x01\x03").replace(b"\0", b"\x01\x02")


# A run of numbers of a column in few bytes, and back; the body of :mod:`perun.profile.format.columnar`.
#
# Numbers of a column resemble each other: times of calls need two bytes of eight, and their starts grow by
# small steps. So the numbers, or the steps from one to the next, are stored as what they exceed the least of
# them by, in as few bytes as hold the largest, all lowest bytes first; deflate then makes that smaller.
#
# The head of a chunk, little-endian: form (0: whole numbers; 1: floats that are a whole number of
# thousandths, stored as that number; 2: the bits of floats), 1 if steps are stored, bytes of each number (0,
# 1, 2, 4, 8), a zero byte, count of numbers (32 bits), the least number, and the first one where steps are
# stored (64 bits each). Raw deflate follows, if the numbers have any bytes. All of it is written as ASCII
# (:mod:`perun.profile.format.columns`).

MAX_NUMBERS: Final = 1 << 16
"""Numbers of a chunk at most, which is what is decoded at once."""
WHOLE, THOUSANDTHS, BITS = range(3)
"""The forms of a chunk."""

_HEAD: Final = struct.Struct("<BBBxIqq")
_WIDTHS: Final = (0, 1, 2, 4, 8)
_LEVEL: Final = 1  # on columns of times as good as the default within a tenth, in a quarter of the time
_RAW: Final = -zlib.MAX_WBITS
_TRIED: Final = 1 << 12  # numbers by which the better of two ways is found
_SCALE: Final = 1000.0


class InvalidChunk(ValueError):
    """No chunk looks like this; the message says why."""


def encoded(values: NDArray[Any]) -> bytes:
    """The chunk of `values`, int64 or float64, of shape (n,) with n from 1 to :data:`MAX_NUMBERS`.

    What :func:`decoded` gives back is the same bit by bit.
    """
    import numpy as np

    if values.dtype.kind != "f":
        return _encoded(WHOLE, np.asarray(values, np.int64))
    with np.errstate(all="ignore"):
        thousandths = np.rint(values * _SCALE).astype(np.int64)
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    if np.array_equal((thousandths / _SCALE).view(np.int64), bits):
        return _encoded(THOUSANDTHS, thousandths)
    return _encoded(BITS, bits)


def encoded_thousandths(values: NDArray[Any]) -> bytes:
    """The chunk of the floats `values / 1000`, for `values` of int64."""
    return _encoded(THOUSANDTHS, values)


def decoded(data: bytes | memoryview, kind: str) -> NDArray[Any]:
    """The numbers of a chunk: int64 where `kind` is `q`, float64 where it is `d`.

    :raises InvalidChunk: whatever `data` holds; no more memory is taken than for :data:`MAX_NUMBERS`.
    """
    form, numbers = _decoded(data)
    if (form == WHOLE) != (kind == "q"):
        raise InvalidChunk(f"a chunk of the form {form} in a column of the kind {kind!r}")
    if form == THOUSANDTHS:
        return numbers / _SCALE
    return numbers.view("f8") if form == BITS else numbers


def decoded_thousandths(data: bytes | memoryview) -> NDArray[Any]:
    """The numbers that :func:`encoded_thousandths` was given; errors as :func:`decoded`."""
    form, numbers = _decoded(data)
    if form != THOUSANDTHS:
        raise InvalidChunk(f"a chunk of the form {form} in place of thousandths")
    return numbers


def _encoded(form: int, values: NDArray[Any]) -> bytes:
    if len(values) <= _TRIED:
        return min((_tried(form, values, steps) for steps in (False, True)), key=len)
    sample = values[:_TRIED]
    return _tried(form, values, len(_tried(form, sample, True)) < len(_tried(form, sample, False)))


def _tried(form: int, values: NDArray[Any], steps: bool) -> bytes:
    import numpy as np

    # All of this is modulo 2^64, so that no difference is too large.
    numbers = values[1:] - values[:-1] if steps else values
    least = int(numbers.min()) if len(numbers) else 0
    excess = (numbers - np.int64(least)).view(np.uint64)
    largest = int(excess.max()) if len(numbers) else 0
    width = next(one for one in _WIDTHS if largest < 1 << 8 * one)
    head = _HEAD.pack(form, steps, width, len(values), least, int(values[0]) if steps else 0)
    if not width:
        return packed(head)
    planes = excess.astype(f"<u{width}").view(np.uint8).reshape(-1, width).T.tobytes()
    stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)
    return packed(head + stream.compress(planes) + stream.flush())


def _decoded(text: bytes | memoryview) -> tuple[int, NDArray[Any]]:
    import numpy as np

    data = unpacked_bits(text)
    if data is None:
        raise InvalidChunk("a chunk is not written in seven bits")
    if len(data) < _HEAD.size:
        raise InvalidChunk("a chunk is shorter than its head")
    form, steps, width, count, least, first = _HEAD.unpack_from(data)
    if form not in (WHOLE, THOUSANDTHS, BITS) or steps > 1 or width not in _WIDTHS:
        raise InvalidChunk("a chunk is in no known form")
    if not 0 < count <= MAX_NUMBERS:
        raise InvalidChunk(f"a chunk of {count} numbers; expected 1 to {MAX_NUMBERS}")
    stored = count - steps
    planes = _inflated(data[_HEAD.size :], stored * width)
    excess = np.zeros(stored, np.uint64)
    if width:
        rows = np.frombuffer(planes, np.uint8).reshape(width, stored).T
        excess = np.ascontiguousarray(rows).view(f"<u{width}").reshape(-1).astype(np.uint64)
    numbers = excess.view(np.int64) + np.int64(least)
    if not steps:
        return form, numbers
    whole = np.empty(count, np.int64)
    whole[0], whole[1:] = first, numbers
    return form, np.cumsum(whole, out=whole)


def _inflated(data: bytes, size: int) -> bytes:
    """Exactly `size` bytes, from raw deflate that ends with the data."""
    if not size and not data:
        return b""
    stream = zlib.decompressobj(_RAW)
    try:
        found = stream.decompress(data, size + 1)
    except zlib.error as problem:
        raise InvalidChunk(f"a chunk does not decompress: {problem}") from None
    if len(found) != size or not stream.eof or stream.unused_data:
        raise InvalidChunk("a chunk does not have the size that its head says")
    return found


# Columns of numbers that stay compressed in memory until somebody asks for them.
#
# A profile of ten million calls has 400 MB of numbers, and 20 to 50 MB of chunks.

Kind = Literal["q", "d"]
"""Whole numbers of 64 bits, or floats: the type codes of :mod:`array`."""
KINDS: Final = ("q", "d")


class ColumnChunk(NamedTuple):
    """Numbers that follow each other, as :mod:`perun.profile.format.columns` stores them.

    :param size: count of the numbers, at most :data:`MAX_NUMBERS`. :param checksum: CRC-32 of `data`.
    """

    size: int
    data: bytes | memoryview
    checksum: int


class CompressedColumn:
    """A column of numbers of one kind; it only grows, by :meth:`append`.

    :ivar kind: of all its numbers. :ivar chunks: what they are stored in, in order.
    """

    __slots__ = ("_size", "_source", "chunks", "kind")

    def __init__(self, kind: Kind, stored: Iterable[ColumnChunk] = (), source: str = "") -> None:
        """:param source: where the chunks were read from, for messages; empty where they were made here."""
        self.kind = kind
        self.chunks = list(stored)
        self._size = sum(chunk.size for chunk in self.chunks)
        self._source = source

    def __len__(self) -> int:
        return self._size

    def __reduce__(self) -> tuple[Any, ...]:
        stored = [chunk._replace(data=bytes(chunk.data)) for chunk in self.chunks]
        return CompressedColumn, (self.kind, stored, self._source)

    def __repr__(self) -> str:
        return f"<CompressedColumn of {len(self)} numbers, kind {self.kind!r}>"

    @classmethod
    def of(cls, column: array[int] | array[float]) -> CompressedColumn:
        """The packed column, compressed."""
        import numpy as np

        found = cls("d" if column.typecode == "d" else "q")
        found.append(np.frombuffer(column, column.typecode))
        return found

    def append(self, values: NDArray[Any], *, thousandths: bool = False) -> None:
        """Add numbers at the end: int64 or float64 as the kind says, of shape (n,).

        :param thousandths: add the floats `values / 1000`, for int64.
        """
        encode = encoded_thousandths if thousandths else encoded
        for start in range(0, len(values), MAX_NUMBERS):
            part = values[start : start + MAX_NUMBERS]
            data = encode(part)
            self.chunks.append(ColumnChunk(len(part), data, crc32(data)))
            self._size += len(part)

    def parts(self, *, thousandths: bool = False) -> Iterator[NDArray[Any]]:
        """The numbers of one chunk after the other.

        :param thousandths: what :meth:`append` was given with this parameter.
        :raises ProfileError: if a chunk is damaged.
        """
        for chunk in self.chunks:
            try:
                # What was made here is as it was made; a file is verified before anything is taken from it.
                if self._source and crc32(chunk.data) != chunk.checksum:
                    raise InvalidChunk("a chunk does not match its checksum")
                decode = decoded_thousandths
                part = decode(chunk.data) if thousandths else decoded(chunk.data, self.kind)
                if len(part) != chunk.size:
                    raise InvalidChunk("a chunk does not have as many numbers as the directory says")
            except InvalidChunk as problem:
                raise ProfileError(
                    f"{self._source}: the columns are damaged: {problem}",
                    "restore the file from a copy, or collect the profile again",
                ) from None
            yield part

    def unpacked(self) -> array[int] | array[float]:
        """All numbers, as a packed column; errors as :meth:`parts`."""
        from array import array

        found: Any = array(self.kind)
        for part in self.parts():
            found.frombytes(part.data.cast("B"))
        return found  # type: ignore[no-any-return]

    def verify(self) -> None:
        """Decode what was read from a file, and keep nothing; errors as :meth:`parts`."""
        if self._source:
            for _ in self.parts():
                pass
            self._source = ""


StoredColumn = Column | CompressedColumn
"""A column in the memory of a profile."""


def is_stored(column: Any) -> bool:
    """Whether it is a column in one of its forms."""
    return isinstance(column, (list, CompressedColumn)) or is_packed(column)


def opened(column: StoredColumn) -> Column:
    """The column, unpacked where it is compressed."""
    return column.unpacked() if isinstance(column, CompressedColumn) else column


def open_columns(columns: Mapping[str, StoredColumn]) -> Mapping[str, Column]:
    """The columns of a group for reading: of those that are compressed only what is asked for is unpacked."""
    if any(isinstance(column, CompressedColumn) for column in columns.values()):
        return _OpenColumns(columns)
    return columns  # type: ignore[return-value]  # none is compressed


def with_stored_columns(resources: Any) -> Any:
    """The region `resources` with what :func:`open_columns` was made from in place of what it made."""
    if not isinstance(resources, dict) or not any(
        isinstance(columns, _OpenColumns) for columns in resources.values()
    ):
        return resources
    return {
        key: columns.stored if isinstance(columns, _OpenColumns) else columns
        for key, columns in resources.items()
    }


class _OpenColumns(Mapping[str, Column]):
    def __init__(self, columns: Mapping[str, StoredColumn]) -> None:
        self.stored = columns
        self._open: dict[str, Column] = {}

    def __getitem__(self, name: str) -> Column:
        if name not in self._open:
            self._open[name] = opened(self.stored[name])
        return self._open[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def __contains__(self, name: object) -> bool:
        return name in self.stored
