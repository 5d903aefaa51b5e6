"""The types of a program in its debug information (DWARF), as pyelftools has it.

Every entry here is a DIE (debugging information entry) of pyelftools, or None where the debug information has
none, as for `void`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.native.elf import Damaged, checked, with_debug_information

POINTERS: Final = ("DW_TAG_pointer_type", "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type")
STRUCTS: Final = ("DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type")
MAX_DEPTH: Final = 8
"""How many links between entries are followed, and how deep structures are searched."""
_ALIASES: Final = (
    "DW_TAG_typedef",
    "DW_TAG_const_type",
    "DW_TAG_volatile_type",
    "DW_TAG_restrict_type",
    "DW_TAG_atomic_type",
)
_MAX_ALIASES: Final = 64
_SIGNED: Final = 5
_UNSIGNED: Final = 7
"""Encodings of DWARF for whole numbers; addresses, booleans, floats and characters are no sizes."""


def name_of(entry: Any) -> str:
    """The name of an entry; of a concrete function or parameter that of the abstract one."""
    found = holder(entry, "DW_AT_name")
    return "" if found is None else str(found.attributes["DW_AT_name"].value.decode("utf-8", "replace"))


def type_of(entry: Any) -> Any:
    """The type of an entry; of a concrete function or parameter that of the abstract one."""
    found = holder(entry, "DW_AT_type")
    return None if found is None else found.get_DIE_from_attribute("DW_AT_type")


def number_of(entry: Any, attribute: str) -> int:
    """The value of an attribute that is a number; 0 where the entry lacks it."""
    found = entry.attributes.get(attribute) if entry is not None else None
    return int(found.value) if found is not None else 0


def resolved(kind: Any) -> Any:
    """The type behind typedefs and qualifiers; None for void."""
    for _ in range(_MAX_ALIASES):
        if kind is None or kind.tag not in _ALIASES:
            return kind
        kind = type_of(kind)
    return None


def defined(kind: Any) -> Any:
    """The definition of a structure that its own unit only declares, searched in the other units."""
    if kind is None or kind.tag not in STRUCTS or "DW_AT_declaration" not in kind.attributes:
        return kind
    if "DW_AT_signature" in kind.attributes:
        return kind.get_DIE_from_attribute("DW_AT_signature")
    return _definitions(kind.dwarfinfo).get(_qualified_name(kind), kind)


def member(kind: Any, names: Sequence[str]) -> tuple[Any, int] | None:
    """Type and offset (bytes) of a member of a member ..., also of base classes; None where there is none."""
    offset = 0
    for wanted in names:
        kind = defined(resolved(kind))
        found = next((one for one in members(kind) if one[0] == wanted), None) if kind is not None else None
        if found is None:
            return None
        kind, offset = found[1], offset + found[2]
    return kind, offset


def members(kind: Any, base: int = 0, depth: int = 0) -> Iterator[tuple[str, Any, int]]:
    """Name, type and offset (bytes) of the members; those of unnamed members and base classes come last."""
    nested = []
    for child in kind.iter_children():
        if child.tag not in ("DW_TAG_member", "DW_TAG_inheritance"):
            continue
        if "DW_AT_external" in child.attributes or "DW_AT_bit_size" in child.attributes:
            continue  # a static member, or a bit field
        place = child.attributes.get("DW_AT_data_member_location")
        if place is not None and not isinstance(place.value, int):
            continue  # a virtual base: its offset is known at run time only
        offset = base + (place.value if place is not None else 0)
        name = name_of(child)
        if name and child.tag == "DW_TAG_member":
            yield name, type_of(child), offset
        else:
            nested.append((child, offset))
    for child, offset in nested:
        target = defined(resolved(type_of(child)))
        if target is not None and target.tag in STRUCTS and depth < MAX_DEPTH:
            yield from members(target, offset, depth + 1)


def is_number(kind: Any) -> bool:
    """Whether values of the type are whole numbers."""
    kind = resolved(kind)
    if kind is None or kind.tag != "DW_TAG_base_type":
        return False
    return number_of(kind, "DW_AT_encoding") in (_SIGNED, _UNSIGNED)


def is_of_library(kind: Any) -> bool:
    """Whether the type lies in the namespace `std`."""
    parent = kind.get_parent()
    while parent is not None and parent.tag == "DW_TAG_namespace":
        if name_of(parent) == "std":
            return True
        parent = parent.get_parent()
    return False


def integer_shape(kind: Any) -> tuple[int, bool]:
    """The bytes to read for a whole number, at most 8, and whether it is signed."""
    kind = resolved(kind)
    if kind is None:
        return 8, False
    return min(number_of(kind, "DW_AT_byte_size") or 8, 8), number_of(kind, "DW_AT_encoding") == _SIGNED


def pointed_size(kind: Any) -> int:
    """The size in bytes of what a pointer points to; 0 where it is not known."""
    kind = resolved(kind)
    target = defined(resolved(type_of(kind))) if kind is not None else None
    if target is None:
        return 0
    return 8 if target.tag in POINTERS else number_of(target, "DW_AT_byte_size")


def holder(entry: Any, attribute: str) -> Any:
    """The entry that has the attribute: this one, or the abstract one or declaration behind it; or None."""
    for _ in range(MAX_DEPTH):
        if attribute in entry.attributes:
            return entry
        for link in ("DW_AT_abstract_origin", "DW_AT_specification"):
            if link in entry.attributes:
                entry = entry.get_DIE_from_attribute(link)
                break
        else:
            return None
    return None


def _definitions(debug: Any) -> dict[str, Any]:
    """The definitions of all structures by qualified name, found once for each file."""
    known: dict[str, Any] | None = getattr(debug, "perun_definitions", None)
    if known is None:
        known = {}
        for unit in debug.iter_CUs():
            _add_definitions(unit.get_top_DIE(), known)
        debug.perun_definitions = known
    return known


def _add_definitions(parent: Any, known: dict[str, Any]) -> None:
    for child in parent.iter_children():
        if child.tag in STRUCTS and "DW_AT_declaration" not in child.attributes:
            known.setdefault(_qualified_name(child), child)
        elif child.tag == "DW_TAG_namespace":
            _add_definitions(child, known)


def _qualified_name(kind: Any) -> str:
    names = [name_of(kind)]
    parent = kind.get_parent()
    while parent is not None and parent.tag in ("DW_TAG_namespace", *STRUCTS):
        names.append(name_of(parent))
        parent = parent.get_parent()
    return "::".join(reversed(names))


# What the debug information of a program says of places: of lines of sources, and of functions with code.


def lines_of(program: Any, source: str) -> Iterator[tuple[int, int]]:
    """Lines of a source, and the addresses where their statements begin."""
    if program is None:
        return
    files = program["file_entry"]
    first = 0 if program["version"] >= 5 else 1
    for entry in program.get_entries():
        state = entry.state
        if state is None or state.end_sequence or not state.is_stmt:
            continue
        place = state.file - first
        if 0 <= place < len(files):
            name = files[place].name.decode("utf-8", "replace")
            if name == source or name.endswith("/" + source) or source.endswith("/" + name):
                yield state.line, state.address


def with_code(parent: Any) -> Iterator[tuple[int, int]]:
    """Address and entry, as its offset, of every function below the entry that has code."""
    for entry in parent.iter_children():
        if entry.tag == "DW_TAG_subprogram":
            if "DW_AT_low_pc" in entry.attributes:
                yield entry.attributes["DW_AT_low_pc"].value, entry.offset
            elif "DW_AT_ranges" in entry.attributes:
                yield from ((start, entry.offset) for start, _ in islice(ranges_of(entry), 1))
        elif entry.tag in ("DW_TAG_namespace", "DW_TAG_module"):
            yield from with_code(entry)


def ranges_of(entry: Any) -> Iterator[tuple[int, int]]:
    """Where the code of an entry begins and ends, each time: a cold part of a function lies elsewhere."""
    low, high = (entry.attributes.get(key) for key in ("DW_AT_low_pc", "DW_AT_high_pc"))
    if low is not None and high is not None:
        is_address = high.form == "DW_FORM_addr"
        yield int(low.value), int(high.value) if is_address else int(low.value + high.value)
        return
    lists = entry.dwarfinfo.range_lists() if "DW_AT_ranges" in entry.attributes else None
    if lists is None:
        return
    with contextlib.suppress(Damaged), checked():
        found = lists.get_range_list_at_offset(entry.attributes["DW_AT_ranges"].value, cu=entry.cu)
        base = entry.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
        for one in found:
            if hasattr(one, "base_address"):
                base = one
                continue
            start = 0
            if not getattr(one, "is_absolute", True):
                start = getattr(base, "base_address", getattr(base, "value", 0))
            yield start + one.begin_offset, start + one.end_offset


# Debug information that `-gsplit-dwarf` put into files of its own (DWARF 5, section 3.1.3).
#
# The program has a skeleton of each source, which names the file `.dwo` with all the rest. Addresses stay in
# the program: the file refers to them by their positions in a part of its table.

_HEADER: Final = 8
"""Bytes before the first address of a table of its own, as readers expect it."""
_VERSION: Final = 5
"""Of DWARF: what compilers wrote before was an extension of theirs."""
_NAMES: Final = ("DW_AT_dwo_name", "DW_AT_GNU_dwo_name")


class Skeleton(NamedTuple):
    """What a program says of a file with debug information.

    :param name: as the compiler wrote it. :param folder: of the compilation. :param version: of DWARF.
    :param addresses: position of its addresses in the table of the program.
    """

    name: str
    folder: str
    version: int
    addresses: int

    @classmethod
    def of(cls, unit: Any) -> Skeleton | None:
        """The skeleton that a unit is; None for any other unit."""
        attributes = unit.get_top_DIE().attributes
        name = next((attributes[one].value for one in _NAMES if one in attributes), None)
        if name is None:
            return None
        folder = attributes["DW_AT_comp_dir"].value if "DW_AT_comp_dir" in attributes else b""
        base = attributes["DW_AT_addr_base"].value if "DW_AT_addr_base" in attributes else _HEADER
        return cls(_text(name), _text(folder), unit["version"], base)

    def path(self, program: str) -> Path | None:
        """The file: where it was compiled, or beside the program; None where it is gone."""
        places = (Path(self.folder, self.name), Path(program).parent / os.path.basename(self.name))
        return next((place for place in places if place.is_file()), None)


def read_split(skeleton: Skeleton, program: Any, path: Path) -> Any:
    """The debug information (DWARFInfo of pyelftools) in a file; None where it is of a kind that is not read.

    :param program: that of the program itself.
    :raises Damaged: where it cannot be read.
    """
    if skeleton.version < _VERSION or program.debug_addr_sec is None:
        return None
    table = program.debug_addr_sec
    table.stream.seek(max(skeleton.addresses - _HEADER, 0))
    addresses = BytesIO(table.stream.read())
    sections: dict[str, Any] = dict.fromkeys(_SECTIONS)
    with checked(), path.open("rb") as file:
        from elftools.dwarf.dwarfinfo import DebugSectionDescriptor, DWARFInfo

        for section in with_debug_information(file).iter_sections():
            key = section.name.removesuffix(".dwo").removeprefix(".") + "_sec"
            if section.name.endswith(".dwo") and key in sections:
                data = section.data()
                sections[key] = DebugSectionDescriptor(BytesIO(data), section.name, 0, len(data), 0)
        sections["debug_addr_sec"] = table._replace(stream=addresses)
        found = DWARFInfo(program.config, **sections)
        for unit in found.iter_CUs():
            _add_positions(unit)
        return found


def _add_positions(unit: Any) -> None:
    """Add what such a file leaves out: its tables begin right behind their headers."""
    with contextlib.suppress(Damaged), checked():  # of the first entry itself, which refers to the tables
        unit.get_top_DIE()
    attributes = unit.get_top_DIE().attributes
    example = next(iter(attributes.values()))
    for name, position in _POSITIONS.items():
        attributes.setdefault(name, example._replace(name=name, value=position, raw_value=position))


_POSITIONS: Final = {
    "DW_AT_str_offsets_base": 8,
    "DW_AT_addr_base": _HEADER,
    "DW_AT_rnglists_base": 12,
    "DW_AT_loclists_base": 12,
}
_SECTIONS: Final = (
    *("debug_info_sec", "debug_aranges_sec", "debug_abbrev_sec", "debug_frame_sec", "eh_frame_sec"),
    *("debug_str_sec", "debug_loc_sec", "debug_ranges_sec", "debug_line_sec", "debug_pubtypes_sec"),
    *("debug_pubnames_sec", "debug_addr_sec", "debug_str_offsets_sec", "debug_line_str_sec"),
    *("debug_loclists_sec", "debug_rnglists_sec", "debug_sup_sec", "gnu_debugaltlink_sec", "debug_types_sec"),
)


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
