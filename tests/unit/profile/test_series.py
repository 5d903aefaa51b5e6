"""The points of a profile, column by column: bit for bit what one resource after the other gives."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import ProfileError
from perun.profile.factory import Profile, flatten
from perun.profile.series import ResourceSeries, chosen_keys, numeric_fields, series

amounts = (
    st.integers()
    | st.floats()
    | st.booleans()
    | st.none()
    | st.sampled_from(["1.5", "x", " 2 ", "1_0", "nan", "1e999", 10**400, -(10**400), 2**53 + 1, 2**64, -0.0])
)
plain = st.lists(st.integers(-9, 9), min_size=35, max_size=40) | st.lists(
    st.floats(), min_size=35, max_size=40
)
uids = st.sampled_from(["f", {"function": "f", "line": 1}, {"line": 1, "function": "f"}, 3, None])
resources = st.lists(
    st.fixed_dictionaries({}, optional={
        "uid": uids, "amount": amounts, "structure-unit-size": amounts, "snapshot": st.integers(0, 2),
        "workload": amounts, "type": st.just("time")
    }),
    max_size=25,
)  # fmt: skip


def number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def one_by_one(profile: Profile, of: str, per: str) -> list[tuple[str, list[float], list[float], int]]:
    """What the points are, said as plainly as can be."""
    found: dict[str, tuple[list[float], list[float], list[int]]] = {}
    for _, resource in profile.all_resources():
        xs, ys, missing = found.setdefault(str(flatten(resource.get("uid", ""))), ([], [], []))
        x, y = number(resource.get(per)), number(resource.get(of))
        if x is None or y is None:
            missing.append(1)
        else:
            xs.append(x)
            ys.append(y)
    return [(uid, xs, ys, len(missing)) for uid, (xs, ys, missing) in found.items()]


def bits(found: ResourceSeries | tuple[str, list[float], list[float], int]) -> tuple[str, bytes, bytes, int]:
    uid, x, y, left_out = found[:4]
    return uid, np.array(x, float).tobytes(), np.array(y, float).tobytes(), left_out


def check(profile: Profile, of: str, per: str) -> None:
    expected = one_by_one(profile, of, per)
    if not any(x for _, x, _, _ in expected):
        with pytest.raises(ProfileError, match=f"no resource has numbers in both '{of}' and '{per}'"):
            list(series(profile, of, per))
        return
    found = list(series(profile, of, per))
    assert list(map(bits, found)) == list(map(bits, expected))
    assert all(one.x.dtype == one.y.dtype == np.float64 for one in found)


@given(resources)
def test_any_resources(resources: list[dict[str, Any]]) -> None:
    profile = Profile()
    profile.update_resources(resources)
    for of, per in (("amount", "structure-unit-size"), ("amount", "snapshot"), ("workload", "amount")):
        check(profile, of, per)
    expected = {
        name
        for _, resource in profile.all_resources()
        for name, value in resource.items()
        if number(value) is not None
    }
    assert set(numeric_fields(profile)) == expected


@given(st.lists(st.tuples(uids, plain, plain), max_size=4), st.booleans())
def test_packed_columns_beside_lists(groups: list[tuple[Any, list[Any], list[Any]]], packed: bool) -> None:
    profile = Profile(
        resources={
            f"{n}": {"amount": y[:35], "structure-unit-size": x[:35]} for n, (_, x, y) in enumerate(groups)
        },
        resource_type_map={f"{n}": {"uid": uid} for n, (uid, _, _) in enumerate(groups)},
    )
    profile.update_resources([{"uid": "f", "amount": 1, "structure-unit-size": "2.5"}])
    if packed:
        profile.pack()
    check(profile, "amount", "structure-unit-size")


def test_uids_in_a_column_and_groups_of_constants() -> None:
    profile = Profile(
        resources={
            "mixed": {"uid": ["f", "g", {"function": "f"}], "amount": [1, 2, "3"], "order": [1, 2, 3]},
            "alone": {},
            "empty": {"amount": [], "order": []},
        },
        resource_type_map={
            "mixed": {},
            "alone": {"uid": "g", "amount": 7, "order": "8"},
            "empty": {"uid": "never"},
        },
    )
    check(profile, "amount", "order")
    found = {one.uid: (one.x.tolist(), one.y.tolist()) for one in series(profile, "amount", "order")}
    assert found == {"f": ([1.0, 3.0], [1.0, 3.0]), "g": ([2.0, 8.0], [2.0, 7.0])}
    assert numeric_fields(profile) == ["amount", "order"]


def test_uids_without_points_keep_their_place() -> None:
    profile = Profile()
    profile.update_resources([
        {"uid": "a", "amount": "x", "order": 1},
        {"uid": "b", "amount": 1, "order": 1},
        {"uid": "c", "order": 1},
    ])  # fmt: skip
    found = [(one.uid, one.x.size, one.left_out) for one in series(profile, "amount", "order")]
    assert found == [("a", 0, 1), ("b", 1, 0), ("c", 0, 1)]


def test_what_was_measured_of_a_uid_is_told_apart() -> None:
    profile = Profile()
    profile.update_resources(
        {"uid": "./prog", "type": "time", "subtype": clock, "amount": n, "workload": n}
        for clock in ("real", "sys")
        for n in range(3)
    )
    profile.update_resources(
        {"uid": "f", "subtype": "time delta", "amount": n, "workload": n} for n in range(3)
    )
    apart = series(profile, per="workload", separate=True)
    found = [(one.location, one.uid, one.subtype, one.x.size) for one in apart]
    assert found == [
        ("./prog [real]", "./prog", "real", 3), ("./prog [sys]", "./prog", "sys", 3), ("f", "f", "", 3)
    ]  # fmt: skip
    together = [(one.location, one.x.size) for one in series(profile, per="workload")]
    assert together == [("./prog", 6), ("f", 3)]


def test_points_are_not_the_profile_itself() -> None:
    profile = Profile()
    profile.update_resources({"uid": "f", "amount": float(n), "order": float(n)} for n in range(100))
    (points,) = series(profile, "amount", "order")
    points.y[:] = 0
    profile.update_resources([{"uid": "f", "amount": 1.0, "order": 1.0}])
    assert next(series(profile, "amount", "order")).y.sum() == sum(range(100)) + 1


def test_keys_are_looked_up() -> None:
    profile = Profile()
    profile.update_resources([{"uid": "f", "exclusive": 1, "snapshot": 0, "order": 2, "line": "12"}])
    assert chosen_keys(profile, None, None) == ("exclusive", "snapshot")
    ordered = Profile()
    ordered.update_resources([{"uid": "f", "amount": 1, "order": 2, "timestamp": 3}])
    with pytest.raises(ProfileError, match="only the order of measuring: 'order'") as caught:
        chosen_keys(ordered, None, None)
    assert caught.value.hint.endswith("all the same: --per-key order")
    assert chosen_keys(ordered, None, "order") == ("amount", "order")
    assert chosen_keys(profile, "line", "order") == ("line", "order")
    assert numeric_fields(profile) == ["exclusive", "order", "line", "snapshot"]
    with pytest.raises(ProfileError, match="--per-key: no resource has a number in 'amount'") as caught:
        chosen_keys(profile, None, "amount")
    assert caught.value.hint == "fields with numbers: exclusive, order, line, snapshot"
    with pytest.raises(ProfileError, match="none of amount, exclusive"):
        chosen_keys(Profile(), None, None)


@pytest.mark.slow
@pytest.mark.parametrize("packed", [True, False])
def test_a_million_points(packed: bool) -> None:
    profile = Profile(
        resources={
            f"f{n}#0": {
                "amount": [0.5 * i for i in range(50_000)],
                "structure-unit-size": list(range(50_000)),
            }
            for n in range(20)
        },
        resource_type_map={f"f{n}#0": {"uid": f"f{n}"} for n in range(20)},
    )
    if packed:
        profile.pack()
    assert sum(one.x.size for one in series(profile, *chosen_keys(profile, None, None))) == 1_000_000
