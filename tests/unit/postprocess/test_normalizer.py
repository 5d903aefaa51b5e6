"""The normalizer on profiles: the manual's example, several snapshots and types, and odd amounts."""

import json
import math
from typing import Any

import pytest

from perun.core.errors import ConfigError, ProfileError
from perun.plugin.api import PostprocessContext
from perun.plugin.params import NoParams, from_mapping
from perun.postprocess.normalizer import Normalizer
from perun.profile.factory import Profile
from perun.profile.format.json import dumps_pending, loads


def made(resources: list[dict[str, Any]]) -> Profile:
    profile = Profile({"header": {"type": "time"}, "collector_info": {"name": "time", "params": {}}})
    profile.update_resources(resources)
    return profile


def normalized(profile: Profile, notes: list[str] | None = None) -> list[Any]:
    ctx = PostprocessContext(note=[].append if notes is None else notes.append)
    processed = Normalizer().process(profile, NoParams(), ctx)
    return [resource.get("amount") for _, resource in processed.all_resources()]


def amounts(*values: Any) -> list[dict[str, Any]]:
    return [{"amount": value, "uid": "f", "type": "time"} for value in values]


def test_example_of_the_manual() -> None:
    given = {"sys": 0.59, "user": 0.32, "real": 2.32}
    profile = made([{"amount": amount, "uid": uid} for uid, amount in given.items()])
    Normalizer().process(profile, NoParams(), PostprocessContext())
    assert {resource["uid"]: resource["amount"] for _, resource in profile.all_resources()} == {
        "sys": 0.2543103448275862,
        "user": 0.13793103448275865,
        "real": 1.0,
    }


def test_each_snapshot_and_type_has_its_own_maximum() -> None:
    profile = made([
        {"amount": amount, "uid": uid, "type": kind, "snapshot": snapshot}
        for amount, uid, kind, snapshot in [
            (1, "f", "time", 0),
            (4, "g", "time", 0),
            (10, "f", "memory", 0),
            (5, "f", "memory", 0),
            (3, "f", "time", 1),
            (2, "f", "time", 1),
        ]
    ])  # fmt: skip
    assert sorted(normalized(profile)) == sorted([0.25, 1, 1, 0.5, 1, 2 / 3])


def test_a_snapshot_that_is_a_column_counts_too() -> None:
    profile = Profile({
        "resources": {"f#0": {"amount": [1, 2, 8], "snapshot": [0, 0, 1]}},
        "resource_type_map": {"f#0": {"uid": "f", "type": "time"}},
    })  # fmt: skip
    assert normalized(profile) == [0.5, 1, 1]


def test_old_layouts() -> None:
    resources = [{"amount": 2, "uid": "f", "type": "time"}, {"amount": 1, "uid": "f", "type": "time"}]
    snapshots = [{"time": 1, "resources": resources}, {"time": 2, "resources": resources[1:]}]
    assert normalized(Profile({"snapshots": snapshots})) == [1, 0.5, 1]


@pytest.mark.parametrize(("given", "expected"), [
    ((0, 0), [0, 0]),
    ((0, -3), [0, 0]),
    ((-1, 4), [-0.25, 1]),
    ((-2, -4), [1, 2]),
    ((7,), [1]),
    ((1e308, 5e-324), [1, 0]),
    ((-1e308, 1e-308), [-1.7976931348623157e308, 1]),
    (("5", 10), [0.5, 1]),
])  # fmt: skip
def test_formula(given: tuple[Any, ...], expected: list[float]) -> None:
    assert normalized(made(amounts(*given))) == expected


def test_odd_amounts_stay_as_they_are() -> None:
    notes: list[str] = []
    odd = [math.inf, None, "many", True, 10**400, [1]]
    assert normalized(made(amounts(2, *odd, 4)), notes) == [0.5, *odd, 1]
    assert notes == ["6 of 8 amounts are not finite numbers; they do not change"]
    (number, other) = normalized(made(amounts(2, math.nan)))
    assert number == 1
    assert math.isnan(other)


def test_resources_without_an_amount_get_none() -> None:
    profile = made([{"uid": "f", "type": "time", "order": 1}, *amounts(2, 4), {"uid": "g"}])
    notes: list[str] = []
    assert normalized(profile, notes) == [None, 0.5, 1, None]
    assert [dict(one) for _, one in profile.all_resources()][-1] == {"uid": "g"}
    assert len(notes) == 1


def test_an_amount_among_the_constants() -> None:
    profile = Profile({
        "resources": {"f#0": {"order": [1, 2]}, "g#0": {}},
        "resource_type_map": {"f#0": {"uid": "f", "amount": 2}, "g#0": {"uid": "g", "amount": 4}},
    })  # fmt: skip
    assert normalized(profile) == [0.5, 0.5, 1]
    assert "amount" not in profile["resource_type_map"]["f#0"]


@pytest.mark.parametrize("given", [[], [{"uid": "f"}], amounts(math.nan), amounts("x")])
def test_nothing_to_normalize(given: list[dict[str, Any]]) -> None:
    with pytest.raises(ProfileError, match="no resource has a finite number"):
        normalized(made(given))


def test_twice_is_the_same_as_once() -> None:
    profile = made(amounts(3, 7, 9))
    once = normalized(profile)
    assert normalized(profile) == once


def test_what_is_written_is_read_again() -> None:
    profile = made([*amounts(3, 7), {"amount": 1, "uid": {"source": "a.c", "function": "f"}, "type": "time"}])
    normalized(profile)
    assert list(loads(dumps_pending(profile), "written").all_resources()) == list(profile.all_resources())
    json.dumps(profile.serialize(), allow_nan=False)


def test_it_has_no_parameters() -> None:
    assert from_mapping(Normalizer.Params, None, "normalizer") == NoParams()
    with pytest.raises(ConfigError, match="unknown parameter 'method'"):
        from_mapping(Normalizer.Params, {"method": "full"}, "normalizer")
