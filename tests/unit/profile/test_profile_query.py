"""The query API with the manual's own examples (manual 2.4)."""

from typing import Any

import pytest

from perun.profile import query
from perun.profile.factory import Profile

SOURCE = "../memory_collect_test.c"
TRACE = [{"source": "unreachable", "function": name, "line": 0} for name in ("__libc_start_main", "_start")]
MALLOC = {
    "type": "memory", "subtype": "malloc", "address": 19284560, "amount": 4,
    "trace": [{"source": SOURCE, "function": "main", "line": 22}, *TRACE],
    "uid": {"source": SOURCE, "function": "main", "line": 22}
}  # fmt: skip
FREE = {
    "type": "memory",
    "subtype": "free",
    "address": 19284560,
    "amount": 0,
    "trace": [
        {"source": "unreachable", "function": "free", "line": 0},
        {"source": SOURCE, "function": "main", "line": 27},
        *TRACE,
    ],
    "uid": {"source": SOURCE, "function": "main", "line": 27},
}
UIDS = [
    "SLList_init(SLList*)",
    "SLList_search(SLList*, int)",
    "SLList_insert(SLList*, int)",
    "SLList_destroy(SLList*)",
]


@pytest.fixture
def memory() -> Profile:
    return Profile(
        snapshots=[{"time": "0.025000", "resources": [MALLOC]}, {"time": "0.050000", "resources": [FREE]}]
    )


@pytest.fixture
def time() -> Profile:
    amounts = {"real": 0.616, "user": 0.500, "sys": 0.125}
    resources = [{"amount": amount, "type": "time", "uid": uid} for uid, amount in amounts.items()]
    return Profile({"global": {"time": "0.0", "resources": resources}})


@pytest.fixture
def trace() -> Profile:
    resources = [
        {"amount": 11 + n, "subtype": "time delta", "type": "mixed", "uid": uid, "structure-unit-size": n}
        for n in range(3)
        for uid in UIDS
    ]
    models = [
        {"uid": UIDS[0], "model": model, "r_square": r, "coeffs": [{"name": "b0", "value": r}]}
        for r, model in enumerate(["constant", "exponential", "linear", "constant"])
    ]
    return Profile({"global": {"time": "0.0", "resources": resources, "models": models}})


def test_all_items_of() -> None:
    resource = {
        "type": "memory",
        "amount": 4,
        "uid": {"source": ".../memory_collect_test.c", "function": "main", "line": 22},
    }
    assert list(query.all_items_of(resource)) == [
        ("type", "memory"),
        ("amount", 4),
        ("uid", ".../memory_collect_test.c:main:22"),
        ("uid:source", ".../memory_collect_test.c"),
        ("uid:function", "main"),
        ("uid:line", 22),
    ]


def test_the_function_comes_first_in_a_trace() -> None:
    items = dict(query.all_items_of(FREE))
    assert items["trace"].startswith(f"free:unreachable:0,main:{SOURCE}:27,__libc_start_main:unreachable:0,")


def test_all_numerical_resource_fields_of(memory: Profile, time: Profile, trace: Profile) -> None:
    assert list(query.all_numerical_resource_fields_of(memory)) == [
        "address", "amount", "snapshot", "uid:line"
    ]  # fmt: skip
    assert list(query.all_numerical_resource_fields_of(time)) == ["amount"]
    assert list(query.all_numerical_resource_fields_of(trace)) == ["amount", "structure-unit-size"]


def test_numbers_in_some_resources_only_and_truth_values() -> None:
    profile = Profile()
    profile.update_resources(
        [{"uid": "f", "amount": "4B"}, {"uid": "f", "amount": 4.5}, {"uid": "f", "ok": True}]
    )
    assert list(query.all_numerical_resource_fields_of(profile)) == ["amount"]


def test_unique_resource_values_of(memory: Profile, time: Profile, trace: Profile) -> None:
    assert list(query.unique_resource_values_of(memory, "subtype")) == ["malloc", "free"]
    assert list(query.unique_resource_values_of(time, "amount")) == [0.616, 0.500, 0.125]
    assert list(query.unique_resource_values_of(trace, "uid")) == UIDS


@pytest.mark.parametrize(("key", "values"), [
    ("uid", [MALLOC["uid"], FREE["uid"]]),
    ("trace", [MALLOC["trace"], FREE["trace"]]),
    ("uid:line", [22, 27]),
    ("trace::function", ["main", "__libc_start_main", "_start", "free"]),
    ("snapshot", [0, 1]),
    ("amount", [4, 0]),
    ("amount:none", []),
    ("uid::function", []),
    ("trace:function", []),
    ("nothing", []),
])  # fmt: skip
def test_unique_values_of_nested_keys(memory: Profile, key: str, values: list[Any]) -> None:
    assert list(query.unique_resource_values_of(memory, key)) == values


def test_nested_values_in_a_column() -> None:
    profile = Profile()
    profile.update_resources([{"uid": "f", "amount": {"self": n % 2}} for n in range(4)])
    assert list(query.unique_resource_values_of(profile, "amount:self")) == [0, 1]
    assert list(query.unique_resource_values_of(profile, "amount")) == [{"self": 0}, {"self": 1}]


def test_all_key_values_of() -> None:
    functions = ["free", "main", "__libc_start_main", "_start"]
    assert list(query.all_key_values_of(FREE, "trace::function")) == functions
    assert list(query.all_key_values_of(FREE, "uid")) == [FREE["uid"]]
    assert list(query.all_key_values_of(FREE, "uid:function")) == ["main"]
    assert list(query.all_key_values_of(FREE, "uid:nothing:below")) == []


def test_unique_model_values_of(trace: Profile) -> None:
    assert list(query.unique_model_values_of(trace, "model")) == ["constant", "exponential", "linear"]
    assert list(query.unique_model_values_of(trace, "r_square")) == [0, 1, 2, 3]
    assert list(query.unique_model_values_of(trace, "coeffs::name")) == ["b0"]
    assert list(query.unique_model_values_of(trace, "coeffs"))[:1] == [[{"name": "b0", "value": 0}]]


def test_all_resources_and_models_of(memory: Profile, trace: Profile) -> None:
    assert list(query.all_resources_of(memory)) == list(memory.all_resources())
    assert [number for number, _ in query.all_resources_of(memory)] == [0, 1]
    assert list(query.all_models_of(trace)) == list(enumerate(trace["models"]))


def test_all_resource_fields_of(memory: Profile, time: Profile, trace: Profile) -> None:
    assert sorted(query.all_resource_fields_of(memory)) == sorted(
        ["type", "address", "amount", "uid:function", "uid:source", "uid:line", "uid", "trace", "subtype"]
    )
    assert sorted(query.all_resource_fields_of(time)) == ["amount", "type", "uid"]
    assert sorted(query.all_resource_fields_of(trace)) == [
        "amount", "structure-unit-size", "subtype", "type", "uid",
    ]  # fmt: skip


def test_models_of_the_manual() -> None:
    coefficients = [{"name": "b0", "value": 0.5644496762801648}, {"name": "b1", "value": 0.0}]
    old = {
        "x_interval_start": 0, "model": "constant", "method": "full", "coeffs": coefficients,
        "uid": "SLList_insert(SLList*, int)", "r_square": 0.0, "x_interval_end": 11892,
    }  # fmt: skip
    ((number, model),) = query.all_models_of(Profile({"global": {"resources": [], "models": [old]}}))
    assert (number, model["x_start"], model["x_end"], model["coeffs"]) == (0, 0, 11892, coefficients)


def test_fields_and_numbers_nested_in_a_column() -> None:
    profile = Profile(
        resources={
            "a": {"amount": ["x", {"self": 1}, {"other": "y", "deep": {"n": 2.5}}]},
            "empty": {"order": []},
        },
        resource_type_map={"a": {"uid": "f"}, "empty": {"line": 3}},
    )
    fields = ["uid", "amount", "amount:self", "amount:other", "amount:deep", "amount:deep:n"]
    assert sorted(query.all_resource_fields_of(profile)) == sorted(fields)
    assert list(query.all_numerical_resource_fields_of(profile)) == ["amount:deep:n", "amount:self"]


def test_packed_columns_are_queried_as_lists_are() -> None:
    profile = Profile()
    profile.update_resources({"uid": "f", "amount": n % 3 / 2, "order": n % 2} for n in range(200))
    assert list(query.all_numerical_resource_fields_of(profile)) == ["amount", "order"]
    assert list(query.unique_resource_values_of(profile, "amount")) == [0.0, 0.5, 1.0]
    assert list(query.unique_resource_values_of(profile, "order")) == [0, 1]
