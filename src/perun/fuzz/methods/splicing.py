"""Rules that move whole parts: of the input itself, or of other inputs that were found before.

The rules of the manual change one place; these let what was found in two inputs come together.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

LARGEST_PART: Final = 4096
"""Most bytes of a part that is repeated or inserted."""
_TIMES: Final = (1, 4, 16)
"""How often a part is repeated at most: where the cost explodes, only once more is not too much."""

Changed = bytes | None


def repeat_part(data: bytes, random: Random, corpus: Sequence[bytes]) -> Changed:
    """Rule S.1: Repeat a random part of the input several times."""
    part = _part(data, random)
    if part is None:
        return None
    start, end = part
    times = random.randint(1, random.choice(_TIMES))
    return data[:end] + data[start:end] * times + data[end:]


def remove_part(data: bytes, random: Random, corpus: Sequence[bytes]) -> Changed:
    """Rule S.2: Remove a random part of the input."""
    part = _part(data, random)
    return None if part is None else data[: part[0]] + data[part[1] :]


def splice(data: bytes, random: Random, corpus: Sequence[bytes]) -> Changed:
    """Rule S.3: Join the beginning of the input and the end of another one."""
    other = _other(data, random, corpus)
    if other is None:
        return None
    return data[: random.randint(0, len(data))] + other[random.randint(0, len(other)) :]


def insert_part(data: bytes, random: Random, corpus: Sequence[bytes]) -> Changed:
    """Rule S.4: Insert a random part of another input at a random place."""
    other = _other(data, random, corpus)
    part = None if other is None else _part(other, random)
    if other is None or part is None:
        return None
    place = random.randint(0, len(data))
    return data[:place] + other[slice(*part)] + data[place:]


RULES: Final = (
    ("S.1", repeat_part),
    ("S.2", remove_part),
    ("S.3", splice),
    ("S.4", insert_part),
)
"""The rules of this kind, by their labels."""


def _part(data: bytes, random: Random) -> tuple[int, int] | None:
    """Where a random part starts and ends; short ones are as likely as long ones."""
    if not data:
        return None
    longest = min(len(data), LARGEST_PART)
    size = random.randint(1, max(1, int(longest ** random.random())))
    start = random.randint(0, len(data) - size)
    return start, start + size


def _other(data: bytes, random: Random, corpus: Sequence[bytes]) -> bytes | None:
    others = [one for one in corpus if one and one != data]
    return random.choice(others) if others else None
