"""Reads ELF files with pyelftools: build-id, segments, and what names they hold."""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Final, NamedTuple

_MAX_HEADERS: Final = 1 << 16
"""The most headers of segments or sections. A damaged file may claim billions, all of which would be read."""


class Segment(NamedTuple):
    """A part of the file that is mapped: `size` bytes from `offset` on, at the address `address`."""

    offset: int
    address: int
    size: int


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
            return _read(file) if file.read(4) == b"\x7fELF" else None
    # Every layer of pyelftools raises errors of its own for a damaged file: there is no common base.
    except Exception:
        return None


def _read(file: BinaryIO) -> Elf | None:
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(file)
    if max(elf.num_segments(), elf.num_sections()) > _MAX_HEADERS:
        return None
    loaders: list[Any] = list(elf.iter_segments("PT_INTERP"))
    return Elf(
        build_id(elf),
        loaders[0].get_interp_name() if loaders else "",
        elf.elfclass,
        elf.get_section_by_name(".debug_line") is not None,
        elf["e_entry"],
        load_segments(elf),
        elf.get_section_by_name(".symtab") is not None
        or elf.get_section_by_name(".gnu_debugdata") is not None,
    )


def build_id(elf: Any) -> str:
    """The build-id of an opened ELF file in hexadecimal; empty where it has none."""
    for segment in elf.iter_segments("PT_NOTE"):
        for note in segment.iter_notes():
            if note["n_type"] == "NT_GNU_BUILD_ID":
                return str(note["n_desc"])
    return ""


def load_segments(elf: Any) -> tuple[Segment, ...]:
    """The segments of an opened ELF file that are mapped."""
    return tuple(
        Segment(segment["p_offset"], segment["p_vaddr"], segment["p_filesz"])
        for segment in elf.iter_segments("PT_LOAD")
    )
