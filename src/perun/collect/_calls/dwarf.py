"""The types of a program in its debug information (DWARF), as pyelftools has it.

Every entry here is a DIE (debugging information entry) of pyelftools, or None where the debug information has
none, as for `void`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

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
    holder = _holder(entry, "DW_AT_name")
    return "" if holder is None else str(holder.attributes["DW_AT_name"].value.decode("utf-8", "replace"))


def type_of(entry: Any) -> Any:
    """The type of an entry; of a concrete function or parameter that of the abstract one."""
    holder = _holder(entry, "DW_AT_type")
    return None if holder is None else holder.get_DIE_from_attribute("DW_AT_type")


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


def _holder(entry: Any, attribute: str) -> Any:
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
