"""Bound Classes: whether loops and functions are bounded by another class, from sources alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import ClassVar, Final, NamedTuple

from perun.plugin.api import CheckContext
from perun.plugin.params import param
from perun.profile import bounds as terms
from perun.profile.bounds import (
    Bound,
    StoredFunctionBounds,
    UnreadPart,
    analysis_of,
    functions_of,
    unreadable,
)
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from perun.profile.uid import moved_to

# The loops and functions of two profiles of bounds that belong together.
#
# Lines move with each commit, so functions are matched by their names, and loops by their order within the
# function.


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
    old: Sequence[StoredFunctionBounds], new: Sequence[StoredFunctionBounds]
) -> dict[tuple[str, str], StoredFunctionBounds]:
    """By source and name of a function of the target, the one of the baseline.

    A function that its file lacks is looked for in the others: a file that was renamed has it, if only one
    function of that name is left on each side.
    """
    by_place = {(one.source, one.name): one for one in old}
    found = {(one.source, one.name): by_place[one.source, one.name] for one in new
             if (one.source, one.name) in by_place}  # fmt: skip
    for place, now in moved_to(by_place, [(one.source, one.name) for one in new]).items():
        found[now] = by_place[place]
    return found


def _pairs(
    old: StoredFunctionBounds | None, new: StoredFunctionBounds | None, gaps: tuple[_Gaps, _Gaps]
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
    old: StoredFunctionBounds | None,
    new: StoredFunctionBounds | None,
    before: Bound | None,
    after: Bound | None,
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


def _because(new: StoredFunctionBounds | None, loops: Iterable[tuple[Bound | None, Bound | None]]) -> str:
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


def _told(one: UnreadPart) -> str:
    return f"{one.source}:{one.line} could not be read: {one.reason}"


_ABSENT = "-"


@dataclass(frozen=True)
class BoundParams:
    """From which factor on a larger bound of the same class is certain."""

    factor: float = param(
        2.0,
        metavar="<ratio>",
        minimum=1,
        help="A bound of the same class that grows this many times is a degradation; less may be one.",
    )


class BoundClasses:
    """Compares the bounds of loops and functions that `perun collect bounds` finds in sources.

    Nothing is measured, so there is no noise and no confidence: bounds are upper ones, and a program may
    always do less. The rate of a change of class is the difference of the powers of n.

    * A higher class is a Degradation, a lower one an Optimization. * No bound where there was one is a Severe
      Degradation, the reverse a Severe Optimization. * In the same class the terms that grow fastest are
      compared: 3 × n after 2 × n is a Maybe Degradation with the ratio 1.5, and from `factor` (2) on a
      Degradation. Variables that were renamed are taken for what they were. * What could not be read is
      Unknown, and between two versions of the analysis, or what they count, a change is a Maybe.

    Functions are matched by name, in renamed files too, and loops of a function by their order, whatever
    their lines are.
    """

    name: ClassVar[str] = "bound_classes"
    short: ClassVar[str] = "BC"
    help: ClassVar[str] = "Compares bounds of loops and functions: O(n^2) after O(n^1) is a degradation."
    Params: ClassVar[type] = BoundParams
    notes: ClassVar[tuple[str, ...]] = (
        "upper bounds from the sources, nothing was run: a program may iterate less, and none of its time is "
        "known",
    )

    def compare(
        self, baseline: Profile, target: Profile, params: BoundParams, ctx: CheckContext
    ) -> Iterator[DegradationInfo]:
        """The changes of each function, its total first, by the places in the target.

        Locations are `FILE:LINE: FUNCTION` and `FILE:LINE: loop NUMBER of FUNCTION`. Changes of class have
        the type `order`, those within one `ratio`.

        :raises ProfileError: where a profile is none of bounds.
        """
        versions = {analysis_of(one) for one in (baseline, target)} - {""}
        for pair in paired(baseline, target):
            change = _change(pair, params)
            yield change if len(versions) < 2 else _doubted(change)


def _change(pair: BoundPair, params: BoundParams) -> DegradationInfo:
    old, new = pair.baseline, pair.target
    change = DegradationInfo(PerformanceChange.Unknown, pair.location, _class(old), _class(new), "order")
    change.rule = pair.unread or _formulas(old, new)
    if pair.unread:
        return change
    if old is None or new is None:
        change.result = PerformanceChange.NotInBaseline if old is None else PerformanceChange.NotInTarget
        return change
    if old.growth == new.growth:
        return _same_class(change, old, new, params)
    kinds = _KINDS[1] if old.growth.is_bounded and new.growth.is_bounded else _SEVERE
    change.result = kinds[new.growth > old.growth]
    change.rate_degradation = float(new.growth.orders_above(old.growth))
    change.rule = "; ".join(filter(None, (change.rule, pair.because)))
    return change


def _doubted(change: DegradationInfo) -> DegradationInfo:
    """A change that may be one of the analysis, not of the sources: at most a Maybe."""
    if change.result in _DOUBTED:
        change.result = _DOUBTED[change.result]
        change.rule += (
            "; two versions of the analysis, or other options, made the profiles: collect the baseline again"
            " to be certain"
        )
    return change


def _same_class(change: DegradationInfo, old: Bound, new: Bound, params: BoundParams) -> DegradationInfo:
    """What the terms that grow fastest say of two bounds of one class."""
    change.result = PerformanceChange.NoChange
    if old.text == new.text or not new.growth.is_bounded:
        return change
    try:
        before, after = terms.leading(old.text), terms.leading(new.text)
        names = terms.by_order(terms.variables(old.text), terms.variables(new.text))
    except terms.NoFormula:
        return change
    before = terms.renamed(before, names)
    direction = terms.difference(before, after)
    if direction == 0:
        return change
    change.from_baseline, change.to_target = terms.text_of(before), terms.text_of(after)
    if direction is None:
        change.result = PerformanceChange.Unknown
        change.rule += "; some of the terms that grow fastest are larger, others smaller"
        return change
    rate = terms.ratio(before, after)
    if rate is not None:
        change.type, change.rate_degradation = "ratio", rate
    change.result = _KINDS[rate is not None and max(rate, 1 / rate) >= params.factor][direction > 0]
    return change


_KINDS: Final = (
    (PerformanceChange.MaybeOptimization, PerformanceChange.MaybeDegradation),
    (PerformanceChange.Optimization, PerformanceChange.Degradation),
)
"""By whether a change is certain, and whether it is for the worse."""
_SEVERE: Final = (PerformanceChange.SevereOptimization, PerformanceChange.SevereDegradation)
_DOUBTED: Final = {
    **dict.fromkeys(
        (PerformanceChange.Degradation, PerformanceChange.SevereDegradation),
        PerformanceChange.MaybeDegradation,
    ),
    **dict.fromkeys(
        (PerformanceChange.Optimization, PerformanceChange.SevereOptimization),
        PerformanceChange.MaybeOptimization,
    ),
}


def _class(bound: Bound | None) -> str:
    return _ABSENT if bound is None else bound.growth_text


def _formulas(old: Bound | None, new: Bound | None) -> str:
    """The two bounds as formulas, with the reason where there is none."""
    sides = (_formula(one) for one in (old, new) if one is not None)
    return "at most " + " -> ".join(sides)


def _formula(bound: Bound) -> str:
    if bound.growth.is_bounded:
        return bound.text
    return f"no bound known ({bound.reason})" if bound.reason else "no bound known"


PLUGIN = BoundClasses
