"""Rules for binary files (manual 9.2): bytes make new bytes, or None if there is none to change."""

from __future__ import annotations

from random import Random
from typing import Final

Changed = bytes | None


def remove_zero_byte(data: bytes, random: Random) -> Changed:
    """Rule B.1: Remove a random zero byte."""
    count = data.count(0)
    if not count:
        return None
    place = -1
    for _ in range(random.randint(1, count)):
        place = data.index(0, place + 1)
    return data[:place] + data[place + 1 :]


def insert_zero_byte(data: bytes, random: Random) -> Changed:
    """Rule B.2: Insert a zero byte at a random place."""
    return _inserted(data, 0, random)


def insert_byte(data: bytes, random: Random) -> Changed:
    """Rule B.3: Insert a random byte at a random place."""
    return _inserted(data, random.randrange(256), random)


def remove_byte(data: bytes, random: Random) -> Changed:
    """Rule B.4: Remove a random byte."""
    if not data:
        return None
    place = random.randrange(len(data))
    return data[:place] + data[place + 1 :]


def swap_byte(data: bytes, random: Random) -> Changed:
    """Rule B.5: Swap two random bytes of two random lines."""
    lines = data.splitlines(keepends=True)
    if len(data) < 2:
        return None
    places = []
    for _ in range(2):
        index = random.randrange(len(lines))
        start = sum(map(len, lines[:index]))
        places.append(start + random.randrange(len(lines[index])))
    first, second = places
    if data[first] == data[second]:
        return None
    made = bytearray(data)
    made[first], made[second] = data[second], data[first]
    return bytes(made)


def flip_bit(data: bytes, random: Random) -> Changed:
    """Rule B.6: Flip a random bit."""
    if not data:
        return None
    made = bytearray(data)
    made[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(made)


RULES: Final = (
    ("B.1", remove_zero_byte),
    ("B.2", insert_zero_byte),
    ("B.3", insert_byte),
    ("B.4", remove_byte),
    ("B.5", swap_byte),
    ("B.6", flip_bit),
)
"""The rules of this kind, by their labels."""


def _inserted(data: bytes, byte: int, random: Random) -> bytes:
    place = random.randint(0, len(data))
    return data[:place] + bytes([byte]) + data[place:]
