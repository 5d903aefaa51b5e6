"""The five methods of regression analysis: which models of which points."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.models.record import NoModel
from perun.models.regression.fits import MODELS, Fit, points_of
from perun.models.regression.methods import METHODS, MethodModels, RegressionOptions

Array = np.ndarray
WITHOUT_QUADRATIC = tuple(model for model in MODELS if model != "quadratic")


def chosen(method: str, x: object, y: object, **plan: object) -> MethodModels:
    return METHODS[method](np.array(x, float), np.array(y, float), RegressionOptions(**plan))  # type: ignore[arg-type]


def kinds(result: MethodModels) -> list[str]:
    return [fit.model for fit in result.fits]


def ranges(result: MethodModels) -> list[tuple[float, float]]:
    return [(fit.x_start, fit.x_end) for fit in result.fits]


def noisy(count: int, seed: int = 5) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    x = random.permutation(count) + 1.0
    return x, 3 * x + 5 + random.normal(0, 4, count)


def best_of(x: Array, y: Array, models: tuple[str, ...] = tuple(MODELS)) -> Fit:
    """Where there is no doubt that something is better than a constant."""
    fits = {fit.model: fit for fit in METHODS["full"](x, y, RegressionOptions(models)).fits}
    line, curve = (fits[name].explained if name in fits else 0.0 for name in ("linear", "quadratic"))
    if 1 - curve > 0.9 * (1 - line):
        fits.pop("quadratic", None)
    return max(fits.values(), key=lambda fit: fit.explained)


def test_full_makes_the_models_that_are_asked_for() -> None:
    x, y = noisy(20)
    assert kinds(chosen("full", x, y)) == list(MODELS)
    assert kinds(chosen("full", x, y, models=("power", "constant"))) == ["power", "constant"]


def test_full_says_which_models_there_are_not() -> None:
    result = chosen("full", [-3, -2, -1, -1], [1, 2, 3, 4], models=("linear", "power", "logarithmic"))
    assert kinds(result) == ["linear"]
    assert result.gaps == [
        "no power model: there are no two different x > 0 with y > 0",
        "no logarithmic model: there are no two different x > 0",
    ]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("x", "y", "why"), [
    ([], [], "no model: fewer than 3 points"),
    ([1, 2], [1, 2], "no model: fewer than 3 points"),
    ([5, 5, 5, 5], [1, 2, 3, 4], "no model: all x are equal"),
    ([1, 2, 3, math.nan], [1, 2, 3, 4], "no model: a value is not a finite number"),
])  # fmt: skip
def test_no_model_of_the_points(method: str, x: list[float], y: list[float], why: str) -> None:
    assert chosen(method, x, y) == MethodModels([], [why])


@pytest.mark.parametrize("method", ["iterative", "initial_guess", "bisection"])
def test_none_of_the_models(method: str) -> None:
    result = chosen(method, [-3, -2, -1, -1], [1, 2, 3, 4], models=("power", "logarithmic"))
    assert not result.fits
    (gap,) = result.gaps
    assert "power: there are no two" in gap and "logarithmic: there are no two" in gap


@pytest.mark.parametrize("method", METHODS)
def test_the_same_again(method: str) -> None:
    x, y = noisy(100)
    assert chosen(method, x, y) == chosen(method, x, y)


@pytest.mark.parametrize("method", ["iterative", "initial_guess"])
@pytest.mark.parametrize("steps", [1, 3, 7, 50, 10**9])
@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_estimates_end_in_one_model_of_all_points(method: str, steps: int, seed: int) -> None:
    x, y = noisy(50)
    (fit,) = chosen(method, x, y, steps=steps, seed=seed).fits
    assert fit in chosen("full", x, y).fits


@pytest.mark.parametrize("method", ["iterative", "initial_guess"])
def test_one_step_is_the_best_of_all_points(method: str) -> None:
    x, y = noisy(50)
    assert chosen(method, x, y, steps=1).fits == [best_of(x, y)]


def test_initial_guess_is_the_best_of_the_first_part() -> None:
    x, y = noisy(60)
    different = 0
    for seed in range(20):
        first = np.random.RandomState(np.random.MT19937(seed)).permutation(60)[:6]
        (fit,) = chosen("initial_guess", x, y, steps=10, seed=seed).fits
        assert fit.model == best_of(x[first], y[first]).model
        different += fit.model != best_of(x, y).model
    assert different  # a guess may be wrong, so that the test above means something


def test_iterative_corrects_a_wrong_guess() -> None:
    x, y = noisy(60)
    right = {"initial_guess": 0, "iterative": 0}
    for method in right:
        for seed in range(20):
            (fit,) = chosen(method, x, y, steps=10, seed=seed, models=WITHOUT_QUADRATIC).fits
            right[method] += fit.model == "linear"
    assert right["iterative"] > right["initial_guess"]


@pytest.mark.parametrize("method", ["iterative", "initial_guess"])
def test_the_first_part_grows_until_there_is_a_model(method: str) -> None:
    x, y = [7.0] * 50 + [8.0, 9.0], [1.0] * 50 + [2.0, 3.0]
    (fit,) = chosen(method, x, y, steps=10).fits
    assert (fit.x_start, fit.x_end) == (7, 9)
    assert len(chosen(method, [1, 2, 3, 4], [1, 0, 1, 1], steps=4).fits) == 1


def test_interval_takes_the_best_of_each_part() -> None:
    x = np.arange(1.0, 31)
    y = np.concatenate([np.full(10, 4.0), 2 * x[10:20] - 3, 5 * np.log(x[20:])])
    order = np.random.default_rng(3).permutation(30)
    result = chosen("interval", x[order], y[order])
    assert kinds(result) == ["constant", "linear", "logarithmic"]
    assert ranges(result) == [(1, 10), (11, 20), (21, 30)]
    assert result.fits[1] == best_of(x[10:20], y[10:20], ("linear",))
    assert not result.gaps


@pytest.mark.parametrize(("count", "steps", "sizes"), [(10, 3, [4, 3, 3]), (7, 2, [4, 3]), (3, 1, [3])])
def test_parts_are_equal_or_nearly(count: int, steps: int, sizes: list[int]) -> None:
    result = chosen("interval", range(1, count + 1), np.arange(count) * 2, steps=steps)
    assert [end - start + 1 for start, end in ranges(result)] == sizes


def test_interval_says_which_parts_have_no_model() -> None:
    result = chosen("interval", [1, 2, 3, 3, 3, 3, 4, 5], [1, 2, 3, 4, 5, 6, 7, 8])
    assert ranges(result) == [(1, 3)]
    assert result.gaps == [
        "no model of the part x = 3 to 3: all x are equal",
        "no model of the part x = 4 to 5: fewer than 3 points",
    ]
    everywhere = chosen("interval", range(8), range(8), steps=100)
    reason = "no model of 8 of 8 parts, the first x = 0 to 0: fewer than 3 points"
    assert everywhere == MethodModels([], [reason])


def test_bisection_keeps_what_is_of_one_kind() -> None:
    x = np.arange(1.0, 65)
    for kind, y in (("linear", 3 * x + 1), ("logarithmic", 2 + np.log(x)), ("constant", 0 * x + 7)):
        result = chosen("bisection", x[::-1], y[::-1])
        assert (kinds(result), ranges(result)) == ([kind], [(1, 64)])


def test_bisection_goes_where_the_kind_changes() -> None:
    x = np.arange(1.0, 65)
    y = np.where(x <= 32, 3 * x, np.where(x <= 48, 100.0, 4 * np.log(x)))
    result = chosen("bisection", x, y, models=("constant", "linear", "logarithmic"))
    assert ranges(result) == [(1, 32), (33, 48), (49, 64)]
    assert kinds(result) == ["linear", "constant", "logarithmic"]


def test_bisection_ends_where_a_half_has_too_few_points() -> None:
    assert ranges(chosen("bisection", [1, 2, 3, 4, 5], [5, 1, 4, 2, 9])) == [(1, 5)]
    assert ranges(chosen("bisection", [1, 2, 3, 3, 3, 3], [5, 1, 4, 2, 9, 1])) == [(1, 3)]


@pytest.mark.parametrize("method", ["interval", "bisection"])
@given(points=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=3, max_size=60))
def test_parts_follow_each_other(method: str, points: list[tuple[int, int]]) -> None:
    x, y = zip(*points, strict=True)
    result = chosen(method, x, y)
    assert result.fits or result.gaps
    for (_, end), (start, _) in zip(ranges(result), ranges(result)[1:], strict=False):
        assert end <= start
    if method == "bisection" and result.fits:
        assert (result.fits[0].x_start, result.fits[-1].x_end) == (min(x), max(x))


@given(
    method=st.sampled_from(sorted(METHODS)),
    points=st.lists(st.tuples(st.floats(), st.floats()), max_size=20),
    models=st.lists(st.sampled_from(sorted(MODELS)), min_size=1, unique=True),
    steps=st.integers(1, 30),
)
def test_whatever_numbers(method: str, points, models: list[str], steps: int) -> None:
    x, y = [x for x, _ in points], [y for _, y in points]
    result = chosen(method, x, y, models=tuple(models), steps=steps)
    assert result.fits or result.gaps
    assert {fit.model for fit in result.fits} <= set(models)
    if isinstance(points_of(x, y), NoModel):
        assert not result.fits


@pytest.mark.parametrize("method", ["iterative", "initial_guess", "interval", "bisection"])
@pytest.mark.parametrize(
    ("kind", "factor", "power"), [("linear", 2.5, 1), ("quadratic", 0.3, 2), ("constant", 0.1, 0)]
)
def test_of_equally_good_models_the_simpler_one(method: str, kind: str, factor: float, power: int) -> None:
    # A line is a quadratic and a power model as well, and rounding must not decide between them.
    x = np.arange(1.0, 41)
    assert set(kinds(chosen(method, x, factor * x**power))) == {kind}
