"""Bounds on transitions and norms from difference constraints (Sinn, Zuleger, Veith, FMCAD 2015 and JAR
2017).

`TB(T)`, the number of times that the transitions T are taken, is at most what flows into a norm that pays
for them: its increments and its resets, each as often as it is taken. `VB(v)`, the value of a norm, is at
most the largest reset and all increments. Both are found by mutual recursion; what comes back to itself has
no bound by this way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from perun.bounds import expression
from perun.bounds.constraints import (
    Add,
    Change,
    Constraints,
    Norm,
    SetToInput,
    SetToNorm,
    combined_norms,
    rank_norms,
)
from perun.bounds.expression import INFINITY, ONE, ZERO, Expression, number
from perun.bounds.paths import System, Transition
from perun.bounds.program import Linear, Location, Reachability, components, reachable

STEPS = 1_000
"""The most sets of transitions and norms that are looked at for one loop."""
MAX_PARTIAL = 6
"""The most norms that are tried to pay for some transitions of a set while others pay for the rest."""
MAX_CANDIDATES = 24
"""The most norms that are tried for one set of transitions."""


@dataclass(frozen=True)
class Inflow:
    """What can flow into a norm before it is at some locations: transitions that add, and those that set
    it."""

    increments: tuple[tuple[Transition, int], ...]
    resets: tuple[tuple[Transition, Change], ...]
    unlimited: bool = False


class BoundSolver:
    """Computes bounds of one system."""

    def __init__(self, system: System, constraints: Constraints) -> None:
        self.system = system
        self.constraints = constraints
        self._component = components([system.program.entry], system.pairs)
        self._into: dict[Location, list[Transition]] = {}
        for each in system.transitions:
            self._into.setdefault(each.target, []).append(each)
        self._known: dict[object, Expression] = {}
        self._active: set[object] = set()
        self._circles: set[object] = set()
        self._circular: dict[object, frozenset[object]] = {}
        self._steps = 0
        self._without: dict[frozenset[int], Reachability] = {}
        self._coverage: dict[tuple[frozenset[int], frozenset[int]], frozenset[int]] = {}
        self._smaller: dict[tuple[Norm, int], frozenset[int]] = {}
        self._flowing: dict[tuple[Norm, frozenset[Location], bool], Inflow] = {}
        self._guarding: dict[int, list[Norm]] = {}
        self._turns: dict[int, list[Norm]] = {}

    def loop(self, number: int) -> Expression:
        """How often the transitions that repeat a loop are taken."""
        self._steps = 0
        return self.taken(frozenset(each.number for each in self.system.transitions if each.loop == number))

    def reason(self, number: int) -> str:
        """Why a loop has no bound."""
        component = next(
            (self._component[each.target] for each in self.system.transitions if each.loop == number), None
        )
        if self._steps > STEPS:
            return "its analysis takes too many steps"
        members = self.members(component) if component is not None else []
        norms = self._candidates(component, members) if component is not None else []
        if not norms:
            return "it depends on no number that the analysis follows"
        transitions = [self.system.transitions[each] for each in members]
        if not any(self.constraints.decreases(each, norm) for each in transitions for norm in norms):
            return "nothing that its condition compares is known to come closer to its end"
        return "what it counts down may start from any value, or grow again any number of times"

    # The two recursions, and what keeps them from going in circles.

    def _memoised(self, key: object, compute: Callable[[], Expression]) -> Expression:
        """The answer of a question; infinite where it is asked while it is being answered.

        A finite answer holds however it was found. An infinite one that came from such circles holds as long
        as the questions that closed them are being answered: by another way to the same question there may
        be a bound.
        """
        if key in self._known:
            return self._known[key]
        circles = frozenset((key,)) if key in self._active else self._circular.get(key)
        if circles is not None and circles <= self._active:
            self._circles |= circles
            return INFINITY
        self._steps += 1
        if self._steps > STEPS:
            self._circles.add("steps")
            return INFINITY
        self._active.add(key)
        outer, self._circles = self._circles, set()
        answer = compute()
        self._active.discard(key)
        circles = frozenset(self._circles - {key})
        self._circles = outer
        if not answer.infinite or not circles:
            self._known[key] = answer
        else:
            self._circular[key] = circles
            self._circles |= circles
        return answer

    def taken(self, numbers: frozenset[int]) -> Expression:
        """`TB`: how often the transitions of a set are taken, all together."""
        if not numbers:
            return ZERO
        return self._memoised(("taken", numbers), lambda: self._taken(numbers))

    def value(self, norm: Norm, place: Location) -> Expression:
        """`VB`: the largest value of a norm at a location."""
        value = norm.at(place)
        if self.constraints.is_input(value):
            return self._shown(value)
        return self._memoised(("value", norm, place), lambda: self._value(norm, place))

    def inflow(self, norm: Norm, places: frozenset[Location]) -> Expression:
        """All that flows into a norm, of which it may have something at one of these locations."""
        return self._memoised(("inflow", norm, places), lambda: self._inflow(norm, places))

    # How often transitions are taken.

    def _taken(self, numbers: frozenset[int]) -> Expression:
        if self._once(numbers):
            return ONE
        parts: dict[int, set[int]] = {}
        for each in sorted(numbers):
            transition = self.system.transitions[each]
            component = self._component[transition.source]
            inside = component == self._component[transition.target]
            parts.setdefault(component if inside else -1, set()).add(each)
        single = sorted(parts.pop(-1, ()))
        total = number(len(single)) if single and not self._once(frozenset(single)) else number(bool(single))
        for component, members in sorted(parts.items()):
            total = total + self._within(component, frozenset(members))
            if total.infinite:
                break
        return total

    def _once(self, numbers: Iterable[int]) -> bool:
        """Whether no two transitions of a set can be taken one after the other, nor one twice."""
        chosen = [self.system.transitions[each] for each in numbers]
        after = reachable([each.target for each in chosen], self.system.pairs)
        return not any(each.source in after for each in chosen)

    def _within(self, component: int, numbers: frozenset[int]) -> Expression:
        """The same for transitions of one strongly connected component."""
        return self._memoised(("within", numbers), lambda: self._paid(component, numbers))

    def _paid(self, component: int, numbers: frozenset[int]) -> Expression:
        members = self.members(component)
        for norms in (self._candidates(component, members), self._combined(component, members)):
            found = self._cheapest(component, numbers, members, norms)
            if not found.infinite:
                return found
        return INFINITY

    def _cheapest(
        self, component: int, numbers: frozenset[int], members: list[int], norms: list[Norm]
    ) -> Expression:
        """The best bound by one of these norms, or by one for some of the transitions and others for the
        rest."""
        entire: list[Expression] = []
        partial: list[tuple[frozenset[int], Norm, frozenset[int]]] = []
        for norm in norms:
            decreasing = self._decreasing(norm, component)
            if not decreasing:
                continue
            covered = self._covered(numbers, decreasing)
            if covered == numbers:
                entire.append(self._price(norm, covered, decreasing))
            elif covered:
                partial.append((covered, norm, decreasing))
        found = expression.best(entire)
        if not found.infinite:
            return found
        for covered, norm, decreasing in sorted(partial, key=lambda each: -len(each[0]))[:MAX_PARTIAL]:
            price = self._price(norm, covered, decreasing)
            if price.infinite:
                continue
            found = expression.best([found, price + self._within(component, numbers - covered)])
            if not found.infinite:
                break
        return found

    def members(self, component: int) -> list[int]:
        """The transitions inside a strongly connected component."""
        return [
            each.number for each in self.system.transitions
            if self._component[each.source] == component == self._component[each.target]
        ]  # fmt: skip

    def _decreasing(self, norm: Norm, component: int) -> frozenset[int]:
        """The transitions of a component that make a norm smaller."""
        key = (norm, component)
        if key not in self._smaller:
            self._smaller[key] = frozenset(
                each for each in self.members(component)
                if self.constraints.decreases(self.system.transitions[each], norm)
            )  # fmt: skip
        return self._smaller[key]

    def _candidates(self, component: int, members: list[int]) -> list[Norm]:
        if component not in self._guarding:
            self._guarding[component] = rank_norms(self.system, members)[:MAX_CANDIDATES]
        return self._guarding[component]

    def _combined(self, component: int, members: list[int]) -> list[Norm]:
        """Norms that take turns: sums of two, and those whose value is in another variable elsewhere."""
        if component not in self._turns:
            norms = self._candidates(component, members)
            transitions = [self.system.transitions[each] for each in members]
            self._turns[component] = combined_norms(transitions, norms)[:MAX_CANDIDATES]
        return self._turns[component]

    def _covered(self, numbers: frozenset[int], decreasing: frozenset[int]) -> frozenset[int]:
        """The transitions between any two of which a decreasing one is taken."""
        key = (numbers, decreasing)
        if key not in self._coverage:
            covered = set(numbers)
            while lost := self._free(covered, decreasing, [self._target(each) for each in covered]):
                covered -= lost
            self._coverage[key] = frozenset(covered)
        return self._coverage[key]

    def _target(self, number: int) -> Location:
        return self.system.transitions[number].target

    def _free(self, numbers: Iterable[int], decreasing: frozenset[int], starts: list[Location]) -> set[int]:
        """Those that are not decreasing and can be reached without taking one that is."""
        if decreasing not in self._without:
            pairs = [(e.source, e.target) for e in self.system.transitions if e.number not in decreasing]
            self._without[decreasing] = Reachability(pairs)
        free = self._without[decreasing].of(starts)
        return {e for e in numbers if e not in decreasing and self.system.transitions[e].source in free}

    def _price(self, norm: Norm, covered: frozenset[int], decreasing: frozenset[int]) -> Expression:
        """How often covered transitions are taken, where a norm pays for them.

        If a decrease comes before the first of them, they are no more than the decreases. If the norm is
        positive at each, neither: after the last of them something of it is left. Else they may be one more.
        """
        transitions = self.system.transitions
        places = {transitions[each].source for each in decreasing}
        first = self._free(covered, decreasing, [self.system.program.entry])
        rest = covered - decreasing
        if not first:
            return self.inflow(norm, frozenset(places))
        if all(self.constraints.positive(transitions[each], norm) for each in rest):
            return self.inflow(norm, frozenset(places | {transitions[each].source for each in rest}))
        return self.inflow(norm, frozenset(places)) + ONE

    # What flows into norms.

    def _flows(self, norm: Norm, places: Iterable[Location], limits: bool) -> Inflow:
        key = (norm, frozenset(places), limits)
        if key not in self._flowing:
            self._flowing[key] = self._flows_into(*key)
        return self._flowing[key]

    def _flows_into(self, norm: Norm, places: frozenset[Location], limits: bool) -> Inflow:
        """The transitions through which a norm gets what it has at some locations.

        With `limits`, one that adds is taken as one that sets, where what it sets is known.
        """
        increments: list[tuple[Transition, int]] = []
        resets: list[tuple[Transition, Change]] = []
        seen = set(places)
        work = sorted(seen)
        while work:
            place = work.pop()
            if place == self.system.program.entry and not self.constraints.is_input(norm.at(place)):
                return Inflow((), (), unlimited=True)
            for each in self._into.get(place, ()):
                changes = self.constraints.changes(each, norm)
                if not changes:
                    return Inflow((), (), unlimited=True)
                added = next((one for one in changes if isinstance(one, Add)), None)
                fixed = next((one for one in changes if isinstance(one, SetToInput)), None)
                if added is None or (fixed is not None and self._settles(each, added, fixed, limits)):
                    resets.extend((each, one) for one in changes if not isinstance(one, Add))
                    continue
                if added.amount > 0:
                    increments.append((each, added.amount))
                if each.source not in seen:
                    seen.add(each.source)
                    work.append(each.source)
        return Inflow(tuple(increments), tuple(resets))

    def _settles(self, transition: Transition, added: Add, fixed: SetToInput, limits: bool) -> bool:
        """Whether to take a transition as one that sets a norm rather than one that adds to it."""
        if transition.source == self.system.program.entry:
            return True
        return (limits and added.amount > 0) or (fixed.value.is_constant and fixed.value.constant <= 0)

    def _increments(self, flows: Inflow) -> Expression:
        groups: dict[int, set[int]] = {}
        for transition, amount in flows.increments:
            groups.setdefault(amount, set()).add(transition.number)
        total = ZERO
        for amount, members in sorted(groups.items()):
            total = total + self.taken(frozenset(members)) * number(amount)
            if total.infinite:
                break
        return total

    def _value(self, norm: Norm, place: Location) -> Expression:
        for limits in (True, False):
            flows = self._flows(norm, [place], limits)
            if flows.unlimited:
                break
            largest = expression.maximum([ZERO, *(self._best_reset(t, flows) for t in _takers(flows))])
            if not largest.infinite:
                found = largest + self._increments(flows)
                if not found.infinite:
                    return found
        return self._by_parts(norm, place)

    def _by_parts(self, norm: Norm, place: Location) -> Expression:
        """The value of a sum by the values of its terms."""
        value = norm.at(place)
        if len(value.terms) < 2:
            return INFINITY
        total = number(max(value.constant, 0))
        for name, factor in value.terms:
            sign = Linear(0, ((name, 1 if factor > 0 else -1),))
            total = total + self.value(Norm(sign), place) * number(abs(factor))
            if total.infinite:
                break
        return total

    def _best_reset(self, transition: Transition, flows: Inflow) -> Expression:
        return expression.best(
            self._set_value(transition, change) for each, change in flows.resets if each is transition
        )

    def _set_value(self, transition: Transition, change: Change) -> Expression:
        if isinstance(change, SetToInput):
            return self._shown(change.value)
        if isinstance(change, SetToNorm):
            return self.value(change.norm, transition.source) + number(change.amount)
        return INFINITY

    def _shown(self, value: Linear) -> Expression:
        inputs = self.system.program.inputs
        return value.positive_part(lambda name: inputs[name])

    def _inflow(self, norm: Norm, places: frozenset[Location]) -> Expression:
        for limits in (False, True):
            flows = self._flows(norm, places, limits)
            if flows.unlimited:
                break
            found = self._sum_of(flows)
            if self._comes_from_loops(flows, places):
                found = expression.best([found, self._entered(norm, places, flows)])
            if not found.infinite:
                return found
        return INFINITY

    def _sum_of(self, flows: Inflow) -> Expression:
        total = self._resets(flows)
        return total if total.infinite else total + self._increments(flows)

    def _inside(self, transition: Transition) -> int:
        """The component that a transition is inside of, -1 for one between two."""
        component = self._component[transition.source]
        return component if component == self._component[transition.target] else -1

    def _comes_from_loops(self, flows: Inflow, places: frozenset[Location]) -> bool:
        """Whether a norm gets something in earlier loops, of which each turn would count."""
        own = {-1, *(self._component[each] for each in places)}
        changing = [*flows.increments, *flows.resets]
        return any(self._inside(transition) not in own for transition, _ in changing)

    def _entered(self, norm: Norm, places: frozenset[Location], flows: Inflow) -> Expression:
        """The inflow as what a norm has where its component is entered, and what it gets inside."""
        components = {self._component[each] for each in places}
        if len(components) != 1:
            return INFINITY
        [component] = components
        entering = [
            each for each in self.system.transitions
            if self._component[each.target] == component and self._inside(each) == -1
        ]  # fmt: skip
        largest = expression.maximum([ZERO, *(self._after(each, norm) for each in entering)])
        total = self.taken(frozenset(each.number for each in entering)) * largest
        if total.infinite or self.system.program.entry in places:
            return INFINITY
        increments = tuple(each for each in flows.increments if self._inside(each[0]) == component)
        resets = tuple(each for each in flows.resets if self._inside(each[0]) == component)
        return total + self._sum_of(Inflow(increments, resets))

    def _after(self, transition: Transition, norm: Norm) -> Expression:
        """The largest value of a norm after a transition."""
        values = []
        for change in self.constraints.changes(transition, norm):
            if isinstance(change, Add):
                values.append(self.value(norm, transition.source) + number(max(change.amount, 0)))
            else:
                values.append(self._set_value(transition, change))
        return expression.best(values)

    def _resets(self, flows: Inflow) -> Expression:
        """What all resets together bring: each as often as it is taken, of exclusive ones the largest."""
        takers = [each for each in _takers(flows) if self._best_reset(each, flows) != ZERO]
        once = [each for each in takers if self._component[each.source] != self._component[each.target]]
        repeated = [each for each in takers if each not in once]
        if len(once) > 1 and self._once(each.number for each in once):
            total = expression.maximum([ZERO, *(self._best_reset(each, flows) for each in once)])
        else:
            repeated = takers
            total = ZERO
        groups: dict[frozenset[Change], list[Transition]] = {}
        for each in repeated:
            key = frozenset(change for one, change in flows.resets if one is each)
            groups.setdefault(key, []).append(each)
        for changes, members in groups.items():
            if total.infinite:
                break
            ways = sorted(changes, key=repr)
            total = total + expression.best(self._brought(members, change) for change in ways)
        if len(repeated) > 1:
            count = self.taken(frozenset(each.number for each in takers))
            if not count.infinite:
                largest = expression.maximum([ZERO, *(self._best_reset(each, flows) for each in takers)])
                total = expression.best([total, count * largest])
        return total

    def _brought(self, members: list[Transition], change: Change) -> Expression:
        """What the resets of a group bring: often enough the largest value, or what they carry over
        together."""
        count = self.taken(frozenset(each.number for each in members))
        values = [self._set_value(each, change) for each in members]
        found = count * expression.maximum([ZERO, *values]) if not count.infinite else INFINITY
        if isinstance(change, SetToNorm) and count != ONE and self._consumed(members, members, change.norm):
            found = expression.best([found, self._carried(members, members, change, count)])
        return found

    def _carried(
        self, users: list[Transition], members: list[Transition], change: SetToNorm, count: Expression
    ) -> Expression:
        """What a norm has all together, each time that some transitions read it of which `users` use the
        value.

        It is set anew between two uses, so what flows into it is used once: its increments, and for each use
        the last reset, whose value again may be carried over from another norm (reset chains, JAR 2017,
        section 3.3).
        """
        norm = change.norm
        key = ("carried", norm, tuple(e.number for e in users), tuple(e.number for e in members))
        total = self._memoised(key, lambda: self._flow_of(users, members, norm, count))
        return total + count * number(change.amount) if change.amount else total

    def _flow_of(
        self, users: list[Transition], members: list[Transition], norm: Norm, count: Expression
    ) -> Expression:
        flows = self._flows(norm, {each.source for each in members}, limits=False)
        if flows.unlimited:
            return INFINITY
        total = self._increments(flows)
        groups: dict[frozenset[Change], list[Transition]] = {}
        for each in _takers(flows):
            groups.setdefault(frozenset(one for t, one in flows.resets if t is each), []).append(each)
        for changes, setters in groups.items():
            if total.infinite:
                break
            total = total + expression.best(
                self._last_brought(users, setters, change, count) for change in sorted(changes, key=repr)
            )
        return total

    def _last_brought(
        self, users: list[Transition], setters: list[Transition], change: Change, count: Expression
    ) -> Expression:
        times = expression.best([count, self.taken(frozenset(each.number for each in setters))])
        largest = expression.maximum([ZERO, *(self._set_value(each, change) for each in setters)])
        found = times * largest
        if isinstance(change, SetToNorm) and self._consumed(users, setters, change.norm):
            found = expression.best([found, self._carried(users, setters, change, times)])
        return found

    def _consumed(self, users: list[Transition], readers: list[Transition], norm: Norm) -> bool:
        """Whether a norm is set anew after each use, before it is read again: what was used is gone from
        it."""
        kept = [each for each in self.system.transitions if not self.constraints.sets(each, norm)]
        keeping = [(each.source, each.target) for each in kept]
        free = reachable([each.target for each in users if each in kept], keeping)
        return not any(each.source in free for each in readers)


def _takers(flows: Inflow) -> list[Transition]:
    return list(dict.fromkeys(transition for transition, _ in flows.resets))
