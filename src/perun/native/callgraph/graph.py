"""What a call graph is: functions with their control flow in digests, and the calls between them.

All of it is frozen and pure; where graphs come from is the business of `extract` (machine code) and
`difference` (recorded calls).
"""

from __future__ import annotations

import gc
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, NamedTuple, get_args

# Levels of a graph with circles: longest ways from an entry in the graph of strongly connected components.
#
# Components are found by Tarjan's algorithm (SIAM Journal on Computing 1, 1972), without recursion: call
# graphs are deeper than Python's stack.


def components_from(entry: str, callees: Callable[[str], Iterable[str]]) -> list[list[str]]:
    """The strongly connected components that can be reached from `entry`, callers before their callees."""
    number: dict[str, int] = {entry: 0}
    lowest: dict[str, int] = {entry: 0}
    stack, open_nodes = [entry], {entry}
    walk: list[tuple[str, Iterator[str]]] = [(entry, iter(callees(entry)))]
    found: list[list[str]] = []
    while walk:
        node, rest = walk[-1]
        callee = next(rest, None)
        if callee is None:
            walk.pop()
            if walk:
                parent = walk[-1][0]
                lowest[parent] = min(lowest[parent], lowest[node])
            if lowest[node] == number[node]:
                component = [stack.pop()]
                while component[-1] != node:
                    component.append(stack.pop())
                open_nodes.difference_update(component)
                found.append(component[::-1])
        elif callee not in number:
            number[callee] = lowest[callee] = len(number)
            stack.append(callee)
            open_nodes.add(callee)
            walk.append((callee, iter(callees(callee))))
        elif callee in open_nodes:
            lowest[node] = min(lowest[node], number[callee])
    return found[::-1]


def levels_from(entry: str, callees: Callable[[str], Iterable[str]]) -> dict[str, int]:
    """The level of each node that can be reached: the longest way from `entry` to its component."""
    components = components_from(entry, callees)
    component_of = {node: place for place, nodes in enumerate(components) for node in nodes}
    level = [0] * len(components)
    for place, nodes in enumerate(components):
        for node in nodes:
            for callee in callees(node):
                other = component_of[callee]
                if other != place:
                    level[other] = max(level[other], level[place] + 1)
    return {node: level[place] for node, place in component_of.items()}


Kind = Literal["direct", "tail", "plt", "indirect", "dynamic"]
"""How a call was found: by a call instruction, a jump that leaves the function, a call through the linkage
table, a call through a pointer, or because it was recorded."""
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
UNKNOWN: Final = ""
"""The callee of an indirect call: whatever function the pointer points to."""
MODES: Final = ("soft", "semistrict", "strict", "color")
"""The ways to compare the control-flow graphs of two functions, as :class:`Fingerprints` has them."""

_WAY: Final = re.compile(r"\+|\d+")


class Fingerprints(NamedTuple):
    """Digests of a control-flow graph, one for each way to compare: equal digests mean equal functions.

    All of them contain the basic blocks with their edges, in an order that does not depend on addresses; none
    contains names of functions, for which there is :attr:`Function.sites`.

    :ivar soft: the number of instructions of each block. :ivar semistrict: their opcodes.
    :ivar strict: opcodes and operands, but not the targets of jumps and calls. Of addresses of data it
        has the names of the data, or what is there.
    :ivar color: as strict, with registers up to a renaming, and independent instructions in any order.
    """

    soft: str = ""
    semistrict: str = ""
    strict: str = ""
    color: str = ""


class Block(NamedTuple):
    """A basic block: how many instructions it has, and the positions of the blocks that may come next."""

    instructions: int
    successors: tuple[int, ...]


class GraphFunction(NamedTuple):
    """One function of a graph.

    :ivar name: the key in the graph, which no other function has: the uid, after its source file where
        several have the same uid (`list.c:compare`).
    :ivar uid: its name in profiles of the trace collector.
    :ivar symbol: its name for the linker; empty where the program is stripped.
    :ivar address: where it begins in the program, wherever that is loaded; 0 where unknown.
    :ivar size: bytes, those of its pieces elsewhere (`.cold`) included. :ivar instructions: their number.
    :ivar fingerprints: empty ones where the machine code is not known.
    :ivar sites: the callees of its calls, one for each place that calls, in the order of its blocks;
        :data:`UNKNOWN` for a call through a pointer.
    :ivar flow: the control-flow graph in the form that :attr:`blocks` reads.
    :ivar own: whether it is of the program's own source, not of the compiler or the C++ library.
    :ivar address_taken: whether the program has its address somewhere, so that a pointer may point to it.
    """

    name: str
    uid: str = ""
    symbol: str = ""
    address: int = 0
    size: int = 0
    instructions: int = 0
    fingerprints: Fingerprints = Fingerprints()
    sites: tuple[str, ...] = ()
    flow: str = ""
    own: bool = True
    address_taken: bool = False

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The basic blocks, that of the entry first; none where the machine code is not known."""
        return tuple(_blocks(self.flow)) if self.flow else ()


class CallEdge(NamedTuple):
    """One function may call another. Of a call out of the program, `callee` is no function of the graph."""

    caller: str
    callee: str
    kind: Kind


@dataclass(frozen=True)
class CallGraph:
    """The functions of a program and the calls between them.

    :ivar build_id: of the program, in hexadecimal; empty where it has none. :ivar entry: the name of the
        function that everything begins with, `main` of a program; empty where there is none.
    :ivar functions: by name, in the order of their addresses. :ivar calls: each at most once.
    :ivar source: what it was made from: `static` (machine code), `dynamic` (recorded calls) or `mixed`.
    """

    build_id: str
    entry: str
    functions: Mapping[str, GraphFunction]
    calls: tuple[CallEdge, ...]
    source: str = "static"

    def callers(self, name: str) -> tuple[str, ...]:
        """The functions that call `name`, which may be one of another file, in the order of the calls."""
        return self._callers.get(name, ())

    def callees(self, name: str) -> tuple[str, ...]:
        """The functions of the graph that `name` calls, in the order of the calls."""
        return self._callees.get(name, ())

    def reachable(self) -> frozenset[str]:
        """The functions that calls lead to from the entry, itself included; none without an entry."""
        return frozenset(self.levels())

    def levels(self) -> Mapping[str, int]:
        """The level of each reachable function: the longest way to it from the entry, which has level 0.

        Functions that call each other in a circle have one level: ways are counted in the graph of strongly
        connected components. Calls through pointers lead nowhere, see :meth:`with_pointers`.
        """
        return self._levels

    def with_pointers(self) -> CallGraph:
        """The graph where each call through a pointer may reach every function whose address is taken."""
        callers = dict.fromkeys(call.caller for call in self.calls if call.callee == UNKNOWN)
        taken = [one.name for one in self.functions.values() if one.address_taken]
        more = (CallEdge(caller, callee, "indirect") for caller in callers for callee in taken)
        return replace(self, calls=tuple(dict.fromkeys([*self.calls, *more])))

    @cached_property
    def _callers(self) -> dict[str, tuple[str, ...]]:
        return _grouped((call.callee, call.caller) for call in self.calls if call.callee != UNKNOWN)

    @cached_property
    def _callees(self) -> dict[str, tuple[str, ...]]:
        known = self.functions
        return _grouped((call.caller, call.callee) for call in self.calls if call.callee in known)

    @cached_property
    def _levels(self) -> Mapping[str, int]:
        return levels_from(self.entry, self.callees) if self.entry in self.functions else {}


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for key, value in pairs:
        found.setdefault(key, {})[value] = None
    return {key: tuple(values) for key, values in found.items()}


def _blocks(flow: str) -> Iterator[Block]:
    seen = 0
    for text in flow.split(";"):
        instructions, _, ways = text.partition(">")
        after: list[int] = []
        for way in _WAY.findall(ways):
            seen += way == "+"
            after.append(seen if way == "+" else int(way))
        yield Block(int(instructions), tuple(after))


# Leaving out the search for cycles of objects while many are made that have none.


@contextmanager
def no_search_for_cycles() -> Iterator[None]:
    """Within it Python frees objects by their counts of references only.

    Otherwise it looks through all objects of a call graph again and again while more are made.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()  # what was made is old then, so that the next search does not begin with all of it
            gc.unfreeze()
            gc.enable()


# The names under which call graphs are kept as statistics of a version (`perun stats`).

_UNSAFE: Final = re.compile(r"[^\w.+-]+")
_MAX_NAME: Final = 60


def graph_name(collector: str, program: str) -> str:
    """The name of the static call graph of a program, e.g. `cg--trace-sqlite3`.

    :param program: its path.
    """
    return "cg--" + file_name(f"{collector}-{os.path.basename(program)}")


def file_name(text: str) -> str:
    """A file name for a text, another one for each."""
    short = _UNSAFE.sub("_", text)
    if short == text and len(short) <= _MAX_NAME:
        return short
    return f"{short[:_MAX_NAME]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
