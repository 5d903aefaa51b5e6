"""The measured points behind two models: whether they changed as the models did.

A model is fitted by least squares, so that one interrupted call bends all of it, and a coefficient of
determination tells nothing of that. Here the points of both versions are divided into the same buckets of x,
and the medians of the buckets are compared: calls that were interrupted do not move them. A change of the
models that is certain has to be one of these medians as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from perun.check._common.model_kinds import keys_of
from perun.check._common.relative import Floats, Limits, balance, verdict
from perun.errors import ProfileError
from perun.profile.changes import PerformanceChange

if TYPE_CHECKING:
    from perun.check._common.parts import Part
    from perun.profile.factory import Profile
    from perun.profile.series import Series

IN_A_BUCKET: Final = 5
"""Points of each version that a bucket has about: of 5, the median is not moved by two."""
MOST_BUCKETS: Final = 20
_FEWEST: Final = 3
"""Points of which one can be told from the others."""


class Points:
    """The points of one profile by uid, gathered when they are first asked for."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._found: dict[tuple[str, str], dict[str, Series]] = {}

    def of(self, uid: str, of: str, per: str) -> Series | None:
        """The points of the uid; None where the profile has none, as its resources were dropped.

        :param of: the dependent field. :param per: the independent one.
        """
        from perun.profile.series import series

        if (of, per) not in self._found:
            try:
                self._found[of, per] = {one.uid: one for one in series(self._profile, of, per)}
            except ProfileError:
                self._found[of, per] = {}
        return self._found[of, per].get(uid)


class Medians(NamedTuple):
    """Medians of the points of both versions in the same buckets of x, both of shape (buckets,)."""

    baseline: Floats
    target: Floats

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


def medians(uid: str, common: Sequence[Part], sources: tuple[Points, Points]) -> Medians | None:
    """The medians of the points in the x that the models have in common; None where there are too few points.

    The buckets have about :data:`IN_A_BUCKET` points of the version that has fewer.
    """
    of, per = keys_of(common[0].baseline.model)
    found = [source.of(uid, of, per) for source in sources]
    sides = []
    for points in found:
        if points is None:
            return None
        inside = (points.x >= common[0].start) & (points.x <= common[-1].end)
        sides.append((points.x[inside], points.y[inside]))
    fewest = min(x.size for x, _ in sides)
    if fewest < _FEWEST:
        return None
    count = min(max(fewest // IN_A_BUCKET, 1), MOST_BUCKETS)
    inner = np.quantile(np.concatenate([x for x, _ in sides]), np.linspace(0, 1, count + 1)[1:-1])
    old, new = (_of_buckets(x, y, inner) for x, y in sides)
    both = np.isfinite(old) & np.isfinite(new)
    return Medians(old[both], new[both]) if both.any() else None


def confirmed(change: PerformanceChange, measured: float, limits: Limits) -> tuple[PerformanceChange, str]:
    """The milder one of the changes of the models and of the points; why, where it is that of the points.

    :param measured: the balance of the points. :param limits: those that the change was judged by.
    """
    if change in (PerformanceChange.NoChange, PerformanceChange.Unknown):
        return change, ""
    own = verdict(measured, limits)
    if own is PerformanceChange.Unknown:
        return change, ""
    if own is not PerformanceChange.NoChange and (own.value < 0) is not (change.value < 0):
        return PerformanceChange.Unknown, _opposite(measured)
    if abs(own.value) >= abs(change.value):
        return change, ""
    return own, f"the models differ by more, but the medians of the measured points by {measured:+.1%} only"


def judged(
    change: PerformanceChange,
    common: Sequence[Part],
    r_square: float,
    measured: float | None,
    limits: Limits,
) -> tuple[PerformanceChange, str]:
    """A change of models after all that may speak against it; why, where something does.

    :param r_square: what the worse model has to fit, if the change is not to be Unknown.
    :param measured: the balance of the points; None where they are not known.
    """
    worst = min(part.r_square for part in common)
    if change is not PerformanceChange.NoChange and worst < r_square:
        return PerformanceChange.Unknown, (
            f"the models explain {worst:.2g} of the measured points, less than r_square = {r_square:g}"
        )
    return (change, "") if measured is None else confirmed(change, measured, limits)


def _opposite(measured: float) -> str:
    return f"the medians of the measured points changed the other way, by {measured:+.1%}"


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
