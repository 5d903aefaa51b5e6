"""Reads an ELF file for its call graph: sections, symbols, ranges of `.eh_frame`, and relocations.

The names of functions are those that they have in profiles. Tables are read at once, not entry by entry: a
program has tens of thousands of symbols and relocations.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from perun.core.errors import JobFailed
from perun.native.callgraph.extract import extract
from perun.native.callgraph.graph import CallGraph, no_search_for_cycles
from perun.native.callgraph.image import Area, FrameDescription, Image, Symbol
from perun.native.elf import (
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
from perun.native.function_names import demangled, is_own, profile_name, source_name
from perun.native.symbols import debug_file, unpacked

# The ranges of code in `.eh_frame` (Linux Standard Base 5.0, "Exception Frames"): functions, also of
# stripped programs.
#
# Only where an entry begins and ends is read, and whether it begins with something on the stack.

_FORMS: Final = {0x00: "<Q", 0x02: "<H", 0x03: "<I", 0x04: "<Q", 0x0A: "<h", 0x0B: "<i", 0x0C: "<q"}
_RELATIVE_ENCODING: Final = 0x10
_EXTENDED: Final = 0xFFFFFFFF
_NOTHING, _ADVANCES = 0, (2, 3, 4)
"""Instructions (DW_CFA_nop, DW_CFA_advance_loc1 ...) after which others say nothing of the start of a
range."""


class _Common(NamedTuple):
    """What several entries share (a CIE): how addresses are written, and whether data follow them."""

    form: str
    is_relative: bool
    has_data: bool


def frames_of(data: bytes, address: int) -> Iterator[FrameDescription]:
    """The entries of the section `.eh_frame` that is loaded at an address, in the order of the section.

    What is damaged ends it.
    """
    common: dict[int, _Common | None] = {}
    at = 0
    while at + 8 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        start = at + 4
        if length == _EXTENDED:
            (length,) = struct.unpack_from("<Q", data, start)
            start += 8
        end = start + length
        if not length or end > len(data):
            return
        (identifier,) = struct.unpack_from("<I", data, start)
        if not identifier:
            common[at] = _common(data, start + 4, end)
        elif (shared := common.get(start - identifier)) is not None:
            yield _frame(data, start + 4, end, address, shared)
        at = end


def _common(data: bytes, at: int, end: int) -> _Common | None:
    """The part that is shared by entries; None where addresses are written in a way that is not known."""
    text_end = data.index(b"\0", at + 1, end)
    augmentation = data[at + 1 : text_end].decode("latin-1")
    at = text_end + 1
    for _ in range(3):  # factors of code and data, register of the return address
        _, at = _leb(data, at)
    encoding = 0
    if augmentation.startswith("z"):
        _, at = _leb(data, at)
        for letter in augmentation[1:]:
            if letter == "R":
                encoding = data[at]
                break
            if letter == "P":
                form = _FORMS.get(data[at] & 0x0F)
                if form is None:
                    return None
                at += 1 + struct.calcsize(form)
            elif letter == "L":
                at += 1
    form = _FORMS.get(encoding & 0x0F)
    if form is None or encoding & 0x60:
        return None
    return _Common(form, bool(encoding & _RELATIVE_ENCODING), augmentation.startswith("z"))


def _frame(data: bytes, at: int, end: int, address: int, common: _Common) -> FrameDescription:
    width = struct.calcsize(common.form)
    (start,) = struct.unpack_from(common.form, data, at)
    if common.is_relative:
        start += address + at
    (size,) = struct.unpack_from(common.form.upper().replace("<Q", "<Q"), data, at + width)
    at += 2 * width
    if common.has_data:
        length, at = _leb(data, at)
        at += length
    first = data[at] if at < end else _NOTHING
    is_piece = first != _NOTHING and first not in _ADVANCES and first & 0xC0 != 0x40
    return FrameDescription(start, size, is_piece)


def _leb(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number in LEB128, and the place after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


# The functions of a program that Go compiled, as its section `.gopclntab` lists them, which stays when the
# program is stripped.
#
# Its layout is that of Go 1.18 and later (`debug/gosym` of Go's library reads it, too).

SECTION: Final = ".gopclntab"
_MAGIC: Final = (0xFFFFFFF0, 0xFFFFFFF1)
"""The first word: of Go 1.18 and 1.19, and of those from 1.20 on."""
_HEADER: Final = struct.Struct("<I2xBBQQQQQQQQ")
_ENTRY: Final = struct.Struct("<II")
_WORD: Final = 8


def functions_of_go(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Name, address and size of each function; none where the section is of another layout.

    :raises ValueError: where it is damaged.
    :raises struct.error: where it ends too early.
    """
    if len(data) < _HEADER.size:
        return
    magic, _, word, count, _, text, names, *_, table = _HEADER.unpack_from(data)
    if magic not in _MAGIC or word != _WORD:
        return
    if table + (count + 1) * _ENTRY.size > len(data) + 4:  # the last one has only the end of the code
        raise ValueError(f"{SECTION} ends before its {count} functions")
    starts = [_ENTRY.unpack_from(data, table + number * _ENTRY.size) for number in range(count)]
    (end,) = struct.unpack_from("<I", data, table + count * _ENTRY.size)
    ends = [*(start for start, _ in starts[1:]), end]
    for (start, place), after in zip(starts, ends, strict=True):
        _, name = _ENTRY.unpack_from(data, table + place)
        first = names + name
        yield data[first : data.index(0, first)].decode("utf-8", "replace"), text + start, after - start


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
    objects = sorted(
        {(one.address, one.size, one.name) for one in entries if one.kind == _OBJECT and one.section}
    )
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
    table = elf.section(SECTION)
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
    found.sort(key=lambda one: (one.address, not one.size, one.kind == _INDIRECT, one.is_local, one.name))
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
