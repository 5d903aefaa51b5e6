"""The order in which one cost grows with a size: a usual order, a power or an exponential function, or none.

All are y = c0 + c1 f(n), fitted with the weights 1 / y^2, and compared by AICc as in
:mod:`perun.models.growth.forms`. Counts of executed lines hardly scatter, so there any term of lower order
would be evidence for an odd exponent: what differs by less than :data:`TOLERANCE` counts as no difference,
and what grows faster than n may have a linear term, y = c0 + c1 f(n) + c2 n with c2 >= 0. An exponential
function has a base that is estimated, as the exponent of a power is (:mod:`perun.models.growth.forms`),
with bounds from its profile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perun.core.wording import plural
from perun.models.growth import forms
from perun.models.growth import forms as exponent
from perun.models.growth.forms import CONSTANT, FORMS, POWER, Centres
from perun.models.record import NoModel

Floats = NDArray[np.float64]

EXPONENTIAL: Final = "b^n"
TOLERANCE: Final = 0.01
"""Share of the values by which a curve may be off without being wrong: of terms of lower order."""
MIN_POINTS: Final = 5
MIN_SPAN: Final = 8.0
"""Largest by smallest size below which powers cannot be told apart."""
MIN_RISE: Final = 1.1
"""Largest by smallest cost below which it does not grow."""
MIN_R_SQUARE: Final = 0.9
"""Share of the variance that the order must explain."""
_TAIL: Final = 64.0
"""Largest by smallest size that are fitted: the order is that of large sizes."""
_FASTER: Final = frozenset({"n log n", "n^2", "n^3"})
"""Forms that may have a linear term."""
_LARGEST_POWER_OF_TWO: Final = 1000
_DOUBLINGS: Final = 3
"""How often an exponential function doubles at least within the sizes; any curve looks like less of one."""
_LEVELS_OFF: Final = 0.05
"""Exponent below which no power of a size grows like a cost."""
_LARGEST: Final = 1e70
"""What can be raised to the fourth power."""
_RATES: Final[Floats] = np.arange(1.0, 161.0) * 0.025
"""Binary logarithms of the bases that are considered: 2^0.025 to 16."""


class GrowthOrder(NamedTuple):
    """How a cost grows.

    :param form: `n`, `n log n`, `n^2` ..., or `n^b` and `b^n`.
    :param b: the power that fits best, without the linear term; of `b^n` the base.
    :param low: and :param high: bounds of `b`.
    :param r_square: share of the variance that the curve explains, each point weighted by 1 / y^2.
    :param c0: and :param c1: and :param c2: y = c0 + c1 f(n) + c2 n. :param points: how many were fitted.
    """

    form: str
    b: float
    low: float
    high: float
    r_square: float
    c0: float
    c1: float
    c2: float
    points: int

    def at(self, sizes: ArrayLike) -> Floats:
        """The curve at sizes, shape (k,); infinite where it is too large for a number."""
        n = np.asarray(sizes, np.float64)
        with np.errstate(over="ignore"):
            return np.asarray(self.c0 + self.c1 * _column(self.form, self.b, n) + self.c2 * n)


def order_of(sizes: ArrayLike, costs: ArrayLike, alpha: float = 0.05) -> GrowthOrder | NoModel:
    """The order of growth of costs, or why none can be told.

    :param sizes: above 0, shape (n,); :param costs: likewise. :param alpha: probability with which the bounds
        of the exponent or of the base miss.
    """
    every = _points(np.asarray(sizes, np.float64), np.asarray(costs, np.float64))
    if every.x.size < MIN_POINTS:
        return NoModel(f"only {plural(every.x.size, 'size')} could be measured, {MIN_POINTS} are needed")
    if every.y.max() < MIN_RISE * float(every.y.min()):
        return NoModel("the cost does not grow with it")
    points = _tail(every)
    fits = list(_fits(points))
    if points.span < MIN_SPAN:
        fits = [fit for fit in fits if fit.form == EXPONENTIAL]
    if not fits:
        return NoModel("the sizes that could be measured are too close together to tell an order")
    best = _chosen(points, fits)
    if best.form == POWER and best.b < _LEVELS_OFF:
        return NoModel("the cost levels off")
    r_square = 1 - best.rss / forms.constant(points).rss
    if r_square < MIN_R_SQUARE:
        return NoModel(f"no order of growth explains the costs, the best one {100 * r_square:.0f} % of them")
    b, low, high = _with_bounds(points, best, alpha)
    # The column of an exponential function ends with 1, so that no number is too large.
    c1 = best.c1 * (b ** -float(points.x[-1]) if best.form == EXPONENTIAL else 1.0)
    return GrowthOrder(best.form, b, low, high, r_square, best.c0, c1, best.c2, points.x.size)


class _Fit(NamedTuple):
    """A fitted curve, with the weighted sum of its squared residuals and the number of its parameters."""

    form: str
    b: float
    c0: float
    c1: float
    c2: float
    rss: float
    parameters: int


def _points(sizes: Floats, costs: Floats) -> Centres:
    """A point of each size, the median of its costs; other than by `centres`, sizes stay apart, as a cost
    that rises to its double from one size to the next has no middle."""
    usable = (sizes > 0) & (costs > 0) & (costs < _LARGEST)
    x = np.unique(sizes[usable])
    y = np.array([np.median(costs[usable & (sizes == size)]) for size in x.tolist()])
    return Centres(x, y, y**-2.0, int(usable.sum()))


def _tail(points: Centres) -> Centres:
    """The largest sizes, if they are enough."""
    tail = points.within(float(points.x[-1]) / _TAIL, float(points.x[-1]))
    return tail if tail.x.size >= 2 * MIN_POINTS else points


def _fits(points: Centres) -> Iterator[_Fit]:
    """The curves that grow."""
    power = exponent.profile(points).best
    for form in (*FORMS, POWER):
        if form not in ("2^n", CONSTANT):
            for linear in (False, True)[: 1 + (form in _FASTER)]:
                yield from _fit(points, form, power, _column(form, power, points.x), linear)
    for linear in (False, True):
        rate = float(_RATES[np.argmin(_rates(points, linear).rss)])
        doublings = rate * float(points.x[-1] - points.x[0])
        if doublings >= _DOUBLINGS and rate * points.x[-1] < _LARGEST_POWER_OF_TWO:
            yield from _fit(points, EXPONENTIAL, 2**rate, _powers(points.x, rate), linear)


def _fit(points: Centres, form: str, b: float, f: Floats, linear: bool) -> Iterator[_Fit]:
    """y = c0 + c1 f, or with c2 n if that is `linear`; nothing if it would fall, or c2 be below 0."""
    parameters = 3 + (form in (POWER, EXPONENTIAL)) + linear
    if not linear:
        if (found := forms.line(points, f)) is not None:
            yield _Fit(form, b, found.c0, found.c1, 0.0, found.rss, parameters)
        return
    columns = np.column_stack([np.ones_like(f), f, points.x / points.x[-1]])
    root = np.sqrt(points.weight)
    (c0, c1, c2), _, rank, _ = np.linalg.lstsq(columns * root[:, None], points.y * root, rcond=None)
    if rank == 3 and c1 > 0 and c2 >= 0:
        rest = points.y - columns @ (c0, c1, c2)
        rss = max(float((points.weight * rest * rest).sum()), forms.floor(points))
        yield _Fit(form, b, float(c0), float(c1), float(c2 / points.x[-1]), rss, parameters)


def _column(form: str, b: float, n: Floats) -> Floats:
    if form == EXPONENTIAL:
        return np.asarray(b**n)
    return exponent.column(n, b) if form == POWER else FORMS[form].values(n)


def _powers(sizes: Floats, rate: float) -> Floats:
    """2^(rate (n - the largest n)): what can be computed of any rate."""
    return np.asarray(np.exp2(rate * (sizes - sizes[-1])))


def _rates(points: Centres, linear: bool) -> exponent.ResidualProfile:
    """The residuals at each of the rates."""
    level = forms.constant(points).rss
    columns = (_powers(points.x, rate) for rate in _RATES.tolist())
    fits = (next(_fit(points, EXPONENTIAL, 0.0, column, linear), None) for column in columns)
    return exponent.ResidualProfile(
        np.array([level if one is None else one.rss for one in fits]), points.x.size
    )


def _chosen(points: Centres, fits: Sequence[_Fit]) -> _Fit:
    """The curve with the lowest AICc; that of less misfit among those that are as good."""
    count = points.x.size
    least = count * TOLERANCE**2
    return min(fits, key=lambda fit: (forms.criterion(max(fit.rss, least), count, fit.parameters), fit.rss))


def _with_bounds(points: Centres, fit: _Fit, alpha: float) -> tuple[float, float, float]:
    """The exponent, or the base, with its bounds; what is linear in the curve is taken off first."""
    rest = points._replace(y=points.y - fit.c2 * points.x)
    if fit.form != EXPONENTIAL:
        profile = exponent.profile(rest)
        return profile.best, *exponent.bounds(profile, alpha)
    low, high = exponent.crossings(_RATES, _rates(rest, linear=False).rise(alpha), alpha)
    return fit.b, (2**low if math.isfinite(low) else 1.0), (2**high if math.isfinite(high) else math.inf)
