"""Building the control flow graph: locations, edges, and the place where the next statement goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perun.collect.bounds.linear import Linear, variable
from perun.collect.bounds.program import CallSite, Edge, Location, Program


class Graph:
    """A program under construction. `at` is where the flow of control is, `None` where it does not get to."""

    def __init__(self) -> None:
        self.program = Program()
        self.at: Location | None = self.program.entry
        self._locations = 2
        self._temporaries = 0

    def location(self) -> Location:
        """A new location."""
        self._locations += 1
        return self._locations - 1

    def temporary(self) -> str:
        """A new variable for a value between two steps."""
        self._temporaries += 1
        name = f"${self._temporaries}"
        self.program.temporaries.add(name)
        return name

    def edge(
        self,
        target: Location,
        guards: Iterable[Linear] = (),
        updates: Iterable[tuple[str, Linear | None]] = (),
        loop: int | None = None,
    ) -> None:
        """A step from here to a location; the flow stays here, so that others can follow."""
        needed = []
        for guard in guards:
            if guard.is_constant:
                if guard.constant < 0:
                    return
            else:
                needed.append(guard)
        if self.at is not None:
            self.program.edges.append(Edge(self.at, target, tuple(needed), tuple(updates), loop))

    def go(self, target: Location, loop: int | None = None) -> None:
        """Continue at a location; what follows is not reached."""
        self.edge(target, loop=loop)
        self.at = None

    def step(self, guards: Iterable[Linear] = (), updates: Iterable[tuple[str, Linear | None]] = ()) -> None:
        """A step to a new location, and on from there."""
        target = self.location()
        self.edge(target, guards, updates)
        self.at = target if self.at is not None else None

    def either(
        self, ways: Sequence[tuple[Sequence[Linear], Sequence[tuple[str, Linear | None]], Sequence[Linear]]]
    ) -> None:
        """One of several steps, and on from where they meet: guards, updates, and what holds after these."""
        start, meeting = self.at, self.location()
        for guards, updates, after in ways:
            self.at = start
            if after:
                self.step(guards, updates)
                self.edge(meeting, after)
            else:
                self.edge(meeting, guards, updates)
        self.at = None if start is None else meeting

    def havoc(self, names: Iterable[str]) -> None:
        """Give variables any value."""
        updates: list[tuple[str, Linear | None]] = [(name, None) for name in sorted(set(names))]
        if updates:
            self.step((), updates)

    def call(self, function: str, arguments: Iterable[tuple[str, Linear | None]]) -> None:
        """A call whose cost counts, at a location of its own where the arguments are in variables."""
        held = [(name, self.temporary(), value) for name, value in arguments]
        self.step((), [(temporary, value) for _, temporary, value in held])
        if self.at is not None:
            names = tuple((name, temporary) for name, temporary, _ in held)
            self.program.calls.append(CallSite(self.at, function, names))
            self.step()

    def between(self, low: Linear | int | None, high: Linear | int | None) -> Linear:
        """A new value of which only limits are known."""
        name = self.temporary()
        value, limits = variable(name), []
        if low is not None:
            limits.append(value - low)
        if high is not None:
            limits.append(-value + high)
        self.step((), [(name, None)])
        if limits:
            self.step(limits)
        return value
