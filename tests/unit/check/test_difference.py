"""Differences of models: parts of x, measures, verdicts, and the types of a change."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.check._common.differences import (
    DEGREES,
    OTHER,
    DifferenceLimits,
    Samples,
    compare,
    measure,
    sample,
    scatter_of,
)
from perun.check._common.model_pairs import extent, parts, without_fringes
from perun.check.fast_check import FastCheck
from perun.check.linear_regression import LinearRegression
from perun.check.polynomial_regression import PolynomialRegression
from perun.models.record import ModelRecord
from perun.profile.changes import PerformanceChange
from perun.profile.records import record_of
from perun.profile.strategies import best

X = np.linspace(1, 100, 1000)
polynomial, straight, regression = (
    check.kind_of for check in (PolynomialRegression, LinearRegression, FastCheck)
)
LIMITS = DifferenceLimits()


def model(
    kind: str,
    *coefficients: float,
    start: Any = 1,
    end: Any = 100,
    r_square: float = 1.0,
    method: str = "full",
) -> ModelRecord:
    values = [{"name": f"b{number}", "value": value} for number, value in enumerate(coefficients)]
    made = {"uid": "f", "model": kind, "method": method, "r_square": r_square, "coeffs": values}
    return record_of(made | {"x_start": start, "x_end": end})


def verdict(baseline: list[ModelRecord], target: list[ModelRecord]) -> tuple[PerformanceChange, float]:
    common = parts(baseline, target)
    samples = sample(common)
    assert samples is not None
    found = compare(common, samples, LIMITS)
    return found.change, found.rate


def test_best_is_the_one_of_the_highest_r_square() -> None:
    models = [
        model("linear", 1, r_square=0.8),
        model("power", 1, r_square=0.9),
        model("constant", r_square=0),
    ]
    assert best(models) is models[1]
    assert best([models[2]]) is None
    assert best([]) is None


def test_of_equally_good_models_the_simpler_one_is_the_best() -> None:
    models = [model("quadratic", 1), model("power", 1), model("linear", 1, r_square=1 - 1e-15)]
    assert best(models) is models[2]


def test_one_part_where_all_models_are_of_all_points() -> None:
    old = [model("linear", 1, 2, r_square=0.9), model("power", 1, 2, r_square=0.7)]
    new = [model("power", 1, 2, start=50, end=200, r_square=0.8)]
    assert parts(old, new) == [(50, 100, old[0], new[0])]
    assert parts(old, new)[0].r_square == 0.8


def test_pieces_are_laid_side_by_side() -> None:
    old = [model("constant", 1, 0, end=50), model("linear", 1, 2, start=50)]
    new = [model("linear", 3, 4, end=60), model("power", 1, 2, start=60, end=90)]
    found = parts(old, new)
    assert [part[:2] for part in found] == [(1, 50), (50, 60), (60, 90)]
    assert [part.baseline.type for part in found] == ["constant", "linear", "linear"]
    assert [part.target.type for part in found] == ["linear", "linear", "power"]
    assert [part[:2] for part in without_fringes(found)] == [(1, 50), (60, 90)]


def test_gaps_between_pieces_belong_to_no_part() -> None:
    old = [model("constant", 1, end=40), model("linear", 1, 2, start=50)]
    assert [part[:2] for part in parts(old, [model("linear", 1, 2)])] == [(1, 40), (50, 100)]


def test_no_common_x() -> None:
    assert parts([model("linear", 1, 2, end=50)], [model("linear", 1, 2, start=50)]) == []
    assert sample([]) is None
    unsaid = model("linear", 1, 2, start=None, end=None)
    assert parts([unsaid], [unsaid]) == []
    assert [part[:2] for part in parts([unsaid], [model("linear", 1, 2)])] == [(1, 100)]
    assert extent([model("linear", 1, 2, end=50)]) == "models for x = 1 to 50"
    assert extent([model("power", 1, 2, start=-5, end=-1)]) == "models without an interval"


def test_the_rate_is_the_mean_relative_difference() -> None:
    old, new = model("linear", 10, 2), model("quadratic", 5, 1, 0.3)
    samples = sample(parts([old], [new]))
    assert samples is not None
    b, t = 10 + 2 * X, 5 + X + 0.3 * X**2
    np.testing.assert_allclose(samples.x, X)
    found = measure(samples)
    assert found.rate == pytest.approx(100 * np.mean((t - b) / b))
    assert found.balance == pytest.approx(100 * np.mean((t - b) / np.minimum(b, t)))
    assert found.distance == pytest.approx(100 * np.mean(abs(t - b) / np.maximum(b, t)))


@pytest.mark.parametrize(("factor", "change"), [
    (1.05, PerformanceChange.NoChange),
    (0.95, PerformanceChange.NoChange),
    (1.06, PerformanceChange.MaybeDegradation),
    (0.94, PerformanceChange.MaybeOptimization),
    (1.25, PerformanceChange.MaybeDegradation),
    (0.80, PerformanceChange.MaybeOptimization),
    (1.2501, PerformanceChange.Degradation),
    (0.7999, PerformanceChange.Optimization),
])  # fmt: skip
def test_limits(factor: float, change: PerformanceChange) -> None:
    for kind, coefficients in (
        ("constant", (7.0,)),
        ("logarithmic", (3.0, 7.0)),
        ("quadratic", (1.0, 2.0, 3.0)),
    ):
        old, new = model(kind, *coefficients), model(kind, *(factor * value for value in coefficients))
        assert verdict([old], [new]) == (change, pytest.approx(100 * (factor - 1)))


def test_coefficients_that_are_alike_where_the_curves_are_not() -> None:
    # 3 % more at each step of x is 19 times as much after a hundred of them.
    change, rate = verdict([model("exponential", 3, 1.04)], [model("exponential", 3, 1.04 * 1.03)])
    assert change is PerformanceChange.Degradation
    assert rate > 400
    change, _ = verdict([model("quadratic", 1, 2, 0.1)], [model("quadratic", 1, 2, 1)])
    assert change is PerformanceChange.Degradation


def test_curves_that_are_alike_where_the_coefficients_are_not() -> None:
    old = [model("linear", 1, 10)]
    assert verdict(old, [model("linear", 1.4, 10)])[0] is PerformanceChange.MaybeDegradation
    noisy = [model("linear", 1, 10, r_square=0.99)]
    assert verdict(noisy, [model("linear", 1.4, 10, r_square=0.99)])[0] is PerformanceChange.NoChange


def at_two_x(difference: tuple[float, float], scatter: tuple[float, float]) -> Samples:
    """A baseline of 100, and a target that differs by so much from it at two x."""
    return Samples(np.array([1.0, 2.0]), np.full(2, 100.0), 100 + np.array(difference), np.array(scatter))


@pytest.mark.parametrize(("difference", "scatter", "is_noise"), [
    ((4, 4), (4, 4), True),  # the border itself is noise
    ((4, 4.01), (4, 4), False),
    ((-4, -4), (4, 4), True),
    ((-4, -4.01), (4, 4), False),
    ((0, 5), (4, 4), True),  # the quadratic mean is 3.54
    ((0, 5.7), (4, 4), False),  # and here 4.03
    ((2, 4), (2, 4), True),  # each in units of the scatter at its own x
    ((4, 2), (2, 4), False),
    ((4, 0), (4, 0), True),  # exact where nothing differs
    ((0, 1e-9), (4, 0), False),  # exact where something does
])  # fmt: skip
def test_the_border_between_noise_and_change(difference, scatter, is_noise) -> None:
    samples = at_two_x(difference, scatter)
    assert samples.within_scatter is is_noise
    # Models of two kinds have no coefficients to compare: the scatter alone decides.
    common = parts([model("linear", 1, 2)], [model("power", 1, 2)])
    assert measure(samples).distance < LIMITS.unchanged
    assert (compare(common, samples, LIMITS).change is PerformanceChange.NoChange) is is_noise


def test_beyond_the_limit_scatter_excuses_nothing() -> None:
    samples = at_two_x((6, 6), (50, 50))
    common = parts([model("linear", 1, 2)], [model("power", 1, 2)])
    assert samples.within_scatter
    assert compare(common, samples, LIMITS).change is PerformanceChange.MaybeDegradation
    assert compare(common, samples, DifferenceLimits(unchanged=6)).change is PerformanceChange.NoChange


def test_scatter_about_a_model_is_that_of_its_points() -> None:
    # Points with a variance of (1 - R^2) / R^2 of that of the curve: a fourth of it where R^2 is 0.8.
    line = model("linear", 3, 2, r_square=0.8)
    assert scatter_of(line, X) == pytest.approx(np.full(X.size, np.std(3 + 2 * X) / 2))
    power = model("power", 3, 2, r_square=0.8)
    assert scatter_of(power, X) == pytest.approx(3 * X**2 * np.std(np.log(X**2)) / 2)
    for exact in (model("linear", 3, 2), model("constant", 3, r_square=0.8)):
        assert scatter_of(exact, X).tolist() == [0.0] * X.size


def test_a_coefficient_counts_by_what_it_moves_the_curve() -> None:
    # Twice a b0 of 0.00001 is rounding in a curve that is 100,000 high; a b2 that is a fifth larger is not.
    for other, change in (
        (model("quadratic", 2e-5, 1000, 1), PerformanceChange.NoChange),
        (model("quadratic", 1e-5, 1000, 1.2), PerformanceChange.MaybeDegradation),
    ):
        assert verdict([model("quadratic", 1e-5, 1000, 1)], [other])[0] is change
    straight_up = [model("quadratic", 5, 3, curvature) for curvature in (1e-14, -4e-14)]
    assert verdict(straight_up[:1], straight_up[1:])[0] is PerformanceChange.NoChange


def test_a_coefficient_that_is_rounding_is_no_difference() -> None:
    assert verdict([model("quadratic", 5, 1e-15, 3)], [model("quadratic", 5, -4e-15, 3)])[0] is (
        PerformanceChange.NoChange
    )
    assert verdict([model("power", 5, 1e-17)], [model("power", 5, -4e-17)])[0] is PerformanceChange.NoChange


def test_models_of_other_kinds_on_the_same_curve() -> None:
    assert verdict([model("linear", 0, 2)], [model("power", 2, 1)])[0] is PerformanceChange.NoChange


def test_nothing_is_relative_to_zero() -> None:
    zero, five = [model("constant", 0)], [model("constant", 5)]
    assert sample(parts(zero, five)) is None
    assert sample(parts(five, zero)) is None
    assert verdict(zero, zero) == (PerformanceChange.NoChange, 0)
    # Of the first point, where the baseline is 0, nothing is said.
    change, rate = verdict([model("logarithmic", 0, 5)], [model("logarithmic", 0, 10)])
    assert (change, rate) == (PerformanceChange.Degradation, pytest.approx(100))


def test_a_noisy_line_through_zero_does_not_count_for_the_others() -> None:
    old = [model("linear", 0.001, 1, start=0, r_square=0.95)]
    new = [model("linear", 0.6, 1, start=0, r_square=0.95)]
    exact = [one[0]._replace(r_square=1.0) for one in (old, new)]
    assert abs(verdict(old, new)[1]) < 4 < 7 < verdict(exact[:1], exact[1:])[1]


def test_curves_that_cross() -> None:
    old, new = [model("constant", 50)], [model("linear", 0, 1)]
    common = parts(old, new)
    samples = sample(common)
    assert samples is not None
    found = compare(common, samples, LIMITS)
    # Half of the x have gained up to 98 %, half have lost up to 100 %: no more than a maybe.
    assert found.change is PerformanceChange.MaybeOptimization
    assert found.rate < 0
    assert [run[0] for run in found.runs] == [PerformanceChange.Optimization, PerformanceChange.Degradation]
    assert [run[2:] for run in found.runs] == [
        (1, pytest.approx(50, abs=0.1)),
        (pytest.approx(50, abs=0.1), 100),
    ]
    even = Samples(np.array([1.0, 2.0]), np.array([1.0, 4.0]), np.array([4.0, 1.0]), np.zeros(2))
    assert compare(common, even, LIMITS).change is PerformanceChange.Unknown


def test_huge_and_tiny_numbers() -> None:
    huge = model("exponential", 1e300, 1.5)
    assert verdict([huge], [huge])[0] is PerformanceChange.NoChange
    change, rate = verdict([model("constant", 1e-300)], [model("constant", 1e300)])
    assert change in (PerformanceChange.Degradation, PerformanceChange.Unknown)
    assert np.isfinite(rate)


@pytest.mark.parametrize(("difference", "expected"), [
    (0 * X + 3, ("constant", "constant", "constant")),
    (2 * X - 1, ("linear", "linear", "linear")),
    (7 + 5 * X, ("linear", "linear", "linear")),
    (0.3 * X**2, ("quadratic", "quadratic", "quadratic")),
    (X**2 - 101 * X + 3000, ("quadratic", "quadratic", "quadratic")),
    (2 * X**4, ("cubic", "quadratic", "power")),
    (X**1.5, ("quadratic", "linear", "power")),
    (2 + 3 * np.log(X), ("quadratic", "quadratic", "logarithmic")),
    (np.log(X), ("cubic", "quadratic", "logarithmic")),
    (2 * 1.04**X, ("cubic", "quadratic", "exponential")),
    (2 * 1.3**X, (OTHER, OTHER, "exponential")),
    (1000 + (X - 50) ** 2 / 100, ("constant", "constant", "quadratic")),
    (np.sin(3 * X), (OTHER, "constant", "constant")),
])  # fmt: skip
def test_types(difference: Any, expected: tuple[str, str, str]) -> None:
    for sign in (1, -1):
        for unit in (1, 1e-9, 1e9):
            d = sign * unit * difference
            found = polynomial(X, d), straight(X, d), regression(X, d)
            assert found == expected, (sign, unit)


def test_types_of_few_samples() -> None:
    for count in (1, 2, 3):
        for shape in (polynomial, straight, regression):
            assert shape(X[:count], X[:count] * 0 + 2) == "constant"
            assert shape(X[:count], X[:count]) in (*DEGREES, OTHER)
    assert polynomial(X, 0 * X) == straight(X, 0 * X) == regression(X, 0 * X) == "constant"


KINDS = st.sampled_from(["constant", "linear", "logarithmic", "quadratic", "power", "exponential"])
MODELS = st.builds(
    lambda kind, b0, b1, b2, r_square: model(
        kind, b0, b1, b2 if kind == "quadratic" else 0, r_square=r_square
    ),
    KINDS,
    st.floats(0.5, 50),
    st.floats(0.9, 1.1),
    st.floats(0, 2),
    st.floats(0.3, 1),
)


@given(MODELS, MODELS)
def test_swapping_mirrors(one: ModelRecord, other: ModelRecord) -> None:
    there, back = verdict([one], [other]), verdict([other], [one])
    assert there[0].value == (back[0].value if there[0] is PerformanceChange.Unknown else -back[0].value)
    if there[0] not in (PerformanceChange.NoChange, PerformanceChange.Unknown):
        assert there[1] * back[1] < 0


@given(MODELS)
def test_nothing_changes_against_itself(one: ModelRecord) -> None:
    assert verdict([one], [one]) == (PerformanceChange.NoChange, 0)


@pytest.mark.parametrize(
    ("uneven", "change"), [(1e-9, PerformanceChange.Unknown), (1e-8, PerformanceChange.MaybeDegradation)]
)
def test_an_even_balance_is_one_up_to_rounding(uneven: float, change: PerformanceChange) -> None:
    """One x takes 30 % more, the other one 30 % less by the same measure, but for rounding."""
    samples = Samples(np.array([1.0, 2.0]), np.ones(2), np.array([1.3, 1 / (1.3 - uneven)]), np.zeros(2))
    assert compare(parts([model("constant", 1)], [model("linear", 1, 2)]), samples, LIMITS).change is change


@pytest.mark.parametrize(
    ("slope", "change"), [(5e-12, PerformanceChange.NoChange), (4e-11, PerformanceChange.MaybeDegradation)]
)
def test_a_coefficient_counts_from_rounding_on(slope: float, change: PerformanceChange) -> None:
    """At x = 100, the largest one, it makes 5e-10 of the curve, and 4e-9."""
    assert verdict([model("linear", 1, 0)], [model("linear", 1, slope)])[0] is change


def test_scatter_counts_from_rounding_on() -> None:
    assert not scatter_of(model("linear", 0, 1, r_square=1 - 1e-10), X).any()
    assert scatter_of(model("linear", 0, 1, r_square=1 - 1e-8), X) == pytest.approx(1e-4 * X.std(), rel=1e-3)


def test_a_part_of_half_of_a_piece_is_no_fringe() -> None:
    pieces = [model("constant", 1, end=40), model("linear", 1, 2, start=40, end=60)]
    for bound, kept in ((50, 3), (49, 2)):
        others = [model("constant", 1, end=bound), model("linear", 1, 2, start=bound, end=60)]
        assert len(without_fringes(parts(pieces, others))) == kept


@pytest.mark.parametrize(("slope", "expected"), [(0.92, "constant"), (1.1, "linear")])
def test_what_explains_half_of_a_difference_is_its_type(slope: float, expected: str) -> None:
    """A line of that slope, in standard deviations, explains slope^2 / (slope^2 + 1) beside a zigzag of 1."""
    line = (X - X.mean()) / X.std()
    assert regression(X, 10 + slope * line + np.where(np.arange(X.size) % 2, 1.0, -1.0)) == expected


@pytest.mark.parametrize("scale", [0.1, 0.3, 0.7, 1.1, 3.3, 7.7, 12.9])
def test_of_models_that_fit_equally_the_first_is_the_type(scale: float) -> None:
    """A parabola fits a line, too, and may do so better by rounding."""
    assert {regression(scale * X, 1 + slope * X) for slope in (0.1, 0.7, 1.3, 2.9)} == {"linear"}
