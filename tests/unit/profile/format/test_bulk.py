"""The piecewise reader of large profiles beside the reader that sees the whole, and what reading costs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import perun
from perun.core.errors import ProfileError
from perun.profile.factory import Profile
from perun.profile.format import bulk, columns
from perun.profile.format import json as formats
from shared import examples

HEAD = {
    "header": {"type": "mixed", "units": {"mixed": "us"}, "cmd": "./bin", "args": "", "workload": ""},
    "collector_info": {"name": "trace", "params": {}},
    "postprocessors": [],
}
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
nested = st.sampled_from(
    [{"function": "f", "line": 1}, {"line": 1, "function": "f"}, [{"function": "g"}], 1, 1.0]
)
row = st.fixed_dictionaries(
    {"uid": st.sampled_from(["f", "g", "f\u017e"]) | nested, "amount": numbers},
    optional={
        "type": st.sampled_from(["time", "memory", None, True]), "trace": nested,
        "address": st.integers(0, 3), "order": st.text(max_size=2), "time": st.sampled_from(["0.5", 1]),
        "snapshot": st.integers(0, 1)
    },
)  # fmt: skip
alike = st.fixed_dictionaries({"uid": st.sampled_from(["f", "g"]), "amount": numbers, "trace": nested})
rows = st.lists(row, max_size=12) | st.lists(alike, max_size=12)
times = st.fixed_dictionaries({}, optional={"time": st.sampled_from(["0.1", 2, None])})


def dump(**regions: Any) -> bytes:
    return json.dumps({**HEAD, **regions}).encode()


def piecewise(data: bytes) -> Profile:
    regions = bulk.regions(data)
    formats.validate(regions, "piecewise")
    return Profile(regions)


def whole(data: bytes) -> Profile:
    regions = json.loads(data)
    formats.validate(regions, "whole")
    return Profile(regions)


def same(one: Profile, other: Profile) -> None:
    """Equal to the last digit and type, groups in the same order; fields of a group have none."""
    assert list(one["resources"]) == list(other["resources"])
    for region in ("resources", "resource_type_map", "models"):
        assert json.dumps(one[region], sort_keys=True) == json.dumps(other[region], sort_keys=True)


small = settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(60))


def check(data: bytes) -> None:
    with (
        patch.object(bulk, "_MIN_UNIFORM_ROWS", 1),
        patch.object(bulk, "_BATCH", 3),
        patch.object(columns, "PACKED_FROM", 2),
    ):
        same(piecewise(data), whole(data))


@given(rows, times)
@small
def test_rows_of_global(rows: list[dict[str, Any]], time: dict[str, Any]) -> None:
    check(dump(**{"global": {**time, "resources": rows, "models": [{"uid": "f"}]}}))


@given(st.lists(st.tuples(rows, times), max_size=4))
@small
def test_rows_of_snapshots(snapshots: list[tuple[list[dict[str, Any]], dict[str, Any]]]) -> None:
    check(dump(snapshots=[{**time, "resources": rows} for rows, time in snapshots]))


@given(rows, rows)
@small
def test_rows_beside_columns(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    profile = Profile()
    profile.update_resources(first, columns=["time"])
    check(dump(**profile.serialize(), **{"global": {"time": 5, "resources": second}}))


def test_many_rows() -> None:
    rows = [{"amount": n / 4, "type": "x", "uid": {"function": f"f{n % 7}"}, "order": n} for n in range(5000)]
    rows[2500]["extra"] = 1
    del rows[4000]["type"]
    data = dump(**{"global": {"time": "1", "resources": rows}})
    profile = piecewise(data)
    same(profile, whole(data))
    assert len(profile["resources"]) == 9


def test_equal_constants_are_kept_once() -> None:
    uid = {"function": "f", "line": 3}
    data = dump(
        resources={f"f:3#{n}": {"amount": [n]} for n in range(5)},
        resource_type_map={f"f:3#{n}": {"uid": uid, "type": f"{n}"} for n in range(5)},
    )
    profile = piecewise(data)
    same(profile, whole(data))
    assert len({id(group.constants["uid"]) for group in profile.groups()}) == 1


@pytest.mark.parametrize(("regions", "message"), [
    ({"global": {"resources": [{"uid": "f"}, 3]}}, r"global.resources\[1\]: expected a mapping, found a n"),
    ({"global": {"resources": {}}}, "global.resources: expected a list, found a mapping"),
    ({"global": {"resources": [{"snapshot": "1"}]}}, r"global.resources\[0\].snapshot: expected a whole"),
    ({"global": []}, "global: expected a mapping"),
    ({"snapshots": [{"resources": [[]]}]}, r"snapshots\[0\].resources\[0\]: expected a mapping"),
    ({"snapshots": [{"time": 1}]}, r"snapshots\[0\].resources: expected a list, it is missing"),
    ({"snapshots": {}}, "snapshots: expected a list"),
    ({"snapshots": [1]}, r"snapshots\[0\]: expected a mapping"),
    ({"resources": {"a": {"amount": [1.5] * 99}}}, "resource_type_map.a: expected the constants"),
    ({"resources": {"a": {"amount": 1}}, "resource_type_map": {"a": {}}}, "resources.a.amount: expected a l"),
    ({"resources": {"a": 1}, "resource_type_map": {"a": {}}}, "resources.a: expected a mapping of columns"),
    ({"resources": [], "resource_type_map": {"a": 1}}, "resource_type_map.a: expected a mapping"),
    ({"resources": {"a": {"amount": [1] * 99, "order": [1.5] * 98}}, "resource_type_map": {"a": {}}},
     "resources.a: expected columns of equal length, found 99 in amount, 98 in order"),
    ({"resources": {"a": {"snapshot": [1.5] * 99}}, "resource_type_map": {"a": {}}},
     "resources.a.snapshot: expected a whole number"),
])  # fmt: skip
def test_what_is_wrong_in_a_large_profile_is_named(regions: dict[str, Any], message: str) -> None:
    import msgspec  # noqa: F401 - imported, so that the piecewise reader is taken

    with pytest.raises(ProfileError, match="^a.perf: " + message):
        formats.loads(dump(**regions), "a.perf")


@pytest.mark.parametrize(
    "value", [b"NaN", b"Infinity", b'"\\ud800"', b"1e5, 1E5, true, null", b"123456789012345678901234567890"]
)
def test_what_one_reader_refuses_the_other_reads(value: bytes) -> None:
    numbers = b", ".join([b"1.5"] * 40)
    data = dump(resources={"a": {"amount": ["HERE"]}}, resource_type_map={"a": {"uid": "f"}})
    data = data.replace(b'"HERE"', numbers + b", " + value)
    profile = formats.loads(data, "a")
    assert repr(profile["resources"]["a"]["amount"]) == repr(json.loads(data)["resources"]["a"]["amount"])
    again = formats.loads(formats.dumps_object(profile), "again")
    assert repr(again["resources"]) == repr(profile["resources"])


def test_nan_does_not_keep_columns_from_being_packed() -> None:
    data = dump(
        resources={"a": {"amount": [1.5] * 50, "order": [1] * 50}}, resource_type_map={"a": {"uid": "f"}}
    )
    profile = formats.loads(data.replace(b"1.5,", b"NaN,", 1), "a")
    assert {column.typecode for column in next(profile.groups()).columns.values()} == {"d", "q"}  # type: ignore[union-attr]


def run(code: str, *arguments: Any) -> str:
    source = str(Path(perun.__file__).parents[1])
    argv = [sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r})\n{code}", *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def test_a_small_profile_needs_no_library(tmp_path: Path) -> None:
    file = tmp_path / "small.perf"
    file.write_bytes(dump(**{"global": {"resources": [{"uid": "f", "amount": n} for n in range(100)]}}))
    code = (
        "from perun.profile.factory import load_profile, store_profile\n"
        "from perun.profile import query, convert, table\n"
        "profile = load_profile(sys.argv[1]); store_profile(profile, sys.argv[1])\n"
        "assert len(list(table.table_of(profile).rows())) == 100\n"
        "print(sorted({'numpy', 'msgspec', 'pandas', 'pyarrow', 'scipy'} & set(sys.modules)))"
    )
    assert run(code, file) == "[]\n"


@pytest.mark.slow
@pytest.mark.parametrize(("count", "limit"), [(1_000_000, 200), (10_000_000, 1200)])
def test_memory_of_a_large_profile(tmp_path: Path, count: int, limit: int) -> None:
    file = tmp_path / "large.perf"
    with open(file, "w") as out:
        out.write(
            json.dumps(HEAD)[:-1] + ', "resource_type_map": {"f#0": {"uid": "f"}}, "resources": {"f#0": '
        )
        out.write('{"amount": [' + ", ".join(f"{n * 0.123456:.9f}" for n in range(count)))
        out.write('], "structure-unit-size": [' + ", ".join(map(str, range(count))) + "]}}}")
    code = (
        "from perun.profile.factory import load_profile\n"
        "profile = load_profile(sys.argv[1])\n"
        # Not ru_maxrss, which a new process inherits from the one that started it.
        "print(next(int(line.split()[1]) // 1024 for line in open('/proc/self/status') if 'VmHWM' in line))\n"
        "print(sum(group.size for group in profile.groups()))"
    )
    peak, size = map(int, run(code, file).split())
    assert size == count
    assert peak < limit
