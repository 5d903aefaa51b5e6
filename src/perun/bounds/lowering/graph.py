"""Building the control flow graph: locations, edges, and the place where the next statement goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perun.bounds.lowering.types import Type
from perun.bounds.program import CallSite, ControlFlowGraph, Edge, Linear, Location, constant, variable


class GraphBuilder:
    """A program under construction. `at` is where the flow of control is, `None` where it does not get to."""

    def __init__(self) -> None:
        self.program = ControlFlowGraph()
        self.at: Location | None = self.program.entry
        self._locations = 2
        self._temporaries = 0

    def location(self) -> Location:
        """A new location."""
        self._locations += 1
        return self._locations - 1

    def temporary(self) -> str:
        """A new variable for a value between two steps."""
        self._temporaries += 1
        name = f"${self._temporaries}"
        self.program.temporaries.add(name)
        return name

    def edge(
        self,
        target: Location,
        guards: Iterable[Linear] = (),
        updates: Iterable[tuple[str, Linear | None]] = (),
        loop: int | None = None,
    ) -> None:
        """A step from here to a location; the flow stays here, so that others can follow."""
        needed = []
        for guard in guards:
            if guard.is_constant:
                if guard.constant < 0:
                    return
            else:
                needed.append(guard)
        if self.at is not None:
            self.program.edges.append(Edge(self.at, target, tuple(needed), tuple(updates), loop))

    def go(self, target: Location, loop: int | None = None) -> None:
        """Continue at a location; what follows is not reached."""
        self.edge(target, loop=loop)
        self.at = None

    def step(self, guards: Iterable[Linear] = (), updates: Iterable[tuple[str, Linear | None]] = ()) -> None:
        """A step to a new location, and on from there."""
        target = self.location()
        self.edge(target, guards, updates)
        self.at = target if self.at is not None else None

    def either(
        self, ways: Sequence[tuple[Sequence[Linear], Sequence[tuple[str, Linear | None]], Sequence[Linear]]]
    ) -> None:
        """One of several steps, and on from where they meet: guards, updates, and what holds after these."""
        start, meeting = self.at, self.location()
        for guards, updates, after in ways:
            self.at = start
            if after:
                self.step(guards, updates)
                self.edge(meeting, after)
            else:
                self.edge(meeting, guards, updates)
        self.at = None if start is None else meeting

    def havoc(self, names: Iterable[str]) -> None:
        """Give variables any value."""
        updates: list[tuple[str, Linear | None]] = [(name, None) for name in sorted(set(names))]
        if updates:
            self.step((), updates)

    def call(self, function: str, arguments: Iterable[tuple[str, Linear | None]]) -> None:
        """A call whose cost counts, at a location of its own where the arguments are in variables."""
        held = [(name, self.temporary(), value) for name, value in arguments]
        self.step((), [(temporary, value) for _, temporary, value in held])
        if self.at is not None:
            names = tuple((name, temporary) for name, temporary, _ in held)
            self.program.calls.append(CallSite(self.at, function, names))
            self.step()

    def between(self, low: Linear | int | None, high: Linear | int | None) -> Linear:
        """A new value of which only limits are known."""
        name = self.temporary()
        value, limits = variable(name), []
        if low is not None:
            limits.append(value - low)
        if high is not None:
            limits.append(-value + high)
        self.step((), [(name, None)])
        if limits:
            self.step(limits)
        return value


# Operations that are not linear, and conversions that may change a value: what limits their results.

Update = tuple[str, Linear | None]
Way = tuple[list[Linear], list[Update], list[Linear]]
"""A case: the guards, the updates, and what holds after them."""


class Arithmetic:
    """Makes new variables for results, with the linear limits that hold for them."""

    def __init__(self, graph: GraphBuilder) -> None:
        self._graph = graph

    def limited(
        self, operator: str, a: Linear | None, b: Linear | None, positive: tuple[bool, bool]
    ) -> Linear | None:
        """The result of an operation, if it can be limited. `positive` says which operands are never
        negative."""
        if b is not None and b.is_constant and a is not None and b.constant > 0:
            if operator == "/":
                return self._divided(a, b.constant, positive[0])
            if operator == "%":
                return self._remainder(a, b, positive[0])
            if operator == ">>" and b.constant < 64:
                return self._shifted(a, 1 << b.constant)
        if operator == ">>" and a is not None and positive[0]:
            return self._graph.between(0, a)
        if operator == "/" and a is not None and all(positive):
            return self._graph.between(0, a)
        if operator == "%" and a is not None and b is not None:
            return self._remainder_of_any(a, b, positive)
        if operator == "&":
            return self._masked(a, b, positive)
        if operator in ("|", "^") and a is not None and b is not None and all(positive):
            return self._graph.between(0, a + b)
        return None

    def absolute(self, value: Linear) -> Linear:
        """The absolute value."""
        name = self._graph.temporary()
        self._graph.either([([value], [(name, value)], []), ([-value - 1], [(name, -value)], [])])
        return variable(name)

    def _cases(self, cases: list[tuple[list[Linear], list[Linear]]], name: str) -> Linear:
        ways: list[Way] = [(guards, [(name, None)], after) for guards, after in cases]
        self._graph.either(ways)
        return variable(name)

    def _divided(self, a: Linear, divisor: int, positive: bool) -> Linear:
        """Division, which cuts towards zero."""
        name = self._graph.temporary()
        product = variable(name).times(divisor)
        above = ([a], [a - product, product + (divisor - 1) - a])
        below = ([-a - 1], [product - a, a + (divisor - 1) - product])
        return self._cases([above] if positive else [above, below], name)

    def _shifted(self, a: Linear, factor: int) -> Linear:
        """A shift to the right, which rounds down."""
        name = self._graph.temporary()
        product = variable(name).times(factor)
        return self._cases([([], [a - product, product + (factor - 1) - a])], name)

    def _remainder(self, a: Linear, b: Linear, positive: bool) -> Linear:
        """The remainder of a division by a positive number: it has the sign of what is divided."""
        name = self._graph.temporary()
        rest = variable(name)
        above = ([a], [rest, b - 1 - rest, a - rest])
        below = ([-a - 1], [-rest, rest + b - 1])
        return self._cases([above] if positive else [above, below], name)

    def _remainder_of_any(self, a: Linear, b: Linear, positive: tuple[bool, bool]) -> Linear:
        name = self._graph.temporary()
        rest = variable(name)
        cases = [([a, b - 1], [rest, b - 1 - rest, a - rest])]
        if not positive[0]:
            cases.append(([-a - 1, b - 1], [-rest, rest + b - 1]))
        if not positive[1]:
            cases.append(([a, -b - 1], [rest, -b - 1 - rest, a - rest]))
        if not any(positive):
            cases.append(([-a - 1, -b - 1], [-rest, rest - b - 1]))
        return self._cases(cases, name)

    def _masked(self, a: Linear | None, b: Linear | None, positive: tuple[bool, bool]) -> Linear | None:
        """A bitwise and: no larger than an operand that is not negative."""
        known = [
            each for each, sure in zip((a, b), positive, strict=True)
            if each is not None and (sure or (each.is_constant and each.constant >= 0))
        ]  # fmt: skip
        if not known:
            if a is None or b is None:
                return None
            name = self._graph.temporary()
            result = variable(name)
            return self._cases([
                ([a, b], [result, a - result, b - result]), ([a, -b - 1], [result, a - result]),
                ([-a - 1, b], [result, b - result]), ([-a - 1, -b - 1], []),
            ], name)  # fmt: skip
        name = self._graph.temporary()
        result = variable(name)
        limits = [result, *(each - result for each in known)]
        return self._cases([([], limits)], name)

    def conversion(self, name: str, value: Linear, source: Type, target: Type, decrement: bool) -> list[Way]:
        """How a variable gets a value of another type.

        What does not fit wraps around: in types narrower than `int`, and below zero where an unsigned
        variable is decreased, as programs rely on it there. Elsewhere nothing overflows, which is the
        assumption that the documentation states; an unsigned variable then is at least 0.
        """
        plain: list[Way] = [([], [(name, value)], [])]
        if target.kind != "integer":
            return plain
        if target.bits == 1:
            return [
                ([value - 1], [(name, constant(1))], []),
                ([-value - 1], [(name, constant(1))], []),
                ([value, -value], [(name, constant(0))], []),
            ]
        if value.is_constant:
            return [([], [(name, constant(_wrapped(value.constant, target)))], [])]
        result = variable(name)
        if target.narrow:
            low, high = target.range
            fits = source.narrow and source.range[0] >= low and source.range[1] <= high and not decrement
            if fits and len(value.terms) == 1 and value.constant == 0 and value.terms[0][1] == 1:
                return plain
            limits = [result - low, -result + high]
            return [
                ([value - low, -value + high], [(name, value)], []),
                ([-value + low - 1], [(name, None)], limits),
                ([value - high - 1], [(name, None)], limits),
            ]
        if target.unsigned:
            if source.unsigned and len(value.terms) == 1 and value.constant >= 0 and value.terms[0][1] > 0:
                return plain
            below: list[Update] = [(name, None if decrement else constant(0))]
            limits = [result, -result + target.range[1]] if decrement else []
            return [([value], [(name, value)], []), ([-value - 1], below, limits)]
        return plain


def _wrapped(value: int, target: Type) -> int:
    if target.unsigned:
        return value % (1 << target.bits)
    half = 1 << (target.bits - 1)
    return (value + half) % (2 * half) - half
