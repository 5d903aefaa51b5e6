"""The analysis of one function, from its syntax tree to the bounds of its loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from perun.collect.bounds import expression
from perun.collect.bounds.answer import FunctionBounds, LoopBound
from perun.collect.bounds.bounding import Bounding
from perun.collect.bounds.constraints import Constraints
from perun.collect.bounds.expression import INFINITY, ONE, Expression
from perun.collect.bounds.invariants import Invariants
from perun.collect.bounds.lowering import lower
from perun.collect.bounds.lowering.effects import Effects, effects_of
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
    """What to count, and whether functions that are called cost what their own loops do."""

    calls: bool = False
    count: Count = "iterations"


@dataclass(frozen=True)
class Bounded:
    """The back edges of a loop, or why there is no bound."""

    backedges: Expression
    reason: str | None = None


def analyse(function: Function, unit: Unit, options: AnalysisOptions = AnalysisOptions()) -> FunctionBounds:
    """The bounds of a function. What cannot be analysed is unbounded, with a reason; nothing is raised."""
    try:
        program = lower(function, unit, _effects(unit))
        if program.unknown is not None:
            bounds = [Bounded(INFINITY, program.unknown)] * len(program.loops)
        else:
            bounds = bounds_of(program)
    except Exception as error:  # Whatever a stranger's code leads to, the other functions have bounds.
        return _unread(function, f"it cannot be analysed ({type(error).__name__})", options)
    return _answer(function, program.loops, bounds, options)


def bounds_of(program: Program) -> list[Bounded]:
    """The back edges of each loop of a program."""
    if not program.loops:
        return []
    try:
        system = paths(sliced(program))
    except TooManyPaths:
        return [Bounded(INFINITY, "there are too many paths through its function")] * len(program.loops)
    bounding = _bounding(split(feasible(system, solver := Solver())), solver)
    found = []
    for index in range(len(program.loops)):
        backedges = bounding.loop(index)
        found.append(Bounded(backedges, bounding.reason(index) if backedges.infinite else None))
    return found


def _bounding(system: System, solver: Solver) -> Bounding:
    """What bounds a system, of which transitions that its invariants forbid are gone."""
    invariants = Invariants(system, solver)
    kept = [each for each in system.transitions if solver.feasible(invariants.before(each))]
    if len(kept) < len(system.transitions):
        system = renumbered(system, kept)
        invariants = Invariants(system, solver)
    return Bounding(system, Constraints(system, invariants, solver))


_LAST: list[tuple[Unit, dict[str, Effects]]] = []


def _effects(unit: Unit) -> dict[str, Effects]:
    """The effects of the functions of a unit, remembered for the one that was asked for last."""
    if not _LAST or _LAST[0][0] is not unit:
        _LAST[:] = [(unit, effects_of(unit))]
    return _LAST[0][1]


def _unread(function: Function, reason: str, options: AnalysisOptions) -> FunctionBounds:
    loops = [LoopInfo(each.first_line, each.last_line, each.column, 0, False) for each in function.loops]
    return _answer(function, loops, [Bounded(INFINITY, reason)] * len(loops), options)


def _answer(
    function: Function, loops: Sequence[LoopInfo], bounds: Sequence[Bounded], options: AnalysisOptions
) -> FunctionBounds:
    found, total = [], expression.ZERO
    for loop, bounded in zip(loops, bounds, strict=True):
        cost = bounded.backedges
        if options.count == "iterations" and not loop.nested:
            cost = cost + ONE
        total = total + cost
        found.append(
            LoopBound(loop.first_line, loop.last_line, loop.column, str(cost), cost.cls, bounded.reason,
            loop.nested)
        )
    found.sort(key=lambda each: (each.first_line, each.column, -each.last_line))
    reason = next((each.reason for each in found if each.reason is not None), None)
    return FunctionBounds(
        function.name, function.line, function.column, tuple(found), str(total), total.cls,
        reason if total.infinite else None,
    )  # fmt: skip
