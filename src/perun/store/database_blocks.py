"""The content of a file of a database (:mod:`perun.store.database`), block by block."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from typing import Any, Final

from perun.store.connections import Connection
from perun.store.stored_blocks import Sought

BLOCK: Final = 1 << 20
"""Bytes of a block at most."""
_IN_MEMORY: Final = 16 << 20


class Unfinished(tempfile.SpooledTemporaryFile[bytes]):
    """What a file is to hold. :ivar time: its modification time (ns), once that is known."""

    time: int | None = None


def unfinished() -> Any:
    """A file that is written, on the disk once it is large."""
    return Unfinished(_IN_MEMORY)


class Blocks(Sought):
    """A content, of which one block at a time is in memory."""

    def __init__(self, connection: Connection, content: int, size: int, source: str) -> None:
        super().__init__(size)
        self._connection = connection
        self._content = content
        self._source = source
        self._start = 0
        self._block = memoryview(b"")

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer of bytes
        """As files do it.

        :raises OSError: if the content was replaced or removed meanwhile.
        """
        if self._at >= self._size:
            return 0
        if not self._start <= self._at < self._start + len(self._block):
            self._load()
        piece = self._block[self._at - self._start :][: len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _load(self) -> None:
        asked = (
            "SELECT start, data FROM perun_blocks WHERE content = ? AND start <= ?"
            " ORDER BY start DESC LIMIT 1"
        )
        rows = self._connection.execute(asked, self._content, self._at)
        if not rows or self._at >= rows[0][0] + len(rows[0][1]):
            raise OSError(errno.ESTALE, "it was replaced or removed while it was read", self._source)
        self._start, self._block = rows[0][0], memoryview(rows[0][1])


def blocks_of(file: Unfinished) -> Iterator[tuple[int, bytes]]:
    """The content in blocks, each with its place."""
    file.seek(0)
    start = 0
    while data := file.read(BLOCK):
        yield start, data
        start += len(data)


def joined(rows: list[tuple[Any, ...]]) -> bytes:
    """The content of rows that end with a block each, None where there is none."""
    return b"".join(data for _, _, data in rows if data is not None)
