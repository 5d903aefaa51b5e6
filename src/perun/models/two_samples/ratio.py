"""The ratio of two samples of positive measurements, with its interval and what limits it.

Everything is computed on logarithms, where a ratio is a difference and the noise of run times is nearly
symmetric.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perun.models.two_samples import permutation, rank_sums, shape, signed_ranks, strata

Floats = NDArray[np.float64]

MIN_VALUES: Final = 2
"""Measurements of each side; of one nothing is known of the noise."""
MOST: Final = 300
"""Measurements of a sample, or sizes of input, that take part; of more those at equal distances do."""
POWER: Final = 0.8
"""Probability with which the smallest detectable effect would be found."""

_LARGEST: Final = 709.0


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
    :param medians: of baseline and target.
    :param drift: how steadily the measurements rise or fall, see :func:`shape.trend`; of pairs their ratio.
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
    medians: tuple[float, float] = (math.nan, math.nan)
    drift: float = 0.0

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
        _exp(signed_ranks.centre(differences)),
        _exp(low),
        _exp(high),
        signed_ranks.p_value(differences),
        confidence,
        (old.size, new.size),
        True,
        _detectable(_deviation(differences) / math.sqrt(differences.size), confidence, old.size),
        # Correlation within each series goes with the pairs; what is left of it would widen the interval.
        0.0,
        (_modes(old), _modes(new)),
        _medians(old, new),
        shape.trend(differences),
    )


def of_samples(baseline: ArrayLike, target: ArrayLike, confidence: float) -> Ratio:
    """The ratio of two samples that were measured apart; parameters as :func:`of_pairs`, shapes (m,) and
    (n,).

    Where values depend on those before them, the interval is widened as for so many fewer values.
    """
    old, new = _logarithms(baseline), _logarithms(target)
    found = _of_samples(old, new, confidence)
    return found._replace(modes=(_modes(old), _modes(new)), medians=_medians(old, new))


def of_sizes(
    baseline: ArrayLike,
    baseline_sizes: NDArray[Any],
    target: ArrayLike,
    target_sizes: NDArray[Any],
    confidence: float,
) -> Ratio | None:
    """The ratio of two samples of measurements of several sizes of input, each compared with its like.

    Of many sizes each is a pair of medians; of few, the values are taken relative to the middle of their
    size. Modes are not looked for, as different sizes have different values anyway.

    :param baseline_sizes: the size of each value, shape (m,), numbers or texts. :param target_sizes: (n,).
    :returns: None if less than two sizes, or of each sample less than two values, are common to both.
    """
    old, new = _logarithms(baseline), _logarithms(target)
    wanted = strata.common(baseline_sizes, target_sizes)
    if wanted.size < 2:
        return None
    if wanted.size >= strata.FEWEST_AS_PAIRS:
        wanted = _thinned(wanted)
        one = strata.medians(old, baseline_sizes, wanted)
        other = strata.medians(new, target_sizes, wanted)
        pairs = of_pairs(np.exp(one), np.exp(other), confidence)
        return pairs._replace(paired=False, sizes=(old.size, new.size), modes=(None, None), drift=0.0)
    one, other, wider = strata.aligned(old, baseline_sizes, new, target_sizes, wanted)
    if min(one.size, other.size) < MIN_VALUES:
        return None
    return _of_samples(one, other, confidence, wider)._replace(medians=_medians(old, new))


def _of_samples(old: Floats, new: Floats, confidence: float, wider: float = 1.0) -> Ratio:
    """The ratio of two samples of logarithms.

    :param wider: factor of the standard error beside that of the correlation.
    """
    sizes = (old.size, new.size)
    correlation = max(shape.autocorrelation(old), shape.autocorrelation(new))
    drift = max(shape.trend(old), shape.trend(new), key=abs)
    old, new = _thinned(old), _thinned(new)
    inflation = shape.inflation(correlation) * wider
    low, high = rank_sums.interval(old, new, 1 - confidence, inflation)
    error = inflation * math.sqrt(_deviation(old) ** 2 / old.size + _deviation(new) ** 2 / new.size)
    few = min(sizes) < permutation.FEW and permutation.is_feasible(*sizes) and inflation == 1.0
    return Ratio(
        _exp(rank_sums.shift(old, new)),
        _exp(low),
        _exp(high),
        permutation.p_value(old, new) if few else rank_sums.p_value(old, new, inflation),
        confidence,
        sizes,
        False,
        _detectable(error, confidence, min(sizes)),
        correlation,
        drift=drift,
    )


def _thinned(values: Floats) -> Floats:
    """At most :data:`MOST` of the values, at equal distances: the work grows with their square."""
    if values.size <= MOST:
        return values
    kept: Floats = values[np.linspace(0, values.size - 1, MOST).astype(np.intp)]
    return kept


def _logarithms(values: ArrayLike) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or array.size < MIN_VALUES:
        raise ValueError(f"at least {MIN_VALUES} measurements are needed, not {array.size}")
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError("measurements must be positive and finite")
    return np.log(array)


def _modes(logarithms: Floats) -> shape.Modes | None:
    """The modes as values."""
    found = shape.modes(logarithms)
    return found and found._replace(low=_exp(found.low), high=_exp(found.high))


def _medians(old: Floats, new: Floats) -> tuple[float, float]:
    """The medians as values."""
    return _exp(np.median(old)), _exp(np.median(new))


def _deviation(values: Floats) -> float:
    return float(np.std(values, ddof=1)) if values.size > 1 else 0.0


def _detectable(error: float, confidence: float, size: int) -> float:
    """exp((z(1 - alpha / 2) + z(power)) times the standard error of the difference of the logarithms)."""
    if size < 3:
        return math.inf
    normal = NormalDist()
    exponent = (normal.inv_cdf((1 + confidence) / 2) + normal.inv_cdf(POWER)) * error
    return _exp(exponent)


def _exp(exponent: float | np.floating[Any]) -> float:
    """e to that power; infinite if that is beyond all floats."""
    return math.exp(exponent) if exponent < _LARGEST else math.inf
