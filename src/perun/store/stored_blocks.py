"""zlib streams of blocks that are stored as they are (RFC 1950, 1951), in which one can seek.

A profile by columns is compressed already. As an object it is such a stream, which every reader of zlib
unpacks, and from which one function can be read without the rest.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import BinaryIO, Final
from zlib import adler32

BLOCK: Final = 65535
"""Bytes of each block but the last."""
_HEAD: Final = b"\x78\x01"
_BLOCK_HEAD: Final = struct.Struct("<BHH")
_BUFFER: Final = 1 << 12  # more would be read in vain behind each small piece
_END: Final = struct.Struct(">I")


def pieces(*parts: bytes) -> Iterator[bytes | memoryview]:
    """The stream of the joined parts, piece by piece, each a block at most."""
    checksum = 1
    left = sum(map(len, parts))
    room = 0
    yield _HEAD
    for part in parts:
        view = memoryview(part)
        while len(view):
            if not room:
                room = min(left, BLOCK)
                yield _BLOCK_HEAD.pack(room == left, room, room ^ 0xFFFF)
            piece, view = view[:room], view[room:]
            room, left = room - len(piece), left - len(piece)
            checksum = adler32(piece, checksum)
            yield piece
    yield _END.pack(checksum)


def opened(file: BinaryIO, start: int, size: int) -> BinaryIO | None:
    """The content of a stream, for seeking and reading; None if `file` is not what :func:`pieces` makes.

    What is read is not verified: whoever reads has checksums of its own.

    :param start: of the content that is wanted, and :param size: bytes of it, which end the content.
    """
    length = start + size
    blocks = -(-length // BLOCK)
    expected = len(_HEAD) + blocks * _BLOCK_HEAD.size + length + _END.size
    file.seek(0)
    first = _BLOCK_HEAD.pack(blocks == 1, min(length, BLOCK), min(length, BLOCK) ^ 0xFFFF)
    if file.read(len(_HEAD) + len(first)) != _HEAD + first or file.seek(0, io.SEEK_END) != expected:
        return None
    return io.BufferedReader(_Content(file, start, size), _BUFFER)


class Sought(io.RawIOBase):
    """Bytes of a known size that are read from any place; who derives says how, by `readinto`."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place, which may lie behind the end; nothing is read yet."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(base + offset, 0)
        return self._at


class _Content(Sought):
    """The content of a stream from a place on."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        super().__init__(size)
        self._file = file
        self._start = start

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer of bytes
        place = self._start + self._at
        block, within = divmod(place, BLOCK)
        most = min(len(buffer), BLOCK - within, self._size - self._at)
        if most <= 0:
            return 0
        self._file.seek(len(_HEAD) + (block + 1) * _BLOCK_HEAD.size + place)
        data = self._file.read(most)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
