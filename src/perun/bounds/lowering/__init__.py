"""Lowering: a function of C becomes a control flow graph with linear guards and updates.

What is not linear becomes a new variable with linear limits, or any value. Assumed are: no overflow but where
programs rely on it (types narrower than `int`, unsigned counters that are decreased below zero), and that
stores through pointers change no variable whose address the function does not take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pycparser import c_ast

from perun.bounds.lowering.expressions import Expressions, ways
from perun.bounds.lowering.graph import GraphBuilder
from perun.bounds.lowering.places import SymbolPlaces, copied_fields
from perun.bounds.lowering.types import SideEffects, mentions
from perun.bounds.program import ControlFlowGraph, Edge, Linear, Location, LoopInfo, components, variable

if TYPE_CHECKING:
    from perun.bounds.front.unit import CFunction, Loop, TranslationUnit


# Lowering of statements: the flow of control of a function, and its loops.


class Statements:
    """Lowers the statements of one function."""

    def __init__(
        self, graph: GraphBuilder, places: SymbolPlaces, expressions: Expressions, loops: tuple[Loop, ...]
    ) -> None:
        self.graph = graph
        self.places = places
        self.expressions = expressions
        self._positions = {id(each.node): each for each in loops}
        self._breaks: list[Location] = []
        self._continues: list[Location] = []
        self._labels: dict[str, Location] = {}
        self._label_nodes: dict[str, c_ast.Label] = {}
        self._gotos: list[tuple[Location, c_ast.Goto, int]] = []
        self._cases: dict[int, Location] = {}
        self._depth = 0

    def statement(self, node: Any) -> None:
        """Lower a statement."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is not None:
            method(node)
        elif node is not None:
            self.expressions.value(node)

    def _compound(self, node: c_ast.Compound) -> None:
        self.places.scopes.enter()
        for each in node.block_items or ():
            self.statement(each)
        self.places.scopes.leave()

    def _decllist(self, node: c_ast.DeclList) -> None:
        for each in node.decls:
            self.statement(each)

    def _typedef(self, node: c_ast.Typedef) -> None:
        self.places.types.declare(node)

    def _pragma(self, node: Any) -> None:
        """Nothing happens."""

    _emptystatement = _staticassert = _pragma

    def _decl(self, node: c_ast.Decl) -> None:
        kind = self.places.types.of(node)
        if not isinstance(node.name, str) or isinstance(node.type, c_ast.FuncDecl):
            return
        if "extern" in (node.storage or []):
            return
        made = self.places.local(node.name, kind)
        if "static" in (node.storage or []):
            if kind.tracked:
                self.places.external[made.key] = node.name
                self.places.addressed.add(made.key)
            return
        if node.init is None or not kind.tracked:
            if node.init is not None:
                self.expressions.value(node.init)
            self.graph.havoc([made.key] if kind.tracked else ())
            self._forget(made.key)
            return
        self.expressions.assign(made, self.expressions.value(node.init))
        self._forget(made.key)

    def _forget(self, base: str) -> None:
        self.graph.havoc(key for key, each in self.places.fields.items() if each.root == base)

    def _if(self, node: c_ast.If) -> None:
        yes, no, end = self.graph.location(), self.graph.location(), self.graph.location()
        self.expressions.branch(node.cond, yes, no)
        for start, side in ((yes, node.iftrue), (no, node.iffalse)):
            self.graph.at = start
            self.statement(side)
            self.graph.go(end)
        self.graph.at = end

    def _loop(self, node: Any, head: Location) -> int:
        place = self._positions.get(id(node))
        line = node.coord.line if node.coord else 0
        positions = (place.first_line, place.last_line, place.column) if place else (line, line, 0)
        self.graph.program.loops.append(LoopInfo(*positions, head=head, nested=self._depth > 0))
        return len(self.graph.program.loops) - 1

    def _body(self, node: Any, after: Location, following: Location) -> None:
        """The body of a loop: where `break` and `continue` go."""
        self._breaks.append(after)
        self._continues.append(following)
        self._depth += 1
        self.statement(node)
        self._depth -= 1
        self._continues.pop()
        self._breaks.pop()

    def _while(self, node: c_ast.While) -> None:
        head, body, end = self.graph.location(), self.graph.location(), self.graph.location()
        again = self.graph.location()
        loop = self._loop(node, head)
        self.graph.go(head)
        self.graph.at = head
        self.expressions.branch(node.cond, body, end)
        self.graph.at = body
        self._body(node.stmt, end, again)
        self.graph.go(again)
        self.graph.at = again
        self.graph.go(head, loop)
        self.graph.at = end

    def _for(self, node: c_ast.For) -> None:
        head, body, end = self.graph.location(), self.graph.location(), self.graph.location()
        again = self.graph.location()
        self.places.scopes.enter()
        self.statement(node.init)
        loop = self._loop(node, head)
        self.graph.go(head)
        self.graph.at = head
        if node.cond is None:
            self.graph.go(body)
        else:
            self.expressions.branch(node.cond, body, end)
        self.graph.at = body
        self._body(node.stmt, end, again)
        self.graph.go(again)
        self.graph.at = again
        if node.next is not None:
            self.expressions.value(node.next)
        self.graph.go(head, loop)
        self.places.scopes.leave()
        self.graph.at = end

    def _dowhile(self, node: c_ast.DoWhile) -> None:
        head, test, again, end = (self.graph.location() for _ in range(4))
        loop = self._loop(node, head)
        self.graph.go(head)
        self.graph.at = head
        self._body(node.stmt, end, test)
        self.graph.go(test)
        self.graph.at = test
        self.expressions.branch(node.cond, again, end)
        self.graph.at = again
        self.graph.go(head, loop)
        self.graph.at = end

    def _break(self, node: c_ast.Break) -> None:
        self.graph.go(self._breaks[-1])

    def _continue(self, node: c_ast.Continue) -> None:
        self.graph.go(self._continues[-1])

    def _return(self, node: c_ast.Return) -> None:
        if node.expr is not None:
            self.expressions.value(node.expr)
        self.graph.go(self.graph.program.exit)

    def _label(self, node: c_ast.Label) -> None:
        place = self._labels.setdefault(node.name, self.graph.location())
        self._label_nodes[node.name] = node
        self.graph.go(place)
        self.graph.at = place
        self.statement(node.stmt)

    def _goto(self, node: c_ast.Goto) -> None:
        backward = node.name in self._label_nodes
        place = self._labels.setdefault(node.name, self.graph.location())
        if backward and self.graph.at is not None:
            self._gotos.append((place, node, len(self.graph.program.edges)))
        self.graph.go(place)

    def _switch(self, node: c_ast.Switch) -> None:
        end = self.graph.location()
        value = self.expressions.value(node.cond)
        cases: list[tuple[int, Location]] = []
        vague: list[Location] = []
        default = end
        for each in _cases_of(node.stmt):
            place = self._cases[id(each)] = self.graph.location()
            if isinstance(each, c_ast.Default):
                default = place
                continue
            number = self.expressions.value(each.expr).linear
            if number is None or not number.is_constant:
                vague.append(place)
            else:
                cases.append((number.constant, place))
        self._dispatch(value.linear, cases, vague, default)
        self.graph.at = None
        self._breaks.append(end)
        self.statement(node.stmt)
        self._breaks.pop()
        self.graph.go(end)
        self.graph.at = end

    def _dispatch(
        self,
        value: Linear | None,
        cases: list[tuple[int, Location]],
        vague: list[Location],
        default: Location,
    ) -> None:
        for place in vague:
            self.graph.edge(place)
        if value is None:
            for place in {place for _, place in cases} | {default}:
                self.graph.edge(place)
            return
        for number, place in cases:
            for guards in ways("==", value - number):
                self.graph.edge(place, guards)
        numbers = sorted({number for number, _ in cases})
        if not numbers:
            self.graph.edge(default)
            return
        self.graph.edge(default, [-value + (numbers[0] - 1)])
        for low, high in pairwise(numbers):
            if high - low > 1:
                self.graph.edge(default, [value - (low + 1), -value + (high - 1)])
        self.graph.edge(default, [value - (numbers[-1] + 1)])

    def _case(self, node: Any) -> None:
        place = self._cases[id(node)]
        self.graph.go(place)
        self.graph.at = place
        for each in node.stmts or ():
            self.statement(each)

    _default = _case

    def finish(self) -> None:
        """The end of the function: it returns, and backward jumps that repeat something become loops."""
        self.graph.go(self.graph.program.exit)
        program = self.graph.program
        pairs = [(edge.source, edge.target) for edge in program.edges]
        component = components([program.entry], pairs)
        found: dict[Location, list[tuple[c_ast.Goto, int]]] = {}
        for place, node, index in self._gotos:
            edge = program.edges[index]
            if component[edge.source] == component[place]:
                found.setdefault(place, []).append((node, index))
        for place, jumps in found.items():
            self._goto_loop(place, jumps)

    def _goto_loop(self, place: Location, jumps: list[tuple[c_ast.Goto, int]]) -> None:
        program = self.graph.program
        label = next(each for name, each in self._label_nodes.items() if self._labels[name] == place)
        first, last = label.coord.line, max(node.coord.line for node, _ in jumps)
        number = len(program.loops)
        for _, index in jumps:
            program.edges[index] = replace(program.edges[index], loop=number)
        body = _natural_loop(program.edges, place, [program.edges[index].source for _, index in jumps])
        nested = any(
            place in _natural_loop(program.edges, each.head, _repeating(program.edges, index))
            for index, each in enumerate(program.loops)
        )
        program.loops = [
            replace(each, nested=True) if each.head in body and each.head != place else each
            for each in program.loops
        ]
        column = max((label.coord.column or 1) - 1, 0)
        program.loops.append(LoopInfo(first, last, column, place, nested))


def _repeating(edges: list[Any], loop: int) -> list[Location]:
    """Where the edges come from that repeat a loop."""
    return [edge.source for edge in edges if edge.loop == loop]


def _natural_loop(edges: list[Any], head: Location, sources: list[Location]) -> set[Location]:
    """The locations from which control comes back to the head without passing it."""
    found = {head, *sources}
    work = [each for each in sources if each != head]
    before: dict[Location, list[Location]] = {}
    for edge in edges:
        before.setdefault(edge.target, []).append(edge.source)
    while work:
        for previous in before.get(work.pop(), ()):
            if previous not in found:
                found.add(previous)
                work.append(previous)
    return found if sources else set()


def _cases_of(node: Any) -> list[Any]:
    """The labels of a switch, without those of switches inside it."""
    found, work = [], [node]
    while work:
        one = work.pop()
        if isinstance(one, (c_ast.Case, c_ast.Default)):
            found.append(one)
        work.extend(child for _, child in reversed(one.children()) if not isinstance(child, c_ast.Switch))
    return found


def lower(
    function: CFunction,
    unit: TranslationUnit,
    effects: dict[str, SideEffects],
    costly: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> ControlFlowGraph:
    """The graph of a function.

    `costly` are functions whose calls are recorded, with the names of their parameters. It is built twice, as
    only then all globals and fields are known that a call early in the text may change.
    """
    mentioned = mentions(function.node.body)
    mentioned.fields |= copied_fields(function, unit, mentioned)
    places = SymbolPlaces(unit, mentioned, effects)
    _built(function, places, costly)
    again = SymbolPlaces(unit, mentioned, effects)
    again.remember(places)
    return _built(function, again, costly)


def _built(
    function: CFunction, places: SymbolPlaces, costly: Mapping[str, Sequence[str]]
) -> ControlFlowGraph:
    graph = GraphBuilder()
    start = graph.location()
    graph.at = start
    for each in getattr(function.node.decl.type.args, "params", None) or ():
        name = getattr(each, "name", None)
        if not isinstance(name, str):
            continue
        kind = places.types.of(each)
        if kind.kind == "array" and kind.target is not None:
            kind = places.types.pointer_to(kind.target)
        made = places.local(name, kind)
        if kind.tracked:
            places.external[made.key] = name
    statements = Statements(graph, places, Expressions(graph, places, costly), function.loops)
    statements.statement(function.node.body)
    statements.finish()
    return _with_inputs(graph.program, places, start)


def _with_inputs(program: ControlFlowGraph, places: SymbolPlaces, start: int) -> ControlFlowGraph:
    """Give what is assigned its first value: that of an input, or any."""
    updates: list[tuple[str, Linear | None]] = []
    assigned = program.variables()
    for key in sorted(assigned - program.temporaries):
        shown = places.external.get(key)
        if shown is None:
            updates.append((key, None))
        else:
            program.inputs[f"{key}@"] = shown
            updates.append((key, variable(f"{key}@")))
    for key, shown in places.external.items():
        if key not in assigned:
            program.inputs[key] = shown
    for key, kind in places.typed.items():
        if kind.narrow or kind.unsigned:
            limits = kind.range if kind.narrow else (0, None)
            program.ranges[key] = limits
            if f"{key}@" in program.inputs:
                program.ranges[f"{key}@"] = limits
    program.edges.append(Edge(program.entry, start, (), tuple(updates)))
    return program
