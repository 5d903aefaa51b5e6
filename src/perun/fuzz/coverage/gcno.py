"""Reads `.gcno` files, which gcc writes beside each object: the graph of each function and the lines of its
blocks.

The format is that of GCC 8 to 15: records of a tag and a length. Lengths of records and strings are bytes
since GCC 12, words of four bytes before. Unknown records are passed over.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final, NamedTuple

_FUNCTION: Final = 0x01000000
_BLOCKS: Final = 0x01410000
_ARCS: Final = 0x01430000
_LINES: Final = 0x01450000
_OLDEST: Final = 8

ON_TREE: Final = 1
"""The flag of an arc that has no counter: its count follows from those of others."""


class DamagedNotes(ValueError):
    """The file is no `.gcno` or `.gcda` file of a GCC that is known, or it ends too early."""


class Arc(NamedTuple):
    """A way from one block to another one; flags are those of gcc."""

    source: int
    target: int
    flags: int


class Graph(NamedTuple):
    """One function: `lines[b]` are the places (file, line) of block `b`. Block 0 is the entry, 1 the exit."""

    key: tuple[int, int, int]
    name: str
    blocks: int
    arcs: list[Arc]
    lines: list[list[tuple[str, int]]]


class Notes(NamedTuple):
    """The content of a `.gcno` file."""

    stamp: int
    folder: str
    functions: list[Graph]


class Reader:
    """Words and strings of a file of gcc, one after the other."""

    def __init__(self, data: bytes, magic: bytes) -> None:
        self.data = data
        self.at = 12
        if len(data) < 12 or data[:4] not in (magic, magic[::-1]):
            raise DamagedNotes("it does not begin like one")
        self._word = struct.Struct("<I" if data[:4] == magic[::-1] else ">I")
        version = self.text_of_word(4)
        self.release = _release(version)
        self.unit = 1 if self.release >= 12 else 4
        """Bytes in the unit of lengths."""
        self.stamp = int(self._word.unpack_from(data, 8)[0])
        if self.release < _OLDEST:
            raise DamagedNotes(f"it was written by GCC {self.release} or by another compiler")

    def text_of_word(self, at: int) -> str:
        """The four letters of a word, the highest one first."""
        return int(self._word.unpack_from(self.data, at)[0]).to_bytes(4, "big").decode("latin-1")

    def word(self) -> int:
        """The next word.

        :raises DamagedNotes: if there is none.
        """
        try:
            found = int(self._word.unpack_from(self.data, self.at)[0])
        except struct.error:
            raise DamagedNotes("it ends too early") from None
        self.at += 4
        return found

    def string(self) -> str:
        """The next string; an empty one has no bytes at all."""
        size = self.word() * self.unit
        text = self.data[self.at : self.at + size]
        if len(text) < size:
            raise DamagedNotes("it ends too early")
        self.at += size
        return os.fsdecode(text.rstrip(b"\0"))


def _release(version: str) -> int:
    """The major release of a version like `B22*` (12.2) or `A93R`; letters stand for tens."""
    first, second = version[0], version[1]
    if not second.isdigit():
        raise DamagedNotes(f"its version {version!r} is unknown")
    return (ord(first) - ord("A")) * 10 + int(second) if first >= "A" else int(first)


def read_notes(path: Path) -> Notes:
    """The content of a `.gcno` file.

    :raises DamagedNotes: if it cannot be understood; the message names the file.
    :raises OSError: if it cannot be read.
    """
    try:
        return _notes(path.read_bytes())
    except DamagedNotes as problem:
        raise DamagedNotes(f"{path}: {problem}") from None


def _notes(data: bytes) -> Notes:
    reader = Reader(data, b"gcno")
    if reader.release >= 12:
        reader.word()  # checksum
    folder = reader.string() if reader.release >= 9 else ""
    reader.word()  # whether blocks that were never executed are told apart
    functions: list[Graph] = []
    while reader.at + 8 <= len(data):
        tag = reader.word()
        end = reader.word() * reader.unit + reader.at
        if end > len(data):
            raise DamagedNotes("it ends too early")
        if tag == _FUNCTION:
            functions.append(_function(reader))
        elif tag in _PARTS and functions:
            functions[-1] = _PARTS[tag](reader, end, functions[-1])
        reader.at = end
    return Notes(reader.stamp, folder, functions)


def _function(reader: Reader) -> Graph:
    key = (reader.word(), reader.word(), reader.word())
    return Graph(key, reader.string(), 0, [], [])


def _blocks(reader: Reader, end: int, graph: Graph) -> Graph:
    count = reader.word()
    if graph.blocks:
        raise DamagedNotes("a function has its blocks twice")
    if count > len(reader.data):
        raise DamagedNotes("it has more blocks than bytes")
    return graph._replace(blocks=count, lines=[[] for _ in range(count)])


def _arcs(reader: Reader, end: int, graph: Graph) -> Graph:
    source = reader.word()
    while reader.at < end:
        target, flags = reader.word(), reader.word()
        if max(source, target) >= graph.blocks:
            raise DamagedNotes("an arc leads to a block that there is not")
        graph.arcs.append(Arc(source, target, flags))
    return graph


def _lines(reader: Reader, end: int, graph: Graph) -> Graph:
    block = reader.word()
    if block >= graph.blocks:
        raise DamagedNotes("a line is of a block that there is not")
    file = ""
    while reader.at < end:
        line = reader.word()
        if line:
            graph.lines[block].append((file, line))
            continue
        file = reader.string()
        if not file:
            break
    return graph


_PARTS: Final = {_BLOCKS: _blocks, _ARCS: _arcs, _LINES: _lines}
