"""The analysis of one function, from its syntax tree to the bounds of its loops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from perun.collect.bounds import expression, steps
from perun.collect.bounds.answer import FunctionBounds, LoopBound, unbounded
from perun.collect.bounds.bounding import Bounding
from perun.collect.bounds.calls import Callee, cost_of_calls, parameters_of, recursive
from perun.collect.bounds.constraints import Constraints
from perun.collect.bounds.expression import INFINITY, ONE, Expression
from perun.collect.bounds.invariants import Invariants
from perun.collect.bounds.isolating import nests
from perun.collect.bounds.lowering import lower
from perun.collect.bounds.lowering.summaries import effects_of
from perun.collect.bounds.paths import System, TooManyPaths, paths
from perun.collect.bounds.program import LoopInfo, Program
from perun.collect.bounds.slicing import sliced
from perun.collect.bounds.solver import Solver
from perun.collect.bounds.splitting import feasible, renumbered, split

if TYPE_CHECKING:
    from perun.collect.bounds.front import Function, Unit

Count = Literal["iterations", "backedges"]


@dataclass(frozen=True)
class AnalysisOptions:
    """What to count, whether functions that are called cost what their own loops do, and how many steps the
    analysis of a function takes at most."""

    calls: bool = False
    count: Count = "iterations"
    steps: float = math.inf


@dataclass(frozen=True)
class Bounded:
    """The back edges of a loop, or why there is no bound."""

    backedges: Expression
    reason: str | None = None


def analyse(function: Function, unit: Unit, options: AnalysisOptions = AnalysisOptions()) -> FunctionBounds:
    """The bounds of a function. What cannot be analysed is unbounded, with a reason; nothing is raised."""
    try:
        return _Analysis.of(unit, options).bounds(function)
    except Exception as error:  # Whatever a stranger's code leads to, the other functions have bounds.
        return unbounded(function, f"it cannot be analysed ({type(error).__name__})")


def needed(function: Function, unit: Unit, options: AnalysisOptions) -> Iterator[Function]:
    """The functions that are to be analysed before, those first that others need: none if calls do not count.
    """
    return _Analysis.of(unit, options).before(function)


class _Analysis:
    """The analysis of the functions of one unit, with what it found of functions that others call."""

    _last: ClassVar[_Analysis | None] = None

    def __init__(self, unit: Unit, options: AnalysisOptions) -> None:
        self._unit = unit
        self._options = options
        self._effects = effects_of(unit)
        self._functions = {each.name: each for each in [*unit.helpers.values(), *unit.functions]}
        self._known: dict[str, FunctionBounds] = {}
        self._recursive = recursive(self._effects) if options.calls else frozenset()

    @classmethod
    def of(cls, unit: Unit, options: AnalysisOptions) -> _Analysis:
        """The analysis of a unit: that of the last call, if it was of the same."""
        last = cls._last
        if last is None or last._unit is not unit or last._options != options:
            last = cls._last = cls(unit, options)
        return last

    def bounds(self, function: Function) -> FunctionBounds:
        """The bounds of a function."""
        if self._functions.get(function.name) is not function:
            return self._bounds(function)
        if function.name not in self._known:
            self._known[function.name] = self._bounds(function)
        return self._known[function.name]

    def before(self, function: Function, seen: set[str] | None = None) -> Iterator[Function]:
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

    def _bounds(self, function: Function) -> FunctionBounds:
        called = self._called(function)
        with steps.limited(self._options.steps) as count:
            try:
                found = self._within_limit(function, called)
            except steps.TooManySteps:
                found = unbounded(function, OUT_OF_STEPS)
        return replace(found, steps=count.taken)

    def _within_limit(self, function: Function, called: Mapping[str, Callee]) -> FunctionBounds:
        costly = {name: each.parameters for name, each in called.items()}
        program = lower(function, self._unit, self._effects, costly)
        if program.unknown is not None:
            bounds = [Bounded(INFINITY, program.unknown)] * len(program.loops)
            return _answer(function, program.loops, bounds, self._options)
        bounds, calls = bounds_of(program, called)
        if function.name in self._recursive:
            calls = Bounded(INFINITY, "it calls itself")
        return _answer(function, program.loops, bounds, self._options, calls)

    def _called(self, function: Function) -> dict[str, Callee]:
        """The functions that it calls and that cost something, where calls count."""
        if not self._options.calls or function.name in self._recursive:
            return {}
        found = {}
        for name in sorted(self._effects[function.name].calls & set(self._functions)):
            bounds = self.bounds(self._functions[name])
            if bounds.bound != "0":
                found[name] = Callee(parameters_of(self._functions[name]), expression.parse(bounds.bound))
        return found


def bounds_of(program: Program, called: Mapping[str, Callee] | None = None) -> tuple[list[Bounded], Bounded]:
    """The back edges of each loop of a program, and the cost of its calls."""
    if not program.loops and not program.calls:
        return [], Bounded(expression.ZERO)
    try:
        with steps.limited(steps.left() * WHOLE):
            bounding = _bounding(paths(sliced(program)))
            found = [_loop(bounding, index) for index in range(len(program.loops))]
            cost = cost_of_calls(bounding, called or {})
    except _TOO_MUCH as problem:
        lost = Bounded(INFINITY, _reason(problem)) if program.calls else Bounded(expression.ZERO)
        return _one_by_one(program, _reason(problem)), lost
    reason = "the cost of a function that it calls has no bound" if cost.infinite else None
    return found, Bounded(cost, reason)


OUT_OF_STEPS = "its analysis takes more steps than --timeout gives it"
WHOLE = 2 / 3
"""The share of the steps of a function that it has as a whole; with the rest its nests are analysed alone."""
_TOO_MUCH = (TooManyPaths, steps.TooManySteps)


def _reason(problem: Exception) -> str:
    return OUT_OF_STEPS if isinstance(problem, steps.TooManySteps) else "there are too many paths through it"


def _one_by_one(program: Program, why: str) -> list[Bounded]:
    """The back edges of each loop, where the nests of loops are analysed on their own, and why they are."""
    found = [Bounded(expression.ZERO) for _ in program.loops]
    alone = list(nests(program))
    for behind, (numbers, nest) in enumerate(alone):
        with steps.limited(steps.left() / (len(alone) - behind)):
            try:
                bounding = _bounding(paths(sliced(nest)))
            except _TOO_MUCH as problem:
                for number in numbers:
                    found[number] = Bounded(INFINITY, _reason(problem))
                continue
            for number in sorted(numbers):
                try:
                    found[number] = _loop(bounding, number)
                except steps.TooManySteps as problem:
                    found[number] = Bounded(INFINITY, _reason(problem))
    if why == OUT_OF_STEPS:  # as a whole it may have a bound
        return [Bounded(INFINITY, why) if each.backedges.infinite else each for each in found]
    return found


def _loop(bounding: Bounding, number: int) -> Bounded:
    backedges = bounding.loop(number)
    return Bounded(backedges, bounding.reason(number) if backedges.infinite else None)


def _bounding(system: System) -> Bounding:
    """What bounds a system, of which transitions that its guards or invariants forbid are gone."""
    solver = Solver()
    system = split(feasible(system, solver))
    invariants = Invariants(system, solver)
    kept = [each for each in system.transitions if solver.feasible(invariants.before(each))]
    if len(kept) < len(system.transitions):
        system = renumbered(system, kept)
        invariants = Invariants(system, solver)
    return Bounding(system, Constraints(system, invariants, solver))


def _answer(
    function: Function,
    loops: Sequence[LoopInfo],
    bounds: Sequence[Bounded],
    options: AnalysisOptions,
    calls: Bounded = Bounded(expression.ZERO),
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
