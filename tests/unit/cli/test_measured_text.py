"""A value and its spread as people read them."""

from __future__ import annotations

import pytest

from perun.cli.answers import measured as text
from perun.profile.measured import Difference, Measured


@pytest.mark.parametrize(
    ("value", "unit", "spread", "samples", "expected"),
    [
        (0.2081, "s", 0.0034, 10, "208 ms ± 3 (n = 10)"),
        (0.2081, "s", 0.0134, 10, "208 ms ± 13 (n = 10)"),
        (1.5 * 2**20, "B", 0.02 * 2**20, 3, "1.50 MiB ± 0.02 (n = 3)"),
        (7477652, "instr", None, 1, "7.48 M instr"),
        (2.5, "ms", 0.0, 4, "2.50 ms ± 0.00 (n = 4)"),
        (1.0012, "s", 0.0009, 5, "1.0012 s ± 0.0009 (n = 5)"),
        (999.9996, "ms", 1.0, 5, "1.0000 s ± 0.0010 (n = 5)"),
    ],
)
def test_a_value_has_the_digits_that_its_spread_allows(value, unit, spread, samples, expected):
    assert text.value(Measured("real time", value, unit, spread, samples)) == expected


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        (Difference(0.012, -0.004, 0.029), "+1.2 % [-0.4, +2.9]"),
        (Difference(-0.5, None, None), "-50.0 %"),
        (Difference(0.0001, 0.0, 0.0002), "+0.01 % [0.0, +0.02]"),
        (Difference(19.0, None, None), "+1,900 %"),
        (None, ""),
    ],
)
def test_a_difference_is_in_percent_with_its_interval(difference, expected):
    assert text.percent(difference) == expected


def test_a_difference_has_a_colour_only_beyond_its_interval():
    slower, unclear = Difference(0.2, 0.1, 0.3), Difference(0.2, -0.1, 0.5)
    time = Measured("real time", 1.0, "s", 0.1, 5)
    assert text.style(slower, time) == "red"
    assert text.style(unclear, time) == ""
    assert text.style(slower, time._replace(larger_is_better=True)) == "green"
