"""The one way to read ELF files (gABI 4.1, chapters 4 and 5) and to open their debug information: all that
is wrong in them is one error, :class:`Damaged`.

Headers are few kilobytes, read in a millisecond; pyelftools, which reads debug information, parses each
field by itself. A damaged or odd file makes it raise errors of many kinds, of its own and of Python's, or
go round in a circle.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from perun.core.errors import PerunError

if TYPE_CHECKING:
    from numpy.typing import NDArray


MAGIC: Final = b"\x7fELF"
"""What ELF files begin with."""
PT_LOAD, PT_INTERP, PT_NOTE = 1, 3, 4
"""Types of segments."""
SYMBOLS, RELOCATIONS, DYNAMIC, NO_BITS, DYNAMIC_SYMBOLS = 2, 4, 6, 8, 11
"""Types of sections: SHT_SYMTAB, SHT_RELA, SHT_DYNAMIC, SHT_NOBITS, SHT_DYNSYM."""
WRITABLE, ALLOCATED, EXECUTABLE = 1, 2, 4
"""Flags of sections: SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR."""
X86_64: Final = 62
"""Number of a machine: EM_X86_64."""
SYMBOL: Final = (("name", 4), ("info", 1), ("other", 1), ("section", 2), ("value", 8), ("size", 8))
"""The fields of a symbol of a 64-bit file (`Elf64_Sym`), with their bytes."""
_SYMBOL_OF_32_BITS: Final = (
    ("name", 4), ("value", 4), ("size", 4), ("info", 1), ("other", 1), ("section", 2)
)  # fmt: skip
MAX_HEADERS: Final = 1 << 16
"""The most headers of segments or sections. A damaged file may claim billions."""
_EXTENDED: Final = 0xFFFF
_BUILD_ID: Final = (b"GNU\0", 3)
_MAX_CONTENT: Final = 1 << 20
"""Bytes of names of sections, and of a segment that is read as text or notes."""


class Damaged(ValueError):
    """A file is no ELF file, or it or its debug information is damaged or of a kind that is not known."""


class ElfSegment(NamedTuple):
    """A part of a file that is mapped or says how: `size` bytes from `offset` on, at the address
    `address`."""

    type: int
    offset: int
    address: int
    size: int


class Section(NamedTuple):
    """One section: `size` bytes from `offset` of the file on, at `address`; `link` is another's number."""

    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int


class _Form(NamedTuple):
    """The headers of 32-bit or 64-bit files, and where in them the fields of a segment are that are read."""

    file: str
    segment: str
    segment_fields: tuple[int, int, int, int]
    section: str


_FORMS: Final = {
    1: _Form("HHIIIIIHHHHHH", "8I", (0, 1, 2, 4), "10I"),
    2: _Form("HHIQQQIHHHHHH", "IIQQQQQQ", (0, 2, 3, 5), "IIQQQQIIQQ"),
}


@contextmanager
def checked() -> Iterator[None]:
    """Let whatever is raised by reading in the block be :class:`Damaged`; errors of Perun stay what they
    are."""
    try:
        yield
    except (Damaged, PerunError):
        raise
    except Exception as problem:
        raise Damaged(str(problem).partition("\n")[0] or type(problem).__name__) from None


class ElfFile:
    """The headers of an opened ELF file, and its parts.

    :param file: stays open as long as parts are read.
    :raises Damaged: if it is no ELF file, or damaged; so does whatever reads more of it.
    :ivar bits: 32 or 64. :ivar type: of the file, `ET_EXEC` and so on. :ivar machine: its number.
    :ivar entry: address of the first instruction of a program.
    :ivar segments: in the order of the file.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        with checked():
            self._read_headers()

    def _read_headers(self) -> None:
        self._end = self._file.seek(0, os.SEEK_END)
        ident = self._read(0, 16)
        if len(ident) < 16 or ident[:4] != MAGIC or ident[4] not in _FORMS or ident[5] not in (1, 2):
            raise Damaged("it is not an ELF file")
        self.bits = 32 * ident[4]
        self._order = "<" if ident[5] == 1 else ">"
        self._form = _FORMS[ident[4]]
        fields = self._unpack(self._form.file, 16)
        (self.type, self.machine, _, self.entry, segments_at, self._sections_at, _, _) = fields[:8]
        segment_size, segments, self._section_size, sections, names = fields[8:]
        first = self._header(0) if self._sections_at else (0,) * 10
        segments = first[7] if segments == _EXTENDED else segments
        self._count = (sections or first[5]) if self._sections_at else 0
        self._names = first[6] if names == _EXTENDED else names
        if max(segments, self._count) > MAX_HEADERS:
            raise Damaged("it has too many headers")
        self.segments = [self._segment(segments_at + number * segment_size) for number in range(segments)]

    @property
    def is_usual(self) -> bool:
        """Whether it is for a 64-bit little-endian machine."""
        return self.bits == 64 and self._order == "<"

    @cached_property
    def sections(self) -> list[Section]:
        """The sections in their order."""
        with checked():
            headers = [self._header(number) for number in range(self._count)]
            if not headers:
                return []
            if self._names >= len(headers):
                raise Damaged("it has no names of sections")
            names = self._read(headers[self._names][4], min(headers[self._names][5], _MAX_CONTENT))
            return [
                Section(_text(names, name), kind, flags, address, offset, size, link, info)
                for name, kind, flags, address, offset, size, link, info, *_ in headers
            ]

    def section(self, name: str) -> Section | None:
        """The first section of this name; None where there is none."""
        return next((one for one in self.sections if one.name == name), None)

    def content(self, part: Section | ElfSegment) -> bytes:
        """The bytes of a part, fewer where the file is cut short."""
        with checked():
            return self._read(part.offset, part.size)

    def linked(self, section: Section) -> bytes:
        """The bytes of the section with the names of a table; none where that is missing."""
        return self.content(self.sections[section.link]) if section.link < len(self.sections) else b""

    def symbols(self, kind: int) -> tuple[NDArray[Any], bytes] | None:
        """The first table of a type, :data:`SYMBOLS` or :data:`DYNAMIC_SYMBOLS`, as rows of :data:`SYMBOL`,
        and the names in it; None where there is none."""
        import numpy

        table = next((one for one in self.sections if one.type == kind), None)
        if table is None:
            return None
        form = numpy.dtype(
            [
                (name, f"{self._order}u{size}")
                for name, size in (SYMBOL if self.bits == 64 else _SYMBOL_OF_32_BITS)
            ]
        )
        data = self.content(table)
        rows = numpy.frombuffer(data[: len(data) // form.itemsize * form.itemsize], form)
        if not self.is_usual:
            found = numpy.empty(len(rows), [(name, f"<u{size}") for name, size in SYMBOL])
            for name, _ in SYMBOL:
                found[name] = rows[name]
            rows = found
        return rows, self.linked(table)

    def dynamic(self) -> dict[int, int]:
        """What the dynamic linker is told: tags and values, of several of a kind the first."""
        table = next((one for one in self.sections if one.type == DYNAMIC), None)
        form = struct.Struct(self._order + ("QQ" if self.bits == 64 else "II"))
        found: dict[int, int] = {}
        data = self.content(table) if table is not None else b""
        for tag, value in form.iter_unpack(data[: len(data) // form.size * form.size]):
            found.setdefault(tag, value)
        return found

    @property
    def build_id(self) -> str:
        """The build-id in hexadecimal; empty where there is none."""
        with checked():
            for segment in self.segments:
                if segment.type == PT_NOTE and (found := self._build_id(self.text_of(segment))):
                    return found
        return ""

    def text_of(self, segment: ElfSegment) -> bytes:
        """The bytes of a segment that holds a path or notes."""
        return self.content(segment._replace(size=min(segment.size, _MAX_CONTENT)))

    def _build_id(self, notes: bytes) -> str:
        at = 0
        while at + 12 <= len(notes):
            name_size, size, kind = struct.unpack_from(self._order + "3I", notes, at)
            start = at + 12 + _padded(name_size)
            if (notes[at + 12 : at + 12 + name_size], kind) == _BUILD_ID:
                return notes[start : start + size].hex()
            at = start + _padded(size)
        return ""

    def _segment(self, at: int) -> ElfSegment:
        fields = self._unpack(self._form.segment, at)
        return ElfSegment(*(fields[place] for place in self._form.segment_fields))

    def _header(self, number: int) -> tuple[int, ...]:
        return self._unpack(self._form.section, self._sections_at + number * self._section_size)

    def _unpack(self, form: str, at: int) -> tuple[int, ...]:
        size = struct.calcsize(self._order + form)
        data = self._read(at, size)
        if len(data) < size:
            tables = {self._form.section: "table of sections", self._form.segment: "table of segments"}
            what = tables.get(form, "header")
            raise Damaged(f"its {what} is cut off: {size} bytes belong at byte {at} of {self._end}")
        return struct.unpack(self._order + form, data)

    def _read(self, at: int, size: int) -> bytes:
        # A damaged file may claim more bytes than there is memory.
        self._file.seek(min(at, self._end))
        return self._file.read(min(size, self._end))


def _padded(size: int) -> int:
    return -(-size // 4) * 4


def _text(names: bytes, begin: int) -> str:
    return text_at(names, begin).decode("utf-8", "replace")


def text_at(names: bytes, begin: int) -> bytes:
    """The name that begins at a place of a table of names; empty where it has no end."""
    end = names.find(b"\0", begin)
    return names[begin:end] if end >= 0 else b""


def with_debug_information(stream: IO[bytes]) -> Any:
    """The ELFFile of pyelftools. What it is asked for is read within :func:`checked`.

    :raises Damaged: see there.
    """
    with checked():
        from elftools.dwarf.compileunit import CompileUnit
        from elftools.dwarf.typeunit import TypeUnit
        from elftools.elf.elffile import ELFFile

        name = "iter_DIE_children"
        for kind in (CompileUnit, TypeUnit):
            if not hasattr(plain := getattr(kind, name), "plain"):
                setattr(kind, name, _forward(plain))
        return ELFFile(stream)


def debug_information(elf: Any) -> Any:
    """The debug information of such a file (DWARFInfo of pyelftools); None where it has none.

    :raises Damaged: see :func:`checked`.
    """
    with checked():
        # Otherwise pyelftools takes `.eh_frame`, which stripped programs have, for debug information.
        return elf.get_dwarf_info() if elf.has_dwarf_info(strict=True) else None


def _forward(plain: Any) -> Any:
    """What tells the children of an entry, but each later in the file than the one before: a damaged entry
    may name an earlier one as the next, and pyelftools would never end."""

    def iter_children(unit: Any, parent: Any) -> Iterator[Any]:
        last = parent.offset
        for child in plain(unit, parent):
            if child.offset <= last:
                raise Damaged(f"the entries at {parent.offset:#x} of its debug information are a circle")
            last = child.offset
            yield child

    iter_children.plain = plain  # type: ignore[attr-defined]
    return iter_children


# Reads ELF files: build-id, segments, and what names they hold.


class Elf(NamedTuple):
    """One executable or shared library.

    :param build_id: in hexadecimal; empty if it has none.
    :param loader: path of the dynamic loader that starts it, which loads preloaded libraries; empty where
        there is none.
    :param bits: 32 or 64. :param has_lines: whether the file itself holds line numbers.
    :param entry: address of the first instruction of a program.
    :param has_symbols: whether the file has the names of all its functions, not only of those that others
        use.
    :param debug_file: path of the separate debug information, where that was looked for (`debug_files.py`).
    """

    build_id: str
    loader: str
    bits: int
    has_lines: bool
    entry: int
    segments: tuple[ElfSegment, ...]
    has_symbols: bool = False
    debug_file: str = ""

    @property
    def dynamic(self) -> bool:
        """Whether a dynamic loader starts it."""
        return bool(self.loader)

    @property
    def c_library(self) -> str:
        """The C library whose loader starts it: `glibc`, `musl`, or the name of a loader that is not known;
        empty without a loader."""
        name = os.path.basename(self.loader)
        if not name or name.startswith(("ld-linux", "ld64.so", "ld.so")):
            return "glibc" if name else ""
        return "musl" if name.startswith("ld-musl") else name

    def address_of(self, offset: int) -> int:
        """The address, for a symboliser, of the code at `offset` in the file."""
        for segment in self.segments:
            if segment.offset <= offset < segment.offset + segment.size:
                return offset - segment.offset + segment.address
        return offset


def read_elf(path: str) -> Elf | None:
    """The ELF file at `path`; None if it cannot be read or is not an ELF file."""
    try:
        with open(path, "rb") as file:
            return _read(file)
    except (OSError, ValueError, Damaged):  # a damaged recording may name no path at all
        return None


def _read(file: BinaryIO) -> Elf:
    elf = ElfFile(file)
    names = {section.name for section in elf.sections}
    loaders = [segment for segment in elf.segments if segment.type == PT_INTERP]
    return Elf(
        elf.build_id,
        os.fsdecode(elf.text_of(loaders[0]).partition(b"\0")[0]) if loaders else "",
        elf.bits,
        ".debug_line" in names,
        elf.entry,
        tuple(segment for segment in elf.segments if segment.type == PT_LOAD),
        not names.isdisjoint((".symtab", ".gnu_debugdata")),
    )
