"""Where the level of a series of measurements changes for good: change points.

Five detectors (`change_detectors`) look at a series in five ways: t tests of neighbouring windows, the fewest
levels by least absolute deviations, the cheapest division in a Gaussian kernel space, E-divisive means, and
least squares with a step beside a slope. None of them is best everywhere, so all places that they name are
tested: at least `effect` of a change, beyond what noise, autocorrelation
and drift explain. `outliers` finds the single points that are no change.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.models import change_detectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]


# Single measurements far from their neighbours: outliers, which are no change of level.
#
# Hampel's identifier: a point is an outlier if it lies more than `THRESHOLD` scaled MADs from the median of
# the points around it. L. Davies, U. Gather: The Identification of Multiple Outliers, JASA 88 (1993).

HALF_WINDOW: Final = 5
"""Points on either side. A new level of more points than that is a level, and no outlier."""
THRESHOLD: Final = 4.0
LONGEST_SPIKE: Final = 2
"""Points in a row that can be outliers: three in a row are a short level."""
_OF_NORMAL: Final = 1.4826
"""The standard deviation of a normal distribution by its MAD."""


def outliers(values: Floats) -> Flags:
    """Which of the values, shape (n,), are outliers, shape (n,)."""
    import numpy as np

    count = len(values)
    if count < 2 * HALF_WINDOW + 1:
        return np.zeros(count, bool)
    windows = np.lib.stride_tricks.sliding_window_view(values, 2 * HALF_WINDOW + 1)
    median = np.median(windows, axis=1)
    mad = np.median(np.abs(windows - median[:, None]), axis=1)
    # At the ends the window of the first or last whole neighbourhood stands for the missing one.
    place = np.clip(np.arange(count) - HALF_WINDOW, 0, count - 2 * HALF_WINDOW - 1)
    usual = np.maximum(mad, np.median(mad))[place] * _OF_NORMAL
    far = np.abs(values - median[place]) > THRESHOLD * np.maximum(usual, np.finfo(float).tiny)
    single: Flags = far & ~_long_runs(far)
    return single


def _long_runs(flags: Flags) -> Flags:
    """The flags that stand in rows of more than `LONGEST`, and in those at the two ends of a series, where
    nobody knows yet whether a level begins."""
    import numpy as np

    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    found = np.zeros_like(flags)
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        if end - first > LONGEST_SPIKE:
            found[first:end] = True
    return found


# Change points that several detectors see and that a test of their own confirms.
#
# Each detector fails in its own way, so that all places that one of them names are tested together. The
# weakest are taken out first: a change stays if its two levels differ by `EFFECT` and more, and by more than
# the noise of so many points that hang together, if the series jumps there, where it could also climb, and if
# `VOTES` detectors see it within `TOLERANCE` points, or the difference is `CLEAR`.

DETECTORS: Final[Mapping[str, Callable[[Floats], list[int]]]] = {
    "windows": change_detectors.window_changes,
    "potts": change_detectors.potts_changes,
    "kernel": change_detectors.kernel_changes,
    "energy": change_detectors.energy_changes,
    "jumps": change_detectors.jump_changes,
}
VOTES: Final = 2
"""Detectors that see a change, at least: the test that follows is the stricter judge."""
CLEAR: Final = 12.0
"""|t| of a change that one detector is enough for, as of a level of few points between two changes."""
TOLERANCE: Final = 5
"""Points by which detectors may disagree on the place."""
EFFECT: Final = 0.01
"""The least change, as a share of the level before."""
LONGEST: Final = 1024
"""Points that detectors look at together."""
FEWEST: Final = 4
"""Points of a level."""
CONFIRMED: Final = 4.0
"""|t| of a confirmed change."""
SLOPE: Final = 2.5
"""|t| of the jump of a confirmed change, beside a common slope."""
NEARBY: Final = 60
"""Points on each side that count for the test of a jump."""


class LevelChange(NamedTuple):
    """A change of level.

    :param place: the first point of the new level. :param votes: the detectors that see it, by name.
    :param before: the level before, the median. :param after: the level after.
    :param error: the standard error of the natural logarithm of after / before.
    """

    place: int
    votes: tuple[str, ...]
    before: float
    after: float
    error: float

    @property
    def ratio(self) -> float:
        """How many times the level before the new level is."""
        return self.after / self.before


class Segmentation(NamedTuple):
    """What a series shows. :param outliers: whether each point is one, shape (n,)."""

    changes: list[LevelChange]
    outliers: Flags


def change_points(values: Floats, effect: float = EFFECT) -> Segmentation:
    """The changes of level of measurements that are greater than 0, shape (n,), the oldest first.

    :raises ValueError: if a value is not a positive number.
    """
    import numpy as np

    values = np.asarray(values, float)
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError("values are positive numbers")
    logs = np.log(values)
    odd = outliers(logs)
    usual = logs[~odd]
    position = np.flatnonzero(~odd)
    if len(usual) < 2 * FEWEST:
        return Segmentation([], odd)
    votes = {name: _detected(detect, usual) for name, detect in DETECTORS.items()}
    places = _voted(votes)
    places = sorted({placed(usual, place, places) for place in places})
    confirmed = _confirmed(usual, places, effect, votes)
    found = []
    for place, before, after, error in confirmed:
        levels = (float(np.exp(before)), float(np.exp(after)))
        found.append(LevelChange(int(position[place]), _seen(place, votes), *levels, error))
    return Segmentation(found, odd)


def _detected(detect: Callable[[Floats], list[int]], values: Floats) -> list[int]:
    """The places that a detector names; of a long series those in the middle of each of overlapping parts.

    Detectors take time and memory by the square of the points, and no level is told from another one by what
    lies a thousand points away.
    """
    count = len(values)
    if count <= LONGEST:
        return detect(values)
    found = []
    quarter = LONGEST // 4
    for start in range(0, count - 2 * quarter, 2 * quarter):
        end = min(start + LONGEST, count)
        first = start + quarter if start else 0
        last = end if end == count else start + 3 * quarter
        found += [start + place for place in detect(values[start:end]) if first <= start + place < last]
    return found


def _seen(place: int, votes: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
    """The detectors that see a change at the place."""
    return tuple(name for name, own in votes.items() if any(abs(place - one) <= TOLERANCE for one in own))


def _voted(votes: Mapping[str, Sequence[int]]) -> list[int]:
    """Places that detectors name, those of most votes first, `TOLERANCE` apart."""
    every = sorted(place for own in votes.values() for place in own)

    chosen: list[int] = []
    for place in sorted(set(every), key=lambda place: (-len(_seen(place, votes)), place)):
        if all(abs(place - other) > TOLERANCE for other in chosen):
            chosen.append(place)
    return sorted(chosen)


def placed(values: Floats, place: int, chosen: Sequence[int]) -> int:
    """Where near the place the levels between its neighbours are divided best, by absolute deviations."""
    import numpy as np

    first = max([0, *(other for other in chosen if other < place)])
    end = min([len(values), *(other for other in chosen if other > place)])
    low, high = np.median(values[first:place]), np.median(values[place:end])
    begin, stop = max(first + 1, place - TOLERANCE), min(end - 1, place + TOLERANCE)
    gain = np.abs(values[begin:stop] - high) - np.abs(values[begin:stop] - low)
    costs = np.concatenate(([0.0], np.cumsum(-gain)))
    return begin + int(np.argmin(costs))


def _confirmed(
    values: Floats, places: list[int], effect: float, votes: Mapping[str, Sequence[int]]
) -> list[tuple[int, float, float, float]]:
    """Place, level before, level after and error of the changes that stay when the weakest are taken out."""
    import numpy as np

    while places:
        bounds = [0, *places, len(values)]
        levels = np.concatenate(
            [np.full(end - first, np.median(values[first:end])) for first, end in itertools.pairwise(bounds)]
        )
        rho = change_detectors.autocorrelation(values - levels)
        judged = []
        for first, place, end in zip(bounds, bounds[1:], bounds[2:], strict=False):
            before, after, error = _difference(values[first:place], values[place:end], rho)
            strength = abs(after - before) / error if error > 0 else np.inf
            short = min(place - first, end - place) < FEWEST
            begin = max(first, place - NEARBY)
            near = values[begin : min(end, place + NEARBY)]
            weak = (
                short
                or abs(after - before) < np.log1p(effect)
                or strength < (CONFIRMED if len(_seen(place, votes)) >= VOTES else CLEAR)
                or _jump(near, place - begin, rho) < SLOPE
            )
            judged.append((0.0 if short else strength, weak, (place, before, after, error)))
        weakest = min((one for one in judged if one[1]), default=None, key=lambda one: one[0])
        if weakest is None:
            return [one[2] for one in judged]
        places = [place for place in places if place != weakest[2][0]]
    return []


def _difference(before: Floats, after: Floats, rho: float) -> tuple[float, float, float]:
    """The medians, and the standard error of their difference where neighbours correlate by rho."""
    import numpy as np

    low, high = float(np.median(before)), float(np.median(after))
    variance = 0.0
    pooled = np.concatenate((before - low, after - high))
    own = float(np.mean(np.abs(pooled))) * 1.2533
    for part, level in ((before, low), (after, high)):
        spread = max(float(np.mean(np.abs(part - level))) * 1.2533, own / 2)
        worth = max(1.0, change_detectors.effective_count(len(part), rho))
        variance += spread**2 * 1.57 / worth
    return low, high, float(np.sqrt(variance))


def _jump(values: Floats, place: int, rho: float) -> float:
    """|t| of a step at the place, beside a common slope, where neighbours correlate by rho."""
    import numpy as np

    count = len(values)
    if count < 8:
        return 0.0
    design = np.ones((count, 3))
    design[:, 1] = np.arange(count) - count / 2
    design[:place, 2] = 0
    inverse = np.linalg.pinv(design.T @ design)
    coefficients = inverse @ (design.T @ values)
    residuals = values - design @ coefficients
    variance = float(residuals @ residuals) / max(1, count - 3) * (1 + rho) / (1 - rho)
    error = float(np.sqrt(max(variance * inverse[2, 2], 0)))
    return abs(float(coefficients[2])) / error if error > 0 else float("inf")
