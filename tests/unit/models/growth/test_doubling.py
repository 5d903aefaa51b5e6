"""How many times as much is spent where the size doubles."""

from __future__ import annotations

import numpy as np
import pytest

from perun.models.growth.comparison import doubling
from perun.models.record import NoModel

SIZES = np.array([50.0, 100.0, 200.0, 400.0, 800.0])


@pytest.mark.parametrize("power", [0.5, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("start", [0.0, 100.0])
def test_powers(power, start):
    found = doubling(SIZES, start + 3 * SIZES**power)
    assert isinstance(found, float)
    assert np.log2(found) == pytest.approx(power, abs=0.03)


def test_what_does_not_grow():
    assert doubling(SIZES, [10, 10, 10, 10, 10]) == 1.0
    assert doubling(SIZES, [10, 10.5, 10.9, 10.2, 10]) == 1.0
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
