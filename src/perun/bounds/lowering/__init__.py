"""Lowering: a function of C becomes a control flow graph with linear guards and updates.

What is not linear becomes a new variable with linear limits, or any value. Assumed are: no overflow but where
programs rely on it (types narrower than `int`, unsigned counters that are decreased below zero), and that
stores through pointers change no variable whose address the function does not take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from perun.bounds.lowering.expressions import Expressions
from perun.bounds.lowering.graph import Graph
from perun.bounds.lowering.places import Places, copied_fields
from perun.bounds.lowering.statements import Statements
from perun.bounds.lowering.types import Effects, mentions
from perun.bounds.program import Edge, Linear, Program, variable

if TYPE_CHECKING:
    from perun.bounds.front.unit import CFunction, TranslationUnit

__all__ = ["lower"]


def lower(
    function: CFunction,
    unit: TranslationUnit,
    effects: dict[str, Effects],
    costly: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Program:
    """The graph of a function.

    `costly` are functions whose calls are recorded, with the names of their parameters. It is built twice, as
    only then all globals and fields are known that a call early in the text may change.
    """
    mentioned = mentions(function.node.body)
    mentioned.fields |= copied_fields(function, unit, mentioned)
    places = Places(unit, mentioned, effects)
    _built(function, places, costly)
    again = Places(unit, mentioned, effects)
    again.remember(places)
    return _built(function, again, costly)


def _built(function: CFunction, places: Places, costly: Mapping[str, Sequence[str]]) -> Program:
    graph = Graph()
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


def _with_inputs(program: Program, places: Places, start: int) -> Program:
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
