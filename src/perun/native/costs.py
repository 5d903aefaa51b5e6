"""Call stacks with what they cost, as a tree; made of a call graph, or of stacks that were sampled.

A call graph knows how often `f` called `g` and what that cost, but not under which callers of `f`. Where `f`
has several, the cost of its calls is divided among them in proportion to what each made `f` cost, as gprof
does (Graham, Kessler, McKusick: gprof, a call graph execution profiler, 1982). Where the nodes of the graph
are whole call chains there is one caller and nothing to divide.

Functions that call each other in a circle (a strongly connected component of the graph; Tarjan: Depth-first
search and linear graph algorithms, 1972) are taken as one: what enters the circle is divided among them in
proportion to what they cost without each other, and each stands below the shortest way to it.

What each function costs itself is never divided, so the sums over functions are exact: what no stack that is
large enough explains stands below :data:`OTHER_CALLERS`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any, Final, NamedTuple

# The call graph of one process: what each function costs itself, and what its calls of others cost.


class RecordedFunction(NamedTuple):
    """A function as the recording names it.

    :param name: its symbol, not demangled. :param file: source file. :param object: path of its binary.
        Each is empty where it is not known.
    """

    name: str
    file: str = ""
    object: str = ""


class CallArc(NamedTuple):
    """All calls of one function by another one.

    :param times: how many. :param cost: of them, with the calls that they make in turn.
    """

    times: int
    cost: int


@dataclass
class CostGraph:
    """Functions and their calls. A node is a function, or one of the call chains that lead to it.

    :ivar functions: of each node. Several nodes of one function differ in the callers.
    :ivar own: of each node what it cost itself.
    :ivar calls: of each node, by the number of the node that it calls.
    :ivar lines: what lines of sources cost: by the first node of the function, the file and the line. Lines
        of another file, or of another function of the same one, are those of what was inlined.
    :ivar sites: the calls that such a line makes, by the first node of the callee.
    :ivar expected: what all nodes cost together, as the recording says it; None where it does not.
    :ivar pid: number of the process. :ivar command: its command line.
    """

    functions: list[RecordedFunction] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    calls: list[dict[int, CallArc]] = field(default_factory=list)
    lines: dict[tuple[int, str, int], int] = field(default_factory=dict)
    sites: dict[tuple[int, str, int, int], CallArc] = field(default_factory=dict)
    expected: int | None = None
    pid: int = 0
    command: str = ""

    @property
    def total(self) -> int:
        """What all nodes cost together."""
        return sum(self.own)

    @property
    def lost(self) -> int:
        """How much of the cost that the recording speaks of is missing in it; 0 for a whole recording."""
        return max(0, (self.expected or 0) - self.total)

    def node(self, function: RecordedFunction) -> int:
        """A new node; its number."""
        self.functions.append(function)
        self.own.append(0)
        self.calls.append({})
        return len(self.own) - 1

    def add_call(self, caller: int, callee: int, times: int, cost: int) -> None:
        """Add calls of one node by another."""
        calls = self.calls[caller]
        known = calls.get(callee)
        calls[callee] = (
            CallArc(times, cost) if known is None else CallArc(known.times + times, known.cost + cost)
        )


ROOT: Final = -1
"""The parent of the outermost frames."""
SMALLEST: Final = 1e-5
"""Share of the whole cost below which a stack is not followed further."""
MAX_DEPTH: Final = 1000
_MOST_STACKS: Final = 1 << 15
"""Stacks that are followed, the largest first, where there are not more functions: far more than are kept."""


class FunctionFrame(NamedTuple):
    """A function as profiles name it; a source that is not known is empty."""

    function: str
    source: str = ""


OTHER_CALLERS: Final = FunctionFrame("(other callers)")
"""Stands for the stacks that each cost too little to be told apart."""
Namer = Callable[[int], FunctionFrame | None]
"""From the number of a node to its frame; None where the node counts for its caller."""


class CostTree:
    """Frames below frames, each with what it cost itself under these callers.

    :ivar frames: the different frames. :ivar parents: of each node, :data:`ROOT` of the outermost ones.
    :ivar places: of each node the position of its frame. :ivar amounts: of each node itself.
    """

    def __init__(self) -> None:
        self.frames: list[FunctionFrame] = []
        self.parents: list[int] = []
        self.places: list[int] = []
        self.amounts: list[int] = []
        self._numbers: dict[FunctionFrame, int] = {}
        self._children: dict[tuple[int, int], int] = {}

    @property
    def total(self) -> int:
        """What all nodes cost together."""
        return sum(self.amounts)

    def below(self, parent: int, frame: FunctionFrame) -> int:
        """The node of the frame within the parent; the parent itself where its frame is the same."""
        place = self._numbers.setdefault(frame, len(self.frames))
        if place == len(self.frames):
            self.frames.append(frame)
        if parent != ROOT and self.places[parent] == place:
            return parent
        node = self._children.setdefault((parent, place), len(self.parents))
        if node == len(self.parents):
            self.parents.append(parent)
            self.places.append(place)
            self.amounts.append(0)
        return node

    def stack(self, node: int) -> list[FunctionFrame]:
        """The frames of a node and of all that it lies in, the innermost first."""
        frames = []
        while node != ROOT:
            frames.append(self.frames[self.places[node]])
            node = self.parents[node]
        return frames

    def exclusive(self) -> dict[FunctionFrame, int]:
        """What each function cost itself."""
        sums = [0] * len(self.frames)
        for place, amount in zip(self.places, self.amounts, strict=True):
            sums[place] += amount
        return dict(zip(self.frames, sums, strict=True))

    def inclusive(self) -> dict[FunctionFrame, int]:
        """What each function cost with all that it called, each instruction once."""
        whole = self.amounts[:]
        for node in range(len(whole) - 1, -1, -1):  # a node comes after its parent
            if self.parents[node] != ROOT:
                whole[self.parents[node]] += whole[node]
        sums = [0] * len(self.frames)
        running: list[int] = []  # the nodes that the current one lies in
        depth: list[int] = [0] * len(self.frames)
        for node in self._depth_first():
            while running and running[-1] != self.parents[node]:
                depth[self.places[running.pop()]] -= 1
            place = self.places[node]
            if not depth[place]:
                sums[place] += whole[node]
            depth[place] += 1
            running.append(node)
        return dict(zip(self.frames, sums, strict=True))

    def _depth_first(self) -> Iterable[int]:
        children: list[list[int]] = [[] for _ in self.parents]
        outermost: list[int] = []
        for node, parent in enumerate(self.parents):
            (outermost if parent == ROOT else children[parent]).append(node)
        waiting = outermost[::-1]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(children[node])


def grow(tree: CostTree, graph: CostGraph, name: Namer, base: int = ROOT) -> None:
    """Add the stacks of a call graph to the tree, within the node `base`.

    :param name: gives the frame of each node of the graph.
    """
    _Grower(tree, graph, name, base).grow()


@dataclass
class _Circle:
    """A strongly connected component.

    :ivar nodes: its nodes. :ivar local: of each, what it costs without the calls within the component.
    :ivar entering: what the calls from other components cost.
    """

    nodes: Sequence[int]
    local: Sequence[int]
    entering: int = 0


class _Grower:
    def __init__(self, tree: CostTree, graph: CostGraph, name: Namer, base: int) -> None:
        self._tree = tree
        self._graph = graph
        self._name = name
        self._base = base
        self._least = max(1.0, graph.total * SMALLEST)
        self._found: list[dict[int, float]] = [{} for _ in graph.own]  # of each node, by node of the tree

    def grow(self) -> None:
        graph = self._graph
        circles = components([calls.keys() for calls in graph.calls])
        self._circle_of = [0] * len(graph.own)
        for number, nodes in enumerate(circles):
            for node in nodes:
                self._circle_of[node] = number
        self._circles = [_Circle(nodes, [self._local(node) for node in nodes]) for nodes in circles]
        for node, calls in enumerate(graph.calls):
            for callee, call in calls.items():
                if self._circle_of[callee] != self._circle_of[node]:
                    self._circles[self._circle_of[callee]].entering += call.cost
        # Components come callees first, so the outermost functions are at the end.
        waiting = [
            (circle.nodes[0], float(sum(circle.local) - circle.entering), self._base, 0)
            for circle in self._circles
        ]
        largest = [(-one[1], number, *one) for number, one in enumerate(reversed(waiting)) if one[1] > 0]
        heapify(largest)
        entered, left = len(largest), max(_MOST_STACKS, 2 * len(graph.own))
        while largest and left > 0:
            _, _, node, cost, parent, depth = heappop(largest)
            left -= len(self._circles[self._circle_of[node]].nodes)
            for one in self._enter(node, cost, parent, depth):
                entered += 1
                heappush(largest, (-one[1], entered, *one))
        for node, own in enumerate(graph.own):
            self._settle(node, own)

    def _local(self, node: int) -> int:
        mine = self._circle_of[node]
        calls = self._graph.calls[node].items()
        return self._graph.own[node] + sum(
            call.cost for callee, call in calls if self._circle_of[callee] != mine
        )

    def _enter(self, node: int, cost: float, parent: int, depth: int) -> list[tuple[int, float, int, int]]:
        """Divide what a call costs among the callee and those within its component; the calls these make."""
        circle = self._circles[self._circle_of[node]]
        whole = sum(circle.local) if len(circle.nodes) > 1 else circle.local[0]
        if not whole:
            return []
        share = cost / whole
        made = []
        if len(circle.nodes) == 1:
            places = {node: self._below(parent, node)}
        else:
            members = zip(circle.nodes, circle.local, strict=True)
            places = self._ways(node, parent, {one for one, cost in members if cost * share >= self._least})
        for one, place in places.items():
            found = self._found[one]
            found[place] = found.get(place, 0.0) + share * self._graph.own[one]
            if depth >= MAX_DEPTH:
                continue
            for callee, call in self._graph.calls[one].items():
                inside = self._circle_of[callee] == self._circle_of[one]
                if not inside and share * call.cost >= self._least:
                    made.append((callee, share * call.cost, place, depth + 1))
        return made

    def _ways(self, entry: int, parent: int, wanted: set[int]) -> dict[int, int]:
        """The nodes of the tree for those of a component: below the shortest way from the entry to each."""
        mine = self._circle_of[entry]
        before: dict[int, int] = {entry: ROOT}
        waiting = deque([entry])
        left = set(wanted) - {entry}
        while waiting and left:
            node = waiting.popleft()
            for callee in self._graph.calls[node]:
                if callee not in before and self._circle_of[callee] == mine:
                    before[callee] = node
                    left.discard(callee)
                    waiting.append(callee)
        places: dict[int, int] = {}
        for node in sorted(wanted & before.keys()):
            way = [node]
            while way[-1] not in places and before[way[-1]] != ROOT:
                way.append(before[way[-1]])
            for one in reversed(way):
                if one not in places:
                    outer = before[one]
                    places[one] = self._below(parent if outer == ROOT else places[outer], one)
        return {node: places[node] for node in sorted(wanted & before.keys())}

    def _below(self, parent: int, node: int) -> int:
        frame = self._name(node)
        return parent if frame is None else self._tree.below(parent, frame)

    def _settle(self, node: int, own: int) -> None:
        """Make whole numbers of the parts of what a node cost itself; what is missing has other callers."""
        parts = self._found[node]
        self._found[node] = {}
        whole = sum(parts.values())
        scale = own / whole if whole > own else 1.0
        for place, amount in rounded({place: amount * scale for place, amount in parts.items()}).items():
            part = min(amount, own)
            own -= part
            # What has no frame and no caller with one is told nowhere else.
            place = self._tree.below(ROOT, OTHER_CALLERS) if place == ROOT else place
            self._tree.amounts[place] += part
        if own:
            self._tree.amounts[self._below(self._tree.below(self._base, OTHER_CALLERS), node)] += own


def rounded(parts: Mapping[int, float]) -> dict[int, int]:
    """The parts as whole numbers whose sum is the rounded sum of the parts (largest remainders)."""
    whole = {key: int(value) for key, value in parts.items()}
    missing = round(sum(parts.values())) - sum(whole.values())
    by_remainder = sorted(parts, key=lambda key: (whole[key] - parts[key], key))
    for key in by_remainder[: max(0, missing)]:
        whole[key] += 1
    return whole


def components(successors: Sequence[Iterable[int]]) -> list[list[int]]:
    """The strongly connected components of a graph, each before those that lead to it (Tarjan 1972).

    :param successors: of each node the nodes that it leads to.
    """
    count = len(successors)
    index = [-1] * count
    lowest = [0] * count
    inside = bytearray(count)
    path: list[int] = []
    found: list[list[int]] = []
    reached = 0
    for start in range(count):
        if index[start] >= 0:
            continue
        steps = [(start, iter(successors[start]))]
        index[start] = lowest[start] = reached
        reached += 1
        path.append(start)
        inside[start] = 1
        while steps:
            node, rest = steps[-1]
            for following in rest:
                if index[following] < 0:
                    index[following] = lowest[following] = reached
                    reached += 1
                    path.append(following)
                    inside[following] = 1
                    steps.append((following, iter(successors[following])))
                    break
                if inside[following]:
                    lowest[node] = min(lowest[node], index[following])
            else:
                steps.pop()
                if steps:
                    above = steps[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == index[node]:
                    component = []
                    while True:
                        one = path.pop()
                        inside[one] = 0
                        component.append(one)
                        if one == node:
                            break
                    found.append(component[::-1])
    return found


# The profile of counted instructions: what each call stack and each function cost, and all together.
#
# The resources have the type `instructions` and one of two subtypes. Those that are `exclusive` have a trace
# and stand for what the innermost function of that call stack executed itself: all of them together are what
# the program executed. Those that are `inclusive` have no trace: each sums up a function with all that it
# called, and the one whose uid ends with `total` the whole program.

TYPE: Final = "instructions"
EXCLUSIVE: Final = "exclusive"
INCLUSIVE: Final = "inclusive"
TOTAL: Final = "total"
SMALL: Final = FunctionFrame("(small functions)")
"""Stands for the functions that each cost less than :data:`SMALLEST_FUNCTION` of all."""
SMALLEST_FUNCTION: Final = 1e-6
SMALLEST_INCLUSIVE: Final = 1e-5
_MAX_FUNCTIONS: Final = 3000
_SIZE: Final = 3_500_000
"""About so many bytes of JSON for traces."""
_FRAME_SIZE: Final = 80
"""Bytes of JSON of a frame beside its names."""


class InstructionCosts(NamedTuple):
    """What was counted.

    :param tree: the call stacks. :param calls: how often each function was called, where that is known.
    :param inclusive: of each function with all that it called.
    """

    tree: CostTree
    inclusive: Mapping[FunctionFrame, int]
    calls: Mapping[FunctionFrame, int]


def resources(costs: InstructionCosts, program: str) -> Iterator[dict[str, Any]]:
    """The resources of a run.

    :param program: its name, which the total goes by.
    """
    total = costs.tree.total
    uid = {"source": program, TYPE: TOTAL}
    yield {"type": TYPE, "subtype": INCLUSIVE, "uid": uid, "amount": total}
    for trace, amount in _stacks(costs.tree, total):
        yield {
            "type": TYPE,
            "subtype": EXCLUSIVE,
            "uid": as_record(trace[0]),
            "trace": [as_record(frame) for frame in trace],
            "amount": amount,
        }
    by_size = sorted(costs.inclusive.items(), key=lambda item: (-item[1], item[0]))
    for frame, amount in by_size[:_MAX_FUNCTIONS]:
        if frame != OTHER_CALLERS and amount and amount >= total * SMALLEST_INCLUSIVE:
            # What nothing calls is entered in another way, like a signal handler: how often is not known.
            calls = costs.calls.get(frame, 0)
            yield {
                "type": TYPE,
                "subtype": INCLUSIVE,
                "uid": {**as_record(frame), TYPE: INCLUSIVE},
                "amount": amount,
                **({"calls": calls} if calls else {}),
            }


def _stacks(tree: CostTree, total: int) -> Iterator[tuple[list[FunctionFrame], int]]:
    """Call stacks, innermost frame first, with what each cost itself; the largest ones are whole."""
    kept = _large(tree.exclusive(), total)
    room = _SIZE
    nodes = [node for node, amount in enumerate(tree.amounts) if amount]
    nodes.sort(key=lambda node: (-tree.amounts[node], node))
    cut: dict[FunctionFrame, int] = {}
    for node in nodes:
        frame = tree.frames[tree.places[node]]
        if frame in kept and room > 0:
            trace = tree.stack(node)
            room -= sum(_FRAME_SIZE + len(one.function) + len(one.source) for one in trace)
            if frame == OTHER_CALLERS or OTHER_CALLERS not in trace:
                yield trace, tree.amounts[node]
                continue
        shown = frame if frame in kept else SMALL
        cut[shown] = cut.get(shown, 0) + tree.amounts[node]
    for frame, amount in cut.items():
        yield [frame] if frame == SMALL else [frame, OTHER_CALLERS], amount


def _large(exclusive: Mapping[FunctionFrame, int], total: int) -> set[FunctionFrame]:
    """The functions that have resources of their own."""
    by_size = sorted(exclusive, key=lambda frame: (-exclusive[frame], frame))
    return {frame for frame in by_size[:_MAX_FUNCTIONS] if exclusive[frame] >= total * SMALLEST_FUNCTION}


def as_record(frame: FunctionFrame) -> dict[str, str]:
    """A function as profiles name it."""
    place = {"source": frame.source} if frame.source else {}
    return {**place, "function": frame.function}


# What lines of the project's sources cost, beside the resources: a function that is inlined has lines, and no
# stack of its own.

_MOST_LINES: Final = 20_000
_SMALLEST_LINE: Final = 1e-7


class LineCosts:
    """What lines of sources cost, and which functions they call; empty where that is not known."""

    def __init__(self) -> None:
        self._costs: dict[tuple[FunctionFrame, str, int], int] = {}
        self._calls: dict[tuple[FunctionFrame, str, int, FunctionFrame], CallArc] = {}

    def add(
        self, graph: CostGraph, frames: Sequence[FunctionFrame | None], path: Callable[[str, str], str]
    ) -> None:
        """Take in the lines of one process.

        :param frames: of each node. :param path: of a source in the project, by its name and that of the
            binary; empty where it is none of the project: its lines are left out.
        """
        for (node, file, line), cost in graph.lines.items():
            frame, source = frames[node], path(file, graph.functions[node].object)
            if frame is not None and source:
                self._costs[frame, source, line] = self._costs.get((frame, source, line), 0) + cost
        for (node, file, line, callee), call in graph.sites.items():
            frame, called = frames[node], frames[callee]
            source = path(file, graph.functions[node].object)
            if frame is not None and called is not None and source:
                before = self._calls.get((frame, source, line, called), CallArc(0, 0))
                arc = CallArc(before.times + call.times, before.cost + call.cost)
                self._calls[frame, source, line, called] = arc

    def region(self, total: int) -> dict[str, Any]:
        """The region `lines` of a profile; empty where no line is known. Lines that cost less than a
        ten-millionth of all are left out.

        :param total: of the program.
        """
        least = total * _SMALLEST_LINE
        by_cost = sorted(self._costs.items(), key=lambda item: (-item[1], item[0]))
        by_calls = sorted(self._calls.items(), key=lambda item: (-item[1].cost, item[0]))
        if not by_cost:
            return {}
        files: dict[str, int] = {}
        functions: dict[FunctionFrame, int] = {}
        costs = [
            [functions.setdefault(frame, len(functions)), files.setdefault(file, len(files)), line, cost]
            for (frame, file, line), cost in by_cost[:_MOST_LINES]
            if cost >= least
        ]
        calls = [
            [
                functions.setdefault(frame, len(functions)), files.setdefault(file, len(files)), line,
                functions.setdefault(called, len(functions)), *call,
            ]
            for (frame, file, line, called), call in by_calls[:_MOST_LINES]
            if call.cost >= least
        ]  # fmt: skip
        return {
            "files": list(files),
            "functions": [as_record(frame) for frame in functions],
            "costs": costs,
            "calls": calls,
        }
