"""Formulas of sizes: sums of numbers that are read by following pointers from a parameter."""

from __future__ import annotations

from typing import Any, NamedTuple

from perun.collect._calls.dwarf import integer_shape

Path = tuple[int, ...]
"""Offsets in bytes: read a pointer at each but the last one, from the parameter on. The last one is where a
value lies. Empty for the parameter itself.
"""


class Term(NamedTuple):
    """One number of a sum.

    :param factor: what the number is multiplied with. :param offsets: where it lies.
    :param width: its bytes. :param signed: whether it is signed.
    """

    factor: int
    offsets: Path
    width: int
    signed: bool


class Formula(NamedTuple):
    """A size: `(sum of the terms + constant) / divisor`; `text` is its expression for the user."""

    terms: tuple[Term, ...]
    text: str
    constant: int = 0
    divisor: int = 1


def moved(path: Path, offset: int) -> Path:
    """The path to what lies `offset` bytes behind the end of `path`."""
    return (*path[:-1], path[-1] + offset)


def integer(kind: Any, path: Path, text: str) -> Formula:
    """The formula of one whole number of the type `kind` at the end of `path`."""
    return Formula((Term(1, path, *integer_shape(kind)),), text)
