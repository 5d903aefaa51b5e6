"""How much two versions may differ because they were measured in different runs.

Calls of one run share what the machine does meanwhile: its speed, the layout of the memory, the neighbours in
the cache. No number of calls averages that out, and what the calls of one run scatter says nothing of it. It
is estimated from either of

- *repeated runs* of both versions: the runs of one version differ by it. The standard error of the difference
  of the means of their levels is that of Student's test of two samples, or of pairs where the runs were
  measured side by side.
- *the other functions* of a single pair of runs. Most of them did not change, so their log ratios show what
  the machine makes of 0. Their mean is known to be 0, so that k functions have k degrees of freedom, and
  a speed that all of them have in common counts as well.

Neither is taken to be more than `apart`, the most that a machine is expected to do to a run. Where there is
neither, only what is beyond that is certain. What is counted, or does not scatter, has no such noise.

All errors are those of logarithms of ratios.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.check._common.model_pairs import keys_of
from perun.check._common.points import Medians, Points, medians_within, residuals
from perun.models import student
from perun.profile.session import are_pairs

if TYPE_CHECKING:
    from perun.check._common.model_pairs import Part
    from perun.profile.factory import Profile


# Standard errors of the difference of two versions, estimated from few values: by Student's t.

Floats = NDArray[np.float64]

CONFIDENCE: Final = 0.99
"""Of the interval that decides on what is definite."""
WEAKER: Final = 0.95
"""Of the interval that decides on a maybe."""
STEADY: Final = 0.005
"""Standard deviation, as a share, up to which measurements do not scatter: nothing timed is so even."""
MIN_OTHERS: Final = 3
"""Other functions from which on they tell of the noise: Student's quantiles of fewer are no help."""


class Error(NamedTuple):
    """A standard error, and its degrees of freedom; infinite where it is not known."""

    value: float
    freedom: float

    def half_width(self, confidence: float) -> float:
        """Half the width of an interval of that confidence."""
        if not 0 < self.value < math.inf:
            return self.value
        return student.quantile(round(1 - confidence, 9), self.freedom) * self.value


NONE: Final = Error(0.0, 1.0)
UNKNOWN: Final = Error(math.inf, 1.0)


def error_of_means(old: Floats, new: Floats, *, paired: bool = False) -> Error:
    """The standard error of the difference of two means (Student, The Probable Error of a Mean, 1908).

    :param old: shape (m,), m > 1. :param new: shape (n,), n > 1.
    :param paired: whether values of the same place belong together, if there are as many.
    """
    if paired and old.size == new.size:
        return Error(float(np.std(new - old, ddof=1)) / math.sqrt(old.size), old.size - 1)
    freedom = old.size + new.size - 2
    squares = sum(float(np.sum((side - side.mean()) ** 2)) for side in (old, new))
    return Error(math.sqrt(squares / freedom * (1 / old.size + 1 / new.size)), freedom)


def error_of_others(ratios: Floats) -> Iterator[Error]:
    """The error of the log ratio of each function, by those of the others of the same two runs.

    Most of them did not change, so that their mean is known to be 0, and k of them have k degrees of freedom.

    :param ratios: shape (n,), of all functions.
    """
    squares = ratios * ratios
    freedom = ratios.size - 1
    for others in float(squares.sum()) - squares:
        if freedom < MIN_OTHERS:
            yield UNKNOWN
        else:
            yield Error(math.sqrt(max(float(others), 0.0) / freedom), freedom)


_EXACT_FIT: Final = 1 - 1e-6
"""Coefficient of determination from which on a model goes through its points."""
_NORMAL_MEDIAN: Final = 0.6745
"""The median of the magnitude of a standard normal variable."""
_FEWEST: Final = 3
"""Values that a second difference is made of."""


class MedianChange(NamedTuple):
    """What the medians of the points say of a change.

    :param balance: see :func:`~perun.check._common.points.balance`.
    :param within: the error by the scatter of the points. :param between: that by the runs.
    :param apart: the largest share that `between` can make.
    """

    balance: float
    within: Error = NONE
    between: Error = NONE
    apart: float = 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """The bounds of the ratio of target to baseline with :data:`CONFIDENCE`."""
        return self._interval(CONFIDENCE, self.between.half_width(CONFIDENCE))

    @property
    def weaker(self) -> tuple[float, float]:
        """The same with :data:`WEAKER`, and without a noise of runs that is not known."""
        between = self.between.half_width(WEAKER)
        return self._interval(WEAKER, between if between < math.inf else 0.0)

    def _interval(self, confidence: float, between: float) -> tuple[float, float]:
        centre = math.copysign(math.log1p(abs(self.balance)), self.balance)
        half = math.hypot(self.within.half_width(confidence), min(between, math.log1p(self.apart)))
        return _exp(centre - half), _exp(centre + half)


class Runs:
    """The runs of two profiles.

    :param apart: share that a machine makes of a run at most.
    """

    def __init__(self, baseline: Profile, target: Profile, apart: float = 1.0) -> None:
        self.sources = Points(baseline), Points(target)
        self._apart = apart
        self._side_by_side = are_pairs(baseline, target)
        self._errors: dict[tuple[str, str], dict[str, Error]] = {}

    def measured(self, uid: str, common: Sequence[Part], *, sums: bool = False) -> MedianChange | None:
        """What the points in the x that two models have in common say; None where there are too few.

        :param sums: whether the sums of the medians are compared, as integrals are, and not the mean ratio.
        """
        of, per = keys_of(common[0].baseline.model)
        old, new = (source.of(uid, of, per) for source in self.sources)
        if old is None or new is None:
            return None
        found = medians_within(old, new, common[0].start, common[-1].end)
        if found is None:
            return None
        size = found.balance_of_sums if sums else found.mean_balance
        share = found.shares if sums else np.full(found.baseline.shape, 1 / found.baseline.size)
        if any(source.is_exact(uid) for source in self.sources):
            return MedianChange(size)
        within, steady = _scatter(found, share)
        if steady is None:
            steady = min(part.r_square for part in common) >= _EXACT_FIT
        if (repeated := self._between_rounds(uid, of, per, found.inner)) is not None:
            return MedianChange(size, NONE, repeated, self._apart)
        between = NONE if steady else self._between_functions(uid, of, per)
        return MedianChange(size, within, between, self._apart)

    def between(self, uid: str, of: str, per: str) -> Error:
        """The error of the log ratio of a uid by the runs.

        :param of: the dependent field. :param per: the independent one.
        """
        old, new = (source.of(uid, of, per) for source in self.sources)
        found = None if old is None or new is None else medians_within(old, new)
        if found is None:
            return UNKNOWN
        repeated = self._between_rounds(uid, of, per, found.inner)
        return self._between_functions(uid, of, per) if repeated is None else repeated

    def _between_rounds(self, uid: str, of: str, per: str, inner: Floats) -> Error | None:
        """The error by the runs of both versions; None where one has a single run."""
        sides = []
        for source in self.sources:
            points, runs = source.of(uid, of, per), source.runs(uid, of, per)
            if points is None or runs is None:
                return None
            rest = residuals(points, inner)
            levels = [float(np.median(rest[runs == run])) for run in np.unique(runs)]
            if len(levels) < 2:
                return None
            sides.append(np.array(levels))
        return error_of_means(sides[0], sides[1], paired=self._side_by_side)

    def _between_functions(self, uid: str, of: str, per: str) -> Error:
        """The error by the other functions of the two runs."""
        if (of, per) not in self._errors:
            self._errors[of, per] = self._errors_by_uid(of, per)
        return self._errors[of, per].get(uid, UNKNOWN)

    def _errors_by_uid(self, of: str, per: str) -> dict[str, Error]:
        old, new = (source.every(of, per) for source in self.sources)
        levels = {}
        for uid in sorted(old.keys() & new.keys()):
            medians = medians_within(old[uid], new[uid])
            if medians is not None and medians.logarithms.size:
                levels[uid] = float(np.mean(medians.logarithms))
        return dict(zip(levels, error_of_others(np.array([*levels.values()])), strict=True))


def _scatter(found: Medians, share: Floats) -> tuple[Error, bool | None]:
    """The error of a weighted mean of the log ratios of medians, and whether they do not scatter; None where
    there are too few to tell.

    Second differences leave out what changes smoothly along x (T. Gasser, L. Sroka, C. Jennen-Steinmetz,
    Residual Variance and Residual Pattern in Nonlinear Regression, Biometrika 73, 1986); that estimate is as
    good as one of half as many independent values.
    """
    logarithms = found.logarithms
    if logarithms.size < _FEWEST:
        return NONE, None
    steps = np.diff(logarithms, 2)
    deviation = math.sqrt(float(np.mean(steps * steps)) / 6)
    typical = float(np.median(np.abs(steps))) / _NORMAL_MEDIAN / math.sqrt(6)
    error = deviation * math.sqrt(float(np.sum(share * share)))
    return Error(error, max(1.0, steps.size / 2)), typical < STEADY


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 700 else math.inf
