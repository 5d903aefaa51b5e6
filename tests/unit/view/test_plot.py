"""Pages with charts: valid Bokeh documents of moderate size, in which every text of a profile is text."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perun.core.errors import PerunError, PluginError, UsageError
from perun.plugin.api import ViewContext
from perun.profile.factory import Profile
from perun.view._common import short_names, shortened
from perun.view._common.chart_view import bokeh_script
from perun.view.bars import BarsView
from perun.view.boxplot import BoxplotView
from perun.view.flow import FlowView
from perun.view.histogram import HistogramView
from perun.view.scatter import ScatterView

Read = Callable[[Path], list[dict[str, Any]]]
VIEWS: list[tuple[Any, dict[str, Any]]] = [
    (BarsView(), {"of": "amount"}),
    (BarsView(), {"of": "amount", "per": "structure-unit-size", "by": "uid", "grouped": True}),
    (BarsView(), {"of": "uid", "function": "nunique", "per": "subtype", "by": "type"}),
    (FlowView(), {"of": "amount", "through": "structure-unit-size", "by": "uid"}),
    (FlowView(), {"of": "amount", "through": "uid", "by": "subtype", "stacked": True}),
    (ScatterView(), {}),
    (BoxplotView(), {"per": "subtype", "by": "uid"}),
    (HistogramView(), {}),
    (BarsView(), {"function": "mean", "per": "subtype", "by": "uid", "grouped": True}),
    (FlowView(), {"function": "mean", "through": "subtype", "by": "uid", "accumulate": False}),
]
SIZE_LIMIT = 250_000
"""Bytes of a page that are Perun's: without the script of Bokeh, whose size is that release's."""


def own_size(page: Path) -> int:
    return page.stat().st_size - len(bokeh_script().encode())


def model(kind: str, **fields: Any) -> dict[str, Any]:
    return {"uid": "f", "model": kind, "r_square": 0.5, "x_start": 1, "x_end": 99, **fields}


MODELS = [
    model("linear", coeffs=[{"name": "b0", "value": 1}, {"name": "b1", "value": 2}]),
    model("exponential", coeffs=[{"name": "b0", "value": 1}, {"name": "b1", "value": 2}]),
    model("regressogram", bucket_stats=[3, 7, 9]),
    model("kernel_regression", kernel_stats=[3, 7, 9]),
]


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    return [
        {"uid": uid, "subtype": f"s{n % 3}", "amount": n * 1.5, "structure-unit-size": n}
        for uid in ("f", "g")
        for n in range(100)
    ]


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., Path]:
    def write(view: Any, profile: Profile, options: dict[str, Any]) -> Path:
        path = tmp_path / "page.html"
        view.render(profile, view.Params(**options, filename=str(path)), io.StringIO())
        return path

    return write


def assert_valid(item: dict[str, Any]) -> None:
    """The document is one that Bokeh's own models take, value by value."""
    pytest.importorskip("bokeh.models", reason="Bokeh is what the documents are checked with")
    from bokeh.core.serialization import Deserializer

    (root,) = item["doc"]["roots"]
    figure = Deserializer().deserialize(root)
    assert figure.id == item["root_id"]
    for found in figure.references():
        found.properties_with_values()


@pytest.mark.parametrize(("view", "options"), VIEWS)
def test_documents_are_valid(view, options, rows, profile_of, page, charts_in) -> None:
    charts = charts_in(page(view, profile_of(rows, models=MODELS), options))
    assert charts
    for chart in charts:
        assert_valid(chart["item"])


def test_the_density_of_many_points_is_valid(profile_of: Any, page: Any, charts_in: Read) -> None:
    rows = [{"uid": "f", "amount": n % 97, "structure-unit-size": n} for n in range(10_001)]
    (chart,) = charts_in(page(ScatterView(), profile_of(rows, models=MODELS), {}))
    assert_valid(chart["item"])
    assert "density of 10,001 points" in chart["title"]


def test_logarithmic_axes_are_valid(profile_of: Any, page: Any, charts_in: Read) -> None:
    rows = [{"uid": f"f{n % 2}", "amount": 10.0 ** (n / 3), "structure-unit-size": 1 + n} for n in range(30)]
    for view, options in (
        (BarsView(), {"function": "mean", "per": "structure-unit-size", "by": "uid", "grouped": True}),
        (FlowView(), {"accumulate": False, "function": "mean", "x_scale": "log"}),
        (ScatterView(), {"x_scale": "log"}),
    ):
        for chart in charts_in(page(view, profile_of(rows), options)):
            assert_valid(chart["item"])
            (figure,) = chart["item"]["doc"]["roots"]
            assert figure["attributes"]["y_scale"]["name"] == "LogScale"
            if view.name != "flow":
                assert figure["attributes"]["y_range"]["attributes"]["start"] > 0


ODD: dict[str, list[Any]] = {
    "one": [5], "zeros": [0, 0], "negative": [-1, -2], "tiny": [5e-324, 1e-300],
    "huge": [1.7e308, -1.7e308, 1.0], "not all finite": [1, float("nan"), float("inf"), None],
    "texts": ["3", "x"], "whole beyond 64 bits": [2**80, 3]
}  # fmt: skip


@pytest.mark.parametrize("values", ODD.values(), ids=ODD)
@pytest.mark.parametrize(("view", "options"), VIEWS)
@pytest.mark.each_value("view options", "values")
def test_odd_values(view, options, values, profile_of, page, charts_in) -> None:
    rows = [{"uid": "f", "subtype": "s", "amount": one, "structure-unit-size": one} for one in values]
    for chart in charts_in(page(view, profile_of(rows), options)):
        assert_valid(chart["item"])


@pytest.mark.parametrize(("view", "options"), VIEWS)
def test_only_values_that_are_no_numbers(view, options, profile_of, page) -> None:
    rows = [{"uid": "f", "subtype": "s", "amount": float("nan"), "structure-unit-size": 1}]
    try:
        page(view, profile_of(rows), options)
    except PerunError as refusal:
        assert "no resource has a number in 'amount'" in refusal.message
        assert refusal.hint
    else:
        assert options.get("function") == "nunique"


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "</script>", "a'\"`${x}", "ž\u2028\ud800", "x" * 10_000]
)
@pytest.mark.parametrize(("view", "options"), VIEWS)
@pytest.mark.each_value("view options", "name")
def test_names_stay_text(view, options, name, profile_of, page, charts_in) -> None:
    rows = [{"uid": name, "subtype": name, "amount": 1, "structure-unit-size": 2}]
    header = {"type": name, "cmd": name, "args": name, "workload": name, "units": {name: name}}
    path = page(view, profile_of(rows, header=header), options)
    text = path.read_text("utf-8")
    assert text.count("<script") == 4  # the data and three scripts
    assert "<script>alert" not in text
    for chart in charts_in(path):
        assert_valid(chart["item"])
    assert 0 < own_size(path) < SIZE_LIMIT


def test_size_of_2000_points_with_all_models(profile_of: Any, page: Any) -> None:
    random = np.random.default_rng(1)
    rows = [
        {"uid": f"function_{n % 4}(SLList*, int)", "amount": float(random.normal(20, 5)),
         "structure-unit-size": n}
        for n in range(2000)
    ]  # fmt: skip
    models = [{**one, "uid": f"function_{n}(SLList*, int)"} for n in range(4) for one in MODELS]
    assert 0 < own_size(page(ScatterView(), profile_of(rows, models=models), {})) < SIZE_LIMIT


def test_numbers_keep_the_digits_that_tell_them_apart(profile_of: Any, page: Any, charts_in: Read) -> None:
    first = 1_714_557_600
    rows = [{"uid": "f", "amount": n / 3, "timestamp": first + n} for n in range(50)]
    (chart,) = charts_in(page(ScatterView(), profile_of(rows), {"per": "timestamp"}))
    text = json.dumps(chart)
    assert str(first + 1) in text
    assert "0.3333333" in text
    assert "0.33333333" not in text


def test_many_uids_stay_moderate(profile_of: Any, page: Any, charts_in: Read) -> None:
    rows = [{"uid": f"f{n % 1500}", "amount": n, "structure-unit-size": n} for n in range(6000)]
    path = page(ScatterView(), profile_of(rows), {})
    assert len(charts_in(path)) == 1001
    assert path.stat().st_size < 8_000_000


def test_the_answer_is_the_name_and_no_browser_is_a_note(rows, profile_of, tmp_path, monkeypatch) -> None:
    import webbrowser

    def none(*_: object) -> None:
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "get", none)
    notes: list[str] = []
    out = io.StringIO()
    path = tmp_path / "b.html"
    view = BarsView()
    params = view.Params(of="amount", filename=str(path), view_in_browser=True)
    view.render(profile_of(rows), params, out, ViewContext(note=notes.append))
    assert out.getvalue() == f"{path}\n"
    assert notes == [f"cannot open a browser; open {path} in one"]


def test_the_terminal_and_a_file_do_not_go_together(rows: Any, profile_of: Any) -> None:
    for options, name in (
        ({"filename": "x.html"}, "--filename"),
        ({"view_in_browser": True}, "--view-in-browser"),
    ):
        view = ScatterView()
        with pytest.raises(UsageError, match=f"--terminal and {name} exclude each other"):
            view.render(profile_of(rows), view.Params(terminal=True, **options), io.StringIO())


def test_bokeh_is_found_without_being_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "BokehJS" in bokeh_script() or "Bokeh" in bokeh_script()
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(PluginError, match="Bokeh is not installed") as caught:
        bokeh_script()
    assert "'bokeh<4" in caught.value.hint
    assert "--terminal" in caught.value.hint


def test_doctor_is_told_that_pages_lack_bokeh(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [list(view.readiness({})) for view, _ in VIEWS] == [[]] * len(VIEWS)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    for view, _ in VIEWS:
        (found,) = view.readiness({})
        assert found.part == "pages"
        assert "Bokeh is not installed" in found.missing


def test_short_names() -> None:
    assert shortened("x" * 10_000, 9) == "xxxx…xxxx"
    assert shortened("short", 9) == "short"
    names = ["/home/me/test.c:main:1", "/home/me/test.c:foo:2", "(3 others)"]
    assert short_names(names, 20) == ["test.c:main:1", "test.c:foo:2", "(3 others)"]
    assert short_names(["/home/me/test.c"], 20) == ["/home/me/test.c"]
    assert short_names(["a/b", "a/c"], 20) == ["a/b", "a/c"]


def test_nothing_in_a_page_is_an_infinity(profile_of: Any, page: Any, charts_in: Read) -> None:
    rows = [{"uid": "f", "amount": 1.7e308, "structure-unit-size": n} for n in range(3)]
    charts = charts_in(
        page(FlowView(), profile_of(rows), {"of": "amount", "through": "structure-unit-size", "by": "uid"})
    )
    assert "Infinity" not in json.dumps(charts)
