"""The sections of 64-bit little-endian ELF files (gABI 4.1, chapter 4): names, places and contents."""

from __future__ import annotations

import os
import struct
from typing import BinaryIO, Final, NamedTuple

SYMBOLS, DYNAMIC_SYMBOLS = 2, 11
"""Types of sections: SHT_SYMTAB, SHT_DYNSYM."""
EXECUTABLE: Final = 4
"""Flag of sections with code: SHF_EXECINSTR."""
_HEADER: Final = struct.Struct("<IIQQQQIIQQ")
_IDENT: Final = b"\x7fELF\x02\x01"
_MAX_SECTIONS: Final = 0xFF00
_MAX_NAMES: Final = 1 << 20


class Section(NamedTuple):
    """One section: `size` bytes from `offset` of the file on, at `address`; `link` is another's number."""

    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int

    def content(self, file: BinaryIO) -> bytes:
        """Its bytes, fewer where the file is cut short."""
        # A damaged file may claim more bytes than there is memory.
        end = file.seek(0, os.SEEK_END)
        file.seek(min(self.offset, end))
        return file.read(min(self.size, end))


def read_sections(file: BinaryIO) -> list[Section]:
    """The sections of an opened file in their order; none for a file of another kind.

    :raises struct.error: if it is cut short. :raises ValueError: if places in it are damaged.
    """
    file.seek(0)
    head = file.read(64)
    if len(head) < 64 or not head.startswith(_IDENT):
        return []
    (start,) = struct.unpack_from("<Q", head, 0x28)
    size, count, names = struct.unpack_from("<3H", head, 0x3A)
    if size != _HEADER.size or not 0 < count < _MAX_SECTIONS or names >= count:
        return []
    file.seek(start)
    data = file.read(size * count)
    fields = [_HEADER.unpack_from(data, number * size) for number in range(count)]
    file.seek(fields[names][4])
    text = file.read(min(fields[names][5], _MAX_NAMES))
    return [
        Section(_text(text, name), kind, flags, address, offset, length, link)
        for name, kind, flags, address, offset, length, link, *_ in fields
    ]


def _text(names: bytes, begin: int) -> str:
    end = names.find(b"\0", begin)
    return names[begin:end].decode("utf-8", "replace") if end >= 0 else ""
