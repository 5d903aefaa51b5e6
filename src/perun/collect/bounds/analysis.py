"""The analysis of one function, from its syntax tree to the bounds of its loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from perun.collect.bounds.answer import UNBOUNDED, UNBOUNDED_CLASS, FunctionBounds, LoopBound

if TYPE_CHECKING:
    from perun.collect.bounds.front import Function, Unit

Count = Literal["iterations", "backedges"]


@dataclass(frozen=True)
class AnalysisOptions:
    """What to count, and whether functions that are called cost what their own loops do."""

    calls: bool = False
    count: Count = "iterations"


def analyse(function: Function, unit: Unit, options: AnalysisOptions = AnalysisOptions()) -> FunctionBounds:
    """The bounds of a function. What cannot be analysed is unbounded, with a reason; nothing is raised."""
    loops = tuple(
        LoopBound(each.first_line, each.last_line, each.column, UNBOUNDED, UNBOUNDED_CLASS, "not analysed yet")
        for each in function.loops
    )
    return FunctionBounds(function.name, function.line, function.column, loops)
