"""The number of elements of the containers of libstdc++, as formulas of their private members."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from perun.collect._calls.dwarf import (
    STRUCTS,
    defined,
    is_of_library,
    member,
    name_of,
    pointed_size,
    resolved,
)
from perun.collect._calls.formulas import Formula, Path, Term, integer, moved

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
