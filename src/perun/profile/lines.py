"""The region `lines` of a profile: what lines of sources cost, and which functions they called."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from perun.core.errors import ProfileError
from perun.profile.calls import Frame, frame_of
from perun.profile.stacks import stacks_of
from perun.profile.uid import flatten

if TYPE_CHECKING:
    from perun.profile.factory import Profile

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


def first_lines(profile: Profile) -> dict[str, tuple[str, int]]:
    """Where functions are in the sources: by uid as text the file, as the profile has it, and the first line
    of it that cost something. Functions of which no line is known are left out."""
    found: dict[str, tuple[str, int]] = {}
    told: dict[str, tuple[str, int]] = {}  # by the region, which knows the paths

    def take(known: dict[str, tuple[str, int]], frame: Frame, source: str, line: int) -> None:
        uid = str(flatten({"source": frame.source, "function": frame.name} if frame.source else frame.name))
        known[uid] = min(known.get(uid, (source, line)), (source, line))

    try:
        stacks = stacks_of(profile).amounts
    except ProfileError:
        stacks = {}
    for frame in {frame for stack in stacks for frame in stack}:
        if frame.source and frame.line:
            take(found, frame, frame.source, frame.line)
    region = profile.get("lines")
    if isinstance(region, Mapping):
        files = entries(region, "files")
        costs = [row for row in rows(region, "costs") if row[2] > 0]
        sums: Counter[tuple[int, int]] = Counter()
        for function, file, _, amount in costs:
            sums[function, file] += amount
        main = {function: file for (function, file), _ in sorted(sums.items(), key=lambda one: one[1])}
        for function, file, line, _ in costs:  # code that is inlined has lines of other files
            if main[function] == file:
                take(told, frame_of(entries(region, "functions")[function]), str(files[file]), line)
    return found | told
