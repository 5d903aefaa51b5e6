"""Fourier-Motzkin elimination: whether linear inequalities contradict each other, over rational numbers."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from perun.collect.bounds.linear import Linear
from perun.collect.bounds.steps import take

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
