"""The size of the structure that a function works on, read when the function is entered.

A size is an expression of the user, or the one that the types of the parameters suggest: a number called
`size` or `count`, or a container of the C++ library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from perun.core.errors import UsageError
from perun.native.binary import Binary, Function
from perun.native.dwarf import (
    MAX_DEPTH,
    POINTERS,
    STRUCTS,
    defined,
    integer_shape,
    is_number,
    is_of_library,
    member,
    members,
    name_of,
    pointed_size,
    resolved,
    type_of,
)
from perun.native.function_names import is_rust
from perun.native.parameters import REGISTERS, FunctionParameter, formal_parameters, parameters_of
from perun.plugin.params import nearest

# Formulas of sizes: sums of numbers that are read by following pointers from a parameter.

Path = tuple[int, ...]
"""Offsets in bytes: read a pointer at each but the last one, from the parameter on. The last one is where a
value lies. Empty for the parameter itself.
"""


class Term(NamedTuple):
    """One number of a sum.

    :param factor: what the number is multiplied with. :param offsets: where it lies.
    :param width: its bytes. :param signed: whether it is signed.
    """

    factor: int
    offsets: Path
    width: int
    signed: bool


class Formula(NamedTuple):
    """A size: `(sum of the terms + constant) / divisor`; `text` is its expression for the user."""

    terms: tuple[Term, ...]
    text: str
    constant: int = 0
    divisor: int = 1


def moved(path: Path, offset: int) -> Path:
    """The path to what lies `offset` bytes behind the end of `path`."""
    return (*path[:-1], path[-1] + offset)


def integer(kind: Any, path: Path, text: str) -> Formula:
    """The formula of one whole number of the type `kind` at the end of `path`."""
    return Formula((Term(1, path, *integer_shape(kind)),), text)


# The number of elements of the containers of libstdc++, as formulas of their private members.

_Finder = Callable[[Any, Path, str], Formula | None]
_DEQUE_BYTES: Final = 512
"""Size of a block of a deque, unless a single element is larger."""


def container_size(kind: Any, path: Path, text: str) -> Formula | None:
    """The number of elements of the container `kind` at the end of `path`; None for unknown types."""
    name = name_of(kind).partition("<")[0]
    finder = _CONTAINERS.get(name)
    if finder is None or not is_of_library(kind):
        return None
    return finder(kind, path, text)


def _counter(*names: str) -> _Finder:
    """For a container that keeps its number of elements in the member that `names` lead to."""

    def find(kind: Any, path: Path, text: str) -> Formula | None:
        found = member(kind, names)
        return integer(found[0], moved(path, found[1]), f"{text}.size()") if found else None

    return find


def _vector(kind: Any, path: Path, text: str) -> Formula | None:
    start = member(kind, ("_M_impl", "_M_start"))
    finish = member(kind, ("_M_impl", "_M_finish"))
    if start is None or finish is None:
        return None
    first = resolved(start[0])
    if first is not None and first.tag in STRUCTS:
        # vector<bool>: both ends are a pointer to a word and the number of a bit in it.
        terms = tuple(
            term
            for offset, sign in ((finish[1], 1), (start[1], -1))
            for term in (
                Term(8 * sign, moved(path, offset), 8, True),
                Term(sign, moved(path, offset + 8), 4, False),
            )
        )
        return Formula(terms, f"{text}.size()")
    size = pointed_size(start[0])
    if not size:
        return None
    terms = (Term(1, moved(path, finish[1]), 8, True), Term(-1, moved(path, start[1]), 8, True))
    return Formula(terms, f"{text}.size()", divisor=size)


def _deque(kind: Any, path: Path, text: str) -> Formula | None:
    places = {
        (end, part): member(kind, ("_M_impl", end, part))
        for end in ("_M_start", "_M_finish")
        for part in ("_M_cur", "_M_first", "_M_last", "_M_node")
    }
    first = places["_M_start", "_M_cur"]
    size = pointed_size(first[0]) if first else 0
    if not size or None in places.values():
        return None
    block = max(_DEQUE_BYTES // size, 1) * size

    def term(factor: int, end: str, part: str) -> Term:
        place = places[end, part]
        assert place is not None
        return Term(factor, moved(path, place[1]), 8, True)

    # In bytes: (blocks between both ends - 1) * block, and what is used of the first and of the last block.
    # Blocks are counted by pointers to them, of 8 bytes each: everything is multiplied by 8 to stay whole.
    terms = (
        term(block, "_M_finish", "_M_node"),
        term(-block, "_M_start", "_M_node"),
        term(8, "_M_finish", "_M_cur"),
        term(-8, "_M_finish", "_M_first"),
        term(8, "_M_start", "_M_last"),
        term(-8, "_M_start", "_M_cur"),
    )
    return Formula(terms, f"{text}.size()", constant=-8 * block, divisor=8 * size)


def _adapter(kind: Any, path: Path, text: str) -> Formula | None:
    """For a stack or queue, whose elements are in another container."""
    place = member(kind, ("c",))
    inner = defined(resolved(place[0])) if place else None
    return container_size(inner, moved(path, place[1]), text) if place and inner is not None else None


_TREE: Final = _counter("_M_t", "_M_impl", "_M_node_count")
_HASH: Final = _counter("_M_h", "_M_element_count")
_CONTAINERS: Final[dict[str, _Finder]] = {
    "vector": _vector,
    "deque": _deque,
    "basic_string": _counter("_M_string_length"),
    "basic_string_view": _counter("_M_len"),
    "list": _counter("_M_impl", "_M_node", "_M_size"),
    **dict.fromkeys(("map", "set", "multimap", "multiset"), _TREE),
    **dict.fromkeys(("unordered_map", "unordered_set", "unordered_multimap", "unordered_multiset"), _HASH),
    **dict.fromkeys(("stack", "queue", "priority_queue"), _adapter),
}


MAX_STEPS: Final = 6
"""The most offsets of a term; the probes of the kernel follow no more."""
_SIZE_NAMES: Final = ("size", "length", "len", "count", "n", "used")
"""Names of members and parameters that hold a size, the likeliest first."""
_NUMBER_NAMES: Final = ("count", "n", "nmemb")
"""Names of a parameter beside which `size` is the size of one element, as `qsort` has them."""
_SIZE_WORDS: Final = {"size", "length", "len", "count", "used", "num", "nitems", "elements", "nelems", "cnt"}
_NO_SIZE: Final = {"max", "capacity", "cap", "alloc", "allocated", "elem", "ref", "bytes", "limit"}
"""Words that say of such a name that it is the size of something else."""
_PARAMETER: Final = re.compile(r"\$(\d+)$")
_STEP: Final = re.compile(r"\s*(->|\.)?\s*([A-Za-z_]\w*)")


class Size(NamedTuple):
    """Where a size is: `(sum of the terms + constant) / divisor`.

    :param register: index in :data:`perun.native.parameters.REGISTERS` of the parameter with which
        all terms begin; -1 where it is on the stack.
    :param stack: bytes above the return address, where it is on the stack.
    :param terms: at most six, as many as a deque has; the probes of the kernel read no more of them.
    :param text: the expression, for the user.
    """

    register: int
    stack: int
    terms: tuple[Term, ...]
    constant: int = 0
    divisor: int = 1
    text: str = ""


def find_size(binary: Binary, function: Function) -> Size | None:
    """The size on which `function` most likely depends; None where its parameters show none."""
    if not binary.is_x86_64 or function.symbol == "main" or _has_own_convention(binary, function):
        return None
    return binary.described(function, partial(_likeliest, function), None)


def _likeliest(function: Function, entry: Any) -> Size | None:
    parameters = [one for one in parameters_of(entry, function.clone) if one.place is not None]
    for parameter in parameters:
        found = _in_parameter(parameter)
        if found is not None:
            return _size(parameter, found)
    numbers = [one for one in parameters if is_number(one.type)]
    many = any(one.name in _NUMBER_NAMES for one in numbers)
    for name in (*_NUMBER_NAMES, *_SIZE_NAMES) if many else _SIZE_NAMES:
        for parameter in numbers:
            if _means(parameter.name, name):
                return _size(parameter, integer(parameter.type, (), parameter.name))
    return None


def _has_own_convention(binary: Binary, function: Function) -> bool:
    """Whether a compiler passes the parameters of a function otherwise than those of C do."""
    return binary.is_go or is_rust(function.symbol)


def size_of(binary: Binary, function: Function, expression: str) -> Size:
    """The size that `expression` names, e.g. `list->size`, `tree.root->count`, `n`, or `$2` for the second
    parameter that is a whole number or a pointer.

    :raises UsageError: where there is no such parameter or member, or it is no size.
    """
    where = f"the size {expression!r} of {function.name}"
    if _has_own_convention(binary, function):
        raise UsageError(
            f"{where} cannot be read: compilers of Go and Rust pass parameters in ways of their own",
            "leave out --size: the sizes are the numbers of the calls then",
        )
    found = binary.described(function, partial(_named, function, expression, where), None)
    if found is not None:
        return found
    numbered = _PARAMETER.match(expression.strip())
    if numbered:
        number = int(numbered[1]) - 1
        if not 0 <= number < len(REGISTERS):
            last = len(REGISTERS)
            raise UsageError(f"{where} is not one of the parameters $1 to ${last}", "name one of these")
        return Size(number, 0, (Term(1, (), 8, True),), text=expression)
    raise UsageError(
        f"{where} needs debug information, which the program does not have for this function",
        "compile with -g, or name the parameter by its number, e.g. $1",
    )


def _named(function: Function, expression: str, where: str, entry: Any) -> Size | None:
    """The size by the debug information; None for a parameter that is known by its number only."""
    numbered = _PARAMETER.match(expression.strip())
    if numbered and not 1 <= int(numbered[1]) <= len(formal_parameters(entry)):
        return None
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
        raise UsageError(
            f"{where}: the compiler keeps the parameter in no register at the start of the function",
            "name another parameter, or compile with -O0",
        )
    return _size(parameter, _follow(parameter, steps, where))._replace(text=expression.strip())


def _parse(expression: str, where: str) -> tuple[str, list[str]]:
    """The name of the parameter, and those of the members that lead from it to the size."""
    text = expression.strip()
    if text.startswith("$"):
        text = "p" + text[1:]
    names: list[str] = []
    position = 0
    while position < len(text):
        step = _STEP.match(text, position)
        if not step or bool(step[1]) != bool(names):
            raise UsageError(
                f"cannot parse {where}", "write it as in C, e.g. list->size, tree.root->count or n"
            )
        names.append(step[2])
        position = step.end()
    if not names:
        raise UsageError(f"{where} is empty", "write it as in C, e.g. list->size")
    return names[0], names[1:]


def _size(parameter: FunctionParameter, found: Formula) -> Size:
    assert parameter.place is not None
    return Size(*parameter.place, found.terms, found.constant, found.divisor, found.text)


def _follow(parameter: FunctionParameter, steps: Sequence[str], where: str) -> Formula:
    """The size that is reached from a parameter through its members; `.` follows pointers as `->` does."""
    kind = resolved(parameter.type)
    path: Path = (0,) if parameter.indirect else ()
    for step in steps:
        kind, path = _through_pointers(kind, path)
        if kind is None or kind.tag not in STRUCTS:
            raise UsageError(
                f"{where}: {step!r} is not a member, because what stands before it is not a structure",
                "correct the expression",
            )
        kind = defined(kind)
        found = member(kind, (step,))
        if found is None:
            known = [name for name, _, _ in members(kind)]
            raise UsageError(f"{where}: there is no member {step!r}", nearest(step, known))
        if not path:
            raise UsageError(
                f"{where}: Perun cannot read a structure that is passed in registers",
                "name another parameter, or pass the structure by pointer",
            )
        path = moved(path, found[1])
        kind = resolved(found[0])
    text = ".".join([parameter.name, *steps])
    if is_number(kind):
        return integer(kind, path, text)
    target, path = _through_pointers(kind, path)
    size = _in_structure(target, path, text, 0) if path else None
    if size is None:
        raise UsageError(
            f"{where} is neither a whole number nor a container of the C++ library",
            "name a member that is a whole number, e.g. list->size",
        )
    return size


def _in_parameter(parameter: FunctionParameter) -> Formula | None:
    """The size of the structure to which a parameter points."""
    kind = resolved(parameter.type)
    if parameter.indirect:
        return _in_structure(kind, (0,), parameter.name, 0)
    kind, path = _through_pointers(kind, ())
    return _in_structure(kind, path, parameter.name, 0) if path else None


def _in_structure(kind: Any, path: Path, text: str, depth: int) -> Formula | None:
    """The size that the structure `kind` at the end of `path` has as a container, or in a member."""
    kind = defined(resolved(kind))
    if kind is None or kind.tag not in STRUCTS or depth > MAX_DEPTH:
        return None
    container = container_size(kind, path, text)
    if container is not None or is_of_library(kind):
        return container
    found = list(members(kind))
    for wanted in _SIZE_NAMES:
        for name, inner, offset in found:
            if is_number(inner) and _means(name, wanted):
                return integer(inner, moved(path, offset), f"{text}->{name}")
    for name, inner, offset in found:
        target = defined(resolved(inner))
        if target is not None and target.tag in STRUCTS and is_of_library(target):
            container = container_size(target, moved(path, offset), f"{text}->{name}")
            if container is not None:
                return container
    return None


def _through_pointers(kind: Any, path: Path) -> tuple[Any, Path]:
    """Follow pointers: what they point to, and the path to it."""
    kind = resolved(kind)
    while kind is not None and kind.tag in POINTERS and len(path) < MAX_STEPS:
        path = (*path, 0)
        kind = resolved(type_of(kind))
    return kind, path


def _means(name: str, wanted: str) -> bool:
    """Whether a name such as `m_size_`, `nodeCount` or `num_nodes` is one of `wanted`."""
    plain = name.strip("_").lower()
    if plain in (wanted, f"m_{wanted}", f"{wanted}_"):
        return True
    if wanted == "n":
        return plain == "num"
    words = {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
    if words & _NO_SIZE:
        return False
    return wanted in words or (wanted == "count" and bool(words & _SIZE_WORDS - set(_SIZE_NAMES)))
