"""Reads the files that callgrind writes, line by line, in memory that grows with the graph and not the file.

The format is that of the manual of Valgrind, chapter "Callgrind Format Specification", version 1: lines
`key: value` of the header, `fn=` and other names, each `(number) name` at first and `(number)` from then
on, and lines of costs, which begin with a position for each word of `positions:`: that of the line of the
source may be told by its distance from the one before. A file may have several parts, each with a header.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO, Final, NoReturn

from perun.core.errors import ProfileError
from perun.native.costs import CallArc, CostGraph, FunctionFrame, Namer, RecordedFunction, components

Damaged = Callable[[str], ProfileError]
"""Makes the error that names the file, of a reason."""

EVENT: Final = b"Ir"
"""What callgrind calls instructions that were executed."""
MAX_NODES: Final = 1 << 20
MAX_CALLS: Final = 1 << 22
MAX_PLACES: Final = 1 << 20
"""Lines of sources, and calls from lines, of which costs are told; further ones are not."""
MAX_NAMES: Final = 1 << 28
"""Bytes of all names together."""
MAX_LINE: Final = 1 << 20
_PIECE: Final = 1 << 20
_LARGEST: Final = 1 << 64
_COMPRESSED: Final = re.compile(rb"\((\d{1,18})\)(?: +(.*))?", re.DOTALL)
_COST: Final = frozenset(b"0123456789+-*")
_FILES: Final = frozenset({b"fl", b"fi", b"fe"})
_JUMPS: Final = frozenset({b"jump", b"jcnd"})


def read(opened: BinaryIO, damaged: Damaged) -> CostGraph:
    """The call graph that the file holds, which may have been cut off: see :attr:`CostGraph.lost`.

    :param damaged: makes the error that is raised where it is no such file, counts no instructions, or is
        larger than the limits of this module.
    """
    reader = _Reader(damaged)
    take = reader.take
    for line in _lines(opened, damaged):
        take(line)
    return reader.graph()


def _lines(opened: BinaryIO, damaged: Damaged) -> Iterator[bytes]:
    """The lines of a file without their ends, and without those that have only blanks."""
    rest = b""
    while piece := opened.read(_PIECE):
        lines = (rest + piece).split(b"\n")
        rest = lines.pop()
        if len(rest) > MAX_LINE:
            raise damaged(f"a line is longer than {MAX_LINE} bytes")
        yield from filter(bytes.strip, lines)
    if rest.strip():
        yield rest


class _Names:
    """Names of one kind, each written once and referred to by its number then.

    :ivar texts: by position; of a call chain the function alone, which stands first.
    :ivar known: from `(number)`, as callgrind writes it, to the position.
    """

    def __init__(self) -> None:
        self.size = 0
        self.known: dict[bytes, int] = {}
        self.texts: list[str] = []
        self._by_text: dict[bytes, int] = {}
        self._by_number: dict[int, tuple[int, int]] = {}  # the position, and the hash of the whole name

    def index(self, value: bytes) -> int | None:
        """The position of a name; None for a number that was never given a name."""
        found = _COMPRESSED.fullmatch(value)
        if found is None:
            return self._index_of(value)
        number, name = int(found[1]), found[2]
        known = self._by_number.get(number)
        # Functions of one name may have different numbers, and each part of a file may tell the names anew.
        if name is not None and (known is None or known[1] != hash(name)):
            known = self._by_number[number] = self._new(name), hash(name)
            self.known[b"(%d)" % number] = known[0]
        return known and known[0]

    def _index_of(self, name: bytes) -> int:
        if name not in self._by_text:
            self._by_text[name] = self._new(name)
            self.size += len(name)
        return self._by_text[name]

    def _new(self, name: bytes) -> int:
        first = name.partition(b"'")[0] or name
        text = first.decode("utf-8", "replace")
        self.size += len(text)
        self.texts.append("" if text == "???" else text)
        return len(self.texts) - 1


class _Reader:
    """Takes the lines one after the other."""

    def __init__(self, damaged: Damaged) -> None:
        self._damaged = damaged
        self._graph = CostGraph()
        self._objects, self._sources, self._functions = _Names(), _Names(), _Names()
        nowhere = self._objects.index(b"???"), self._sources.index(b"???")
        self._object, self._source = nowhere[0] or 0, nowhere[1] or 0
        self._called_object: int | None = None
        self._called_source: int | None = None
        self._nodes: dict[tuple[int, int, int], int] = {}
        self._first: list[int] = []  # of each node the first one of the same function
        self._first_of: dict[RecordedFunction, int] = {}
        self._line, self._line_place = 0, 0
        self._node = self._callee = -1
        self._calls = -1  # number of the calls whose cost comes next, -1 where it is the function's own
        self._edges = 0
        self._positions = 1
        self._event = -1
        self._summary: int | None = None
        self._totals: int | None = None

    def graph(self) -> CostGraph:
        """What the lines were about.

        :raises ProfileError: where they were no recording.
        """
        if self._event < 0:
            raise self._damaged("there is no line 'events:'")
        self._graph.expected = self._summary if self._totals is None else self._totals
        if self._graph.expected is not None and self._graph.total > self._graph.expected:
            raise self._damaged("its parts cost more than their sum")
        return self._graph

    def take(self, line: bytes) -> None:
        """Take in one line that is not empty."""
        if line[0] in _COST:
            self._take_cost(line)
        elif line[0] != 35:  # '#', a comment
            key, _, value = line.partition(b"=")
            if not self._take_position(key, value):
                key, mark, value = line.partition(b":")
                if not mark:
                    self._refuse(line)
                self._take_header(key, value.split())

    def _take_cost(self, line: bytes) -> None:
        words = line.split()
        place = self._positions + self._event
        if self._event < 0 or self._node < 0 or len(words) < self._positions:
            self._refuse(line)
        word = words[place] if place < len(words) else b"0"
        cost = int(word) if len(word) < 19 and word.isdigit() else self._number(word, line)
        word = words[self._line_place]
        if word[0] == 43 and len(word) < 19 and word[1:].isdigit():  # '+', as nearly all are written
            self._line += int(word[1:])
        else:
            self._move(word, line)
        graph, at = self._graph, self._line
        if self._calls < 0:
            graph.own[self._node] += cost
            if cost and at:
                key = self._first[self._node], self._sources.texts[self._source], at
                lines = graph.lines
                if key in lines:
                    lines[key] += cost
                elif len(lines) < MAX_PLACES:
                    lines[key] = cost
            return
        if at:
            self._add_site(cost)
        if self._callee not in graph.calls[self._node]:
            self._edges += 1
            if self._edges > MAX_CALLS:
                self._refuse_size()
        graph.add_call(self._node, self._callee, self._calls, cost)
        self._calls = -1

    def _move(self, word: bytes, line: bytes) -> None:
        """Go to the line of a source that a position names."""
        if word == b"*":
            return
        sign = {43: 1, 45: -1}.get(word[0], 0)
        number = self._number(word[1:] if sign else word, line)
        self._line = max(self._line + sign * number if sign else number, 0)

    def _add_site(self, cost: int) -> None:
        sites = self._graph.sites
        first = self._first
        at = first[self._node], self._sources.texts[self._source], self._line, first[self._callee]
        known = sites.get(at)
        if known is not None:
            sites[at] = CallArc(known.times + self._calls, known.cost + cost)
        elif len(sites) < MAX_PLACES:
            sites[at] = CallArc(self._calls, cost)

    def _take_position(self, key: bytes, value: bytes) -> bool:
        """Take in a line of the body; whether it is one."""
        if key == b"fn":
            self._node = self._node_of(self._object, self._source, value)
        elif key == b"cfn":
            place = self._called_object, self._called_source
            self._callee = self._node_of(
                self._object if place[0] is None else place[0],
                self._source if place[1] is None else place[1],
                value,
            )
            self._called_object = self._called_source = None
        elif key == b"calls":
            words = value.split()
            if not words or self._callee < 0:
                self._refuse(key + b"=" + value)
            self._calls = self._number(words[0], value)
        elif key in _FILES:
            self._source = self._index(self._sources, value)
        elif key in (b"cfi", b"cfl"):
            self._called_source = self._index(self._sources, value)
        elif key == b"ob":
            self._object = self._index(self._objects, value)
        elif key == b"cob":
            self._called_object = self._index(self._objects, value)
        else:
            return key in _JUMPS
        return True

    def _take_header(self, key: bytes, words: list[bytes]) -> None:
        if key == b"events":
            if EVENT not in words:
                raise self._damaged(f"it does not count {EVENT.decode()}, the instructions")
            self._event = words.index(EVENT)
        elif key == b"version" and words != [b"1"]:
            raise self._damaged("its format is not version 1")
        elif key == b"positions":
            self._positions = max(len(words), 1)
            self._line_place = words.index(b"line") if b"line" in words else 0
            self._line = 0
        elif key == b"pid" and words:
            self._graph.pid = self._number(words[0], b" ".join(words))
        elif key == b"cmd":
            self._graph.command = b" ".join(words).decode("utf-8", "replace")
        elif key in (b"summary", b"totals") and 0 <= self._event < len(words):
            value = self._number(words[self._event], b" ".join(words))
            if key == b"totals":
                self._totals = (self._totals or 0) + value
            else:
                self._summary = (self._summary or 0) + value

    def _node_of(self, binary: int, source: int, value: bytes) -> int:
        function = self._index(self._functions, value)
        key = binary, source, function
        node = self._nodes.get(key)
        if node is None:
            if len(self._nodes) >= MAX_NODES:
                self._refuse_size()
            names = self._functions.texts[function], self._sources.texts[source], self._objects.texts[binary]
            node = self._nodes[key] = self._graph.node(RecordedFunction(*names))
            self._first.append(self._first_of.setdefault(self._graph.functions[node], node))
        return node

    def _index(self, names: _Names, value: bytes) -> int:
        index = names.known.get(value)
        if index is not None:
            return index
        index = names.index(value.strip())
        if index is None:
            self._refuse(value)
        if names.size > MAX_NAMES:
            self._refuse_size()
        return index

    def _number(self, word: bytes, line: bytes) -> int:
        if len(word) <= 20 and word.isdigit():
            value = int(word)
        elif len(word) <= 18 and word[:2] == b"0x" and word.isalnum():
            try:
                value = int(word, 16)
            except ValueError:
                self._refuse(line)
        else:
            self._refuse(line)
        if value >= _LARGEST:
            self._refuse(line)
        return value

    def _refuse_size(self) -> NoReturn:
        raise self._damaged("it has more call chains than can be read: make them shorter, e.g. --callers 0")

    def _refuse(self, line: bytes) -> NoReturn:
        shown = "".join(char if char.isprintable() else "?" for char in line[:60].decode("utf-8", "replace"))
        raise self._damaged(f"a line has no meaning: {shown}")


# What functions cost together with all that they call, from call graphs, and how often they were called.


class InclusiveCosts:
    """Sums over the call graphs of several processes.

    :ivar calls: how often each function was called, by itself too.
    """

    def __init__(self) -> None:
        self.calls: Counter[FunctionFrame] = Counter()
        self._exact: Counter[FunctionFrame] = Counter()
        self._in_circles: set[FunctionFrame | int] = set()

    def add(self, graph: CostGraph, name: Namer) -> None:
        """Take in the call graph of one process."""
        # What has no frame of its own is looked at all the same: functions may call each other through it.
        numbers: dict[FunctionFrame | int, int] = {}
        places = [numbers.setdefault(name(node) or node, len(numbers)) for node in range(len(graph.own))]
        functions = list(numbers)
        calls: list[set[int]] = [set() for _ in functions]
        for node, place in enumerate(places):
            cost = graph.own[node]
            for callee, call in graph.calls[node].items():
                other = places[callee]
                self._count(functions[other], call.times)
                if other != place:
                    cost += call.cost
                    calls[place].add(other)
            function = functions[place]
            if isinstance(function, FunctionFrame):
                self._exact[function] += cost
        for circle in components([sorted(one) for one in calls]):
            if len(circle) > 1:
                self._in_circles.update(functions[place] for place in circle)

    def _count(self, function: FunctionFrame | int, times: int) -> None:
        if isinstance(function, FunctionFrame):
            self.calls[function] += times

    def sums(
        self, in_tree: Mapping[FunctionFrame, int], own: Mapping[FunctionFrame, int]
    ) -> dict[FunctionFrame, int]:
        """What each function cost with all that it called.

        Exact, but for functions that call each other in circles: of these, costs of calls in the graph
        count the same instructions more than once, so what the call stacks say is taken.

        :param in_tree: as the stacks say it. :param own: what each cost itself.
        """
        return {
            frame: max(amount, own.get(frame, 0))
            if frame in self._in_circles or frame not in self._exact
            else self._exact[frame]
            for frame, amount in in_tree.items()
        }
