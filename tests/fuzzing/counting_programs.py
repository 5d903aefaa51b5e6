"""Programs as functions of their input, which count what they do: behind the interface of coverage."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

HANGS_AT = 3_000_000


class Ran(NamedTuple):
    outcome: str
    total: int
    seconds: float
    code: int = 0


def _ended(count: int, seconds_of_one: float = 1e-7) -> Ran:
    if count > HANGS_AT:
        return Ran("hang", 0, math.inf, -9)
    return Ran("ok", count, count * seconds_of_one)


def trim(data: bytes, timeout: float, until: float = math.inf) -> Ran:
    """A search for spaces at the end, which begins anew at each of them: quadratic in a row of spaces."""
    return _ended(100 + len(data) + sum(len(row) ** 2 for row in re.findall(rb" +", data)))


def email(data: bytes, timeout: float, until: float = math.inf) -> Ran:
    """A regular expression that tries each division of the letters before an @ that is not there."""
    letters = re.match(rb"[a-z0-9]*", data)
    assert letters is not None
    tail = data[letters.end() :]
    return _ended(50 + 30 * len(data) + (0 if tail.startswith(b"@") else 2 ** min(60, letters.end())))


def hash_table(data: bytes, timeout: float, until: float = math.inf) -> Ran:
    """A table of one bucket: each new word is compared with all that there are."""
    words: list[bytes] = []
    count = 10 + len(data)
    for word in data.split():
        for known in words:
            count += 1
            if known == word:
                break
        else:
            words.append(word)
    return _ended(count)


def insertion_sort(data: bytes, timeout: float, until: float = math.inf) -> Ran:
    values: list[bytes] = []
    count = 5 + len(data)
    for word in data.split():
        at = len(values)
        values.append(word)
        while at and values[at - 1] > word:
            values[at] = values[at - 1]
            at, count = at - 1, count + 1
        values[at] = word
    return _ended(count)


def parser(data: bytes, timeout: float, until: float = math.inf) -> Ran:
    """Recursion for each opening bracket, for which the stack is too small from a depth of 700 on."""
    depth = deepest = 0
    for byte in data:
        depth += (byte == ord("(")) - (byte == ord(")"))
        deepest = max(deepest, depth)
    return Ran("fault", 0, 0.0, -11) if deepest > 700 else _ended(100 + 3 * len(data))


def indifferent(data: bytes, timeout: float, until: float = math.inf) -> Ran:
    return Ran("ok", 100, 1e-3)
