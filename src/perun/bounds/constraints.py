"""Difference constraints: how each transition changes a norm (Sinn, Zuleger, Veith, JAR 2017, section 4).

A norm is a linear expression, taken as the natural number `max(0, value)`. A transition changes it in one of
these ways: it adds a number, or takes at least one away; or it sets it, to what an expression over inputs
is, or to another norm and a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perun.bounds.invariants import Invariants
from perun.bounds.paths import System, Transition, afterwards, is_known
from perun.bounds.program import Linear, Location, constant
from perun.bounds.solver import Solver
from perun.bounds.steps import take

MAX_NORMS = 80
MAX_TERMS = 6
"""The most variables of a norm."""
ELIMINATIONS = 3
"""The most guards that are added up to limit a value."""


@dataclass(frozen=True)
class Norm:
    """A linear expression; `elsewhere` has others for locations where other variables carry the value."""

    value: Linear
    elsewhere: tuple[tuple[Location, Linear], ...] = ()

    def at(self, place: Location) -> Linear:
        """The expression at a location."""
        return next((value for each, value in self.elsewhere if each == place), self.value)


@dataclass(frozen=True)
class Add:
    """The norm grows by no more than a number; at -1 it decreases by at least one."""

    amount: int


@dataclass(frozen=True)
class SetToInput:
    """The norm becomes at most an expression over inputs."""

    value: Linear


@dataclass(frozen=True)
class SetToNorm:
    """The norm becomes at most another, plus a number."""

    norm: Norm
    amount: int


Change = Add | SetToInput | SetToNorm


class Constraints:
    """The difference constraints of a system, made when they are asked for."""

    def __init__(self, system: System, invariants: Invariants, solver: Solver) -> None:
        self.system = system
        self.inputs = frozenset(system.program.inputs)
        self._invariants = invariants
        self._solver = solver
        self._known: dict[tuple[int, Norm], tuple[Change, ...]] = {}
        self._norms: set[Norm] = set()

    def changes(self, transition: Transition, norm: Norm) -> tuple[Change, ...]:
        """All that is known of how a transition changes a norm; each holds. Empty: it may become anything."""
        key = (transition.number, norm)
        if key not in self._known:
            self._known[key] = tuple(dict.fromkeys(self._changes(transition, norm)))
        return self._known[key]

    def decreases(self, transition: Transition, norm: Norm) -> bool:
        """Whether each run of a transition makes a norm smaller."""
        return any(isinstance(each, Add) and each.amount < 0 for each in self.changes(transition, norm))

    def sets(self, transition: Transition, norm: Norm) -> bool:
        """Whether a transition gives a norm a value that has nothing to do with the one it had."""
        changes = self.changes(transition, norm)
        return bool(changes) and not any(isinstance(each, Add) for each in changes)

    def positive(self, transition: Transition, norm: Norm) -> bool:
        """Whether a norm is at least 1 where a transition is taken."""
        return self._solver.entails(self._invariants.before(transition), norm.at(transition.source) - 1)

    def is_input(self, value: Linear) -> bool:
        """Whether an expression mentions inputs only."""
        return value.names <= self.inputs

    def _changes(self, transition: Transition, norm: Norm) -> Iterator[Change]:
        place = transition.source
        normal = self._invariants.equalities.normal
        before = norm.at(place)
        after = transition.after(norm.at(transition.target))
        difference = normal(place, after - before)
        shorter = normal(place, after)
        if difference.is_constant and not self.is_input(before):
            yield Add(self._amount(transition, before, difference.constant))
            yield from self._limited_by_inputs(transition, after)
            return
        if self.is_input(shorter):
            yield SetToInput(shorter)
            return
        if self._solver.entails(self._invariants.before(transition), -after):
            yield SetToInput(constant(0))
        amount = self._compared(transition, before, after)
        if amount is not None:
            yield Add(amount)
        if is_known(after):
            yield from self._to_norm(after)
            if shorter != after and is_known(shorter):
                yield from self._to_norm(shorter)
            yield from self._limited_by_inputs(transition, after)
            return
        for value in self._without(transition, after, lambda name: name.startswith("?")):
            if self.is_input(value):
                yield SetToInput(value)
                return
            yield from self._to_norm(value)
            return

    def _amount(self, transition: Transition, before: Linear, amount: int) -> int:
        if amount >= 0:
            return amount
        return -1 if self._solver.entails(self._invariants.before(transition), before - 1) else 0

    def _compared(self, transition: Transition, before: Linear, after: Linear) -> int | None:
        """The change of a norm that is not exact: smaller, no larger, or `None`."""
        facts = self._invariants.before(transition)
        if not self._solver.entails(facts, before - after):
            if not self._solver.entails(facts, -after):
                return None
            return -1 if self._solver.entails(facts, before - 1) else 0
        if self._solver.entails(facts, before - 1) and self._solver.entails(facts, before - after - 1):
            return -1
        return 0

    def _to_norm(self, value: Linear) -> Iterator[Change]:
        amount = max(value.constant, 0)
        norm = Norm(value - amount)
        if norm not in self._norms:
            if len(self._norms) >= MAX_NORMS or len(value.terms) > MAX_TERMS:
                return
            self._norms.add(norm)
        yield SetToNorm(norm, amount)

    def _limited_by_inputs(self, transition: Transition, value: Linear) -> Iterator[Change]:
        for limit in self._without(transition, value, lambda name: name not in self.inputs):
            yield SetToInput(limit)
            return

    def _without(
        self, transition: Transition, value: Linear, unwanted: Callable[[str], bool]
    ) -> Iterator[Linear]:
        """Upper limits of a value, by adding guards, that mention no unwanted variable."""
        facts = self._invariants.before(transition)
        work = [(value, 0)]
        seen = {value}
        while work:
            current, depth = work.pop(0)
            bad = [(name, factor) for name, factor in current.terms if unwanted(name)]
            if not bad:
                yield current
                continue
            if depth == ELIMINATIONS or len(seen) > 60:
                continue
            name, factor = bad[0]
            for terms in facts.near.get(name, ()):
                other = dict(terms)[name]
                if other * factor < 0 and abs(factor) % abs(other) == 0:
                    fact = Linear(facts.rows[terms], terms)
                    following = current + fact.times(abs(factor) // abs(other))
                    if following not in seen:
                        seen.add(following)
                        work.append((following, depth + 1))


def rank_norms(system: System, numbers: Iterable[int]) -> list[Norm]:
    """The norms of guards of these transitions: `value + 1`, for `value >= 0` (section 4.1)."""
    found: dict[Norm, None] = {}
    for number in numbers:
        transition = system.transitions[number]
        for guard in transition.guards:
            if is_known(guard) or is_known(guard := afterwards(transition, guard)):
                found[Norm(guard + 1)] = None
    return list(found)


def combined_norms(transitions: Sequence[Transition], norms: Sequence[Norm]) -> list[Norm]:
    """Norms for values that move between variables: by where they are (section 4.4), and sums of two."""
    found: dict[Norm, None] = {}
    into: dict[Location, list[Transition]] = {}
    for each in transitions:
        into.setdefault(each.target, []).append(each)
    for norm in norms:
        for start in dict.fromkeys(each.source for each in transitions):
            moved = _followed(into, norm.value, start)
            if moved is not None:
                found[moved] = None
    found.update((Norm(norm.value + 1), None) for norm in norms if not norm.value.is_constant)
    for index, one in enumerate(norms):
        for other in norms[index + 1 :]:
            value = one.value + other.value
            if not value.is_constant and len(value.terms) <= MAX_TERMS:
                found[Norm(value)] = None
    return list(found)


def _followed(into: Mapping[Location, Sequence[Transition]], value: Linear, start: Location) -> Norm | None:
    """The norm that is a value at one location, and elsewhere what becomes it; `None` where that is the
    same."""
    at = {start: value}
    work = [start]
    while work:
        place = work.pop(0)
        take()
        for each in into.get(place, ()):
            if each.source in at:
                continue
            before = each.after(at[place])
            if any(name.startswith("?") for name in before.names):
                continue
            at[each.source] = before
            work.append(each.source)
    elsewhere = tuple(sorted((place, one) for place, one in at.items() if (one - value).terms))
    return Norm(value, elsewhere) if elsewhere else None
