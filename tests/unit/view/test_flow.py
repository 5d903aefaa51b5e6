"""What flow shows, and what it refuses."""

import io
from typing import Any

import numpy as np
import pytest

from perun.core.errors import UsageError
from perun.view._common import Chart
from perun.view.flow import MAX_LINES, MAX_POINTS, FlowParams, FlowView, chart

ROWS: list[dict[str, Any]] = [
    {"uid": uid, "amount": amount, "structure-unit-size": size}
    for uid, amount, size in (("f", 1, 1), ("f", 2, 2), ("f", 3, 2), ("f", 10, 4), ("g", 5, 2), ("g", 6, 3))
]


@pytest.fixture
def shown(profile_of: Any) -> Any:
    def make(rows: list[dict[str, Any]] = ROWS, **options: Any) -> Chart:
        given = {"of": "amount", "by": "uid", "through": "structure-unit-size", **options}
        return chart(profile_of(rows), FlowParams(**given))

    return make


def lines(found: Chart) -> dict[str, dict[float, float]]:
    return {one.name: dict(zip(one.x.tolist(), one.y.tolist(), strict=True)) for one in found.series}


def test_accumulated_is_the_default(shown: Any) -> None:
    found = shown()
    assert lines(found) == {"f": {1: 1, 2: 6, 3: 6, 4: 16}, "g": {1: 0, 2: 5, 3: 11, 4: 11}}
    assert found.title == "Accumulated total time of ./app -v in.txt per size: f, g"
    assert (found.y.label, found.y.unit) == ("accumulated total time [s]", "us")
    assert found.legend == "uid"


def test_not_accumulated(shown: Any) -> None:
    found = shown(accumulate=False)
    assert lines(found) == {"f": {1: 1, 2: 5, 3: 0, 4: 10}, "g": {1: 0, 2: 5, 3: 6, 4: 0}}
    assert found.title == "Total time of ./app -v in.txt per size: f, g"


def test_a_mean_of_nothing_is_nothing(shown: Any) -> None:
    assert lines(shown(function="mean", accumulate=False)) == {"g": {2: 5, 3: 6}, "f": {1: 1, 2: 2.5, 4: 10}}


def test_stacked_with_the_sum(shown: Any) -> None:
    found = shown(stacked=True, accumulate=False)
    assert lines(found) == {
        "f": {1: 1, 2: 5, 3: 0, 4: 10},
        "g": {1: 1, 2: 10, 3: 6, 4: 10},
        "sum": {1: 1, 2: 10, 3: 6, 4: 10},
    }
    assert [one.kind for one in found.series] == ["area", "area", "line"]
    assert found.series[1].value is not None
    assert found.series[1].value.tolist() == [0, 5, 6, 0]


def test_through_texts(shown: Any) -> None:
    found = shown(through="uid", by="type")
    assert found.x.names == ("f", "g")
    assert lines(found) == {"mixed": {0: 16, 1: 27}}


def test_keys_that_are_not_named_are_those_of_several_values(shown: Any) -> None:
    assert lines(shown(through="", by="")) == lines(shown())
    runs = [{"uid": "f", "subtype": s, "amount": 1, "order": n} for n in (1, 2) for s in ("real", "sys")]
    found = shown(runs, through="", by="", accumulate=False)
    assert lines(found) == {"real": {1: 1, 2: 1}, "sys": {1: 1, 2: 1}}
    assert (found.x.label, found.legend) == ("run", "subtype")


def test_means_have_a_spread_unless_they_are_added_up(shown: Any) -> None:
    f = next(one for one in shown(function="mean", accumulate=False).series if one.name == "f")
    assert f.spread is not None and f.counts is not None
    assert f.counts.tolist() == [1, 2, 1]
    assert f.spread[1] == pytest.approx(0.5**0.5)
    assert shown(function="mean").series[0].spread is None


def test_a_single_value(shown: Any) -> None:
    assert lines(shown(ROWS[:1])) == {"f": {1: 1}}


def test_very_many_are_put_together_and_that_is_told(shown: Any) -> None:
    rows = [{"uid": f"f{n % 50}", "amount": 1, "structure-unit-size": n} for n in range(20_000)]
    found = shown(rows)
    assert len(found.series) == MAX_LINES
    assert all(len(one.x) <= MAX_POINTS for one in found.series)
    assert found.notes[1:] == (
        "the chart groups 20,000 values of 'structure-unit-size' into intervals of 20",
        "the chart shows the 15 largest of 50 values of 'uid', and the rest as others",
    )
    assert sum(one.y[-1] for one in found.series) == 20_000
    assert all((np.diff(one.x) > 0).all() for one in found.series)


@pytest.mark.parametrize(("options", "message", "hint"), [
    ({"y_scale": "log", "stacked": True}, "cannot show areas that add up", "leave out --stacked"),
    ({"x_scale": "log", "through": "snapshots"}, "a logarithmic axis has no place for 0", "--x"),
    ({"through": "size"}, "--through: no resource has a key 'size'", "known are: amount"),
    ({"of": "uid"}, "no resource has a number in 'uid'", "keys with numbers"),
])  # fmt: skip
def test_what_is_refused(shown: Any, options: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        shown(**options)
    assert hint in caught.value.hint


@pytest.mark.parametrize("terminal", [True, False])
def test_sums_as_large_as_the_largest_float_are_drawn(profile_of: Any, terminal: bool, tmp_path: Any) -> None:
    rows = [{"uid": "f", "amount": one, "order": run} for run, one in enumerate((1.79e308, 1e-300, 1.7e308))]
    where: Any = {"terminal": True} if terminal else {"filename": str(tmp_path / "page.html")}
    FlowView().render(profile_of(rows), FlowParams(**where), io.StringIO())
