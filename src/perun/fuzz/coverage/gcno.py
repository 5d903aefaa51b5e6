"""What gcc leaves of a program that counts: where its counters lie in the file of the program, and `.gcno`
files beside each object, with the graph of each function and the lines of its blocks.

The format is that of GCC 8 to 15: records of a tag and a length. Lengths of records and strings are bytes
since GCC 12, words of four bytes before. Unknown records are passed over.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy

from perun.native.elf import DYNAMIC_SYMBOLS, PT_LOAD, SYMBOLS, Damaged, ElfFile, checked, text_at

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


class BlockGraph(NamedTuple):
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
    functions: list[BlockGraph]


class WordReader:
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
    reader = WordReader(data, b"gcno")
    if reader.release >= 12:
        reader.word()  # checksum
    folder = reader.string() if reader.release >= 9 else ""
    reader.word()  # whether blocks that were never executed are told apart
    functions: list[BlockGraph] = []
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


def _function(reader: WordReader) -> BlockGraph:
    key = (reader.word(), reader.word(), reader.word())
    return BlockGraph(key, reader.string(), 0, [], [])


def _blocks(reader: WordReader, end: int, graph: BlockGraph) -> BlockGraph:
    count = reader.word()
    if graph.blocks:
        raise DamagedNotes("a function has its blocks twice")
    if count > len(reader.data):
        raise DamagedNotes("it has more blocks than bytes")
    return graph._replace(blocks=count, lines=[[] for _ in range(count)])


def _arcs(reader: WordReader, end: int, graph: BlockGraph) -> BlockGraph:
    source = reader.word()
    while reader.at < end:
        target, flags = reader.word(), reader.word()
        if max(source, target) >= graph.blocks:
            raise DamagedNotes("an arc leads to a block that there is not")
        graph.arcs.append(Arc(source, target, flags))
    return graph


def _lines(reader: WordReader, end: int, graph: BlockGraph) -> BlockGraph:
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


# Where the counters of gcc lie in a program or library: read from its file, which need not run for it.
#
# For each function gcc writes a description, `__gcov_.NAME`, which says what the function is known by in the
# `.gcno` file and where its counters are. Names do not matter: functions of two files may have the same one.

_RELOCATION: Final = numpy.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
_RELATIVE: Final = {62: 8, 183: 1027}
"""Of x86-64 and arm64: the type of a relocation that is an address in the file."""
_SHARED: Final = 3
"""Type of a file that may be loaded anywhere: ET_DYN."""


class ArcFunction(NamedTuple):
    """Counters of arcs of one function.

    :ivar notes: the `.gcno` file of its object, as it was called when it was compiled.
    :ivar stamp: of that file.
    :ivar key: what the function is known by in it: number, checksum of its place, checksum of its graph.
    :ivar address: of the first of its counters of eight bytes, in the module.
    :ivar counters: how many there are.
    """

    notes: str
    stamp: int
    key: tuple[int, int, int]
    address: int
    counters: int


class CoverageModule(NamedTuple):
    """A program or a library: what it has of coverage.

    :ivar kind: `"gcov"`, `"edges"` (our own counters), `"afl"`, or `""` if it was compiled without.
    :ivar dynamic: whether libraries can be loaded into it.
    :ivar forks: whether functions that are counted start processes, which write their counters into files.
    """

    path: Path
    kind: str
    dynamic: bool
    forks: bool
    clang: bool
    functions: list[ArcFunction]


class NotElf(Damaged):
    """The file is no program or library for 64-bit little-endian Linux."""


def read_module(path: Path) -> CoverageModule:
    """What the file at `path` has of coverage.

    :raises NotElf: if it is something else, e.g. a script.
    :raises OSError: if it cannot be read.
    """
    with path.open("rb") as file:
        try:
            with checked():
                elf = ElfFile(file)
                if not elf.is_usual:
                    raise NotElf("it is not for a 64-bit little-endian processor")
                return _Reader(elf).module(path)
        except Damaged as problem:
            raise NotElf(str(problem)) from None


class _Reader:
    def __init__(self, elf: ElfFile) -> None:
        self._elf = elf
        self._segments = [(one.address, elf.content(one)) for one in elf.segments if one.type == PT_LOAD]
        self._relocated = dict(self._relocations())

    def module(self, path: Path) -> CoverageModule:
        names, symbols = self._symbols(SYMBOLS)
        dynamic, _ = self._symbols(DYNAMIC_SYMBOLS)
        known = set(names) | set(dynamic)
        return CoverageModule(
            path,
            _kind(known),
            self._elf.section(".interp") is not None or self._elf.type == _SHARED,
            any(name in known for name in (b"__gcov_fork", b"__gcov_execv", b"__gcov_execvp", b"__gcov_execl",
                                           b"__gcov_execlp", b"__gcov_execle", b"__gcov_execve")),
            any(name.startswith(b"llvm_gcov") or name.startswith(b"__llvm_gcov") for name in known),
            [
                function
                for name, symbol in zip(names, symbols, strict=True)
                if name.startswith(b"__gcov_.") and (function := self._function(int(symbol["value"])))
            ],
        )  # fmt: skip

    def _symbols(self, kind: int) -> tuple[list[bytes], Iterable[Any]]:
        table = self._elf.symbols(kind)
        if table is None:
            return [], ()
        symbols, text = table
        return [text_at(text, int(one["name"])) for one in symbols], symbols

    def _relocations(self) -> list[tuple[int, int]]:
        section = self._elf.section(".rela.dyn")
        kind = _RELATIVE.get(self._elf.machine)
        if section is None or kind is None:
            return []
        every = numpy.frombuffer(self._elf.content(section), _RELOCATION)
        relative = every[every["info"] == kind]
        return list(zip(relative["offset"].tolist(), relative["addend"].tolist(), strict=True))

    def _function(self, address: int) -> ArcFunction | None:
        """The description at `address`: see `struct gcov_fn_info` and `struct gcov_info` in the debugger."""
        info = self._pointer(address)
        count = self._word(address + 24)
        values = self._pointer(address + 32)
        notes = self._text(self._pointer(info + 24))
        if not info or not values or not notes.endswith(".gcda"):
            return None
        key = (self._word(address + 8), self._word(address + 12), self._word(address + 16))
        return ArcFunction(notes[: -len("gcda")] + "gcno", self._word(info + 16), key, values, count)

    def _pointer(self, address: int) -> int:
        found = self._relocated.get(address)
        return int.from_bytes(self._bytes(address, 8), "little") if found is None else found

    def _word(self, address: int) -> int:
        return int.from_bytes(self._bytes(address, 4), "little")

    def _text(self, address: int) -> str:
        return os.fsdecode(self._bytes(address, 4096).partition(b"\0")[0])

    def _bytes(self, address: int, size: int) -> bytes:
        for start, data in self._segments:
            if start <= address < start + len(data):
                return bytes(data[address - start : address - start + size])
        return b""


def _kind(known: set[bytes]) -> str:
    if b"__afl_area_ptr" in known or b"__afl_manual_init" in known:
        return "afl"
    if b"__sanitizer_cov_trace_pc_guard" in known:
        return "edges"
    if b"__gcov_init" in known or b"__gcov_exit" in known or b"llvm_gcov_init" in known:
        return "gcov"
    return ""
