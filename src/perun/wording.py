"""Words that messages of all parts of Perun have in common."""

from __future__ import annotations


def counted(number: float, noun: str) -> str:
    """The number and the noun in its singular or plural: `1 call`, `1,234 calls`."""
    return f"{number:,.0f} {noun}{'s' * (number != 1)}"


def plural(count: int, noun: str) -> str:
    """`1 pair`, `2 pairs`."""
    return f"{count} {noun}{'s' * (count != 1)}"
