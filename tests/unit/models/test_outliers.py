"""The rule of outliers, on differences whose spread can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from perun.models.outliers import NORMAL_MAD, Spread, deviation_multiple

RESOLUTION = 1e-9
EVEN = np.array([-4.0, -2.0, 0.0, 2.0, 4.0])
"""Median 0, quartiles -2 and 2, MAD 2."""


def test_the_spread_of_even_differences() -> None:
    assert Spread.of(EVEN, RESOLUTION) == (0.0, 2.0, -2.0, 2.0, RESOLUTION)
    assert Spread.of(EVEN + 10, RESOLUTION) == (10.0, 2.0, 8.0, 12.0, RESOLUTION)


def test_the_modified_z_score_counts_from_the_median() -> None:
    spread = Spread.of(EVEN + 10, RESOLUTION)
    assert spread.modified_z(np.array([10.0, 12.0, 8.0, 0.0])).tolist() == pytest.approx(
        [0, NORMAL_MAD, NORMAL_MAD, 5 * NORMAL_MAD]
    )


def test_between_the_quartiles_nothing_is_outside() -> None:
    spread = Spread.of(EVEN + 10, RESOLUTION)
    at = np.array([8.0, 9.0, 12.0, 6.0, 14.0, 2.0, 18.0])
    assert spread.quartile_multiple(at).tolist() == [0, 0, 0, 0.5, 0.5, 1.5, 1.5]


@pytest.mark.parametrize(
    ("median", "difference", "stands_out"),
    [
        (10.0, 12.0, True),  # slower by more than the median function
        (10.0, 8.0, False),  # slower, but by less
        (10.0, 0.0, False),  # unchanged among slower ones: an outlier, and no change
        (10.0, -1.0, True),  # faster, where most are slower
        (10.0, 10.0, False),  # the median function itself
        (-10.0, -12.0, True),
        (-10.0, -8.0, False),
        (-10.0, 0.0, False),
        (-10.0, 1.0, True),
        (0.0, 1.0, True),
        (0.0, -1.0, True),
        (0.0, 0.0, False),  # no change is none, although its sign is that of its distance from the median
    ],
)
def test_a_change_stands_out_in_its_own_direction(median: float, difference: float, stands_out: bool) -> None:
    spread = Spread.of(EVEN + median, RESOLUTION)
    assert spread.away_from_zero(np.array([difference])).tolist() == [stands_out]


def test_the_multiple_of_the_deviation_counts_from_zero() -> None:
    # sigma of the even differences is sqrt(40 / 4); it is the same ten further up, where d is not.
    assert deviation_multiple(EVEN + 10, EVEN + 10, RESOLUTION) == pytest.approx((EVEN + 10) / np.sqrt(10))
    assert deviation_multiple(np.array([-20.0]), EVEN, RESOLUTION) == pytest.approx(20 / np.sqrt(10))


def test_sigma_of_two_differences_and_of_fewer() -> None:
    assert deviation_multiple(np.array([3.0]), np.array([1.0, 3.0]), 0.5) == pytest.approx(3 / np.sqrt(2))
    for too_few in ([], [7.0]):
        assert deviation_multiple(np.array([3.0]), np.array(too_few), 0.5).tolist() == [6.0]


def test_the_resolution_is_the_least_spread_of_each_measure() -> None:
    level = np.full(5, 2.0)
    spread = Spread.of(level, 0.5)
    at = np.array([2.0, 3.0, 1.0])
    assert spread.modified_z(at).tolist() == pytest.approx([0, 2 * NORMAL_MAD, 2 * NORMAL_MAD])
    assert spread.quartile_multiple(at).tolist() == [0, 2, 2]
    assert deviation_multiple(at, level, 0.5).tolist() == [4, 6, 2]
