"""The six models against scipy, numpy, statsmodels and exact fractions, and on whatever numbers."""

import math
import warnings
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.models.record import NoModel
from perun.models.regression.fits import MODELS, Fit, points_of

CLOSE = 1e-8
Array = np.ndarray

EXTREME = [0.0, -0.0, 1.0, 1e308, -1e308, 1.7976931348623157e308, 5e-324, -5e-324, 1e-300, 1 + 2**-52]
FINITE = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(EXTREME)
ANY = FINITE | st.sampled_from([math.nan, math.inf, -math.inf])

# Each model as a line over transformed data: of x, of y, and what is stored of intercept and slope.
TRANSFORMED: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array], list[bool]]] = {
    "linear": (lambda x: x, lambda y: y, [False, False]),
    "logarithmic": (np.log, lambda y: y, [False, False]),
    "power": (np.log10, np.log10, [True, False]),
    "exponential": (lambda x: x, np.log10, [True, True]),
}
CURVES: dict[str, Callable[..., Array]] = {
    "constant": lambda x, b0, b1: b0 + 0 * x,
    "linear": lambda x, b0, b1: b0 + b1 * x,
    "logarithmic": lambda x, b0, b1: b0 + b1 * np.log(x),
    "quadratic": lambda x, b0, b1, b2: b0 + b1 * x + b2 * x**2,
    "power": lambda x, b0, b1: b0 * x**b1,
    "exponential": lambda x, b0, b1: b0 * b1**x,
}


def made(model: str, x: object, y: object) -> Fit | NoModel:
    points = points_of(np.array(x, float), np.array(y, float))
    return points if isinstance(points, NoModel) else MODELS[model](points)


def fit(model: str, x: object, y: object) -> Fit:
    result = made(model, x, y)
    assert isinstance(result, Fit), result
    return result


def reason(model: str, x: object, y: object) -> str:
    result = made(model, x, y)
    assert isinstance(result, NoModel), result
    return result.reason


def measured(seed: int) -> tuple[Array, Array]:
    """Positive points of a random number, range and trend."""
    random = np.random.default_rng(seed)
    count = int(random.integers(3, 400))
    x = random.uniform(0.5, 10 ** random.uniform(0, 2), count)
    y = random.uniform(0.1, 5) * x ** random.uniform(-1, 2) * random.lognormal(0, 0.5, count)
    return x, y


@pytest.mark.parametrize("model", TRANSFORMED)
def test_line_over_transformed_data_is_that_of_scipy(model: str) -> None:
    stats = pytest.importorskip("scipy.stats", reason="the oracle scipy is not installed")
    of_x, of_y, powers = TRANSFORMED[model]
    for seed in range(40):
        x, y = measured(seed)
        line = stats.linregress(of_x(x), of_y(y))
        pairs = zip((line.intercept, line.slope), powers, strict=True)
        result = fit(model, x, y)
        expected = [10**value if power else value for value, power in pairs]
        assert result.coefficients == pytest.approx(expected, rel=CLOSE), seed
        assert result.r_square == pytest.approx(line.rvalue**2, rel=CLOSE, abs=1e-12), seed


@pytest.mark.parametrize("model", [*TRANSFORMED, "quadratic"])
def test_least_squares_are_those_of_statsmodels(model: str) -> None:
    statsmodels = pytest.importorskip("statsmodels.api", reason="the oracle statsmodels is not installed")
    for seed in range(100, 120):
        x, y = measured(seed)
        if model == "quadratic":
            design, target, powers = np.column_stack([np.ones_like(x), x, x**2]), y, [False] * 3
        else:
            of_x, of_y, powers = TRANSFORMED[model]
            design, target = statsmodels.add_constant(of_x(x)), of_y(y)
        expected = statsmodels.OLS(target, design).fit()
        pairs = zip(expected.params, powers, strict=True)
        result = fit(model, x, y)
        stored = [10**value if power else value for value, power in pairs]
        assert result.coefficients == pytest.approx(stored, rel=CLOSE), seed
        assert result.r_square == pytest.approx(expected.rsquared, rel=CLOSE, abs=1e-12), seed


def test_quadratic_is_the_polynomial_of_numpy() -> None:
    for seed in range(200, 240):
        x, y = measured(seed)
        expected = np.polynomial.Polynomial.fit(x, y, 2).convert().coef
        result = fit("quadratic", x, y)
        assert result.coefficients == pytest.approx(expected, rel=CLOSE), seed
        assert np.polyfit(x, y, 2)[::-1] == pytest.approx(expected, rel=CLOSE), seed
        error = y - CURVES["quadratic"](x, *result.coefficients)
        centred = y - y.mean()
        assert result.r_square == pytest.approx(1 - error @ error / (centred @ centred), rel=CLOSE), seed


@pytest.mark.parametrize("count", [100, 65_536, 200_001])
def test_many_points_are_summed_in_blocks(count: int) -> None:
    stats = pytest.importorskip("scipy.stats", reason="the oracle scipy is not installed")
    random = np.random.default_rng(count)
    x = random.uniform(1, 1000, count)
    y = 3 + 0.1 * x + random.normal(0, 20, count)
    line = stats.linregress(x, y)
    result = fit("linear", x, y)
    assert result.coefficients == pytest.approx((line.intercept, line.slope), rel=CLOSE)
    assert result.r_square == pytest.approx(line.rvalue**2, rel=CLOSE)


@pytest.mark.parametrize("offset", [0, 10**6, 10**9])
def test_a_far_off_line_against_fractions(offset: int) -> None:
    random = np.random.default_rng(offset)
    x, y = [(offset + values).tolist() for values in random.integers(0, 1000, (2, 50))]
    x_mean, y_mean = Fraction(sum(x), 50), Fraction(sum(y), 50)
    xx = sum((one - x_mean) ** 2 for one in x)
    xy = sum((one - x_mean) * (other - y_mean) for one, other in zip(x, y, strict=True))
    yy = sum((one - y_mean) ** 2 for one in y)
    result = fit("linear", x, y)
    assert result.coefficients[1] == pytest.approx(float(xy / xx), rel=1e-12)
    assert result.coefficients[0] == pytest.approx(float(y_mean - xy / xx * x_mean), rel=1e-12)
    assert result.r_square == pytest.approx(float(xy**2 / xx / yy), rel=1e-12)


def solved(rows: list[list[Fraction]]) -> list[Fraction]:
    """The solution of linear equations by elimination, without rounding."""
    for number in range(len(rows)):
        rows[number] = [value / rows[number][number] for value in rows[number]]
        for other, row in enumerate(rows):
            if other != number:
                factor = row[number]
                rows[other] = [a - factor * b for a, b in zip(row, rows[number], strict=True)]
    return [row[-1] for row in rows]


@pytest.mark.parametrize("offset", [0, 10**3, 10**6])
def test_a_far_off_curve_against_fractions(offset: int) -> None:
    random = np.random.default_rng(offset)
    x = (offset + random.integers(0, 100, 50)).tolist()
    y = random.integers(0, 1000, 50).tolist()
    powers = [Fraction(sum(one**power for one in x)) for power in range(5)]
    products = [
        Fraction(sum(other * one**power for one, other in zip(x, y, strict=True))) for power in range(3)
    ]
    exact = solved([[*powers[row : row + 3], products[row]] for row in range(3)])
    assert fit("quadratic", x, y).coefficients == pytest.approx([float(value) for value in exact], rel=1e-10)


@pytest.mark.parametrize(("model", "coefficients"), [
    ("constant", (4.5, 0.0)),
    ("linear", (-3.0, 0.25)),
    ("logarithmic", (2.0, -7.0)),
    ("quadratic", (1.0, -2.0, 0.5)),
    ("power", (0.3, 1.7)),
    ("exponential", (12.0, 0.97)),
])  # fmt: skip
def test_a_model_is_found_again(model: str, coefficients: tuple[float, ...]) -> None:
    x = np.linspace(1, 60, 30)
    result = fit(model, x, CURVES[model](x, *coefficients))
    assert result.coefficients == pytest.approx(coefficients, rel=1e-10)
    assert result.r_square == pytest.approx(1)
    assert (result.model, result.x_start, result.x_end, result.left_out) == (model, 1, 60, 0)


def test_constant_is_rated_by_the_steepness_of_the_line() -> None:
    x = np.array([1.0, 2, 3, 4])
    steep = np.array([1.0, 3, 2, 4])
    line = fit("linear", x, steep)
    steepness = math.atan(line.coefficients[1] * 4 / 3) / (math.pi / 2)
    assert fit("constant", x, steep).r_square == pytest.approx(line.r_square * (1 - steepness))
    level = np.array([2.0, 2.001, 2, 2.001])
    assert fit("constant", x, level).r_square == pytest.approx(1 - fit("linear", x, level).r_square)
    # Older releases divided the angle in radians by 90, so that even this had a constant model of R^2 0.99.
    x = np.arange(1.0, 101)
    assert fit("constant", x, 1000 * x).r_square < 0.001
    x = np.arange(1.0, 101)
    up = fit("constant", x, 5 + x)
    assert fit("constant", x, 200 - x).r_square == pytest.approx(up.r_square)


@pytest.mark.parametrize(
    ("model", "left_out"), [("logarithmic", 2), ("power", 3), ("exponential", 2), ("quadratic", 0)]
)
def test_points_outside_the_domain_are_left_out_and_counted(model: str, left_out: int) -> None:
    x = np.array([-1.0, 0, 1, 2, 3, 4, 5])
    y = np.array([2.0, 0, 1, 7, -2, 3, 4])
    result = fit(model, x, y)
    assert result.left_out == left_out and (result.x_start, result.x_end) == (-1, 5)
    inside = (x > 0) | (model not in ("logarithmic", "power"))
    inside &= (y > 0) | (model not in ("power", "exponential"))
    assert fit(model, x[inside], y[inside])[1:3] == result[1:3]


def test_two_points_inside_the_domain_prove_nothing() -> None:
    result = fit("power", [0, 1, 4], [3, 2, 4])
    assert result.coefficients == pytest.approx((2, 0.5)) and (result.r_square, result.left_out) == (0, 1)


@pytest.mark.parametrize("model", MODELS)
def test_equal_y(model: str) -> None:
    result = fit(model, [1, 2, 3, 7], [0.1] * 4)
    expected = {"exponential": (0.1, 1, 0), "quadratic": (0.1, 0, 0)}.get(model, (0.1, 0))
    assert result.coefficients == pytest.approx(expected[: len(result.coefficients)])
    assert result.r_square == (model == "constant")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("x", "y", "why"), [
    ([], [], "fewer than 3 points"),
    ([1, 2], [1, 2], "fewer than 3 points"),
    ([0.1] * 4, [1, 2, 3, 4], "all x are equal"),
    ([1, 2, math.nan], [1, 2, 3], "a value is not a finite number"),
    ([1, 2, 3], [1, math.inf, 3], "a value is not a finite number"),
])  # fmt: skip
def test_no_model_of_the_points(model: str, x: list[float], y: list[float], why: str) -> None:
    assert reason(model, x, y) == why


@pytest.mark.parametrize(("model", "x", "y", "why"), [
    ("logarithmic", [-1, 0, 3, 3], [1, 2, 3, 4], "no two different x > 0"),
    ("power", [0, 1, 2, 3], [1, 1, 0, -1], "no two different x > 0 with y > 0"),
    ("exponential", [0, 1, 2, 3], [0, 0, 0, 0], "no two different x with y > 0"),
    ("quadratic", [1, 2, 2, 1], [1, 2, 3, 4], "no three different x"),
    ("linear", [0, 5e-324, 1e-323], [0, 1e308, 1e308], "b1 is too large"),
    ("linear", [0, 1e308, 1.5e308], [0, 1e-308, 1e-308], "b1 is too small"),
    ("exponential", [0, 1e-3, 2e-3], [1e-300, 1, 1e300], "b1 is too large"),
    ("power", [1e3, 1e3 + 1, 1e3 + 2], [1, 10, 100], "b0 is too small"),
])  # fmt: skip
def test_no_such_model(model: str, x: list[float], y: list[float], why: str) -> None:
    assert why in reason(model, x, y)


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-600, 2.0**600, 2.0**1000])
@pytest.mark.parametrize("model", ["constant", "linear", "logarithmic", "quadratic"])
def test_size_of_y_does_not_matter(model: str, scale: float) -> None:
    x, y = measured(7)
    plain, scaled = fit(model, x, y), fit(model, x, y * scale)
    assert scaled.coefficients == tuple(value * scale for value in plain.coefficients)
    if model != "constant":  # the steepness of a line is that of its picture
        assert scaled.r_square == plain.r_square


@pytest.mark.parametrize("scale", [2.0**-400, 2.0**400])
def test_size_of_x_does_not_matter(scale: float) -> None:
    x, y = measured(8)
    plain, scaled = fit("quadratic", x, y), fit("quadratic", x * scale, y)
    b0, b1, b2 = plain.coefficients
    assert scaled.coefficients == (b0, b1 / scale, b2 / scale / scale) and scaled.r_square == plain.r_square


def test_numbers_close_together() -> None:
    x = [1 + number * 2.0**-52 for number in range(4)]
    result = fit("linear", x, [1, 2, 3, 4])
    assert result.coefficients[1] == 2.0**52 and result.r_square == 1
    x = [1e16 + 2 * number for number in range(3)]
    assert len({math.log(one) for one in x}) == 1 < len(set(x))
    assert isinstance(made("linear", x, [1, 9, 2]), Fit)
    assert isinstance(made("power", x, [1, 9, 2]), NoModel)


def tried(x: list[float], y: list[float]) -> list[Fit | NoModel]:
    with warnings.catch_warnings(), np.errstate(over="raise", divide="raise", invalid="raise"):
        warnings.simplefilter("error")
        return [made(model, x, y) for model in MODELS]


@given(st.lists(st.tuples(ANY, ANY), max_size=12))
def test_whatever_numbers(points: list[tuple[float, float]]) -> None:
    for result in tried([x for x, _ in points], [y for _, y in points]):
        if isinstance(result, NoModel):
            assert result.reason
        else:
            assert all(type(value) is float and math.isfinite(value) for value in result.coefficients)
            assert type(result.r_square) is float and 0 <= result.r_square <= 1
            assert result.x_start < result.x_end and 0 <= result.left_out <= len(points) - 2


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=3, max_size=30))
def test_more_terms_fit_better(points: list[tuple[int, int]]) -> None:
    x, y = [list(values) for values in zip(*points, strict=True)]
    line, curve = made("linear", x, y), made("quadratic", x, y)
    if isinstance(line, Fit) and isinstance(curve, Fit):
        assert curve.r_square >= line.r_square - 1e-12


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), min_size=3, max_size=30),
    st.randoms(use_true_random=False),
)
def test_order_of_the_points_does_not_matter(points: list[tuple[int, int]], random: object) -> None:
    shuffled = points.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for model in MODELS:
        one, other = [made(model, *zip(*order, strict=True)) for order in (points, shuffled)]
        assert type(one) is type(other)
        if isinstance(one, Fit) and isinstance(other, Fit):
            assert other.coefficients == pytest.approx(one.coefficients, rel=1e-6, abs=1e-9)
            assert other.r_square == pytest.approx(one.r_square, abs=1e-9)
