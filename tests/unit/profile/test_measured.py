"""The value that stands for a profile, and the difference of two of them; scipy is the oracle."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from perun.profile.main_value import of

from perun.profile.amounts import readable_spread
from perun.profile.factory import Profile
from perun.profile.measured import Measured, difference, of_values, pooled

pytest.importorskip("scipy")
from scipy import stats


def _profile(resources, header=None):
    profile = Profile()
    profile["header"] = {"type": "time", "units": {"time": "s"}, **(header or {})}
    profile.update_resources(resources)
    return profile


def _timed(real, user):
    return _profile(
        [
            {"uid": "./prog", "type": "time", "subtype": name, "amount": value, "order": number}
            for name, values in (("user", user), ("real", real))
            for number, value in enumerate(values, 1)
        ]
    )


def test_of_a_command_it_is_the_real_time():
    found = of(_timed([2.0, 4.0, 6.0], [1.0, 1.0, 1.0]))
    assert found == Measured("real time", 4.0, "s", 2.0, 3)


def test_a_single_measurement_has_no_spread():
    assert of(_timed([2.0], [1.0])) == Measured("real time", 2.0, "s", None, 1)


def test_of_memory_it_is_the_peak_of_the_program_not_that_of_a_function():
    rows = [
        {"uid": {"source": "p.c", "function": "main", "memory": "peak"}, "subtype": "peak", "amount": 10},
        {"uid": {"source": "p", "memory": "peak"}, "subtype": "peak", "amount": 30},
        {"uid": {"source": "p.c", "function": "main"}, "subtype": "malloc", "amount": 500, "address": 1},
    ]
    profile = _profile([{"type": "memory", **row} for row in rows], {"units": {"memory": "B"}})
    assert of(profile) == Measured("peak memory", 30.0, "B", None, 1)


def test_of_calls_it_is_the_time_of_main():
    rows = [("f", 5.0), ("f", 5.0), ("prog.c:main", 12.0)]
    profile = _profile(
        [{"uid": uid, "type": "mixed", "subtype": "time delta", "amount": amount} for uid, amount in rows],
        {"units": {"mixed(time delta)": "us"}},
    )
    assert of(profile) == Measured("time of main", 12.0, "us", None, 1)


@pytest.mark.parametrize(
    ("optimization", "metric"),
    [
        ({"pipeline": "basic", "methods": ["cg-shaping"]}, "time of main (basic)"),
        ({"pipeline": "custom", "methods": ["a", "b"]}, "time of main (a, b)"),
        ({"pipeline": "custom", "methods": []}, "time of main"),
        ({"pipeline": 7, "methods": {}}, "time of main"),
        ([], "time of main"),
    ],
)
def test_a_time_of_main_is_not_that_of_another_choice_of_functions(optimization, metric):
    """Recording fewer calls takes less time: the one would seem to be faster than the other."""
    row = {"uid": "main", "type": "mixed", "subtype": "time delta", "amount": 12.0}
    profile = _profile([row], {"units": {"mixed(time delta)": "us"}})
    profile["trace"] = {"optimization": optimization}
    assert of(profile).metric == metric


def test_a_time_of_main_that_recording_may_explain_is_no_value():
    """It may be 0 where recording took more time than the program."""
    row = {"uid": "main", "type": "mixed", "subtype": "time delta", "amount": 0.0}
    for below in (True, False):
        profile = _profile([row], {"units": {"mixed(time delta)": "us"}})
        time = {"time": 0, "uncertainty": 38690, "below": below}
        profile["trace"] = {"overhead": {"functions": {"main": {"calls": 1, "inclusive": time}}}}
        assert (of(profile) is None) is below


def test_several_series_of_an_unknown_kind_have_no_value():
    rows = [{"uid": uid, "type": "speed", "amount": 1.0} for uid in ("a", "b")]
    assert of(_profile(rows)) is None
    assert of(_profile(rows[:1])).metric == "a"
    assert of(Profile()) is None


def test_what_is_better_the_larger_it_is_says_so():
    header = {"units": {"rate": "MB/s"}, "larger_is_better": ["rate"]}
    profile = _profile([{"uid": "read", "type": "rate", "amount": 5}], header)
    assert of(profile).larger_is_better


values = st.lists(st.floats(0.5, 2.0), min_size=2, max_size=20)


@given(values, values)
def test_pooled_profiles_are_one_sample(first, second):
    together = pooled([of(_timed(first, [1.0])), of(_timed(second, [1.0]))])
    direct = of(_timed(first + second, [1.0]))
    assert together.samples == direct.samples
    assert together.value == pytest.approx(direct.value, rel=1e-12)
    assert together.spread == pytest.approx(direct.spread, rel=1e-6, abs=1e-9)


def test_the_interval_of_a_difference_is_that_of_welch_with_the_error_of_the_ratio():
    old, new = [1.0, 1.1, 0.9, 1.05], [1.3, 1.25, 1.35, 1.3, 1.28]
    found = difference(of(_timed(old, [1.0])), of(_timed(new, [1.0])))
    mean_old, mean_new = (sum(one) / len(one) for one in (old, new))
    ratio = mean_new / mean_old
    # The test of a ratio is that of the difference new - ratio * old, whose interval scipy gives.
    result = stats.ttest_ind(new, [ratio * one for one in old], equal_var=False)
    low, high = result.confidence_interval(0.95)
    assert found.share == pytest.approx(ratio - 1)
    assert found.low == pytest.approx(ratio - 1 + low / mean_old, rel=1e-6)
    assert found.high == pytest.approx(ratio - 1 + high / mean_old, rel=1e-6)


def test_values_of_two_metrics_do_not_differ_in_percent():
    time, memory = Measured("real time", 1.0, "s", None, 1), Measured("peak memory", 1.0, "B", None, 1)
    assert difference(time, memory) is None
    assert difference(time._replace(value=0.0), time) is None


def test_single_measurements_differ_without_an_interval():
    old, new = (Measured("real time", value, "s", None, 1) for value in (2.0, 3.0))
    assert difference(old, new) == (0.5, None, None)


def test_what_is_no_number_is_left_out():
    found = of(_timed([1.0, math.nan, 3.0], [1.0]))
    assert (found.value, found.samples) == (2.0, 2)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-160, 1.0, 1e160, 1e200, 1e299])
def test_amounts_of_any_size_have_a_spread_and_differ(scale):
    found = of(_timed([2.0 * scale, 4.0 * scale, 6.0 * scale], [1.0, 1.0, 1.0]))
    assert found.spread == pytest.approx(2 * scale, rel=1e-2)
    both = pooled([found, found])
    assert (both.samples, both.spread) == (6, pytest.approx(scale * math.sqrt(16 / 5), rel=1e-2))
    change = difference(found, found._replace(value=5.0 * scale))
    assert change.share == pytest.approx(0.25, rel=1e-2)
    assert change.low < change.share < change.high


def test_a_ratio_beyond_the_largest_float_is_no_difference():
    assert difference(of_values("a", [1e-300], ""), of_values("a", [1e299], "")) is None


@pytest.mark.parametrize(
    ("value", "spread", "unit", "text"),
    [
        (0.208, 0.003, "s", "208 ms ± 3"),
        (1.5 * 2**20, 0.02 * 2**20, "B", "1.50 MiB ± 0.02"),
        (0.0, 1e295, "s", "0 s ± 1×10²⁹⁵ s"),
        (1e305, 0.0, "KiB", "1.02×10³⁰⁸ B ± 0 B"),
        (1.7e308, 1.7e308, "KiB", "∞ B ± ∞ B"),
    ],
)
def test_a_value_and_its_spread(value, spread, unit, text):
    assert readable_spread(value, spread, unit) == text
