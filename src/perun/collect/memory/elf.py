"""What is asked of an ELF file: how it is loaded, its build-id, and whether it has debug information."""

from __future__ import annotations

import os
import struct
from typing import BinaryIO, Final, NamedTuple

_LOAD, _INTERP, _NOTE = 1, 3, 4
_BUILD_ID: Final = 3
_MOST_HEADERS: Final = 4096
_MOST_NOTES: Final = 1 << 16
_MOST_NAMES: Final = 1 << 20
DEBUG_FILES: Final = "/usr/lib/debug/.build-id"
"""Where distributions put the debug information of the packages that they strip, by build-id."""


class Segment(NamedTuple):
    """A part of the file that is mapped: `size` bytes from `offset` on, at the address `address`."""

    offset: int
    address: int
    size: int


class Elf(NamedTuple):
    """One executable or shared library.

    :param build_id: in hexadecimal, empty where it has none.
    :param dynamic: whether a loader runs first, which is what a preloaded library needs.
    :param bits: 32 or 64. :param has_lines: whether it has line numbers itself, not in another file.
    :param entry: address where a program starts.
    """

    build_id: str
    dynamic: bool
    bits: int
    has_lines: bool
    entry: int
    segments: tuple[Segment, ...]

    def address_of(self, offset: int) -> int:
        """The address, as symbolisers want it, of what lies at `offset` in the file."""
        for segment in self.segments:
            if segment.offset <= offset < segment.offset + segment.size:
                return offset - segment.offset + segment.address
        return offset

    @property
    def debug_file(self) -> str:
        """Where the debug information would be that was split off; empty where there is no such file."""
        if not self.build_id:
            return ""
        path = os.path.join(DEBUG_FILES, self.build_id[:2], self.build_id[2:] + ".debug")
        return path if os.path.isfile(path) else ""


def read_elf(path: str) -> Elf | None:
    """The ELF file at `path`; None where there is none, it cannot be read, or it is something else."""
    try:
        with open(path, "rb") as file:
            return _read(file)
    except (OSError, struct.error, OverflowError, MemoryError, ValueError):
        return None


def _read(file: BinaryIO) -> Elf | None:
    head = file.read(64)
    if len(head) < 52 or head[:4] != b"\x7fELF" or head[4] not in (1, 2) or head[5] not in (1, 2):
        return None
    wide, order = head[4] == 2, "<" if head[5] == 1 else ">"
    entry, table, sections = struct.unpack_from(order + ("QQQ" if wide else "III"), head, 24)
    sizes = struct.unpack_from(order + "HHHHH", head, 54 if wide else 42)
    form = order + ("IIQQQQQQ" if wide else "IIIIIIII")
    segments, build_id, dynamic = [], "", False
    for number in range(min(sizes[1], _MOST_HEADERS)):
        file.seek(table + number * sizes[0])
        fields = struct.unpack(form, file.read(struct.calcsize(form)))
        kind, (offset, address) = fields[0], fields[2:4] if wide else fields[1:3]
        size = fields[5 if wide else 4]
        if kind == _LOAD:
            segments.append(Segment(offset, address, size))
        elif kind == _INTERP:
            dynamic = True
        elif kind == _NOTE and not build_id and size <= _MOST_NOTES:
            file.seek(offset)
            build_id = _build_id(file.read(size), order)
    has_lines = _has_lines(file, order, wide, sections, sizes[2:])
    return Elf(build_id, dynamic, 64 if wide else 32, has_lines, entry, tuple(segments))


def _build_id(notes: bytes, order: str) -> str:
    position = 0
    while position + 12 <= len(notes):
        name, size, kind = struct.unpack_from(order + "III", notes, position)
        start = position + 12 + -(-name // 4) * 4
        if kind == _BUILD_ID and notes[position + 12 : position + 16] == b"GNU\0":
            return notes[start : start + size].hex()
        position = start + -(-size // 4) * 4
    return ""


def _has_lines(file: BinaryIO, order: str, wide: bool, table: int, sizes: tuple[int, ...]) -> bool:
    size, count, names = sizes
    if not table or not count or names >= count:
        return False
    where = (24, "QQ") if wide else (16, "II")
    file.seek(table + names * size + where[0])
    offset, length = struct.unpack(order + where[1], file.read(struct.calcsize(where[1])))
    file.seek(offset)
    return b".debug_line\0" in file.read(min(length, _MOST_NAMES))
