"""The region `lines` of a profile: what lines of sources cost, and which functions they called."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

COLUMNS: Final[Mapping[str, tuple[tuple[str, ...], int]]] = {
    "costs": (("functions", "files", ""), 1),
    "calls": (("functions", "files", "", "functions"), 2),
}
"""What the first columns of the rows number, and how many amounts follow."""


def entries(region: Mapping[str, Any], key: str) -> Sequence[Any]:
    """What the numbers of rows stand for: the `functions` or `files`."""
    found = region.get(key)
    return found if isinstance(found, Sequence) else ()


def rows(region: Mapping[str, Any], kind: str) -> Iterator[Sequence[Any]]:
    """The rows whose numbers are of the right kind, and name what there is."""
    keys, amounts = COLUMNS[kind]
    most = [len(entries(region, of)) if of else sys.maxsize for of in keys]
    for row in entries(region, kind):
        if (
            isinstance(row, Sequence)
            and len(row) == len(keys) + amounts
            and all(type(at) is int and 0 <= at < end for at, end in zip(row, most, strict=False))
            and all(type(one) in (int, float) and 0 <= one < math.inf for one in row[len(keys) :])
        ):
            yield row
