"""Which function each line of a source belongs to, by the debug information of a program, through inlining.

A function that is inlined has an entry of its own within the one that has the code (DWARF 5, section 3.3.8).
The line table (section 6.2) says of which line the code at an address is, the innermost entry there of which
function: so lines of functions are known that no text shows, as those of a macro, and so is what has no code
of its own.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.native import dwarf
from perun.native.elf import MAGIC, Damaged, checked, debug_information, with_debug_information

LARGEST_PROGRAM: Final = 256 << 20
"""Bytes of the largest program that is read."""
LINKED: Final = "<artificial>"
"""The unit that has the code of all sources after optimization of the whole program (LTO)."""
_OF_RUST: Final = "/@/"
_CODE: Final = ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine")
_AROUND: Final = (*_CODE, "DW_TAG_lexical_block", "DW_TAG_namespace", "DW_TAG_module")
_MAX_DEPTH: Final = 200


class LineRange(NamedTuple):
    """A function and its lines, the first and the last included, counted from 1."""

    name: str
    first: int
    last: int


class SourceFunction(NamedTuple):
    """A function as the debug information names it. :param source: base name of the file it is in."""

    name: str
    source: str


class SourceScopes(NamedTuple):
    """What the debug information says.

    :param ranges: of functions, by the base name of their source and their name. :param inlined: names of
        functions that have no code of their own, as all their calls are inlined.
    :param has_lines: whether there is debug information at all.
    :param owners: the function of each line that has code, by the base name of its source and the line.
    :param within: the functions that each function is inlined into.
    """

    ranges: Mapping[tuple[str, str], LineRange]
    inlined: frozenset[str]
    has_lines: bool
    owners: Mapping[tuple[str, int], SourceFunction]
    within: Mapping[SourceFunction, frozenset[SourceFunction]]


NONE: Final = SourceScopes({}, frozenset(), False, {}, {})


def read(path: Path, sources: Collection[str]) -> SourceScopes:
    """The functions of a program whose sources are among these.

    What is no program, is damaged, or has no debug information has :data:`NONE`.

    :param sources: base names of files; others are not read, as large programs have very many.
    """
    with suppress(OSError, Damaged), path.open("rb") as file, checked():
        if path.stat().st_size > LARGEST_PROGRAM or file.read(len(MAGIC)) != MAGIC:
            return NONE
        debug = debug_information(with_debug_information(file))
        if debug is not None:
            return _Reader(debug, frozenset(sources)).read()
    return NONE


def is_nested(name: str) -> bool:
    """Whether the function lies within the text of another one, as lambdas do."""
    return name.startswith(("operator()", "<lambda", "{closure", "{lambda"))


class _Reader:
    def __init__(self, debug: Any, sources: frozenset[str]) -> None:
        self._debug = debug
        self._sources = sources
        self._files: dict[int, list[str]] = {}  # of a unit, by its offset
        self._lines: dict[tuple[str, int], Counter[SourceFunction]] = defaultdict(Counter)
        self._first: dict[SourceFunction, int] = {}
        self._within: dict[SourceFunction, set[SourceFunction]] = defaultdict(set)
        self._own: set[str] = set()

    def read(self) -> SourceScopes:
        for unit in self._debug.iter_CUs():
            name = dwarf.name_of(unit.get_top_DIE()).partition(_OF_RUST)[0]
            if posixpath.basename(name) in self._sources or name == LINKED:
                self._read_unit(unit)
        starts: dict[str, list[tuple[int, SourceFunction]]] = defaultdict(list)
        for one, first in self._first.items():
            if first and not is_nested(one.name):
                starts[one.source].append((first, one))
        for known in starts.values():
            known.sort()
        owners = {
            place: self._owner(place, max(found, key=lambda one: (found[one], one)), starts[place[0]])
            for place, found in self._lines.items()
        }
        last: dict[SourceFunction, int] = {}
        for (source, line), one in owners.items():
            if source == one.source and line >= self._first.get(one, 0):
                last[one] = max(line, last.get(one, 0))
        ranges = {
            (one.source, one.name): LineRange(one.name, self._first.get(one, 0) or line, line)
            for one, line in last.items()
        }
        inlined = {one.name for one in self._within} - self._own
        within = {one: frozenset(outer) for one, outer in self._within.items()}
        return SourceScopes(ranges, frozenset(inlined), True, owners, within)

    def _owner(
        self, place: tuple[str, int], found: SourceFunction, starts: list[tuple[int, SourceFunction]]
    ) -> SourceFunction:
        """The function of a line: compilers count what prepares a call for the function that is inlined
        there, so of two the one that begins right before the line has it.

        :param starts: the functions of the source with their first lines, in this order.
        """
        at = bisect_left(starts, (place[1] + 1,)) - 1
        if at < 0 or is_nested(found.name):
            return found
        nearest = starts[at][1]
        same = found.source == place[0] and self._first.get(found, 0) >= starts[at][0]
        return found if same else nearest

    def _read_unit(self, unit: Any) -> None:
        rows = self._rows(unit)
        addresses = [address for address, _, _ in rows]
        owners: list[SourceFunction | None] = [None] * len(rows)
        for entry, one, outer in self._scopes(unit.get_top_DIE(), None, 0):
            if one.source in self._sources:
                if entry.tag == _CODE[0]:
                    self._own.add(one.name)
                elif outer is not None:
                    self._within[one].add(outer)
            for low, high in dwarf.ranges_of(entry):
                begin, end = bisect_left(addresses, low), bisect_left(addresses, high)
                owners[begin:end] = [one] * (end - begin)
        for number, ((address, source, line), owner) in enumerate(zip(rows, owners, strict=True)):
            if owner is not None and source in self._sources and line:
                after = addresses[number + 1] if number + 1 < len(rows) else address + 1
                self._lines[source, line][owner] += min(max(after - address, 0), 1 << 20)

    def _scopes(
        self, parent: Any, outer: SourceFunction | None, depth: int
    ) -> Iterator[tuple[Any, SourceFunction, SourceFunction | None]]:
        """Entries with code below one, each before those within it, with their function and that of the
        project around it."""
        if depth > _MAX_DEPTH:
            return
        for entry in parent.iter_children():
            if entry.tag not in _AROUND:
                continue
            inner = outer
            if entry.tag in _CODE:
                if not {"DW_AT_low_pc", "DW_AT_ranges"} & entry.attributes.keys():
                    continue
                inner, first = self._function(entry)
                if not inner.name:
                    inner = outer
                else:
                    self._first.setdefault(inner, first)
                    yield entry, inner, outer
                    if inner.source not in self._sources:
                        inner = outer  # what a library has inlined of the project is inlined into the caller
            if entry.has_children:
                yield from self._scopes(entry, inner, depth + 1)

    def _function(self, entry: Any) -> tuple[SourceFunction, int]:
        """The function of an entry, maybe by those that it is a copy of, and the line of its declaration."""
        line, file = (dwarf.holder(entry, key) for key in ("DW_AT_decl_line", "DW_AT_decl_file"))
        files = self._files_of(file.cu) if file is not None else []
        number = dwarf.number_of(file, "DW_AT_decl_file")
        source = files[number] if 0 <= number < len(files) else ""
        return SourceFunction(dwarf.name_of(entry), source), dwarf.number_of(line, "DW_AT_decl_line")

    def _files_of(self, unit: Any) -> list[str]:
        """Base names of the files of the line table of a unit, as entries and rows number them."""
        if unit.cu_offset not in self._files:
            program = self._debug.line_program_for_CU(unit)
            found = (
                [posixpath.basename(_decoded(one.name)) for one in program["file_entry"]] if program else []
            )
            if program and program["version"] < 5:
                found.insert(0, "")
            self._files[unit.cu_offset] = found
        return self._files[unit.cu_offset]

    def _rows(self, unit: Any) -> list[tuple[int, str, int]]:
        """Address, file and line of each row of the line table of a unit, in the order of addresses."""
        program, files = self._debug.line_program_for_CU(unit), self._files_of(unit)
        found = []
        for row in program.get_entries() if program else ():
            state = row.state
            if state is not None:
                known = 0 <= state.file < len(files) and not state.end_sequence
                found.append((state.address, files[state.file] if known else "", state.line if known else 0))
        found.sort(key=lambda one: one[0])
        return found


def _decoded(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
