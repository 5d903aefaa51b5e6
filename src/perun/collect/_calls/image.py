"""Reads an ELF file for its call graph: sections, symbols, ranges of `.eh_frame`, and relocations.

The names of functions are those that they have in profiles. Tables are read at once, not entry by entry: a
program has tens of thousands of symbols and relocations.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from perun.callgraph.collecting import no_search_for_cycles
from perun.callgraph.graph import CallGraph
from perun.callgraph.image import Area, Image, Symbol
from perun.callgraph.machine.extract import extract
from perun.collect._calls.frames import frames_of
from perun.collect._calls.go_functions import SECTION as SECTION_OF_GO
from perun.collect._calls.go_functions import functions_of_go
from perun.collect._calls.names import demangled, is_own, profile_name, source_name
from perun.collect._common.debug_files import debug_file
from perun.collect._common.symbol_table import unpacked
from perun.elf import (
    ALLOCATED,
    DYNAMIC_SYMBOLS,
    EXECUTABLE,
    MAGIC,
    NO_BITS,
    RELOCATIONS,
    SYMBOLS,
    WRITABLE,
    X86_64,
    Damaged,
    ElfFile,
    Section,
    checked,
    text_at,
)
from perun.errors import JobFailed

_MACHINES: Final = {8: "MIPS", 21: "PowerPC", 22: "IBM Z", 183: "arm64", 243: "RISC-V", 258: "LoongArch"}
"""Other machines of 64 bits, by their numbers in ELF files."""
_FIXED_PLACE: Final = 2
"""Type of a file that is loaded where it says: ET_EXEC."""
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QIIq")
_OBJECT, _FUNCTION, _FILE, _INDIRECT = 1, 2, 4, 10
_ABSOLUTE, _TO_GOT, _TO_SLOT, _RELATIVE, _RESOLVED = 1, 6, 7, 8, 37
"""Types of relocations for x86-64: R_X86_64_64, GLOB_DAT, JUMP_SLOT, RELATIVE, IRELATIVE."""
_PART: Final = re.compile(r"\.(cold|part\.\d+)\b")


class _Entry(NamedTuple):
    """A symbol of a file; `source` is the file of one that other files do not see."""

    name: str
    kind: int
    is_local: bool
    section: int
    address: int
    size: int
    source: str


def static_graph(path: str | Path, earlier: CallGraph | None = None) -> CallGraph:
    """The call graph of a program or library, from its machine code.

    :param earlier: of another version, from which what is the same in both is taken: that halves the time.
    :raises JobFailed: where the file cannot be read, or is no ELF file for x86-64.
    """
    prints = [one.fingerprints for one in earlier.functions.values()] if earlier is not None else []
    known = {one.strict: one.color for one in prints if one.strict}
    with no_search_for_cycles():
        return extract(read_image(path), known)


def read_image(path: str | Path) -> Image:
    """What the call graph of an ELF file is made from. Errors as :func:`static_graph`."""
    try:
        with open(path, "rb") as file, checked():
            return _read(file, str(path))
    except OSError as problem:
        raise JobFailed(
            f"cannot read the program {path}: {problem.strerror}", "check the path and its permissions"
        ) from None
    except Damaged as problem:
        raise JobFailed(
            f"{path} is damaged, so that it has no call graph: {problem}", "build the program again"
        ) from None


def _read(file: BinaryIO, path: str) -> Image:
    elf = ElfFile(file) if file.read(4) == MAGIC else None
    is_known = elf is not None and elf.is_usual and bool(elf.sections)
    if elf is None or not is_known or elf.machine != X86_64:
        name = _MACHINES.get(elf.machine, f"another machine (number {elf.machine})") if elf else ""
        what = f"is a program for {name}" if is_known else "is no 64-bit ELF program"
        raise JobFailed(
            f"{path} {what}: Perun reads call graphs of programs for x86-64 only",
            "build it for x86-64; or trace it without optimizations, which choose functions by the call graph"
            if is_known
            else "name the program that the command runs with --binary (-b)",
        )
    areas = [_area(elf, number, section) for number, section in enumerate(elf.sections)]
    loaded = sorted((area for area in areas if area is not None), key=lambda one: one.address)
    entries = _all_entries(elf, path)
    imports, pointers, resolvers = _relocated(elf)
    objects = sorted({
        (one.address, one.size, one.name) for one in entries if one.kind == _OBJECT and one.section
    })
    frame_section = next((area for area in loaded if area.name == ".eh_frame"), None)
    frames = frames_of(frame_section.data, frame_section.address) if frame_section is not None else ()
    return Image(
        elf.build_id,
        elf.entry,
        elf.type != _FIXED_PLACE,
        loaded,
        _functions(entries),
        tuple(frames),
        objects,
        imports,
        pointers,
        frozenset(resolvers),
    )


def _area(elf: ElfFile, number: int, section: Section) -> Area | None:
    if not number or not section.flags & ALLOCATED or not section.size or section.flags & 0x400:
        return None
    return Area(
        section.name,
        section.address,
        b"" if section.type == NO_BITS else elf.content(section),
        section.size,
        bool(section.flags & EXECUTABLE),
        bool(section.flags & WRITABLE),
    )


def _all_entries(elf: ElfFile, path: str) -> list[_Entry]:
    """The symbols of a file: all, from itself or from its debug information, or those that others use."""
    own = _entries(elf, SYMBOLS)
    if own:
        return own
    other = debug_file(path, elf.build_id)
    if other:
        with suppress(Damaged), open(other, "rb") as debug:
            found = _entries(ElfFile(debug), SYMBOLS)
            if found:
                return found
    small = elf.section(".gnu_debugdata")
    found = []
    if small is not None:
        with suppress(Damaged):
            found = _entries(ElfFile(BytesIO(unpacked(elf.content(small)))), SYMBOLS)
    return found + _entries(elf, DYNAMIC_SYMBOLS) + _entries_of_go(elf)


def _entries_of_go(elf: ElfFile) -> list[_Entry]:
    table = elf.section(SECTION_OF_GO)
    if table is None:
        return []
    return [
        _Entry(name, _FUNCTION, False, 1, address, size, "")
        for name, address, size in functions_of_go(elf.content(table))
    ]


def _entries(elf: ElfFile, kind: int) -> list[_Entry]:
    table = next((one for one in elf.sections if one.type == kind), None)
    if table is None or not elf.is_usual:
        return []
    data, names = elf.content(table), elf.linked(table)
    found = []
    source = ""
    for name, info, _, section, address, size in _SYMBOL.iter_unpack(_whole(data, _SYMBOL)):
        text = text_at(names, name).decode("utf-8", "replace").partition("@")[0]
        is_local = not info >> 4
        if info & 15 == _FILE:
            source = text
        elif text:
            found.append(
                _Entry(text, info & 15, is_local, section, address, size, source if is_local else "")
            )
    return found


def _whole(data: bytes, form: struct.Struct) -> bytes:
    return data[: len(data) // form.size * form.size]


def _functions(entries: Sequence[_Entry]) -> list[Symbol]:
    """The functions of a file; of several symbols at one address the trace collector's comes first."""
    found = [one for one in entries if one.kind in (_FUNCTION, _INDIRECT) and one.section]
    found.sort(
        key=lambda one: (one.address, not one.size, one.kind == _INDIRECT, one.is_local, one.name)
    )
    names = demangled([one.name for one in found])
    symbols = []
    for one in found:
        part = _PART.search(one.name)
        part_of = one.name[: part.start()] if part else ""
        name, _ = source_name(one.name, names[one.name])
        uid = profile_name(part_of if part and name == one.name else name)
        own = is_own(one.name, name)
        symbols.append(Symbol(one.name, uid, one.address, one.size, one.source, own, part_of))
    return symbols


def _relocated(elf: ElfFile) -> tuple[dict[int, str], dict[int, int], set[int]]:
    """What the dynamic linker puts where: names of what is in other files, and addresses in this one; and the
    functions that it asks for the address to put."""
    imports: dict[int, str] = {}
    pointers: dict[int, int] = {}
    resolvers: set[int] = set()
    for section in elf.sections:
        if section.type != RELOCATIONS or not section.flags & ALLOCATED:
            continue
        table = elf.sections[section.link] if 0 < section.link < len(elf.sections) else None
        symbols = _Dynamic(elf, table) if table is not None else None
        data = _whole(elf.content(section), _RELOCATION)
        for place, kind, symbol, addend in _RELOCATION.iter_unpack(data):
            if kind in (_RELATIVE, _RESOLVED):
                pointers[place] = addend
                resolvers.update([addend] if kind == _RESOLVED else ())
            elif kind in (_TO_GOT, _TO_SLOT, _ABSOLUTE) and symbols is not None:
                name, address = symbols[symbol]
                if address:
                    pointers[place] = address + (addend if kind == _ABSOLUTE else 0)
                elif name:
                    imports[place] = name
    return imports, pointers, resolvers


class _Dynamic:
    """The symbols that relocations name: name and address, 0 for what is in another file."""

    def __init__(self, elf: ElfFile, table: Section) -> None:
        self._data = elf.content(table)
        self._names = elf.linked(table)

    def __getitem__(self, number: int) -> tuple[str, int]:
        name, _, _, section, address, _ = _SYMBOL.unpack_from(self._data, number * _SYMBOL.size)
        text = text_at(self._names, name).decode("utf-8", "replace")
        return text.partition("@")[0], address if section else 0
