"""Two versions of a function of a size: another order of growth, another factor, another level, or neither.

* Another order: the pair of forms that explains the two versions best is better than any form for both by
  more than 10 of AICc; the exponents of y = c0 + c1 n^b differ by at least :data:`APART` with the confidence
  asked for; and the sizes reach over a factor of :data:`SPAN`. A level function has the exponent 0; that one
  began to grow needs, instead of the first condition, that the level one grows by less than a tenth of it.
* Another factor: of the form that is best for both, c1 is different. In a linear model with normal residuals
  the test of the coefficient of (version x f(n)) by t is the likelihood ratio test; the variances of the two
  versions are estimated apart, with Satterthwaite's degrees of freedom. The bounds of the ratio are those of
  Fieller.
* Another level: the curves differ in the middle of the sizes, though c1 does not, or not surely.

Sources: E. C. Fieller, Some Problems in Interval Estimation, J. R. Stat. Soc. B 16, 1954;
F. E. Satterthwaite, An Approximate Distribution of Estimates of Variance Components, Biometrics Bulletin 2,
1946; Burnham and Anderson as in :mod:`perun.models.growth.forms`, section 2.6 (a difference above 10).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perun.core.wording import plural
from perun.models import student
from perun.models.growth import forms
from perun.models.growth import forms as exponent
from perun.models.growth.forms import CONSTANT, EVIDENCE, FORMS, NEAR, POWER, Centres, LinearForm, centres
from perun.models.record import NoModel

Floats = NDArray[np.float64]

SPAN: Final = 8.0
"""Largest by smallest size below which orders cannot be told apart."""
APART: Final = 0.2
"""Difference of exponents that is surely exceeded where the order changed."""
MIN_SIZES: Final = 5
"""Points of each version from which on an order can be told."""
MIN_POINTS: Final = 3
_LEVEL: Final = 0.1
"""Part of the growth of the other version below which a function counts as level."""


class Curve(NamedTuple):
    """A fitted function. `exponent` is that of the form `n^b`, else None; `linear` the coefficient of n in a
    sum."""

    form: str
    line: LinearForm
    exponent: float | None = None
    linear: float = 0.0

    @property
    def name(self) -> str:
        """`n log n`, or `n^1.4`."""
        return self.form if self.exponent is None else f"n^{self.exponent:.3g}"

    def columns(self, sizes: Floats) -> Floats:
        """The form at sizes, shape (k,)."""
        if self.form == CONSTANT:
            return np.zeros_like(sizes)
        if self.exponent is not None:
            return exponent.column(sizes, self.exponent)
        return FORMS[self.form].values(sizes)

    def at(self, points: Centres, size: float) -> tuple[float, float]:
        """The value at a size, and its variance, of the points that were fitted."""
        f = float(self.columns(np.array([size]))[0])
        return forms.estimate(points, self.columns(points.x), self.line, (1.0, f))

    def slope(self, points: Centres) -> tuple[float, float]:
        """c1 and its variance, of the points that were fitted."""
        return forms.estimate(points, self.columns(points.x), self.line, (0.0, 1.0))


class OrderComparison(NamedTuple):
    """Whether the order of growth is another one.

    :param baseline: the best curve of each version; :param target: the same.
    :param difference: of the exponents. :param evidence: difference of AICc in favour of two orders.
    :param reason: why it cannot be told, empty if it can.
    """

    baseline: Curve
    target: Curve
    difference: exponent.ExponentDifference
    evidence: float
    reason: str = ""

    @property
    def differs(self) -> bool:
        """Whether the exponents are surely apart by more than :data:`APART`."""
        return self.difference.low > APART or self.difference.high < -APART

    @property
    def changed(self) -> bool:
        """Whether the order is surely another one."""
        return not self.reason and self.differs and self.evidence > EVIDENCE

    @property
    def doubtful(self) -> bool:
        """Whether it may be another one: the forms are surely others, but the exponents are close."""
        return not self.reason and not self.changed and self.evidence > EVIDENCE


class Quotient(NamedTuple):
    """target / baseline of two estimates, its bounds, and the p-value of no difference."""

    estimate: float
    low: float
    high: float
    p_value: float


class GrowthComparison(NamedTuple):
    """What is known of a pair of versions.

    :param baseline: the curve of the form that is best for both versions; :param target: the same.
    :param factor: ratio of what grows, c1; of level functions, of their levels.
    :param level: ratio of the curves in the middle of the common sizes.
    :param largest: ratio of the curves at the largest common size.
    :param sizes: the common sizes. :param points: of both versions.
    """

    order: OrderComparison
    baseline: Curve
    target: Curve
    factor: Quotient
    level: Quotient
    largest: Quotient
    sizes: tuple[float, float]
    points: tuple[int, int]


class NotComparable(NamedTuple):
    """`reason` says why there is no comparison, as a clause for a message."""

    reason: str


def compare(
    baseline: Centres, target: Centres, alpha: float, *, exact: bool = False
) -> GrowthComparison | NotComparable:
    """Compare two versions over the sizes that they have in common.

    :param alpha: probability with which an interval may miss. :param exact: whether the values are counts,
        which do not scatter: where forms, or their sums with n, tell both, these decide.
    """
    if not (baseline.x.size and target.x.size):
        return NotComparable("no size is above 0")
    old, new = _common(baseline, target)
    points = old.x.size, new.x.size
    if min(points) < MIN_POINTS:
        return NotComparable(f"both versions need the same range of at least {MIN_POINTS} sizes")
    sizes = max(float(old.x[0]), float(new.x[0])), min(float(old.x[-1]), float(new.x[-1]))
    profiles = exponent.profile(old), exponent.profile(new)
    fits = forms.lines(old), forms.lines(new)
    order = _order((old, new), fits, profiles, alpha)
    before, after = _best_for_both((old, new), fits, profiles)
    freedoms = before.line.freedom, after.line.freedom
    middle = math.sqrt(sizes[0] * sizes[1])
    level = _quotient(before.at(old, middle), after.at(new, middle), freedoms, alpha)
    factor = level
    if before.form != CONSTANT:
        factor = _quotient(before.slope(old), after.slope(new), freedoms, alpha)
    largest = _quotient(before.at(old, sizes[1]), after.at(new, sizes[1]), freedoms, alpha)
    told = (counted_curve(old), counted_curve(new)) if exact else (None, None)
    if told[0] is not None and told[1] is not None and not _why_not((old, new)):
        return _of_counts((told[0], told[1]), sizes, points)
    return GrowthComparison(order, before, after, factor, level, largest, sizes, points)


_Both = tuple[Centres, Centres]
_Fits = tuple[Mapping[str, LinearForm], Mapping[str, LinearForm]]
_Profiles = tuple[exponent.ResidualProfile, exponent.ResidualProfile]


def _common(baseline: Centres, target: Centres) -> _Both:
    """The points of the sizes that both versions have."""
    # Points of several sizes each need not lie at the same ones.
    low = max(float(baseline.x[0]), float(target.x[0])) / NEAR
    high = min(float(baseline.x[-1]), float(target.x[-1])) * NEAR
    return baseline.within(low, high), target.within(low, high)


def _order(points: _Both, fits: _Fits, profiles: _Profiles, alpha: float) -> OrderComparison:
    before, after = (_best(*one) for one in zip(points, fits, profiles, strict=True))
    level = before.form == CONSTANT, after.form == CONSTANT
    if all(level):
        difference, evidence = exponent.ExponentDifference(0.0, 0.0, 0.0, 1.0), 0.0
    elif any(level):
        difference, evidence = _beside_level(points, fits, profiles, (before, after), alpha)
    else:
        difference = exponent.difference(*profiles, alpha)
        apart = min(one[-1] for one in _criteria(points, fits, profiles, together=False))
        evidence = min(one[-1] for one in _criteria(points, fits, profiles, together=True)) - apart
    return OrderComparison(before, after, difference, evidence, _why_not(points))


def _why_not(points: _Both) -> str:
    if min(one.x.size for one in points) < MIN_SIZES:
        return f"an order of growth needs {MIN_SIZES} sizes"
    span = min(one.span for one in points)
    if span < SPAN:
        return f"an order of growth needs sizes over a factor of {SPAN:g}, not {span:.3g}"
    return ""


def _best(points: Centres, fits: Mapping[str, LinearForm], profile: exponent.ResidualProfile) -> Curve:
    """The curve that :func:`~perun.models.growth.forms.choose` takes."""
    curves = {form: Curve(form, one) for form, one in fits.items()}
    power = _power(points, profile.best)
    if power is not None:
        curves[POWER] = power
    return curves[forms.choose({form: _criterion(one, points) for form, one in curves.items()}, CONSTANT)]


def _criterion(curve: Curve, points: Centres) -> float:
    return forms.criterion(curve.line.rss, points.x.size, _size(curve.form))


def _size(form: str) -> int:
    """The parameters of a form, with the variance."""
    return 2 if form == CONSTANT else 4 if form == POWER else 3


def _power(points: Centres, b: float) -> Curve | None:
    fitted = forms.line(points, exponent.column(points.x, b))
    return None if fitted is None else Curve(POWER, fitted, b)


def _criteria(
    points: _Both, fits: _Fits, profiles: _Profiles, *, together: bool
) -> Iterator[tuple[str, str, float]]:
    """AICc of pairs of forms that grow: of one form `together`, a power with one exponent among them, or of
    two different ones."""
    counts = tuple(one.x.size for one in points)
    old, new = (
        {form: forms.misfit(line.rss, count) for form, line in own.items() if form != CONSTANT}
        for own, count in zip(fits, counts, strict=True)
    )
    total, shared = sum(counts), _shared_power(points, profiles)
    if together:
        yield POWER, POWER, forms.aicc(shared[1], total, 7)
        for form in old.keys() & new.keys():
            yield form, form, forms.aicc(old[form] + new[form], total, 6)
        return
    powers = (forms.misfit(float(one.rss.min()), one.points) for one in profiles)
    for own, misfit in zip((old, new), powers, strict=True):
        own[POWER] = misfit
    for one, other in product(old, new):
        if one != other or one == POWER:
            size = 6 + (one == POWER) + (other == POWER)
            yield one, other, forms.aicc(old[one] + new[other], total, size)


def _shared_power(points: _Both, profiles: _Profiles) -> tuple[float, float]:
    """The exponent that is best for both versions, and the misfit of both with it."""
    old, new = (one.points * np.log(one.rss / one.points) for one in profiles)
    both = old + new
    at = int(np.argmin(both))
    return float(exponent.GRID[at]), float(both[at])


def _beside_level(
    points: _Both, fits: _Fits, profiles: _Profiles, curves: tuple[Curve, Curve], alpha: float
) -> tuple[exponent.ExponentDifference, float]:
    """What is known if one of the versions is level: its exponent is 0, unless it may grow a little."""
    growing = 0 if curves[1].form == CONSTANT else 1
    sign = 1 if growing else -1
    curve, grown, level = curves[growing], points[growing], points[1 - growing]
    # What levels off (b < 0) grows no more than a logarithm does.
    low, high = (max(0.0, bound) for bound in exponent.bounds(profiles[growing], alpha))
    slope, variance = curve.slope(grown)
    p_value = student.p_value(slope / math.sqrt(variance), curve.line.freedom)
    ends = sorted((sign * low, sign * high))
    difference = exponent.ExponentDifference(
        sign * max(0.0, profiles[growing].best), ends[0], ends[1], p_value
    )
    if _growth_at_most(level, curve, alpha) > _LEVEL * slope:
        return difference, 0.0
    flat = Curve(CONSTANT, fits[growing][CONSTANT])
    return difference, _criterion(flat, grown) - _criterion(curve, grown)


def _growth_at_most(level: Centres, curve: Curve, alpha: float) -> float:
    """The upper bound of c1 of a level function, of the form of the other one."""
    columns = curve.columns(level.x)
    found = forms.any_line(level, columns)
    if found is None:
        return math.inf
    estimate, variance = forms.estimate(level, columns, found, (0.0, 1.0))
    return estimate + student.quantile(alpha, max(found.freedom, 1)) * math.sqrt(variance)


def _best_for_both(points: _Both, fits: _Fits, profiles: _Profiles) -> tuple[Curve, Curve]:
    """The curves of the one form that explains both versions best."""
    counts = points[0].x.size, points[1].x.size
    level = sum(forms.misfit(own[CONSTANT].rss, count) for own, count in zip(fits, counts, strict=True))
    choices = [*_criteria(points, fits, profiles, together=True)]
    choices.append((CONSTANT, CONSTANT, forms.aicc(level, sum(counts), 4)))
    form = min(choices, key=lambda one: one[-1])[0]
    if form != POWER:
        return Curve(form, fits[0][form]), Curve(form, fits[1][form])
    b = _shared_power(points, profiles)[0]
    before, after = (_power(one, b) for one in points)
    if before is None or after is None:
        return Curve(CONSTANT, fits[0][CONSTANT]), Curve(CONSTANT, fits[1][CONSTANT])
    return before, after


def _quotient(
    baseline: tuple[float, float], target: tuple[float, float], freedoms: tuple[int, int], alpha: float
) -> Quotient:
    """The ratio of two independent estimates, each with its variance (Fieller, Satterthwaite)."""
    (b, vb), (t, vt) = baseline, target
    total = vb + vt
    split = sum(v * v / max(nu, 1) for v, nu in zip((vb, vt), freedoms, strict=True))
    freedom = total * total / split if split > 0 else max(sum(freedoms), 1)
    p_value = student.p_value((t - b) / math.sqrt(total), freedom) if total > 0 else float(t == b)
    low, high = _fieller(b, vb, t, vt, student.quantile(alpha, round(freedom, 1)))
    return Quotient(t / b if b > 0 else math.inf if t > 0 else math.nan, low, high, p_value)


def _fieller(b: float, vb: float, t: float, vt: float, quantile: float) -> tuple[float, float]:
    """The ratios r >= 0 for which t - r b is within `quantile` standard errors of 0.

    They are where (b^2 - q^2 vb) r^2 - 2 b t r + (t^2 - q^2 vt) <= 0; an interval without an upper bound
    where b may be 0.
    """
    square = quantile * quantile
    a, c = b * b - square * vb, t * t - square * vt
    root = math.sqrt(max(b * b * t * t - a * c, 0.0))
    if a > 0:
        return max(0.0, (b * t - root) / a), max(0.0, (b * t + root) / a)
    if a == 0 or b * b * t * t <= a * c:
        return 0.0, math.inf
    lower = (b * t + root) / a
    return (0.0 if lower >= 0 else max(0.0, (b * t - root) / a)), math.inf


# Counts, which do not scatter: a form tells them or does not, and what is beside the term that grows fastest
# is another term of the program, no error.

_SUMS: Final = ("n log n", "n^2", "n^3")
"""Forms that may have a term of n beside them."""
_ERROR: Final = 0.002
"""Share of each count by which a curve may be off: the start-up of programs, and its caches, differ."""
_FELT: Final = 0.05
"""Part of the largest count that the term which grows fastest makes at least."""
_TINY: Final = 1e-9


def counted_curve(points: Centres) -> Curve | None:
    """The form of the fewest terms and the lowest order that tells all of the counts, `c0 + c1 f(n)` or
    `c0 + c1 f(n) + c2 n`; None where none does, or there are fewer than five sizes."""
    x, y = points.x, points.y
    if x.size < MIN_SIZES or y.min() <= 0:
        return None
    ones = np.ones_like(x)
    columns: list[tuple[str, list[Floats]]] = [(CONSTANT, [ones])]
    columns += [(name, [ones, one.values(x)]) for name, one in FORMS.items() if x[-1] <= one.up_to]
    columns += [(name, [ones, FORMS[name].values(x), x]) for name in _SUMS]
    for name, own in columns:
        table = np.column_stack(own) / y[:, None]
        scale = np.abs(table).max(axis=0)
        found, _, rank, _ = np.linalg.lstsq(table / scale, ones, rcond=None)
        c0, c1, c2 = (*(found / scale).tolist(), 0.0, 0.0)[:3]
        off = float(np.abs(table @ (found / scale) - 1).max())
        grows = name == CONSTANT or c1 * float(own[1][-1] - own[1][0]) >= _FELT * float(y[-1])
        if rank == len(own) and off <= _ERROR and grows:
            return Curve(name, LinearForm(c0, c1, off, (0.0, 0.0, 0.0), x.size), linear=c2)
    return None


def leading(curve: Curve, largest: float) -> float:
    """The exponent of n with which the term that grows fastest grows at the largest size."""
    powers = {CONSTANT: 0.0, "log n": 0.0, "n": 1.0, "n^2": 2.0, "n^3": 3.0}
    if curve.form == "2^n":
        return largest
    return powers.get(curve.form, 1.0 + 1.0 / math.log(max(largest, math.e)))


def _of_counts(
    curves: tuple[Curve, Curve], sizes: tuple[float, float], points: tuple[int, int]
) -> GrowthComparison:
    before, after = curves
    step = leading(after, sizes[1]) - leading(before, sizes[1])
    same = before.form == after.form
    difference = exponent.ExponentDifference(step, step, step, float(same))
    order = OrderComparison(before, after, difference, 0.0 if same else math.inf)

    def ratio(size: float) -> Quotient:
        old, new = (_value(one, size) for one in curves)
        return _certain(old, new)

    level, largest = ratio(math.sqrt(sizes[0] * sizes[1])), ratio(sizes[1])
    factor = _certain(before.line.c1, after.line.c1) if same and before.form != CONSTANT else level
    return GrowthComparison(order, before, after, factor, level, largest, sizes, points)


def _value(curve: Curve, size: float) -> float:
    f = float(curve.columns(np.array([size]))[0])
    return curve.line.c0 + curve.line.c1 * f + curve.linear * size


def _certain(old: float, new: float) -> Quotient:
    """The ratio of two numbers that do not scatter."""
    share = new / old if old > 0 else math.inf
    return Quotient(share, share, share, float(abs(share - 1) <= _TINY))


# A comparison of two versions with the noise between their runs, which the points of one run do not show.


def widened(
    found: GrowthComparison, error: float, freedom: float, most: float, alpha: float
) -> GrowthComparison:
    """The comparison with wider bounds of its ratios, and higher p-values.

    :param error: standard error of the logarithm of a ratio, by the runs, with `freedom` degrees of freedom.
    :param most: the most that runs make of the logarithm of a ratio.
    :param alpha: probability with which an interval may miss.
    """
    if not error > 0:
        return found
    quantile = student.quantile(alpha, freedom)
    half = min(quantile * error, most)
    return found._replace(
        factor=_widened(found.factor, half, quantile, freedom),
        level=_widened(found.level, half, quantile, freedom),
        largest=_widened(found.largest, half, quantile, freedom),
    )


def _widened(quotient: Quotient, half: float, quantile: float, freedom: float) -> Quotient:
    estimate, low, high, p_value = quotient
    if not 0 < estimate < math.inf:
        return quotient
    centre = math.log(estimate)
    below = math.hypot(half, centre - math.log(low)) if low > 0 else math.inf
    above = math.hypot(half, math.log(high) - centre) if high < math.inf else math.inf
    by_runs = student.p_value(centre * quantile / half, freedom)
    return Quotient(estimate, math.exp(centre - below), _exp(centre + above), max(p_value, by_runs))


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 700 else math.inf


# How many times as much is spent where the size doubles: one number for an order of growth.
#
# It is 2^b of the y = c0 + c1 n^b that fits best (:mod:`perun.models.growth.forms`): 1 of what does not
# grow, 2 of what is linear, 4 of what is quadratic. As a ratio it is above 0, and the logarithm to the base 2
# of the ratio of two of them is the difference of their exponents.

MIN_RISE: Final = 1.1
"""Largest by smallest cost below which it does not grow."""


def doubling(sizes: ArrayLike, costs: ArrayLike, *, exact: bool = False) -> float | NoModel:
    """The number, from 1 to 64; or why the measurements do not tell it.

    :param exact: whether the costs are counts: then the term that grows fastest decides.
    :param sizes: and :param costs: finite, shape (n,); sizes that are not above 0 are left out.
    """
    points = centres(sizes, costs)
    if points.x.size < MIN_SIZES:
        return NoModel(f"it was measured at {plural(points.x.size, 'size')}, and {MIN_SIZES} are needed")
    if points.span < SPAN:
        return NoModel(
            f"the largest size is {points.span:.2g} times the smallest one, and {SPAN:g} times are needed"
        )
    if points.y.max() <= MIN_RISE * max(float(points.y.min()), 0.0):
        return 1.0
    told = counted_curve(points) if exact else None
    if told is not None and told.form != "2^n":
        return float(2.0 ** leading(told, float(points.x[-1])))
    return float(2.0 ** max(forms.profile(points).best, 0.0))
