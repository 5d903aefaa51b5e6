"""What the bounds of one function depend on, as a digest.

A function with the digest of an earlier one has its bounds, wherever in the file it stands now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pycparser import c_ast

from perun.collect.bounds import cache
from perun.collect.bounds.answer import FunctionBounds
from perun.collect.bounds.found import SourceBounds
from perun.collect.bounds.front import Function, Unit
from perun.collect.bounds.lowering.effects import Effects
from perun.collect.bounds.lowering.summaries import effects_of


def digester(unit: Unit, options: object) -> Callable[[Function], str]:
    """What makes the digests of the functions of a unit.

    :param options: of the analysis.
    """
    constants, unknown = sorted(unit.constants.items()), sorted(unit.unknown_types)
    context = cache.key_of(_declarations(unit), constants, unknown, options)
    effects = effects_of(unit)

    def digest(function: Function) -> str:
        others = sorted(_names(function.node) & effects.keys())
        known = [(name, _plain(effects[name])) for name in others]
        places = [
            (loop.first_line - function.line, loop.last_line - function.line, loop.column)
            for loop in function.loops
        ]
        return cache.key_of(context, _tree(function.node), function.column, places, known)

    return digest


def at(known: FunctionBounds, function: Function) -> FunctionBounds:
    """The bounds that are known of a function, which stands elsewhere now."""
    moved = function.line - known.line
    loops = tuple(
        replace(loop, first_line=loop.first_line + moved, last_line=loop.last_line + moved)
        for loop in known.loops
    )
    return replace(known, line=function.line, column=function.column, loops=loops)


def by_digest(found: SourceBounds | None) -> Mapping[str, FunctionBounds]:
    """The functions of an earlier version of a source by their digests."""
    if found is None:
        return {}
    return {digest: one for digest, one in zip(found.digests, found.functions, strict=True) if digest}


def _declarations(unit: Unit) -> list[Any]:
    named = (unit.globals, unit.prototypes, unit.typedefs, unit.structs, unit.unions, unit.enums)
    return [[(name, _tree(node)) for name, node in sorted(group.items())] for group in named]


def _plain(effects: Effects) -> list[Any]:
    sets: Iterable[set[str]] = (effects.written, effects.fields, effects.calls)
    return [*map(sorted, sets), effects.unknown]


def _names(node: Any) -> set[str]:
    """The names that occur in a syntax tree, those of called functions among them."""
    found = {str(node.name)} if isinstance(node, c_ast.ID) else set()
    for _, child in node.children():
        found |= _names(child)
    return found


def _tree(node: Any) -> Any:
    """A syntax tree without the places of its nodes."""
    values = [getattr(node, name) for name in node.attr_names]
    return [type(node).__name__, values, [(name, _tree(child)) for name, child in node.children()]]
