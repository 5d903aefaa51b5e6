"""The measured points behind two models: whether they changed as the models did.

A model is fitted by least squares, so that one interrupted call bends all of it, and a coefficient of
determination tells nothing of that. Here the points of both versions are divided into the same buckets of x,
and the medians of the buckets are compared: calls that were interrupted do not move them. A change of the
models that is certain has to be one of these medians as well; how much these may differ by chance says
:mod:`perun.check._common.points`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perun.check._common.model_pairs import ModelInterval, keys_of
from perun.core.errors import ProfileError
from perun.measurement.series import EXACT
from perun.models import student
from perun.profile.changes import PerformanceChange
from perun.profile.factory import Profile
from perun.profile.series import ResourceSeries, series, subtype_of
from perun.profile.session import RUN, are_pairs, count_of
from perun.profile.uid import flatten, location

# How much larger or smaller a value of the target is than that of the baseline, the same in both directions.
#
# The relative error (t - b) / |b| is what users are told, but it is lopsided: 30 % more there is 23 % less on
# the way back. The balance (t - b) / smaller, where `smaller` is the lower one of |b| and |t|, is the
# relative error of a growth, and exchanging the two values changes nothing but its sign. It is what limits
# are for: with 0.25 a degradation is a target of more than 5/4 of the baseline, and an optimization what
# undoes one, a target of less than 4/5, a relative error below -0.2. (Limits of 0.1 and 0.25 of the relative
# error itself would call a change from 100 to 111 a degradation, and that from 111 back to 100 none.)

Floats = NDArray[np.float64]
ROUNDING: Final = 1e-9
"""What a limit forgives: 1.1 / 1 - 1 is a bit more than 0.1."""
_LARGEST: Final = sys.float_info.max


class RelativeLimits(NamedTuple):
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


def verdict(balance: float, limits: RelativeLimits, *, certain: bool = True) -> PerformanceChange:
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


IN_A_BUCKET: Final = 5
"""Points of each version that a bucket has about: of 5, the median is not moved by two."""
MAX_BUCKETS: Final = 20
_MIN_POINTS: Final = 3
"""Points of which one can be told from the others."""


class LocationPoints:
    """The points of one profile by location, gathered when they are first asked for.

    Models of older releases are of all that was measured of a uid together; so are its points where they are
    asked for by a uid that is no location.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._found: dict[tuple[str, str, bool], dict[str, ResourceSeries]] = {}
        self._exact: frozenset[str] | None = None

    def of(self, uid: str, of: str, per: str) -> ResourceSeries | None:
        """The points of the location; None where the profile has none, as its resources were dropped.

        :param of: the dependent field. :param per: the independent one.
        """
        found = self.every(of, per).get(uid)
        return found or self._gathered(of, per, separate=False).get(uid)

    def every(self, of: str, per: str) -> Mapping[str, ResourceSeries]:
        """The points of each location that has any."""
        return self._gathered(of, per, separate=True)

    def _gathered(self, of: str, per: str, *, separate: bool) -> Mapping[str, ResourceSeries]:
        if (of, per, separate) not in self._found:
            try:
                found = {one.location: one for one in series(self._profile, of, per, separate=separate)}
            except ProfileError:
                found = {}
            self._found[of, per, separate] = found
        return self._found[of, per, separate]

    def is_exact(self, uid: str) -> bool:
        """Whether the uid is counted, not timed."""
        if self._exact is None:
            self._exact = frozenset(_exact_uids(self._profile))
        return uid in self._exact

    def runs(self, uid: str, of: str, per: str) -> Floats | None:
        """The number of the run that each point of the uid is of, shape (n,); None if there is one run."""
        if count_of(self._profile) < 2:
            return None
        # Both are in the order of the profile; a point may be left out of one only.
        points, numbers = self.of(uid, of, per), self.of(uid, RUN, per)
        alike = points is not None and numbers is not None and np.array_equal(points.x, numbers.x)
        return numbers.y if alike and numbers is not None else None


class Medians(NamedTuple):
    """Medians of the points of both versions in the same buckets of x, both of shape (buckets,).

    :param inner: the x where a new bucket begins, ascending.
    """

    baseline: Floats
    target: Floats
    inner: Floats

    @property
    def mean_balance(self) -> float:
        """The mean of the balances of the buckets, see :func:`~perun.check._common.points.balance`."""
        found = balance(self.baseline, self.target)
        known = found[np.isfinite(found)]
        return float(np.mean(known)) if known.size else float("nan")

    @property
    def balance_of_sums(self) -> float:
        """The balance of the sums of the medians, as that of integrals."""
        return float(balance(self.baseline.sum(), self.target.sum()))

    @property
    def shares(self) -> Floats:
        """What each bucket is of the sum of both versions, shape (buckets,)."""
        size = np.abs(self.baseline) + np.abs(self.target)
        return np.asarray(size / (float(size.sum()) or 1.0))

    @property
    def logarithms(self) -> Floats:
        """Logarithms of target / baseline of the buckets where both are above 0, in the order of x."""
        positive = (self.baseline > 0) & (self.target > 0)
        return np.log(self.target[positive]) - np.log(self.baseline[positive])


def medians_within(
    old: ResourceSeries, new: ResourceSeries, start: float = -np.inf, end: float = np.inf
) -> Medians | None:
    """The medians of the points from `start` to `end`; None where there are too few points.

    The buckets have about :data:`IN_A_BUCKET` points of the version that has fewer.
    """
    sides = []
    for points in (old, new):
        inside = (points.x >= start) & (points.x <= end)
        sides.append((points.x[inside], points.y[inside]))
    fewest = min(x.size for x, _ in sides)
    if fewest < _MIN_POINTS:
        return None
    count = min(max(fewest // IN_A_BUCKET, 1), MAX_BUCKETS)
    inner = np.quantile(np.concatenate([x for x, _ in sides]), np.linspace(0, 1, count + 1)[1:-1])
    before, after = (_of_buckets(x, y, inner) for x, y in sides)
    both = np.isfinite(before) & np.isfinite(after)
    return Medians(before[both], after[both], inner) if both.any() else None


def residuals(points: ResourceSeries, inner: Floats) -> Floats:
    """How much the logarithm of each point differs from that of the median of its bucket, shape (n,).

    NaN of what is not above 0.
    """
    middle = _of_buckets(points.x, points.y, inner)[np.searchsorted(inner, points.x, side="right")]
    with np.errstate(all="ignore"):
        return np.asarray(np.log(points.y) - np.log(middle))


def _exact_uids(profile: Profile) -> Iterator[str]:
    for group in profile.groups():
        if EXACT & {str(group.constants.get("type")), str(group.constants.get("subtype"))}:
            values = group.columns.get("uid") or [group.constants.get("uid", "")]
            for uid in {str(flatten(value)) for value in values}:
                yield from (uid, location(uid, subtype_of(uid, group)))


def _of_buckets(x: Floats, y: Floats, inner: Floats) -> Floats:
    """The median of each bucket, shape (buckets,); NaN of an empty one.

    :param inner: the x where a new bucket begins, ascending; some may be equal.
    """
    bucket = np.searchsorted(inner, x, side="right")
    order = np.lexsort((y, bucket))
    ordered = y[order]
    counts = np.bincount(bucket, minlength=inner.size + 1)
    ends = np.cumsum(counts)
    starts = ends - counts
    found = np.full(inner.size + 1, np.nan)
    filled = counts > 0
    lower, upper = (starts + ends - 1) // 2, (starts + ends) // 2
    found[filled] = (ordered[lower[filled]] + ordered[upper[filled]]) / 2
    return found


# How much two versions may differ because they were measured in different runs.
#
# Calls of one run share what the machine does meanwhile: its speed, the layout of the memory, the neighbours
# in the cache. No number of calls averages that out, and what the calls of one run scatter says nothing of
# it. It is estimated from either of
#
# - repeated runs of both versions: the runs of one version differ by it. The standard error of the difference
#   of the means of their levels is that of Student's test of two samples, or of pairs where the runs were
#   measured side by side.
# - the other functions of a single pair of runs. Most of them did not change, so their log ratios show what
#   the machine makes of 0. Their mean is known to be 0, so that k functions have k degrees of freedom, and
#   a speed that all of them have in common counts as well.
#
# Neither is taken to be more than `apart`, the most that a machine is expected to do to a run. Where there is
# neither, only what is beyond that is certain. What is counted, or does not scatter, has no such noise. All
# errors are those of logarithms of ratios, estimated from few values by Student's t.


CONFIDENCE: Final = 0.99
"""Of the interval that decides on what is definite."""
WEAKER: Final = 0.95
"""Of the interval that decides on a maybe."""
STEADY: Final = 0.005
"""Standard deviation, as a share, up to which measurements do not scatter: nothing timed is so even."""
MIN_OTHERS: Final = 3
"""Other functions from which on they tell of the noise: Student's quantiles of fewer are no help."""


class MedianError(NamedTuple):
    """A standard error, and its degrees of freedom; infinite where it is not known."""

    value: float
    freedom: float

    def half_width(self, confidence: float) -> float:
        """Half the width of an interval of that confidence."""
        if not 0 < self.value < math.inf:
            return self.value
        return student.quantile(round(1 - confidence, 9), self.freedom) * self.value


NONE: Final = MedianError(0.0, 1.0)
UNKNOWN: Final = MedianError(math.inf, 1.0)


def error_of_means(old: Floats, new: Floats, *, paired: bool = False) -> MedianError:
    """The standard error of the difference of two means (Student, The Probable Error of a Mean, 1908).

    :param old: shape (m,), m > 1. :param new: shape (n,), n > 1.
    :param paired: whether values of the same place belong together, if there are as many.
    """
    if paired and old.size == new.size:
        return MedianError(float(np.std(new - old, ddof=1)) / math.sqrt(old.size), old.size - 1)
    freedom = old.size + new.size - 2
    squares = sum(float(np.sum((side - side.mean()) ** 2)) for side in (old, new))
    return MedianError(math.sqrt(squares / freedom * (1 / old.size + 1 / new.size)), freedom)


def error_of_others(ratios: Floats) -> Iterator[MedianError]:
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
            yield MedianError(math.sqrt(max(float(others), 0.0) / freedom), freedom)


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
    :param unpaired_tolerance: the largest share that `between` can make.
    """

    balance: float
    within: MedianError = NONE
    between: MedianError = NONE
    unpaired_tolerance: float = 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """The bounds of the ratio of target to baseline with :data:`CONFIDENCE`."""
        return self._interval(CONFIDENCE, self.between.half_width(CONFIDENCE))

    @property
    def interval_95(self) -> tuple[float, float]:
        """The same with :data:`WEAKER`, and without a noise of runs that is not known."""
        between = self.between.half_width(WEAKER)
        return self._interval(WEAKER, between if between < math.inf else 0.0)

    def _interval(self, confidence: float, between: float) -> tuple[float, float]:
        centre = math.copysign(math.log1p(abs(self.balance)), self.balance)
        half = math.hypot(
            self.within.half_width(confidence), min(between, math.log1p(self.unpaired_tolerance))
        )
        return _exp(centre - half), _exp(centre + half)


class Runs:
    """The runs of two profiles."""

    def __init__(self, baseline: Profile, target: Profile) -> None:
        self.sources = LocationPoints(baseline), LocationPoints(target)
        self._side_by_side = are_pairs(baseline, target)
        self._errors: dict[tuple[str, str], dict[str, MedianError]] = {}

    def measured(
        self, uid: str, common: Sequence[ModelInterval], apart: float, *, sums: bool = False
    ) -> MedianChange | None:
        """What the points in the x that two models have in common say; None where there are too few.

        :param apart: share that a machine makes of a run at most.
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
            return MedianChange(size, NONE, repeated, apart)
        between = NONE if steady else self._between_functions(uid, of, per)
        return MedianChange(size, within, between, apart)

    def between(self, uid: str, of: str, per: str) -> MedianError:
        """The error of the log ratio of a uid by the runs.

        :param of: the dependent field. :param per: the independent one.
        """
        old, new = (source.of(uid, of, per) for source in self.sources)
        found = None if old is None or new is None else medians_within(old, new)
        if found is None:
            return UNKNOWN
        repeated = self._between_rounds(uid, of, per, found.inner)
        return self._between_functions(uid, of, per) if repeated is None else repeated

    def _between_rounds(self, uid: str, of: str, per: str, inner: Floats) -> MedianError | None:
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

    def _between_functions(self, uid: str, of: str, per: str) -> MedianError:
        """The error by the other functions of the two runs."""
        if (of, per) not in self._errors:
            self._errors[of, per] = self._errors_by_uid(of, per)
        return self._errors[of, per].get(uid, UNKNOWN)

    def _errors_by_uid(self, of: str, per: str) -> dict[str, MedianError]:
        old, new = (source.every(of, per) for source in self.sources)
        levels = {}
        for uid in sorted(old.keys() & new.keys()):
            medians = medians_within(old[uid], new[uid])
            if medians is not None and medians.logarithms.size:
                levels[uid] = float(np.mean(medians.logarithms))
        return dict(zip(levels, error_of_others(np.array([*levels.values()])), strict=True))


def _scatter(found: Medians, share: Floats) -> tuple[MedianError, bool | None]:
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
    return MedianError(error, max(1.0, steps.size / 2)), typical < STEADY


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 700 else math.inf
