"""Entailment between linear inequalities over integers: by syntax, by elimination, and where these leave it
open by z3.

Effort is limited in steps of the solver, never in seconds, so that the answer is the same on every machine;
what is not decided within them is not entailed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import z3

from perun.collect.bounds.elimination import contradictory
from perun.collect.bounds.linear import Linear

STEPS = 60_000
"""The steps of one question to z3 (its `rlimit`)."""
QUESTIONS = 6_000
"""The most questions to z3 for one function."""


class Solver:
    """Answers questions about integers, and remembers them. One is made for each function."""

    def __init__(self, questions: int = QUESTIONS) -> None:
        self._left = questions
        self._known: dict[tuple[frozenset[Linear], Linear | None], bool] = {}
        self._context: z3.Context | None = None
        self._variables: dict[str, z3.ArithRef] = {}

    def entails(self, facts: Sequence[Linear], goal: Linear) -> bool:
        """Whether `goal >= 0` wherever all facts are at least 0."""
        goal = goal.tightened()
        if goal.is_constant:
            if goal.constant >= 0:
                return True
        elif _by_syntax(facts, goal):
            return True
        elif not goal.names <= {name for fact in facts for name, _ in fact.terms}:
            return False
        facts = _connected(facts, goal)
        return self._ask(facts, goal)

    def feasible(self, facts: Sequence[Linear]) -> bool:
        """Whether all facts can hold together. What is not decided counts as feasible."""
        constants: dict[tuple[tuple[str, int], ...], int] = {}
        for fact in facts:
            constants[fact.terms] = min(fact.constant, constants.get(fact.terms, fact.constant))
            opposite = constants.get((-fact).terms)
            if opposite is not None and opposite + constants[fact.terms] < 0:
                return False
        if len(facts) < 2 or not _may_clash(facts):
            return True
        return not self._ask(facts, None)

    def _ask(self, facts: Sequence[Linear], goal: Linear | None) -> bool:
        """Whether the facts and the negation of the goal contradict each other."""
        key = (frozenset(facts), goal)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._decided(facts, goal)
        return known

    def _decided(self, facts: Sequence[Linear], goal: Linear | None) -> bool:
        rows = facts if goal is None else [*facts, -goal - 1]
        by_elimination = contradictory(rows)
        if by_elimination is not None and (by_elimination or not _has_factors(rows)):
            return by_elimination
        if self._left <= 0:
            return False
        self._left -= 1
        return self._contradictory(facts, goal)

    def _contradictory(self, facts: Sequence[Linear], goal: Linear | None) -> bool:
        if self._context is None:
            self._context = z3.Context()
        solver = z3.SolverFor("QF_LIA", ctx=self._context)
        solver.set("rlimit", STEPS)
        for fact in facts:
            solver.add(self._term(fact) >= 0)
        if goal is not None:
            solver.add(self._term(goal) < 0)
        return bool(solver.check() == z3.unsat)

    def _term(self, value: Linear) -> z3.ArithRef:
        parts = [self._variable(name) * factor for name, factor in value.terms]
        return z3.Sum([*parts, z3.IntVal(value.constant, self._context)])

    def _variable(self, name: str) -> z3.ArithRef:
        if name not in self._variables:
            self._variables[name] = z3.Int(name, self._context)
        return self._variables[name]


def _has_factors(rows: Iterable[Linear]) -> bool:
    """Whether coefficients other than 1 occur, so that integers may differ from rational numbers."""
    return any(abs(factor) > 1 for row in rows for _, factor in row.terms)


def _by_syntax(facts: Iterable[Linear], goal: Linear) -> bool:
    """Whether a fact, or the sum of two, says it."""
    facts = list(facts)
    for fact in facts:
        rest = goal - fact
        if rest.is_constant and rest.constant >= 0:
            return True
    for index, fact in enumerate(facts):
        rest = goal - fact
        for other in facts[index:]:
            if rest.terms == other.terms and rest.constant >= other.constant:
                return True
    return False


def _connected(facts: Sequence[Linear], goal: Linear) -> list[Linear]:
    """The facts that share variables with the goal, or with facts that do."""
    if goal.is_constant:
        return sorted(set(facts))
    names = set(goal.names)
    found: list[Linear] = []
    left = sorted(set(facts))
    while True:
        near = [fact for fact in left if fact.names & names]
        if not near:
            return found
        found += near
        left = [fact for fact in left if not fact.names & names]
        for fact in near:
            names |= fact.names


def _may_clash(facts: Sequence[Linear]) -> bool:
    """Whether some variable is limited from both sides; else all facts hold for values far out."""
    signs: dict[str, set[bool]] = {}
    for fact in facts:
        for name, factor in fact.terms:
            signs.setdefault(name, set()).add(factor > 0)
    return any(len(both) > 1 for both in signs.values())
