"""How much larger or smaller a value of the target is than that of the baseline, the same in both directions.

The relative error (t - b) / |b| is what users are told, but it is lopsided: 30 % more there is 23 % less on
the way back. The balance (t - b) / smaller, where `smaller` is the lower one of |b| and |t|, is the relative
error of a growth, and exchanging the two values changes nothing but its sign. It is what limits are for: with
0.25 a degradation is a target of more than 5/4 of the baseline, and an optimization what undoes one, a target
of less than 4/5, a relative error below -0.2. (Limits of 0.1 and 0.25 of the relative error itself would call
a change from 100 to 111 a degradation, and that from 111 back to 100 none.)
"""

from __future__ import annotations

import sys
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perun.profile.changes import PerformanceChange

Floats = NDArray[np.float64]
ROUNDING: Final = 1e-9
"""What a limit forgives: 1.1 / 1 - 1 is a bit more than 0.1."""
_LARGEST: Final = sys.float_info.max


class Limits(NamedTuple):
    """Up to which balance nothing changed, and up to which it may have."""

    no_change: float = 0.1
    maybe: float = 0.25


def relative_error(baseline: ArrayLike, target: ArrayLike) -> Floats:
    """(t - b) / |b| of each pair, 0 where both are equal; NaN where only one of them is 0, or one is NaN."""
    b, t = np.asarray(baseline, np.float64), np.asarray(target, np.float64)
    return _divided(b, t, np.abs(b))


def balance(baseline: ArrayLike, target: ArrayLike) -> Floats:
    """(t - b) / the smaller magnitude of each pair; 0 and NaN as in :func:`relative_error`."""
    b, t = np.asarray(baseline, np.float64), np.asarray(target, np.float64)
    return _divided(b, t, np.minimum(np.abs(b), np.abs(t)))


def verdict(balance: float, limits: Limits, *, certain: bool = True) -> PerformanceChange:
    """The change that a balance is; Unknown for NaN.

    :param certain: whether it may be more than a maybe.
    """
    if np.isnan(balance):
        return PerformanceChange.Unknown
    if abs(balance) <= limits.no_change + ROUNDING:
        return PerformanceChange.NoChange
    if certain and abs(balance) > limits.maybe + ROUNDING:
        return PerformanceChange.Degradation if balance > 0 else PerformanceChange.Optimization
    return PerformanceChange.MaybeDegradation if balance > 0 else PerformanceChange.MaybeOptimization


def bounded(values: Floats) -> Floats:
    """Infinite values as the largest number."""
    return np.clip(values, -_LARGEST, _LARGEST)


def _divided(b: Floats, t: Floats, divisor: Floats) -> Floats:
    with np.errstate(all="ignore"):
        quotient = bounded((t - b) / divisor)
    undefined = (b == 0) | (t == 0) | ~(np.isfinite(b) & np.isfinite(t))
    return np.where((b == t) & np.isfinite(b), 0.0, np.where(undefined, np.nan, quotient))
