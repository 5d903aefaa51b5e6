"""What the text of a function tells of what it changes, and of what functions change that it calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pycparser import c_ast

from perun.collect.bounds.lowering.effects import HARMLESS, NO_RETURN, Effects
from perun.collect.bounds.lowering.places import Places
from perun.collect.bounds.lowering.scope import Mentions, mentions

if TYPE_CHECKING:
    from perun.collect.bounds.front import Function, Unit


def copied_fields(function: Function, unit: Unit, read: Mentions) -> set[str]:
    """The fields that a function changes with structures as a whole: by `*a = b`, or by `memset(a, ...)`."""
    if not read.wholes:
        return set()
    places = Places(unit, read, {})
    parameters = getattr(function.node.decl.type.args, "params", None) or ()
    for each in (*parameters, *read.declared):
        if isinstance(each, c_ast.Decl) and isinstance(each.name, str):
            places.scopes.declare(each.name, places.types.of(each))
    kinds = {places.type_of(target) for target in read.wholes}
    return {name for kind in kinds for name in places.types.field_names(kind)}


def effects_of(unit: Unit) -> dict[str, Effects]:
    """The effects of each function of a unit, those of what it calls included."""
    found: dict[str, Effects] = {}
    for each in [*unit.functions, *unit.helpers.values()]:
        read = mentions(each.node.body)
        written = {*read.assigned, *read.addressed}
        found[each.name] = Effects(written, read.fields | copied_fields(each, unit, read), set(read.calls))
    changed = True
    while changed:
        changed = False
        for effects in found.values():
            before = (len(effects.written), len(effects.fields), effects.unknown)
            for called in list(effects.calls):
                inner = found.get(called)
                if inner is None:
                    effects.unknown |= called not in HARMLESS and called not in NO_RETURN
                    continue
                effects.written |= inner.written
                effects.fields |= inner.fields
                effects.unknown |= inner.unknown
            changed |= before != (len(effects.written), len(effects.fields), effects.unknown)
    return found
