"""Best Model Order Equality: whether the best models are of another order of growth (manual 8.2.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import numpy as np

from perun.check._common.differences import ModelCheck
from perun.check._common.model_pairs import (
    ModelInterval,
    ModelPair,
    extent,
    keys_of,
    parts,
    without_fringes,
)
from perun.check._common.points import LocationPoints, Runs, relative_error
from perun.models.curves import evaluate, integral
from perun.models.growth import forms
from perun.models.growth.forms import Centres, centres
from perun.models.record import ModelRecord
from perun.models.regression.methods import RegressionOptions, full
from perun.plugin.params import param
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.series import ResourceSeries

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


class BestModelOrderEquality(ModelCheck[OrderParams]):
    """Reports every uid, also the unchanged ones; the rate of a change is the difference in :data:`ORDER`.

    The confidence is the lower `r_square` of the two models. Where the profiles have the points, the best
    models are those of the lowest AICc, and a change needs evidence: in one version the best model of the
    other is worse by more than 10, the curves differ by more than a factor, and the exponents of both
    versions differ in the same direction, with 99 % confidence. Else, and for pieces, see
    :mod:`perun.models.regression.methods`.

    A uid that has models of pieces of x is compared
    piece by piece: the largest difference of two pieces that fit is reported, of equal ones that at larger x,
    and all of them as changes on parts of the interval, with the relative change of their integrals.
    """

    name: ClassVar[str] = "best_model_order_equality"
    short: ClassVar[str] = "BMOE"
    help: ClassVar[str] = "Compares the best models of each uid: linear after constant is a degradation."
    Params: ClassVar[type] = OrderParams

    def compared(self, pair: ModelPair, params: OrderParams, runs: Runs) -> DegradationInfo:
        """One change of type `order`.

        Swapping the profiles mirrors it, and neither the unit of the amounts nor that of x changes the order
        of a model. (How well a constant fits does depend on the unit, unless the points are on a level line:
        see :func:`perun.models.regression.fits.constant`.)
        """
        found = without_fringes(parts(pair.baseline, pair.target))
        if not found:
            return pair.unknown("order", extent(pair.baseline), extent(pair.target))
        if len(found) == 1 and (by_points := _by_points(pair, found[0], params.confidence, runs.sources)):
            return by_points
        rates = [_rate(part, params.confidence) for part in found]
        # Without a change it is the part that can be relied on most that is told of.
        decides = max(
            range(len(found)), key=lambda at: (abs(rates[at]), bool(rates[at]) * at, found[at].r_square)
        )
        part, rate = found[decides], rates[decides]
        return DegradationInfo(
            *(_verdict(rate), pair.uid, part.baseline.type, part.target.type, "order", rate, "r_square"),
            cr=part.r_square,
            pi=[
                (_verdict(rate), _relative_change(part), part.start, part.end)
                for part, rate in zip(found, rates, strict=True)
            ]
            if len(found) > 1
            else None,
        )


def _by_points(
    pair: ModelPair, part: ModelInterval, confidence: float, sources: tuple[LocationPoints, LocationPoints]
) -> DegradationInfo | None:
    """The change by the points, see the head of this module; None where there are too few."""
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


def _relative_change(part: ModelInterval) -> float:
    """How much the integral of the part grew, as a share of that of the baseline; NaN where undefined."""
    before, after = (integral(model, part.start, part.end) for model in (part.baseline, part.target))
    return float(relative_error(before, after))


def _rate(part: ModelInterval, confidence: float) -> int:
    """How many orders the target is above the baseline; 0 where that cannot be relied on."""
    if part.r_square < confidence:
        return 0
    return ORDER.index(part.target.type) - ORDER.index(part.baseline.type)


def _verdict(rate: int) -> PerformanceChange:
    if not rate:
        return PerformanceChange.NoChange
    return PerformanceChange.Degradation if rate > 0 else PerformanceChange.Optimization


PLUGIN = BestModelOrderEquality


# Which model fits the points best, all models being judged on one scale.
#
# The coefficients of determination of a profile cannot tell that: those of power and exponential models are
# of logarithms, those of the others of the amounts themselves. Here all models are made anew of the medians
# of the points of each size, which interrupted calls do not move, and chosen as those of
# :mod:`perun.models.growth.comparison`: by AICc of the same weighted residuals.

CONSTANT: Final = "constant"
EXPONENTIAL: Final = "exponential"
_ALPHA: Final = 0.01
"""Probability with which the interval of a difference of exponents may miss."""
OF_ANOTHER_SHAPE: Final = 0.08
"""Mean difference of two curves, each divided by its mean, above which they have different shapes."""
MIN_POINTS: Final = 8
"""Sizes below which models are not told apart."""
_ROUNDING: Final = 1e-18
"""Share of the sum of squares below which residuals are rounding."""
_PARAMETERS: Final = {"constant": 2, "quadratic": 4}
"""Number of parameters, that of the variance included; 3 of the other models."""


class ModelRating(NamedTuple):
    """How well a model fits the medians: `aicc`, the lower the better, and `r_square`; and the model."""

    aicc: float
    r_square: float
    record: ModelRecord


class VersionModels(NamedTuple):
    """The models of one version, and the medians that they were made of."""

    points: Centres
    models: Mapping[str, ModelRating]

    @property
    def best(self) -> str:
        """The model that :func:`~perun.models.growth.forms.choose` takes."""
        return forms.choose({model: one.aicc for model, one in self.models.items()}, CONSTANT)


def rated(points: ResourceSeries) -> VersionModels | None:
    """The rating of each model of a regression analysis; None where there are too few sizes.

    R^2 is that of the weighted medians; that of a constant is how little a line explains of them.
    """
    middle = centres(points.x, points.y)
    if middle.x.size < MIN_POINTS:
        return None
    count, weight = middle.x.size, middle.weight
    least = _ROUNDING * float(np.sum(weight * middle.y * middle.y)) or 1.0
    mean = float(np.sum(weight * middle.y) / np.sum(weight))
    total = max(float(np.sum(weight * (middle.y - mean) ** 2)), least)
    found = {}
    for fit in full(middle.x, middle.y, RegressionOptions()).fits:
        b0, b1, b2 = (*fit.coefficients, 0.0, 0.0)[:3]
        bounds = fit.x_start, fit.x_end
        record = ModelRecord(
            fit.model, fit.r_square, b0, b1, b2, *bounds, points.uid, "full", model={"coeffs": ()}
        )
        curve = evaluate(record, middle.x)
        rss = float(np.sum(weight * (middle.y - curve) ** 2))
        if not np.isfinite(rss):
            continue
        rating = forms.criterion(max(rss, least), count, _PARAMETERS.get(fit.model, 3))
        r_square = fit.r_square if fit.model == "constant" else max(0.0, 1 - rss / total)
        found[fit.model] = ModelRating(rating, r_square, record)
    return VersionModels(middle, found) if found else None


def against(rate: int, old: VersionModels, new: VersionModels, bounds: tuple[float, float]) -> str:
    """What speaks against a change of order; empty where nothing does.

    :param rate: above 0 where the target has the higher order. :param bounds: of the sizes that count.
    """
    support = evidence(old, new)
    if support <= forms.EVIDENCE:
        return f"both models fit both versions: AICc differs by {support:.2g}, {forms.EVIDENCE:g} is evidence"
    if not shapes_differ(old.models[old.best].record, new.models[new.best].record, *bounds):
        return "models of two kinds have the same shape here: they differ by a factor only"
    return against_growth(rate, old, new)


def evidence(old: VersionModels, new: VersionModels) -> float:
    """How much AICc speaks against the best model of one version in the other, in that where it is more."""
    before, after = old.best, new.best
    return max(
        _aicc(new, before) - new.models[after].aicc,
        _aicc(old, after) - old.models[before].aicc,
    )


def against_growth(rate: int, old: VersionModels, new: VersionModels) -> str:
    """What speaks against one version growing faster than the other; empty where nothing does.

    :param rate: above 0 where it is the target. Next to a level function everything that fits better does.
    """
    kinds = {old.best, new.best}
    if CONSTANT in kinds:
        return ""
    if EXPONENTIAL in kinds:
        # It is no n^b, and overtakes each of them in the end: at the end of these sizes, or not yet.
        ends = [_elasticity(one) for one in (old, new)]
        difference, text = ends[1] - ends[0], "at the largest sizes"
        agrees = difference * rate > 0
    else:
        before, after = forms.profile(old.points), forms.profile(new.points)
        found = forms.difference(before, after, _ALPHA)
        agrees = found.low > 0 if rate > 0 else found.high < 0
        text = f"surely: the exponents of n^b differ by {found.low:.2f} to {found.high:.2f}"
    if agrees:
        return ""
    faster = "faster" if rate > 0 else "slower"
    return f"the models are of two kinds, but the target does not grow {faster} {text}"


def _elasticity(version: VersionModels) -> float:
    """The exponent that the best curve has over the last tenth of the sizes."""
    end = float(version.points.x[-1])
    last = evaluate(version.models[version.best].record, np.array([0.9 * end, end]))
    with np.errstate(all="ignore"):
        return float(np.diff(np.log(last))[0]) / -math.log(0.9)


def shapes_differ(one: ModelRecord, other: ModelRecord, start: float, end: float) -> bool:
    """Whether the curves differ by more than a factor from `start` to `end`."""
    x = np.linspace(start, end, 100)
    curves = evaluate(one, x), evaluate(other, x)
    known = np.isfinite(curves[0]) & np.isfinite(curves[1])
    scaled = [curve[known] / float(np.mean(curve[known])) for curve in curves]
    return bool(np.mean(np.abs(scaled[0] - scaled[1])) > OF_ANOTHER_SHAPE)


def _aicc(version: VersionModels, model: str) -> float:
    return version.models[model].aicc if model in version.models else float("inf")
