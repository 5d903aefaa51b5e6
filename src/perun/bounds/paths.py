"""Paths: the program as transitions between a few locations, each a path that is executed symbolically.

Locations that stay are the entry, the exit, the heads of loops, and joins where too many paths meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush

from perun.bounds.program import (
    ControlFlowGraph,
    Edge,
    Linear,
    Location,
    Range,
    outgoing,
    topological_order,
    variable,
)
from perun.bounds.steps import take

MAX_STATES = 24
"""The most different paths from one location to another, before a join on the way becomes a location of its
own."""
MAX_TRANSITIONS = 400
MAX_EFFORT = 400_000
"""The most guards and values that are looked at on all paths of a program; real functions need 150,000."""


class TooManyPaths(Exception):
    """A function has more paths than can be looked at."""


@dataclass(frozen=True, eq=False)
class Transition:
    """A path: under `guards` (each at least 0) it changes variables to values over those at its start.

    Names that begin with `?` are values of which only the guards say something.
    """

    number: int
    source: Location
    target: Location
    guards: tuple[Linear, ...]
    updates: Mapping[str, Linear]
    loop: int | None = None

    def after(self, value: Linear) -> Linear:
        """What an expression is after the transition, over the variables before it."""
        return value.substitute(self.updates)


def is_known(value: Linear) -> bool:
    """Whether an expression mentions variables only, not unknown values."""
    return not any(name.startswith("?") for name in value.names)


def afterwards(transition: Transition, guard: Linear) -> Linear:
    """A guard on values that a transition gives to variables, as one on these variables."""
    given = {
        value.terms[0][0]: variable(name) for name, value in transition.updates.items()
        if value.constant == 0 and len(value.terms) == 1 and value.terms[0][1] == 1
    }  # fmt: skip
    return guard.substitute({name: value for name, value in given.items() if name.startswith("?")})


@dataclass(frozen=True, eq=False)
class System:
    """The transitions of a program."""

    program: ControlFlowGraph
    transitions: tuple[Transition, ...]
    ranges: Mapping[str, Range] = field(default_factory=dict)
    origins: Mapping[Location, Location] = field(default_factory=dict)
    """The location of the program, for those that were split."""

    def places(self, place: Location) -> list[Location]:
        """The locations that one of the program was split into."""
        found = [each for each, origin in self.origins.items() if origin == place]
        return found or [place]

    @cached_property
    def pairs(self) -> list[tuple[Location, Location]]:
        """Source and target of each transition."""
        return [(each.source, each.target) for each in self.transitions]


class _State:
    """A path so far: its guards, by terms, and the values of variables."""

    __slots__ = ("guards", "values")

    def __init__(self, guards: dict[tuple[tuple[str, int], ...], int], values: dict[str, Linear]) -> None:
        self.guards, self.values = guards, values

    @property
    def key(self) -> tuple[frozenset[object], frozenset[object]]:
        return frozenset(self.guards.items()), frozenset(self.values.items())

    @property
    def size(self) -> int:
        """How much is known on the path."""
        return 1 + len(self.guards) + len(self.values)

    def along(self, edge: Edge, number: int, ranges: Mapping[str, Range]) -> _State | None:
        """The path with one more step, `None` where no run takes it."""
        guards = self.guards
        if edge.guards:
            guards = dict(guards)
            for guard in edge.guards:
                if not _strengthen(guards, guard.substitute(self.values)):
                    return None
        if not edge.updates:
            return _State(guards, self.values)
        values = dict(self.values)
        guards = dict(guards)
        for name, value in edge.updates:
            if value is not None:
                values[name] = value.substitute(self.values)
                continue
            unknown = variable(f"?{name}.{number}")
            values[name] = unknown
            low, high = ranges.get(name, (None, None))
            if low is not None:
                _strengthen(guards, unknown - low)
            if high is not None:
                _strengthen(guards, -unknown + high)
        return _State(guards, values)

    def forgetting(self, live: set[str]) -> _State:
        """The path where only live variables matter: the values of the others are any."""
        values = {}
        for name, value in self.values.items():
            if name in live:
                values[name] = value
            elif not name.startswith("$"):
                values[name] = variable(f"?{name}")
        return _State(_needed(self.guards, values.values()), values)


def _strengthen(guards: dict[tuple[tuple[str, int], ...], int], guard: Linear) -> bool:
    """Add a guard; false where it contradicts another."""
    if guard.is_constant:
        return guard.constant >= 0
    guard = guard.tightened()
    constant = min(guard.constant, guards.get(guard.terms, guard.constant))
    opposite = guards.get((-guard).terms)
    if opposite is not None and constant + opposite < 0:
        return False
    guards[guard.terms] = constant
    return True


def _needed(
    guards: dict[tuple[tuple[str, int], ...], int], values: Iterable[Linear]
) -> dict[tuple[tuple[str, int], ...], int]:
    """Guards without those that only limit an unknown value that nothing else mentions."""
    while True:
        counts: dict[str, int] = {}
        for value in values:
            for name, _ in value.terms:
                counts[name] = counts.get(name, 0) + 1
        for terms in guards:
            for name, _ in terms:
                counts[name] = counts.get(name, 0) + 1
        kept = {
            terms: constant for terms, constant in guards.items()
            if not any(name.startswith("?") and counts[name] == 1 for name, _ in terms)
        }  # fmt: skip
        if len(kept) == len(guards):
            return kept
        guards = kept


def paths(program: ControlFlowGraph) -> System:
    """The transitions of a program. Raises `TooManyPaths` where they are more than can be looked at."""
    order, retreating = topological_order(program)
    cuts = {program.entry, program.exit} | retreating
    cuts |= {call.place for call in program.calls if call.place in order}
    cuts |= {edge.target for edge in program.edges if edge.loop is not None and edge.target in order}
    after = {place: edges for place, edges in outgoing(program.edges).items() if place in order}
    live = _live(program, order)
    return System(program, _all(program, cuts, order, after, live), program.ranges)


def _all(
    program: ControlFlowGraph,
    cuts: set[Location],
    order: dict[Location, int],
    after: dict[Location, list[Edge]],
    live: dict[Location, set[str]],
) -> tuple[Transition, ...]:
    """The paths from each location that stays; a join of too many on the way stays from then on, too."""
    numbers = {id(edge): index for index, edge in enumerate(program.edges)}
    found: list[Transition] = []
    effort = 0
    starts = [(order[place], place) for place in cuts if place in order]
    heapify(starts)
    while starts:
        _, cut = heappop(starts)
        limits = _limits(program, live[cut])
        waiting: dict[Location, dict[object, _State]] = {cut: {"start": _State(limits, {})}}
        ends: dict[tuple[object, Location, int | None], _State] = {}
        while waiting:
            if len(found) + len(ends) > MAX_TRANSITIONS or effort > MAX_EFFORT:
                raise TooManyPaths
            place = min(waiting, key=order.__getitem__)
            states = waiting.pop(place)
            if len(states) > MAX_STATES and place != cut:
                # Paths from earlier locations pass it, those from here on end there; it lies ahead of all.
                cuts.add(place)
                heappush(starts, (order[place], place))
                ends.update(((key, place, None), state) for key, state in states.items())
                continue
            for edge in after.get(place, ()):
                for state in states.values():
                    effort += state.size
                    take(state.size)
                    following = state.along(edge, numbers[id(edge)], program.ranges)
                    if following is None:
                        continue
                    following = following.forgetting(live[edge.target])
                    if edge.target in cuts:
                        ends.setdefault((following.key, edge.target, edge.loop), following)
                    else:
                        waiting.setdefault(edge.target, {}).setdefault(following.key, following)
        for (_, target, loop), state in ends.items():
            kept = (each for each in state.guards.items() if each not in limits.items())
            guards = tuple(sorted(Linear(constant, terms) for terms, constant in kept))
            found.append(Transition(len(found), cut, target, guards, state.values, loop))
        if len(found) > MAX_TRANSITIONS:
            raise TooManyPaths
    return tuple(found)


def _limits(program: ControlFlowGraph, names: Iterable[str]) -> dict[tuple[tuple[str, int], ...], int]:
    """Guards that hold by the types of variables."""
    found: dict[tuple[tuple[str, int], ...], int] = {}
    for name in names:
        low, high = program.ranges.get(name, (None, None))
        if low is not None:
            _strengthen(found, variable(name) - low)
        if high is not None:
            _strengthen(found, -variable(name) + high)
    return found


def _live(program: ControlFlowGraph, order: dict[Location, int]) -> dict[Location, set[str]]:
    """The variables that matter at each location: a later guard mentions them, before they are assigned."""
    live: dict[Location, set[str]] = {place: set() for place in order}
    for call in program.calls:
        if call.place in live:
            live[call.place] |= {held for _, held in call.arguments}
    edges = sorted((e for e in program.edges if e.source in order), key=lambda e: -order[e.source])
    changed = True
    while changed:
        changed = False
        take(len(edges))
        for edge in edges:
            needed = live[edge.target] - {name for name, _ in edge.updates}
            for name, value in edge.updates:
                if value is not None and name in live[edge.target]:
                    needed |= value.names
            for guard in edge.guards:
                needed |= guard.names
            if not needed <= live[edge.source]:
                live[edge.source] |= needed
                changed = True
    return live
