"""Which models are made of which points: the five methods of regression analysis (manual 5.1.2).

Which model is the best one is said by :mod:`perun.models.regression.methods`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np

from perun.models.growth.forms import EVIDENCE, aicc
from perun.models.record import NoModel
from perun.models.regression.fits import MIN_POINTS, MODELS, Fit, FitPoints, Floats, points_of

# Which of several models of the same points is the best one (manual 2.2 and 8.2.1).
#
# The coefficients of determination R^2 that a profile keeps are not on one scale: those of a power and of an
# exponential model are of logarithms, and a constant, which explains no variance at all, is rated by the
# line. So models of the same points are compared by what they explain on one scale, see
# :mod:`perun.models.regression.fits`.
#
# - The constant is the best where no other one explains enough. With :data:`ENOUGH_POINTS` that is decided by
# AICc, and needs evidence: noise makes some curve fit a little better. With fewer points, AICc has no meaning
# for most models; there another one has to explain half of the variance. - A quadratic model has a
# coefficient more. It comes nearer to points on a line with noise by about a part in   n of what the line
# leaves unexplained, so it has to explain a tenth of that. - Of models whose shares differ by no more than
# rounding, the one is the best that comes first in   :data:`~perun.models.regression.fits.MODELS`.
#
# Models of different points, and those of profiles that do not have that share, are compared by R^2; there
# the constant is the best where no other one has an R^2 above a half.

Model = TypeVar("Model")

ROUNDING: Final = 1e-12
"""Difference of two shares that says nothing."""
MIN_GAIN_OF_CURVE: Final = 0.1
"""Share of what the line leaves unexplained that a quadratic model must explain.

Of noise alone, a model of n points explains more only if a variable with a chi-squared distribution of one
degree of freedom exceeds n / 10: with 100 points once in 640 times."""
ENOUGH_POINTS: Final = 8
"""Points from which on AICc decides whether anything is better than a constant."""
_HALF: Final = 0.5
_PARAMETERS: Final = {"constant": 2, "quadratic": 4}
"""Number of parameters, that of the variance included; 3 of the other models."""
_RANK: Final = {model: rank for rank, model in enumerate(MODELS)}


class FitQuality(NamedTuple):
    """What is known of how well a model fits.

    :param model: its name in :data:`~perun.models.regression.fits.MODELS`; others are less simple than these.
    :param r_square: its R^2 as a profile keeps it, in [0, 1].
    :param explained: the share of the variance that it explains, in [0, 1]; NaN if that is not known.
    :param points: how many it was made of; 0 if that is not known.
    :param interval: first and last x of these.
    """

    model: str
    r_square: float
    explained: float = math.nan
    points: int = 0
    interval: tuple[float, float] = (math.nan, math.nan)


def best_of(models: Iterable[Model], rating: Callable[[Model], FitQuality]) -> Model | None:
    """The best one; None if there is none at all."""
    alike: dict[tuple[int, float, float], list[tuple[FitQuality, Model]]] = {}
    finalists: list[tuple[FitQuality, Model]] = []
    for model in models:
        rated = rating(model)
        if rated.points and math.isfinite(rated.explained):
            alike.setdefault((rated.points, *rated.interval), []).append((rated, model))
        else:
            finalists.append((rated, model))
    finalists += [_of_same_points(rivals) for rivals in alike.values()]
    return _of_different_points(finalists)[1] if finalists else None


def _of_same_points(rivals: Sequence[tuple[FitQuality, Model]]) -> tuple[FitQuality, Model]:
    def explained(rated: FitQuality) -> float:
        return 0.0 if rated.model == "constant" else rated.explained

    def is_enough(rated: FitQuality) -> bool:
        if rated.points < ENOUGH_POINTS:
            return explained(rated) > _HALF
        level = _aicc("constant", 0.0, rated.points)
        return _aicc(rated.model, explained(rated), rated.points) < level - EVIDENCE

    return _best(rivals, explained, is_enough)


def _of_different_points(rivals: Sequence[tuple[FitQuality, Model]]) -> tuple[FitQuality, Model]:
    return _best(rivals, lambda rated: rated.r_square, lambda rated: rated.r_square > _HALF)


def _best(
    rivals: Sequence[tuple[FitQuality, Model]],
    share: Callable[[FitQuality], float],
    is_enough: Callable[[FitQuality], bool],
) -> tuple[FitQuality, Model]:
    ordered = sorted(rivals, key=lambda rival: _RANK.get(rival[0].model, len(_RANK)))
    others = [rival for rival in ordered if rival[0].model != "constant"]
    lines = [share(rated) for rated, _ in others if rated.model == "linear"]
    if lines:
        needed = max(lines) + MIN_GAIN_OF_CURVE * (1 - max(lines))
        others = [rival for rival in others if rival[0].model != "quadratic" or share(rival[0]) >= needed]
    highest = max((share(rated) for rated, _ in others), default=0.0)
    leader = next((rival for rival in others if share(rival[0]) >= highest - ROUNDING), None)
    level = next((rival for rival in ordered if rival[0].model == "constant"), None)
    if leader is None or (level is not None and not is_enough(leader[0])):
        assert level is not None  # there is one at least
        return level
    return leader


def _aicc(model: str, explained: float, points: int) -> float:
    """AICc but for what all models of the same points share."""
    return aicc(points * math.log(max(1 - explained, ROUNDING)), points, _PARAMETERS.get(model, 3))


class MethodModels(NamedTuple):
    """The models that a method has made, and a clause for each that it could not make: which one, and why."""

    fits: list[Fit]
    gaps: list[str]


class RegressionOptions(NamedTuple):
    """The options of a method.

    :param models: names of models to be tried.
    :param steps: parts that the points are divided into, at least 1.
    :param seed: of the random order that `initial_guess` and `iterative` see the points in; at least 0.
    """

    models: Sequence[str] = tuple(MODELS)
    steps: int = 3
    seed: int = 0


def full(x: Floats, y: Floats, plan: RegressionOptions) -> MethodModels:
    """All models of all points."""
    points = points_of(x, y)
    if isinstance(points, NoModel):
        return _none_of(plan.models, points)
    made = {model: MODELS[model](points) for model in plan.models}
    return MethodModels(
        [fit for fit in made.values() if isinstance(fit, Fit)],
        [f"no {model} model: {none.reason}" for model, none in made.items() if isinstance(none, NoModel)],
    )


def initial_guess(x: Floats, y: Floats, plan: RegressionOptions) -> MethodModels:
    """One model of all points, of the kind that is the best for the first part of them in a random order.

    Where no model can be made of so few, the next part is added.
    """
    samples = _GrowingSamples(x, y, plan)
    whole = samples.whole
    if isinstance(whole, NoModel):
        return _none_of(plan.models, whole)
    for number in range(len(samples)):
        candidates = list(_fits_of(plan.models, samples[number]))
        while candidates:
            leader = _best_fit(candidates)
            made = MODELS[leader.model](whole)
            if isinstance(made, Fit):
                return MethodModels([made], [])
            candidates.remove(leader)
    return _none_of(plan.models, whole)


def iterative(x: Floats, y: Floats, plan: RegressionOptions) -> MethodModels:
    """As :func:`initial_guess`, but the best model gets only one part more of the points.

    Then the best one is chosen anew, until it is a model that has seen all points.
    """
    samples = _GrowingSamples(x, y, plan)
    seen = dict.fromkeys(plan.models, -1)
    fits: dict[str, Fit] = {}
    growing = list(plan.models)
    while growing:
        for model in growing:
            seen[model] += 1
            fits.pop(model, None)
            fits.update((fit.model, fit) for fit in _fits_of([model], samples[seen[model]]))
        if fits:
            leader = _best_fit(fits.values())
            if seen[leader.model] == len(samples) - 1:
                return MethodModels([leader], [])
            growing = [leader.model]
        else:
            growing = [model for model in plan.models if seen[model] < len(samples) - 1]
    return _none_of(plan.models, samples.whole)


def interval(x: Floats, y: Floats, plan: RegressionOptions) -> MethodModels:
    """The best model of each of `steps` parts along x that have the same number of points, or nearly."""
    whole = points_of(x, y)
    if isinstance(whole, NoModel):
        return _none_of(plan.models, whole)
    x, y = _sorted(x, y)
    steps = max(1, min(plan.steps, len(x)))
    found = [
        (part_x, _best_of_points(plan.models, points_of(part_x, part_y)))
        for part_x, part_y in zip(np.array_split(x, steps), np.array_split(y, steps), strict=True)
    ]
    gaps: dict[str, list[Floats]] = {}
    for part_x, made in found:
        if isinstance(made, NoModel):
            gaps.setdefault(made.reason, []).append(part_x)
    return MethodModels(
        [made for _, made in found if isinstance(made, Fit)],
        [f"no model of {_parts(parts, steps)}: {reason}" for reason, parts in gaps.items()],
    )


def bisection(x: Floats, y: Floats, plan: RegressionOptions) -> MethodModels:
    """The best model of all points, if it is the best of both their halves along x, too.

    Else each half of which another model is the best is treated in the same way, and the other half is
    kept. A part is not split if one of its halves has no model.
    """
    x, y = _sorted(x, y)
    whole = points_of(x, y)
    best = _best_of_points(plan.models, whole)
    if isinstance(best, NoModel):
        return _none_of(plan.models, whole)
    return MethodModels(list(_bisected(x, y, plan.models, best)), [])


METHODS: Final[Mapping[str, Callable[[Floats, Floats, RegressionOptions], MethodModels]]] = {
    "full": full,
    "iterative": iterative,
    "interval": interval,
    "initial_guess": initial_guess,
    "bisection": bisection,
}
"""The methods by name, as functions of x and y, both of shape (n,), and of the plan."""


class _GrowingSamples:
    """Points in a random order, the first `1 / steps` of them, the first `2 / steps` and so on to all."""

    def __init__(self, x: Floats, y: Floats, plan: RegressionOptions) -> None:
        self._x, self._y = x, y
        self.whole = points_of(x, y)
        steps = max(1, min(plan.steps, len(x)))
        sizes = {max(-(-len(x) * step // steps), MIN_POINTS) for step in range(1, steps + 1)}
        self._sizes = sorted(size for size in sizes if size < len(x))
        # Unlike newer generators this one promises the same order in every release of numpy.
        random = np.random.RandomState(np.random.MT19937(plan.seed))
        self._order = random.permutation(len(x))
        self._known: dict[int, FitPoints | NoModel] = {}

    def __len__(self) -> int:
        return len(self._sizes) + 1

    def __getitem__(self, number: int) -> FitPoints | NoModel:
        if number == len(self._sizes):
            return self.whole
        if number not in self._known:
            first = self._order[: self._sizes[number]]
            self._known[number] = points_of(self._x[first], self._y[first])
        return self._known[number]


def _bisected(x: Floats, y: Floats, models: Sequence[str], best: Fit) -> Iterator[Fit]:
    middle = (len(x) + 1) // 2
    halves = (x[:middle], y[:middle]), (x[middle:], y[middle:])
    found = [_best_of_points(models, points_of(*half)) for half in halves]
    fits = [made for made in found if isinstance(made, Fit)]
    if len(fits) < len(halves) or all(fit.model == best.model for fit in fits):
        yield best
        return
    for half, fit in zip(halves, fits, strict=True):
        if fit.model == best.model:
            yield fit
        else:
            yield from _bisected(*half, models, fit)


def _sorted(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    order = np.argsort(x, kind="stable")
    return x[order], y[order]


def _fits_of(models: Iterable[str], points: FitPoints | NoModel) -> Iterator[Fit]:
    if isinstance(points, FitPoints):
        for model in models:
            made = MODELS[model](points)
            if isinstance(made, Fit):
                yield made


def _best_of_points(models: Iterable[str], points: FitPoints | NoModel) -> Fit | NoModel:
    fits = list(_fits_of(models, points))
    return _best_fit(fits) if fits else NoModel(_why(models, points))


def _best_fit(fits: Iterable[Fit]) -> Fit:
    found = list(fits)
    # Those of `iterative` are made of samples of the same points, some of which are larger.
    fewest = min(fit.points for fit in found)
    best = best_of(found, lambda fit: FitQuality(fit.model, fit.r_square, fit.explained, fewest))
    assert best is not None  # there is at least one
    return best


def _none_of(models: Iterable[str], points: FitPoints | NoModel) -> MethodModels:
    return MethodModels([], [f"no model: {_why(models, points)}"])


def _why(models: Iterable[str], points: FitPoints | NoModel) -> str:
    if isinstance(points, NoModel):
        return points.reason
    made = [(model, MODELS[model](points)) for model in models]
    return ", ".join(f"{model}: {none.reason}" for model, none in made if isinstance(none, NoModel))


def _parts(parts: list[Floats], steps: int) -> str:
    first = f"x = {parts[0][0]:g} to {parts[0][-1]:g}"
    return f"the part {first}" if len(parts) == 1 else f"{len(parts)} of {steps} parts, the first {first}"
