"""Where functions begin and end by the debug information of a program, and which of them were inlined.

The entry (DIE) of a function says where it is declared (DWARF 5, section 3.3); its last line is the largest
one of its file in the line table for its addresses (section 6.2).
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.elf import MAGIC, Damaged, checked, debug_information, with_debug_information
from perun.porcelain.explain.functions import Range

MOST: Final = 256 << 20
"""Bytes of the largest program that is read."""


class DebugLines(NamedTuple):
    """What the debug information says.

    :param ranges: of functions, by the base name of their source and their name. :param inlined: names of
        functions that have no code of their own, as all their calls are inlined.
    :param has_lines: whether there is debug information at all.
    """

    ranges: dict[tuple[str, str], Range]
    inlined: frozenset[str]
    has_lines: bool


_COPIES: Final = ("DW_AT_abstract_origin", "DW_AT_specification")
NONE: Final = DebugLines({}, frozenset(), False)


def read(path: Path, sources: Collection[str]) -> DebugLines:
    """The functions of a program whose sources are among these.

    What is no program, is damaged, or has no debug information has :data:`NONE`.

    :param sources: base names of files; others are not read, as large programs have very many.
    """
    with suppress(OSError, Damaged), path.open("rb") as file, checked():
        if path.stat().st_size > MOST or file.read(len(MAGIC)) != MAGIC:
            return NONE
        debug = debug_information(with_debug_information(file))
        if debug is not None:
            return _collect(debug, frozenset(sources))
    return NONE


def _collect(debug: Any, sources: frozenset[str]) -> DebugLines:
    ranges: dict[tuple[str, str], Range] = {}
    inlined: set[str] = set()
    own: set[str] = set()
    for unit in debug.iter_CUs():
        name = _text(unit.get_top_DIE().attributes.get("DW_AT_name"))
        if posixpath.basename(name) not in sources:
            continue
        for one, is_inlined in _functions(debug, unit):
            (inlined if is_inlined else own).add(one.name)
            if one.last:
                ranges[posixpath.basename(name), one.name] = one
    return DebugLines(ranges, frozenset(inlined - own), True)


def _functions(debug: Any, unit: Any) -> Iterator[tuple[Range, bool]]:
    """Each function with its lines, (0, 0) if they are not known, and whether it is inlined everywhere."""
    rows = _rows(debug, unit)
    for entry in unit.iter_DIEs():
        if entry.tag != "DW_TAG_subprogram" or "DW_AT_declaration" in entry.attributes:
            continue
        name, first = _name_and_line(entry)
        if not name:
            continue
        low, high = _addresses(entry)
        if high <= low:
            is_inlined = entry.attributes.get("DW_AT_inline")
            yield Range(name, 0, 0), is_inlined is not None and is_inlined.value in (1, 3)
            continue
        lines = [line for address, line in rows if low <= address < high and line >= first]
        yield Range(name, first or min(lines, default=0), max(lines, default=0)), False


def _rows(debug: Any, unit: Any) -> list[tuple[int, int]]:
    """Addresses and lines of the unit's own source, which is the file of its first row."""
    program = debug.line_program_for_CU(unit)
    states = [one.state for one in program.get_entries() if one.state is not None] if program else []
    files = {state.file for state in states[:1]}
    return [(state.address, state.line) for state in states if state.file in files and not state.end_sequence]


def _name_and_line(entry: Any) -> tuple[str, int]:
    """The name and the line of the declaration, maybe those of the entry that it is a copy of."""
    for _ in range(4):
        name = _text(entry.attributes.get("DW_AT_name"))
        if name:
            line = entry.attributes.get("DW_AT_decl_line")
            return name, int(line.value) if line is not None else 0
        links = [key for key in _COPIES if key in entry.attributes]
        if not links:
            break
        entry = entry.get_DIE_from_attribute(links[0])
    return "", 0


def _addresses(entry: Any) -> tuple[int, int]:
    low, high = (entry.attributes.get(key) for key in ("DW_AT_low_pc", "DW_AT_high_pc"))
    if low is None or high is None:
        return 0, 0
    is_address = high.form == "DW_FORM_addr"
    return int(low.value), int(high.value) if is_address else int(low.value + high.value)


def _text(attribute: Any) -> str:
    value = attribute.value if attribute is not None else b""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
