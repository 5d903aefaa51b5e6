"""Which of several models of the same points is the best one (manual 2.2 and 8.2.1).

The best model is the one of the highest coefficient of determination R^2. Two things are no merit of a model,
though. Models whose R^2 differ by no more than rounding are equally good; then the one that comes first in
:data:`~perun.models.regression.fits.MODELS` is the best. And a quadratic curve can do all that a line can:
by least squares it always comes a little nearer to points on a line with noise, by about a part in n of what
the line leaves unexplained. So it is better than the line only if it explains a tenth of that or more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from perun.models.regression.fits import MODELS

Model = TypeVar("Model")

ROUNDING: Final = 1e-12
"""Difference of two R^2 that says nothing."""
MIN_GAIN_OF_CURVE: Final = 0.1
"""Share of what the line leaves unexplained that a quadratic model must explain.

Of noise alone, a model of n points explains more only if a variable with a chi-squared distribution of one
degree of freedom exceeds n / 10: with 100 points once in 640 times."""
_RANK: Final = {model: rank for rank, model in enumerate(MODELS)}


def best_of(
    models: Iterable[Model], name: Callable[[Model], str], r_square: Callable[[Model], float]
) -> Model | None:
    """The best one; None if there is none at all.

    :param name: gives the name of a model in :data:`~perun.models.regression.fits.MODELS`; others are less
        simple than all of these. :param r_square: gives its R^2, in [0, 1].
    """
    found = list(models)
    lines = [r_square(model) for model in found if name(model) == "linear"]
    if lines:
        needed = max(lines) + MIN_GAIN_OF_CURVE * (1 - max(lines))
        found = [model for model in found if name(model) != "quadratic" or r_square(model) >= needed]
    found.sort(key=lambda model: _RANK.get(name(model), len(_RANK)))
    highest = max(map(r_square, found), default=0.0)
    return next((model for model in found if r_square(model) >= highest - ROUNDING), None)
