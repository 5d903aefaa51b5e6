"""The ratio of two samples of positive measurements, with its interval and what limits it.

Everything is computed on logarithms, where a ratio is a difference and the noise of run times is nearly
symmetric.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perun.models.two_samples import rank_sums, shape, signed_ranks

Floats = NDArray[np.float64]

MIN_VALUES: Final = 2
"""Measurements of each side; of one nothing is known of the noise."""
POWER: Final = 0.8
"""Probability with which the smallest detectable effect would be found."""


class Ratio(NamedTuple):
    """How much larger the target is than the baseline, as target / baseline.

    :param estimate: the Hodges-Lehmann ratio. :param low: lower bound, :param high: upper bound of its
        interval; 0 and infinite if there are too few measurements.
    :param p_value: two-sided, of no change. :param confidence: of the interval, such as 0.99.
    :param sizes: measurements of baseline and target. :param paired: whether they are pairs.
    :param detectable: the smallest growth, as a ratio above 1, that this many measurements with this noise
        would have shown with a probability of :data:`POWER`; infinite if it cannot be told.
    :param correlation: lag-1 correlation of the measurements, 0 if there is none.
    :param modes: modes of baseline and target, if either has two.
    """

    estimate: float
    low: float
    high: float
    p_value: float
    confidence: float
    sizes: tuple[int, int]
    paired: bool
    detectable: float
    correlation: float = 0.0
    modes: tuple[shape.Modes | None, shape.Modes | None] = (None, None)

    @property
    def bimodal(self) -> bool:
        """Whether one of the samples has two modes."""
        return any(self.modes)


def of_pairs(baseline: ArrayLike, target: ArrayLike, confidence: float) -> Ratio:
    """The ratio of pairs that were measured side by side, in random order within each pair.

    :param baseline: shape (n,), positive. :param target: shape (n,), positive; both in the order of
        measuring.
    :raises ValueError: if the shapes differ, or values are not positive and finite.
    """
    old, new = _logarithms(baseline), _logarithms(target)
    if old.size != new.size:
        raise ValueError(f"pairs need as many values on both sides, not {old.size} and {new.size}")
    differences = new - old
    alpha = 1 - confidence
    low, high = signed_ranks.interval(differences, alpha)
    return Ratio(
        math.exp(signed_ranks.centre(differences)),
        math.exp(low),
        math.exp(high),
        signed_ranks.p_value(differences),
        confidence,
        (old.size, new.size),
        True,
        _detectable(_deviation(differences) / math.sqrt(differences.size), confidence, old.size),
        # Correlation within each series goes with the pairs; what is left of it would widen the interval.
        0.0,
        (shape.modes(old), shape.modes(new)),
    )


def of_samples(baseline: ArrayLike, target: ArrayLike, confidence: float) -> Ratio:
    """The ratio of two samples that were measured apart; parameters as :func:`of_pairs`, shapes (m,) and
    (n,).

    Where values depend on those before them, the interval is widened as for so many fewer values.
    """
    old, new = _logarithms(baseline), _logarithms(target)
    correlation = max(shape.autocorrelation(old), shape.autocorrelation(new))
    inflation = shape.inflation(correlation)
    low, high = rank_sums.interval(old, new, 1 - confidence, inflation)
    error = inflation * math.sqrt(_deviation(old) ** 2 / old.size + _deviation(new) ** 2 / new.size)
    return Ratio(
        math.exp(rank_sums.shift(old, new)),
        math.exp(low),
        math.exp(high),
        rank_sums.p_value(old, new, inflation),
        confidence,
        (old.size, new.size),
        False,
        _detectable(error, confidence, min(old.size, new.size)),
        correlation,
        (shape.modes(old), shape.modes(new)),
    )


def _logarithms(values: ArrayLike) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or array.size < MIN_VALUES:
        raise ValueError(f"at least {MIN_VALUES} measurements are needed, not {array.size}")
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError("measurements must be positive and finite")
    return np.log(array)


def _deviation(values: Floats) -> float:
    return float(np.std(values, ddof=1)) if values.size > 1 else 0.0


def _detectable(error: float, confidence: float, size: int) -> float:
    """exp((z(1 - alpha / 2) + z(power)) times the standard error of the difference of the logarithms)."""
    if size < 3:
        return math.inf
    normal = NormalDist()
    exponent = (normal.inv_cdf((1 + confidence) / 2) + normal.inv_cdf(POWER)) * error
    return math.exp(exponent) if exponent < 700 else math.inf
