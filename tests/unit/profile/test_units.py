"""Amounts as people read them, two of them beside each other."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.profile.factory import Profile
from perun.profile.units import larger_is_better, locations_of_larger, readable_pair

AMOUNTS = st.floats(1e-9, 1e12)
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def _seconds(text: str) -> float:
    unit = next(unit for unit in SECONDS if text.endswith(unit))
    return float(text.removesuffix(unit)) * SECONDS[unit]


@pytest.mark.parametrize(
    ("before", "after", "unit", "shown"),
    [
        (0.00301, 0.00303, "s", ("3.01ms", "3.03ms")),
        (0.0009, 0.0013, "s", ("0.90ms", "1.30ms")),
        (0.00005, 0.5, "s", ("50.0us", "0.5s")),
        (12.345, 16.9, "ms", ("12.3ms", "16.9ms")),
        (1000.0, 1100.0, "", ("1000", "1100")),
        (52428800.0, 52428801.0, "B", ("52428800B", "52428801B")),
        (1234.5, 1236.0, "", ("1234", "1236")),
        (0.0, 0.25, "s", ("0.0s", "0.25s")),
        (0.0, 0.0, "s", ("0.0s", "0.0s")),
        (2.0, math.inf, "s", ("2.0s", "infs")),
    ],
)
def test_two_amounts_have_one_unit_and_as_many_decimals(
    before: float, after: float, unit: str, shown: tuple[str, str]
) -> None:
    assert readable_pair(before, after, unit) == shown
    assert readable_pair(after, before, unit) == shown[::-1]


def test_amounts_of_other_units_are_written_by_themselves() -> None:
    assert readable_pair(0.01, 2048.0, "s", "B") == ("10.0ms", "2048.0B")


@given(AMOUNTS, AMOUNTS)
def test_the_order_of_two_amounts_can_be_seen(before: float, after: float) -> None:
    one, other = map(_seconds, readable_pair(before, after, "s"))
    if abs(after - before) > 0.01 * max(before, after):
        assert (one < other) is (before < after)
    else:
        assert (one == other) or (one < other) is (before < after)


def test_where_more_is_better() -> None:
    header = {"type": "mixed", "units": {"mixed(req/s)": "req/s"}, "larger_is_better": ["req/s"]}
    profile = Profile({"header": header})
    values = [("web", "mixed", "req/s"), ("web", "time", "real"), ("bulk", "mixed", "req/s")]
    profile.update_resources(
        {"uid": uid, "type": kind, "subtype": subtype, "amount": 1.0} for uid, kind, subtype in values
    )
    assert larger_is_better(profile) == {"req/s"}
    # That of `web` alone may mean its time.
    assert locations_of_larger(profile) == {"web [req/s]", "bulk", "bulk [req/s]"}
    assert larger_is_better({}) == larger_is_better({"header": 1}) == frozenset()
