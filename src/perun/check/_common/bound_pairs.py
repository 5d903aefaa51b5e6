"""The loops and functions of two profiles of bounds that belong together.

Lines move with each commit, so functions are matched by their names, and loops by their order within the
function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from perun.profile.bounds import Bound, FunctionBounds, Unread, functions_of, unreadable

if TYPE_CHECKING:
    from perun.profile.factory import Profile


class BoundPair(NamedTuple):
    """A loop or function in both versions; None where it is not in one.

    :param location: `FILE:LINE: FUNCTION`, or `FILE:LINE: loop NUMBER of FUNCTION`, in the target where it is
        there. :param because: which loops decide on the bound of a function. :param unread: what could not be
        read of it; empty if it could.
    """

    location: str
    baseline: Bound | None
    target: Bound | None
    because: str = ""
    unread: str = ""


def paired(baseline: Profile, target: Profile) -> Iterator[BoundPair]:
    """The pairs by their places, those of the target first; of a function its total, then its loops.

    Of a function that only one version has, there is nothing but its total.

    :raises ProfileError: where a profile is none of bounds.
    """
    old, new = functions_of(baseline), functions_of(target)
    gaps = _Gaps(baseline), _Gaps(target)
    matches = _matches(old, new)
    for function in new:
        yield from _pairs(matches.get((function.source, function.name)), function, gaps)
    matched = {id(one) for one in matches.values()}
    for function in old:
        if id(function) not in matched:
            yield from _pairs(function, None, gaps)


def _matches(
    old: Sequence[FunctionBounds], new: Sequence[FunctionBounds]
) -> dict[tuple[str, str], FunctionBounds]:
    """By source and name of a function of the target, the one of the baseline.

    A function that its file lacks is looked for in the others: a file that was renamed has it, if only one
    function of that name is left on each side.
    """
    by_place = {(one.source, one.name): one for one in old}
    found = {(one.source, one.name): by_place[one.source, one.name] for one in new
             if (one.source, one.name) in by_place}  # fmt: skip
    left = [one for one in old if (one.source, one.name) not in found]
    names = {one.name: one for one in left}
    count = Counter(one.name for one in left)
    open_ones = [one for one in new if (one.source, one.name) not in found]
    came = Counter(one.name for one in open_ones)
    for one in open_ones:
        if count[one.name] == came[one.name] == 1:
            found[one.source, one.name] = names[one.name]
    return found


def _pairs(
    old: FunctionBounds | None, new: FunctionBounds | None, gaps: tuple[_Gaps, _Gaps]
) -> Iterator[BoundPair]:
    shown = new or old
    assert shown is not None
    told = (gap.of(shown.source, shown.name, one is None) for gap, one in zip(gaps, (old, new), strict=True))
    unread = "; ".join(filter(None, told))
    loops = list(_loops(old.loops, new.loops)) if old and new else []
    yield BoundPair(
        f"{shown.source}:{shown.line}: {shown.name}",
        old and old.total,
        new and new.total,
        _because(new, loops),
        unread,
    )
    if unread:
        return
    for before, after in loops:
        bound, number = _shown(old, new, before, after)
        location = f"{shown.source}:{bound.line}: loop {number} of {shown.name}"
        yield BoundPair(location, before, after)


def _shown(
    old: FunctionBounds | None, new: FunctionBounds | None, before: Bound | None, after: Bound | None
) -> tuple[Bound, int]:
    """The bound of the target, or of the baseline, and its number among the loops there."""
    for function, bound in ((new, after), (old, before)):
        if function is not None and bound is not None:
            return bound, next(at for at, one in enumerate(function.loops, 1) if one is bound)
    raise ValueError("a pair of nothing")


def _loops(old: Sequence[Bound], new: Sequence[Bound]) -> Iterator[tuple[Bound | None, Bound | None]]:
    """Loops of one function in both versions: what is bounded alike belongs together, as long as the order
    stays, and what is between belongs together in its order."""
    matcher = SequenceMatcher(None, [one.text for one in old], [one.text for one in new], autojunk=False)
    for _, i1, i2, j1, j2 in matcher.get_opcodes():
        yield from zip_longest(old[i1:i2], new[j1:j2])


def _because(new: FunctionBounds | None, loops: Iterable[tuple[Bound | None, Bound | None]]) -> str:
    """The loops of the target that are new, or of a higher class, and grow as fast as the function."""
    if new is None or new.total is None:
        return ""
    lines = [
        str(after.line)
        for before, after in loops
        if after and after.growth >= new.total.growth and (before is None or before.growth < after.growth)
    ]
    return f"because of the loop in line {' and '.join(lines)} of {new.source}" if lines else ""


class _Gaps:
    """What a profile says could not be read."""

    def __init__(self, profile: Profile) -> None:
        self._unread = [*unreadable(profile)]
        self._read = {one.source for one in functions_of(profile)}

    def of(self, source: str, function: str, is_missing: bool) -> str:
        """Why the function could not be read; empty if it could, or is not there.

        :param is_missing: whether the profile lacks the function; then it may be in a file of which nothing
            could be read.
        """
        for one in self._unread:
            whole_file = is_missing and not one.function and source not in self._read
            if one.source == source and (one.function == function or whole_file):
                return _told(one)
        return ""


def _told(one: Unread) -> str:
    return f"{one.source}:{one.line} could not be read: {one.reason}"
