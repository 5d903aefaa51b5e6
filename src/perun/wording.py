"""Words that messages of all parts of Perun have in common."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: float, noun: str) -> str:
    """The number and the noun in its singular or plural: `1 call`, `1,234 calls`."""
    return f"{number:,.0f} {noun}{'s' * (number != 1)}"


def plural(count: int, noun: str) -> str:
    """`1 pair`, `2 pairs`."""
    return f"{count} {noun}{'s' * (count != 1)}"


def listed(names: Sequence[str], most: int = 3) -> str:
    """The first names, and how many more there are: `a, b, c and 2 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
