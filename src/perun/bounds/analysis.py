"""The analysis of one function, from its syntax tree to the bounds of its loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from perun.bounds import expression, steps
from perun.bounds.answer import FunctionBounds, LoopBound, unbounded
from perun.bounds.bounding import BoundSolver
from perun.bounds.constraints import Constraints, Norm
from perun.bounds.expression import INFINITY, ONE, ZERO, Expression, Maximum, number
from perun.bounds.invariants import Invariants
from perun.bounds.lowering import lower
from perun.bounds.lowering.places import effects_of
from perun.bounds.lowering.types import SideEffects
from perun.bounds.paths import System, TooManyPaths, paths
from perun.bounds.program import (
    CallSite,
    ControlFlowGraph,
    Edge,
    Linear,
    Location,
    LoopInfo,
    Reachability,
    components,
    incoming,
    reachable,
)
from perun.bounds.slicing import feasible, renumbered, sliced, split
from perun.bounds.solver import Solver

if TYPE_CHECKING:
    from perun.bounds.front.unit import CFunction, TranslationUnit


# The cost of calls: what the loops of called functions cost, by the values of the arguments at each call.


@dataclass(frozen=True)
class Callee:
    """A function whose calls count: the names of its parameters, and its total over them."""

    parameters: tuple[str, ...]
    cost: Expression


def parameters_of(function: CFunction) -> tuple[str, ...]:
    """The names of a function's parameters, empty where one has none."""
    arguments = function.node.decl.type.args
    return tuple(getattr(each, "name", None) or "" for each in getattr(arguments, "params", None) or ())


def recursive(effects: Mapping[str, SideEffects]) -> frozenset[str]:
    """The functions that call themselves, or others that do so for them."""
    numbers = {name: index for index, name in enumerate(sorted(effects))}
    pairs = [
        (numbers[name], numbers[called])
        for name in sorted(effects)
        for called in effects[name].calls if called in numbers
    ]  # fmt: skip
    component = components(numbers.values(), pairs)
    return frozenset(
        name for name, number in numbers.items()
        if any(source == number and component[source] == component[target] for source, target in pairs)
    )  # fmt: skip


def cost_of_calls(bounding: BoundSolver, called: Mapping[str, Callee]) -> Expression:
    """What all calls of a program cost: for each the times it is made, multiplied by the callee's total."""
    total = ZERO
    for site in bounding.system.program.calls:
        if total.infinite:
            break
        places = bounding.system.places(site.place)
        made = bounding.taken(
            frozenset(each.number for each in bounding.system.transitions if each.source in places)
        )
        if made != ZERO:
            total = total + made * _Cost(bounding, site, places).of(called[site.function].cost)
    return total


class _Cost:
    """The total of a callee, with the largest values that its arguments have at a call."""

    def __init__(self, bounding: BoundSolver, site: CallSite, places: list[Location]) -> None:
        self._bounding = bounding
        self._places = [each for each in places if any(each in pair for pair in bounding.system.pairs)]
        self._arguments = dict(site.arguments)

    def of(self, cost: Expression) -> Expression:
        """The bound of an expression over the callee's parameters, over the caller's inputs."""
        if cost.infinite:
            return INFINITY
        total = ZERO
        for monomial, coefficient in cost.terms:
            term = number(coefficient)
            for atom in monomial:
                term = term * (self._largest(atom) if isinstance(atom, Maximum) else INFINITY)
            total = total + term if coefficient > 0 else INFINITY
        return total

    def _largest(self, atom: Maximum) -> Expression:
        """The bound of a maximum of expressions, which is at least 0 in all totals."""
        found = [ZERO]
        for argument in atom.arguments:
            value = self._linear(argument)
            if value is None:
                found.append(self.of(argument))
            else:
                found += [self._bounding.value(Norm(value), place) for place in self._places]
        return expression.maximum(found)

    def _linear(self, argument: Expression) -> Linear | None:
        """A linear expression over parameters, over the variables that hold them; `None` if it is not one."""
        constant, terms = 0, []
        for monomial, coefficient in argument.terms:
            if not monomial:
                constant = coefficient
                continue
            name = monomial[0]
            if len(monomial) > 1 or not isinstance(name, str) or name not in self._arguments:
                return None
            terms.append((self._arguments[name], coefficient))
        return Linear(constant, terms)


# Outermost nests of loops on their own, where a function as a whole is too large.


def nests(program: ControlFlowGraph) -> Iterator[tuple[frozenset[int], ControlFlowGraph]]:
    """For each outermost nest the numbers of its loops, and the program where no other loop is left.

    Another nest becomes one location: who gets there finds any value in what the nest assigns.
    """
    pairs = [(edge.source, edge.target) for edge in program.edges]
    component = components([program.entry], pairs)
    cyclic = {component[source] for source, target in pairs if component[source] == component[target]}
    assigned: dict[int, set[str]] = {number: set() for number in cyclic}
    loops: dict[int, set[int]] = {number: set() for number in cyclic}
    for edge in program.edges:
        number = component[edge.source]
        if number in cyclic and number == component[edge.target]:
            assigned[number].update(name for name, _ in edge.updates)
            if edge.loop is not None:
                loops[number].add(edge.loop)
    for chosen in sorted(cyclic):
        if loops[chosen]:
            steps.take(len(program.edges) // 3)
            edges = list(_collapsed(program, component, assigned, chosen))
            yield frozenset(loops[chosen]), replace(program, edges=edges, calls=[])


def _collapsed(
    program: ControlFlowGraph, component: dict[Location, int], assigned: dict[int, set[str]], chosen: int
) -> Iterator[Edge]:
    """The edges of a program in which all nests but one are a location each."""
    one: dict[int, Location] = {}
    for place, nest in component.items():
        if nest in assigned and nest != chosen:
            one.setdefault(nest, place)
    fresh = max(component) + 1
    for edge in program.edges:
        source, target = component[edge.source], component[edge.target]
        if source == target and source in one:
            continue
        start = one.get(source, edge.source)
        if target not in one:
            yield replace(edge, source=start)
            continue
        yield replace(edge, source=start, target=fresh, loop=None)
        unknown = tuple((name, None) for name in sorted(assigned[target]))
        yield Edge(fresh, one[target], (), unknown)
        fresh += 1


NEAR = 60
"""The most locations before a nest that are looked at with it, where all that is before it is too much."""


def near(program: ControlFlowGraph) -> ControlFlowGraph:
    """The program of one nest with the last locations before it, and nothing behind it.

    Who comes from farther away finds any value in what may have been assigned until there.
    """
    before = incoming(program.edges)
    heads = {edge.target for edge in program.edges if edge.loop is not None}
    behind = reachable(heads, [(edge.source, edge.target) for edge in program.edges])
    backward = Reachability([(edge.target, edge.source) for edge in program.edges])
    nest = backward.of(heads) & behind
    kept = {*nest, program.entry}
    work = sorted(nest)
    for place in work:
        new = sorted({edge.source for edge in before.get(place, ())} - kept)[: NEAR + len(nest) - len(work)]
        kept.update(new)
        work += new
    edges: list[Edge] = []
    starts: dict[Location, Location] = {}
    fresh = 1 + max(max(edge.source, edge.target) for edge in program.edges)
    for edge in program.edges:
        if edge.source in kept and (edge.target in kept or edge.source in nest):
            edges.append(edge if edge.target in kept else replace(edge, target=program.exit))
        elif edge.target in kept:
            if edge.source not in starts:
                starts[edge.source] = fresh + len(starts)
                updates = _on_the_way(program, backward.of([edge.source]))
                edges.append(Edge(program.entry, starts[edge.source], (), updates))
            edges.append(replace(edge, source=starts[edge.source]))
    return replace(program, edges=edges)


def _on_the_way(program: ControlFlowGraph, places: set[Location]) -> tuple[tuple[str, Linear | None], ...]:
    """What all that is assigned between these locations is after it: its first value, or any where it changes
    after that."""
    steps.take(len(program.edges) // 8)
    first = [edge for edge in program.edges if edge.source == program.entry]
    values: dict[str, Linear | None] = dict(first[0].updates) if len(first) == 1 else {}
    for edge in program.edges:
        if edge.target in places and (edge.source != program.entry or len(first) > 1):
            values.update((name, None) for name, _ in edge.updates)
    return tuple(sorted(values.items(), key=lambda each: each[0]))


Count = Literal["iterations", "backedges"]


@dataclass(frozen=True)
class AnalysisOptions:
    """What to count, whether functions that are called cost what their own loops do, and how many steps the
    analysis of a function takes at most."""

    calls: bool = False
    count: Count = "iterations"
    steps: float = math.inf


@dataclass(frozen=True)
class LoopAnalysis:
    """The back edges of a loop, or why there is no bound."""

    backedges: Expression
    reason: str | None = None


def analyse(
    function: CFunction, unit: TranslationUnit, options: AnalysisOptions = AnalysisOptions()
) -> FunctionBounds:
    """The bounds of a function. What cannot be analysed is unbounded, with a reason; nothing is raised."""
    try:
        return _Analysis.of(unit, options).bounds(function)
    except Exception as error:  # Whatever a stranger's code leads to, the other functions have bounds.
        return unbounded(function, f"it cannot be analysed ({type(error).__name__})")


def needed(function: CFunction, unit: TranslationUnit, options: AnalysisOptions) -> Iterator[CFunction]:
    """The functions to be analysed before it, those first that others need: none if calls do not count."""
    return _Analysis.of(unit, options).before(function)


class _Analysis:
    """The analysis of the functions of one unit, with what it found of functions that others call."""

    _last: ClassVar[_Analysis | None] = None

    def __init__(self, unit: TranslationUnit, options: AnalysisOptions) -> None:
        self._unit = unit
        self._options = options
        self._effects = effects_of(unit)
        self._functions = {each.name: each for each in [*unit.helpers.values(), *unit.functions]}
        self._known: dict[str, FunctionBounds] = {}
        self._recursive = recursive(self._effects) if options.calls else frozenset()

    @classmethod
    def of(cls, unit: TranslationUnit, options: AnalysisOptions) -> _Analysis:
        """The analysis of a unit: that of the last call, if it was of the same."""
        last = cls._last
        if last is None or last._unit is not unit or last._options != options:
            last = cls._last = cls(unit, options)
        return last

    def bounds(self, function: CFunction) -> FunctionBounds:
        """The bounds of a function."""
        if self._functions.get(function.name) is not function:
            return self._bounds(function)
        if function.name not in self._known:
            self._known[function.name] = self._bounds(function)
        return self._known[function.name]

    def before(self, function: CFunction, seen: set[str] | None = None) -> Iterator[CFunction]:
        """The functions whose bounds those of a function need and that are not known, those first that others
        need."""
        seen = set() if seen is None else seen
        if not self._options.calls or function.name in self._recursive or function.name in self._known:
            return
        for name in sorted(self._effects[function.name].calls & set(self._functions) - seen):
            seen.add(name)
            yield from self.before(self._functions[name], seen)
            if name not in self._known:
                yield self._functions[name]

    def _bounds(self, function: CFunction) -> FunctionBounds:
        called = self._called(function)
        with steps.limited(self._options.steps) as count:
            try:
                found = self._within_limit(function, called)
            except steps.TooManySteps:
                return unbounded(function, OUT_OF_STEPS, count.taken)
        # The sum is no part of the search: without steps that are left there is one of what was found.
        return replace(_answer(function, *found, self._options), steps=count.taken)

    def _within_limit(
        self, function: CFunction, called: Mapping[str, Callee]
    ) -> tuple[list[LoopInfo], list[LoopAnalysis], LoopAnalysis]:
        costly = {name: each.parameters for name, each in called.items()}
        program = lower(function, self._unit, self._effects, costly)
        if program.unknown is not None:
            unknown = LoopAnalysis(INFINITY, program.unknown)
            return program.loops, [unknown] * len(program.loops), LoopAnalysis(expression.ZERO)
        bounds, calls = bounds_of(program, called)
        if function.name in self._recursive:
            calls = LoopAnalysis(INFINITY, "it calls itself")
        return program.loops, bounds, calls

    def _called(self, function: CFunction) -> dict[str, Callee]:
        """The functions that it calls and that cost something, where calls count."""
        if not self._options.calls or function.name in self._recursive:
            return {}
        found = {}
        for name in sorted(self._effects[function.name].calls & set(self._functions)):
            bounds = self.bounds(self._functions[name])
            if bounds.bound != "0":
                found[name] = Callee(parameters_of(self._functions[name]), expression.parse(bounds.bound))
        return found


def bounds_of(
    program: ControlFlowGraph, called: Mapping[str, Callee] | None = None
) -> tuple[list[LoopAnalysis], LoopAnalysis]:
    """The back edges of each loop of a program, and the cost of its calls."""
    if not program.loops and not program.calls:
        return [], LoopAnalysis(expression.ZERO)
    try:
        with steps.limited(steps.left() * WHOLE):
            bounding = _bounding(paths(sliced(program)))
            found = [_loop(bounding, index) for index in range(len(program.loops))]
            cost = cost_of_calls(bounding, called or {})
    except _TOO_MUCH as problem:
        lost = LoopAnalysis(INFINITY, _reason(problem)) if program.calls else LoopAnalysis(expression.ZERO)
        return _one_by_one(program, _reason(problem)), lost
    reason = "the cost of a function that it calls has no bound" if cost.infinite else None
    return found, LoopAnalysis(cost, reason)


OUT_OF_STEPS = "its analysis takes more steps than --timeout gives it"
WHOLE = 2 / 3
"""The share of the steps of a function that it has as a whole; with the rest its nests are analysed alone."""
NEAR_STEPS = 4_000
"""The most steps that a nest has with the last locations before it; most take half of them."""
_TOO_MUCH = (TooManyPaths, steps.TooManySteps)


def _reason(problem: Exception) -> str:
    return OUT_OF_STEPS if isinstance(problem, steps.TooManySteps) else "there are too many paths through it"


def _one_by_one(program: ControlFlowGraph, why: str) -> list[LoopAnalysis]:
    """The back edges of each loop, where the nests of loops are analysed on their own, and why they are."""
    component = components([program.entry], [(edge.source, edge.target) for edge in program.edges])
    repeated = {edge.loop for edge in program.edges if component[edge.source] == component[edge.target]}
    found = [
        LoopAnalysis(INFINITY, why) if number in repeated else LoopAnalysis(ZERO)
        for number in range(len(program.loops))
    ]  # fmt: skip
    alone: list[tuple[frozenset[int], ControlFlowGraph]] = []
    try:
        for numbers, nest in nests(program):
            alone.append((numbers, nest))
            with steps.limited(min(NEAR_STEPS, steps.left())):
                for number, answer in _alone(nest, near, sorted(numbers)):
                    found[number] = answer
    except steps.TooManySteps:
        alone = []  # the others are never reached
    waiting = [(numbers, nest) for numbers, nest in alone if _open(found, numbers)]
    for behind, (numbers, nest) in enumerate(waiting):
        with steps.limited(steps.left() / (len(waiting) - behind)):
            for number, answer in _alone(nest, lambda all_before: all_before, _open(found, numbers)):
                found[number] = answer
        if not steps.left():
            break
    if why == OUT_OF_STEPS:  # as a whole it may have a bound
        return [LoopAnalysis(INFINITY, why) if each.backedges.infinite else each for each in found]
    return found


def _open(found: Sequence[LoopAnalysis], numbers: Iterable[int]) -> list[int]:
    """Those of some loops that have no bound."""
    return [number for number in sorted(numbers) if found[number].backedges.infinite]


def _alone(
    nest: ControlFlowGraph, view: Callable[[ControlFlowGraph], ControlFlowGraph], numbers: Sequence[int]
) -> Iterator[tuple[int, LoopAnalysis]]:
    """The back edges of loops of a nest, as far as its steps last."""
    try:
        bounding = _bounding(paths(sliced(view(nest))))
        for number in numbers:
            yield number, _loop(bounding, number)
    except _TOO_MUCH as problem:
        for number in numbers:
            yield number, LoopAnalysis(INFINITY, _reason(problem))


def _loop(bounding: BoundSolver, number: int) -> LoopAnalysis:
    backedges = bounding.loop(number)
    return LoopAnalysis(backedges, bounding.reason(number) if backedges.infinite else None)


def _bounding(system: System) -> BoundSolver:
    """What bounds a system, of which transitions that its guards or invariants forbid are gone."""
    solver = Solver()
    system = split(feasible(system, solver))
    invariants = Invariants(system, solver)
    kept = [each for each in system.transitions if solver.feasible(invariants.before(each))]
    if len(kept) < len(system.transitions):
        system = renumbered(system, kept)
        invariants = Invariants(system, solver)
    return BoundSolver(system, Constraints(system, invariants, solver))


def _answer(
    function: CFunction,
    loops: Sequence[LoopInfo],
    bounds: Sequence[LoopAnalysis],
    calls: LoopAnalysis,
    options: AnalysisOptions,
) -> FunctionBounds:
    found, total = [], calls.backedges
    for loop, bounded in zip(loops, bounds, strict=True):
        cost = bounded.backedges
        if options.count == "iterations" and not loop.nested:
            cost = cost + ONE
        total = total + cost
        place = (loop.first_line, loop.last_line, loop.column)
        found.append(LoopBound(*place, str(cost), cost.cls, bounded.reason, loop.nested))
    found.sort(key=lambda each: (each.first_line, each.column, -each.last_line))
    reason = next((each.reason for each in found if each.reason is not None), calls.reason)
    return FunctionBounds(
        function.name, function.line, function.column, tuple(found), str(total), total.cls,
        reason if total.infinite else None,
    )  # fmt: skip
