"""Slicing: only variables that decide whether a loop goes on matter; the others are dropped (Weiser, 1981).

Dropping a guard or a variable allows more runs, never fewer, so bounds of the slice are bounds of the
program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from perun.bounds.paths import System, Transition
from perun.bounds.program import (
    ControlFlowGraph,
    Edge,
    Linear,
    Location,
    components,
    constant,
    incoming,
    outgoing,
    reachable,
    topological_order,
)
from perun.bounds.solver import Inequalities, Solver
from perun.bounds.steps import take


def sliced(program: ControlFlowGraph) -> ControlFlowGraph:
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


def relevant_variables(program: ControlFlowGraph) -> set[str]:
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


def _cyclic(program: ControlFlowGraph) -> set[Location]:
    """Locations on cycles."""
    pairs = [(edge.source, edge.target) for edge in program.edges]
    component = components([program.entry], pairs)
    inside = [pair for pair in pairs if component[pair[0]] == component[pair[1]]]
    return {place for pair in inside for place in pair}


def _deciding(program: ControlFlowGraph, after: dict[Location, list[Edge]]) -> list[Linear]:
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
    program: ControlFlowGraph, after: dict[Location, list[Edge]]
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
    program: ControlFlowGraph, after: dict[Location, list[Edge]], bits: dict[Location, int]
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


# Splitting of locations: by the values of variables that only ever are one of a few constants.
#
# Flags, states of machines and phases are such variables. Once a location knows its values, the paths that
# these forbid are gone, and a phase that cannot come back is a component of its own.

MAX_VALUES = 12
"""The most values of a variable by which locations are split."""
MAX_TRANSITIONS = 300
Values = tuple[tuple[str, int], ...]


def feasible(system: System, solver: Solver) -> System:
    """The system without transitions whose guards contradict each other, and what only these lead to."""
    return renumbered(
        system, [each for each in system.transitions if solver.feasible(Inequalities(each.guards))]
    )


def renumbered(system: System, transitions: list[Transition]) -> System:
    """The system with those of these transitions that can be reached, numbered in their order."""
    places = reachable([system.program.entry], [(each.source, each.target) for each in transitions])
    transitions = [each for each in transitions if each.source in places]
    found = tuple(
        Transition(number, each.source, each.target, each.guards, each.updates, each.loop)
        for number, each in enumerate(transitions)
    )
    return System(system.program, found, system.ranges, system.origins)


def split(system: System) -> System:
    """The system with its locations split; the same where nothing is gained or it would grow too large."""
    names = _few_valued(system)
    if not names:
        return system
    after: dict[Location, list[Transition]] = {}
    for each in system.transitions:
        after.setdefault(each.source, []).append(each)
    places: dict[tuple[Location, Values], Location] = {(system.program.entry, ()): system.program.entry}
    fresh = max(max(pair) for pair in system.pairs) + 1
    found: list[Transition] = []
    work: list[tuple[Location, Values]] = [(system.program.entry, ())]
    while work:
        place, values = work.pop()
        known = {name: constant(value) for name, value in values}
        for each in after.get(place, ()):
            take(1 + len(each.guards) + len(each.updates))
            taken = _under(each, known)
            if taken is None:
                continue
            guards, updates = taken
            following = _values(names, known, updates) if each.target != system.program.exit else ()
            key = (each.target, following)
            if key not in places:
                places[key] = each.target if each.target == system.program.exit else fresh
                fresh += 1
                work.append(key)
            source = places[place, values]
            found.append(Transition(len(found), source, places[key], guards, updates, each.loop))
            if len(found) > MAX_TRANSITIONS:
                return system
    origins = {new: place for (place, _), new in places.items()}
    return renumbered(System(system.program, tuple(found), system.ranges, origins), found)


def _under(
    transition: Transition, known: dict[str, Linear]
) -> tuple[tuple[Linear, ...], dict[str, Linear]] | None:
    """The guards and updates of a transition where some variables are known; `None` where it cannot be
    taken."""
    guards = []
    for guard in transition.guards:
        value = guard.substitute(known)
        if value.is_constant:
            if value.constant < 0:
                return None
        else:
            guards.append(value)
    return tuple(guards), {name: value.substitute(known) for name, value in transition.updates.items()}


def _values(names: list[str], known: dict[str, Linear], updates: dict[str, Linear]) -> Values:
    found = []
    for name in names:
        value = updates.get(name, known.get(name))
        if value is not None and value.is_constant:
            found.append((name, value.constant))
    return tuple(found)


def _few_valued(system: System) -> list[str]:
    """Variables that guards on cycles mention, and to which only a few constants are assigned there."""
    component = components([system.program.entry], system.pairs)
    cyclic = [each for each in system.transitions if component[each.source] == component[each.target]]
    guarding = {name for each in cyclic for guard in each.guards for name in guard.names}
    values: dict[str, set[int]] = {}
    changing: set[str] = set()
    copies: dict[str, set[str]] = {}
    for each in cyclic:
        for name, value in each.updates.items():
            if value.is_constant:
                values.setdefault(name, set()).add(value.constant)
            elif value == Linear(0, ((name, 1),)) or value == Linear(0, ((f"?{name}", 1),)):
                continue
            elif len(value.terms) == 1 and value.constant == 0 and value.terms[0][1] == 1:
                copies.setdefault(name, set()).add(value.terms[0][0])
            else:
                changing.add(name)
    few = {name for name in values if len(values[name]) <= MAX_VALUES} - changing
    while True:
        lost = {name for name in few if not copies.get(name, set()) <= few}
        if not lost:
            break
        few -= lost
    return sorted(few & guarding)
