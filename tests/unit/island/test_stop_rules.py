"""Which part of a stop counts as stopped: the rules on the cases that tell them apart."""

from __future__ import annotations

import pytest
from hand_made import ns
from hypothesis import given
from hypothesis import strategies as st

from perun.island.stop_rules import RULES

TABLE = {
    # what happens: (actual, expected, stops), and what counts as stopped by seed, source2010 and exact
    "a call without a limit, 1 s stop": ((1.0, 0, 1), (1, 1, 1)),
    "20 B at 10 B/s, stop 0.6 to 1.6": ((2, 2, 1), (0, 0, 0)),
    "20 B at 10 B/s, stop 1.8 to 2.8": ((2.8, 2, 1), (0, 0, 0.8)),
    "20 B at 10 B/s, stop 0.6 to 3.6": ((3.6, 2, 3), (0, 1.6, 1.6)),
    "20 B at 10 B/s, 1 s of a slow disk and 1 s stop": ((4, 2, 1), (1, 0, 1)),
    "sleep of 1 s, stop 0.4 to 2.4": ((2.4, 1, 2), (0, 1.4, 1.4)),
    "a call that ended before it was expected to": ((1, 2, 0.5), (0, 0, 0)),
    "no stop at all": ((1, 0, 0), (0, 0, 0)),
}


@pytest.mark.parametrize("case", TABLE)
@pytest.mark.parametrize(("position", "rule"), list(enumerate(("seed", "source2010", "exact"))))
def test_each_rule_on_each_case(case: str, position: int, rule: str) -> None:
    (actual, expected, stops), stopped = TABLE[case]
    assert RULES[rule](ns(actual), ns(expected), ns(stops)) == ns(stopped[position])


@given(st.sampled_from(sorted(RULES)), st.integers(0, 1000), st.integers(0, 1000), st.data())
def test_no_more_is_stopped_than_the_stops_and_nothing_less_than_0(
    rule: str, actual: int, expected: int, data: st.DataObject
) -> None:
    stops = data.draw(st.integers(0, actual))
    assert 0 <= RULES[rule](actual, expected, stops) <= stops
