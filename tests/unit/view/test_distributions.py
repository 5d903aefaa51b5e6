"""What box plots and histograms show."""

import io
from typing import Any

import numpy as np
import pytest

from perun.core.errors import UsageError
from perun.view._common import Box
from perun.view.boxplot import MAX_OUTLIERS, BoxplotParams, BoxplotView
from perun.view.boxplot import chart as boxplot
from perun.view.histogram import MAX_BINS, HistogramParams, HistogramView

VALUES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 30]
CLOCKED = [
    {"uid": "./app", "subtype": clock, "amount": amount * factor, "order": order}
    for clock, factor in (("real", 1.0), ("user", 0.5))
    for order, amount in enumerate(VALUES)
]


def histograms(profile: Any, **options: Any) -> Any:
    return HistogramView().charts(profile, HistogramParams(**options))


def test_a_box_has_the_quartiles_of_tukey(profile_of: Any) -> None:
    found = boxplot(profile_of(CLOCKED), BoxplotParams())
    (series,) = found.series
    assert found.x.names == ("real", "user")
    assert series.boxes[0] == Box(1, 3.25, 5.5, 7.75, 9, (30,))
    assert series.boxes[1] == Box(0.5, 1.625, 2.75, 3.875, 4.5, (15,))
    assert series.counts is not None and series.counts.tolist() == [10, 10]
    assert (found.title, found.y.label) == ("Time of ./app -v in.txt: real, user", "time [s]")
    assert found.notes[1].endswith("n = 10")


def test_boxes_stand_side_by_side(profile_of: Any) -> None:
    rows = [{**row, "workload": size} for row in CLOCKED for size in ("small", "large")]
    found = boxplot(profile_of(rows), BoxplotParams())
    assert [(one.name, len(one.boxes)) for one in found.series] == [("real", 2), ("user", 2)]
    assert found.x.label == "workload"
    real, user = found.series
    assert (real.x < user.x).all()
    one_missing = [row for row in rows if (row["subtype"], row["workload"]) != ("user", "large")]
    assert [len(one.boxes) for one in boxplot(profile_of(one_missing), BoxplotParams()).series] == [2, 1]


def test_of_very_many_outliers_the_furthest_are_kept(profile_of: Any) -> None:
    amounts = [5.0] * 9000 + [100.0 + n for n in range(1000)]
    found = boxplot(profile_of([{"uid": "f", "amount": one} for one in amounts]), BoxplotParams())
    outliers = found.series[0].boxes[0].outliers
    assert (len(outliers), min(outliers)) == (MAX_OUTLIERS, 1100 - MAX_OUTLIERS)


def test_whiskers_never_end_within_the_box(profile_of: Any) -> None:
    found = boxplot(profile_of([{"uid": "f", "amount": one} for one in (0, 100, 100, 100)]), BoxplotParams())
    assert found.series[0].boxes[0] == Box(75, 75, 100, 100, 100, (0,))


@pytest.mark.parametrize("scale", ["auto", "linear", "log"])
@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("amounts", [[5e-324, 1e-323], [1e200, 2e200, 1.5e299], [1e-300, 1.0, 1.79e308]])
def test_the_ends_of_the_range_of_numbers_are_drawn(profile_of, amounts, terminal, scale, tmp_path) -> None:
    profile = profile_of([{"uid": "f", "amount": one} for one in amounts])
    where: Any = {"terminal": True} if terminal else {"filename": str(tmp_path / "page.html")}
    BoxplotView().render(profile, BoxplotParams(y_scale=scale, **where), io.StringIO())
    HistogramView().render(profile, HistogramParams(x_scale=scale, bins=1, **where), io.StringIO())
    HistogramView().render(profile, HistogramParams(x_scale=scale, **where), io.StringIO())


def test_keys_that_no_resource_has_at_once_are_refused(profile_of: Any) -> None:
    profile = profile_of([{"amount": 1}, {"uid": "f", "workload": "w"}])
    with pytest.raises(UsageError, match="both a number in 'amount' and a value of 'workload' and 'uid'"):
        boxplot(profile, BoxplotParams(per="workload", by="uid"))
    with pytest.raises(UsageError, match="both a number in 'amount' and a value of 'uid'"):
        histograms(profile, by="uid")


def test_a_histogram_counts_every_value(profile_of: Any) -> None:
    real, user = histograms(profile_of(CLOCKED))
    assert (real.name, real.title) == ("real", "Time of ./app -v in.txt: real")
    (series,) = real.series
    assert series.y.sum() == len(VALUES)
    assert 0 in series.y  # an interval without values keeps its place
    assert (series.width == series.width[0]).all()
    assert series.labels[0] == "1 µs to 6 µs"
    assert real.notes[1] == "n = 10, mean 7.5 µs, median 5.5 µs"
    assert user.series[0].x.max() < 16


@pytest.mark.parametrize("bins", [1, 3, 250])
def test_the_number_of_intervals_can_be_chosen(profile_of: Any, bins: int) -> None:
    (found,) = histograms(profile_of([{"uid": "f", "amount": one} for one in VALUES]), bins=bins)
    assert len(found.series[0].y) == bins
    assert found.series[0].y.sum() == len(VALUES)


def test_intervals_are_those_of_numpy_and_not_too_many(profile_of: Any) -> None:
    values = np.random.default_rng(1).normal(10, 1, 2000)
    (found,) = histograms(profile_of([{"uid": "f", "amount": one} for one in values.tolist()]))
    expected, _ = np.histogram(values, bins="auto")
    assert found.series[0].y.tolist() == expected.tolist()
    (found,) = histograms(profile_of([{"uid": "f", "amount": one} for one in [*values.tolist(), 1e9]]))
    assert len(found.series[0].y) == MAX_BINS


def test_whole_numbers_have_whole_intervals(profile_of: Any) -> None:
    (found,) = histograms(profile_of([{"uid": "f", "amount": n % 7} for n in range(700)]), bins=0)
    assert found.series[0].width.tolist() == [1] * 6  # type: ignore[union-attr]
    assert found.series[0].y.tolist() == [100, 100, 100, 100, 100, 200]  # the last one has its upper end


def test_a_logarithmic_histogram(profile_of: Any) -> None:
    rows = [{"uid": "f", "amount": 10.0 ** (n % 8)} for n in range(80)]
    (found,) = histograms(profile_of(rows), bins=7)
    assert found.x.log
    assert found.series[0].y.tolist() == [10, 10, 10, 10, 10, 10, 20]


def test_in_the_terminal(profile_of: Any) -> None:
    out = io.StringIO()
    BoxplotView().render(profile_of(CLOCKED), BoxplotParams(terminal=True), out)
    assert out.getvalue().splitlines()[5:] == [
        "real │├──▒▒▒█▒▒▒┤                         · 5.5 µs [3.25 µs, 7.75 µs] (n = 10)",
        "user │├▒█▒▒┤            ·                   2.75 µs [1.62 µs, 3.88 µs] (n = 10)",
        "      500 ns                          30 µs",
    ]
    out = io.StringIO()
    HistogramView().render(profile_of(CLOCKED), HistogramParams(terminal=True, bins=2), out)
    lines = out.getvalue().splitlines()
    assert lines[5].startswith(" 1 µs to 15.5 µs │█")
    assert lines[5].endswith("█ 9")
    assert sum("number of values per time [s]" in line for line in lines) == 2


@pytest.mark.parametrize("view", [BoxplotView(), HistogramView()])
def test_what_is_refused(profile_of: Any, view: Any) -> None:
    with pytest.raises(UsageError, match="--of: no resource has a number in 'uid'"):
        view.charts(profile_of(CLOCKED), view.Params(of="uid"))
    with pytest.raises(UsageError, match="--by: no resource has a key 'q'"):
        view.charts(profile_of(CLOCKED), view.Params(by="q"))


def test_more_intervals_than_can_be_drawn_are_refused(profile_of: Any) -> None:
    with pytest.raises(UsageError, match="--bins 1000000000: a histogram has at most 10,000 intervals"):
        histograms(profile_of(CLOCKED), bins=10**9)
