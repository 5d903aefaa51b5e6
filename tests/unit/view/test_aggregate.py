"""The functions of bars and flow, and bins of many values, checked against pandas."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perun.core.errors import ProfileError, UsageError
from perun.profile.factory import Profile
from perun.view._common.pivot import (
    FUNCTIONS,
    aggregate,
    binned,
    bins_of,
    canonical,
    cross_tabulated,
    keeps_unit,
)
from perun.view._common.values import Resources

pandas = pytest.importorskip("pandas", reason="pandas is what the functions are compared with")
NUMBERS = st.one_of(st.floats(-1e9, 1e9), st.integers(-5, 5).map(float), st.just(math.nan))


@pytest.mark.parametrize("function", FUNCTIONS)
@settings(max_examples=10)
@given(rows=st.lists(st.tuples(st.integers(-1, 4), NUMBERS), max_size=40))
def test_as_pandas(function: str, rows: list[tuple[int, float]]) -> None:
    groups = np.array([group for group, _ in rows], np.intp)
    values = np.array([value for _, value in rows], float)
    ours = aggregate(function, groups, values, 6)
    frame = pandas.DataFrame({"group": groups, "value": values}).query("group >= 0").dropna()
    theirs = frame.groupby("group")["value"].agg(canonical(function)).reindex(range(6)).to_numpy(float)
    scale = max(1.0, float(np.nanmax(np.abs(values), initial=0)))
    np.testing.assert_allclose(ours / scale, theirs / scale, rtol=1e-6, atol=1e-6)


def test_names_of_functions() -> None:
    assert [canonical(one) for one in ("avg", "average", "med", "sum")] == ["mean", "mean", "median", "sum"]
    assert [one for one in FUNCTIONS if not keeps_unit(one)] == ["count", "nunique", "var"]


def test_sums_beyond_all_floats_are_not_told() -> None:
    groups, values = np.zeros(2, np.intp), np.array([1.7e308, 1.7e308])
    assert math.isnan(aggregate("sum", groups, values, 1)[0])
    assert aggregate("median", groups, values, 1)[0] == 1.7e308


def resources(rows: list[dict[str, Any]], **regions: Any) -> Resources:
    profile = Profile(regions)
    profile.update_resources(rows)
    return Resources(profile)


def test_keys() -> None:
    found = resources([{"uid": {"function": "f", "line": 3}, "amount": 1}, {"uid": "g", "amount": "2.5"}])
    assert found.numbers("amount", "--of").tolist() == [1, 2.5]
    assert found.categories("uid", "--by").names == ["f:3", "g"]
    assert found.categories("uid:function", "--by").codes.tolist() == [0, -1]
    assert found.categories("snapshot", "--by").names == found.categories("snapshots", "--by").names == ["0"]


def test_unknown_keys_list_the_known() -> None:
    found = resources([{"uid": "f", "type": "time", "amount": 1}])
    with pytest.raises(UsageError, match="--of: no resource has a key 'amnt'") as caught:
        found.numbers("amnt", "--of")
    assert caught.value.hint == "did you mean 'amount'?; known are: amount, snapshots, type, uid"
    with pytest.raises(UsageError, match="no resource has a number in 'uid'") as caught:
        found.numbers("uid", "--of")
    assert caught.value.hint == "keys with numbers: amount"


def test_no_resources() -> None:
    with pytest.raises(ProfileError, match="no resources to show"):
        Resources(Profile())


@pytest.mark.parametrize(("cells", "names", "codes"), [
    ([2, 1, 10], ["1", "2", "10"], [1, 0, 2]),
    ([1, 1.0, "1"], ["1"], [0, 0, 0]),
    (["2", "10", "1"], ["1", "2", "10"], [1, 2, 0]),
    (["007", "7"], ["007", "7"], [0, 1]),
    (["b", "a", None, "b"], ["b", "a"], [0, 1, -1, 0]),
    ([True, False, True], ["True", "False"], [0, 1, 0]),
    ([0.5, math.nan], ["0.5", "nan"], [0, 1]),
    (["", "x"], ["(none)", "x"], [0, 1]),
    ([[1, 2], [1, 2]], ["1,2"], [0, 0]),
    ([2**70, 3], ["3", str(float(2**70))], [1, 0]),
])  # fmt: skip
def test_categories(cells: list[Any], names: list[str], codes: list[int]) -> None:
    found = resources([{"uid": "f", "key": cell, "amount": n} for n, cell in enumerate(cells)])
    order = np.argsort(found.numbers("amount", "--of"))
    categories = found.categories("key", "--by")
    assert (categories.names, categories.codes[order].tolist()) == (names, codes)


def test_what_is_no_number_can_be_counted() -> None:
    found = resources([{"uid": uid, "amount": 1} for uid in "aab"])
    values = found.operands("uid", "--of", "nunique")
    assert aggregate("nunique", np.zeros(3, np.intp), values, 1).tolist() == [2]


@pytest.mark.parametrize(("units", "rows", "unit"), [
    ({"time": "s"}, [("time", None)], "s"),
    ({"mixed(time delta)": "us"}, [("mixed", "time delta")], "us"),
    ({"mixed (time delta)": "us"}, [("mixed", "time delta")], "us"),
    ({"memory": "B"}, [("memory", "malloc"), ("memory", "free")], "B"),
    ({"mixed(a)": "us", "mixed(b)": "B"}, [("mixed", "a"), ("mixed", "b")], ""),
    ({}, [("time", None)], ""),
    ("s", [("time", None)], ""),
])  # fmt: skip
def test_units(units: Any, rows: list[tuple[str, str | None]], unit: str) -> None:
    made = [{"uid": "f", "type": one, "subtype": two, "amount": 1} for one, two in rows]
    found = resources(made, header={"type": "time", "units": units})
    assert found.unit("amount") == unit
    assert found.unit("uid") == ""


def test_what_is_normalized_has_no_unit() -> None:
    post = [{"name": "normalizer", "params": {}}]
    rows = [{"uid": "f", "type": "time", "amount": 1}]
    assert resources(rows, header={"units": {"time": "s"}}, postprocessors=post).unit("amount") == ""


def test_texts_the_largest_first_and_the_rest_together() -> None:
    found = resources([{"uid": f"f{n}", "amount": n} for n in range(10)])
    values = found.numbers("amount", "--of")
    made = bins_of(found, "uid", "--by", "sum", values, 4)
    assert made.names == ("f9", "f8", "f7", "(7 others)")
    assert made.note == "the chart shows the 3 largest of 10 values of 'uid', and the rest as others"
    assert aggregate("sum", made.codes, values, 4).tolist() == [9, 8, 7, 21]


@pytest.mark.parametrize("limit", [1, 2, 7, 16, 200])
@settings(max_examples=25)
@given(cells=st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=300))
def test_numbers_in_intervals(limit: int, cells: list[float]) -> None:
    found = resources([{"uid": "f", "key": cell, "amount": 1} for cell in cells])
    categories = found.categories("key", "--per")
    made = binned(categories, "key", np.ones(len(categories.values)), limit)
    assert made.centers is not None
    assert len(made.names) == len(made.centers) <= max(limit, 2)
    assert (np.diff(made.centers) > 0).all()
    assert made.codes.min() >= 0
    assert bool(made.note) == (len(categories.values) > limit)


def test_intervals_are_named_by_what_is_in_them() -> None:
    found = resources([{"uid": "f", "size": n, "amount": 1} for n in range(1000)])
    made = bins_of(found, "size", "--per", "sum", found.numbers("amount", "--of"), 10)
    assert made.names[:2] == ("0 to 99", "100 to 199")
    assert made.note == "the chart groups 1,000 values of 'size' into intervals of 100"


def test_crossed() -> None:
    found = resources([{"uid": uid, "size": size, "amount": 1} for uid, size in ("a1", "a2", "b2", "b2")])
    values = found.numbers("amount", "--of")
    by, per = (bins_of(found, key, "--by", "sum", values, 9) for key in ("uid", "size"))
    table = dict(zip(by.names, cross_tabulated("count", by, per, values).tolist(), strict=True))
    assert table["a"] == [1, 1]
    assert table["b"][1] == 2
    assert math.isnan(table["b"][0])
