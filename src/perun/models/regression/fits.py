"""Six models of y over x, each with two or three coefficients (manual 5.1.2).

All are least squares on transformed data. A line over (u, v) has the slope b1 = Suv / Suu, the intercept
b0 = mean(v) - b1 mean(u) and the coefficient of determination R^2 = Suv^2 / (Suu Svv), where S are sums of
products of deviations from the means (Draper and Smith: Applied Regression Analysis, 3rd ed. 1998,
chapter 1). They are computed by :mod:`perun.models.regression.fits`: any finite numbers can be modelled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perun.models.record import NoModel

# Deviations from means, and lines over two variables, that stay exact for any finite numbers.
#
# The deviations are taken in two passes with a correction (Chan, Golub and LeVeque: Algorithms for Computing
# the Sample Variance, The American Statistician 37, 1983), after a division by a power of two where squares
# could overflow.

Floats = NDArray[np.float64]

_BLOCK: Final = 1 << 16
_SMALL: Final = 2.0**-250
_LARGE: Final = 2.0**250


class ScaledColumn(NamedTuple):
    """A variable divided by two to the power of `exponent`; `square` is the sum of squared deviations."""

    deviations: Floats
    mean: float
    exponent: int
    square: float


class RegressionLine(NamedTuple):
    """A line over two columns, in the units of the columns."""

    intercept: float
    slope: float
    r_square: float


def column(values: Floats) -> ScaledColumn:
    """The column of finite values, shape (n,), n > 0."""
    low, high = float(values.min()), float(values.max())
    largest = max(-low, high)
    exponent = 0 if _SMALL < largest < _LARGE or not largest else math.frexp(largest)[1]
    if exponent:
        values = np.ldexp(values, -exponent)
    if low == high:
        return ScaledColumn(np.zeros_like(values), float(values[0]), exponent, 0.0)
    mean = float(values.mean())
    deviations = values - mean
    correction = float(deviations.mean())
    deviations -= correction
    return ScaledColumn(deviations, mean + correction, exponent, dot(deviations, deviations))


def line_over(x: ScaledColumn, y: ScaledColumn) -> RegressionLine:
    """The line by least squares; :param x: not all equal."""
    if not y.square:
        return RegressionLine(y.mean, 0.0, 0.0)
    product = dot(x.deviations, y.deviations)
    slope = product / x.square
    correlation = product / math.sqrt(x.square) / math.sqrt(y.square)
    # Two points fit any line, which says nothing about the model.
    r_square = correlation * correlation if len(x.deviations) > 2 else 0.0
    return RegressionLine(y.mean - slope * x.mean, slope, r_square)


def dot(one: Floats, other: Floats) -> float:
    """The sum of products, in blocks that stay in the cache; pairwise sums do not depend on the machine."""
    count = len(one)
    if count <= _BLOCK:
        return float((one * other).sum())
    starts = range(0, count, _BLOCK)
    return math.fsum(
        float((one[start : start + _BLOCK] * other[start : start + _BLOCK]).sum()) for start in starts
    )


# One scale for all models of the same points: the share of the variance that each explains.
#
# What is modelled scatters about its curve either by the same amount everywhere, or in proportion to the
# height of the curve, as times do. In the first case the scale is the variance of y, in the second that of ln
# y. Which one it is, is said by the likelihood of the points (G. E. P. Box and D. R. Cox, An Analysis of
# Transformations, J. R. Stat. Soc. B 26, 1964): that of normal residuals of y about the best curve fitted to
# y, against that of normal residuals of ln y about the best one fitted to ln y.

_ROUNDING: Final = 1e-18
"""Mean square, relative to the height of the curve, that is rounding: 1e-9 of the values."""


def is_relative(y: ScaledColumn, r_square: float, ln_y: ScaledColumn, of_logarithms: float) -> bool:
    """Whether the points scatter in proportion to the height of their curve.

    :param y: the values; :param r_square: of the best curve fitted to them.
    :param ln_y: their logarithms; :param of_logarithms: R^2 of the best curve fitted to these.
    """
    count = len(y.deviations)
    # ln of the geometric mean, in the units of the column: what the change of variables contributes.
    height = ln_y.mean - y.exponent * math.log(2)
    constant = _ln(y.square * (1 - r_square) / count) - 2 * height
    relative = _ln(ln_y.square * (1 - of_logarithms) / count)
    least = math.log(_ROUNDING)
    return max(relative, least) < max(constant, least)


def explained(of: ScaledColumn, values: Floats) -> float:
    """The share of the variance that a curve explains; negative where the mean is nearer.

    :param of: what the curve is to be. :param values: of the curve, shape (n,), in the units of the column;
        it explains nothing of a point where that is not finite.
    """
    if not of.square:
        return 0.0
    with np.errstate(all="ignore"):
        rest = np.where(np.isfinite(values), of.deviations + of.mean - values, of.deviations)
        return 1 - dot(rest, rest) / of.square


def _ln(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


MIN_POINTS: Final = 3
_CURVED: Final = 1e-26
"""Mean square of the curved part of x, in units of its range, that is more than rounding."""


class Fit(NamedTuple):
    """One model.

    :param model: its name in :data:`MODELS`.
    :param coefficients: b0, b1 and, of a quadratic model, b2.
    :param r_square: coefficient of determination, in [0, 1].
    :param x_start: smallest x of all points, also of those left out; :param x_end: the largest.
    :param left_out: points where the model is not defined.
    :param explained: share of the variance that the model explains, in [0, 1], on the one scale for all
        models of these points that :mod:`perun.models.regression.fits` chooses; that of a constant is 0.
    :param points: number of all points, also of those left out.
    """

    model: str
    coefficients: tuple[float, ...]
    r_square: float
    x_start: float
    x_end: float
    left_out: int = 0
    explained: float = 0.0
    points: int = 0


def points_of(x: ArrayLike, y: ArrayLike) -> FitPoints | NoModel:
    """The points to be modelled, or why there is no model of them.

    :param x: values of the independent variable, shape (n,); :param y: of the dependent one, shape (n,).
    """
    points = FitPoints(np.asarray(x, np.float64), np.asarray(y, np.float64))
    if points.count < MIN_POINTS:
        return NoModel(f"fewer than {MIN_POINTS} points")
    if not points.finite:
        return NoModel("a value is not a finite number")
    if points.x_start == points.x_end:
        return NoModel("all x are equal")
    return points


class FitPoints:
    """Points that :func:`points_of` found fit for models, or some of them.

    What several models need is computed once, when the first one asks.
    """

    def __init__(self, x: Floats, y: Floats) -> None:
        self._x = x
        self._y = y
        self._domains: dict[tuple[bool, bool], FitPoints] = {}
        self.count = len(x)

    @property
    def finite(self) -> bool:
        """Whether all values are finite numbers."""
        return bool(np.isfinite(self._x).all() and np.isfinite(self._y).all())

    @cached_property
    def x_start(self) -> float:
        """The smallest x."""
        return float(self._x.min())

    @cached_property
    def x_end(self) -> float:
        """The largest x."""
        return float(self._x.max())

    @cached_property
    def x(self) -> ScaledColumn:
        """The independent variable."""
        return column(self._x)

    @cached_property
    def y(self) -> ScaledColumn:
        """The dependent variable."""
        return column(self._y)

    @cached_property
    def ln_x(self) -> ScaledColumn:
        """Natural logarithms of the independent variable."""
        return column(np.log(self._x))

    @cached_property
    def ln_y(self) -> ScaledColumn:
        """Natural logarithms of the dependent variable."""
        return column(np.log(self._y))

    @cached_property
    def line(self) -> RegressionLine:
        """The line over (x, y)."""
        return line_over(self.x, self.y)

    @cached_property
    def parabola(self) -> _Parabola | None:
        """The parabola over (x, y); None without three different x within the precision of numbers."""
        return _parabola(self.x, self.y)

    @cached_property
    def is_relative(self) -> bool:
        """Whether the points scatter about a curve in proportion to its height."""
        if self._y_start <= 0:
            return False
        best = max(self.line.r_square, self.parabola.r_square if self.parabola else 0.0)
        of_logarithms = line_over(self.x, self.ln_y).r_square
        if self.x_start > 0 and self.ln_x.square:  # numbers that differ may have one logarithm
            best = max(best, line_over(self.ln_x, self.y).r_square)
            of_logarithms = max(of_logarithms, line_over(self.ln_x, self.ln_y).r_square)
        return is_relative(self.y, best, self.ln_y, of_logarithms)

    def explained(
        self, curve: Callable[[Floats], Floats], r_square: float | None, *, logarithms: bool = False
    ) -> float:
        """The share of the variance that a curve explains, see :mod:`perun.models.regression.fits`.

        :param curve: gives y, or ln y if `logarithms`, of x; nothing finite where it is not defined.
        :param r_square: that of the fit, if it is one to all points: the answer, where that is on this scale.
        """
        if r_square is not None and logarithms == self.is_relative:
            return r_square
        with np.errstate(all="ignore"):
            values = curve(self._x)
            if self.is_relative:
                return explained(self.ln_y, values if logarithms else np.log(values))
            values = np.exp(values) if logarithms else values
            return explained(self.y, np.ldexp(values, -self.y.exponent))

    def where(self, *, positive_x: bool = False, positive_y: bool = False) -> FitPoints:
        """Those of the points that are positive as asked for; the points themselves if all are."""
        needed = positive_x and self.x_start <= 0, positive_y and self._y_start <= 0
        if needed == (False, False):
            return self
        if needed not in self._domains:
            inside = np.ones(self.count, bool)
            for values, wanted in zip((self._x, self._y), needed, strict=True):
                if wanted:
                    inside &= values > 0
            self._domains[needed] = FitPoints(self._x[inside], self._y[inside])
        return self._domains[needed]

    @cached_property
    def _y_start(self) -> float:
        return float(self._y.min())


def constant(points: FitPoints) -> Fit | NoModel:
    """y = b0, the mean of y.

    A constant has no R^2 of its own. It is rated by the linear model: with its R^2 and b1, and
    s = atan(|b1 x_end| / (x_end - x_start)) / (pi/2), the part of a right angle that the line is steep,
    a line that is as good as level (s <= 0.01) gives 1 - R^2, a steeper one R^2 (1 - s).
    """
    x, y = points.x, points.y
    line = points.line
    slope = _times_two_to(line.slope, y.exponent - x.exponent)
    width = math.ldexp(points.x_end, -x.exponent) - math.ldexp(points.x_start, -x.exponent)
    end = abs(math.ldexp(points.x_end, -x.exponent))
    steepness = math.atan(abs(slope) * end / width) / (math.pi / 2) if end else 0.0
    r_square = line.r_square * (1 - steepness) if steepness > 0.01 else 1 - line.r_square
    return _fit("constant", points, points, (_times_two_to(y.mean, y.exponent), 0.0), r_square, 0.0)


def linear(points: FitPoints) -> Fit | NoModel:
    """y = b0 + b1 x, a line over (x, y)."""
    x, y = points.x, points.y
    line = points.line
    b0, b1 = _times_two_to(line.intercept, y.exponent), _slope(line.slope, y.exponent - x.exponent)

    def curve(_: Floats) -> Floats:
        return np.ldexp(y.mean + line.slope * x.deviations, y.exponent)

    explained = points.explained(curve, line.r_square)
    return _fit("linear", points, points, (b0, b1), line.r_square, explained)


def logarithmic(points: FitPoints) -> Fit | NoModel:
    """y = b0 + b1 ln x, a line over (ln x, y)."""
    inside = points.where(positive_x=True)
    if inside.count < 2 or inside.ln_x.square == 0:
        return NoModel("there are no two different x > 0")
    y = inside.y
    line = line_over(inside.ln_x, y)
    b0, b1 = _times_two_to(line.intercept, y.exponent), _slope(line.slope, y.exponent)
    whole = line.r_square if inside is points else None
    explained = points.explained(lambda x: b0 + b1 * np.log(x), whole)
    return _fit("logarithmic", points, inside, (b0, b1), line.r_square, explained)


def power(points: FitPoints) -> Fit | NoModel:
    """y = b0 x^b1, a line over (log x, log y); the intercept of the line is log b0."""
    inside = points.where(positive_x=True, positive_y=True)
    if inside.count < 2 or inside.ln_x.square == 0:
        return NoModel("there are no two different x > 0 with y > 0")
    line = line_over(inside.ln_x, inside.ln_y)
    explained = points.explained(
        lambda x: line.intercept + line.slope * np.log(x),
        line.r_square if inside is points else None,
        logarithms=True,
    )
    return _fit("power", points, inside, (_exp(line.intercept), line.slope), line.r_square, explained)


def exponential(points: FitPoints) -> Fit | NoModel:
    """y = b0 b1^x, a line over (x, log y); its intercept is log b0, its slope log b1."""
    inside = points.where(positive_y=True)
    if inside.count < 2 or inside.x.square == 0:
        return NoModel("there are no two different x with y > 0")
    x = inside.x
    line = line_over(x, inside.ln_y)
    rate = _times_two_to(line.slope, -x.exponent)
    whole = line.r_square if inside is points else None
    explained = points.explained(lambda x: line.intercept + rate * x, whole, logarithms=True)
    return _fit("exponential", points, inside, (_exp(line.intercept), _exp(rate)), line.r_square, explained)


def quadratic(points: FitPoints) -> Fit | NoModel:
    """y = b0 + b1 x + b2 x^2, least squares on 1, x and x^2; R^2 = 1 - SSE / TSS.

    Fitted on polynomials that are orthogonal over the points, 1, u and q = u^2 - m - k u, where u is x
    centred and divided by its largest deviation (Forsythe: Generation and Use of Orthogonal Polynomials
    for Data-Fitting with a Digital Computer, J. SIAM 5, 1957); then SSE = TSS - (Suy^2 / Suu + Sqy^2 / Sqq).
    """
    x, y, found = points.x, points.y, points.parabola
    if found is None:
        return NoModel("there are no three different x within the precision of numbers")

    def curve(_: Floats) -> Floats:
        u = x.deviations / found.width
        return np.ldexp(y.mean + found.c1 * u + found.c2 * (u * u - found.m - found.k * u), y.exponent)

    explained = points.explained(curve, found.r_square)
    # y = mean + c1 u + c2 (u^2 - m - k u) with u = (x - middle) / width
    width, c2, m = found.width, found.c2, found.m
    middle, c1 = x.mean / width, found.c1 - c2 * found.k
    b0 = _times_two_to(y.mean - c2 * m - c1 * middle + c2 * middle * middle, y.exponent)
    b1 = _slope((c1 - 2 * c2 * middle) / width, y.exponent - x.exponent)
    b2 = _slope(c2 / width / width, y.exponent - 2 * x.exponent)
    return _fit("quadratic", points, points, (b0, b1, b2), found.r_square, explained)


MODELS: Final[Mapping[str, Callable[[FitPoints], Fit | NoModel]]] = {
    "constant": constant,
    "linear": linear,
    "logarithmic": logarithmic,
    "quadratic": quadratic,
    "power": power,
    "exponential": exponential,
}
"""The models by name; of models that fit equally well the earlier one is to be preferred."""


class _Parabola(NamedTuple):
    """mean + c1 u + c2 (u^2 - m - k u), where u is the deviation from the mean of x divided by the width."""

    c1: float
    c2: float
    m: float
    k: float
    width: float
    r_square: float


def _parabola(x: ScaledColumn, y: ScaledColumn) -> _Parabola | None:
    width = float(max(x.deviations.max(), -x.deviations.min()))
    u = x.deviations / width
    curved = u * u
    m = float(curved.mean())
    curved -= m
    square = x.square / width / width
    k = dot(u, curved) / square
    curved -= k * u
    curved_square = dot(curved, curved)
    if curved_square <= _CURVED * len(u):
        return None
    along, across = dot(u, y.deviations), dot(curved, y.deviations)
    c1, c2 = along / square, across / curved_square
    r_square = (along * c1 + across * c2) / y.square if y.square else 0.0
    return _Parabola(c1, c2, m, k, width, r_square)


def _fit(
    model: str,
    points: FitPoints,
    inside: FitPoints,
    coefficients: tuple[float, ...],
    r_square: float,
    explained: float,
) -> Fit | NoModel:
    for number, value in enumerate(coefficients):
        if not math.isfinite(value):
            what = "small" if math.isnan(value) else "large"
            return NoModel(f"its coefficient b{number} is too {what} for a number")
    shares = [min(max(share, 0.0), 1.0) for share in (r_square, explained)]
    left_out = points.count - inside.count
    return Fit(
        model, coefficients, shares[0], points.x_start, points.x_end, left_out, shares[1], points.count
    )


def _times_two_to(value: float, exponent: int) -> float:
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.copysign(math.inf, value)


def _slope(value: float, exponent: int) -> float:
    """As :func:`_times_two_to`; NaN if nothing is left of the slope, which a large x could still see."""
    scaled = _times_two_to(value, exponent)
    return math.nan if value and not scaled else scaled


def _exp(value: float) -> float:
    """e to the power of `value`; infinite if that is too large for a number, NaN if it is too small."""
    try:
        return math.exp(value) or math.nan
    except OverflowError:
        return math.inf
