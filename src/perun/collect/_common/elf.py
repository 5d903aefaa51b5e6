"""Reads ELF files: build-id, segments, and what names they hold."""

from __future__ import annotations

import os
from typing import BinaryIO, NamedTuple

from perun.elf import PT_INTERP, PT_LOAD, Damaged, ElfFile, Segment


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
    segments: tuple[Segment, ...]
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

