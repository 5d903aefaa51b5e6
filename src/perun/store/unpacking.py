"""Objects of the store, unpacked piece by piece and verified (:mod:`perun.store.objects`)."""

from __future__ import annotations

import codecs
import io
import re
import struct
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from zlib import adler32

from perun.core.errors import DamagedStore
from perun.profile.format import head as format_head
from perun.store import tree
from perun.store import tree as limits

if TYPE_CHECKING:
    from pathlib import Path


# zlib streams of blocks that are stored as they are (RFC 1950, 1951), in which one can seek.
#
# A profile by columns is compressed already. As an object it is such a stream, which every reader of zlib
# unpacks, and from which one function can be read without the rest.

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


class BlockRef(io.RawIOBase):
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


class _Content(BlockRef):
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


_HEADER = re.compile(rb"(profile|columns) ([A-Za-z0-9_.-]{1,64}) (0|[1-9][0-9]{0,17})\0")
_FIRST = 1 << 14
"""Bytes of the first piece: it has the header, and all of a small profile."""
_CHUNK = 1 << 18
HINT = "restore the file from a copy of the repository, or remove it and register the profile again"
"""What to do about a damaged object."""


def decode(data: bytes, checksum: str, source: str, limit: int = limits.DEFAULT) -> tuple[str, bytes]:
    """Type and JSON of the object in the compressed `data`, which is verified against its name.

    :param source: its file, for the messages.
    :raises DamagedStore: says what is wrong.
    """
    with naming_file(source):
        unpacked = ObjectStream(io.BytesIO(data), checksum, limit)
        return unpacked.type, unpacked.body()


def small_body(data: bytes, checksum: str, limit: int) -> bytes | None:
    """The JSON, in ASCII, of an object of less than 16 KiB, verified; None of any other, or one that is
    damaged or larger than the limit: :class:`ObjectStream` says why. Quick, where there are very many."""
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(data, _FIRST)
    except zlib.error:
        return None
    header = _HEADER.match(content)
    if not stream.eof or stream.unused_data or header is None or header[1] != b"profile":
        return None
    body = content[header.end() :]
    if len(body) > limit or len(body) != int(header[3]) or not body.isascii():
        return None
    return body if tree.sha1(content).hex() == checksum else None


class _Damage(Exception):
    def __init__(self, message: str, hint: str = HINT) -> None:
        super().__init__(message)
        self.hint = hint


@contextmanager
def naming_file(source: Path | str) -> Iterator[None]:
    """Turn damage that is found in the block into an error that names the file."""
    try:
        yield
    except zlib.error as problem:
        raise DamagedStore(f"{source} is not compressed by zlib, or damaged: {problem}", HINT) from None
    except UnicodeDecodeError as problem:
        raise DamagedStore(f"{source} is not UTF-8: {problem.reason}", HINT) from None
    except _Damage as problem:
        raise DamagedStore(f"{source} {problem}", problem.hint) from None


class ObjectStream:
    """An object that is unpacked piece by piece and verified at its end.

    :raises zlib.error: :raises UnicodeDecodeError: :raises _Damage: each says what is wrong.
    :ivar type: of the profile. :ivar by_columns: whether it is stored by columns.
    :ivar length: characters of its JSON, or bytes of its columns, as the header says.
    """

    def __init__(self, file: BinaryIO, checksum: str, limit: int) -> None:
        self._file = file
        self._checksum = checksum
        self._stream = zlib.decompressobj()
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        head = b""
        while len(head) < _FIRST and (piece := self._piece(_FIRST - len(head))):
            head += piece
        header = _HEADER.match(head)
        if header is None:
            raise _Damage(f"does not begin with 'profile <type> <length>': {head[:40]!r}")
        self.by_columns = header[1] == b"columns"
        self.type, self.length = header[2].decode(), int(header[3])
        self._unit = "bytes" if self.by_columns else "characters"
        if self.length > limit:
            raise _Damage(f"holds {self.length} {self._unit}, {limits.exceeded(limit)}", limits.HINT)
        # A character has at most four bytes, so an honest header bounds what is worth unpacking.
        self._room = min((1 if self.by_columns else 4) * self.length, limit)
        self._content_at = header.end()
        self._hash = tree.sha1_of(head[: header.end()], self.length)
        self._rest = head[header.end() :]

    def content(self) -> BinaryIO | None:
        """The profile by columns, for seeking in it, not verified; None if it is JSON, or compressed."""
        return opened(self._file, self._content_at, self.length) if self.by_columns else None

    def body(self) -> bytes:
        """The JSON or the columns, after everything was verified."""
        buffer = io.BytesIO()  # hands out what it holds without a copy
        buffer.writelines(self.pieces())
        return buffer.getvalue()

    def regions(self, source: str) -> dict[str, Any]:
        """The regions of the head, after everything was verified; no more of it is kept than they need.

        :param source: for the messages.
        """
        pieces = self.pieces()
        found = format_head.decode(pieces, source, origin=False)
        deque(pieces, maxlen=0)
        return found

    def _piece(self, most: int) -> bytes:
        """The next bytes, at most so many; none at the end."""
        while not self._stream.eof:
            data = self._stream.unconsumed_tail or self._file.read(_CHUNK)
            piece = self._stream.decompress(data, most)
            if piece:
                return piece
            if not data:
                raise _Damage("is cut short")
        return b""

    def pieces(self) -> Iterator[bytes]:
        """The pieces of the body; whether it is what its name promises shows at the end."""
        size = characters = 0
        while piece := self._rest or self._piece(_CHUNK):
            self._rest = b""
            size += len(piece)
            if size > self._room:
                raise _Damage(f"is longer than the {self.length} {self._unit} that its header says")
            characters += len(piece if self.by_columns else self._decoder.decode(piece))
            self._hash.update(piece)
            yield piece
        self._decoder.decode(b"", True)
        if characters != self.length:
            raise _Damage(f"has {characters} {self._unit}, but its header says {self.length}")
        if surplus := len(self._stream.unused_data) + len(self._file.read(_CHUNK)):
            raise _Damage(f"is followed by {surplus} bytes that do not belong to it")
        if (actual := self._hash.hexdigest()) != self._checksum:
            raise _Damage(f"does not match its name: its SHA-1 is {actual}")
