"""Known curves with noise: no order changes where there is none, and changes found where there is one."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import pytest

from perun.models.growth.comparison import GrowthComparison, NotComparable, compare
from perun.models.growth.forms import centres

Array = np.ndarray
Curve = Callable[[Array], Array]
CURVES: Final[Mapping[str, Curve]] = {
    "1": lambda n: 0 * n + 50, "log n": lambda n: 3 + 7 * np.log(n), "n": lambda n: 10 + 2 * n,
    "n log n": lambda n: 5 + 0.5 * n * np.log(n), "n^2": lambda n: 5 + 0.3 * n**2,
    "n^3": lambda n: 1 + 0.01 * n**3
}  # fmt: skip
DESIGNS: Final[Mapping[str, Array]] = {
    "8 sizes, 5 calls": np.repeat([10.0, 20, 50, 100, 200, 500, 1000, 2000], 5),
    "100 sizes, 1 call": np.arange(1.0, 101),
    "10 sizes, 20 calls": np.repeat(np.geomspace(8, 8000, 10).round(), 20),
    "300 calls of any size": np.random.default_rng(1).integers(1, 3000, 300).astype(float),
}
NOISES: Final[Mapping[str, Callable[[np.random.Generator, Array], Array]]] = {
    "normal": lambda g, y: y * g.normal(1, 0.05, y.shape),
    "lognormal": lambda g, y: y * g.lognormal(0, 0.1, y.shape),
    "interrupted": lambda g, y: (
        y * (1 + np.abs(g.normal(0, 0.05, y.shape))) * np.where(g.random(y.shape) < 0.01, 30, 1)
    ),
    "with a floor": lambda g, y: y * g.normal(1, 0.05, y.shape) + g.normal(0, 1, y.shape),
}


def compared(seed: int, x: Array, noise: str, old: Curve, new: Curve, factor: float = 1) -> GrowthComparison:
    generator = np.random.default_rng(seed)
    baseline = centres(x, NOISES[noise](generator, old(x)))
    target = centres(x, NOISES[noise](generator, factor * new(x)))
    found = compare(baseline, target, 0.01)
    assert isinstance(found, GrowthComparison)
    return found


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("sequences", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_the_same_order_is_not_called_another(noise: str, sequences: int) -> None:
    orders = factors = tests = 0
    for x in DESIGNS.values():
        for curve in CURVES.values():
            for seed in range(sequences):
                found = compared(seed, x, noise, curve, curve, 1.3 if seed % 2 else 1)
                orders += found.order.changed
                factors += not seed % 2 and (found.factor.low > 1.1 or found.factor.high < 1 / 1.1)
                tests += 1
    assert orders <= 0.01 * tests and factors <= 0.02 * tests / 2


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(
    ("old", "new"), [("n", "n^2"), ("1", "n"), ("log n", "n"), ("n log n", "n^2"), ("n^2", "n^3")]
)
def test_another_order_is_found_in_both_directions(noise: str, design: str, old: str, new: str) -> None:
    up = compared(1, DESIGNS[design], noise, CURVES[old], CURVES[new]).order
    down = compared(1, DESIGNS[design], noise, CURVES[new], CURVES[old]).order
    assert up.changed and up.difference.low > 0.2
    assert down.changed and down.difference.high < -0.2


@pytest.mark.parametrize("design", ["100 sizes, 1 call", "300 calls of any size"])
def test_a_logarithm_more_is_no_other_order_but_it_is_told(design: str) -> None:
    """The exponents of n and of n log n differ by about 1 / ln n: less than 0.2 above sizes of 150."""
    found = compared(4, DESIGNS[design], "normal", CURVES["n"], lambda n: 10 + 2 * n * np.log(n))
    assert found.order.changed or found.order.doubtful
    assert found.level.low > 1, "and it is slower"
    assert found.order.difference.estimate > 0


def test_a_logarithm_more_is_another_order_where_sizes_are_small() -> None:
    x = np.repeat(np.array([2.0, 3, 4, 6, 8, 12, 16, 24, 32]), 100)
    found = compared(2, x, "normal", lambda n: 1 + n, lambda n: 1 + n * np.log(n)).order
    assert found.changed and found.difference.low > 0.2


def test_a_start_that_takes_long_hides_no_slope() -> None:
    x = DESIGNS["10 sizes, 20 calls"]
    found = compared(3, x, "normal", lambda n: 500 + 0.1 * n, lambda n: 500 + 0.2 * n)
    assert found.baseline.form == found.target.form == "n" and found.factor.low > 1.5
    assert found.factor.low < 2 < found.factor.high and found.level.high < 1.2


@pytest.mark.slow
def test_bounds_of_a_factor_miss_it_once_in_a_hundred() -> None:
    missed = 0
    for seed in range(150):
        found = compared(seed, DESIGNS["8 sizes, 5 calls"], "normal", CURVES["n"], lambda n: 10 + 2.8 * n)
        missed += not found.factor.low <= 1.4 <= found.factor.high
    assert missed <= 5


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [(np.array([10.0, 20, 30, 40]), "needs 5 sizes"), (np.arange(10.0, 41, 5), "over a factor of 8, not 4")],
)
def test_orders_need_sizes(sizes: Array, reason: str) -> None:
    found = compared(1, np.repeat(sizes, 10), "normal", CURVES["n"], CURVES["n^2"])
    assert reason in found.order.reason
    assert not (found.order.changed or found.order.doubtful)


def test_sizes_that_cannot_be_compared() -> None:
    small, large = (np.repeat(np.arange(start, start + 9), 5) for start in (1.0, 100.0))
    small, large = centres(small, small), centres(large, large)
    assert isinstance(compare(small, large, 0.01), NotComparable)
    assert isinstance(compare(small, centres([0.0], [1.0]), 0.01), NotComparable)


@pytest.mark.parametrize("value", [0.0, 5.0, 1e60, 1e-300])
def test_extreme_values_are_compared(value: float) -> None:
    x = np.repeat(np.arange(1.0, 20), 5)
    found = compare(centres(x, np.full_like(x, value)), centres(x, np.full_like(x, value)), 0.01)
    assert isinstance(found, GrowthComparison) and not found.order.changed and found.level.p_value == 1
