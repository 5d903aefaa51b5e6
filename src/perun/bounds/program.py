"""The programs that are analysed: control flow graphs over integers, with linear guards and updates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import gcd

from perun.bounds import expression
from perun.bounds.expression import Expression
from perun.bounds.steps import take

# Linear expressions with integer coefficients, the terms in which programs are abstracted.


class Linear:
    """`constant + sum of coefficient * variable`; immutable, with the terms sorted by name."""

    __slots__ = ("_hash", "constant", "terms")

    def __init__(self, constant: int = 0, terms: Iterable[tuple[str, int]] = ()) -> None:
        take()
        self.constant = constant
        self.terms = tuple(sorted((name, coefficient) for name, coefficient in terms if coefficient))
        self._hash = hash((constant, self.terms))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and self.constant == other.constant and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __lt__(self, other: Linear) -> bool:
        return (len(self.terms), self.terms, self.constant) < (len(other.terms), other.terms, other.constant)

    def __add__(self, other: Linear | int) -> Linear:
        if isinstance(other, int):
            return Linear(self.constant + other, self.terms)
        sums = dict(self.terms)
        for name, coefficient in other.terms:
            sums[name] = sums.get(name, 0) + coefficient
        return Linear(self.constant + other.constant, sums.items())

    def __sub__(self, other: Linear | int) -> Linear:
        return self + (-other)

    def __neg__(self) -> Linear:
        return self.times(-1)

    def times(self, factor: int) -> Linear:
        """The product with a number."""
        return Linear(self.constant * factor, ((name, factor * each) for name, each in self.terms))

    @property
    def is_constant(self) -> bool:
        """Whether it mentions no variable."""
        return not self.terms

    @property
    def names(self) -> frozenset[str]:
        """The variables that it mentions."""
        return frozenset(name for name, _ in self.terms)

    def of(self, name: str) -> int:
        """The coefficient of a variable."""
        return next((coefficient for each, coefficient in self.terms if each == name), 0)

    def substitute(self, values: Mapping[str, Linear]) -> Linear:
        """With these variables replaced, all at once."""
        if not any(name in values for name, _ in self.terms):
            return self
        sums: dict[str, int] = {}
        constant = self.constant
        for name, coefficient in self.terms:
            value = values.get(name)
            if value is None:
                sums[name] = sums.get(name, 0) + coefficient
                continue
            constant += coefficient * value.constant
            for inner, factor in value.terms:
                sums[inner] = sums.get(inner, 0) + coefficient * factor
        return Linear(constant, sums.items())

    def tightened(self) -> Linear:
        """What `self >= 0` says of integers, its coefficients divided by their common divisor."""
        divisor = gcd(*(coefficient for _, coefficient in self.terms)) if self.terms else 1
        if divisor <= 1:
            return self
        return Linear(self.constant // divisor, ((name, c // divisor) for name, c in self.terms))

    def positive_part(self, shown: Callable[[str], str]) -> Expression:
        """`max(0, self)` as a bound, its variables named by `shown`."""
        terms = [expression.number(self.constant)] if self.constant else []
        terms += [expression.name(shown(name)) * expression.number(c) for name, c in self.terms]
        return expression.maximum([expression.ZERO, expression.total(terms)])

    def __str__(self) -> str:
        terms = [name if c == 1 else f"{c} * {name}" for name, c in self.terms]
        return " + ".join([*terms, str(self.constant)] if self.constant or not terms else terms)

    __repr__ = __str__


def constant(value: int) -> Linear:
    """A number."""
    return Linear(value)


def variable(name: str) -> Linear:
    """A variable."""
    return Linear(0, ((name, 1),))


Location = int
Range = tuple[int | None, int | None]


@dataclass(frozen=True)
class Edge:
    """A step: all `guards` are at least 0 before it, then `updates` happen at once.

    An update to `None` gives the variable any value. `loop` is the number of the loop that this step repeats.
    """

    source: Location
    target: Location
    guards: tuple[Linear, ...] = ()
    updates: tuple[tuple[str, Linear | None], ...] = ()
    loop: int | None = None


@dataclass(frozen=True)
class LoopInfo:
    """A loop of the source: its positions, the location that it comes back to, and whether it stands in
    another."""

    first_line: int
    last_line: int
    column: int
    head: Location
    nested: bool


@dataclass(frozen=True)
class CallSite:
    """A call whose cost counts: its location, and for names of parameters the variables with arguments."""

    place: Location
    function: str
    arguments: tuple[tuple[str, str], ...]


@dataclass
class ControlFlowGraph:
    """The graph of a function. Inputs are variables that the caller or the world set before it starts.

    `inputs` maps each of them to the name that bounds show; they are never assigned. `ranges` are the lowest
    and the highest value that variables have by their types; `None` where that is beyond what programs count
    to.
    """

    entry: Location = 0
    exit: Location = 1
    edges: list[Edge] = field(default_factory=list)
    loops: list[LoopInfo] = field(default_factory=list)
    calls: list[CallSite] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    ranges: dict[str, Range] = field(default_factory=dict)
    temporaries: set[str] = field(default_factory=set)
    unknown: str | None = None
    """Why nothing can be said of the function, if so."""

    def variables(self) -> set[str]:
        """All that are assigned somewhere."""
        return {name for edge in self.edges for name, _ in edge.updates}


def outgoing(edges: Iterable[Edge]) -> dict[Location, list[Edge]]:
    """The edges by their source."""
    found: dict[Location, list[Edge]] = {}
    for edge in edges:
        found.setdefault(edge.source, []).append(edge)
    return found


def incoming(edges: Iterable[Edge]) -> dict[Location, list[Edge]]:
    """The edges by their target."""
    found: dict[Location, list[Edge]] = {}
    for edge in edges:
        found.setdefault(edge.target, []).append(edge)
    return found


def topological_order(program: ControlFlowGraph) -> tuple[dict[Location, int], set[Location]]:
    """The reachable locations in a topological order that ignores retreating edges, and the targets of
    those."""
    after = outgoing(program.edges)
    postorder: list[Location] = []
    active: set[Location] = set()
    visited: set[Location] = {program.entry}
    retreating: set[Location] = set()
    work = [(program.entry, iter(after.get(program.entry, ())))]
    active.add(program.entry)
    while work:
        place, rest = work[-1]
        for edge in rest:
            if edge.target in active:
                retreating.add(edge.target)
            elif edge.target not in visited:
                visited.add(edge.target)
                active.add(edge.target)
                work.append((edge.target, iter(after.get(edge.target, ()))))
                break
        else:
            work.pop()
            active.discard(place)
            postorder.append(place)
    return {place: index for index, place in enumerate(reversed(postorder))}, retreating


def components(nodes: Iterable[Location], pairs: Iterable[tuple[Location, Location]]) -> dict[Location, int]:
    """The strongly connected component of each node, by Tarjan's algorithm without recursion."""
    successors: dict[Location, list[Location]] = {node: [] for node in nodes}
    for source, target in pairs:
        successors.setdefault(source, []).append(target)
        successors.setdefault(target, [])
    index: dict[Location, int] = {}
    low: dict[Location, int] = {}
    component: dict[Location, int] = {}
    stack: list[Location] = []
    for root in successors:
        if root in index:
            continue
        work = [(root, iter(successors[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, rest = work[-1]
            for following in rest:
                if following not in index:
                    index[following] = low[following] = len(index)
                    stack.append(following)
                    work.append((following, iter(successors[following])))
                    break
                if following not in component:
                    low[node] = min(low[node], index[following])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    number = len(component)
                    while True:
                        member = stack.pop()
                        component[member] = number
                        if member == node:
                            break
    return component


class Reachability:
    """What can be reached in a graph from each location, found when it is asked for."""

    def __init__(self, pairs: Iterable[tuple[Location, Location]]) -> None:
        self._successors: dict[Location, list[Location]] = {}
        for source, target in pairs:
            self._successors.setdefault(source, []).append(target)
        take(1 + len(self._successors) // 8)
        self._known: dict[Location, frozenset[Location]] = {}

    def of(self, starts: Iterable[Location]) -> set[Location]:
        """All that can be reached from these, themselves included."""
        found: set[Location] = set()
        for start in starts:
            if start not in found:
                found |= self._from(start)
        return found

    def _from(self, start: Location) -> frozenset[Location]:
        if start not in self._known:
            found = {start}
            work = [start]
            while work:
                for following in self._successors.get(work.pop(), ()):
                    if following not in found:
                        found.add(following)
                        work.append(following)
            take(1 + len(found) // 8)
            self._known[start] = frozenset(found)
        return self._known[start]


def reachable(starts: Iterable[Location], pairs: Iterable[tuple[Location, Location]]) -> set[Location]:
    """All that can be reached from these, themselves included."""
    return Reachability(pairs).of(starts)
