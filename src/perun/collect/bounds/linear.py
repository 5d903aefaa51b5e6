"""Linear expressions with integer coefficients, the terms in which programs are abstracted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import gcd

from perun.collect.bounds import expression
from perun.collect.bounds.expression import Expression
from perun.collect.bounds.steps import take


class Linear:
    """`constant + sum of coefficient * variable`; immutable, with the terms sorted by name."""

    __slots__ = ("_hash", "constant", "terms")

    def __init__(self, constant: int = 0, terms: Iterable[tuple[str, int]] = ()) -> None:
        take()
        self.constant = constant
        self.terms = tuple(sorted((name, coefficient) for name, coefficient in terms if coefficient))
        self._hash = hash((constant, self.terms))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and self.constant == other.constant and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __lt__(self, other: Linear) -> bool:
        return (len(self.terms), self.terms, self.constant) < (len(other.terms), other.terms, other.constant)

    def __add__(self, other: Linear | int) -> Linear:
        if isinstance(other, int):
            return Linear(self.constant + other, self.terms)
        sums = dict(self.terms)
        for name, coefficient in other.terms:
            sums[name] = sums.get(name, 0) + coefficient
        return Linear(self.constant + other.constant, sums.items())

    def __sub__(self, other: Linear | int) -> Linear:
        return self + (-other)

    def __neg__(self) -> Linear:
        return self.times(-1)

    def times(self, factor: int) -> Linear:
        """The product with a number."""
        return Linear(self.constant * factor, ((name, factor * each) for name, each in self.terms))

    @property
    def is_constant(self) -> bool:
        """Whether it mentions no variable."""
        return not self.terms

    @property
    def names(self) -> frozenset[str]:
        """The variables that it mentions."""
        return frozenset(name for name, _ in self.terms)

    def of(self, name: str) -> int:
        """The coefficient of a variable."""
        return next((coefficient for each, coefficient in self.terms if each == name), 0)

    def substitute(self, values: Mapping[str, Linear]) -> Linear:
        """With these variables replaced, all at once."""
        if not any(name in values for name, _ in self.terms):
            return self
        sums: dict[str, int] = {}
        constant = self.constant
        for name, coefficient in self.terms:
            value = values.get(name)
            if value is None:
                sums[name] = sums.get(name, 0) + coefficient
                continue
            constant += coefficient * value.constant
            for inner, factor in value.terms:
                sums[inner] = sums.get(inner, 0) + coefficient * factor
        return Linear(constant, sums.items())

    def tightened(self) -> Linear:
        """What `self >= 0` says of integers, its coefficients divided by their common divisor."""
        divisor = gcd(*(coefficient for _, coefficient in self.terms)) if self.terms else 1
        if divisor <= 1:
            return self
        return Linear(self.constant // divisor, ((name, c // divisor) for name, c in self.terms))

    def positive_part(self, shown: Callable[[str], str]) -> Expression:
        """`max(0, self)` as a bound, its variables named by `shown`."""
        terms = [expression.number(self.constant)] if self.constant else []
        terms += [expression.name(shown(name)) * expression.number(c) for name, c in self.terms]
        return expression.maximum([expression.ZERO, expression.total(terms)])

    def __str__(self) -> str:
        terms = [name if c == 1 else f"{c} * {name}" for name, c in self.terms]
        return " + ".join([*terms, str(self.constant)] if self.constant or not terms else terms)

    __repr__ = __str__


def constant(value: int) -> Linear:
    """A number."""
    return Linear(value)


def variable(name: str) -> Linear:
    """A variable."""
    return Linear(0, ((name, 1),))
