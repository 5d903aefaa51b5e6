"""How much two versions of one series differ by chance: learned from the versions that were measured before
them.

Calls and runs of one stretch of measuring share what the machine does meanwhile, so what they scatter says
nothing of how far the next stretch is from them. Two things do: how much the differences of two versions
scatter from round to round where both were visited in the same rounds, and how much neighbouring versions
differ that were measured apart. Most commits change nothing, so the usual difference of neighbours is
noise; the rule that leaves out those that are none is that of the benchmarks of rustc
(github.com/rust-lang/rustc-perf, `site/src/comparison.rs`): the upper quartile and three interquartile
ranges. In a short history with several changes, a quartile of the differences may be changes: so those are
left out before that begin a level that lasts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.measurement.estimate import Point, Round, StandardError, each_once

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WINDOW: Final = 32
"""Versions with points before the baseline, and the baseline, that are learned from."""
REACH: Final = 200
"""Versions with profiles before a version among which these are looked for."""
FEWEST: Final = 6
"""Differences of neighbours from which on they say how much is usual."""
FENCE: Final = 3.652
"""The upper quartile and three interquartile ranges of the magnitude of standard normal values."""
EFFICIENCY: Final = 0.37
"""Degrees of freedom of a scale by quartiles, for each value."""
_NEAR: Final = 2
"""Differences of neighbours on either side of one that begins a lasting level, which are small beside it."""
_BESIDE: Final = 2.0
"""How many times the others beside it such a difference is at least."""
_BEYOND: Final = 5.0
"""How many standard deviations of the others such a difference is at least."""
_OVERLAP: Final = 2 / 3
"""The share of the degrees of freedom that neighbouring differences leave, as each has a version with the
next."""
_MANY: Final = 14
"""Differences in rounds from which on their signed ranks tell the noise."""
_NORMAL: Final = 1.959964
"""The quantile of 97.5 % of standard normal values."""
NORMAL_QUARTILE: Final = 1.1503
"""The upper quartile of the magnitude of standard normal values."""


class Noise(NamedTuple):
    """What was learned; None where there was too little.

    :param rounds: the standard deviation of the difference of two versions in a round that visited both.
    :param unpaired: the same of two versions that were each seen in one session, of their own.
    :param numbers: as `unpaired`, in the unit of the values.
    """

    rounds: StandardError | None = None
    unpaired: StandardError | None = None
    numbers: StandardError | None = None


NOTHING: Final = Noise()


Kept = dict[tuple[int, int], tuple[Point, Point, list[float], list[float], list[float]]]
"""What is known of two neighbours, which are compared again for each of the versions after them."""
_KEPT: Final = 4096


def learn(points: Sequence[Point], kept: Kept | None = None) -> Noise:
    """What neighbouring versions of one series show.

    :param points: in the order of the history, the newest last; of more than :data:`WINDOW` the newest ones
        count. Those that are one measurement count once, as their difference is none of chance.
    :param kept: where the comparisons of neighbours are kept for the next call.
    """
    points = each_once(points[-WINDOW:])
    kept = {} if kept is None else kept
    if len(kept) > _KEPT:
        kept.clear()
    squares, freedom = 0.0, 0.0
    apart: list[float] = []
    unchanged = _between_sessions(points[0]) if points else []
    for old, new in itertools.pairwise(points):
        known = kept.get((id(old), id(new)))
        if known is None:  # both are kept, too, so that nothing else gets their ids
            together = [one for own in shared(old, new).values() for one in own]
            positive = old.positive and new.positive
            found = _apart(old, new, logarithmic=True) if positive and len(together) < 2 else []
            known = kept[id(old), id(new)] = (old, new, together, found, _between_sessions(new))
        _, _, differences, found, own = known
        apart += found
        unchanged += own
        if len(differences) > 1:
            squares += variance(differences) * (len(differences) - 1)
            freedom += len(differences) - 1
    rounds = StandardError(math.sqrt(squares / freedom), freedom * _OVERLAP) if freedom else None
    return Noise(rounds, scale(apart, unchanged))


def learn_numbers(points: Sequence[Point]) -> Noise:
    """As :func:`learn`, of values some of which are not above 0, so that they are compared as they are."""
    return Noise(numbers=scale([
        one
        for old, new in itertools.pairwise(each_once(points[-WINDOW:]))
        for one in _apart(old, new, logarithmic=False)
    ]))  # fmt: skip


def scale(differences: Sequence[float], unchanged: Sequence[float] = ()) -> StandardError | None:
    """The standard deviation of differences most of which are chance; None of too few of them.

    :param differences: of neighbours, in their order; those that begin a lasting level are left out.
    :param unchanged: others, which are chance.
    """
    sizes = [*map(abs, differences), *map(abs, unchanged)]
    if len(sizes) < FEWEST:
        return None
    lasting = _lasting(sizes[: len(differences)])
    rest = [one for place, one in enumerate(sizes) if place not in lasting]
    if lasting and len(rest) >= FEWEST:
        least = _BEYOND * _size(rest)
        sizes = [one for place, one in enumerate(sizes) if place not in lasting or one <= least]
    return StandardError(_size(sizes), EFFICIENCY * len(sizes))


def _lasting(sizes: Sequence[float]) -> set[int]:
    """The places of the differences that stand out of those beside them, as a level that lasts begins."""
    found = set()
    for place in range(1, len(sizes) - 1):
        beside = (*sizes[max(place - _NEAR, 0) : place], *sizes[place + 1 : place + 1 + _NEAR])
        if sizes[place] > _BESIDE * max(beside):
            found.add(place)
    return found


def scales(windows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The size of :func:`scale` of each row, and how many differences it is of; 0 of less than two.

    :param windows: the magnitudes of differences, shape (m, n), each row behind NaN where it has fewer.
    """
    import numpy as np

    padded = np.pad(windows, ((0, 0), (_NEAR, _NEAR)), constant_values=np.nan)
    width = windows.shape[1]
    before, after = (
        np.fmax.reduce([padded[:, start + step : start + step + width] for step in range(_NEAR)])
        for start in (0, _NEAR + 1)
    )
    lasting = windows > _BESIDE * np.maximum(before, after)
    rest = np.where(lasting, np.nan, windows)
    least = _BEYOND * _sizes(rest)
    known = np.isfinite(rest).sum(axis=1) >= FEWEST
    kept = np.where(lasting & known[:, None] & (windows > least[:, None]), np.nan, windows)
    return _sizes(kept), np.isfinite(kept).sum(axis=1)


def _size(values: Sequence[float]) -> float:
    ordered = sorted(values)
    low, high = _quantile(ordered, 0.25), _quantile(ordered, 0.75)
    return max((high + 3 * (high - low)) / FENCE, high / NORMAL_QUARTILE)


def _sizes(windows: NDArray[np.float64]) -> NDArray[np.float64]:
    """As :func:`_size` of each row, without its NaN; 0 of an empty one."""
    import numpy as np

    ordered = np.sort(windows, axis=1)
    counts = np.isfinite(windows).sum(axis=1)
    rows = np.arange(counts.size)
    low, high = np.zeros(counts.size), np.zeros(counts.size)
    for own, share in ((low, 0.25), (high, 0.75)):
        place = share * (np.maximum(counts, 1) - 1)
        below = np.floor(place).astype(int)
        above = np.minimum(below + 1, np.maximum(counts - 1, 0))
        first, second = np.nan_to_num(ordered[rows, below]), np.nan_to_num(ordered[rows, above])
        own[:] = first + (second - first) * (place - below)
    sizes: NDArray[np.float64] = np.maximum((high + 3 * (high - low)) / FENCE, high / NORMAL_QUARTILE)
    return sizes


def variance(differences: Sequence[float], means: Sequence[float] | None = None) -> float:
    """That of the differences of two versions in rounds, two at least.

    Of many it is that of normal values whose signed ranks give an interval as wide: as much as they lie near
    each other, whatever a few rounds are that something disturbed. Of independent values with tails of any
    kind the interval by it holds with the stated probability, and that of 40 of which a tenth is twenty times
    as far away is a quarter as wide (F. Wilcoxon, Individual comparisons by ranking methods, 1945; Hollander,
    Wolfe and Chicken, Nonparametric Statistical Methods, 3rd ed. 2014, section 3.3).

    :param means: of their pairs, as of :func:`walsh`, where these are known.
    """
    count = len(differences)
    middle = math.fsum(differences) / count
    plain = math.fsum((one - middle) ** 2 for one in differences) / (count - 1)
    if count < _MANY:
        return plain
    means = means or walsh(differences)
    deviation = math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    below = int(count * (count + 1) / 4 - _NORMAL * deviation)
    error = (means[-below - 1] - means[below]) / (2 * _NORMAL)
    return error**2 * count * 3 / math.pi if error else plain  # most are the same: a coarse clock


def walsh(values: Sequence[float]) -> list[float]:
    """The means of all pairs of values, each with itself too, ascending."""
    return sorted((one + other) / 2 for place, one in enumerate(values) for other in values[place:])


def shared(old: Point, new: Point) -> dict[str, list[float]]:
    """By session the differences of the logarithms in the rounds that visited both versions, of a family
    the means of those of its members.

    Sessions with one such round only have stretches of measuring, one after the other, and no rounds.
    """
    if min(len(old.rounds), len(new.rounds)) < 2 or not (old.positive and new.positive):
        return {}
    found: dict[str, list[float]] = {}
    for other, one in together(old, new):
        if (difference := _of_rounds(other, one)) is not None:
            found.setdefault(one.session, []).append(difference)
    return {session: own for session, own in found.items() if len(own) > 1}


def together(old: Point, new: Point) -> Iterator[tuple[Round, Round]]:
    """The rounds that visited both, each of them; one visit that both share is none."""
    others = {(one.session, one.number): one for one in old.rounds}
    for one in new.rounds:
        other = others.get((one.session, one.number))
        if other is not None and not one.measured == other.measured != "":
            yield other, one


def _of_rounds(old: Round, new: Round) -> float | None:
    common = [name for name in new.samples if name in old.samples]
    if not common:
        return None
    return math.fsum(new.samples[name].centre - old.samples[name].centre for name in common) / len(common)


def _apart(old: Point, new: Point, *, logarithmic: bool) -> list[float]:
    """The difference of two versions, as if each had been seen in one session, if there is one."""
    there = set(old.workloads)
    common = tuple(name for name in new.workloads if name in there)
    if not common:
        return []
    before, after = (one.centre_of(common, logarithmic=logarithmic) for one in (old, new))
    difference = after - before
    return [difference / math.sqrt((1 / old.sessions + 1 / new.sessions) / 2)]


def _between_sessions(point: Point) -> list[float]:
    """The differences of one session of a version to the next one: of these it is known that nothing has
    changed."""
    if point.sessions < 2 or not point.positive:
        return []
    by_session = {one.session: one for one in point.rounds}
    pairs = itertools.pairwise(by_session.values())
    found = [_of_rounds(old, new) for old, new in pairs]
    return [one for one in found if one is not None]


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
