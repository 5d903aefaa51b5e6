"""Entailment between linear inequalities over integers: by syntax, by elimination, and where these leave it
open by z3.

Effort is limited in steps of the solver, never in seconds, so that the answer is the same on every machine;
what is not decided within them is not entailed.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable
from math import gcd
from typing import Any

from perun.bounds.program import Linear
from perun.bounds.steps import take

# Fourier-Motzkin elimination: whether linear inequalities contradict each other, over rational numbers.

Terms = tuple[tuple[str, int], ...]
MAX_ROWS = 120
"""The most inequalities at a time; beyond, the question is left to the solver."""


def contradictory(facts: Iterable[Linear]) -> bool | None:
    """Whether not all facts can be at least 0; `None` where that takes too many steps.

    Bounds are rounded to integers on the way, so a contradiction is one over integers; that none is found
    says so of rational numbers only.
    """
    rows: dict[Terms, int] = {}
    for fact in facts:
        if not _add(rows, fact.terms, fact.constant):
            return True
    while rows:
        name, positive, negative = _cheapest(rows)
        take(len(rows) + len(positive) * len(negative))
        above = [(terms, constant, dict(terms)) for terms, constant in rows.items() if terms in positive]
        below = [(terms, constant, dict(terms)) for terms, constant in rows.items() if terms in negative]
        rows = {t: c for t, c in rows.items() if t not in positive and t not in negative}
        for _, a_constant, a in above:
            for _, b_constant, b in below:
                left, right = -b[name], a[name]
                merged = {each: left * factor for each, factor in a.items()}
                for each, factor in b.items():
                    merged[each] = merged.get(each, 0) + right * factor
                terms = tuple(sorted((each, factor) for each, factor in merged.items() if factor))
                if not _add(rows, terms, left * a_constant + right * b_constant):
                    return True
        if len(rows) > MAX_ROWS:
            return None
    return False


def _add(rows: dict[Terms, int], terms: Terms, constant: int) -> bool:
    """Add an inequality, rounded; false where it is a contradiction."""
    if not terms:
        return constant >= 0
    divisor = gcd(*(factor for _, factor in terms))
    if divisor > 1:
        terms = tuple((name, factor // divisor) for name, factor in terms)
        constant //= divisor
    known = rows.get(terms)
    if known is None or constant < known:
        rows[terms] = constant
        opposite = rows.get(tuple((name, -factor) for name, factor in terms))
        if opposite is not None and opposite + constant < 0:
            return False
    return True


def _cheapest(rows: dict[Terms, int]) -> tuple[str, set[Terms], set[Terms]]:
    """The variable whose elimination makes the fewest inequalities, with those that limit it from both
    sides."""
    positive: dict[str, set[Terms]] = {}
    negative: dict[str, set[Terms]] = {}
    for terms in rows:
        for name, factor in terms:
            (positive if factor > 0 else negative).setdefault(name, set()).add(terms)
    none: set[Terms] = set()

    def price(name: str) -> tuple[int, str]:
        above, below = len(positive.get(name, none)), len(negative.get(name, none))
        return (above * below - above - below, name)

    name = min({*positive, *negative}, key=price)
    return name, positive.get(name, none), negative.get(name, none)


STEPS = 20_000
"""The steps of one question to z3 (its `rlimit`)."""
ASKING = 2_000
"""Steps of the analysis that such a question counts as."""
QUESTIONS = 24
"""The most questions to z3 for one function; elimination answers all but a few, and faster."""


class Inequalities:
    """Linear inequalities that hold together, each at least 0: of those that say the same the strongest."""

    def __init__(self, facts: Iterable[Linear]) -> None:
        self.rows: dict[Terms, int] = {}
        self.contradictory = False
        self._near: dict[str, list[Terms]] | None = None
        self.add(facts)

    def add(self, facts: Iterable[Linear]) -> None:
        """Add more of them."""
        rows = self.rows
        for fact in facts:
            known = rows.get(fact.terms)
            if known is None or fact.constant < known:
                rows[fact.terms] = fact.constant
                opposite = rows.get(_negated(fact.terms))
                if opposite is not None and opposite + fact.constant < 0:
                    self.contradictory = True
        self._near = None

    @property
    def near(self) -> dict[str, list[Terms]]:
        """The inequalities that mention a variable."""
        if self._near is None:
            self._near = {}
            for terms in self.rows:
                for name, _ in terms:
                    self._near.setdefault(name, []).append(terms)
        return self._near

    def connected(self, names: Iterable[str]) -> list[Linear]:
        """Those that share variables with these, or with others that do."""
        near = self.near
        take(1 + len(self.rows) // 4)
        seen = set(names)
        work = sorted(seen)
        found: dict[Terms, int] = {}
        while work:
            for terms in near.get(work.pop(), ()):
                if terms not in found:
                    found[terms] = self.rows[terms]
                    for name, _ in terms:
                        if name not in seen:
                            seen.add(name)
                            work.append(name)
        return [Linear(constant, terms) for terms, constant in sorted(found.items())]

    def imply(self, goal: Linear) -> bool:
        """Whether one of them, or the sum of two, says that the goal is at least 0."""
        known = self.rows.get(goal.terms)
        if known is not None and known <= goal.constant:
            return True
        for terms in self.near.get(goal.terms[0][0], ()) if goal.terms else ():
            rest = _difference(goal.terms, terms)
            known = self.rows.get(rest)
            if known is not None and known + self.rows[terms] <= goal.constant:
                return True
        return False


class Solver:
    """Answers questions about integers, and remembers them. One is made for each function."""

    def __init__(self, questions: int = QUESTIONS) -> None:
        self._left = questions
        self._known: dict[tuple[tuple[Linear, ...], Linear | None, bool], bool] = {}

    def entails(self, facts: Inequalities, goal: Linear, exact: bool = True) -> bool:
        """Whether `goal >= 0` wherever the facts hold; if not `exact`, over rational numbers."""
        goal = goal.tightened()
        if goal.is_constant:
            return goal.constant >= 0
        if facts.contradictory or facts.imply(goal):
            return True
        if any(name not in facts.near for name in goal.names):
            return False
        return self._decided(facts.connected(goal.names), goal, exact)

    def feasible(self, facts: Inequalities) -> bool:
        """Whether the facts can hold together. What is not decided counts as feasible."""
        if facts.contradictory:
            return False
        rows = facts.connected(facts.near)
        return not _may_clash(rows) or not self._decided(rows, None, exact=False)

    def _decided(self, facts: list[Linear], goal: Linear | None, exact: bool) -> bool:
        """Whether the facts and the negation of the goal contradict each other."""
        key = (tuple(facts), goal, exact)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._decide(facts, goal, exact)
        return known

    def _decide(self, facts: list[Linear], goal: Linear | None, exact: bool) -> bool:
        rows = facts if goal is None else [*facts, -goal - 1]
        by_elimination = contradictory(rows)
        if by_elimination is not None and (by_elimination or not exact or not _has_factors(rows)):
            return by_elimination
        if self._left <= 0:
            return False
        self._left -= 1
        return self._contradictory(facts, goal)

    def _contradictory(self, facts: Iterable[Linear], goal: Linear | None) -> bool:
        """The same, by z3, which takes longer to load than most functions take to be analysed."""
        import z3

        take(ASKING)

        context = z3.Context()

        def term(value: Linear) -> Any:
            parts = [z3.Int(name, context) * factor for name, factor in value.terms]
            return z3.Sum([*parts, z3.IntVal(value.constant, context)])

        solver = z3.SolverFor("QF_LIA", ctx=context)
        solver.set("rlimit", STEPS)
        solver.add(*(term(fact) >= 0 for fact in facts))
        if goal is not None:
            solver.add(term(goal) < 0)
        found = bool(solver.check() == z3.unsat)
        # The solver puts back the handler of Ctrl-C so that it ends no wait any more.
        signal.siginterrupt(signal.SIGINT, True)
        return found


def _has_factors(rows: Iterable[Linear]) -> bool:
    """Whether coefficients other than 1 occur, so that integers may differ from rational numbers."""
    return any(abs(factor) > 1 for row in rows for _, factor in row.terms)


def _may_clash(facts: Iterable[Linear]) -> bool:
    """Whether some variable is limited from both sides; else all facts hold for values far out."""
    signs: dict[str, set[bool]] = {}
    for fact in facts:
        for name, factor in fact.terms:
            signs.setdefault(name, set()).add(factor > 0)
    return any(len(both) > 1 for both in signs.values())


def _negated(terms: Terms) -> Terms:
    return tuple((name, -factor) for name, factor in terms)


def _difference(terms: Terms, other: Terms) -> Terms:
    sums = dict(terms)
    for name, factor in other:
        sums[name] = sums.get(name, 0) - factor
    return tuple(sorted((name, factor) for name, factor in sums.items() if factor))
