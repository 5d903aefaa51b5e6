"""The clusterizer on profiles: who is clustered with whom, and the parameters of the two strategies."""

import json
import math
from typing import Any

import pytest

from perun.core.errors import ConfigError, ProfileError
from perun.plugin.api import PostprocessContext
from perun.plugin.params import from_mapping, to_mapping
from perun.postprocess.clusterizer import Clusterizer, ClusterizerParams
from perun.profile.factory import Profile
from perun.profile.format.json import dumps_pending, loads

MALLOC_TRACE = [
    {"line": 0, "function": "malloc", "source": "unreachable"},
    {"line": 21, "function": "main", "source": "../memory_collect_test.c"},
    {"line": 0, "function": "__libc_start_main", "source": "unreachable"},
    {"line": 0, "function": "_start", "source": "unreachable"},
]


def made(resources: list[dict[str, Any]]) -> Profile:
    profile = Profile({"header": {"type": "memory"}, "collector_info": {"name": "memory", "params": {}}})
    profile.update_resources(resources)
    return profile


def amounts(*values: Any, **constants: Any) -> list[dict[str, Any]]:
    shared = {"uid": "f", "type": "memory", "subtype": "malloc", **constants}
    return [{"amount": value, **shared} for value in values]


def clustered(profile: Profile, notes: list[str] | None = None, **params: Any) -> list[int]:
    given = from_mapping(Clusterizer.Params, params, "'clusterizer'")
    ctx = PostprocessContext(note=[].append if notes is None else notes.append)
    processed = Clusterizer().process(profile, given, ctx)
    return [resource["cluster"] for _, resource in processed.all_resources()]


def test_example_of_the_manual() -> None:
    uid = "../memory_collect_test.c:main#22"
    (resource,) = amounts(0, trace=MALLOC_TRACE, address=31584848, uid=uid)
    profile = Profile({
        "header": {"type": "memory"},
        "collector_info": {"name": "memory", "params": {}},
        "snapshots": [{"time": "5.000000", "resources": [resource, {**resource, "amount": 4}]}],
    })  # fmt: skip
    assert clustered(profile) == [1, 2]
    (_, first), _ = profile.all_resources()
    assert first == {**resource, "cluster": 1, "snapshot": 0, "time": "5.000000"}


def test_sort_order_keeps_the_order_of_the_resources() -> None:
    profile = made(amounts(30, 10, 20, 10))
    assert clustered(profile) == [4, 1, 3, 2]
    assert [resource["amount"] for _, resource in profile.all_resources()] == [30, 10, 20, 10]


def test_resources_of_one_type_subtype_and_uid_are_clustered_together() -> None:
    profile = made([
        *amounts(1, 4, trace="a"), *amounts(2, 3, trace="b", snapshot=1), *amounts(9, uid="g"),
        *amounts(8, subtype="free"), *amounts(7, type="time"),
        *amounts(5, 6, uid={"source": "a.c", "function": "f"}),
        *amounts(4, uid={"function": "f", "source": "a.c"}, trace="c")
    ])  # fmt: skip
    assert clustered(profile) == [1, 4, 2, 3, 1, 1, 1, 2, 3, 1]


def test_uids_that_are_a_column_count_too() -> None:
    profile = Profile({
        "resources": {"#0": {"amount": [1, 2, 8], "uid": ["f", "g", "f"]}},
        "resource_type_map": {"#0": {"type": "time"}},
    })  # fmt: skip
    assert sorted(clustered(profile)) == [1, 1, 2]


@pytest.mark.parametrize(("params", "clusters"), [
    ({}, [1, 2, 3, 4, 5]),
    ({"window-width": 0.4}, [1, 2, 3, 3, 4]),
    ({"window-width": 0.4, "window-height": 0.1}, [1, 1, 2, 2, 3]),
    ({"window_width": 1, "window-height": 0.1, "relative-window-height": True}, [1, 1, 1, 2, 3]),
    ({"window-width": 2, "fixed_window_width": True, "window-height": 0.1}, [1, 1, 2, 2, 3]),
    ({"window-width": 1, "window-height": 10, "fixed-window-height": True}, [1, 1, 1, 2, 3]),
    ({"window-width": 1, "window-height": 11, "fixed-window-height": True}, [1, 1, 1, 1, 2]),
    ({"weighted-window-width": True, "window-height": 9}, [1, 2, 3, 4, 5]),
    ({"relative_window_width": True, "window-width": 0.8, "window-height": 9}, [1, 1, 1, 1, 2]),
])  # fmt: skip
def test_sliding_window(params: dict[str, Any], clusters: list[int]) -> None:
    assert clustered(made(amounts(100, 104, 110, 111, 300)), strategy="sliding_window", **params) == clusters


def test_weighted_width() -> None:
    given = amounts(5, 7, 5, 5, 7, 9)
    assert clustered(made(given), strategy="sliding_window", weighted_window_width=True) == [1, 2, 1, 1, 2, 3]


@pytest.mark.parametrize("strategy", ["sort_order", "sliding_window"])
def test_odd_amounts_are_clustered_last(strategy: str) -> None:
    notes: list[str] = []
    odd = [math.nan, math.inf, -math.inf, None, "many", True, 10**400]
    clusters = clustered(made(amounts(*odd, 0, -5, 3)), notes, strategy=strategy)
    assert clusters[-3:] == [2, 1, 3]
    assert min(clusters[:-3]) == 4
    assert notes == ["7 of 10 amounts are not finite numbers; they come last"]


def test_every_resource_gets_a_cluster() -> None:
    profile = made(
        [*amounts(2, 1), {"uid": "f", "type": "memory", "subtype": "malloc", "order": 1}, {"uid": "g"}]
    )
    assert clustered(profile) == [2, 1, 3, 1]
    assert list(loads(dumps_pending(profile), "written").all_resources()) == list(profile.all_resources())


def test_again_replaces_the_clusters() -> None:
    profile = made([{**resource, "cluster": 7} for resource in amounts(2, 1)])
    assert clustered(profile) == [2, 1]
    assert clustered(profile, strategy="sliding_window", window_width=1, window_height=1) == [1, 1]
    assert "cluster" not in profile["resource_type_map"]["f#0"]
    assert profile["resources"]["f#0"]["cluster"] == [1, 1]


@pytest.mark.parametrize("given", [[], [{"uid": "f"}], amounts(math.nan, None)])
def test_nothing_to_cluster_by(given: list[dict[str, Any]]) -> None:
    with pytest.raises(ProfileError, match="no resource has a finite number"):
        clustered(made(given))


def test_defaults() -> None:
    params = ClusterizerParams()
    assert (params.strategy, params.window_width, params.width_kind) == ("sort_order", 0.01, "relative")
    assert (params.window_height, params.height_kind) == (0.01, "relative")
    assert from_mapping(ClusterizerParams, to_mapping(params), "noted") == params


@pytest.mark.parametrize(("values", "message"), [
    ({"strategy": "bubbles"}, "strategy must be one of sort_order, sliding_window"),
    ({"window-width": -1}, "window_width must be at least 0"),
    ({"window-height": "tall"}, "window_height must be a number"),
    ({"window-height": math.inf}, "must be finite"),
    ({"window-heigt": 1}, "unknown parameter 'window-heigt'"),
    ({"relative-window-height": True, "fixed-window-height": True}, "window_height exclude each other"),
    ({"relative-window-width": True, "weighted-window-width": True}, "window_width exclude each"),
    ({"fixed-window-width": 1}, "fixed_window_width must be true or false"),
])  # fmt: skip
def test_wrong_parameters(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_mapping(ClusterizerParams, values, "'clusterizer'")


def test_every_one_of_many_resources_has_its_cluster() -> None:
    count = 100_000  # whatever took the square of it would not end
    columns = {"amount": [float(n * 7919 % count) for n in range(count)], "order": list(range(count))}
    regions = {"resources": {"f#0": columns}, "resource_type_map": {"f#0": {"uid": "f", "type": "time"}}}
    for params in ({}, {"strategy": "sliding_window", "window_width": 1e-5}):
        profile = Profile(json.loads(json.dumps(regions)))
        given = from_mapping(ClusterizerParams, params, "'clusterizer'")
        Clusterizer().process(profile, given, PostprocessContext())
        assert sorted(profile["resources"]["f#0"]["cluster"]) == list(range(1, count + 1))
