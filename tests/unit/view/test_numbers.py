"""Numbers as people read them."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.pages import RAMP, SERIES, colour, mixed, ramp
from perun.profile.amounts import (
    common_unit,
    factor,
    is_size,
    percent,
    readable,
    readable_pair,
    readable_spread,
    unit_label,
)


@pytest.mark.parametrize(("value", "unit", "text"), [
    (1e6, "", "1 M"),
    (999.96, "", "1 k"),
    (999.4, "", "999"),
    (12_345, "", "12.3 k"),
    (-1500, "", "-1.5 k"),
    (0.125, "", "0.125"),
    (2.5e-6, "", "2.5×10⁻⁶"),
    (1e22, "", "1×10²²"),
    (0, "", "0"),
    (12, "ops", "12 ops"),
    (2500, "us", "2.5 ms"),
    (2500, "\u00b5s", "2.5 ms"),
    (90, "min", "5,400 s"),
    (1e-9, "s", "1 ns"),
    (0, "ms", "0 s"),
    (1e6, "s", "1×10⁶ s"),
    (2**30, "B", "1 GiB"),
    (1023.99, "B", "1 KiB"),
    (1536, "KiB", "1.5 MiB"),
    (math.nan, "s", "no number"),
    (math.inf, "", "∞"),
    (-1e308, "GB", "-∞ B"),
])  # fmt: skip
def test_readable(value: float, unit: str, text: str) -> None:
    assert readable(value, unit) == text


@given(st.floats(), st.sampled_from(["", "B", "us", "s", "h", "ops"]))
def test_every_number_is_short(value: float, unit: str) -> None:
    assert 0 < len(readable(value, unit)) < 24


@given(st.floats(min_value=1e-2, max_value=9e5), st.sampled_from(["", "B", "s"]))
def test_what_is_read_is_near_the_number(value: float, unit: str) -> None:
    scales = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
    scales |= {
        "B": 1,
        "s": 1,
        "ms": 1e-3,
        "PiB": 2**50,
        "TiB": 2**40,
        "GiB": 2**30,
        "MiB": 2**20,
        "KiB": 1024,
    }
    number, _, scale = readable(value, unit).partition(" ")
    assert float(number.replace(",", "")) * scales[scale] == pytest.approx(value, rel=0.006)


def test_units_of_axes() -> None:
    assert [unit_label(unit) for unit in ("us", "KiB", "ops", "")] == ["s", "B", "ops", ""]
    assert [is_size(unit) for unit in ("B", "MiB", "us", "")] == [True, True, False, False]


def test_colours() -> None:
    assert [colour(number) for number in range(2 * len(SERIES))] == 2 * [light for light, _ in SERIES]
    assert [ramp(share) for share in (-1, 0, 1, 2)] == [RAMP[0], RAMP[0], RAMP[-1], RAMP[-1]]
    assert mixed("#000000", "#ffffff", 0.5) == "#808080"


@pytest.mark.parametrize(("before", "after", "unit", "shown"), [
    (0.0695, 0.3301, "s", ("69.5 ms", "330 ms")),
    (0.07, 0.33, "s", ("70 ms", "330 ms")),
    (15.8, 22.0, "ms", ("15.8 ms", "22.0 ms")),
    (208.3, 209.1, "ms", ("208.3 ms", "209.1 ms")),
    (7, 8, "", ("7", "8")),
    (1.5e6, 3e6, "B/s", ("1.43 MiB/s", "2.86 MiB/s")),
    (1.5, 1.6, "ns/op", ("1.50 ns/op", "1.60 ns/op")),
    (12_345_678, 12_345_999, "", ("12.3 M", "12.3 M")),
    (12_345_678, 12_365_678, "", ("12.35 M", "12.37 M")),
    (0.999999, 1.000001, "s", ("1.00 s", "1.00 s")),
    (0.0, 0.25, "s", ("0 s", "250 ms")),
    (math.inf, 1.0, "s", ("∞ s", "1 s")),
    (-2048, 1024, "B", ("-2 KiB", "1 KiB")),
])  # fmt: skip
def test_two_numbers_have_one_prefix(before: float, after: float, unit: str, shown: tuple[str, str]) -> None:
    assert readable_pair(before, after, unit) == shown
    assert readable_pair(after, before, unit) == shown[::-1]


@pytest.mark.parametrize(("share", "interval", "shown"), [
    (0.012, (-0.004, 0.029), "+1.2 % [-0.4, +2.9]"),
    (0.0002, None, "+0.02 %"),
    (-1e-9, None, "0.0 %"),
    (0.9996, (0.0, math.inf), "+100 % [0.0, ...]"),
    (-0.16, (-0.983, 39.82), "-16.0 % [unknown]"),
    (-0.16, (-0.5, 39.82), "-16.0 % [-50.0, ...]"),
    (129.5714, None, "+12,957 %"),
    (math.nan, None, ""),
])  # fmt: skip
def test_shares_are_percents(share: float, interval: tuple[float, float] | None, shown: str) -> None:
    assert percent(share, interval) == shown


@pytest.mark.parametrize(("unit", "factor", "common"), [
    ("ms", 1e-3, "s"),
    ("KiB", 1024, "B"),
    ("MB/s", 1e6, "B/s"),
    ("KiB/s", 1024, "B/s"),
    ("kB/ms", 1e6, "B/s"),
    ("Mbit/s", 1e6, "bit/s"),
    ("req/min", 1 / 60, "req/s"),
    ("ns/op", 1e-9, "s/op"),
    ("calls", 1, "calls"),
    ("", 1, ""),
    ("/", 1, "/"),
])  # fmt: skip
def test_units_of_one_kind_compare_in_a_common_one(unit: str, factor: float, common: str) -> None:
    times, base = common_unit(unit)
    assert (times, base) == (pytest.approx(factor), common)
    assert common_unit(base) == (1, base)


@pytest.mark.parametrize(("ratio", "interval", "shown"), [
    (4.76, None, "4.76x"),
    (1.0032, (0.998, 1.0081), "1.003x [0.998, 1.008]"),
    (12345, None, "12,345x"),
    (2.0, (1.5, math.inf), "2x [1.5, ...]"),
    (2.0, (0.0, math.inf), "2x [unknown]"),
    (math.inf, None, "∞x"),
])  # fmt: skip
def test_ratios_are_factors(ratio: float, interval: tuple[float, float] | None, shown: str) -> None:
    assert factor(ratio, interval) == shown


@given(st.floats(1e-9, 1e12), st.floats(0, 1e3))
def test_no_spread_is_shown_as_nothing(value: float, share: float) -> None:
    assert not re.search("± [0.,]*$", readable_spread(value, share * value, "s"))


@given(st.floats(1e-9, 1e5), st.floats(1e-9, 1e5))
def test_the_order_of_two_amounts_can_be_seen(before: float, after: float) -> None:
    one, other = map(_seconds, readable_pair(before, after, "s"))
    if abs(after - before) > 0.001 * max(before, after):
        assert (one < other) is (before < after)
    else:
        assert one == pytest.approx(other, rel=0.01)


def _seconds(text: str) -> float:
    number, unit = text.split()
    return float(number.replace(",", "")) * {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
