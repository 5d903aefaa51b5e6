"""How much the models of two versions differ: their curves, sampled where both are known.

The measures are of t, the curve of the target, and b, that of the baseline, as means over the samples:

========= ============================ =================================================================
rate      100 mean((t - b) / |b|)      the relative change in percent, which is told to the user
balance   100 mean((t - b) / smaller)  decides; `smaller` is the lower one of |t| and |b| at each x
distance  100 mean(|t - b| / larger)   in percent; nearness of the curves
========= ============================ =================================================================

The rate alone cannot decide, as it is lopsided: what is 30 % more there is 23 % less on the way back.
Swapping the versions gives the negative balance, though, and where the target is nowhere below the baseline,
the balance is the rate. So a limit of 25 % means: a degradation is a target at more than 5/4 of the baseline,
and an optimization is what it takes to undo one, a target at less than 4/5 of it, a rate below -20 %.

The points lie about a model with a variance of (1 - R^2) / R^2 times that of the curve itself, for power and
exponential models in logarithms. This scatter is 0 of models that fit exactly. Else it keeps apart what noise
does to a model from a change: the coefficients of noisy points differ by much more than their curves.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from perun.check._common.model_pairs import (
    DEFAULT,
    ModelInterval,
    ModelPair,
    extent,
    kind_pairs,
    model_pairs,
    names_of,
    parts,
)
from perun.check._common.points import CONFIDENCE, WEAKER, MedianChange, RelativeLimits, Runs, verdict
from perun.models.curves import Floats, evaluate
from perun.models.record import ModelRecord
from perun.plugin.api import CheckContext
from perun.plugin.params import param
from perun.profile.amounts import percent
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile

SAMPLES: Final = 1000
"""Points that the curves are compared at, at equal distances over the common x."""
_ROUNDING: Final = 1e-9
"""Relative error that a limit forgives: 1.05 / 1 - 1 is a bit more than 5 %."""
_SMALLEST_SCATTER: Final = 0.1
"""A curve is known to about a tenth of the scatter, as that of the mean of 100 points: what a change is
relative to is at least that, so that a curve near 0 does not count for all others."""
_NEAR_ZERO: Final = 0.05
_IN_LOGARITHMS: Final = ("power", "exponential")


class DifferenceLimits(NamedTuple):
    """In percent: what curves and coefficients may differ by without a change, and what is a certain one."""

    unchanged: float = 5.0
    changed: float = 25.0


class Samples(NamedTuple):
    """Two curves at the same x, all of shape (n,), finite, x ascending.

    :param scatter: the larger standard deviation of points about the two curves.
    """

    x: Floats
    baseline: Floats
    target: Floats
    scatter: Floats

    @property
    def difference(self) -> Floats:
        """Target - baseline, shape (n,)."""
        return self.target - self.baseline

    @property
    def within_scatter(self) -> bool:
        """Whether the curves are no further apart than their scatter, in the quadratic mean."""
        with np.errstate(all="ignore"):
            apart, noisy = self.difference, self.scatter > 0
            relative = np.divide(apart, self.scatter, out=np.zeros_like(apart), where=noisy)
            return bool(np.all(noisy | (apart == 0)) and np.mean(relative * relative) <= 1)

    def at(self, chosen: slice | NDArray[np.bool_]) -> Samples:
        """Some of the samples."""
        return Samples(*(values[chosen] for values in self))


class Measures(NamedTuple):
    """Three measures of a difference, in percent, see the module."""

    rate: float
    balance: float
    distance: float


class ModelDifference(NamedTuple):
    """What became of one uid.

    :param rate: in percent of the baseline; where curves cross so that the rate and the balance are of unlike
        signs, the balance.
    :param runs: change, rate, first and last x of each run of samples where the same version is the faster
        one; empty where that is the same everywhere, or nothing changed.
    """

    change: PerformanceChange
    rate: float
    runs: tuple[tuple[PerformanceChange, float, float, float], ...] = ()


def sampled(parts: Sequence[ModelInterval], number: int) -> Samples:
    """The curves at `number` x from the start of the first part to the end of the last, at equal distances.

    An x outside of all parts, or where one of the curves has no value, is left out; there may be none at all.
    """
    if not parts:
        return Samples(*(np.empty(0) for _ in Samples._fields))
    x = np.linspace(parts[0].start, parts[-1].end, number)
    baseline, target, scatter = (np.full(number, np.nan) for _ in range(3))
    for part in parts:
        inside = (x >= part.start) & (x <= part.end)
        baseline[inside] = evaluate(part.baseline, x[inside])
        target[inside] = evaluate(part.target, x[inside])
        scatter[inside] = np.maximum(scatter_of(part.baseline, x[inside]), scatter_of(part.target, x[inside]))
    known = np.isfinite(baseline) & np.isfinite(target) & np.isfinite(scatter)
    return Samples(x, baseline, target, scatter).at(known)


def sample(parts: Sequence[ModelInterval]) -> Samples | None:
    """The curves at :data:`SAMPLES` x, see :func:`sampled`; None where no x is left.

    Left out as well is an x where one of the two is not above 0: an amount is not negative, so the model does
    not hold there, nor where it comes near 0 (below 5 % of its mean). Curves that are 0 everywhere are equal.
    """
    samples = sampled(parts, SAMPLES)
    positive = _holds(samples.baseline) & _holds(samples.target)
    # Only of what is 0 everywhere the zeros say anything, namely that nothing changed.
    chosen = positive if positive.any() else samples.baseline == samples.target
    return samples.at(chosen) if chosen.any() else None


def _holds(curve: Floats) -> NDArray[np.bool_]:
    """Where a model of amounts can be believed, shape (n,): all of a curve that is positive everywhere."""
    positive = curve > 0
    if positive.all() or not positive.any():
        return np.asarray(positive)
    return np.asarray(curve > _NEAR_ZERO * float(np.mean(curve[positive])))


def measure(samples: Samples) -> Measures:
    """The three measures of the difference."""
    b, t = np.abs(samples.baseline), np.abs(samples.target)
    difference, least = samples.difference, _SMALLEST_SCATTER * samples.scatter
    with np.errstate(all="ignore"):
        rate, balance, distance = (
            100 * float(np.mean(_relative(values, np.maximum(to, least))))
            for values, to in (
                (difference, b),
                (difference, np.minimum(b, t)),
                (np.abs(difference), np.maximum(b, t)),
            )
        )
    return Measures(rate, balance, distance)


def compare(parts: Sequence[ModelInterval], samples: Samples, limits: DifferenceLimits) -> ModelDifference:
    """Whether and how the curves differ.

    - No change: in each part the models are of one kind, none of their coefficients differs by more than
      `limits.unchanged` percent of the larger one, and neither do the curves (the distance). For the curve of
      an exponential or a power model a small change of b1 can be a large one.
    - No change either: the distance is not above that limit, and the curves are not further apart than the
      scatter.
    - Degradation or Optimization: the balance is beyond `limits.changed` in either direction.
    - Maybe: anything else, and where both directions have gained, i.e. the rate is above 0 there and back.
    - Unknown: the curves cross and the balance is even, or is no number.
    """
    found = measure(samples)
    if _unchanged(parts, samples, found.distance, limits):
        return ModelDifference(PerformanceChange.NoChange, found.rate)
    even = abs(found.balance) <= 100 * _ROUNDING
    if even or not np.isfinite(found.balance):
        return ModelDifference(PerformanceChange.Unknown, 0.0)
    back = measure(samples._replace(baseline=samples.target, target=samples.baseline))
    contradictory = found.rate * back.rate >= 0
    change = _direction(found.balance, limits, certain=not contradictory)
    rate = found.rate if found.rate * found.balance > 0 else found.balance
    return ModelDifference(change, rate, _runs(samples, limits))


def _relative(values: Floats, to: Floats) -> Floats:
    return np.divide(values, to, out=np.zeros_like(values), where=values != 0)


def _unchanged(
    parts: Sequence[ModelInterval], samples: Samples, distance: float, limits: DifferenceLimits
) -> bool:
    limit = limits.unchanged * (1 + _ROUNDING)
    if not distance <= limit:
        return False
    scale = max(float(np.abs(curve).max()) for curve in (samples.baseline, samples.target))
    return all(_same_coefficients(part, limit / 100, scale) for part in parts) or samples.within_scatter


def _same_coefficients(part: ModelInterval, limit: float, scale: float) -> bool:
    """Whether no coefficient differs by more than the limit, or by more than what is rounding in the curve.

    :param scale: the largest value of the two curves.
    """
    one, other = part.baseline, part.target
    if one.type != other.type:
        return False
    pairs = ((one.b0, other.b0), (one.b1, other.b1), (one.b2, other.b2))
    for (b, t), weight in zip(pairs, _weights(part, scale), strict=True):
        apart = abs(t - b)
        if apart > limit * max(abs(b), abs(t)) and apart * weight > _ROUNDING:
            return False
    return True


def _weights(part: ModelInterval, scale: float) -> tuple[float, float, float]:
    """By how much of its largest value the curve moves at most when b0, b1 or b2 grow by 1."""
    far = max(abs(part.start), abs(part.end))
    steep = max(abs(math.log(x)) for x in (part.start, part.end) if x > 0) if part.end > 0 else math.inf
    if part.baseline.type == "power":
        return math.inf, steep, math.inf
    if part.baseline.type == "exponential" or not scale:
        return math.inf, math.inf, math.inf
    return 1 / scale, (steep if part.baseline.type == "logarithmic" else far) / scale, far * far / scale


def _direction(balance: float, limits: DifferenceLimits, *, certain: bool) -> PerformanceChange:
    if certain and abs(balance) > limits.changed * (1 + _ROUNDING):
        return PerformanceChange.Degradation if balance > 0 else PerformanceChange.Optimization
    return PerformanceChange.MaybeDegradation if balance > 0 else PerformanceChange.MaybeOptimization


def _runs(
    samples: Samples, limits: DifferenceLimits
) -> tuple[tuple[PerformanceChange, float, float, float], ...]:
    sign = np.sign(samples.difference)
    edges = [0, *(np.flatnonzero(np.diff(sign)) + 1).tolist(), len(sign)]
    runs = []
    for start, end in pairwise(edges):
        part = samples.at(slice(start, end))
        found = measure(part)
        if found.balance:
            change = _direction(found.balance, limits, certain=True)
            runs.append((change, found.rate, float(part.x[0]), float(part.x[-1])))
    return tuple(runs) if len(runs) > 1 else ()


def scatter_of(record: ModelRecord, x: Floats) -> Floats:
    """Standard deviation of the points about the model; 0 of a constant, whose R^2 is that of a line."""
    noise = (1 - record.r_square) / record.r_square
    own = evaluate(record, np.linspace(record.x_start, record.x_end, SAMPLES)) if noise > _ROUNDING else x[:0]
    own = own[np.isfinite(own)]
    if record.type == "constant" or not own.size:
        return np.zeros_like(x)
    with np.errstate(all="ignore"):
        if record.type in _IN_LOGARITHMS:
            relative = float(np.std(np.log(np.abs(own)))) * math.sqrt(noise)
            return np.asarray(np.abs(evaluate(record, x)) * relative)
        return np.full_like(x, float(np.std(own)) * math.sqrt(noise))


# A change of models, and what speaks against it: a poor fit, the measured points, and the noise of runs.

_MAYBE: Final = {
    PerformanceChange.Degradation: PerformanceChange.MaybeDegradation,
    PerformanceChange.Optimization: PerformanceChange.MaybeOptimization,
}


def judged(
    pair: ModelPair,
    change: PerformanceChange,
    common: Sequence[ModelInterval],
    params: DifferenceParams | IntegralParams,
    runs: Runs,
    *,
    sums: bool = False,
) -> tuple[PerformanceChange, str]:
    """A change of models after all that may speak against it; why, where something does.

    It is definite only if the 99 % interval of the ratio excludes 1, and maybe one only if the 95 % interval
    does; otherwise it is Unknown.

    :param sums: whether the change is one of integrals.
    """
    worst = min(part.r_square for part in common)
    if change is not PerformanceChange.NoChange and worst < params.r_square:
        return PerformanceChange.Unknown, (
            f"the models explain {worst:.2g} of the measured points, less than r_square = {params.r_square:g}"
        )
    measured = runs.measured(pair.uid, common, params.most_apart, sums=sums)
    if measured is None:
        return change, ""
    change, rule = confirmed(change, measured.balance, params.limits)
    if change in (PerformanceChange.NoChange, PerformanceChange.Unknown):
        return change, rule
    return _beyond_noise(change, rule, measured)


def confirmed(
    change: PerformanceChange, measured: float, limits: RelativeLimits
) -> tuple[PerformanceChange, str]:
    """The milder one of the changes of the models and of the points; why, where it is that of the points.

    :param measured: the balance of the points. :param limits: those that the change was judged by.
    """
    if change in (PerformanceChange.NoChange, PerformanceChange.Unknown):
        return change, ""
    own = verdict(measured, limits)
    if own is PerformanceChange.Unknown:
        return change, ""
    if own is not PerformanceChange.NoChange and (own.value < 0) is not (change.value < 0):
        return PerformanceChange.Unknown, (
            f"the medians of the measured points changed the other way, by {percent(measured)}"
        )
    if abs(own.value) >= abs(change.value):
        return change, ""
    only = f"the medians of the measured points by {percent(measured)} only"
    return own, f"the models differ by more, but {only}"


def _beyond_noise(
    change: PerformanceChange, rule: str, measured: MedianChange
) -> tuple[PerformanceChange, str]:
    """No more than the intervals of the ratio allow."""
    for confidence, (low, high) in ((WEAKER, measured.interval_95), (CONFIDENCE, measured.interval)):
        if low <= 1 <= high:
            interval = f"the {100 * confidence:g} % interval of the ratio of two such runs"
            rule = f"{interval}, {low:.3g} to {high:.3g}, includes 1: {_ADVICE}"
            return (PerformanceChange.Unknown if confidence == WEAKER else _MAYBE.get(change, change)), rule
    return change, rule


_ADVICE: Final = "measure in rounds, or side by side by perun compare"


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

    @property
    def most_apart(self) -> float:
        """The share that a machine makes of a run at most."""
        return self.apart / 100

    @property
    def limits(self) -> RelativeLimits:
        """The limits of a change, as shares."""
        return RelativeLimits(self.unchanged / 100, self.changed / 100)


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

    @property
    def most_apart(self) -> float:
        """The share that a machine makes of a run at most."""
        return self.apart

    @property
    def limits(self) -> RelativeLimits:
        """The limits of a change, as shares."""
        return RelativeLimits(self.no_change, self.maybe)


# What kind of function the difference of two curves is: the type of a change, in three ways.
#
# None of them depends on the unit of the amounts or on which of the two curves comes first.

OTHER: Final = "other"
"""The type of a difference that is none of those that are looked for."""
DEGREES: Final = ("constant", "linear", "quadratic", "cubic")


def scaled(difference: Floats) -> Floats:
    """The difference with a largest magnitude of 1."""
    return difference / (float(np.abs(difference).max()) or 1.0)


def polynomial_residuals(x: Floats, d: Floats, degrees: int = len(DEGREES)) -> Iterator[float]:
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


# The comparison of one pair of models after the other.

P = TypeVar("P")


class ModelCheck(ABC, Generic[P]):
    """A check that compares the models of each uid; a subclass compares those of one pair."""

    TYPE: ClassVar[str] = ""
    """Type of its changes, where `--models-type` chooses the models; empty where it compares the best ones of
    a regression analysis."""

    @abstractmethod
    def compared(self, pair: ModelPair, params: P, runs: Runs) -> DegradationInfo:
        """The change of one pair.

        :param runs: those of the two profiles.
        """

    def compare(
        self, baseline: Profile, target: Profile, params: P, ctx: CheckContext
    ) -> Iterator[DegradationInfo]:
        """The changes, uids in the order of their names.

        Where `--models-type` has several models of a uid compared, the type names the model besides.

        :raises ProfileError: where a profile has no models of the wanted kind.
        """
        runs = Runs(baseline, target)
        pairs = kind_pairs(baseline, target, ctx.models_type or DEFAULT) if self.TYPE else None
        for pair in model_pairs(baseline, target) if pairs is None else pairs:
            if isinstance(pair, ModelPair):
                yield self.compared(pair, params, runs)
            else:
                pair.type = self.TYPE or pair.type
                yield pair


class DifferenceCheck(ModelCheck[DifferenceParams]):
    """Compares the best models of each uid by the measures of this module; rates are in percent.

    Its type is that of the difference of the models, its rate and its relative rate are in percent of the
    baseline, its values the means of both curves over the x that they have in common.
    """

    Params: ClassVar[type] = DifferenceParams

    @staticmethod
    @abstractmethod
    def kind_of(x: Floats, difference: Floats) -> str:
        """The type of a difference of two curves.

        :param x: shape (n,), ascending. :param difference: shape (n,).
        """

    def compared(self, pair: ModelPair, params: DifferenceParams, runs: Runs) -> DegradationInfo:
        """The change, no more than the points of the profiles show and the noise of their runs allows."""
        common = parts(pair.baseline, pair.target)
        samples = sample(common)
        if samples is None:
            if not common:
                return pair.unknown("-", extent(pair.baseline), extent(pair.target))
            names = names_of(part.baseline for part in common), names_of(part.target for part in common)
            return pair.unknown("-", *names)
        found = compare(common, samples, DifferenceLimits(params.unchanged, params.changed))
        result = judged(pair, found.change, common, params, runs)
        unchanged = result[0] is PerformanceChange.NoChange
        what = "-" if unchanged else self.kind_of(samples.x, samples.difference)
        means = float(np.mean(samples.baseline)), float(np.mean(samples.target))
        info = pair.change(what, result, means, (found.rate, found.rate), common)
        # Of parts, the relative change is a share in every method.
        shares = [(kind, rate / 100, start, end) for kind, rate, start, end in found.runs]
        info.partial_intervals = [] if unchanged else shares
        return info
