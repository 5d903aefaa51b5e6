"""Profiles in memory: the grouping of resources, the older layouts, iteration (manual 2.1, 2.2)."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perun.core.errors import ProfileError, ProfileNotFound
from perun.profile.factory import (
    COLUMNS,
    Configuration,
    Profile,
    flatten,
    load_profile,
    store_profile,
    store_profile_at,
)
from perun.profile.incomplete import interrupted, killed, lost, mark, reasons_of, text_of, timed_out

MALLOC = {
    "type": "memory", "subtype": "malloc", "address": 19284560, "amount": 4,
    "trace": [{"source": "../memory_collect_test.c", "function": "main", "line": 22}],
    "uid": {"source": "../memory_collect_test.c", "function": "main", "line": 22}
}  # fmt: skip
FREE = {**MALLOC, "subtype": "free", "amount": 0}
LINEAR = {
    "uid": "SLList_insert(SLList*, int)", "r_square": 0.0017560012128507133,
    "coeffs": [{"value": 0.505375215875552, "name": "b0"}, {"value": 9.935159839322705e-06, "name": "b1"}],
    "x_start": 0, "x_end": 11892, "model": "linear", "method": "full"
}  # fmt: skip
BUCKETS = {"uid": "f", "model": "regressogram", "r_square": 0.9, "bucket_stats": [1.0, 2.0]}

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
nested = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
uids = st.sampled_from(["f", "g#0", "", "a:b"]) | st.fixed_dictionaries(
    {"function": st.sampled_from("fg")}, optional={"line": st.integers(0, 3), "extra": nested}
)
resources = st.lists(
    st.fixed_dictionaries({"uid": uids}, optional={
        "amount": scalars, "structure-unit-size": st.integers(0, 5),
        "type": st.sampled_from(["time", "memory"]),
        "one": st.sampled_from([1, 1.0, True, "1", -0.0, 0, float("nan")]), "trace": nested,
        "snapshot": st.integers(0, 2)
    }),
    max_size=20,
)  # fmt: skip


def multiset(found: Any) -> Counter[str]:
    """Resources without their order; repr tells 1 from True, and NaN equals itself."""
    return Counter(repr(sorted(resource.items())) for resource in found)


def listed(profile: Profile) -> list[dict[str, Any]]:
    return [resource for _, resource in profile.all_resources()]


def test_resources_that_differ_in_their_numbers_only_are_one_group() -> None:
    profile = Profile()
    profile.update_resources([{"uid": "f", "type": "time", "amount": n, "order": n} for n in (1, 2, 3)])
    assert profile["resource_type_map"] == {"f#0": {"type": "time", "uid": "f"}}
    assert profile["resources"] == {"f#0": {"amount": [1, 2, 3], "order": [1, 2, 3]}}


def test_groups_of_one_uid_are_counted() -> None:
    profile = Profile()
    profile.update_resources([MALLOC, FREE, MALLOC, {**MALLOC, "uid": "other"}])
    key = "../memory_collect_test.c:main:22#"
    assert list(profile["resources"]) == [key + "0", key + "1", "other#0"]
    assert profile["resources"][key + "0"] == {"address": [19284560] * 2, "amount": [4, 4]}
    assert profile["resource_type_map"][key + "1"]["subtype"] == "free"


def test_resources_with_different_columns_are_never_one_group() -> None:
    measured = [{"uid": "f", "amount": 1}, {"uid": "f", "amount": 2, "order": 1}, {"uid": "f", "amount": 3}]
    profile = Profile()
    profile.update_resources(measured)
    assert profile["resources"] == {"f#0": {"amount": [1, 3]}, "f#1": {"amount": [2], "order": [1]}}


def test_each_resource_of_constants_only_is_an_empty_group() -> None:
    profile = Profile()
    profile.update_resources([{"uid": "f", "type": "x"}, {"uid": "f", "type": "x"}])
    assert profile["resources"] == {"f#0": {}, "f#1": {}}
    assert listed(profile) == [{"uid": "f", "type": "x"}] * 2


def test_adding_to_a_profile_that_was_read_goes_on_with_its_groups() -> None:
    profile = Profile(
        resources={"f#7": {"amount": [1]}, "f#0": {"amount": [5]}},
        resource_type_map={"f#7": {"uid": "f", "type": "a"}, "f#0": {"uid": "f", "type": "b"}},
    )
    profile.update_resources([{"uid": "f", "type": "a", "amount": 2}, {"uid": "f", "type": "c", "amount": 3}])
    assert profile["resources"]["f#7"] == {"amount": [1, 2]}
    assert profile["resources"]["f#8"] == {"amount": [3]}


@pytest.mark.parametrize("key", ["f", "f#", "f#x", "f#-1", "f#" + "9" * 5000, "#", ""])
def test_keys_that_are_no_counted_uid(key: str) -> None:
    profile = Profile(resources={key: {"amount": [1]}}, resource_type_map={key: {"uid": "f", "type": "a"}})
    profile.update_resources([{"uid": "f", "type": "b", "amount": 2}, {"uid": "f", "type": "a", "amount": 3}])
    assert profile["resources"] == {key: {"amount": [1, 3]}, "f#0": {"amount": [2]}}


def test_what_a_workload_generator_adds_is_a_column_where_it_is_a_number() -> None:
    profile = Profile()
    profile.update_resources([{"uid": "f", "amount": 1, "length": n} for n in (8, 16)], columns=["length"])
    profile.update_resources([{"uid": "g", "amount": 1, "file": n} for n in ("a", "b")], columns=["file"])
    assert profile["resources"]["f#0"] == {"amount": [1, 1], "length": [8, 16]}
    assert profile["resources"]["g#0"] == {"amount": [1]}
    assert profile["resource_type_map"]["g#1"] == {"file": "b", "uid": "g"}


def test_replaced_resources_keep_the_columns_of_the_profile() -> None:
    profile = Profile()
    profile.update_resources([{"uid": "f", "amount": 2, "length": n} for n in (8, 16)], columns=["length"])
    halved = ({**resource, "amount": resource["amount"] / 2} for _, resource in profile.all_resources())
    profile.update_resources(halved, replace=True)
    assert profile["resources"] == {"f#0": {"amount": [1.0, 1.0], "length": [8, 16]}}


@given(resources, resources)
def test_resources_come_out_as_they_went_in(first, second) -> None:
    profile = Profile()
    profile.update_resources(first)
    profile.update_resources(second)
    assert multiset(listed(profile)) == multiset(first + second)
    for columns in profile["resources"].values():
        assert len({len(column) for column in columns.values()}) <= 1
        assert set(columns) <= COLUMNS
    again = Profile(profile.serialize())
    again.update_resources(listed(profile), replace=True)
    assert multiset(listed(again)) == multiset(first + second)


@pytest.mark.parametrize(("value", "flat"), [
    ("plain", "plain"),
    (22, 22),
    ({"source": "../t.c", "function": "main", "line": 22}, "../t.c:main:22"),
    ({"line": 22, "function": "main", "source": "../t.c"}, "../t.c:main:22"),
    ({"zeta": "Z", "alpha": "A", "function": "f", "line": 3, "source": "s.c", "bin": "B"}, "B:s.c:f:3:Z:A"),
    ({"instruction": 9, "line": 3, "func": "g", "class": "C", "module": "M", "package": "P"}, "P:M:C:g:3:9"),
    (["a", "b", {"function": "q", "line": 1}], "a,b,q:1"),
    ({"function": "f", "extra": [1, [2, 3]]}, "f:1,2,3"),
    ({"function": None}, "None"),
    ([], ""),
])  # fmt: skip
def test_flattened_values(value: Any, flat: Any) -> None:
    assert flatten(value) == flat


def test_too_deep_values_are_a_named_error() -> None:
    deep: Any = "end"
    for _ in range(100_000):
        deep = [deep]
    try:
        with pytest.raises(ProfileError, match="nested too deeply"):
            flatten(deep)
        with pytest.raises(ProfileError, match="nested too deeply"):
            Profile().update_resources([{"uid": "f", "trace": deep}])
    finally:
        while isinstance(deep, list):  # unwound by hand, as freeing it recursively may exhaust the stack
            deep = deep.pop()


def test_snapshots_become_constants_of_their_resources() -> None:
    profile = Profile(snapshots=[
        {"time": "0.025000", "resources": [MALLOC], "models": [LINEAR]},
        {"time": "0.050000", "resources": [FREE, MALLOC], "models": []},
    ])  # fmt: skip
    assert "snapshots" not in profile
    assert profile["models"] == [LINEAR]
    assert [(n, len(found)) for n, found in profile.all_snapshots()] == [(0, 1), (1, 2)]
    assert multiset(listed(profile)) == multiset([
        {**MALLOC, "snapshot": 0, "time": "0.025000"},
        {**FREE, "snapshot": 1, "time": "0.050000"},
        {**MALLOC, "snapshot": 1, "time": "0.050000"},
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("place", "constants"),
    [({"time": "0.5"}, {"time": "0.5"}), ({"timestamp": 0.56}, {"time": 0.56}), ({}, {})],
)
def test_global_resources_get_the_time(place: dict[str, Any], constants: dict[str, Any]) -> None:
    resource = {"amount": 0.59, "type": "time", "uid": "sys"}
    profile = Profile({"global": {**place, "resources": [resource], "models": [LINEAR]}, "models": [BUCKETS]})
    assert listed(profile) == [{**resource, **constants}]
    assert profile["models"] == [BUCKETS, LINEAR]


def test_old_spellings_are_converted() -> None:
    old = {"uid": "f", "model": "linear", "x_interval_start": 1, "x_interval_end": 2}
    profile = Profile(
        header={"type": "time", "cmd": "ls", "params": "-al", "workload": 10},
        collector_info={"name": "time", "params": ""},
        postprocessors=[{"name": "filter", "params": None}],
        models=[old, LINEAR],
    )
    assert profile["header"] == {"type": "time", "cmd": "ls", "args": "-al", "workload": "10"}
    assert profile["collector_info"]["params"] == {}
    assert profile["postprocessors"] == [{"name": "filter", "params": {}}]
    assert profile["models"] == [{"uid": "f", "model": "linear", "x_start": 1, "x_end": 2}, LINEAR]
    assert "x_interval_start" in old


def test_unknown_regions_are_kept() -> None:
    chunks = {"a": [1, 2]}
    assert Profile(chunks=chunks, machine={"cpu": 2}).serialize()["chunks"] == chunks


def test_models_by_group() -> None:
    profile = Profile(models=[LINEAR, BUCKETS])
    assert list(profile.all_models()) == [(0, LINEAR), (1, BUCKETS)]
    assert list(profile.all_models("both")) == [(0, LINEAR), (1, BUCKETS)]
    assert list(profile.all_models(group="param")) == [(0, LINEAR)]
    assert list(profile.all_models(group="nonparam")) == [(1, BUCKETS)]
    with pytest.raises(ValueError, match="best"):
        list(profile.all_models("best"))


def test_flattened_resources() -> None:
    profile = Profile()
    profile.update_resources([MALLOC])
    ((snapshot, resource),) = profile.all_resources(flatten_values=True)
    assert snapshot == 0
    assert resource["uid"] == "../memory_collect_test.c:main:22"
    assert resource["trace"] == "main:../memory_collect_test.c:22"
    assert resource["amount"] == 4


def test_configuration_takes_both_spellings_of_a_plugin() -> None:
    profile = Profile(
        header={"type": "time", "cmd": "perun", "args": "status", "workload": "--short"},
        collector_info={"name": "my-time"},
        postprocessors=[{"name": "regression-analysis"}, {"name": "moving_average"}],
    )
    expected = Configuration(
        "my_time", "perun", "status", "--short", ("regression_analysis", "moving_average")
    )
    assert profile.configuration == expected
    assert profile.type == "time"
    assert Profile().configuration == Configuration("", "", "", "", ())


def test_a_copy_is_independent() -> None:
    profile = Profile(header={"type": "time"}, models=[dict(LINEAR)])
    profile.update_resources([MALLOC])
    copy = profile.copy()
    assert copy == profile
    copy.update_resources([MALLOC, FREE])
    copy["header"]["type"] = "memory"
    copy["models"][0]["uid"] = "g"
    assert len(listed(profile)) == 1
    assert profile.type == "time"
    assert profile["models"] == [LINEAR]


def test_a_profile_is_a_mapping() -> None:
    profile = Profile({"header": {"type": "time"}}, origin="abc")
    assert dict(profile)["origin"] == "abc"
    assert len(profile) == 5
    assert profile.pop("origin") == "abc"
    assert "time" in repr(profile)
    profile.clear()
    assert not profile
    assert listed(profile) == [] and list(profile.all_models()) == []
    profile.update_resources([MALLOC])
    assert len(listed(profile)) == 1


# -- what a profile says it lacks ----------------------------------------------------------------------------


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


def test_reasons_are_added_once_and_read_back() -> None:
    profile = {"header": {"type": "time"}}
    mark(profile, [])
    assert profile == {"header": {"type": "time"}}
    reasons = [interrupted(1.25), lost(7, "calls")]
    mark(profile, reasons)
    mark(profile, [lost(7, "calls"), killed(9), timed_out(5)])
    again = json.loads(json.dumps(profile))
    assert reasons_of(again) == (*reasons, killed(9), timed_out(5))
    assert text_of(again) == (
        "interrupted after 1.25 s; 7 calls lost; killed by SIGKILL; stopped by the time limit of 5 s"
    )


@pytest.mark.parametrize("header", [None, {}, {"incomplete": []}, {"incomplete": None}, {"incomplete": ""}])
def test_complete(header: object) -> None:
    assert text_of({"header": header}) == ""
    assert text_of({}) == ""


@given(JSON)
@example([""])
def test_whatever_else_is_there_says_that_it_is_incomplete(written: object) -> None:
    profile = {"header": {"incomplete": written}}
    assert bool(text_of(profile)) == bool(written)
    entry = {"header": {"incomplete": [{"reason": "lost", "amount": written, "unit": "calls"}]}}
    assert text_of(entry).endswith("calls lost")


# -- files ---------------------------------------------------------------------------------------------------


def made() -> Profile:
    profile = Profile(
        header={"type": "time", "units": {"time": "s"}, "cmd": "ls", "args": "", "workload": ""},
        collector_info={"name": "time", "params": {}}, postprocessors=[], origin="a" * 40
    )  # fmt: skip
    profile.update_resources({"uid": "f", "type": "time", "amount": n / 8} for n in range(100))
    return profile


@pytest.mark.parametrize("store", [store_profile, store_profile_at])
def test_what_is_stored_is_loaded(tmp_path: Path, store: object) -> None:
    path = tmp_path / "new" / "a.perf"
    store_profile(made(), path)
    assert load_profile(path) == load_profile(str(path)) == made()
    assert json.loads(path.read_text())["origin"] == "a" * 40
    changed = made()
    changed.update_resources([{"uid": "g", "amount": 1}])
    assert callable(store)
    store(changed, str(path))
    assert load_profile(path) == changed
    assert [file.name for file in path.parent.iterdir()] == ["a.perf"]


def test_what_cannot_be_loaded_or_stored(tmp_path: Path) -> None:
    with pytest.raises(ProfileNotFound, match=r"there is no profile .*none.perf"):
        load_profile(tmp_path / "none.perf")
    with pytest.raises(ProfileError, match=r"cannot read .*: it is not a regular file"):
        load_profile(tmp_path)
    (tmp_path / "wrong.perf").write_text("[]")
    with pytest.raises(ProfileError, match=r"wrong.perf: expected a mapping"):
        load_profile(tmp_path / "wrong.perf")
    with pytest.raises(ProfileError, match="cannot write"):
        store_profile(made(), tmp_path / "wrong.perf" / "below.perf")
    with pytest.raises(ProfileError, match="cannot be written as JSON"):
        store_profile(Profile(chunks={1, 2}), tmp_path / "set.perf")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["wrong.perf"]
