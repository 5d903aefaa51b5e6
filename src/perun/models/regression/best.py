"""Which of several models of the same points is the best one (manual 2.2 and 8.2.1).

The coefficients of determination R^2 that a profile keeps are not on one scale: those of a power and of an
exponential model are of logarithms, and a constant, which explains no variance at all, is rated by the line.
So models of the same points are compared by what they explain on one scale, see
:mod:`perun.models.regression.fits`.

- The constant is the best where no other one explains enough. With :data:`ENOUGH_POINTS` that is decided by
  AICc, and needs evidence: noise makes some curve fit a little better. With fewer points, AICc has no meaning
  for most models; there another one has to explain half of the variance.
- A quadratic model has a coefficient more. It comes nearer to points on a line with noise by about a part in
  n of what the line leaves unexplained, so it has to explain a tenth of that.
- Of models whose shares differ by no more than rounding, the one is the best that comes first in
  :data:`~perun.models.regression.fits.MODELS`.

Models of different points, and those of profiles that do not have that share, are compared by R^2; there the
constant is the best where no other one has an R^2 above a half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from perun.models.growth.forms import EVIDENCE, aicc
from perun.models.regression.fits import MODELS

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


class Rating(NamedTuple):
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


def best_of(models: Iterable[Model], rating: Callable[[Model], Rating]) -> Model | None:
    """The best one; None if there is none at all."""
    alike: dict[tuple[int, float, float], list[tuple[Rating, Model]]] = {}
    finalists: list[tuple[Rating, Model]] = []
    for model in models:
        rated = rating(model)
        if rated.points and math.isfinite(rated.explained):
            alike.setdefault((rated.points, *rated.interval), []).append((rated, model))
        else:
            finalists.append((rated, model))
    finalists += [_of_same_points(rivals) for rivals in alike.values()]
    return _of_different_points(finalists)[1] if finalists else None


def _of_same_points(rivals: Sequence[tuple[Rating, Model]]) -> tuple[Rating, Model]:
    def explained(rated: Rating) -> float:
        return 0.0 if rated.model == "constant" else rated.explained

    def is_enough(rated: Rating) -> bool:
        if rated.points < ENOUGH_POINTS:
            return explained(rated) > _HALF
        level = _aicc("constant", 0.0, rated.points)
        return _aicc(rated.model, explained(rated), rated.points) < level - EVIDENCE

    return _best(rivals, explained, is_enough)


def _of_different_points(rivals: Sequence[tuple[Rating, Model]]) -> tuple[Rating, Model]:
    return _best(rivals, lambda rated: rated.r_square, lambda rated: rated.r_square > _HALF)


def _best(
    rivals: Sequence[tuple[Rating, Model]],
    share: Callable[[Rating], float],
    is_enough: Callable[[Rating], bool],
) -> tuple[Rating, Model]:
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
