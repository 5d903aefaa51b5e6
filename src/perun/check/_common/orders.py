"""Which model fits the points best, all models being judged on one scale.

The coefficients of determination of a profile cannot tell that: those of power and exponential models are of
logarithms, those of the others of the amounts themselves. Here all models are made anew of the medians of the
points of each size, which interrupted calls do not move, and compared by AICc of the same weighted residuals
(C. M. Hurvich and C.-L. Tsai, Biometrika 76, 1989).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from perun.models.curves import evaluate
from perun.models.growth.centres import centres
from perun.models.growth.forms import aicc, misfit
from perun.models.record import ModelRecord
from perun.models.regression.methods import Plan, full

if TYPE_CHECKING:
    from perun.profile.series import Series

EVIDENCE: Final = 10.0
"""Difference of AICc above which the worse model has essentially no support (K. P. Burnham and
D. R. Anderson, Model Selection and Multimodel Inference, 2002)."""
OF_ANOTHER_SHAPE: Final = 0.08
"""Mean difference of two curves, each divided by its mean, above which they have different shapes."""
FEWEST: Final = 8
"""Sizes below which models are not told apart."""
_ROUNDING: Final = 1e-18
"""Share of the sum of squares below which residuals are rounding."""
_PARAMETERS: Final = {"constant": 2, "quadratic": 4}
"""Number of parameters, that of the variance included; 3 of the other models."""


class Rating(NamedTuple):
    """How well a model fits the medians: `aicc`, the lower the better, and `r_square`; and the model."""

    aicc: float
    r_square: float
    record: ModelRecord


def ratings(points: Series) -> dict[str, Rating]:
    """The rating of each model of a regression analysis; empty where there are too few sizes.

    R^2 is that of the weighted medians; that of a constant is how little a line explains of them.
    """
    middle = centres(points.x, points.y)
    if middle.x.size < FEWEST:
        return {}
    count, weight = middle.x.size, middle.weight
    least = _ROUNDING * float(np.sum(weight * middle.y * middle.y)) or 1.0
    mean = float(np.sum(weight * middle.y) / np.sum(weight))
    total = max(float(np.sum(weight * (middle.y - mean) ** 2)), least)
    found = {}
    for fit in full(middle.x, middle.y, Plan()).fits:
        b0, b1, b2 = (*fit.coefficients, 0.0, 0.0)[:3]
        bounds = fit.x_start, fit.x_end
        record = ModelRecord(
            fit.model, fit.r_square, b0, b1, b2, *bounds, points.uid, "full", model={"coeffs": ()}
        )
        curve = evaluate(record, middle.x)
        rss = float(np.sum(weight * (middle.y - curve) ** 2))
        if not np.isfinite(rss):
            continue
        rating = aicc(misfit(max(rss, least), count), count, _PARAMETERS.get(fit.model, 3))
        r_square = fit.r_square if fit.model == "constant" else max(0.0, 1 - rss / total)
        found[fit.model] = Rating(rating, r_square, record)
    return found


def best(rated: Mapping[str, Rating]) -> str:
    """The model of the lowest AICc."""
    return min(rated, key=lambda model: rated[model].aicc)


def evidence(old: Mapping[str, Rating], new: Mapping[str, Rating]) -> float:
    """How much AICc speaks against the best model of one version in the other, in that where it is more."""
    before, after = best(old), best(new)
    return max(
        _worse(new, before) - new[after].aicc,
        _worse(old, after) - old[before].aicc,
    )


def shapes_differ(one: ModelRecord, other: ModelRecord, start: float, end: float) -> bool:
    """Whether the curves differ by more than a factor from `start` to `end`."""
    x = np.linspace(start, end, 100)
    curves = evaluate(one, x), evaluate(other, x)
    known = np.isfinite(curves[0]) & np.isfinite(curves[1])
    scaled = [curve[known] / float(np.mean(curve[known])) for curve in curves]
    return bool(np.mean(np.abs(scaled[0] - scaled[1])) > OF_ANOTHER_SHAPE)


def _worse(rated: Mapping[str, Rating], model: str) -> float:
    return rated[model].aicc if model in rated else float("inf")
