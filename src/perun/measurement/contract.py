"""Whether what was measured keeps to a contract: an order of growth, a bound at each size, or a change of
what it was before; of times, a change of another version, measured in pairs with it.

Counts do not scatter as times do, so one run of each size says it. What the start of a program costs is
fitted as the c0 of c0 + c1 n^b, and never taken for its growth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from perun.measurement import present
from perun.measurement.verdict import severity
from perun.models.growth import comparison, forms
from perun.profile.amounts import percent, readable, readable_pair
from perun.profile.changes import DegradationInfo

MIN_SIZES: Final = comparison.MIN_SIZES
"""Sizes that an order of growth needs."""
SLACK: Final = 0.05
"""Exponent by which a measured one may be above that of a form that has none of its own, as `n log n`."""
ROOM: Final = 0.1
"""Exponent by which growth may differ and still be the same."""
_LEVEL: Final = 1e-3
"""Share by which counts of all sizes may differ and still be level."""
_ERROR: Final = 0.002
"""Part of the growth by which a sum of forms may be off."""
_WORSE: Final = 2.0
"""Times the misfit of a power up to which a sum of as many coefficients is told instead."""
_LEADS: Final = 0.25
"""Part of the growth that the term which grows fastest makes at least where it is the order."""


class Keeping(NamedTuple):
    """Whether a contract is kept; None where the counts do not tell. :param reason: what they say."""

    kept: bool | None
    reason: str


class GrowthLimit(NamedTuple):
    """The order that growth is held to. :param form: as in a contract, `n log n` or `n^1.1`.
    :param exponent: of a power; None of the other forms."""

    form: str
    exponent: float | None = None

    def at(self, largest: float) -> float:
        """The exponent of n with which the form grows at the largest size, with the slack that it has."""
        if self.exponent is not None:
            return self.exponent
        log = 1 / math.log(max(largest, math.e))
        return {"1": 0.0, "log n": log, "n": 1.0, "n log n": 1 + log}[self.form] + SLACK


def growth(sizes: Sequence[float], counts: Sequence[float], limit: GrowthLimit, confidence: float) -> Keeping:
    """Whether counts grow no faster than the limit says.

    Broken is what the interval of the exponent says, or, where sums of forms tell all counts, their largest
    term.

    :param sizes: at least :data:`MIN_SIZES`, above 0, ascending. :param counts: one of each size.
    """
    told = f"{readable(counts[0])} to {readable(counts[-1])} from {sizes[0]:g} to {sizes[-1]:g}"
    if max(counts) - counts[0] <= _LEVEL * counts[0]:
        return Keeping(True, f"level, {told}")
    profile, curve = _fitted(sizes, counts)
    low, high = forms.bounds(profile, 1 - confidence)
    most = limit.at(sizes[-1])
    if curve is not None:
        leading = comparison.leading(curve, sizes[-1])
        return Keeping(bool(leading <= most + SLACK), f"{curve.name}, {told}")
    steepest = float(forms.FINE[-1])
    if profile.best == steepest:
        return Keeping(most > steepest, f"more than n^{steepest:g}, {told}")
    exponent = f"n^{profile.best:.2f} [{low:.2f}, {high:.2f}], {told}"
    if low > most:
        return Keeping(False, exponent)
    return Keeping(True if high <= most else None, exponent)


def _fitted(
    sizes: Sequence[float], counts: Sequence[float]
) -> tuple[forms.ResidualProfile, comparison.Curve | None]:
    """The powers that tell how counts grow; and the sum of forms that tells it, not only how large they are:
    None without, and where a power of as many coefficients tells it better."""
    points = forms.centres(sizes, counts)
    power, curve = forms.profile(points, forms.FINE), comparison.counted_curve(points)
    if curve is None:
        return power, None
    rise = float(points.y[-1] - points.y[0])
    grown = curve.line.c1 * curve.columns(points.x)
    off = curve.line.c0 + grown + curve.linear * points.x - points.y
    leads = float(grown[-1] - grown[0]) >= _LEADS * rise
    if not leads or float(abs(off).max()) > _ERROR * rise:
        return power, None
    worse = curve.linear and float(off * off @ points.weight) > _WORSE * float(power.rss.min())
    return power, None if worse else curve


def bounded(
    sizes: Sequence[float], counts: Sequence[float], bound: Callable[[float], float], unit: str
) -> Keeping:
    """Whether the count of each size is at most what the bound gives for it.

    :param sizes: one of each count; 0 where there is no size.
    """
    over = [(count / bound(size) if bound(size) > 0 else math.inf) if count else 0.0
            for size, count in zip(sizes, counts, strict=True)]  # fmt: skip
    worst = max(range(len(over)), key=over.__getitem__)
    at = f" at {sizes[worst]:g}" if sizes[worst] else ""
    told = f"{readable(counts[worst], unit)}{at}"
    if over[worst] <= 1:
        return Keeping(True, told)
    more = f"{percent(over[worst] - 1).lstrip(chr(43))} above" if over[worst] < math.inf else "above"
    return Keeping(False, f"{told}, {more} {readable(bound(sizes[worst]), unit)}")


def like_before(before: float, now: float, tolerance: float, unit: str) -> Keeping:
    """Whether a count is no more than a share above what it was before.

    :param tolerance: the share, 0.02 for 2 %.
    """
    change = now / before - 1 if before > 0 else math.inf if now > 0 else 0.0
    by = f" ({percent(change)})" if math.isfinite(change) else ""
    return Keeping(change <= tolerance, f"{readable(before, unit)} -> {readable(now, unit)}{by}")


def paired(change: DegradationInfo, tolerance: float) -> Keeping:
    """Whether what was measured in pairs is no more than a share above what the other version has.

    It is where the whole interval of the ratio says so, and broken where that is above the share and a
    definite change; else the reason has the rule that could not decide.

    :param change: as judged with the share as the threshold, and one confidence.
    """
    low, high = change.interval or (0.0, math.inf)
    if change.values is None or not high < math.inf:
        return Keeping(None, change.rule)
    before, after = readable_pair(*change.values, change.unit)
    told = f"{before} -> {after}, {present.share(change.rate_degradation, low, high)}"
    if high <= 1 + tolerance:
        return Keeping(True, told)
    if low > 1 + tolerance and severity(change.result) < -1:
        return Keeping(False, told)
    return Keeping(None, f"{told}; {change.rule}")


def exponent(sizes: Sequence[float], counts: Sequence[float]) -> float:
    """The power of n that tells best how counts grow, to compare with that of other counts: 0 where they are
    level, and of a sum of forms that of its largest term."""
    if max(counts) - counts[0] <= _LEVEL * counts[0]:
        return 0.0
    profile, curve = _fitted(sizes, counts)
    return comparison.leading(curve, sizes[-1]) if curve is not None else profile.best


def grown(before: float, now: float) -> Keeping:
    """Whether an exponent is no more than a tenth above what it was before."""
    return Keeping(now <= before + ROOM, f"n^{before:.2f} -> n^{now:.2f}")


def suggested(sizes: Sequence[float], counts: Sequence[float], confidence: float) -> str:
    """An order of growth, as a contract has it, that the counts keep to with room for what is no change of
    it: a tenth of an exponent above what was measured, at least."""
    if max(counts) - counts[0] <= _LEVEL * counts[0]:
        return "n^0.1"
    profile, curve = _fitted(sizes, counts)
    if curve is not None:
        high = comparison.leading(curve, sizes[-1])
    else:
        high = forms.bounds(profile, 1 - confidence)[1]
    return f"n^{math.ceil(10 * (high + SLACK)) / 10:g}" if high < math.inf else ""
