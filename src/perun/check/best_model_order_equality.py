"""Best Model Order Equality: whether the best models are of another order of growth (manual 8.2.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from perun.plugin.api import CheckContext
from perun.plugin.params import param
from perun.profile.changes import DegradationInfo, PerformanceChange

if TYPE_CHECKING:
    from perun.check._common.model_pairs import ModelPair
    from perun.check._common.parts import Part
    from perun.check._common.points import Points
    from perun.profile.factory import Profile

ORDER: Final = ("constant", "logarithmic", "linear", "quadratic", "power", "exponential")
"""The models by how they grow, the slowest first."""


@dataclass(frozen=True)
class OrderParams:
    """How well the models must fit."""

    confidence: float = param(
        0.9,
        metavar="<r_square>",
        minimum=0,
        help="Both models must have at least this coefficient of determination for a change to be reported.",
    )


class BestModelOrderEquality:
    """Reports every uid, also the unchanged ones; the rate of a change is the difference in :data:`ORDER`.

    The confidence is the lower `r_square` of the two models. Where the profiles have the points, the best
    models are those of the lowest AICc, and a change needs evidence: in one version the best model of the
    other is worse by more than 10, the curves differ by more than a factor, and the exponents of both
    versions differ in the same direction, with 99 % confidence. Else, and for pieces, see
    :mod:`perun.models.regression.best`.

    A uid that has models of pieces of x is compared
    piece by piece: the largest difference of two pieces that fit is reported, of equal ones that at larger x,
    and all of them as changes on parts of the interval, with the relative change of their integrals.
    """

    name: ClassVar[str] = "best_model_order_equality"
    short: ClassVar[str] = "BMOE"
    help: ClassVar[str] = "Compares the best models of each uid: linear after constant is a degradation."
    Params: ClassVar[type] = OrderParams

    def compare(
        self, baseline: Profile, target: Profile, params: OrderParams, ctx: CheckContext
    ) -> Iterator[DegradationInfo]:
        """One change of type `order` for each uid, in the order of their names.

        Swapping the profiles mirrors every change, and neither the unit of the amounts nor that of x changes
        the order of a model. (How well a constant fits does depend on the unit, unless the points are on
        a level line: see :func:`perun.models.regression.fits.constant`.)

        :raises ProfileError: where one of the profiles has no models of a regression analysis.
        """
        from perun.check._common.model_pairs import model_pairs
        from perun.check._common.points import Points

        sources = Points(baseline), Points(target)
        for pair in model_pairs(baseline, target):
            yield pair.unpaired or _change(pair, params.confidence, sources)


def _change(pair: ModelPair, confidence: float, sources: tuple[Points, Points]) -> DegradationInfo:
    from perun.check._common.parts import extent, parts, without_fringes

    found = without_fringes(parts(pair.baseline, pair.target))
    if not found:
        return DegradationInfo(
            PerformanceChange.Unknown, pair.uid, extent(pair.baseline), extent(pair.target), "order"
        )
    if len(found) == 1 and (by_points := _by_points(pair, found[0], confidence, sources)):
        return by_points
    rates = [_rate(part, confidence) for part in found]
    # Without a change it is the part that can be relied on most that is told of.
    decides = max(
        range(len(found)), key=lambda at: (abs(rates[at]), bool(rates[at]) * at, found[at].r_square)
    )
    part, rate = found[decides], rates[decides]
    return DegradationInfo(
        res=_verdict(rate),
        loc=pair.uid,
        fb=part.baseline.type,
        tt=part.target.type,
        t="order",
        rd=rate,
        ct="r_square",
        cr=part.r_square,
        pi=[
            (_verdict(rate), _relative_change(part), part.start, part.end)
            for part, rate in zip(found, rates, strict=True)
        ]
        if len(found) > 1
        else None,
    )


def _by_points(
    pair: ModelPair, part: Part, confidence: float, sources: tuple[Points, Points]
) -> DegradationInfo | None:
    """The change by the points, see :mod:`perun.check._common.orders`; None where there are too few."""
    from perun.check._common.model_kinds import keys_of
    from perun.check._common.orders import against, rated

    of, per = keys_of(part.baseline.model)
    old, new = (
        None if points is None else rated(points)
        for points in (source.of(pair.uid, of, per) for source in sources)
    )
    if old is None or new is None:
        return None
    before, after = old.best, new.best
    r_square = min(old.models[before].r_square, new.models[after].r_square)
    rate = ORDER.index(after) - ORDER.index(before)
    rule = ""
    if rate and r_square < confidence:
        rule = f"the models explain {r_square:.2g} of the points, less than confidence = {confidence:g}"
    elif rate:
        rule = against(rate, old, new, (part.start, part.end))
    rate = 0 if rule else rate
    return DegradationInfo(
        _verdict(rate), pair.uid, before, after, "order", rate, "r_square", r_square, rule=rule
    )


def _relative_change(part: Part) -> float:
    """How much the integral of the part grew, as a share of that of the baseline; NaN where undefined."""
    from perun.check._common.relative import relative_error
    from perun.models.curves import integral

    before, after = (integral(model, part.start, part.end) for model in (part.baseline, part.target))
    return float(relative_error(before, after))


def _rate(part: Part, confidence: float) -> int:
    """How many orders the target is above the baseline; 0 where that cannot be relied on."""
    if part.r_square < confidence:
        return 0
    return ORDER.index(part.target.type) - ORDER.index(part.baseline.type)


def _verdict(rate: int) -> PerformanceChange:
    if not rate:
        return PerformanceChange.NoChange
    return PerformanceChange.Degradation if rate > 0 else PerformanceChange.Optimization


PLUGIN = BestModelOrderEquality
