"""Splitting of locations: by the values of variables that only ever are one of a few constants.

Flags, states of machines and phases are such variables. Once a location knows its values, the paths that
these forbid are gone, and a phase that cannot come back is a component of its own.
"""

from __future__ import annotations

from perun.collect.bounds.linear import Linear, constant
from perun.collect.bounds.paths import System, Transition
from perun.collect.bounds.program import Location, components, reachable
from perun.collect.bounds.solver import Facts, Solver
from perun.collect.bounds.steps import take

MAX_VALUES = 12
"""The most values of a variable by which locations are split."""
MAX_TRANSITIONS = 300
Values = tuple[tuple[str, int], ...]


def feasible(system: System, solver: Solver) -> System:
    """The system without transitions whose guards contradict each other, and what only these lead to."""
    return renumbered(system, [each for each in system.transitions if solver.feasible(Facts(each.guards))])


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
