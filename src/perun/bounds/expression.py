"""Expressions of bounds: polynomials over the inputs of a function and over maxima of such polynomials.

One normal form serves the analysis, the text of the profile and what reads that text again: a polynomial is
a sum of monomials with integer coefficients, a monomial a product of atoms, an atom the name of an input or
a maximum.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

from perun.bounds.steps import take

INFINITE_TEXT = "inf"


@dataclass(frozen=True)
class Maximum:
    """The largest of several expressions."""

    arguments: tuple[Expression, ...]

    @cached_property
    def text(self) -> str:
        """As the manual writes it: `max(n, 0)` of a name, `max(0, (k + -1))` of anything else."""
        one = [each for each in self.arguments if each != ZERO]
        if len(one) == 1 and len(self.arguments) == 2:
            return f"max({one[0]}, 0)" if one[0].is_name else f"max(0, ({one[0]}))"
        return f"max({', '.join(str(each) for each in self.arguments)})"

    @cached_property
    def degree(self) -> int:
        """The highest degree of an argument."""
        return max(each.degree for each in self.arguments)

    @cached_property
    def size(self) -> int:
        """How many names and numbers it mentions."""
        return sum(_size(monomial) for each in self.arguments for monomial, _ in each.terms)


Atom = str | Maximum
Monomial = tuple[Atom, ...]


def _text(atom: Atom) -> str:
    return atom if isinstance(atom, str) else atom.text


def _size(monomial: Monomial) -> int:
    return 1 + sum(1 if isinstance(atom, str) else atom.size for atom in monomial)


def _degree(monomial: Monomial) -> int:
    return sum(1 if isinstance(atom, str) else atom.degree for atom in monomial)


@dataclass(frozen=True)
class Expression:
    """A polynomial: pairs of monomials and coefficients, sorted; or infinity."""

    terms: tuple[tuple[Monomial, int], ...] = ()
    infinite: bool = False

    @cached_property
    def degree(self) -> int:
        """The degree in the inputs, 0 of a constant. Infinity has none, and answers that it is above all."""
        if self.infinite:
            return 10**6
        return max((_degree(monomial) for monomial, _ in self.terms), default=0)

    @property
    def is_name(self) -> bool:
        """Whether it is the name of one input and nothing else."""
        return len(self.terms) == 1 and self.terms[0][1] == 1 and isinstance(self._only_atom, str)

    @property
    def _only_atom(self) -> Atom | None:
        monomial = self.terms[0][0] if len(self.terms) == 1 else ()
        return monomial[0] if len(monomial) == 1 else None

    @property
    def constant(self) -> int | None:
        """The value of an expression without inputs, else `None`."""
        if self.infinite or any(monomial for monomial, _ in self.terms):
            return None
        return sum(coefficient for _, coefficient in self.terms)

    @cached_property
    def cls(self) -> str:
        """The asymptotic class as the manual writes it: `O(1)`, `O(n^2)`, `O(∞)`."""
        if self.infinite:
            return "O(∞)"
        return f"O(n^{self.degree})" if self.degree else "O(1)"

    @cached_property
    def names(self) -> frozenset[str]:
        """The inputs that it mentions."""
        found: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, str):
                    found.add(atom)
                else:
                    found.update(*(each.names for each in atom.arguments))
        return frozenset(found)

    def evaluate(self, inputs: Mapping[str, int]) -> float:
        """The value for these inputs; raises `KeyError` where one is missing."""
        if self.infinite:
            return float("inf")
        return sum(coefficient * _product(monomial, inputs) for monomial, coefficient in self.terms)

    def __add__(self, other: Expression) -> Expression:
        if self.infinite or other.infinite:
            return INFINITY
        return _collected([*self.terms, *other.terms])

    def __mul__(self, other: Expression) -> Expression:
        """The product; that of zero and infinity is zero: what never happens costs nothing."""
        if ZERO in (self, other):
            return ZERO
        if self.infinite or other.infinite:
            return INFINITY
        return _collected(
            (tuple(sorted(left + right, key=_atom_order)), a * b)
            for left, a in self.terms
            for right, b in other.terms
        )

    def __str__(self) -> str:
        """As the manual writes it: the constant first, `1 + max(n, 0)`, but last beside bare names, `k +
        -1`."""
        if self.infinite:
            return INFINITE_TEXT
        terms = list(self.terms)
        if len(terms) > 1 and not terms[0][0] and any(isinstance(atom, str) for m, _ in terms for atom in m):
            terms = [*terms[1:], terms[0]]
        return " + ".join(_term_text(monomial, coefficient) for monomial, coefficient in terms) or "0"


def _product(monomial: Monomial, inputs: Mapping[str, int]) -> float:
    value: float = 1
    for atom in monomial:
        if isinstance(atom, str):
            value *= inputs[atom]
        else:
            value *= max(each.evaluate(inputs) for each in atom.arguments)
    return value


def _term_text(monomial: Monomial, coefficient: int) -> str:
    factors = [_text(atom) for atom in monomial]
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    return " × ".join(factors)


def _atom_order(atom: Atom) -> tuple[int, str]:
    return (_degree((atom,)), _text(atom))


def _term_order(term: tuple[Monomial, int]) -> tuple[bool, int, list[tuple[int, str]]]:
    """The constant first, then the higher degrees; names in their order."""
    monomial = term[0]
    return (bool(monomial), -_degree(monomial), [_atom_order(atom) for atom in monomial])


def _collected(terms: Iterable[tuple[Monomial, int]]) -> Expression:
    """The normal form of a sum."""
    sums: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        take(_size(monomial))
        sums[monomial] = sums.get(monomial, 0) + coefficient
    return Expression(tuple(sorted(((m, c) for m, c in sums.items() if c), key=_term_order)))


ZERO = Expression()
INFINITY = Expression(infinite=True)


def number(value: int) -> Expression:
    """A constant."""
    return Expression((((), value),)) if value else ZERO


ONE = number(1)


def name(text: str) -> Expression:
    """An input of the function."""
    return Expression((((text,), 1),))


def maximum(arguments: Iterable[Expression]) -> Expression:
    """The largest of these: constants are folded, nested maxima of one term flattened, what another covers
    dropped."""
    flat: list[Expression] = []
    for each in _uncovered(arguments):
        if each.infinite:
            return INFINITY
        atom = each._only_atom
        if isinstance(atom, Maximum) and each.terms[0][1] == 1:
            flat += atom.arguments
        else:
            flat.append(each)
    kept = _uncovered(flat)
    base = next((each.constant for each in kept if each.constant), None)
    if base is not None and len(kept) > 1:
        return number(base) + maximum(each + number(-base) for each in kept)
    kept.sort(key=lambda each: (each.constant is None, str(each)))
    return kept[0] if len(kept) == 1 else _collected([((Maximum(tuple(kept)),), 1)])


def _uncovered(arguments: Iterable[Expression]) -> list[Expression]:
    """Those that no other is surely no less than."""
    given = list(dict.fromkeys(arguments))
    kept: list[Expression] = []
    for index, each in enumerate(given):
        if not any(at_least(other, each) for other in [*kept, *given[index + 1 :]]):
            kept.append(each)
    return kept


def non_negative(expression: Expression) -> bool:
    """Whether it is surely no less than 0: no name stands outside a maximum that has a non-negative
    argument."""
    return all(
        coefficient >= 0
        and all(
            isinstance(atom, Maximum) and any(non_negative(each) for each in atom.arguments)
            for atom in monomial
        )
        for monomial, coefficient in expression.terms
    )


def at_least(larger: Expression, smaller: Expression) -> bool:
    """Whether the first is surely no less than the second (incomplete)."""
    if larger.infinite or smaller.infinite:
        return larger.infinite
    difference = _collected([*larger.terms, *((monomial, -c) for monomial, c in smaller.terms)])
    return non_negative(difference)


def preference(expression: Expression) -> tuple[int, float, int, str]:
    """A key to choose the better of two bounds that both hold: the degree, a value at large inputs, the
    length."""
    if expression.infinite:
        return (10**6, 0.0, 0, "")
    text = str(expression)
    return (expression.degree, expression.evaluate(dict.fromkeys(expression.names, 1000)), len(text), text)


def best(bounds: Iterable[Expression]) -> Expression:
    """The preferred one of bounds that all hold; infinity where there is none."""
    return min(bounds, key=preference, default=INFINITY)


_TOKEN = re.compile(r"\s*(?:(max)\s*\(|(-?\d+)|([A-Za-z_?][^\s,()×+]*(?:\([^()×+]*\))?)|([()+×,*]))")


class _Reader:
    """A reader of the text of expressions, by recursive descent."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        end, position = len(text.rstrip()), 0
        while position < end:
            found = _TOKEN.match(text, position)
            if found is None:
                raise ValueError(f"no expression of a bound: {text!r}")
            kind = ("max", "number", "name", "sign")[(found.lastindex or 1) - 1]
            self.tokens.append((kind, found.group(found.lastindex or 1)))
            position = found.end()
        self.text, self.position = text, 0

    def next(self) -> tuple[str, str]:
        """The token that follows, ("", "") at the end."""
        return self.tokens[self.position] if self.position < len(self.tokens) else ("", "")

    def take(self) -> tuple[str, str]:
        """Take that token."""
        token = self.next()
        self.position += 1
        return token

    def sum(self) -> Expression:
        """Terms, joined by plus signs."""
        value = self.term()
        while self.next() == ("sign", "+"):
            self.take()
            value = value + self.term()
        return value

    def term(self) -> Expression:
        """Factors, joined by signs of multiplication."""
        value = self.factor()
        while self.next() in (("sign", "×"), ("sign", "*")):
            self.take()
            value = value * self.factor()
        return value

    def factor(self) -> Expression:
        """A number, a name, a maximum or a sum in brackets."""
        kind, text = self.take()
        if kind == "number":
            return number(int(text))
        if kind == "name":
            return INFINITY if text == INFINITE_TEXT else name(text)
        if kind == "max":
            return maximum(self.arguments())
        if (kind, text) == ("sign", "("):
            return self.arguments()[0]
        raise ValueError(f"no expression of a bound: {self.text!r}")

    def arguments(self) -> list[Expression]:
        """What stands between brackets, of which the first was taken."""
        found = [self.sum()]
        while self.next() == ("sign", ","):
            self.take()
            found.append(self.sum())
        if self.take() != ("sign", ")"):
            raise ValueError(f"no expression of a bound: {self.text!r}")
        return found


def parse(text: str) -> Expression:
    """The expression of a text as `str` prints it. Raises `ValueError` where it is none."""
    reader = _Reader(text)
    found = reader.sum()
    if reader.next() != ("", ""):
        raise ValueError(f"no expression of a bound: {text!r}")
    return found


def total(bounds: Iterable[Expression]) -> Expression:
    """The sum of several bounds."""
    return reduce(Expression.__add__, bounds, ZERO)
