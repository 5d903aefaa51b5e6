"""Slicing: only variables that decide whether a loop goes on matter; the others are dropped (Weiser, 1981).

Dropping a guard or a variable allows more runs, never fewer, so bounds of the slice are bounds of the
program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from perun.collect.bounds.linear import Linear
from perun.collect.bounds.program import (
    Edge,
    Location,
    Program,
    components,
    incoming,
    outgoing,
    topological_order,
)
from perun.collect.bounds.steps import take


def sliced(program: Program) -> Program:
    """The program without what decides on no loop."""
    relevant = relevant_variables(program) | set(program.inputs)
    return replace(program, edges=[_without(edge, relevant) for edge in program.edges])


def _without(edge: Edge, relevant: set[str]) -> Edge:
    guards = tuple(guard for guard in edge.guards if guard.names <= relevant)
    updates = tuple(
        (name, value if value is not None and value.names <= relevant else None)
        for name, value in edge.updates if name in relevant
    )  # fmt: skip
    return replace(edge, guards=guards, updates=updates)


def relevant_variables(program: Program) -> set[str]:
    """Variables of the conditions that leave loops, of the guards that they occur in, and all these depend
    on."""
    after = outgoing(program.edges)
    cyclic = _cyclic(program)
    relevant = {held for call in program.calls for _, held in call.arguments}
    for guard in _deciding(program, after):
        relevant |= guard.names
    controlled = _control_dependences(program, after)
    deciding: set[Location] = set()
    while True:
        before = len(relevant)
        for edge in program.edges:
            take()
            for name, value in edge.updates:
                if name in relevant:
                    relevant |= value.names if value is not None else frozenset()
                    if edge.source in cyclic:
                        deciding.update((edge.source, *controlled.pop(edge.source, ())))
            for guard in edge.guards:
                if guard.names & relevant:
                    relevant |= guard.names
        while deciding:
            for other in after.pop(deciding.pop(), ()):
                for guard in other.guards:
                    relevant |= guard.names
        if len(relevant) == before:
            return relevant


def _cyclic(program: Program) -> set[Location]:
    """Locations on cycles."""
    pairs = [(edge.source, edge.target) for edge in program.edges]
    component = components([program.entry], pairs)
    inside = [pair for pair in pairs if component[pair[0]] == component[pair[1]]]
    return {place for pair in inside for place in pair}


def _deciding(program: Program, after: dict[Location, list[Edge]]) -> list[Linear]:
    """The guards at locations where control may leave a loop."""
    before = incoming(program.edges)
    found: dict[Linear, None] = {}
    for head in {edge.target for edge in program.edges if edge.loop is not None}:
        body = {head}
        work = [edge.source for edge in before.get(head, ()) if edge.loop is not None]
        while work:
            place = work.pop()
            if place not in body:
                body.add(place)
                work.extend(edge.source for edge in before.get(place, ()))
        for place in body:
            if any(edge.target not in body for edge in after.get(place, ())):
                found.update((guard, None) for edge in after[place] for guard in edge.guards)
    return list(found)


def _control_dependences(
    program: Program, after: dict[Location, list[Edge]]
) -> dict[Location, list[Location]]:
    """The branches that each location depends on (Ferrante, Ottenstein, Warren, 1987)."""
    places = sorted({place for edge in program.edges for place in (edge.source, edge.target)})
    bits = {place: 1 << index for index, place in enumerate(places)}
    dominated = _postdominators(program, after, bits)
    found: dict[Location, list[Location]] = {}
    for branch, edges in after.items():
        targets = {edge.target for edge in edges}
        if len(targets) < 2:
            continue
        reached = 0
        for target in targets:
            reached |= dominated[target]
        for index in _ones(reached & ~(dominated[branch] & ~bits[branch])):
            found.setdefault(places[index], []).append(branch)
    return found


def _postdominators(
    program: Program, after: dict[Location, list[Edge]], bits: dict[Location, int]
) -> dict[Location, int]:
    """For each location those that every way from it to an end passes, as a set of bits."""
    everything = (1 << len(bits)) - 1
    found = {place: everything if place in after else bits[place] for place in bits}
    order, _ = topological_order(program)
    backward = [place for place in reversed(order) if place in after]
    changed = True
    while changed:
        changed = False
        take(len(backward))
        for place in backward:
            value = everything
            for edge in after[place]:
                value &= found[edge.target]
            value |= bits[place]
            if value != found[place]:
                found[place], changed = value, True
    return found


def _ones(number: int) -> Iterator[int]:
    """The positions of the ones of a binary number, from the lowest on."""
    digits = f"{number:b}"[::-1]
    index = digits.find("1")
    while index >= 0:
        yield index
        index = digits.find("1", index + 1)
