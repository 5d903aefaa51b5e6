"""How the size of the structure that a function works on is read when the function is entered.

A size is a sum of numbers, each read by following pointers from a parameter: of a vector the end minus the
start, divided by the size of an element. It comes of an expression that the user gives, or is found by what
the types of the parameters are called and consist of. Where the parameters lie is a matter of the calling
convention (System V, x86-64), but for functions whose parameters the compiler has changed: there the debug
information tells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from perun.collect._calls.binary import Binary, Function
from perun.errors import UsageError
from perun.plugin.params import nearest

REGISTERS: Final = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
"""Registers of whole numbers and pointers, in the order of the parameters."""
MOST_STEPS: Final = 6
_DWARF_REGISTERS: Final = {5: 0, 4: 1, 1: 2, 2: 3, 8: 4, 9: 5}
_SIZE_NAMES: Final = ("size", "length", "len", "count", "n", "used")
"""What a member or parameter that holds a size is called, the likeliest first."""
_SIZE_WORDS: Final = {"size", "length", "len", "count", "used", "num", "nitems", "elements", "nelems", "cnt"}
_NO_SIZE: Final = {"max", "capacity", "cap", "alloc", "allocated", "elem", "ref", "bytes", "limit"}
_ALIASES: Final = (
    "DW_TAG_typedef",
    "DW_TAG_const_type",
    "DW_TAG_volatile_type",
    "DW_TAG_restrict_type",
    "DW_TAG_atomic_type",
)
_POINTERS: Final = ("DW_TAG_pointer_type", "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type")
_STRUCTS: Final = ("DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type")
_BY_REFERENCE: Final = 4
_MOST_DEPTH: Final = 8
_PARAMETER: Final = re.compile(r"\$(\d+)$")
_STEP: Final = re.compile(r"\s*(->|\.)?\s*([A-Za-z_]\w*)")


class Term(NamedTuple):
    """One number: from the parameter on, at each of `offsets` what lies there is read; all but the last are
    pointers. Where there are no offsets the parameter itself is the number, of `width` bytes.
    """

    factor: int
    offsets: tuple[int, ...]
    width: int
    signed: bool


class Size(NamedTuple):
    """Where a size is: `(sum of the terms + constant) / divisor`.

    :ivar register: index of :data:`REGISTERS`; -1 where the parameter is on the stack.
    :ivar stack: bytes above the return address, where it is on the stack.
    :ivar terms: six at the most, those of a deque; the probes of the kernel read no more of them.
    :ivar text: the expression, for the user.
    """

    register: int
    stack: int
    terms: tuple[Term, ...]
    constant: int = 0
    divisor: int = 1
    text: str = ""


class Parameter(NamedTuple):
    """A parameter of a function: its name, its type in the debug information, and where it is at entry.

    `place` is (register, stack) as :class:`Size` has them; None where it is in no such place. `indirect`
    says that what is there is a pointer to the object, though the source has no pointer.
    """

    name: str
    type: Any
    place: tuple[int, int] | None
    indirect: bool


class _Found(NamedTuple):
    terms: tuple[Term, ...]
    constant: int
    divisor: int
    text: str


def find_size(binary: Binary, function: Function) -> Size | None:
    """The size that `function` most likely depends on; None where nothing is known to be one."""
    entry = binary.description(function)
    if entry is None or binary.machine != "EM_X86_64" or function.symbol == "main":
        return None
    parameters = [one for one in parameters_of(entry, function.clone) if one.place is not None]
    for parameter in parameters:
        found = _of_object(parameter)
        if found is not None:
            return _size(parameter, found)
    for name in _SIZE_NAMES:
        for parameter in parameters:
            if _is_number(parameter.type) and _named_as(parameter.name, name):
                return _size(parameter, _number(parameter.type, parameter.name))
    return None


def size_of(binary: Binary, function: Function, expression: str) -> Size:
    """The size that `expression` names, e.g. `list->size`, `tree.root->count`, `n`, or `$2` for the second
    parameter that is a whole number or a pointer.

    :raises UsageError: where there is no such parameter or member, or it is no size.
    """
    where = f"the size {expression!r} of {function.name}"
    numbered = _PARAMETER.match(expression.strip())
    entry = binary.description(function)
    if numbered and (entry is None or not 1 <= int(numbered[1]) <= _count(entry)):
        number = int(numbered[1]) - 1
        if not 0 <= number < len(REGISTERS):
            raise UsageError(f"{where}: only $1 to ${len(REGISTERS)} can be read")
        return Size(number, 0, (Term(1, (), 8, True),), text=expression)
    if entry is None:
        raise UsageError(
            f"{where}: the program has no debug information for it",
            "compile with -g, or name the parameter by its number: $1",
        )
    parameters = list(parameters_of(entry, function.clone))
    name, steps = _parse(expression, where)
    if numbered:
        parameter = parameters[int(numbered[1]) - 1]
    else:
        known = {one.name: one for one in parameters}
        if name not in known and "this" in known:
            name, steps = "this", [name, *steps]
        if name not in known:
            raise UsageError(f"{where}: there is no parameter {name!r}", nearest(name, known))
        parameter = known[name]
    if parameter.place is None:
        raise UsageError(f"{where}: the parameter is not in a register when the function is entered")
    return _size(parameter, _follow(parameter, steps, where))._replace(text=expression.strip())


def parameters_of(entry: Any, changed: bool = False) -> Iterator[Parameter]:
    """The parameters of a function in their order, the hidden ones of C++ among them.

    :param changed: whether the compiler may have changed them; then only what the debug information says of
        their places counts.
    """
    general, stack = 0, 8
    result = _resolved(_attribute_type(entry))
    if result is not None and not changed and _passed(result)[0] in ("memory", "reference"):
        general = 1
    for child in entry.iter_children():
        if child.tag != "DW_TAG_formal_parameter":
            continue
        name = _text(child, "DW_AT_name")
        kind = _attribute_type(child)
        how, words = _passed(_resolved(kind))
        if changed:
            register = _register_at(child, entry)
            yield Parameter(name, kind, None if register is None else (register, 0), how == "reference")
            continue
        place: tuple[int, int] | None = None
        if how in ("integer", "reference") and general + words <= len(REGISTERS):
            place = (general, 0)
            general += words
        elif how != "float":
            place = (-1, stack)
            stack += 8 * words
        yield Parameter(name, kind, place, how == "reference")


def _count(entry: Any) -> int:
    return sum(child.tag == "DW_TAG_formal_parameter" for child in entry.iter_children())


def _parse(expression: str, where: str) -> tuple[str, list[str]]:
    text = expression.strip()
    if text.startswith("$"):
        text = "p" + text[1:]
    names: list[str] = []
    position = 0
    while position < len(text):
        step = _STEP.match(text, position)
        if not step or bool(step[1]) != bool(names):
            raise UsageError(
                f"{where} is not understood", "write it as in C: list->size, tree.root->count, n"
            )
        names.append(step[2])
        position = step.end()
    if not names:
        raise UsageError(f"{where} is empty")
    return names[0], names[1:]


def _size(parameter: Parameter, found: _Found) -> Size:
    assert parameter.place is not None
    return Size(*parameter.place, found.terms, found.constant, found.divisor, found.text)


def _follow(parameter: Parameter, steps: Sequence[str], where: str) -> _Found:
    """Go from a parameter through its members; pointers are followed wherever one is in the way."""
    kind = _resolved(parameter.type)
    position: tuple[int, ...] = (0,) if parameter.indirect else ()
    for step in steps:
        kind, position = _through_pointers(kind, position)
        if kind is None or kind.tag not in _STRUCTS:
            raise UsageError(f"{where}: {step!r} cannot be a member: the value before it is not a structure")
        kind = _defined(kind)
        member = _member(kind, step)
        if member is None:
            known = [name for name, _, _ in _members(kind)]
            raise UsageError(f"{where}: there is no member {step!r}", nearest(step, known))
        if not position:
            raise UsageError(f"{where}: a structure that is passed in registers cannot be read")
        position = (*position[:-1], position[-1] + member[1])
        kind = _resolved(member[0])
    text = ".".join([parameter.name, *steps])
    if _is_number(kind):
        width, signed = _shape(kind)
        return _Found((_term(position, width, signed),), 0, 1, text)
    target, position = _through_pointers(kind, position)
    found = _in_object(target, position, text, 0) if position else None
    if found is None:
        raise UsageError(f"{where} is neither a whole number nor a container of the C++ library")
    return found


def _of_object(parameter: Parameter) -> _Found | None:
    kind = _resolved(parameter.type)
    position: tuple[int, ...] = (0,) if parameter.indirect or (parameter.place or (0, 0))[0] < 0 else ()
    if not parameter.indirect and kind is not None and kind.tag in _STRUCTS:
        return None  # in registers, or copied to the stack
    if not parameter.indirect:
        kind, position = _through_pointers(kind, ())
    return _in_object(kind, position, parameter.name, 0) if position else None


def _in_object(kind: Any, position: tuple[int, ...], text: str, depth: int) -> _Found | None:
    """A size within the structure `kind` that lies at `position`."""
    kind = _defined(_resolved(kind))
    if kind is None or kind.tag not in _STRUCTS or depth > _MOST_DEPTH:
        return None
    container = _container(kind, position, text)
    if container is not None or _is_of_library(kind):
        return container
    members = list(_members(kind))
    for wanted in _SIZE_NAMES:
        for name, member, offset in members:
            if _is_number(member) and _named_as(name, wanted):
                width, signed = _shape(member)
                at = _moved(position, offset)
                return _Found((_term(at, width, signed),), 0, 1, f"{text}->{name}")
    for name, member, offset in members:
        resolved = _defined(_resolved(member))
        if resolved is not None and resolved.tag in _STRUCTS and _is_of_library(resolved):
            found = _container(resolved, _moved(position, offset), f"{text}->{name}")
            if found is not None:
                return found
    return None


def _container(kind: Any, position: tuple[int, ...], text: str) -> _Found | None:
    """The number of elements of a container of libstdc++."""
    name = _text(kind, "DW_AT_name").partition("<")[0]
    finder = _CONTAINERS.get(name)
    if finder is None or not _is_of_library(kind):
        return None
    return finder(kind, position, text)


def _counted(*path: str) -> Callable[[Any, tuple[int, ...], str], _Found | None]:
    """A container that keeps its number of elements in the member that `path` leads to."""

    def find(kind: Any, position: tuple[int, ...], text: str) -> _Found | None:
        place = _path(kind, path)
        if place is None:
            return None
        width, signed = _shape(place[0])
        return _Found((_term(_moved(position, place[1]), width, signed),), 0, 1, f"{text}.size()")

    return find


def _vector(kind: Any, position: tuple[int, ...], text: str) -> _Found | None:
    start = _path(kind, ("_M_impl", "_M_start"))
    finish = _path(kind, ("_M_impl", "_M_finish"))
    if start is None or finish is None:
        return None
    first = _resolved(start[0])
    if first is not None and first.tag in _STRUCTS:  # of bool: a pointer to words, and a bit
        ends = ((finish[1], 1), (start[1], -1))
        terms = tuple(
            term
            for offset, sign in ends
            for term in (
                _term(_moved(position, offset), 8, True, 8 * sign),
                _term(_moved(position, offset + 8), 4, False, sign),
            )
        )
        return _Found(terms, 0, 1, f"{text}.size()")
    size = _pointed_size(start[0])
    if not size:
        return None
    return _Found(
        (
            _term(_moved(position, finish[1]), 8, True),
            _term(_moved(position, start[1]), 8, True, -1),
        ),
        0,
        size,
        f"{text}.size()",
    )


def _deque(kind: Any, position: tuple[int, ...], text: str) -> _Found | None:
    places = {
        (end, part): _path(kind, ("_M_impl", end, part))
        for end in ("_M_start", "_M_finish")
        for part in ("_M_cur", "_M_first", "_M_last", "_M_node")
    }
    first = places["_M_start", "_M_cur"]
    size = _pointed_size(first[0]) if first else 0
    if not size or None in places.values():
        return None
    buffer = max(512 // size, 1) * size  # bytes of a piece

    def term(end: str, part: str, factor: int) -> Term:
        place = places[end, part]
        assert place is not None
        return _term(_moved(position, place[1]), 8, True, factor)

    # The nodes are pointers, eight bytes each, to pieces: everything is taken eight times to stay whole.
    terms = (
        term("_M_finish", "_M_node", buffer),
        term("_M_start", "_M_node", -buffer),
        term("_M_finish", "_M_cur", 8),
        term("_M_finish", "_M_first", -8),
        term("_M_start", "_M_last", 8),
        term("_M_start", "_M_cur", -8),
    )
    return _Found(terms, -8 * buffer, 8 * size, f"{text}.size()")


_TREE: Final = _counted("_M_t", "_M_impl", "_M_node_count")
_HASH: Final = _counted("_M_h", "_M_element_count")
_CONTAINERS: Final[dict[str, Callable[[Any, tuple[int, ...], str], _Found | None]]] = {
    "vector": _vector,
    "deque": _deque,
    "basic_string": _counted("_M_string_length"),
    "basic_string_view": _counted("_M_len"),
    "list": _counted("_M_impl", "_M_node", "_M_size"),
    **dict.fromkeys(("map", "set", "multimap", "multiset"), _TREE),
    **dict.fromkeys(("unordered_map", "unordered_set", "unordered_multimap", "unordered_multiset"), _HASH),
    **{name: lambda kind, position, text: _adapted(kind, position, text) for name in ("stack", "queue")},
    "priority_queue": lambda kind, position, text: _adapted(kind, position, text),
}


def _adapted(kind: Any, position: tuple[int, ...], text: str) -> _Found | None:
    place = _path(kind, ("c",))
    inner = _defined(_resolved(place[0])) if place else None
    return _container(inner, _moved(position, place[1]), text) if place and inner is not None else None


def _path(kind: Any, names: Sequence[str]) -> tuple[Any, int] | None:
    """Type and offset of a member of a member, looked for in base classes too."""
    offset = 0
    for name in names:
        kind = _defined(_resolved(kind))
        member = _member(kind, name) if kind is not None else None
        if member is None:
            return None
        kind, offset = member[0], offset + member[1]
    return kind, offset


def _member(kind: Any, wanted: str) -> tuple[Any, int] | None:
    for name, member, offset in _members(kind):
        if name == wanted:
            return member, offset
    return None


def _members(kind: Any, base: int = 0, depth: int = 0) -> Iterator[tuple[str, Any, int]]:
    """Name, type and offset of the members, those of unnamed ones and of base classes after the others."""
    inner = []
    for child in kind.iter_children():
        if child.tag not in ("DW_TAG_member", "DW_TAG_inheritance"):
            continue
        if "DW_AT_external" in child.attributes or "DW_AT_bit_size" in child.attributes:
            continue  # static, or no whole bytes
        place = child.attributes.get("DW_AT_data_member_location")
        if place is not None and not isinstance(place.value, int):
            continue  # a virtual base
        offset = base + (place.value if place is not None else 0)
        name = _text(child, "DW_AT_name")
        if name and child.tag == "DW_TAG_member":
            yield name, _attribute_type(child), offset
        else:
            inner.append((child, offset))
    for child, offset in inner:
        target = _defined(_resolved(_attribute_type(child)))
        if target is not None and target.tag in _STRUCTS and depth < _MOST_DEPTH:
            yield from _members(target, offset, depth + 1)


def _through_pointers(kind: Any, position: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """Follow pointers: what they point to, and where that is."""
    kind = _resolved(kind)
    while kind is not None and kind.tag in _POINTERS and len(position) < MOST_STEPS:
        position = (*position, 0)
        kind = _resolved(_attribute_type(kind))
    return kind, position


def _moved(position: tuple[int, ...], offset: int) -> tuple[int, ...]:
    return (*position[:-1], position[-1] + offset)


def _term(position: tuple[int, ...], width: int, signed: bool, factor: int = 1) -> Term:
    return Term(factor, position, width, signed)


def _number(kind: Any, text: str) -> _Found:
    # A reference to a number has to be followed.
    target, position = _through_pointers(kind, ())
    width, signed = _shape(target)
    return _Found((_term(position, width, signed),), 0, 1, text)


def _named_as(name: str, wanted: str) -> bool:
    """Whether `m_size_`, `nodeCount`, `num_nodes` ... is called as `wanted` says."""
    plain = name.strip("_").lower()
    if plain in (wanted, f"m_{wanted}", f"{wanted}_"):
        return True
    if wanted == "n":
        return plain == "num"
    words = {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
    if words & _NO_SIZE:
        return False
    return wanted in words or (wanted == "count" and bool(words & _SIZE_WORDS - set(_SIZE_NAMES)))


def _is_of_library(kind: Any) -> bool:
    parent = kind.get_parent()
    while parent is not None and parent.tag == "DW_TAG_namespace":
        if _text(parent, "DW_AT_name") == "std":
            return True
        parent = parent.get_parent()
    return False


def _is_number(kind: Any) -> bool:
    kind = _resolved(kind)
    if kind is None or kind.tag != "DW_TAG_base_type":
        return False
    # DWARF: signed, unsigned; 1 address, 2 boolean, 4 float, 6 and 8 characters are no sizes.
    return _value(kind, "DW_AT_encoding") in (5, 7)


def _shape(kind: Any) -> tuple[int, bool]:
    kind = _resolved(kind)
    if kind is None:
        return 8, False
    return min(_value(kind, "DW_AT_byte_size") or 8, 8), _value(kind, "DW_AT_encoding") == 5


def _pointed_size(kind: Any) -> int:
    kind = _resolved(kind)
    target = _defined(_resolved(_attribute_type(kind))) if kind is not None else None
    if target is None:
        return 0
    return 8 if target.tag in _POINTERS else _value(target, "DW_AT_byte_size")


def _passed(kind: Any) -> tuple[str, int]:
    """How a value is passed: as `integer`, `float`, `memory` or `reference`, and in how many words."""
    if kind is None:
        return "integer", 1
    if kind.tag in _STRUCTS:
        kind = _defined(kind)
        size = _value(kind, "DW_AT_byte_size")
        if _value(kind, "DW_AT_calling_convention") == _BY_REFERENCE or not _is_trivial(kind):
            return "reference", 1
        words = -(-size // 8)
        if size > 16:
            return "memory", words
        return ("float" if _all_float(kind) else "integer"), words
    if kind.tag == "DW_TAG_base_type" and _value(kind, "DW_AT_encoding") in (3, 4):
        return ("memory", 2) if _value(kind, "DW_AT_byte_size") > 8 else ("float", 1)
    if kind.tag == "DW_TAG_base_type" and _value(kind, "DW_AT_byte_size") > 8:
        return "integer", 2
    if kind.tag == "DW_TAG_ptr_to_member_type":
        return "integer", 2
    return "integer", 1


def _is_trivial(kind: Any, depth: int = 0) -> bool:
    """Whether values are copied as they are: without a destructor, copy constructor or virtual function."""
    name = _text(kind, "DW_AT_name").partition("<")[0]
    for child in kind.iter_children():
        if child.tag == "DW_TAG_subprogram":
            if "DW_AT_virtuality" in child.attributes:
                return False
            method = _text(child, "DW_AT_name")
            written = "DW_AT_defaulted" not in child.attributes and "DW_AT_deleted" not in child.attributes
            if method == f"~{name}" and written and "DW_AT_artificial" not in child.attributes:
                return False
            if (
                method == name
                and written
                and "DW_AT_artificial" not in child.attributes
                and _copies(child, kind)
            ):
                return False
        elif child.tag in ("DW_TAG_member", "DW_TAG_inheritance") and depth < _MOST_DEPTH:
            inner = _defined(_resolved(_attribute_type(child)))
            static = "DW_AT_external" in child.attributes
            if (
                inner is not None
                and inner.tag in _STRUCTS
                and not static
                and not _is_trivial(inner, depth + 1)
            ):
                return False
    return True


def _copies(constructor: Any, kind: Any) -> bool:
    """Whether a constructor takes one reference to an object of its own kind."""
    given = [
        child
        for child in constructor.iter_children()
        if child.tag == "DW_TAG_formal_parameter" and "DW_AT_artificial" not in child.attributes
    ]
    if len(given) != 1:
        return False
    reference = _resolved(_attribute_type(given[0]))
    if reference is None or reference.tag not in _POINTERS[1:]:
        return False
    target = _resolved(_attribute_type(reference))
    return target is not None and target.offset == kind.offset


def _all_float(kind: Any) -> bool:
    members = [_resolved(member) for _, member, _ in _members(kind)]
    return bool(members) and all(member is not None and _passed(member)[0] == "float" for member in members)


def _register_at(parameter: Any, function: Any) -> int | None:
    """The register that the debug information says a parameter is in at the first instruction."""
    place = parameter.attributes.get("DW_AT_location")
    start = function.attributes.get("DW_AT_low_pc")
    if place is None or start is None:
        return None
    if isinstance(place.value, list):
        return _register(place.value)
    lists = parameter.dwarfinfo.location_lists()
    if lists is None:
        return None
    base = parameter.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
    moved = base.value if base is not None else 0
    for one in lists.get_location_list_at_offset(place.value, die=parameter):
        if hasattr(one, "base_address"):
            moved = one.base_address
        elif hasattr(one, "begin_offset"):
            begin = one.begin_offset + (0 if getattr(one, "is_absolute", False) else moved)
            if begin == start.value:
                return _register(one.loc_expr)
    return None


def _register(expression: Sequence[int]) -> int | None:
    # DW_OP_reg0 ... DW_OP_reg31, alone.
    if len(expression) != 1 or not 0x50 <= expression[0] <= 0x6F:
        return None
    return _DWARF_REGISTERS.get(expression[0] - 0x50)


def _attribute_type(entry: Any) -> Any:
    """The type of an entry; of a concrete function or parameter that of the abstract one."""
    for _ in range(_MOST_DEPTH):
        if "DW_AT_type" in entry.attributes:
            return entry.get_DIE_from_attribute("DW_AT_type")
        for link in ("DW_AT_abstract_origin", "DW_AT_specification"):
            if link in entry.attributes:
                entry = entry.get_DIE_from_attribute(link)
                break
        else:
            return None
    return None


def _resolved(kind: Any) -> Any:
    """The type behind typedefs and qualifiers; None for void."""
    for _ in range(64):
        if kind is None or kind.tag not in _ALIASES:
            return kind
        kind = _attribute_type(kind)
    return None


def _defined(kind: Any) -> Any:
    """The definition of a structure that is only declared in its unit, looked for in the other ones."""
    if kind is None or kind.tag not in _STRUCTS or "DW_AT_declaration" not in kind.attributes:
        return kind
    if "DW_AT_signature" in kind.attributes:
        return kind.get_DIE_from_attribute("DW_AT_signature")
    return _definitions(kind.dwarfinfo).get(_qualified(kind), kind)


def _definitions(debug: Any) -> dict[str, Any]:
    known: dict[str, Any] | None = getattr(debug, "perun_definitions", None)
    if known is None:
        known = {}
        for unit in debug.iter_CUs():
            _collect(unit.get_top_DIE(), known)
        debug.perun_definitions = known
    return known


def _collect(parent: Any, known: dict[str, Any]) -> None:
    for child in parent.iter_children():
        if child.tag in _STRUCTS and "DW_AT_declaration" not in child.attributes:
            known.setdefault(_qualified(child), child)
        elif child.tag == "DW_TAG_namespace":
            _collect(child, known)


def _qualified(kind: Any) -> str:
    names = [_text(kind, "DW_AT_name")]
    parent = kind.get_parent()
    while parent is not None and parent.tag in ("DW_TAG_namespace", *_STRUCTS):
        names.append(_text(parent, "DW_AT_name"))
        parent = parent.get_parent()
    return "::".join(reversed(names))


def _text(entry: Any, name: str) -> str:
    for _ in range(_MOST_DEPTH):
        if name in entry.attributes:
            return str(entry.attributes[name].value.decode("utf-8", "replace"))
        if "DW_AT_abstract_origin" in entry.attributes:
            entry = entry.get_DIE_from_attribute("DW_AT_abstract_origin")
        elif "DW_AT_specification" in entry.attributes:
            entry = entry.get_DIE_from_attribute("DW_AT_specification")
        else:
            return ""
    return ""


def _value(entry: Any, name: str) -> int:
    attribute = entry.attributes.get(name) if entry is not None else None
    return int(attribute.value) if attribute is not None else 0
