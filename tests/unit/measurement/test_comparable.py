"""Which differences of machines and builds make two profiles incomparable, and what their speed tells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from perun.core.machine import describe
from perun.measurement.comparable import (
    PROCESSOR,
    WALL,
    conditions,
    differences,
    drifted,
    slower,
    speed_of,
    told_slower,
    usual,
)
from perun.profile import session
from perun.profile.factory import Profile

MACHINE: dict[str, Any] = {
    "architecture": "x86_64",
    "system": "Linux",
    "release": "6.1.0-18-amd64",
    "libc": "glibc 2.36",
    "cpu": {"model": "Test CPU", "total": 4, "available": 4, "governor": "performance"},
    "load": [0.5, 0.4, 0.3],
    "build": "CFLAGS=-O2",
}


def profile(kind: str = "time", **changes: Any) -> Profile:
    machine = {**MACHINE, **changes, "cpu": {**MACHINE["cpu"], **changes.get("cpu", {})}}
    return Profile({"header": {"type": kind}, "machine": machine})


def names(one: Profile, other: Profile) -> list[str]:
    found = differences(one, other)
    assert [part.name for part in differences(other, one)] == [part.name for part in found]
    return [part.name for part in found]


@pytest.mark.parametrize(
    ("changes", "name", "of_counts"),
    [
        ({"cpu": {"model": "Other CPU"}}, "processor", False),
        ({"cpu": {"total": 8}}, "number of processors", False),
        ({"cpu": {"governor": "powersave"}}, "CPU governor", False),
        ({"release": "6.8.1"}, "kernel", False),
        ({"libc": "glibc 2.41"}, "C library", True),
        ({"build": "CFLAGS=-O0"}, "build", True),
        ({"load": [17.0, 9.0, 3.0]}, "load", False),
    ],
)
def test_each_difference_is_named(changes: dict[str, Any], name: str, of_counts: bool) -> None:
    assert names(profile(), profile(**changes)) == [name]
    assert names(profile("memory"), profile("memory", **changes)) == ([name] if of_counts else [])
    one = differences(profile(), profile(**changes))[0]
    assert one.baseline and one.target and one.baseline != one.target


def test_what_a_profile_does_not_say_does_not_differ() -> None:
    older = Profile({"header": {"type": "time"}})
    assert names(older, profile()) == []
    odd = Profile({"header": {"type": "time"}, "machine": {"cpu": "?", "load": "high"}})
    assert names(odd, profile()) == []
    for key in MACHINE:
        less = Profile({"header": {"type": "time"}, "machine": {**MACHINE}})
        del less["machine"][key]
        assert names(less, profile()) == []


def test_the_same_machine_is_comparable_with_itself_under_some_load() -> None:
    now = describe()
    assert names(*(Profile({"header": {"type": "time"}, "machine": now}) for _ in range(2))) == []
    assert names(profile(load=[3.0]), profile(load=[12.0])) == []
    assert names(profile(load=[5.0]), profile(load=[40.0])) == []


def test_what_was_measured_side_by_side_is_comparable() -> None:
    one, other = profile(), profile(load=[30.0])
    session.mark(one, session.Session("s", "base", runs_are_rounds=True))
    session.mark(other, session.Session("s", "head", runs_are_rounds=True))
    assert names(one, other) == []


def loops(times: Sequence[float], wall: Sequence[float] = (), loop: Any = 1) -> dict[str, Any]:
    """What the description of a machine says of its speed: milliseconds of the fixed loop."""
    own, passed = ([round(one * 1e6) for one in given] for given in (times, wall or times))
    return {"speed": {"loop": loop, "processor": own, "wall": passed}}


def speed(times: Sequence[float], wall: Sequence[float] = (), loop: Any = 1) -> str:
    return speed_of(conditions(profile(**loops(times, wall, loop))))


def test_a_speed_is_no_condition_that_differs() -> None:
    assert names(profile(**loops([20.0])), profile(**loops([40.0]))) == []
    assert speed([20.0]) and not speed_of(conditions(profile()))
    assert not speed_of(conditions(profile("memory", **loops([20.0]))))


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"loop": 1},
        {"processor": [1], "wall": [1]},
        {"loop": 1, "wall": 3},
        7,
        [],
        {"loop": 10**400, "processor": [5], "wall": [5]},
        {"loop": 1, "processor": [5], "wall": [10**400, "5"]},
    ],
)
def test_an_odd_speed_is_unknown(odd: Any) -> None:
    assert speed_of(conditions(profile(speed=odd))) == ""


def test_times_that_are_none_are_left_out() -> None:
    assert speed([20.0, 0.0, -1.0, 22.0]) == speed([20.0, 22.0])


def test_how_much_slower_a_machine_was() -> None:
    fast, slow = speed([20.0] * 9), speed([25.0] * 9)
    assert math.exp(slower([fast], [slow], PROCESSOR)) == pytest.approx(1.25)
    assert slower([slow], [fast], PROCESSOR) == -slower([fast], [slow], PROCESSOR)
    assert [told_slower(slower(*one, PROCESSOR)) for one in (([fast], [slow]), ([slow], [fast]))] == [
        "25 % slower", "20 % faster",
    ]  # fmt: skip
    assert slower([fast, fast], [slow, speed([25.5])], PROCESSOR) > 0.2  # the profiles of a version
    assert usual([fast, slow, speed([21.0]), speed([99.0], loop=2)], 1) == 21e6 and usual([], 1) is None


def test_a_speed_that_is_unknown_or_hardly_differs_is_none() -> None:
    fast, slow = speed([20.0] * 9), speed([25.0] * 9)
    assert slower([fast], [""], PROCESSOR) == slower([fast, ""], [slow], PROCESSOR) == 0
    assert slower([fast], [speed([25.0] * 9, loop=2)], PROCESSOR) == 0, "another loop is other work"
    assert slower([], [], PROCESSOR) == slower([fast], [], PROCESSOR) == 0
    for damaged in (
        "?",
        "1 2 3",
        "1 0 2e7 2e7 0 0",
        "1 9 nan 2e7 0 0",
        "inf 9 2e7 2e7 0 0",
        "1 9 9e99 2e7 0 0",
        "1 9 2e7 2e7 0 0 7",
    ):
        assert slower([damaged], [slow], PROCESSOR) == 0
    assert slower([speed([20.0] * 999)], [speed([20.5] * 999)], PROCESSOR) == 0, "no more than 3 %"
    assert slower([speed([20.0])], [speed([21.8])], PROCESSOR) == 0, "single loops scatter by as much"
    noisy = speed([25.0 * factor for factor in (0.6, 0.7, 0.8, 1.0, 1.0, 1.0, 1.2, 1.3, 1.4)])
    assert slower([fast], [noisy], PROCESSOR) == 0
    assert slower([fast, speed([24.0] * 9)], [slow], PROCESSOR) == 0, "profiles scatter, too"


def test_what_waits_for_a_processor_is_slower_by_the_clock_on_the_wall() -> None:
    quiet, busy = speed([20.0] * 9), speed([20.0] * 9, wall=[60.0] * 9)
    assert slower([quiet], [busy], PROCESSOR) == 0 < slower([quiet], [busy], WALL)


def test_a_session_in_which_the_machine_became_slower_is_told() -> None:
    def told(times: Sequence[float]) -> list[str]:
        return list(drifted(loops(times)))

    slower = "the machine became 23 % slower during the session"
    assert told([20.0] * 10 + [22.0] * 5 + [24.6] * 10) == [slower]
    assert told([25.0] * 5 + [20.0] * 10) == ["the machine became 20 % faster during the session"]
    assert told([20.0] * 7 + [25.0] * 7) == told([]) == list(drifted({})) == [], "too few"
    assert told([20.0, 25.0] * 12) == []


def test_a_session_of_nothing_but_noise_is_not_told() -> None:
    generator = np.random.default_rng(3)
    told = [
        list(drifted(loops((20 * np.exp(generator.normal(0, sigma, count))).tolist())))
        for sigma in (0.01, 0.03, 0.1)
        for count in (15, 30, 60)
        for _ in range(50)
    ]
    assert sum(map(len, told)) <= len(told) // 50
