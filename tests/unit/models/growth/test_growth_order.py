"""The order in which one cost grows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from perun.models.growth.order import EXPONENTIAL, order_of
from perun.models.record import NoModel

WIDE = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512], float)
NARROW = np.arange(1.0, 20.0)


@pytest.mark.parametrize(
    ("form", "cost"),
    [
        ("log n", lambda n: 100 + 20 * np.log(n)),
        ("n", lambda n: 1000 + 40 * n),
        ("n log n", lambda n: 100 + 30 * n * np.log(n)),
        ("n^2", lambda n: 1000 + 3 * n**2),
        ("n^2", lambda n: 1000 + 40 * n + 3 * n**2),
        ("n^2", lambda n: 100_000 + 100 * n + 2 * n**2),
        ("n^3", lambda n: 10 + 0.1 * n**3 + 5 * n),
    ],
)
def test_it_finds_the_usual_orders_also_with_a_linear_term(
    form: str, cost: Callable[[np.ndarray], np.ndarray]
) -> None:
    found = order_of(WIDE, cost(WIDE))
    assert not isinstance(found, NoModel)
    assert found.form == form
    assert found.r_square > 0.999
    np.testing.assert_allclose(found.at([300.0]), cost(np.array([300.0])), rtol=0.01)


def test_a_power_between_the_usual_orders_gets_its_exponent_with_bounds() -> None:
    found = order_of(WIDE, 100 + WIDE**1.5)
    assert not isinstance(found, NoModel)
    assert found.form == "n^b"
    assert found.low < 1.5 < found.high
    assert found.high - found.low < 0.05


@pytest.mark.parametrize("base", [1.3, 1.618, 2.0, 3.0])
def test_an_exponential_cost_gets_its_base_with_bounds(base: float) -> None:
    found = order_of(NARROW, 500 + 7 * base**NARROW)
    assert not isinstance(found, NoModel)
    assert found.form == EXPONENTIAL
    assert found.low <= base * 1.01
    assert base <= found.high * 1.01
    assert found.high / found.low < 1.1
    np.testing.assert_allclose(found.at([20.0]), 500 + 7 * base**20, rtol=0.1)


def test_noise_widens_the_bounds_and_leaves_the_order() -> None:
    random = np.random.default_rng(7)
    sizes = np.repeat(WIDE, 3)
    noisy = (2000 + 5 * sizes**2) * random.lognormal(0, 0.05, sizes.size)
    exact = order_of(sizes, 2000 + 5 * sizes**2)
    found = order_of(sizes, noisy)
    assert not isinstance(found, NoModel)
    assert not isinstance(exact, NoModel)
    assert found.form == exact.form == "n^2"
    assert found.high - found.low > exact.high - exact.low


@pytest.mark.parametrize(
    ("sizes", "costs", "reason"),
    [
        ([1.0, 2.0, 4.0], [1.0, 2.0, 4.0], "only 3 sizes"),
        (WIDE, np.full(WIDE.size, 7.0), "does not grow"),
        (WIDE, 1000 - 900 / WIDE, "levels off"),
        (np.arange(100.0, 110.0), np.arange(100.0, 110.0) ** 2, "too close together"),
        (WIDE, np.where(np.arange(WIDE.size) % 2, 10.0, 1000.0), "no order"),
    ],
)
def test_it_refuses_where_there_is_no_order(sizes: np.ndarray, costs: np.ndarray, reason: str) -> None:
    found = order_of(sizes, costs)
    assert isinstance(found, NoModel)
    assert reason in found.reason
