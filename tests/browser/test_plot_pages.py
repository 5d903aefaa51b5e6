"""Bars, flow and scatter in a real browser: legend, chooser, hover, colours, numbers, and hostile names."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import profiles
from perun.pages import SERIES
from perun.profile.amounts import readable
from perun.profile.factory import Profile
from perun.view._common.chart_view import write_plots
from perun.view.bars import BarsParams, BarsView
from perun.view.bars import chart as bars
from perun.view.boxplot import BoxplotView
from perun.view.flow import FlowParams, FlowView
from perun.view.flow import chart as flow
from perun.view.histogram import HistogramView
from perun.view.scatter import ScatterParams, ScatterView
from perun.view.scatter import charts as scatter

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]
CHARTS = {
    "bars": lambda profile, **options: bars(profile, BarsParams(**options)),
    "flow": lambda profile, **options: flow(profile, FlowParams(**options)),
    "scatter": lambda profile, **options: scatter(profile, ScatterParams(**options))[0],
}
"""What makes the first chart of a view."""
SIZES = range(0, 12_000, 24)
FIGURE = "Bokeh.documents.at(-1).roots()[0]"
MODELS = [
    ("quadratic", 0.994, {"coeffs": [4.6, 0.0038, 1.4e-8]}),
    ("linear", 0.984, {"coeffs": [4.0, 0.004]}),
    ("power", 0.971, {"coeffs": [0.011, 0.88]}),
    ("logarithmic", 0.728, {"coeffs": [-73.9, 11.6]}),
    ("regressogram", 0.961, {"bucket_stats": [8.0, 14.0, 20.0, 26.0, 32.0, 38.0, 44.0, 50.0]}),
    ("kernel_regression", 0.988, {"kernel_stats": [5 + 0.004 * x for x in range(0, 12_001, 400)]}),
]


def profile_of(resources: list[dict[str, Any]], **regions: Any) -> Profile:
    return profiles.profile_of(resources, "mixed", "us", workload="in.txt", collector="trace", **regions)


def model(uid: str, kind: str, r_square: float, values: dict[str, Any]) -> dict[str, Any]:
    made = {"uid": uid, "model": kind, "r_square": r_square, "x_start": 0, "x_end": 11_976, **values}
    if "coeffs" in values:
        made["coeffs"] = [{"name": f"b{n}", "value": value} for n, value in enumerate(values["coeffs"])]
    return made


def lists(*names: str) -> Profile:
    """Times of operations on lists that grow, with models."""
    rows = [
        {"uid": name, "amount": 5 + n + 0.004 * x + 2 * math.sin(x * (n + 1)), "structure-unit-size": x}
        for n, name in enumerate(names)
        for x in SIZES
    ]
    return profile_of(rows, models=[model(name, *one) for name in names for one in MODELS])


def memory() -> Profile:
    rows = [
        {"type": "memory", "subtype": ("malloc", "calloc", "realloc", "free")[n % 4],
         "uid": f"/home/me/project/list.c:{('insert', 'search', 'grow')[n % 3]}:{n % 3 * 10 + 12}",
         "amount": 0 if n % 4 == 3 else 64 * (n % 7 + 1) * (n // 12 + 1), "snapshot": n // 12}
        for n in range(180)
    ]  # fmt: skip
    head = {"type": "memory", "cmd": "./app", "args": "", "workload": "in.txt", "units": {"memory": "B"}}
    return profile_of(rows, header=head, collector_info={"name": "memory", "params": {}})


@pytest.fixture
def opened(open_page: Open, written: Callable[..., Path]) -> Open:
    def show(view: Any, profile: Profile, *, window: Any = None, **options: Any) -> Page:
        page = open_page(written(view, profile, **options), **(window or {}))
        wait(page)
        return page

    return show


def wait(page: Page, chart: int = 0) -> None:
    """Until the chart of that number is drawn."""
    page.wait_for_selector(f"html[data-drawn='{chart}']")
    page.wait_for_function("Bokeh.documents.at(-1).is_idle")
    settled(page)


def settled(page: Page) -> None:
    """Until what has just changed is on the screen."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def visible(page: Page) -> dict[str, bool]:
    """The names in the legend and whether what they name is shown."""
    found: dict[str, bool] = page.evaluate(
        f"""Object.fromEntries({FIGURE}.right.filter(one => one.type === "Legend").flatMap(legend =>
            legend.items.map(item => [item.label.value, item.renderers.every(one => one.visible)])))"""
    )
    return found


def legend_at(page: Page, number: int) -> tuple[float, float]:
    """Where the entry stands on the screen, by the legend's own boxes."""
    x, y = page.evaluate(
        f"""(() => {{
          const legend = {FIGURE}.right.find(one => one.type === "Legend");
          const view = Bokeh.index.find_one(legend);
          const item = view.el.shadowRoot.querySelectorAll(".bk-item")[{number}];
          const box = item.getBoundingClientRect();
          return [box.left + box.width / 2, box.top + box.height / 2];
        }})()"""
    )
    return x, y


def point_at(page: Page, x: float, y: float) -> None:
    """Move the mouse to a place of the plane."""
    left, top = page.evaluate(
        f"""(([x, y]) => {{
          const view = Bokeh.index.find_one({FIGURE});
          const area = view.canvas_view.el.getBoundingClientRect();
          return [area.left + view.frame.x_scale.compute(x), area.top + view.frame.y_scale.compute(y)];
        }})""",
        [x, y],
    )
    page.mouse.move(left, top)
    page.mouse.move(left + 1, top)
    settled(page)


def tooltip(page: Page) -> str:
    """What stands beside the mouse, once something does."""
    said = page.wait_for_function(
        """() => {
          const found = [];
          const walk = (node, within) => {
            if (node.nodeName === "STYLE") return;
            const here = within || (node.nodeType === 1 && node.classList.contains("bk-Tooltip"));
            if (here && node.nodeType === 3) found.push(node.data.trim());
            if (node.shadowRoot) walk(node.shadowRoot, here);
            node.childNodes.forEach(one => walk(one, here));
          };
          walk(document.body, false);
          return found.filter(one => one).join(" ");
        }"""
    )
    text: str = said.json_value()
    return text


def labels(page: Page, side: str) -> list[str]:
    """What stands at the ticks of an axis."""
    found: list[str] = page.evaluate(
        f"""(() => {{
          const view = Bokeh.index.find_one({FIGURE}.{side}[0]);
          return view.compute_labels(view.tick_coords.major[view.dimension]).items.map(one => one.text);
        }})()"""
    )
    return found


def test_scatter_with_models(opened: Open, screenshot: Any) -> None:
    page = opened(ScatterView(), lists("SLList_search(SLList*, int)"))
    assert page.locator("h1").inner_text() == ("Time of ./app in.txt per size: SLList_search(SLList*, int)")
    assert page.locator("#chooser").count() == 0
    assert list(visible(page)) == [
        "measured (500 points)",
        "quadratic, R² 0.994",
        "kernel regression, R² 0.988",
        "linear, R² 0.984",
        "power, R² 0.971",
        "regressogram, R² 0.961",
        "logarithmic, R² 0.728",
    ]
    kinds = page.evaluate(f"{FIGURE}.renderers.map(one => one.glyph.type)")
    assert kinds == ["Scatter", "Line", "Line", "Line", "Line", "Step", "Line"]
    screenshot(page, "scatter")
    # A click in the legend hides and shows.
    first, second, *_ = visible(page)
    assert all(visible(page).values())
    page.mouse.click(*legend_at(page, 1))
    settled(page)
    assert visible(page)[second] is False
    assert visible(page)[first] is True
    page.mouse.click(*legend_at(page, 1))
    settled(page)
    assert all(visible(page).values())


def test_one_page_holds_all_uids(opened: Open, screenshot: Any) -> None:
    page = opened(ScatterView(), lists("insert", "search", "destroy"))
    choices = page.locator("#chooser option")
    screenshot(page, "scatter-uids")
    assert choices.all_inner_texts() == ["all 3 uids", "insert", "search", "destroy"]
    assert page.locator("h1").inner_text().endswith(": insert, search, destroy")
    page.locator("#chooser").select_option("2")
    page.wait_for_selector("html[data-drawn='2']")
    assert page.locator("h1").inner_text().endswith(": search")
    assert next(iter(visible(page))) == "measured (500 points)"
    page.locator("#behind").click()
    page.wait_for_selector("html[data-drawn='3']")
    assert page.locator("h1").inner_text().endswith(": destroy")
    page.locator("#behind").click()
    page.wait_for_selector("html[data-drawn='0']")
    page.locator("#before").click()
    page.wait_for_selector("html[data-drawn='3']")
    page.locator("#find").fill("SEAR")
    page.wait_for_selector("html[data-drawn='2']")
    assert choices.all_inner_texts() == ["search"]
    assert page.locator(".bk-Figure").count() == 1
    page.locator("#find").fill("")
    page.locator("#chooser").select_option("0")
    page.wait_for_selector("html[data-drawn='0']")
    # Of hasty choices the last one is drawn.
    page.evaluate("for (let n = 0; n < 6; n++) document.getElementById('behind').click()")
    page.wait_for_selector("html[data-drawn='2']")
    settled(page)
    assert page.locator(".bk-Figure").count() == 1
    assert page.locator("h1").inner_text().endswith(": search")
    assert next(iter(visible(page))) == "measured (500 points)"


def test_axes_and_what_is_pointed_at_are_readable(opened: Open) -> None:
    rows = [{"uid": "f", "amount": n * 500, "structure-unit-size": n * 250_000} for n in range(11)]
    page = opened(ScatterView(), profile_of(rows))
    assert labels(page, "below") == ["0", "0.5 M", "1.0 M", "1.5 M", "2.0 M", "2.5 M"]
    assert labels(page, "left") == ["0 ms", "1 ms", "2 ms", "3 ms", "4 ms", "5 ms"]
    point_at(page, 1_250_000, 2500)
    assert tooltip(page) == "measured size: 1.25 M time [s]: 2.5 ms"
    # The page writes numbers as the program does.
    values = [0, 1, 999.96, 1e6, -1500, 12345, 0.125, 2.5e-6, 1e22, 1e-300, 5.5, 1023.99, 2**30, 86400]
    units = ("", "us", "B", "KiB", "h", "ops", "MB/s", "ns/op", "req/min", "Mbit/s")
    asked = [[value, unit] for value in values for unit in units]
    written = page.evaluate("asked => asked.map(one => perunNumber(...one))", asked)
    assert written == [readable(value, unit) for value, unit in asked]


def test_a_logarithmic_axis_has_powers_of_ten(opened: Open) -> None:
    rows = [{"uid": f"f{n}", "amount": 2 * 10.0**n} for n in range(6)]
    page = opened(BarsView(), profile_of(rows))
    powers = ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms"]
    assert [text for text in labels(page, "left") if text] == powers
    base, y = ends(page, 0)
    assert (set(base), y) == ({1}, [2 * 10.0**n for n in reversed(range(6))])
    point_at(page, 5, 1.5)
    assert tooltip(page) == "uid: f0 time [s]: 2 µs"


def test_whiskers_are_hidden_with_their_series(opened: Open, screenshot: Any) -> None:
    profile = profile_of([
        {"uid": "./app", "subtype": clock, "amount": 100 * part + 20 * (run * run % 7), "order": run}
        for run in range(10)
        for part, clock in ((5, "real"), (3, "user"), (1, "sys"))
    ])  # fmt: skip
    page = opened(BarsView(), profile, function="mean", per="uid", by="subtype", grouped=True)
    kinds = page.evaluate(f"{FIGURE}.renderers.map(one => one.glyph.type)")
    assert kinds == ["VBar", "Segment", "Scatter", "Scatter"] * 3
    screenshot(page, "bars-mean")
    point_at(page, -0.28, 250)
    assert tooltip(page).endswith("standard deviation: 31.9 µs n: 10")
    before = ends(page, 4)
    page.mouse.click(*legend_at(page, 0))
    settled(page)
    assert page.evaluate(f"{FIGURE}.renderers.map(one => one.visible)") == [False] * 4 + [True] * 8
    assert ends(page, 4) == before == [[0], [before[1][0]]]  # grouped bars stay where they are


def runs(number: int) -> Profile:
    """Times of repeated runs, some of which take longer."""
    return profile_of(
        [
            {"uid": "./app", "subtype": clock,
             "amount": share * (50_000 + 900 * (run * 37 % 11) + 16_000 * (run % 5 == 4)), "order": run}
            for run in range(number)
            for clock, share in (("real", 1.0), ("user", 0.8), ("sys", 0.15 + run % 9 / 300))
        ],
        header={"type": "time", "cmd": "./app", "args": "", "workload": "in.txt", "units": {"mixed": "us"}},
        collector_info={"name": "time", "params": {}},
    )  # fmt: skip


def test_boxplot(opened: Open, screenshot: Any) -> None:
    page = opened(BoxplotView(), runs(31))
    assert page.locator("h1").inner_text() == "Time of ./app in.txt: real, user, sys"
    assert labels(page, "below") == ["real", "user", "sys"]
    screenshot(page, "boxplot")
    point_at(page, 0, 55_000)
    told = tooltip(page)
    assert told.startswith("subtype: real upper whisker: ")
    assert told.endswith("n: 31")


def test_histogram(opened: Open, screenshot: Any) -> None:
    page = opened(HistogramView(), runs(400))
    assert page.locator("#chooser option").all_inner_texts() == ["real", "user", "sys"]
    assert all(text.endswith("ms") for text in labels(page, "below"))
    screenshot(page, "histogram")
    bottom, top = page.evaluate(f"[{FIGURE}.y_range.start, {FIGURE}.y_range.end]")
    assert bottom == 0 < top
    point_at(page, 50_500, 1)
    assert tooltip(page).startswith("time [s]: 50 ms to 5")


@pytest.mark.slow
def test_sizes_go_by_powers_of_two(opened: Open, screenshot: Any) -> None:
    page = opened(BarsView(), memory(), of="amount", by="subtype", stacked=True)
    assert all(text.endswith("KiB") and "." not in text for text in labels(page, "left"))
    assert labels(page, "below") == [str(n) for n in range(15)]
    assert set(visible(page)) == {"malloc", "realloc", "calloc", "free"}
    screenshot(page, "bars-stacked")


@pytest.mark.slow
def test_bars_grouped(opened: Open, screenshot: Any) -> None:
    page = opened(BarsView(), memory(), of="amount", per="uid", by="subtype", grouped=True, function="mean")
    assert set(labels(page, "below")) == {"list.c:grow:32", "list.c:search:22", "list.c:insert:12"}
    screenshot(page, "bars-grouped")


def test_hiding_what_is_large_shows_the_rest_larger(opened: Open) -> None:
    rows = [{"uid": uid, "amount": amount} for uid, amount in (("large", 1000), ("small", 10))]
    page = opened(BarsView(), profile_of(rows), of="amount", per="uid", by="uid")
    before = page.evaluate(f"{FIGURE}.y_range.end")
    page.mouse.click(*legend_at(page, 0))
    settled(page)
    assert before > 1000
    page.wait_for_function(f"{FIGURE}.y_range.end < 12")


def ends(page: Page, number: int) -> list[list[float]]:
    """The lower and the upper ends that a series is drawn with."""
    found: list[list[float]] = page.evaluate(
        f"""(() => {{
          const source = {FIGURE}.renderers[{number}].data_source;
          return ["base", "y"].map(name => [...(source.get_column(name) ?? [])]);
        }})()"""
    )
    return found


def test_stacked_bars_fall_down_onto_what_is_left(opened: Open) -> None:
    sizes = {"low": (40, -4), "middle": (30, -3), "high": (20, -2)}
    rows = [
        {"uid": uid, "amount": value, "at": n} for uid, two in sizes.items() for n, value in enumerate(two)
    ]
    page = opened(BarsView(), profile_of(rows), of="amount", per="at", by="uid", stacked=True)
    order = list(visible(page))
    assert order == ["low", "middle", "high"]
    before = [ends(page, number) for number in range(3)]
    assert before[2] == [[70, -7], [90, -9]]
    page.mouse.click(*legend_at(page, 0))
    settled(page)
    assert ends(page, 1) == [[0, 0], [30, -3]]
    assert ends(page, 2) == [[30, -3], [50, -5]]
    page.mouse.click(*legend_at(page, 0))
    settled(page)
    assert [ends(page, number) for number in range(3)] == before


def test_flow_stacked(opened: Open, screenshot: Any) -> None:
    page = opened(FlowView(), memory(), of="amount", by="uid", stacked=True)
    assert list(visible(page)) == ["sum", "list.c:grow:32", "list.c:search:22", "list.c:insert:12"]
    screenshot(page, "flow-stacked")
    drawn = page.evaluate(f"{FIGURE}.renderers.map(one => one.glyph.type)")
    assert drawn == ["VArea", "Line", "VArea", "Line", "VArea", "Line", "Line"]
    before = [ends(page, number) for number in (0, 2, 4, 6)]
    page.mouse.click(*legend_at(page, 3))
    settled(page)
    assert visible(page)["list.c:insert:12"] is False
    lowest, middle, highest, whole = [ends(page, number)[1] for number in (0, 2, 4, 6)]
    assert middle == [upper - lower for lower, upper in zip(before[0][1], before[1][1], strict=True)]
    assert whole == highest == [upper - lower for lower, upper in zip(lowest, before[3][1], strict=True)]


@pytest.mark.slow
def test_flow(opened: Open, screenshot: Any) -> None:
    profile = profile_of([
        {"uid": uid, "amount": amount + n % 7 / 10, "structure-unit-size": size}
        for size in range(0, 10_000, 250)
        for n in range(20)
        for uid, amount in (("SLList_insert", 4 + size / 4000), ("SLList_search", 2 + size / 250))
    ])  # fmt: skip
    options = {"of": "amount", "through": "structure-unit-size", "by": "uid", "function": "mean"}
    page = opened(FlowView(), profile, accumulate=False, **options)
    assert list(visible(page)) == ["SLList_search", "SLList_insert"]
    screenshot(page, "flow")


def test_density_of_very_many_points(opened: Open, screenshot: Any) -> None:
    rows = [
        {"uid": "f", "amount": 0.004 * x + 3 * math.sin(n) * math.sin(n * n), "structure-unit-size": x}
        for n, x in enumerate(n % 12_000 for n in range(40_000))
    ]
    page = opened(ScatterView(), profile_of(rows, models=[model("f", *MODELS[1])]))
    assert page.locator("h1").inner_text().endswith("(density of 40,000 points)")
    assert page.evaluate(f"{FIGURE}.renderers.map(one => one.glyph.type)") == ["Image", "Line"]
    point_at(page, 6000, 24.5)
    assert "points in this cell" in tooltip(page)
    screenshot(page, "scatter-density")


@pytest.mark.slow
def test_dark_and_light(opened: Open, screenshot: Any) -> None:
    page = opened(ScatterView(), lists("f"), window={"dark": True})
    assert page.evaluate(f"{FIGURE}.background_fill_color") == "#14171c"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(230, 233, 238)"
    screenshot(page, "scatter-dark")
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"{FIGURE}.background_fill_color === '#ffffff'")
    wait(page)


def test_sixteen_series_on_a_telephone_in_the_dark(opened: Open) -> None:
    rows = [
        {"uid": f"/home/me/project/list_{n}.cpp:SLList_operation_{n}(SLList*, int)", "amount": n + x, "at": x}
        for n in range(18)
        for x in (1, 2, 3)
    ]
    window = {"width": 390, "height": 844, "dark": True}
    page = opened(FlowView(), profile_of(rows), through="at", accumulate=False, window=window)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.evaluate(f"{FIGURE}.right.length") == 0
    assert page.evaluate(f"{FIGURE}.below.map(one => one.type)") == ["LinearAxis", "Legend"]
    legend = f"{FIGURE}.below.find(one => one.type === 'Legend')"
    assert page.evaluate(f"Bokeh.index.find_one({legend}).el.getBoundingClientRect().right < 390")
    lines, points = (
        page.evaluate(
            f"{FIGURE}.renderers.map(one => one.glyph).filter(one => one.type === '{kind}').map({styled})"
        )
        for kind, styled in (
            ("Line", "one => String([one.line_color.value, one.line_dash.value])"),
            ("Scatter", "one => String([one.fill_color.value, one.marker.value])"),
        )
    )
    assert len(set(lines)) == len(set(points)) == 16
    assert {one.split(",")[0] for one in (*lines, *points)} == {pair[1] for pair in SERIES}


def test_a_dense_page_names_its_charts(opened: Open) -> None:
    rows = [{"uid": f"f{n % 3}", "amount": n % 97, "structure-unit-size": n % 89} for n in range(31_000)]
    page = opened(ScatterView(), profile_of(rows), window={"width": 390})
    assert page.locator("#chooser option").all_inner_texts() == ["all 3 uids", "f0", "f1", "f2"]
    assert page.evaluate(f"{FIGURE}.below.map(one => one.type)") == ["LinearAxis", "ColorBar"]
    assert page.evaluate(f"{FIGURE}.renderers.map(one => one.glyph.type)") == ["Image"]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def named(name: str) -> Profile:
    """A profile in which everything that can have a name has this one."""
    rows = [
        {"uid": uid, "subtype": name, "amount": n, "structure-unit-size": n}
        for uid in (name, "f")
        for n in (1, 2)
    ]
    head = {"type": name, "cmd": name, "args": name, "workload": name, "units": {name: name}}
    return profile_of(rows, header=head, models=[model(name, *MODELS[0])])


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("view", CHARTS)
def test_hostile_names_are_text(view, every, hostile_names, most_hostile_names, open_page, tmp_path) -> None:
    # The first chart is in the page itself, not only in its data: another one for each view.
    # Where views share the names out, each name is in one of them.
    first = list(CHARTS).index(view)
    names = most_hostile_names[first :: len(CHARTS)]
    if every:
        names = hostile_names[first:] + hostile_names[:first]
    options: dict[str, Any] = {"of": "amount"}
    if view != "scatter":
        options["by"] = "uid"
    options |= {"bars": {"per": "subtype", "grouped": True}, "flow": {"through": "structure-unit-size"}}.get(
        view, {}
    )
    made = [CHARTS[view](named(name), **options) for name in names]
    charts = [chart._replace(title=f"{name} {chart.title}") for name, chart in zip(names, made, strict=True)]
    write_plots(tmp_path / "page.html", charts)
    page = open_page(tmp_path / "page.html", width=800, height=640)
    for number, name in enumerate(names):
        wait(page, number)
        if name.isprintable():
            assert page.locator("h1").inner_text().startswith(name[:50])
            assert page.title().startswith(name[:50])
        point_at(page, *{"bars": (0.2, 1), "flow": (1, 1), "scatter": (2, 2)}[view])
        assert "amount" in tooltip(page)
        assert page.evaluate("document.querySelectorAll('img, svg').length") == 0
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert page.evaluate("window.owned") is None
        page.locator("#behind").click()


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_odd_values_are_drawn(every: bool, open_page: Open, tmp_path: Path) -> None:
    charts = []
    odd = ([5], [0, 0], [-1, -2], [5e-324, 1e-300], [1.7e308, -1.7e308], [1e21, 3])
    for number, values in enumerate(odd):
        profile = profile_of(
            [{"uid": "f", "amount": value, "structure-unit-size": value} for value in values]
        )
        made = [
            CHARTS["bars"](profile, of="amount", per="structure-unit-size"),
            CHARTS["flow"](profile, of="amount", through="structure-unit-size", by="uid"),
            CHARTS["flow"](profile, of="amount", through="structure-unit-size", by="uid", stacked=True),
            CHARTS["scatter"](profile),
        ]
        # In `make test` each value in two charts, and each chart with three values.
        charts += made if every else made[number % 2 :: 2]
    write_plots(tmp_path / "page.html", charts)
    page = open_page(tmp_path / "page.html", width=800, height=540)
    for number in range(len(charts)):
        wait(page, number)
        page.locator("#behind").click()
