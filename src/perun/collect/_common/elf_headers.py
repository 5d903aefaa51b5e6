"""The headers of an ELF file (gABI 4.1, chapters 4 and 5): what a profile needs of each library.

They are few kilobytes, read in a millisecond; pyelftools parses each field by itself, and whole tables, too.
"""

from __future__ import annotations

import struct
from typing import BinaryIO, Final, NamedTuple

MAX_HEADERS: Final = 1 << 16
"""The most headers of segments or sections. A damaged file may claim billions."""
PT_LOAD, PT_INTERP, PT_NOTE = 1, 3, 4
_EXTENDED: Final = 0xFFFF
_BUILD_ID: Final = (b"GNU\0", 3)
_MAX_CONTENT: Final = 1 << 20


class ProgramHeader(NamedTuple):
    """Of one segment: `size` bytes from `offset` of the file on, at the address `address`."""

    type: int
    offset: int
    address: int
    size: int


class _Section(NamedTuple):
    name: int
    offset: int
    size: int
    link: int
    info: int


class _Form(NamedTuple):
    """The headers of 32-bit or 64-bit files, and where in them the fields are that are read."""

    file: str
    segment: str
    segment_fields: tuple[int, int, int, int]
    section: str


_FORMS: Final = {
    1: _Form("HHIIIIIHHHHHH", "8I", (0, 1, 2, 4), "10I"),
    2: _Form("HHIQQQIHHHHHH", "IIQQQQQQ", (0, 2, 3, 5), "IIQQQQIIQQ"),
}
_SECTION_FIELDS: Final = (0, 4, 5, 6, 7)


class ElfHeaders:
    """The headers of an opened ELF file.

    :ivar bits: 32 or 64. :ivar entry: address of the first instruction of a program.
    :ivar segments: in the order of the file.
    """

    def __init__(self, file: BinaryIO) -> None:
        """:raises ValueError: if it is not an ELF file. :raises struct.error: if it is cut short."""
        self._file = file
        ident = self._read(0, 16)
        if len(ident) < 16 or ident[:4] != b"\x7fELF" or ident[4] not in _FORMS or ident[5] not in (1, 2):
            raise ValueError("not an ELF file")
        self.bits = 32 * ident[4]
        self._order = "<" if ident[5] == 1 else ">"
        self._form = _FORMS[ident[4]]
        fields = self._unpack(self._form.file, 16)
        (*_, self.entry, segments_at, self._sections_at, _, _), sizes = fields[:8], fields[8:]
        segment_size, segments, self._section_size, sections, names = sizes
        first = self._section(0) if self._sections_at else _Section(0, 0, 0, 0, 0)
        segments = first.info if segments == _EXTENDED else segments
        self._sections = sections or first.size
        self._names = first.link if names == _EXTENDED else names
        if max(segments, self._sections) > MAX_HEADERS:
            raise ValueError("too many headers")
        self.segments = [
            self._segment(segments_at + number * segment_size) for number in range(segments)
        ]

    def has_section(self, name: str) -> bool:
        """Whether there is a section of this name."""
        if not self._sections_at or not self._sections:
            return False
        table = self._section(self._names)
        names = self._read(table.offset, min(table.size, _MAX_CONTENT))
        wanted = name.encode() + b"\0"
        return any(
            names.startswith(wanted, self._section(number).name) for number in range(self._sections)
        )

    def content(self, segment: ProgramHeader) -> bytes:
        """What the file holds of a segment."""
        return self._read(segment.offset, min(segment.size, _MAX_CONTENT))

    @property
    def build_id(self) -> str:
        """The build-id in hexadecimal; empty where there is none."""
        for segment in self.segments:
            if segment.type == PT_NOTE and (found := self._build_id(self.content(segment))):
                return found
        return ""

    def _build_id(self, notes: bytes) -> str:
        at = 0
        while at + 12 <= len(notes):
            name_size, size, kind = struct.unpack_from(self._order + "3I", notes, at)
            start = at + 12 + _padded(name_size)
            if (notes[at + 12 : at + 12 + name_size], kind) == _BUILD_ID:
                return notes[start : start + size].hex()
            at = start + _padded(size)
        return ""

    def _segment(self, at: int) -> ProgramHeader:
        fields = self._unpack(self._form.segment, at)
        return ProgramHeader(*(fields[place] for place in self._form.segment_fields))

    def _section(self, number: int) -> _Section:
        fields = self._unpack(self._form.section, self._sections_at + number * self._section_size)
        return _Section(*(fields[place] for place in _SECTION_FIELDS))

    def _unpack(self, form: str, at: int) -> tuple[int, ...]:
        size = struct.calcsize(self._order + form)
        return struct.unpack(self._order + form, self._read(at, size))

    def _read(self, at: int, size: int) -> bytes:
        self._file.seek(at)
        return self._file.read(size)


def _padded(size: int) -> int:
    return -(-size // 4) * 4
