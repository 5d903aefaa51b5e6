"""The ratio of two samples of positive measurements, with its interval and what limits it.

Everything is computed on logarithms, where a ratio is a difference and the noise of run times is nearly
symmetric.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perun.models.two_samples import rank_tests, shape

# Samples of measurements of several sizes of input: like is compared with like.
#
# The time of a function of ten elements and that of a thousand differ more than any two versions. So each
# value is compared with those of the same size, and what the sizes have in common is the ratio of the two
# samples.
#
# Sources: J. L. Hodges and E. L. Lehmann, Rank Methods for Combination of Independent Experiments in Analysis
# of Variance, Ann. Math. Stat. 33, 1962 (aligned ranks); M. Hollander, D. A. Wolfe, E. Chicken, Nonparametric
# Statistical Methods, 3rd ed. 2014, section 7.6.

MIN_AS_PAIRS: Final = 8
"""Sizes from which on each is a pair of medians: fewer pairs give no interval of 99 %."""


def common(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """The sizes that both samples have, ascending; none if one has numbers and the other has texts."""
    if old.dtype.kind != new.dtype.kind:
        return old[:0]
    return np.intersect1d(old, new)


def medians(values: Floats, sizes: NDArray[Any], wanted: NDArray[Any]) -> Floats:
    """The median of the values of each wanted size, all of which there are; shape of `wanted`.

    :param values: shape (n,). :param sizes: the size of each, shape (n,).
    """
    order = np.argsort(sizes, kind="stable")
    ordered = sizes[order]
    starts = np.searchsorted(ordered, wanted, "left")
    ends = np.searchsorted(ordered, wanted, "right")
    found = [np.median(values[order[start:end]]) for start, end in zip(starts, ends, strict=True)]
    return np.array(found, np.float64)


def aligned(
    old: Floats, old_sizes: NDArray[Any], new: Floats, new_sizes: NDArray[Any], wanted: NDArray[Any]
) -> tuple[Floats, Floats, float]:
    """The values less the middle of their size, and how much wider than theirs the interval has to be.

    The middle is that of the medians of both samples, so that half of the difference stays on each side. Each
    middle is computed from the values, which so seem nearer to each other than they are.

    :param old: logarithms, shape (m,), and :param new: (n,); values of sizes not wanted are left out.
    """
    middles = (medians(old, old_sizes, wanted) + medians(new, new_sizes, wanted)) / 2
    sides = []
    for values, sizes in ((old, old_sizes), (new, new_sizes)):
        kept = np.isin(sizes, wanted)
        sides.append(values[kept] - middles[np.searchsorted(wanted, sizes[kept])])
    total = sides[0].size + sides[1].size
    return sides[0], sides[1], math.sqrt(total / max(total - wanted.size, 1))


Floats = NDArray[np.float64]

MIN_VALUES: Final = 2
"""Measurements of each side; of one nothing is known of the noise."""
MAX_VALUES: Final = 300
"""Measurements of a sample, or sizes of input, that take part; of more those at equal distances do."""
POWER: Final = 0.8
"""Probability with which the smallest detectable effect would be found."""

MOST_BLOCKS: Final = 100
"""Pairs of amounts whose signed ranks are looked at; more are summed up to as many."""
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
    :param medians: of baseline and target; of values of several sizes, the geometric means of the medians of
        the sizes that both have.
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
    def typical(self) -> tuple[float, float]:
        """A value of baseline and target to show beside the ratio: the medians, or where their quotient is
        on the other side of 1 or outside the interval, their middle with the ratio between the two."""
        old, new = self.medians
        if not (math.isfinite(self.estimate) and old > 0 and math.isfinite(new)):
            return self.medians
        quotient = new / old
        if self.low <= quotient <= self.high and (quotient - 1) * (self.estimate - 1) >= 0:
            return self.medians
        middle, half = math.sqrt(old) * math.sqrt(new), math.sqrt(self.estimate)
        return middle / half, middle * half


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
    centre, low, high = rank_tests.centre_with_interval(differences, alpha)
    return Ratio(
        _exp(centre),
        _exp(low),
        _exp(high),
        rank_tests.signed_rank_p_value(differences),
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


def of_amounts(baseline: ArrayLike, target: ArrayLike, confidence: float) -> Ratio:
    """The ratio of pairs of amounts of which some may be 0, as what few samples say of a function.

    If r is the ratio, the differences target - r baseline are symmetric about 0. Their signed-rank test does
    not reject an r that lies between two of the ratios of the sums of each two pairs, each with itself too:
    so many of the means of two differences are above 0 as such ratios are above r. No logarithm is needed. Of
    many pairs neighbours are summed up first, which makes few samples more nearly normal and loses little.
    Source: as of :mod:`~perun.models.two_samples.rank_tests`, D. F. Bauer, Constructing Confidence Sets Using
    Rank Statistics, J. Am. Stat. Assoc. 67, 1972.

    :param baseline: shape (n,), at least 0. :param target: shape (n,); both in the order of measuring.
    :returns: the estimate is NaN where all are 0, infinite where those of the baseline are.
    """
    old, new = (np.asarray(one, np.float64) for one in (baseline, target))
    count, means = old.size, (float(old.mean()), float(new.mean()))
    starts = np.arange(0, count, -(-count // MOST_BLOCKS))
    old, new = (np.add.reduceat(one, starts) for one in (old, new))
    known = (old > 0) | (new > 0)
    old, new = old[known], new[known]
    rows, columns = np.triu_indices(old.size)
    with np.errstate(divide="ignore"):
        ratios = np.sort((new[rows] + new[columns]) / (old[rows] + old[columns]))
    below = rank_tests.signed_rank_critical_value(old.size, 1 - confidence) if old.size else -1
    low, high = (ratios[below], ratios[-1 - below]) if below >= 0 else (0.0, math.inf)
    error = math.inf
    if min(means) > 0 and old.size > 1:
        error = _deviation(new / new.mean() - old / old.mean()) / math.sqrt(old.size)
    return Ratio(
        float(np.median(ratios)) if old.size else math.nan, float(low), float(high),
        rank_tests.signed_rank_p_value(new - old), confidence, (count, count), True,
        _detectable(error, confidence, old.size), medians=means,
    )  # fmt: skip


class SampleSummary(NamedTuple):
    """What is known of one sample by itself, whatever it is compared with.

    :param logarithms: of the values, at most :data:`MAX_VALUES` of them, in the order of measuring.
    :param size: the number of values. :param median: of the logarithms; :param deviation: the standard
        deviation of those that are kept.
    :param modes: of the values. :param correlation: and :param drift: as of :class:`Ratio`.
    """

    logarithms: Floats
    size: int
    median: float
    deviation: float
    modes: shape.Modes | None
    correlation: float
    drift: float


def described(samples: Sequence[ArrayLike]) -> list[SampleSummary]:
    """What is known of each sample by itself; those of one size are worked on together.

    :param samples: each of shape (n,), positive, in the order of measuring.
    :raises ValueError: as :func:`of_pairs`.
    """
    return _described([_logarithms(sample) for sample in samples])


def _described(samples: Sequence[Floats]) -> list[SampleSummary]:
    found: dict[int, SampleSummary] = {}
    for positions in _alike(sample.size for sample in samples):
        rows = np.stack([samples[position] for position in positions])
        ordered = np.sort(rows, axis=1)
        kept = _thinned(rows)
        columns: Iterator[tuple[Any, ...]] = zip(
            kept,
            shape.medians(ordered).tolist(),
            kept.std(axis=1, ddof=1).tolist() if kept.shape[1] > 1 else [0.0] * len(rows),
            map(_as_values, shape.modes_of_each(ordered)),
            shape.autocorrelations(rows).tolist(),
            shape.trends(rows).tolist(),
            strict=True,
        )
        for position, (values, median, deviation, modes, correlation, drift) in zip(
            positions, columns, strict=True
        ):
            found[position] = SampleSummary(
                values, rows.shape[1], median, deviation, modes, correlation, drift
            )
    return [found[position] for position in range(len(samples))]


def _alike(keys: Iterable[Hashable]) -> Iterable[list[int]]:
    """The positions of each key."""
    positions: dict[Hashable, list[int]] = {}
    for position, key in enumerate(keys):
        positions.setdefault(key, []).append(position)
    return positions.values()


def of_samples(baseline: ArrayLike, target: ArrayLike, confidence: float) -> Ratio:
    """The ratio of two samples that were measured apart; parameters as :func:`of_pairs`, shapes (m,) and
    (n,).

    Where values depend on those before them, the interval is widened as for so many fewer values.
    """
    return of_each(described([baseline]), described([target]), confidence)[0]


def of_each(
    baselines: Sequence[SampleSummary], targets: Sequence[SampleSummary], confidence: float
) -> list[Ratio]:
    """The ratio of each two samples that were measured apart, as :func:`of_samples`; those of the same sizes
    are worked on together."""
    found = _of_each(baselines, targets, confidence)
    both = zip(found, baselines, targets, strict=True)
    return [
        ratio._replace(modes=(old.modes, new.modes), medians=(_exp(old.median), _exp(new.median)))
        for ratio, old, new in both
    ]


def _of_each(
    baselines: Sequence[SampleSummary],
    targets: Sequence[SampleSummary],
    confidence: float,
    wider: float = 1.0,
) -> list[Ratio]:
    """The ratios without modes and medians.

    :param wider: factor of the standard error beside that of the correlation.
    """
    found: dict[int, Ratio] = {}
    sides = list(zip(baselines, targets, strict=True))
    correlations = [max(old.correlation, new.correlation) for old, new in sides]
    inflations = [shape.inflation(correlation) * wider for correlation in correlations]
    # The test of few values is another one, and the sizes tell how many the values were before thinning.
    groups = _alike(
        (old.size, new.size, inflation == 1.0)
        for (old, new), inflation in zip(sides, inflations, strict=True)
    )
    for positions in groups:
        chosen = [sides[position] for position in positions]
        widths = [inflations[position] for position in positions]
        one, other = (np.stack([pair[side].logarithms for pair in chosen]) for side in (0, 1))
        sizes = chosen[0][0].size, chosen[0][1].size
        compared = rank_tests.compare(one, other, 1 - confidence, widths)
        few = min(sizes) < rank_tests.FEW and rank_tests.is_feasible(*sizes) and widths[0] == 1.0
        p_values = rank_tests.p_values(one, other) if few else compared.p_values
        columns = zip(
            positions, chosen, widths, *(array.tolist() for array in compared[:3]), p_values.tolist(),
            strict=True,
        )  # fmt: skip
        for position, (old, new), width, shift, low, high, p_value in columns:
            variance = old.deviation**2 / one.shape[1] + new.deviation**2 / other.shape[1]
            found[position] = Ratio(
                _exp(shift),
                _exp(low),
                _exp(high),
                p_value,
                confidence,
                sizes,
                False,
                _detectable(width * math.sqrt(variance), confidence, min(sizes)),
                correlations[position],
                drift=max(old.drift, new.drift, key=abs),
            )
    return [found[position] for position in range(len(sides))]


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
    wanted = common(baseline_sizes, target_sizes)
    if wanted.size < 2:
        return None
    if wanted.size >= MIN_AS_PAIRS:
        wanted = _thinned(wanted)
        one = medians(old, baseline_sizes, wanted)
        other = medians(new, target_sizes, wanted)
        pairs = of_pairs(np.exp(one), np.exp(other), confidence)
        return pairs._replace(
            paired=False,
            sizes=(old.size, new.size),
            modes=(None, None),
            medians=(_exp(one.mean()), _exp(other.mean())),
            drift=0.0,
        )
    one, other, wider = aligned(old, baseline_sizes, new, target_sizes, wanted)
    if min(one.size, other.size) < MIN_VALUES:
        return None
    samples = _described([one]), _described([other])
    return _of_each(*samples, confidence, wider)[0]._replace(
        medians=(
            _exp(medians(old, baseline_sizes, wanted).mean()),
            _exp(medians(new, target_sizes, wanted).mean()),
        )
    )


def _thinned(values: Floats) -> Floats:
    """At most :data:`MAX_VALUES` of the values of the last axis, at equal distances: the work grows with
    their square."""
    size = values.shape[-1]
    if size <= MAX_VALUES:
        return values
    kept: Floats = values[..., np.linspace(0, size - 1, MAX_VALUES).astype(np.intp)]
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
    return _as_values(shape.modes(logarithms))


def _as_values(found: shape.Modes | None) -> shape.Modes | None:
    return found and found._replace(low=_exp(found.low), high=_exp(found.high))


def _medians(old: Floats, new: Floats) -> tuple[float, float]:
    """The medians as values."""
    return _exp(np.median(old)), _exp(np.median(new))


def _deviation(values: Floats) -> float:
    return float(np.std(values, ddof=1)) if values.size > 1 else 0.0


def _detectable(error: float, confidence: float, size: int) -> float:
    """exp((z(1 - alpha / 2) + z(power)) times the standard error of the difference of the logarithms)."""
    return _exp(_quantiles(confidence) * error) if size >= 3 else math.inf


@lru_cache(maxsize=64)
def _quantiles(confidence: float) -> float:
    normal = NormalDist()
    return normal.inv_cdf((1 + confidence) / 2) + normal.inv_cdf(POWER)


def _exp(exponent: float | np.floating[Any]) -> float:
    """e to that power; infinite if that is beyond all floats."""
    return math.exp(exponent) if exponent < _LARGEST else math.inf


# Two modes: whether a difference is one of the modes themselves, or of how often each is taken.
#
# Only medians and shares are needed, so that numpy is not loaded here.


def merely_shares(ratio: Ratio, limit: float) -> bool:
    """Whether the difference may be that one of two modes is taken more often, and nothing else.

    So it is where both samples have the same modes, one of them perhaps only one of the two, the shares
    differ by more than chance, and not all modes moved by more than the limit. Modes are the same that are
    nearer to each other than a quarter of their distance.

    :param limit: a ratio above 1.
    """
    found = [modes for modes in ratio.modes if modes]
    if not found or not _shares_differ(ratio):
        return False
    distance = min(math.log(modes.high / modes.low) for modes in found) / 4
    both = zip(ratio.modes, ratio.medians, strict=True)
    (low, high), (new_low, new_high) = (modes[:2] if modes else (median, median) for modes, median in both)
    moves = [abs(math.log(new_low / low)), abs(math.log(new_high / high))]
    same = max(moves) < distance if len(found) == 2 else min(moves) < distance
    return same and min(_directed(new_low / low, ratio), _directed(new_high / high, ratio)) <= limit


def _shares_differ(ratio: Ratio) -> bool:
    """Whether the shares of the slower mode differ by more than two standard errors, or one sample has only
    one mode."""
    old, new = ratio.modes
    if old is None or new is None:
        return True
    variance = sum(
        modes.share * (1 - modes.share) / size for modes, size in zip((old, new), ratio.sizes, strict=True)
    )
    return abs(new.share - old.share) > 2 * math.sqrt(variance)


def _directed(move: float, ratio: Ratio) -> float:
    """The move of a mode as a ratio above 1 where it goes in the direction of the whole."""
    return move if ratio.estimate > 1 else 1 / move
