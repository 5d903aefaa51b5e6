"""Profiles in the formats of other tools, with the manual's own examples (manual 2.3)."""

import json
import math
import sys
from typing import Any

import numpy as np
import pytest

from perun.core.errors import PluginError, ProfileError
from perun.profile import convert
from perun.profile.factory import Profile

SOURCE = ".../memory_collect_test.c"


def frame(function: str, source: str = "unreachable", line: int = 0) -> dict[str, Any]:
    return {"function": function, "source": source, "line": line}


def memory_resource(subtype: str, amount: int, *trace: Any, line: int = 22) -> dict[str, Any]:
    return {
        "type": "memory", "subtype": subtype, "address": 19284560, "amount": amount, "trace": list(trace),
        "uid": {"source": SOURCE, "function": "main", "line": line}
    }  # fmt: skip


def time_profile() -> Profile:
    profile = Profile()
    profile.update_resources(
        {"amount": amount, "uid": uid}
        for amount, uid in (("0.616s", "real"), ("0.500s", "user"), ("0.125s", "sys"))
    )
    return profile


def memory_profile() -> Profile:
    profile = Profile()
    profile.update_resources(
        [memory_resource("malloc", 4, frame("malloc")), memory_resource("free", 0, frame("free"), line=27)]
    )
    return profile


class TestDataFrames:
    @pytest.fixture(autouse=True)
    def _pandas(self) -> None:
        pytest.importorskip("pandas", reason="pandas is not installed")

    def test_time_profile_of_the_manual(self) -> None:
        found = convert.resources_to_pandas_dataframe(time_profile())
        assert list(found.columns) == ["amount", "snapshots", "uid"]
        rows = [["0.616s", 0, "real"], ["0.500s", 0, "user"], ["0.125s", 0, "sys"]]
        assert found.to_numpy().tolist() == rows
        assert list(found.index) == [0, 1, 2]

    def test_memory_profile_of_the_manual(self) -> None:
        found = convert.resources_to_pandas_dataframe(memory_profile())
        assert list(found.columns) == [
            "address", "amount", "snapshots", "subtype", "trace", "type",
            "uid", "uid:function", "uid:line", "uid:source",
        ]  # fmt: skip
        assert found.to_dict("records")[0] == {
            "address": 19284560, "amount": 4, "snapshots": 0, "subtype": "malloc",
            "trace": "malloc:unreachable:0", "type": "memory", "uid": f"{SOURCE}:main:22",
            "uid:function": "main", "uid:line": 22, "uid:source": SOURCE,
        }  # fmt: skip
        assert found["uid:line"].tolist() == [22, 27]
        assert found["amount"].dtype == found["snapshots"].dtype == np.int64

    def test_what_is_missing(self) -> None:
        profile = Profile()
        profile.update_resources([
            {"uid": "f", "amount": 1, "order": 3, "ok": True, "kind": "a", "exclusive": "1s"},
            {"uid": "g", "amount": 2.5, "snapshot": 4},
        ])  # fmt: skip
        found = convert.resources_to_pandas_dataframe(profile)
        assert found["amount"].tolist() == [1.0, 2.5]
        assert found["order"].tolist()[0] == 3 and math.isnan(found["order"].tolist()[1])
        assert found["ok"].tolist()[0] is True and found["ok"].isna().tolist() == [False, True]
        assert found["kind"].isna().tolist() == found["exclusive"].isna().tolist() == [False, True]
        assert found["snapshots"].tolist() == [0, 4]

    @pytest.mark.parametrize("beside", [{"amount": 0.5}, {"order": 1}, {"order": 1, "amount": 2**64 + 1}])
    @pytest.mark.parametrize("column", [False, True])
    def test_whole_numbers_beyond_floats_stay_exact(self, beside: dict[str, Any], column: bool) -> None:
        profile = Profile()
        one = {"uid": "f", ("amount" if column else "size"): 2**53 + 1}
        profile.update_resources([one, {"uid": "g", **beside}])
        if not column:
            profile.update_resources([{"uid": "h", "size": beside.get("amount")}])
        found = convert.resources_to_pandas_dataframe(profile)["amount" if column else "size"]
        assert repr(found[0]) == str(2**53 + 1)
        if "amount" in beside:
            assert repr(found[1 if column else 2]) == repr(beside["amount"])
        else:
            assert found.isna()[1]

    def test_a_truth_value_that_is_missing_is_not_false(self) -> None:
        profile = Profile()
        profile.update_resources([{"uid": "f", "amount": 1}, {"uid": "f", "amount": 1, "ok": True}])
        assert convert.resources_to_pandas_dataframe(profile)["ok"].isna().tolist() == [True, False]

    def test_nothing(self) -> None:
        assert len(convert.resources_to_pandas_dataframe(Profile())) == 0
        assert len(convert.models_to_pandas_dataframe(Profile())) == 0

    def test_changing_the_frame_does_not_change_the_profile(self) -> None:
        profile = Profile()
        profile.update_resources({"uid": "f", "amount": n / 2} for n in range(100))
        found = convert.resources_to_pandas_dataframe(profile)
        found.loc[0, "amount"] = 77.0
        assert next(profile.all_resources())[1]["amount"] == 0.0

    def test_models(self) -> None:
        profile = Profile(models=[
            {"uid": "f", "model": "linear", "r_square": 0.5, "coeffs": [{"name": "b0", "value": 1.5}]},
            {"uid": {"function": "g"}, "method": "regressogram", "bucket_stats": [1.0, 2.0]},
        ])  # fmt: skip
        found = convert.models_to_pandas_dataframe(profile)
        assert list(found.columns) == [
            "bucket_stats", "coeffs:b0", "method", "model", "r_square", "uid", "uid:function",
        ]  # fmt: skip
        assert found["uid"].tolist() == ["f", "g"]
        assert found["bucket_stats"][1] == [1.0, 2.0]
        assert found["coeffs:b0"][0] == 1.5


class TestArrow:
    @pytest.fixture(autouse=True)
    def _arrow(self) -> None:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")

    def test_rows(self) -> None:
        found = convert.to_arrow_table(memory_profile())
        expected = [
            {"address": 19284560, "amount": amount, "snapshots": 0, "subtype": subtype,
             "trace": f"{subtype}:unreachable:0", "type": "memory", "uid": f"{SOURCE}:main:{line}",
             "uid:function": "main", "uid:line": line, "uid:source": SOURCE}
            for subtype, amount, line in (("malloc", 4, 22), ("free", 0, 27))
        ]  # fmt: skip
        assert found.to_pylist() == expected

    def test_numbers_stay_exact_where_some_are_missing(self) -> None:
        profile = Profile()
        profile.update_resources(
            [{"uid": "f", "amount": 2**53 + 1, "x": 1}, {"uid": "f", "order": 1, "x": "1"}]
        )
        found = convert.to_arrow_table(profile)
        assert found["amount"].to_pylist() == [2**53 + 1, None]
        assert found["x"].to_pylist() == ["1", "1"]

    def test_the_head_is_kept(self) -> None:
        profile = Profile(header={"type": "memory"}, origin="a" * 40)
        regions = json.loads(convert.to_arrow_table(profile).schema.metadata[b"perun"])
        assert regions == {"header": {"type": "memory"}, "origin": "a" * 40}


@pytest.mark.parametrize(("make", "library"), [
    (convert.resources_to_pandas_dataframe, "pandas"),
    (convert.models_to_pandas_dataframe, "pandas"),
    (convert.to_arrow_table, "pyarrow"),
])  # fmt: skip
def test_a_missing_library_is_named(make: Any, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # what Python does where it is not installed
    with pytest.raises(PluginError, match=f"^{library} is not installed") as caught:
        make(time_profile())
    assert "-m pip install 'pandas" in caught.value.hint


class TestFlameGraph:
    def test_the_example_of_the_manual(self) -> None:
        main = "/home/user/dev/test.c"
        profile = Profile()
        profile.update_resources([
            memory_resource("malloc", 4, frame("malloc"), frame("main", main, 45)),
            memory_resource(
                "valloc", 8, frame("valloc"), frame("main", main, 75), frame("__libc_start_main")
            ),
            memory_resource("calloc", 156, frame("main", "/home/user/dev/test02.c", 79)),
            memory_resource("free", 0, frame("free"), frame("main", main, 80)),
        ])  # fmt: skip
        assert "".join(convert.to_flame_graph_format(profile)) == (
            "malloc()~unreachable~0;main()~/home/user/dev/test.c~45 4\n"
            "valloc()~unreachable~0;main()~/home/user/dev/test.c~75;__libc_start_main()~unreachable~0 8\n"
            "main()~/home/user/dev/test02.c~79 156\n"
        )

    def test_other_traces(self) -> None:
        profile = Profile()
        profile.update_resources([
            {"uid": "a", "amount": 1, "trace": [{"function": "f(int; x)"}, "plain\nname"]},
            {"uid": "b", "amount": 2, "trace": "one"},
            {"uid": "c", "amount": 3, "trace": []},
            {"uid": "d", "amount": 4},
            {"uid": "e", "trace": [{"func": "g"}]},
            {"uid": "f", "amount": 5, "subtype": "free", "trace": ["f"]},
        ])  # fmt: skip
        assert convert.to_flame_graph_format(profile) == ["f(int: x)~unreachable~0;plain name 1\n", "one 2\n"]

    def test_traces_in_a_column(self) -> None:
        profile = Profile(
            resources={"a": {"trace": [["f"], ["g"], None], "amount": [1, 2, 3]}}, resource_type_map={"a": {}}
        )
        assert convert.to_flame_graph_format(profile) == ["f 1\n", "g 2\n"]


def curve(model: str, *values: float, start: float = 1, end: float = 9) -> dict[str, Any]:
    coefficients = [{"name": f"b{n}", "value": value} for n, value in enumerate(values)]
    return {"uid": "f", "model": model, "coeffs": coefficients, "x_start": start, "x_end": end}


@pytest.mark.parametrize(("model", "values", "at"), [
    ("constant", (2.0, 0.0), lambda x: 2.0),
    ("linear", (1.0, 3.0), lambda x: 1 + 3 * x),
    ("logarithmic", (1.0, 3.0), lambda x: 1 + 3 * math.log(x)),
    ("power", (2.0, 1.5), lambda x: 2 * x**1.5),
    ("exponential", (2.0, 1.5), lambda x: 2 * 1.5**x),
    ("quadratic", (1.0, 2.0, 3.0), lambda x: 1 + 2 * x + 3 * x * x),
])  # fmt: skip
def test_points_of_each_kind_of_function(model: str, values: tuple[float, ...], at: Any) -> None:
    given = curve(model, *values)
    found = convert.plot_data_from_coefficients_of(given)
    assert (found["plot_x"][0], found["plot_x"][-1]) == (1.0, 9.0)
    assert found["plot_y"] == pytest.approx([at(x) for x in found["plot_x"]], rel=1e-12)
    assert {key: found[key] for key in given} == given
    assert "plot_x" not in given
    assert json.loads(json.dumps(found)) == found


def test_points_where_a_function_is_defined_only() -> None:
    logarithm = convert.plot_data_from_coefficients_of(curve("logarithmic", 0.0, 1.0, start=-5, end=5))
    assert min(logarithm["plot_x"]) > 0 and len(logarithm["plot_x"]) == len(logarithm["plot_y"])
    huge = convert.plot_data_from_coefficients_of(curve("exponential", 1.0, 10.0, start=0, end=1000))
    assert max(huge["plot_x"]) < 309 and all(map(math.isfinite, huge["plot_y"]))


@pytest.mark.parametrize(("model", "message"), [
    ({"uid": "f", "method": "regressogram", "bucket_stats": [1]}, "'regressogram' of 'f' has no curve"),
    ({**curve("cubic", 1.0)}, "a model 'cubic' of 'f' has no curve"),
    ({**curve("linear", 1.0)}, "is not complete: it has no b1"),
    ({**curve("linear", 1.0, 2.0), "x_end": None}, "is not complete: it has no x_end"),
    ({**curve("linear", 1.0, 2.0), "x_end": "far"}, "is not complete: it has no x_end"),
])  # fmt: skip
def test_models_without_a_curve(model: dict[str, Any], message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        convert.plot_data_from_coefficients_of(model)
