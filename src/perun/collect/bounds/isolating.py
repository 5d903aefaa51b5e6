"""Outermost nests of loops on their own, where a function as a whole is too large."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from perun.collect.bounds.program import Edge, Location, Program, components


def nests(program: Program) -> Iterator[tuple[frozenset[int], Program]]:
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
            edges = list(_collapsed(program, component, assigned, chosen))
            yield frozenset(loops[chosen]), replace(program, edges=edges, calls=[])


def _collapsed(
    program: Program, component: dict[Location, int], assigned: dict[int, set[str]], chosen: int
) -> Iterator[Edge]:
    """The edges of a program in which all nests but one are a location each."""
    one: dict[int, Location] = {}
    for place, number in component.items():
        if number in assigned and number != chosen:
            one.setdefault(number, place)
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
