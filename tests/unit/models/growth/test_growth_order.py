"""The order in which one cost grows."""

import numpy as np
import pytest

from perun.models.growth import comparison, forms
from perun.models.growth.comparison import doubling
from perun.models.growth.order import EXPONENTIAL, order_of
from perun.models.record import NoModel

WIDE = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512], float)
NARROW = np.arange(1.0, 20.0)


@pytest.mark.parametrize(("form", "cost"), [
    ("log n", lambda n: 100 + 20 * np.log(n)),
    ("n", lambda n: 1000 + 40 * n),
    ("n log n", lambda n: 100 + 30 * n * np.log(n)),
    ("n^2", lambda n: 1000 + 3 * n**2),
    ("n^2", lambda n: 1000 + 40 * n + 3 * n**2),
    ("n^2", lambda n: 100_000 + 100 * n + 2 * n**2),
    ("n^3", lambda n: 10 + 0.1 * n**3 + 5 * n),
])  # fmt: skip
def test_it_finds_the_usual_orders_also_with_a_linear_term(form: str, cost) -> None:
    found = order_of(WIDE, cost(WIDE))
    assert not isinstance(found, NoModel) and found.form == form and found.r_square > 0.999
    np.testing.assert_allclose(found.at([300.0]), cost(np.array([300.0])), rtol=0.01)


def test_a_power_between_the_usual_orders_gets_its_exponent_with_bounds() -> None:
    found = order_of(WIDE, 100 + WIDE**1.5)
    assert not isinstance(found, NoModel) and found.form == "n^b" and found.low < 1.5 < found.high
    assert found.high - found.low < 0.05


@pytest.mark.parametrize("base", [1.3, 1.618, 2.0, 3.0])
def test_an_exponential_cost_gets_its_base_with_bounds(base: float) -> None:
    found = order_of(NARROW, 500 + 7 * base**NARROW)
    assert not isinstance(found, NoModel) and found.form == EXPONENTIAL and found.low <= base * 1.01
    assert base <= found.high * 1.01 and found.high / found.low < 1.1
    np.testing.assert_allclose(found.at([20.0]), 500 + 7 * base**20, rtol=0.1)


def test_noise_widens_the_bounds_and_leaves_the_order() -> None:
    random = np.random.default_rng(7)
    sizes = np.repeat(WIDE, 3)
    noisy = (2000 + 5 * sizes**2) * random.lognormal(0, 0.05, sizes.size)
    exact = order_of(sizes, 2000 + 5 * sizes**2)
    found = order_of(sizes, noisy)
    assert not isinstance(found, NoModel) and not isinstance(exact, NoModel)
    assert found.form == exact.form == "n^2" and found.high - found.low > exact.high - exact.low


@pytest.mark.parametrize(("sizes", "costs", "reason"), [
    ([1.0, 2.0, 4.0], [1.0, 2.0, 4.0], "only 3 sizes"),
    (WIDE, np.full(WIDE.size, 7.0), "does not grow"),
    (WIDE, 1000 - 900 / WIDE, "levels off"),
    (np.arange(100.0, 110.0), np.arange(100.0, 110.0) ** 2, "too close together"),
    (WIDE, np.where(np.arange(WIDE.size) % 2, 10.0, 1000.0), "no order"),
])  # fmt: skip
def test_it_refuses_where_there_is_no_order(sizes: np.ndarray, costs: np.ndarray, reason: str) -> None:
    found = order_of(sizes, costs)
    assert isinstance(found, NoModel) and reason in found.reason


# -- How many times as much is spent where the size doubles ------------------------------------------


SIZES = np.array([50.0, 100.0, 200.0, 400.0, 800.0])


@pytest.mark.parametrize("power", [0.5, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("start", [0.0, 100.0])
def test_powers(power, start):
    found = doubling(SIZES, start + 3 * SIZES**power)
    assert isinstance(found, float) and np.log2(found) == pytest.approx(power, abs=0.03)


def test_what_does_not_grow():
    assert doubling(SIZES, [10, 10, 10, 10, 10]) == 1.0 and doubling(SIZES, [10, 10.5, 10.9, 10.2, 10]) == 1.0
    assert doubling(SIZES, [50, 40, 30, 20, 10]) == 1.0  # it falls


def test_noise():
    rng = np.random.default_rng(1)
    sizes = np.repeat(SIZES, 20)
    found = doubling(sizes, sizes**2 * rng.lognormal(0, 0.1, sizes.size))
    assert isinstance(found, float) and np.log2(found) == pytest.approx(2, abs=0.1)


def test_what_cannot_be_told():
    assert doubling(SIZES[:4], [1, 2, 3, 4]) == NoModel("it was measured at 4 sizes, and 5 are needed")
    close = doubling([10, 16, 26, 42, 70], [10, 16, 26, 42, 70])
    assert close == NoModel("the largest size is 7 times the smallest one, and 8 times are needed")
    assert doubling([], []) == NoModel("it was measured at 0 sizes, and 5 are needed")


def test_sums_of_counts_are_of_the_order_of_their_largest_term():
    sizes = np.array([100.0, 200, 400, 800, 1600])
    counts = [52810, 155060, 509560, 1818560, 6836560]
    told = comparison.counted_curve(forms.centres(sizes, counts))
    assert told is not None and told.form == "n^2"
    assert (told.line.c0, told.linear, told.line.c1) == pytest.approx((560, 272.5, 2.5))
    assert doubling(sizes, counts, exact=True) == 4.0
    found = comparison.compare(
        forms.centres(sizes, 300 * sizes + 90), forms.centres(sizes, counts), 0.01, exact=True
    )
    assert isinstance(found, comparison.GrowthComparison) and found.order.changed
    assert (found.order.baseline.name, found.order.target.name) == ("n", "n^2")
    noisy = sizes**2 * [1.0, 1.1, 0.9, 1.05, 0.97]
    assert comparison.counted_curve(forms.centres(sizes, noisy)) is None
    # What makes little of the largest count is no order: 300 n and a little of n^2.
    little = comparison.counted_curve(forms.centres(sizes, 300 * sizes + 0.0005 * sizes**2))
    assert little is not None and little.form == "n"
    same = comparison.compare(
        forms.centres(sizes, counts), forms.centres(sizes, 2 * np.array(counts)), 0.01, exact=True
    )
    assert isinstance(same, comparison.GrowthComparison) and not same.order.changed
    assert same.factor[:3] == pytest.approx((2, 2, 2))
