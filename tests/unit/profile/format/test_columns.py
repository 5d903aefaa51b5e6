"""Packed columns: no value and no type may change, whatever is put into them and however."""

import json
import math
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.profile.factory import Profile
from perun.profile.format import columns
from perun.profile.format.columns import PACKED_FROM, extended, is_packed, pack, pack_decoded, unpacked

whole = st.integers() | st.integers(-(2**63), 2**63 - 1)
odd = st.none() | st.booleans() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
values = (
    st.lists(whole, max_size=40)
    | st.lists(st.floats(), max_size=40)
    | st.lists(whole | st.floats() | odd, max_size=40)
)


@contextmanager
def packed_from(length: int) -> Iterator[None]:
    with patch.object(columns, "PACKED_FROM", length):
        yield


@given(values)
def test_packing_changes_nothing(values: list[Any]) -> None:
    with packed_from(1):
        column = pack(list(values))
    assert repr(unpacked(column)) == repr(values)
    assert repr(list(column)) == repr(values)


@given(values, values)
def test_adding_changes_nothing(first: list[Any], second: list[Any]) -> None:
    with packed_from(1):
        column = extended(pack(list(first)), list(second))
    assert repr(unpacked(column)) == repr(first + second)


@given(values)
def test_what_json_tells_of_the_kinds_is_right(values: list[Any]) -> None:
    text = json.dumps(values).encode()
    decoded = json.loads(text)
    with packed_from(1):
        told, seen = pack_decoded(list(decoded), text), pack(list(decoded))
    assert repr(told) == repr(seen)


@pytest.mark.parametrize(("values", "code"), [
    ([1, 2**63 - 1, -(2**63)], "q"),
    ([1.5, -0.0, math.inf], "d"),
    ([1, 2.0], ""),
    ([1, True], ""),
    ([1.5, None], ""),
    ([1, 2**63], ""),
    (["1", "2"], ""),
])  # fmt: skip
def test_what_is_packed(values: list[Any], code: str) -> None:
    column = pack(values * PACKED_FROM)
    assert getattr(column, "typecode", "") == code
    assert is_packed(column) is bool(code)
    assert not is_packed(pack(values[:1]))


def test_a_column_may_grow_while_numpy_looks_at_it() -> None:
    np = pytest.importorskip("numpy", reason="numpy is not installed")
    column = array("q", range(100))
    view = np.frombuffer(column, "q")
    assert list(extended(column, [100])) == list(range(101))
    assert view.tolist() == list(range(100))


def large(count: int = 1000) -> Profile:
    profile = Profile()
    profile.update_resources(
        {"uid": f"f{n % 2}", "amount": n / 2, "structure-unit-size": n, "order": "x"} for n in range(count)
    )
    return profile


def test_large_columns_are_packed_and_seen_as_lists() -> None:
    profile = large()
    group = next(profile.groups())
    assert {name: getattr(column, "typecode", "list") for name, column in group.columns.items()} == {
        "amount": "d",
        "structure-unit-size": "q",
        "order": "list",
    }
    assert group.size == 500
    seen = profile["resources"]["f0#0"]
    assert type(seen["amount"]) is list and seen["amount"][:3] == [0.0, 1.0, 2.0]
    assert json.loads(json.dumps(profile.serialize()))["resources"]["f0#0"] == seen


def test_what_is_changed_in_the_lists_is_changed_in_the_profile() -> None:
    profile = large()
    profile["resources"]["f0#0"]["amount"][0] = "changed"
    assert next(profile.all_resources())[1]["amount"] == "changed"
    profile.update_resources([{"uid": "f0", "amount": 5, "structure-unit-size": 1, "order": "x"}])
    assert profile["resources"]["f0#0"]["amount"][-1] == 5


def test_packed_columns_take_what_does_not_fit() -> None:
    profile = large()
    profile.update_resources([{"uid": "f0", "amount": None, "structure-unit-size": 2**70, "order": "x"}])
    column = profile["resources"]["f0#0"]
    assert column["amount"][-2:] == [499.0, None]
    assert column["structure-unit-size"][-2:] == [998, 2**70]


def test_a_copy_of_packed_columns_is_independent() -> None:
    profile = large()
    copy = profile.copy()
    copy.update_resources([{"uid": "f0", "amount": 1.5, "structure-unit-size": 1, "order": "x"}])
    assert len(list(profile.all_resources())) == 1000
    assert len(list(copy.all_resources())) == 1001
    assert large() == profile


def test_nothing_is_changed_where_a_resource_cannot_be_read() -> None:
    profile = large(4)
    before = dict(profile)

    def broken() -> Iterator[dict[str, Any]]:
        yield {"uid": "f0", "amount": 1.0}
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        profile.update_resources(broken(), replace=True)
    assert dict(profile) == before


def test_replacing_resources_by_what_is_made_from_them() -> None:
    profile = large()
    profile.update_resources(
        ({**resource, "amount": resource["amount"] * 2} for _, resource in profile.all_resources()),
        replace=True,
    )
    assert profile["resources"]["f1#0"]["amount"][:2] == [1.0, 3.0]


def test_equal_nested_constants_are_kept_once() -> None:
    profile = Profile()
    trace = [{"function": "main", "line": 1}]
    profile.update_resources(
        {"uid": f"f{n}", "amount": 1, "trace": json.loads(json.dumps(trace))} for n in range(3)
    )
    traces = [group.constants["trace"] for group in profile.groups()]
    assert traces == [trace] * 3
    assert len(set(map(id, traces))) == 1
