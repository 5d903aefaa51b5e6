"""Parts of a change: which half leads, and what confirms what was found."""

from __future__ import annotations

import pytest

from perun.measurement.difference import of_counts
from perun.measurement.parted import confirms, first_leads
from perun.measurement.verdict import judge


@pytest.mark.parametrize(
    ("costs", "leads"),
    [((10, 19, 20), True), ((10, 16, 20), True), ((10, 15, 20), None), ((10, 14, 20), False),
     ((20, 11, 10), True), ((20, 20, 10), False), ((10, 12, 10), None)],
)  # fmt: skip
def test_the_half_that_costs_most_leads(costs: tuple[float, float, float], leads: bool | None) -> None:
    assert first_leads(*costs) is leads


@pytest.mark.parametrize(
    ("ends", "value", "without", "certain"),
    [((100, 110), 100, True, True), ((100, 110), 101, True, True), ((100, 110), 103, True, False),
     ((100, 110), 110, False, True), ((100, 110), 107, False, False), ((0, 10), 1, True, True),
     ((0, 10), 9, True, False)],
)  # fmt: skip
def test_what_is_left_confirms(ends: tuple[float, float], value: float, without: bool, certain: bool) -> None:
    beside = judge(of_counts((ends[0], value), (1, 1)))
    assert confirms(ends, value, beside, without=without) is certain
    wide = beside._replace(low=0.5, high=2.0)
    assert ends[0] == 0 or not confirms(ends, value, wide, without=without)
