"""The bytes of inputs that were found: in memory as far as there is room, the others in a file.

A campaign on inputs of ten megabytes keeps thousands of them, which is more than any machine has of memory.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections import deque
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from perun.atomic import Naming

ROOM: Final = 256 * 1024 * 1024
"""Bytes in memory."""


class Stored(NamedTuple):
    """Bytes in a file, which has no name and is gone with the process."""

    file: int
    start: int
    size: int

    def read(self) -> bytes:
        """:raises OSError: if they cannot be read."""
        parts: list[bytes] = []
        done = 0
        while done < self.size:
            part = os.pread(self.file, self.size - done, self.start + done)
            if not part:
                raise OSError(f"{self.size - done} bytes of an input are missing in a temporary file")
            parts.append(part)
            done += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class Holder(Protocol):
    """Who has the bytes. :ivar content: where they are."""

    content: bytes | Stored


class Storage:
    """Moves the bytes of the oldest inputs into a file in `folder`, so that at most `room` are in memory."""

    def __init__(self, folder: Path, room: int = ROOM) -> None:
        self._folder = folder
        self._room = room
        self._held: deque[Holder] = deque()
        self._bytes = 0
        self._known: set[int] = set()
        self._file: int | None = None
        self._end = 0

    def add(self, holder: Holder) -> None:
        """Another one, or one that is known already.

        :raises OSError: if the file cannot be written.
        """
        if isinstance(holder.content, bytes) and id(holder) not in self._known:
            self._known.add(id(holder))
            self._held.append(holder)
            self._bytes += len(holder.content)
        while self._bytes > self._room:
            oldest = self._held.popleft()
            self._known.discard(id(oldest))
            if isinstance(oldest.content, bytes):
                self._bytes -= len(oldest.content)
                oldest.content = self._stored(oldest.content)

    def _stored(self, data: bytes) -> Stored:
        if self._file is None:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                self._file = os.dup(file.fileno())
            weakref.finalize(self, os.close, self._file)
        number, start = self._file, self._end
        done = 0
        with Naming(self._folder):
            while done < len(data):
                done += os.pwrite(number, memoryview(data)[done:], start + done)
        self._end += done
        return Stored(number, start, len(data))
