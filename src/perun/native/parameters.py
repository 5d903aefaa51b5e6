"""Where the parameters of a function are when it is entered.

That follows from their types by the calling convention (System V ABI, AMD64 supplement 1.0, section 3.2.3).
Where the compiler has changed the parameters of a function, its debug information tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from perun.native.dwarf import (
    MAX_DEPTH,
    POINTERS,
    STRUCTS,
    defined,
    members,
    name_of,
    number_of,
    resolved,
    type_of,
)

REGISTERS: Final = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
"""Registers of whole numbers and pointers, in the order of the parameters."""
_DWARF_REGISTERS: Final = {5: 0, 4: 1, 1: 2, 2: 3, 8: 4, 9: 5}
"""Number of a register in DWARF to its index in `REGISTERS`."""
_OP_REG0: Final = 0x50
_OP_REG31: Final = 0x6F
_PASS_BY_REFERENCE: Final = 4
_FLOATS: Final = (3, 4)
"""Encodings of DWARF for complex and real floating point numbers."""


class FunctionParameter(NamedTuple):
    """A parameter of a function.

    :param type: its type in the debug information.
    :param place: register and stack as :class:`perun.collect._calls.sizes.Size` has them; None where it is
        in no register for whole numbers and not on the stack.
    :param indirect: whether a pointer to the object is there, though the source has no pointer.
    """

    name: str
    type: Any
    place: tuple[int, int] | None
    indirect: bool


def parameters_of(entry: Any, changed: bool = False) -> Iterator[FunctionParameter]:
    """The parameters of a function in their order, including the hidden ones of C++.

    :param entry: the debug information that describes the function.
    :param changed: whether the compiler may have changed the parameters: then their places come from the
        debug information only.
    """
    next_register, next_stack = 0, 8
    result = resolved(type_of(entry))
    if result is not None and not changed and _is_returned_in_memory(result):
        next_register = 1  # a hidden pointer to where the result goes
    for child in formal_parameters(entry):
        name, kind = name_of(child), type_of(child)
        how, words = _passing(resolved(kind))
        if changed:
            register = _register_at_entry(child, entry)
            yield FunctionParameter(
                name, kind, None if register is None else (register, 0), how == "reference"
            )
            continue
        place: tuple[int, int] | None = None
        if how in ("integer", "reference") and next_register + words <= len(REGISTERS):
            place = (next_register, 0)
            next_register += words
        elif how != "float":
            place = (-1, next_stack)
            next_stack += 8 * words
        yield FunctionParameter(name, kind, place, how == "reference")


def formal_parameters(entry: Any) -> list[Any]:
    """The entries of the parameters of a function."""
    return [child for child in entry.iter_children() if child.tag == "DW_TAG_formal_parameter"]


def _passing(kind: Any) -> tuple[str, int]:
    """How a value is passed: as `integer`, `float`, `memory` or `reference`, and in how many words."""
    if kind is None:
        return "integer", 1
    if kind.tag in STRUCTS:
        kind = defined(kind)
        size = number_of(kind, "DW_AT_byte_size")
        if number_of(kind, "DW_AT_calling_convention") == _PASS_BY_REFERENCE or not _is_trivial(kind):
            return "reference", 1
        words = -(-size // 8)
        if size > 16:
            return "memory", words
        return ("float" if _has_only_floats(kind) else "integer"), words
    if "DW_AT_GNU_vector" in kind.attributes:
        return "float", 1
    is_wide = number_of(kind, "DW_AT_byte_size") > 8
    if kind.tag == "DW_TAG_base_type" and number_of(kind, "DW_AT_encoding") in _FLOATS:
        return ("memory", 2) if is_wide else ("float", 1)
    if (kind.tag == "DW_TAG_base_type" and is_wide) or kind.tag == "DW_TAG_ptr_to_member_type":
        return "integer", 2
    return "integer", 1


def _is_returned_in_memory(kind: Any) -> bool:
    """Whether a result is written to where a hidden pointer says. A `long double`, though it is passed in
    memory, is returned in a register."""
    return kind.tag in STRUCTS and _passing(kind)[0] in ("memory", "reference")


def _is_trivial(kind: Any, depth: int = 0) -> bool:
    """Whether values are copied bytewise: no own destructor or copy constructor, nothing virtual in them."""
    for child in kind.iter_children():
        if child.tag == "DW_TAG_subprogram":
            if "DW_AT_virtuality" in child.attributes or _is_own_copy_or_end(child, kind):
                return False
        elif child.tag in ("DW_TAG_member", "DW_TAG_inheritance") and depth < MAX_DEPTH:
            inner = defined(resolved(type_of(child)))
            is_static = "DW_AT_external" in child.attributes
            if (
                inner is not None
                and inner.tag in STRUCTS
                and not is_static
                and not _is_trivial(inner, depth + 1)
            ):
                return False
    return True


def _is_own_copy_or_end(method: Any, kind: Any) -> bool:
    """Whether a method is a destructor or a copy constructor that the source defines."""
    if any(f"DW_AT_{one}" in method.attributes for one in ("defaulted", "deleted", "artificial")):
        return False
    name = name_of(kind).partition("<")[0]
    method_name = name_of(method)
    return method_name == f"~{name}" or (method_name == name and _takes_own_reference(method, kind))


def _takes_own_reference(constructor: Any, kind: Any) -> bool:
    """Whether a constructor takes one reference to an object of its own type."""
    given = [child for child in formal_parameters(constructor) if "DW_AT_artificial" not in child.attributes]
    if len(given) != 1:
        return False
    reference = resolved(type_of(given[0]))
    if reference is None or reference.tag not in POINTERS[1:]:
        return False
    target = resolved(type_of(reference))
    return target is not None and target.offset == kind.offset


def _has_only_floats(kind: Any) -> bool:
    types = [resolved(member) for _, member, _ in members(kind)]
    return bool(types) and all(one is not None and _passing(one)[0] == "float" for one in types)


def _register_at_entry(parameter: Any, function: Any) -> int | None:
    """The register in which the debug information has a parameter at the first instruction, or None."""
    place = parameter.attributes.get("DW_AT_location")
    start = function.attributes.get("DW_AT_low_pc")
    if place is None or start is None:
        return None
    if isinstance(place.value, list):
        return _register(place.value)
    lists = parameter.dwarfinfo.location_lists()
    if lists is None:
        return None
    unit = parameter.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
    base = unit.value if unit is not None else 0
    for one in lists.get_location_list_at_offset(place.value, die=parameter):
        if hasattr(one, "base_address"):
            base = one.base_address
        elif hasattr(one, "begin_offset"):
            begin = one.begin_offset + (0 if getattr(one, "is_absolute", False) else base)
            if begin == start.value:
                return _register(one.loc_expr)
    return None


def _register(expression: Sequence[int]) -> int | None:
    """Index in :data:`REGISTERS` for an expression that is nothing but a register."""
    if len(expression) != 1 or not _OP_REG0 <= expression[0] <= _OP_REG31:
        return None
    return _DWARF_REGISTERS.get(expression[0] - _OP_REG0)
