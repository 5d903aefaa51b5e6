"""Which series stands for a profile, and what is read of it."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from perun.history.baseline import value_of
from perun.measurement.estimate import (
    Headline,
    Kind,
    Round,
    Sample,
    estimate,
    point,
    point_of,
    point_of_headlines,
)
from perun.measurement.headline import headline, processor
from perun.measurement.series import SeriesName, readings
from perun.profile.factory import Profile
from perun.store.summaries import profile_summary_of


def profile_of(rows: Sequence[Mapping[str, Any]], header: Mapping[str, Any] | None = None) -> Profile:
    profile = Profile()
    profile["header"] = {"type": "time", "units": {"time": "s"}, **(header or {})}
    profile.update_resources([dict(row) for row in rows])
    return profile


def timed(real: Sequence[float], user: Sequence[float] = (1.0,), **header: Any) -> Profile:
    return profile_of(
        [
            {"uid": "./prog", "type": "time", "subtype": name, "amount": value, "order": number}
            for name, values in (("user", user), ("real", real))
            for number, value in enumerate(values, 1)
        ],
        header,
    )


def found_of(profile: Profile) -> Headline:
    found = headline(profile)
    assert found is not None
    return found


def told(profile: Profile) -> tuple[str, str, Kind, float, int]:
    """Metric, unit and kind, the value and of how many measurements it is."""
    found = found_of(profile)
    value = estimate(point_of_headlines([found]))
    return found.metric, found.unit, found.kind, value.value, value.size


def test_of_a_command_it_is_the_real_time() -> None:
    assert told(timed([2.0, 4.0, 7.0])) == ("real time", "s", Kind.TIMED, 4.0, 3)


def test_of_memory_it_is_the_peak_of_the_program_not_that_of_a_function() -> None:
    rows = [
        {"uid": {"source": "p.c", "function": "main", "memory": "peak"}, "subtype": "peak", "amount": 10},
        {"uid": {"source": "p", "memory": "peak"}, "subtype": "peak", "amount": 30},
        {"uid": {"source": "p.c", "function": "main"}, "subtype": "malloc", "amount": 500, "address": 1},
    ]
    profile = profile_of([{"type": "memory", **row} for row in rows], {"units": {"memory": "B"}})
    assert told(profile) == ("peak memory", "B", Kind.COUNTED, 30.0, 1)


def test_of_instructions_it_is_the_number_of_the_program() -> None:
    rows = [
        {"uid": uid, "type": "instructions", "subtype": subtype, "amount": amount}
        for uid, subtype, amount in (
            ("main", "inclusive", 900.0),
            ("f", "inclusive", 600.0),
            ("main", "exclusive", 300.0),
            ("f", "exclusive", 600.0),
        )
    ]
    profile = profile_of(rows, {"units": {"instructions": ""}})
    assert told(profile)[0::3] == ("instructions", 900.0)
    assert found_of(profile).whole == 900.0


def of_main(amounts: Sequence[float] = (12.0,), optimization: object = None) -> Profile:
    rows = [("f", 5.0), *(("prog.c:main", amount) for amount in amounts)]
    profile = profile_of(
        [{"uid": uid, "type": "mixed", "subtype": "time delta", "amount": amount} for uid, amount in rows],
        {"units": {"mixed(time delta)": "us"}},
    )
    if optimization is not None:
        profile["trace"] = {"optimization": optimization}
    return profile


def test_of_calls_it_is_the_time_of_main_in_all_its_calls() -> None:
    assert told(of_main([12.0, 30.0])) == ("time of main", "s", Kind.TIMED, 42e-6, 1)


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
def test_a_time_of_main_is_not_that_of_another_choice_of_functions(optimization: Any, metric: str) -> None:
    """Recording fewer calls takes less time: the one would seem to be faster than the other."""
    assert found_of(of_main(optimization=optimization)).metric == metric


@pytest.mark.parametrize("below", [True, False])
def test_a_time_of_main_that_recording_may_explain_stands_for_nothing(below: bool) -> None:
    """It may be 0 where recording took more time than the program."""
    row = {"uid": "main", "type": "mixed", "subtype": "time delta", "amount": 0.0}
    profile = profile_of([row], {"units": {"mixed(time delta)": "us"}})
    time = {"time": 0, "uncertainty": 38690, "below": below}
    profile["trace"] = {"overhead": {"functions": {"main": {"calls": 1, "inclusive": time}}}}
    assert (headline(profile) is None) is below


def test_the_only_series_of_an_unknown_kind_stands_for_its_profile() -> None:
    rows = [{"uid": uid, "type": "speed", "amount": 1.0} for uid in ("a", "b")]
    assert headline(profile_of(rows)) is None
    assert told(profile_of(rows[:1])) == ("a", "", Kind.PRINTED, 1.0, 1)
    assert headline(Profile()) is None


def test_what_is_better_the_larger_it_is_says_so() -> None:
    header = {"units": {"rate": "MB/s"}, "larger_is_better": ["rate"]}
    row = {"uid": "read", "type": "rate", "amount": 5}
    assert found_of(profile_of([row], header)).larger_is_better
    assert not found_of(profile_of([row], {"units": {"rate": "MB/s"}})).larger_is_better


def test_what_is_no_number_is_left_out() -> None:
    assert told(timed([1.0, math.nan, 3.0]))[3:] == (2.0, 2)
    assert headline(timed([math.nan])) is None


def test_workloads_are_members_of_a_family() -> None:
    rows = [
        {"uid": "p", "type": "time", "subtype": "real", "amount": amount, "workload": workload, "order": n}
        for n, (workload, amount) in enumerate((("10", 1.0), ("20", 4.0), ("10", 1.0), ("20", 4.0)))
    ]
    (only,) = found_of(profile_of(rows)).rounds
    assert {name: sample.size for name, sample in only.samples.items()} == {"10": 2, "20": 2}
    assert told(profile_of(rows))[3:] == (pytest.approx(2.0), 4)  # the geometric mean
    (alone,) = found_of(profile_of(rows[::2])).rounds
    assert list(alone.samples) == [""]  # so that it continues the series of that command


@pytest.mark.parametrize("scale", [1e-140, 1.0, 1e140])
@pytest.mark.parametrize(
    "amounts", [[2.0], [2.0, 2.0], [2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1.0], [-1.0, 2.0, 3.0]]
)
def test_its_numbers_are_those_of_all_series(amounts: list[float], scale: float) -> None:
    """What lists read without numpy, and what checks read with it."""
    profile = timed([amount * scale for amount in amounts])
    found = found_of(profile)
    every = readings(profile)
    (reading,) = [own for one, own in every.items() if one.location == found.location]
    both = point_of_headlines([found]), point([(reading, ())], found.kind)
    mine, other = (own.samples_of("") for own in both)
    assert len(mine) == len(other) == 1
    assert mine[0] == other[0]._replace(spread=mine[0].spread)
    spreads = [one[0].spread for one in (mine, other)]
    assert spreads == [None, None] or spreads[0] == pytest.approx(spreads[1], rel=1e-9)


def clocked(
    real: Sequence[float], user: Sequence[float], system: Sequence[float], **more: Sequence[Any]
) -> Profile:
    """The three clocks of some runs, in the order of measuring."""
    return profile_of([
        {"uid": "./prog", "type": "time", "subtype": name, "amount": value, "order": number}
        | {key: column[number] for key, column in more.items()}
        for name, values in (("real", real), ("user", user), ("sys", system))
        for number, value in enumerate(values)
    ])  # fmt: skip


def test_of_a_command_that_the_processor_limits_its_clock_is_told() -> None:
    # In the second run another program had the processor for a second.
    profile = clocked([2.05, 3.1, 2.06], [1.9, 1.95, 1.9], [0.105, 0.105, 0.115])
    found = processor(profile)
    assert found is not None
    assert (found.metric, found.location, found.unit) == ("cpu time", "./prog [cpu]", "s")
    value = estimate(point_of_headlines([found]))
    assert value == estimate(point([(readings(profile)[name_of(profile, "cpu")], ())], Kind.TIMED))
    assert value.value == pytest.approx(2.015)


def name_of(profile: Profile, subtype: str) -> SeriesName:
    return next(name for name in readings(profile) if name.subtype == subtype)


def test_one_profile_of_a_version_shows_for_all_that_the_processor_limits_it() -> None:
    quiet = profile_summary_of(clocked([2.05, 2.06], [1.9, 1.95], [0.1, 0.1]))
    busy = profile_summary_of(clocked([4.2, 5.1], [1.94, 1.95], [0.105, 0.115]))  # each run was disturbed
    side_by_side = profile_summary_of(clocked([1.0, 1.0], [1.901, 1.902], [0.1, 0.1]))
    assert value_of([busy, quiet]).by_processor.metric == "cpu time"
    assert value_of([busy, quiet]).by_processor.estimate.value == pytest.approx(2.04, abs=0.02)
    for facts in ([busy, busy], [quiet, side_by_side]):
        assert value_of(facts).by_processor.metric == "real time"


def test_that_others_had_the_processors_is_no_waiting_of_the_command() -> None:
    profile = clocked([4.2, 5.1], [1.94, 1.95], [0.105, 0.115])
    assert processor(profile) is None
    profile["collector_info"] = {"name": "time", "waited": [2.1, 2.9]}
    assert processor(profile) is None  # they are of runs 1 and 2
    told = clocked([4.2, 4.2, 5.1], [1.94, 1.94, 1.95], [0.105, 0.105, 0.115])
    told["collector_info"] = {"name": "time", "waited": [2.1, 2.9]}
    assert processor(told) is not None


def test_the_readings_of_a_family_agree() -> None:
    profile = clocked([1.03, 4.04], [0.95, 3.9], [0.055, 0.052], workload=[100, 200])
    found = processor(profile)
    assert found is not None
    assert found.rounds == readings(profile)[name_of(profile, "cpu")].rounds


@pytest.mark.parametrize(
    "clocks",
    [
        pytest.param(([2.0, 2.0], [1.001, 1.002], [0.1, 0.1]), id="it waits"),
        pytest.param(([1.0, 1.0], [1.901, 1.902], [0.1, 0.1]), id="threads run side by side"),
        pytest.param(([1.0, 1.0], [0.961, 0.962], [0.1, 0.1]), id="threads run side by side for a while"),
        pytest.param(([0.101, 0.102], [0.09, 0.1], [0.01, 0.0]), id="a clock of hundredths"),
        pytest.param(([1.0, 1.0], [0.951, 0.962], [0.05]), id="runs differ in their clocks"),
        pytest.param(([1.0, 1.0], [0.951, 0.962], []), id="a clock is missing"),
        pytest.param(([0.0, 1.0], [0.001, 0.962], [0.001, 0.001]), id="a run took no time"),
    ],
)
def test_of_any_other_command_it_is_not(clocks: tuple[list[float], ...]) -> None:
    assert processor(clocked(*clocks)) is None


def test_of_what_is_no_command_there_is_none() -> None:
    rows = [{"uid": "f", "type": "mixed", "amount": 1.0}]
    assert processor(profile_of(rows)) is None


@pytest.mark.parametrize(("used", "limited"), [(1.9, False), (2.5, True)])
def test_no_workload_may_wait_for_most_of_its_time(used: float, limited: bool) -> None:
    profile = clocked([1.0, 4.0], [0.951, used], [0.031, 0.051], workload=[100, 200])
    assert (processor(profile) is not None) is limited


def test_clocks_that_differ_by_how_they_are_read_are_the_same() -> None:
    assert processor(clocked([1.0, 1.0], [0.941, 0.942], [0.1, 0.1])) is not None


def test_what_is_of_several_places_stands_for_nothing() -> None:
    one = {"header": {"type": "speed"}, "resource_type_map": {"a%%0%%": {"type": "speed"}}}
    for uid in ({"uid": ["a", "b"]}, {}):
        profile = Profile({**one, "resources": {"a%%0%%": {"amount": [1.0, 2.0], **uid}}})
        assert (headline(profile) is None) is bool(uid)


def test_a_version_of_many_profiles_takes_time_in_proportion() -> None:
    def calls(count: int) -> int:
        rounds = [(Round("", 0, {"": Sample(1, 1.0, None, True)}),)] * count
        seen = []
        sys.setprofile(lambda frame, event, argument: seen.append(event))
        try:
            point_of(rounds, Kind.TIMED)
        finally:
            sys.setprofile(None)
        return len(seen)

    assert calls(400) < 2.1 * calls(200)
