"""The measured points behind two models: whether they changed as the models did.

A model is fitted by least squares, so that one interrupted call bends all of it, and a coefficient of
determination tells nothing of that. Here the points of both versions are divided into the same buckets of x,
and the medians of the buckets are compared: calls that were interrupted do not move them. A change of the
models that is certain has to be one of these medians as well; how much these may differ by chance says
:mod:`perun.check._common.runs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from perun.check._common.relative import Floats, balance
from perun.errors import ProfileError
from perun.measurement.series import EXACT
from perun.profile.pooling import RUN, count_of
from perun.profile.series import Series, series, subtype_of
from perun.profile.uid import flatten, location

if TYPE_CHECKING:
    from perun.profile.factory import Profile

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
        self._found: dict[tuple[str, str, bool], dict[str, Series]] = {}
        self._exact: frozenset[str] | None = None

    def of(self, uid: str, of: str, per: str) -> Series | None:
        """The points of the location; None where the profile has none, as its resources were dropped.

        :param of: the dependent field. :param per: the independent one.
        """
        found = self.every(of, per).get(uid)
        return found or self._gathered(of, per, apart=False).get(uid)

    def every(self, of: str, per: str) -> Mapping[str, Series]:
        """The points of each location that has any."""
        return self._gathered(of, per, apart=True)

    def _gathered(self, of: str, per: str, *, apart: bool) -> Mapping[str, Series]:
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
        """The mean of the balances of the buckets, see :func:`~perun.check._common.relative.balance`."""
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


def medians_within(old: Series, new: Series, start: float = -np.inf, end: float = np.inf) -> Medians | None:
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


def residuals(points: Series, inner: Floats) -> Floats:
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
