"""One model as a value: the function, its interval and how well it fits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class ModelRecord(NamedTuple):
    """One model of one uid, or of one of several things that were measured of it.

    :param uid: with the subtype in brackets where the model has one: `./prog [real]`.
    :param type: what kind of function it is: `linear`, `quadratic` ..., or for a non-parametric model
        `regressogram`, `moving_average`, `kernel_regression`.
    :param r_square: how well it fits; 0 if the profile does not say.
    :param b0: coefficients as the profile keeps them; 0 if there is none.
    :param x_start: first x of its interval; NaN if the profile does not say. :param x_end: the last one.
    :param method: how the regression chose it: `full`, `bisection` ...; else as `type`.
    :param values: of a non-parametric model, over its interval; empty for a parametric one.
    :param per_key: the independent field, if the profile says.
    :param model: the model as the profile keeps it, with whatever else its postprocessor wrote.
    :param explained: share of the variance that it explains, see :mod:`perun.models.regression.fits`; NaN if
        the profile does not say. :param points: how many points it was made of; 0 likewise.
    """

    type: str
    r_square: float
    b0: float
    b1: float
    b2: float
    x_start: float
    x_end: float
    uid: str
    method: str
    values: tuple[float, ...] = ()
    per_key: str = ""
    model: Mapping[str, Any] = MappingProxyType({})
    explained: float = math.nan
    points: int = 0

    @property
    def is_parametric(self) -> bool:
        """Whether it is a function given by coefficients."""
        return "coeffs" in self.model


class NoModel(NamedTuple):
    """There is no model; `reason` says why, as a clause for a message, e.g. `all x are equal`."""

    reason: str
