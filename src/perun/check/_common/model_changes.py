"""Changes of performance between the models of two profiles; numpy is imported here (manual 8.2.4-8.2.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from perun.check._common import points
from perun.check._common.differences import Limits, compare, judged, sample
from perun.check._common.model_pairs import ModelPair, extent, model_pairs, parts
from perun.check._common.noise import Runs
from perun.models.curves import Floats
from perun.models.record import ModelRecord
from perun.models.regression.fits import MODELS
from perun.models.regression.methods import Plan, full
from perun.plugin.params import param
from perun.profile.amounts import written
from perun.profile.changes import DegradationInfo, PerformanceChange

if TYPE_CHECKING:
    from perun.profile.factory import Profile


# Parameters that several checks have.

APART: Final = "The most that the machine is expected to make of two runs of one program; more is definite."


@dataclass(frozen=True)
class DifferenceParams:
    """What is no change, and what is a certain one: of FAST, LREG and PREG."""

    unchanged: float = param(
        5.0,
        metavar="<percent>",
        minimum=0,
        help="Models whose coefficients and values differ by at most this much have not changed.",
    )
    changed: float = param(
        25.0,
        metavar="<percent>",
        minimum=0,
        help="More than this much more, or as much less as undoes it, is certain; less is a maybe.",
    )
    r_square: float = param(
        0.15, metavar="<r_square>", minimum=0, help="Models that fit worse than this prove no change."
    )
    apart: float = param(100.0, metavar="<percent>", minimum=0, help=APART)


@dataclass(frozen=True)
class IntegralParams:
    """What is no change, what may be one, and which models are good enough: of INT and LOC."""

    no_change: float = param(
        0.10, metavar="<share>", minimum=0, help="Up to this much more, or less to undo it, is no change."
    )
    maybe: float = param(
        0.25, metavar="<share>", minimum=0, help="Up to this much more, or less to undo it, is not certain."
    )
    r_square: float = param(
        0.15, metavar="<r_square>", minimum=0, help="Models that fit worse than this prove no change."
    )
    apart: float = param(1.0, metavar="<share>", minimum=0, help=APART)


# What kind of function the difference of two curves is: the type of a change, in three ways.
#
# None of them depends on the unit of the amounts or on which of the two curves comes first.

OTHER: Final = "other"
"""The type of a difference that is none of those that are looked for."""
DEGREES: Final = ("constant", "linear", "quadratic", "cubic")

_ROUNDING: Final = 1e-9
_LEVEL: Final = 0.05
_STRAIGHT: Final = 0.95
_CURVED: Final = 0.9
_BETTER: Final = 0.01
_UNEXPLAINED: Final = 0.05**2

Shape = Callable[[Floats, Floats], str]
"""A function of ascending x and of the differences there, both of shape (n,), that gives the type."""


def polynomial(x: Floats, difference: Floats) -> str:
    """The lowest degree, of :data:`DEGREES`, of a polynomial that the difference is; :data:`OTHER` if none.

    It is one where the sum of the squared residuals is at most 1/400 of the sum of the squared differences,
    i.e. where the polynomial is 5 % off on average.
    """
    d = _scaled(difference)
    total = float(np.sum(d * d))
    for name, residuals in zip(DEGREES, _residuals(x, d), strict=False):
        if residuals <= _UNEXPLAINED * total:
            return name
    return OTHER


def straight(x: Floats, difference: Floats) -> str:
    """`constant`, `linear` or `quadratic` by a linear regression of the difference on x; else :data:`OTHER`.

    It is constant where the line rises or falls by at most 5 % of the largest difference from the first x to
    the last; linear with R^2 above 0.95; quadratic where a parabola has an R^2 above 0.9 that is at least
    0.01 above that of the line. A line through a parabola may be level as well: such a difference is constant
    only where it varies by no more than these 5 % in all.
    """
    d = _scaled(difference)
    residuals = list(_residuals(x, d, degrees=3))
    total, line, parabola = (*residuals, 0.0, 0.0)[:3]
    curved = len(residuals) > 2 and total - parabola > _CURVED * total and line - parabola >= _BETTER * total
    if float(d.max() - d.min()) <= _LEVEL or (_rise(x, d) <= _LEVEL and not curved):
        return "constant"
    if total - line > _STRAIGHT * total:
        return "linear"
    return "quadratic" if curved else OTHER


def regression(x: Floats, difference: Floats) -> str:
    """The best model of a full regression of the difference, its sign being that of its mean.

    A constant is rated by how little a line explains the difference (1 - R^2), which a parabola on a level
    line passes too. Here it is the best where no other model explains half of the difference.
    """
    d = _scaled(difference)
    d = d if d.sum() >= 0 else -d
    if float(d.max() - d.min()) <= _ROUNDING:
        return "constant"
    fits = full(x, d, Plan([model for model in MODELS if model != "constant"])).fits
    highest = max((fit.r_square for fit in fits), default=0.0)
    if highest <= 0.5:
        return "constant"
    return next(fit.model for fit in fits if fit.r_square >= highest - _ROUNDING)


def _scaled(difference: Floats) -> Floats:
    return difference / (float(np.abs(difference).max()) or 1.0)


def _rise(x: Floats, d: Floats) -> float:
    """How much the regression line rises or falls from the first x to the last."""
    u = x - x.mean()
    square = float(np.sum(u * u))
    return abs(float(np.sum(u * d))) / square * float(x[-1] - x[0]) if square else 0.0


def _residuals(x: Floats, d: Floats, degrees: int = len(DEGREES)) -> Iterator[float]:
    """Sums of the squared residuals of polynomials of degree 0, 1 ..., as many as the number of x allows.

    The powers of x are made orthogonal one after the other, so that each adds to the fit of those before.
    """
    half = float(x[-1] - x[0]) / 2
    u = (x - (x[0] + x[-1]) / 2) / half if half else np.zeros_like(x)
    known: list[Floats] = []
    rest = d.copy()
    for degree in range(min(degrees, len(x))):
        power = u**degree
        for one in known:
            power = power - one * float(np.sum(power * one))
        length = float(np.sum(power * power)) ** 0.5
        if length <= _ROUNDING:
            return
        known.append(power / length)
        rest -= known[-1] * float(np.sum(rest * known[-1]))
        yield float(np.sum(rest * rest))


def changes(
    baseline: Profile, target: Profile, params: DifferenceParams, shape: Shape
) -> Iterator[DegradationInfo]:
    """One change for each uid, in the order of their names, see :mod:`perun.check._common.differences`.

    A change is no more than the points of the two profiles show, and than the noise of their runs allows, see
    :mod:`perun.check._common.differences`. If the worse model fits worse than `params.r_square`, a change is
    Unknown.

    Its type is that of the difference of the models, its rate and its relative rate are in percent of the
    baseline, its values the means of both curves over the x that they have in common.

    :param shape: gives the type.
    :raises ProfileError: where one of the profiles has no models of a regression analysis.
    """
    runs = Runs(baseline, target, params.apart / 100)
    for pair in model_pairs(baseline, target):
        yield pair.unpaired or _change(pair, params, shape, runs)


def _change(pair: ModelPair, params: DifferenceParams, shape: Shape, runs: Runs) -> DegradationInfo:
    common = parts(pair.baseline, pair.target)
    if not common:
        return DegradationInfo(
            PerformanceChange.Unknown, pair.uid, extent(pair.baseline), extent(pair.target)
        )
    samples = sample(common)
    names = _names([part.baseline for part in common]), _names([part.target for part in common])
    if samples is None:
        return DegradationInfo(PerformanceChange.Unknown, pair.uid, *names)
    found = compare(common, samples, Limits(params.unchanged, params.changed))
    measured = runs.measured(pair.uid, common)
    limits = points.RelativeLimits(params.unchanged / 100, params.changed / 100)
    change, rule = judged(found.change, common, params.r_square, measured, limits)
    unchanged = change is PerformanceChange.NoChange
    means = float(np.mean(samples.baseline)), float(np.mean(samples.target))
    return DegradationInfo(
        res=change,
        loc=pair.uid,
        fb=f"{written(means[0], pair.unit)} ({names[0]})",
        tt=f"{written(means[1], pair.unit)} ({names[1]})",
        t="-" if unchanged else shape(samples.x, samples.difference),
        rd=found.rate,
        ct="r_square",
        cr=min(part.r_square for part in common),
        # Of parts, the relative change is a share in every method.
        pi=[] if unchanged else [(kind, rate / 100, start, end) for kind, rate, start, end in found.runs],
        rdr=found.rate,
        rule=rule,
        values=means,
        unit=pair.unit,
    )


def _names(records: list[ModelRecord]) -> str:
    """The kinds of the models along x: `constant, linear`."""
    kinds = [record.type for record in records]
    return ", ".join(kind for at, kind in enumerate(kinds) if not at or kinds[at - 1] != kind)
