"""Which differences of machines and builds make two profiles incomparable."""

from __future__ import annotations

from typing import Any

import pytest

from perun.core.machine import describe
from perun.measurement.comparable import differences
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
