"""What bars show, and what they refuse."""

import re
from typing import Any

import pytest

from perun.core.errors import UsageError
from perun.view._common import Chart, ChartSeries
from perun.view.bars import MAX_BARS, MAX_GROUPS, BarsParams, chart

ROWS: list[dict[str, Any]] = [
    {"uid": "f", "subtype": "a", "amount": 1, "structure-unit-size": 1},
    {"uid": "f", "subtype": "a", "amount": 2, "structure-unit-size": 2},
    {"uid": "f", "subtype": "b", "amount": 3, "structure-unit-size": 2},
    {"uid": "f", "subtype": "b", "amount": 10, "structure-unit-size": 4},
    {"uid": "g", "subtype": "a", "amount": 5, "structure-unit-size": 2},
    {"uid": "g", "subtype": "b", "amount": 6, "structure-unit-size": 3},
]


@pytest.fixture
def shown(profile_of: Any) -> Any:
    def make(rows: list[dict[str, Any]] = ROWS, **options: Any) -> Chart:
        return chart(profile_of(rows), BarsParams(**{"of": "amount", **options}))

    return make


def heights(series: ChartSeries, found: Chart) -> dict[str, float]:
    assert series.value is not None
    return {
        found.x.names[round(x)]: value
        for x, value in zip(series.x.tolist(), series.value.tolist(), strict=True)
    }


def test_without_another_key_there_is_one_bar_for_each_value(shown: Any) -> None:
    found = shown(per="structure-unit-size")
    (series,) = found.series
    assert heights(series, found) == {"1": 1, "2": 10, "3": 6, "4": 10}
    assert series.name == ""
    assert found.title == "Total time of ./app -v in.txt per size"
    assert found.notes == ("mixed profile of ./app -v in.txt by the collector trace; 6 resources",)
    assert (found.x.label, found.y.label, found.y.unit) == ("size", "total time [s]", "us")


def test_what_there_are_several_of_is_the_default(shown: Any) -> None:
    found = shown()
    assert heights(found.series[0], found) == {"f": 16, "g": 11}
    assert found.title == "Total time of ./app -v in.txt: f, g"
    rows = [{**row, "order": number} for number, row in enumerate(ROWS)]
    assert shown(rows).title == "Time of ./app -v in.txt per run"
    assert shown([{**row, "snapshot": number // 3} for number, row in enumerate(rows)]).x.label == "snapshot"
    assert heights(shown(ROWS[:1]).series[0], shown(ROWS[:1])) == {"0": 1}


def test_clocks_are_never_added_up(shown: Any) -> None:
    rows = [
        {"uid": "./app", "subtype": clock, "amount": n + run, "order": run}
        for run in (1, 2)
        for n, clock in enumerate(("sys", "user", "real"))
    ]
    found = shown(rows)
    assert [(one.name, one.y.tolist()) for one in found.series] == [
        ("real", [3, 4]),
        ("user", [2, 3]),
        ("sys", [1, 2]),
    ]
    assert found.title == "Time of ./app -v in.txt per run: real, user, sys"
    added = shown(rows, per="uid")
    assert [one.y.tolist() for one in added.series] == [[7], [5], [3]]
    assert added.notes[-1] == "each bar adds up several runs; perun show PROFILE bars mean shows their mean"


def test_means_tell_how_far_their_values_lie_apart(shown: Any) -> None:
    found = shown(function="mean", per="structure-unit-size")
    (series,) = found.series
    assert series.spread is not None and series.counts is not None
    assert series.counts.tolist() == [1, 3, 1, 1]
    assert series.spread[1] == pytest.approx(1.5275, abs=1e-4)  # of 2, 3 and 5
    assert found.notes[-1] == "± and whiskers are the standard deviation; n = 1 to 3"
    assert shown(function="median").series[0].spread is None
    assert shown(function="mean", per="subtype", by="uid", stacked=True).series[0].spread is None


def test_what_differs_much_gets_a_logarithmic_axis(shown: Any) -> None:
    rows = [{"uid": f"f{n}", "amount": 10.0 ** (n / 4)} for n in range(20)]
    found = shown(rows)
    assert found.y.log
    assert "--y-scale linear" in found.notes[-1]
    (series,) = found.series
    assert series.base is not None
    assert set(series.base.tolist()) == {0.1}  # a decade below the smallest, which stays visible so
    assert not shown(rows, y_scale="linear").y.log
    assert not shown(rows, by="type", stacked=True).y.log
    assert not shown([*rows, {"uid": "zero", "amount": 0}]).y.log
    assert shown(rows[:3], y_scale="log").y.log
    even = [{"uid": f"f{n}", "amount": n} for n in range(1, 190)] + [{"uid": "f", "amount": 0.01}]
    assert not shown(even).y.log


def test_stacked(shown: Any) -> None:
    found = shown(per="structure-unit-size", by="uid", stacked=True)
    f, g = found.series
    assert (f.name, g.name, found.legend) == ("f", "g", "uid")
    assert heights(f, found) == {"1": 1, "2": 5, "4": 10}
    assert heights(g, found) == {"2": 5, "3": 6}
    assert f.base is not None and f.base.tolist() == [0, 0, 0]
    assert g.base is not None and g.base.tolist() == [5, 0]
    assert g.y.tolist() == [10, 6]
    assert found.title == "Total time of ./app -v in.txt per size: f, g"
    again = shown(per="structure-unit-size", by="uid").series  # what 'by' alone means
    assert [one.y.tolist() for one in again] == [one.y.tolist() for one in found.series]


def test_grouped(shown: Any) -> None:
    found = shown(per="structure-unit-size", by="uid", grouped=True)
    f, g = found.series
    assert heights(f, found) == {"1": 1, "2": 5, "4": 10}
    assert f.y.tolist() == [1, 5, 10]
    assert [x for x in (*f.x, *g.x) if not float(x).is_integer()] == pytest.approx([0.79, 1.21])


def test_negative_values_are_stacked_below(shown: Any) -> None:
    found = shown(
        [{"uid": uid, "amount": amount} for uid, amount in (("a", 5), ("b", -2), ("c", -3))], by="uid"
    )
    assert [(one.name, one.y.tolist()) for one in found.series] == [("a", [5]), ("b", [-2]), ("c", [-5])]


@pytest.mark.parametrize(
    ("function", "value", "label", "unit"),
    [("count", 6, "number of values of uid", ""), ("nunique", 2, "number of different values of uid", "")],
)
def test_what_is_no_number_is_counted(shown: Any, function: str, value: float, label: str, unit: str) -> None:
    found = shown(function=function, of="uid", per="snapshots")
    assert heights(found.series[0], found) == {"0": value}
    assert (found.y.label, found.y.unit) == (label, unit)


def test_own_words(shown: Any) -> None:
    found = shown(graph_title="T", x_axis_label="X", y_axis_label="Y")
    assert (found.title, found.x.label, found.y.label) == ("T", "X", "Y")


def test_texts_are_the_largest_first(shown: Any) -> None:
    assert shown(per="uid").x.names == ("f", "g")
    assert shown(per="uid", function="mean").x.names == ("g", "f")


def test_too_many_are_put_together_and_that_is_told(shown: Any) -> None:
    rows = [{"uid": f"f{n % 40}", "amount": 1, "structure-unit-size": n} for n in range(5000)]
    found = shown(rows, per="structure-unit-size", by="uid")
    assert len(found.x.names) <= MAX_BARS
    assert len(found.series) == MAX_GROUPS
    assert found.notes[1:] == (
        "the chart groups 5,000 values of 'structure-unit-size' into intervals of 25",
        "the chart shows the 15 largest of 40 values of 'uid', and the rest as others",
    )
    assert sum(series.value.sum() for series in found.series) == 5000


def test_what_is_no_finite_number_is_left_out(shown: Any) -> None:
    rows = [{"uid": "f", "amount": value} for value in (1, float("nan"), float("inf"), None, "x", 2)]
    found = shown(rows)
    assert heights(found.series[0], found) == {"0": 3}


@pytest.mark.parametrize(("options", "message", "hint"), [
    ({"y_scale": "log", "of": "snapshots"}, "a logarithmic axis has no place for 0", "leave out"),
    ({"y_scale": "log", "by": "uid"}, "cannot show parts that add up", "add --grouped"),
    ({"stacked": True}, "--stacked needs a key to divide the bars by", "add --by"),
    ({"grouped": True}, "--grouped needs a key to divide the bars by", "add --by"),
    ({"by": "uid", "stacked": True, "grouped": True}, "exclude each other", "leave out"),
    ({"of": "amonut"}, "--of: no resource has a key 'amonut'", "'amount'.*known are: amount, snapshots"),
    ({"per": "size"}, "--per: no resource has a key 'size'", "structure-unit-size, subtype, type, uid"),
    ({"by": "q"}, "--by: no resource has a key 'q'", "known are: amount, snapshots"),
    ({"of": "uid"}, "no resource has a number in 'uid'",
     "keys with numbers: amount, structure-unit-size"),
])  # fmt: skip
def test_what_is_refused(shown: Any, options: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        shown(**options)
    assert re.search(hint, caught.value.hint)


def test_what_sums_up_instructions_is_not_added_to_them(shown: Any) -> None:
    """A function with its callees, and the whole program, would count what functions execute again."""
    frame = {"source": "a.c", "function": "f"}
    found = shown(
        [
            {"uid": frame, "subtype": "exclusive", "amount": 30},
            {"uid": {"source": "a.c", "function": "g"}, "subtype": "exclusive", "amount": 70},
            {"uid": {**frame, "instructions": "inclusive"}, "subtype": "inclusive", "amount": 100},
            {"uid": {"source": "app", "instructions": "total"}, "subtype": "inclusive", "amount": 100},
        ],
        per="uid",
    )
    assert heights(found.series[0], found) == {"a.c:g": 70, "a.c:f": 30}
    assert found.notes[0].endswith("2 resources")


def test_an_unknown_source_is_no_part_of_a_name(shown: Any) -> None:
    """`unreachable` stands for it in profiles; in a chart of memory it would say what a leak is."""
    rows = [
        {"uid": {"source": "unreachable", "function": "app+0x3f", "line": 0}, "amount": 2},
        {"uid": {"source": "a.c", "function": "f", "line": 0}, "amount": 1},
    ]
    assert shown(rows, per="uid").x.names == ("app+0x3f", "a.c:f:0")
