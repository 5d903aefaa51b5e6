"""Objects of the store, unpacked piece by piece and verified (:mod:`perun.store.objects`)."""

from __future__ import annotations

import codecs
import io
import re
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from perun.errors import DamagedStore
from perun.profile.format import head as format_head
from perun.store import limits, stored_blocks, tree

if TYPE_CHECKING:
    from pathlib import Path

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
        unpacked = Unpacked(io.BytesIO(data), checksum, limit)
        return unpacked.type, unpacked.body()


def small_body(data: bytes, checksum: str, limit: int) -> bytes | None:
    """The JSON, in ASCII, of an object of less than 16 KiB, verified; None of any other, or one that is
    damaged or larger than the limit: :class:`Unpacked` says why. Quick, where there are very many."""
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


class Unpacked:
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
        return stored_blocks.opened(self._file, self._content_at, self.length) if self.by_columns else None

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
