"""The measured points behind two models: whether they changed as the models did.

A model is fitted by least squares, so that one interrupted call bends all of it, and a coefficient of
determination tells nothing of that. Here the points of both versions are divided into the same buckets of x,
and the medians of the buckets are compared: calls that were interrupted do not move them. A change of the
models that is certain has to be one of these medians as well; how much these may differ by chance says
:mod:`perun.check._common.noise`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perun.core.errors import ProfileError
from perun.measurement.series import EXACT
from perun.profile.changes import PerformanceChange
from perun.profile.series import ResourceSeries, series, subtype_of
from perun.profile.session import RUN, count_of
from perun.profile.uid import flatten, location

if TYPE_CHECKING:
    from perun.profile.factory import Profile


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


class Points:
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
        return found or self._gathered(of, per, apart=False).get(uid)

    def every(self, of: str, per: str) -> Mapping[str, ResourceSeries]:
        """The points of each location that has any."""
        return self._gathered(of, per, apart=True)

    def _gathered(self, of: str, per: str, *, apart: bool) -> Mapping[str, ResourceSeries]:
        if (of, per, apart) not in self._found:
            try:
                found = {one.location: one for one in series(self._profile, of, per, apart=apart)}
            except ProfileError:
                found = {}
            self._found[of, per, apart] = found
        return self._found[of, per, apart]

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
