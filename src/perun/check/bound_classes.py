"""Bound Classes: whether loops and functions are bounded by another class, from sources alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from perun.check._common.bound_pairs import BoundPair, paired
from perun.plugin.api import CheckContext
from perun.plugin.params import param
from perun.profile import leading_terms as terms
from perun.profile.bounds import Bound, analysis_of
from perun.profile.changes import DegradationInfo, PerformanceChange

if TYPE_CHECKING:
    from perun.profile.factory import Profile

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
    if pair.unread:
        before, after = _class(old), _class(new)
        return DegradationInfo(
            PerformanceChange.Unknown, pair.location, before, after, "order", rule=pair.unread
        )
    if old is None or new is None:
        kind = PerformanceChange.NotInBaseline if old is None else PerformanceChange.NotInTarget
        rule = _formulas(old, new)
        return DegradationInfo(kind, pair.location, _class(old), _class(new), "order", rule=rule)
    if old.growth == new.growth:
        return _same_class(pair.location, old, new, params)
    worse = new.growth > old.growth
    kind = PerformanceChange.Degradation if worse else PerformanceChange.Optimization
    if not (old.growth.is_bounded and new.growth.is_bounded):
        kind = PerformanceChange.SevereDegradation if worse else PerformanceChange.SevereOptimization
    return DegradationInfo(
        kind,
        pair.location,
        old.growth_text,
        new.growth_text,
        "order",
        new.growth.orders_above(old.growth),
        rule="; ".join(filter(None, (_formulas(old, new), pair.because))),
    )


def _doubted(change: DegradationInfo) -> DegradationInfo:
    """A change that may be one of the analysis, not of the sources: at most a Maybe."""
    if change.result in _DOUBTED:
        change.result = _DOUBTED[change.result]
        change.rule += (
            "; two versions of the analysis, or other options, made the profiles: collect the baseline again"
            " to be certain"
        )
    return change


def _same_class(location: str, old: Bound, new: Bound, params: BoundParams) -> DegradationInfo:
    """What the terms that grow fastest say of two bounds of one class."""
    unchanged = DegradationInfo(
        PerformanceChange.NoChange,
        location,
        old.growth_text,
        new.growth_text,
        "order",
        rule=_formulas(old, new),
    )
    if old.text == new.text or not new.growth.is_bounded:
        return unchanged
    try:
        before, after = terms.leading(old.text), terms.leading(new.text)
        names = terms.by_order(terms.variables(old.text), terms.variables(new.text))
    except terms.NoFormula:
        return unchanged
    before = terms.renamed(before, names)
    direction = terms.difference(before, after)
    if direction == 0:
        return unchanged
    unchanged.from_baseline, unchanged.to_target = terms.text_of(before), terms.text_of(after)
    if direction is None:
        unchanged.result = PerformanceChange.Unknown
        unchanged.rule += "; some of the terms that grow fastest are larger, others smaller"
        return unchanged
    rate = terms.ratio(before, after)
    if rate is not None:
        unchanged.type, unchanged.rate_degradation = "ratio", rate
    certain = rate is not None and max(rate, 1 / rate) >= params.factor
    unchanged.result = _KINDS[certain][direction > 0]
    return unchanged


_KINDS: Final = (
    (PerformanceChange.MaybeOptimization, PerformanceChange.MaybeDegradation),
    (PerformanceChange.Optimization, PerformanceChange.Degradation),
)
"""By whether a change is certain, and whether it is for the worse."""
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
