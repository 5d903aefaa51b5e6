"""Fast Check: the difference of the best models, and the best model of the difference (manual 8.2.4)."""

from __future__ import annotations

from typing import ClassVar, Final

from perun.check._common.differences import DifferenceCheck, scaled
from perun.models.curves import Floats
from perun.models.regression.fits import MODELS
from perun.models.regression.methods import RegressionOptions, full

_ROUNDING: Final = 1e-9


class FastCheck(DifferenceCheck):
    """Reports every uid, also the unchanged ones; rates are in percent of the baseline.

    The type of a change is the best model of a full regression of the difference: `constant`, `linear`,
    `logarithmic`, `quadratic`, `power` or `exponential`.
    """

    name: ClassVar[str] = "fast_check"
    short: ClassVar[str] = "FAST"
    help: ClassVar[str] = (
        "Compares the best models of each uid: 25 % more is a degradation, of a type by full regression."
    )

    @staticmethod
    def kind_of(x: Floats, difference: Floats) -> str:
        """The best model of a full regression of the difference, its sign being that of its mean.

        A constant is rated by how little a line explains the difference (1 - R^2), which a parabola on
        a level line passes too. Here it is the best where no other model explains half of the difference.
        """
        d = scaled(difference)
        d = d if d.sum() >= 0 else -d
        if float(d.max() - d.min()) <= _ROUNDING:
            return "constant"
        fits = full(x, d, RegressionOptions([model for model in MODELS if model != "constant"])).fits
        highest = max((fit.r_square for fit in fits), default=0.0)
        if highest <= 0.5:
            return "constant"
        return next(fit.model for fit in fits if fit.r_square >= highest - _ROUNDING)


PLUGIN = FastCheck
