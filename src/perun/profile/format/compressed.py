"""Columns of numbers that stay compressed in memory until somebody asks for them.

A profile of ten million calls has 400 MB of numbers, and 20 to 50 MB of chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from zlib import crc32

from perun.errors import ProfileError
from perun.profile.format import chunks
from perun.profile.format.chunks import MAX_NUMBERS, InvalidChunk
from perun.profile.format.columns import Column, is_packed

if TYPE_CHECKING:
    from array import array

    from numpy.typing import NDArray

Kind = Literal["q", "d"]
"""Whole numbers of 64 bits, or floats: the type codes of :mod:`array`."""
KINDS: Final = ("q", "d")


class Chunk(NamedTuple):
    """Numbers that follow each other, as :mod:`perun.profile.format.chunks` stores them.

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

    def __init__(self, kind: Kind, stored: Iterable[Chunk] = (), source: str = "") -> None:
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
        encode = chunks.encoded_thousandths if thousandths else chunks.encoded
        for start in range(0, len(values), MAX_NUMBERS):
            part = values[start : start + MAX_NUMBERS]
            data = encode(part)
            self.chunks.append(Chunk(len(part), data, crc32(data)))
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
                decode = chunks.decoded_thousandths
                part = decode(chunk.data) if thousandths else chunks.decoded(chunk.data, self.kind)
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
