"""The pages of the dashboard in a real browser, as a site that opens from disk."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import web_sample

from perun.web import pages
from perun.web.data import form
from perun.web.data.series import text_of_value

if TYPE_CHECKING:
    from playwright.sync_api import Page

OpenPage = Callable[..., "Page"]
SERIES = "000000000001"
READY = "html[data-ready]"
KINDS = {
    "overview": "", "series": f"?id={SERIES}", "commit": "?c=HEAD", "compare": "?a=v1.3&b=v1.4", "grid": "",
    "coverage": ""
}  # fmt: skip


@pytest.fixture(scope="session")
def sample() -> web_sample.Sample:
    return web_sample.Sample()


@pytest.fixture(scope="session")
def site(sample: web_sample.Sample, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site of made-up data."""
    return sample.write(tmp_path_factory.mktemp("site")).parent


@pytest.fixture
def visit(open_page: OpenPage, site: Path) -> OpenPage:
    """Open a page of the site and wait until it is drawn: `visit("series", "?id=...", dark=True)`."""

    def visited(page: str, query: str = "", *, folder: Path = site, **options: Any) -> Page:
        opened = open_page(folder / pages.file_name(page), fragment=query, **options)
        opened.wait_for_selector(READY)
        return opened

    return visited


def goes_to(page: Page, part: str) -> None:
    """Wait until the browser is at an address with this part and the page is drawn."""
    page.wait_for_url(lambda address: part in address)
    page.wait_for_selector(READY)


def tip(page: Page) -> str:
    """What the tooltip says, when it says something of a commit."""
    page.wait_for_function(
        "() => [document.getElementById('tip')].some(tip => !tip.hidden && !tip.textContent.includes('…'))"
    )
    return page.locator("#tip").inner_text()


def test_the_made_up_data_have_the_form_of_real_data(sample: web_sample.Sample) -> None:
    kinds = {
        "site": form.Site, "history": form.History, "commits": form.Commits, "series": form.SeriesList,
        "changes": form.ChangeList, "overview": form.Overview, "values": form.Values, "grid": form.Grid,
        "coverage": form.Coverage, "compare": form.Comparison, "explained": form.Explained
    }  # fmt: skip
    for one in (sample, web_sample.Sample(0)):
        for name, piece in one.pieces().items():
            kind = form.SeriesPage if name.startswith("series/") else kinds[name.partition("/")[0]]
            known = msgspec.to_builtins(msgspec.convert(piece, kind))
            assert piece == {key: known[key] for key in known if key != "schema"}, name


@pytest.mark.each_value("kind", "dark", "width")
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_each_page_is_whole_and_open_to_all_people(visit, kind, dark, width) -> None:
    page = visit(kind, KINDS[kind], dark=dark, width=width)
    assert page.get_attribute("html", "data-ready") == "yes"
    assert page.locator("main [aria-busy]:visible").count() == 0  # nothing is loading for ever
    assert page.evaluate("document.documentElement.scrollWidth") <= width  # nothing sticks out
    assert page.locator(f"nav a[aria-current=page][data-link={kind}]").count() == 1
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in background[4:-1].split(",")) < 150) is dark
    assert found_by_axe(page) == []


def found_by_axe(page: Page) -> list[str]:
    """What axe-core says of the page that is serious or worse: rule, and where."""
    axe = pytest.importorskip(
        "axe_playwright_python", reason="axe-playwright-python is part of the extra 'test'"
    )
    page.evaluate((Path(axe.__file__).with_name("axe.min.js")).read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")
    return [
        f"{one['id']}: {node['html'][:120]} {node['any'][0]['message'] if node['any'] else ''}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


def test_the_overview_says_the_verdict_first_and_then_what_changed(visit, sample) -> None:
    page = visit("overview")
    assert page.locator("h1").inner_text().startswith("2 changes made 2 of 14 benchmarks worse since v1.4")
    assert page.locator(".counts li").all_inner_texts()[:3] == [
        "2 got worse, 1 of them acknowledged",
        "10 stayed the same",
        "1 got better",
    ]
    assert "2 doubtful changes" in page.locator(".doubtful").inner_text()
    assert page.locator(".doubtful code").inner_text() == "perun compare 0123456 1234567 -c ./app -w big.txt"
    rows = page.locator("#changes .change")
    worst = rows.first.inner_text()
    assert "+160 % [+152, +168]" in worst and "Degradation" in worst and "compare [exclusive]" in worst
    assert sample.changes[1]["version"]["checksum"][:7] in worst and "1 more of it" in worst
    assert "acknowledged" in rows.last.inner_text()
    assert page.locator("#record tbody td").all_inner_texts() == ["2026-10", "2", "1", "0"]
    heat = page.locator("#heat canvas")
    heat.focus()
    page.keyboard.press("ArrowDown")
    said = tip(page)
    assert "ms" in said and sample.commits[-1]["checksum"][:7] in said
    page.keyboard.press("Enter")
    goes_to(page, f"commit.html?c={sample.commits[-1]['checksum']}")


def test_a_benchmark_is_a_line_and_its_workloads_and_parts_are_below_it_on_demand(visit, sample) -> None:
    page = visit("overview")
    lines = page.locator(".benchmark")
    assert lines.count() == 12  # of 14 series three are of one family
    first = lines.first
    assert sample.series[0]["text"] in first.inner_text()
    assert first.locator("summary").inner_text() == "3 workloads, 3 parts and details"
    assert first.locator("tbody tr").count() == 0
    first.locator("summary").click()
    first.locator("tbody tr").nth(5).wait_for()
    assert first.locator("tbody tr").count() == 6
    first.locator(".what a").click()
    goes_to(page, f"series.html?id={SERIES[:-1]}0")


def test_values_are_written_as_commands_write_them(visit: OpenPage) -> None:
    page = visit("overview")
    chance = random.Random(5)
    cases = [(0.0, 0.0, "s"), (1.0, 1.0, "s"), (0.2, 0.0035, "s"), (-3.0, 0.2, ""), (999.6, 0.96, "ms"),
             (1e-7, 1e-9, "s"), (5e7, 1e5, "s"), (1e30, 1e28, "instr"), (1e5 + 500, 0.0, "")]  # fmt: skip
    for _ in range(2000):
        value = float(f"{10 ** chance.uniform(-9, 5.9):.6g}")
        half = float(f"{value * 10 ** chance.uniform(-6, 0.3):.4g}")
        cases.append((value, half, chance.choice(["s", "ms", "B", "KiB", "", "instr"])))
    written = page.evaluate("cases => cases.map(one => measured(...one))", cases)
    assert written == [text_of_value(*one) for one in cases]


def test_who_compares_is_offered_what_changed(visit: OpenPage, sample: web_sample.Sample) -> None:
    page = visit("compare")
    offered = page.locator(".proposals a")
    assert offered.first.inner_text() == "v1.4 beside the newest commit"
    newest = sample.pieces()["changes"]["changes"][0]
    offered.nth(1).click()
    goes_to(page, f"a={newest['since']['checksum']}&b={newest['version']['checksum']}")
    assert page.locator(".proposals").count() == 0


def test_columns_without_any_value_are_not_drawn(visit: OpenPage) -> None:
    page = visit("grid")
    rows = [{"value": [1, None, None, 2]}, {"value": [None, None, 3, None]}]
    assert page.evaluate("rows => withValues([4, 5, 6, 7], rows)", rows) == {
        "at": [4, 6, 7], "rows": [{"value": [1, None, 2]}, {"value": [None, 3, None]}]
    }  # fmt: skip


def test_keys_lead_everywhere(visit: OpenPage) -> None:
    page = visit("overview")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.locator("[data-row].at").count() == 1
    page.keyboard.press("Enter")
    goes_to(page, "series.html?id=00000000000")
    page.keyboard.press("g")
    page.keyboard.press("c")
    goes_to(page, "commit.html")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("insert incl")
    # What was found for the first letters may still be there.
    page.locator("#found [role=option]").first.filter(has_text="insert [inclusive]").wait_for()
    assert (
        page.locator("#found [role=option]").first.inner_text().splitlines()[-2:][0] == "insert [inclusive]"
    )
    page.keyboard.press("Enter")
    goes_to(page, "series.html?id=00000000000b")


def test_the_search_finds_commits_tags_and_branches(visit: OpenPage, sample: web_sample.Sample) -> None:
    page = visit("grid")
    checksum = sample.commits[17]["checksum"]
    for text, kind in (
        (checksum[:8], "commit"),
        ("v1.3", "tag"),
        ("robin", "branch"),
        (sample.commits[-2]["subject"], "commit"),
    ):
        page.locator("#search").fill(text)
        page.wait_for_function(
            "kind => document.querySelector('#found .kind')?.textContent === kind", arg=kind
        )
    page.locator("#search").fill("nothing has these words at all")
    page.wait_for_selector("#found .none")
    page.locator("#search").fill(checksum)
    page.locator("#found [role=option] .kind").wait_for()
    page.keyboard.press("Enter")
    goes_to(page, f"commit.html?c={checksum}")


def test_the_theme_can_be_chosen_and_stays(visit: OpenPage, screenshot: Callable[..., Path]) -> None:
    page = visit("overview", height=1000)
    assert page.get_attribute("html", "data-dark") is None
    screenshot(page, "dashboard-overview")
    page.keyboard.press("t")
    assert page.get_attribute("html", "data-dark") == ""
    try:
        page.reload()
        page.wait_for_selector(READY)
        assert page.get_attribute("html", "data-dark") == ""
        screenshot(page, "dashboard-overview-dark")
    finally:
        page.keyboard.press("t")  # as the system has it again
    assert page.get_attribute("html", "data-dark") is None


def test_a_chart_is_walked_by_keys_and_two_points_are_compared(visit, sample) -> None:
    page = visit("series", f"?id={SERIES}")
    page.locator("#chart summary").click()
    page.locator("#chart tbody tr").first.wait_for()
    assert page.locator("#chart tbody tr").count() == page.evaluate(
        "perunChart.lines.map(l => l.at.length).reduce((a, b) => a + b)"
    )
    page.locator("#chart-canvas").focus()
    page.keyboard.press("ArrowLeft")
    newest = [one for one in sample.commits if one["profiles"]][-1]
    said = tip(page)
    assert newest["checksum"][:7] in said and newest["author"] in said and " ± " in said
    page.keyboard.press("Space")
    assert "is marked" in page.locator("#chart-note").inner_text()
    for _ in range(9):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    goes_to(page, "compare.html")
    assert page.locator("#b").input_value() == newest["checksum"][:8]  # the older one is the baseline
    assert page.locator("#sentence").inner_text().startswith(newest["checksum"][:7])


def test_a_click_on_a_point_opens_its_commit(visit, sample, screenshot) -> None:
    page = visit("series", f"?id={SERIES}&n=120", height=760)
    x, y, at = page.evaluate(
        """() => {
          const line = perunChart.lines[0], index = line.at.length - 5;
          const place = perunChart.placeOf({line, index});
          return [place.clientX, place.clientY, line.at[index]];
        }"""
    )
    page.mouse.move(x, y)
    assert sample.commits[at]["checksum"][:7] in tip(page)
    screenshot(page, "dashboard-series")
    page.mouse.click(x, y)
    goes_to(page, f"commit.html?c={sample.commits[at]['checksum'][:8]}")


def test_the_view_of_a_chart_is_part_of_the_address(visit: OpenPage) -> None:
    page = visit("series", f"?id={SERIES}")
    page.locator("#chart-tools button", has_text="50").first.click()
    page.wait_for_url(lambda address: "view=" in address)
    seen = page.evaluate("perunChart.view")
    assert seen["to"] - seen["from"] == pytest.approx(50, abs=1)
    box = page.locator("#chart-canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 200, steps=4)
    page.mouse.up()
    page.wait_for_function("from => perunChart.view.from < from", arg=seen["from"])
    page.wait_for_function("() => location.search.includes(perunChart.view.from.toFixed(1))")
    panned = page.evaluate("perunChart.view")
    again = visit("series", page.url.partition("series.html")[2])
    assert again.evaluate("perunChart.view")["from"] == pytest.approx(panned["from"], abs=0.1)
    again.locator("#chart-canvas").focus()
    again.keyboard.press("+")
    narrow = again.evaluate("perunChart.view.to - perunChart.view.from")
    assert narrow < panned["to"] - panned["from"]
    again.keyboard.press("0")
    assert again.evaluate("perunChart.view.to - perunChart.view.from") >= 290


def test_back_and_forward_lead_through_what_was_seen(visit: OpenPage) -> None:
    page = visit("compare", "?a=v1.3&b=v1.4")
    said = page.locator("#sentence").inner_text()
    page.locator("#swap").click()
    page.wait_for_url(lambda address: "a=v1.4&b=v1.3" in address)
    page.wait_for_function("text => document.querySelector('#sentence').textContent !== text", arg=said)
    page.go_back()
    page.wait_for_function("text => document.querySelector('#sentence').textContent === text", arg=said)
    assert page.locator("#a").input_value() == "v1.3"
    page.go_forward()
    page.wait_for_function("() => document.querySelector('#a').value === 'v1.4'")
    page.locator("nav a", has_text="Commits").click()
    goes_to(page, "commit.html")
    page.locator("#list-tools button", has_text="Older").click()
    page.wait_for_url(lambda address: "part=4" in address)
    page.go_back()
    page.wait_for_function(
        "() => !location.search && document.querySelectorAll('#list tbody tr').length === 50"
    )


def test_a_second_tab_has_a_view_of_its_own_and_links_keep_the_context(visit: OpenPage) -> None:
    page = visit("series", f"?id={SERIES}&n=50&machine=laptop")
    assert page.evaluate("perunChart.visible.map(line => line.name)") == ["laptop"]
    assert page.locator("nav a", has_text="Grid").get_attribute("href") == "grid.html?machine=laptop"
    other = page.context.new_page()
    try:
        other.goto(page.url.partition("?")[0] + "?id=000000000003")
        other.wait_for_selector(READY)
        assert other.locator("h1").inner_text() == "rehash [exclusive]"
        assert page.locator("h1").inner_text() == "./app small.txt [real]"
        width = "perunChart.view.to - perunChart.view.from"
        assert page.evaluate(width) < 60 < other.evaluate(width)
        spikes_are_kept(other)
    finally:
        other.close()


@pytest.mark.parametrize("kinds", [
    ("overview", "coverage", "grid"),
    pytest.param(("overview", "series", "commit", "coverage", "grid"), marks=pytest.mark.slow),
])  # fmt: skip
def test_one_machine_is_chosen_on_each_page_and_links_keep_it(visit: OpenPage, kinds: Sequence[str]) -> None:
    page = visit("grid")
    rows = page.locator(".heat .labels li")
    every = rows.count()
    page.locator("#context select").select_option(label="laptop")
    page.wait_for_url(lambda address: "machine=laptop" in address)
    page.wait_for_function("count => document.querySelectorAll('.heat .labels li').length < count", arg=every)
    exact = rows.count()  # what is counted is the same on all machines
    assert 0 < exact < every
    for kind in kinds:
        page.locator(f"nav a[data-link={kind}]").click()
        goes_to(page, f"{pages.file_name(kind)}?machine=laptop")
        assert page.locator("#context select").first.input_value() == "laptop", kind
        links = page.evaluate(
            "[...document.querySelectorAll('#bar nav a, main a[href*=html]')].map(a => a.href)"
        )
        assert [link for link in links if "machine=laptop" not in link] == [], kind
    assert rows.count() == exact
    page.go_back()
    goes_to(page, "coverage.html?machine=laptop")
    assert "Nothing of this machine" in page.locator("#strips").inner_text() or (
        page.locator("#strips tbody tr").count() == 0
    )


def spikes_are_kept(page: Page) -> None:
    """Where a column of pixels has many points, the largest and the smallest one are drawn."""
    found = page.evaluate(
        """() => {
          const count = 100000, at = Float64Array.from({length: count}, (_, i) => i);
          const value = at.map(i => 10 + Math.sin(i));
          value[43210] = 99; value[77777] = -7; value[500] = NaN;
          const columns = decimate(at, value, 0, count - 1, 800);
          const [high, low] = [columns.max, columns.min].map(part => part.slice(0, columns.count));
          return [columns.count, Math.max(...high), columns.x[high.indexOf(99)], Math.min(...low)];
        }"""
    )
    assert found == [800, 99, 43210 * 800 // 99999, -7]


def test_a_commit_says_what_it_changed_and_why(visit, sample, screenshot) -> None:
    change = next(one for one in sample.changes if one["report"])
    page = visit("commit", f"?c={change['version']['checksum'][:7]}")
    assert page.locator("h1").inner_text() == change["version"]["subject"]
    assert page.locator("#steps .change").count() == 2
    reasons = page.locator("#reasons")
    assert reasons.locator(".is-worse p").first.inner_text().startswith("insert() executes 2.6x")
    assert reasons.locator(".added td:last-child").first.inner_text().startswith("+    for (long i")
    assert reasons.locator("h3").inner_text() == "./app big.txt"
    why = page.locator("#why").inner_text()
    assert "12 lines of it changed in table.c:40" in why and "0.3 us * n^2" in why
    page.locator("#why a", has_text="The whole comparison").click()
    goes_to(page, "compare.html?a=")
    assert page.locator(".forest").count() == page.locator("tbody .name .reason").count() == 7
    screenshot(page, "dashboard-compare")
    page.go_back()
    page.wait_for_selector(READY)
    page.keyboard.press("[")
    goes_to(page, f"c={sample.commits[change['version']['at'] - 1]['checksum']}")


def test_what_is_not_there_is_said(visit: OpenPage) -> None:
    page = visit("commit", "?c=0123456789ab")
    assert "There is no commit 0123456789ab" in page.locator("#notices").inner_text()
    page = visit("compare", "?a=no-such-tag&b=v1.4")
    assert "There is no such commit" in page.locator("#a-is").inner_text()


@pytest.mark.parametrize("commits", [0, pytest.param(5, marks=pytest.mark.slow)])
def test_a_repository_without_profiles_is_told_what_to_run(visit, tmp_path, commits) -> None:
    web_sample.Sample(commits, measured=False).write(tmp_path)
    for kind in ("overview", "series", "coverage") if commits == 0 else ("overview", "commit", "grid"):
        page = visit(kind, folder=tmp_path)
        assert page.get_attribute("html", "data-ready") == "yes", kind
        if kind != "commit":
            assert "perun run matrix" in page.locator("main").inner_text(), kind


def test_what_is_damaged_is_said_and_the_rest_is_shown(visit: OpenPage, tmp_path: Path) -> None:
    sample = web_sample.Sample(60)
    sample.write(tmp_path)
    site = {
        **sample.pieces()["site"],
        "problems": ["the profile <b>x</b> is damaged"],
        "running": {"title": "perun run matrix", "done": 3, "total": 40, "seconds_left": 95},
    }
    (tmp_path / "data" / "site.js").write_text(pages.piece("site", json.dumps(site)))
    page = visit("coverage", folder=tmp_path)
    notice = page.locator("#notices").inner_text()
    assert "<b>x</b> is damaged" in notice and "perun fsck" in notice
    assert "perun run matrix 3 of 40, about 95 s left" in notice
    assert page.locator("#strips tbody tr").count() == 3
    (tmp_path / "data" / "grid.js").write_text(pages.piece("grid", '{"at": [1,'))
    page = visit("grid", folder=tmp_path)
    assert "A file of this site is damaged." in page.locator("#notices").inner_text()
    assert page.locator(".skeleton").count() == 0


def test_benchmarks_of_suites_stand_below_their_file(visit: OpenPage, tmp_path: Path) -> None:
    sample = web_sample.Sample(60)
    sample.write(tmp_path)
    overview = sample.pieces()["overview"]
    for number, one in enumerate(overview["benchmarks"][:3]):
        one |= {"group": "tests/test_<b>.py", "name": f"tests/test_<b>.py::test_{number}"}
    (tmp_path / "data" / "overview.js").write_text(pages.piece("overview", json.dumps(overview)))
    page = visit("overview", folder=tmp_path)
    (group,) = page.locator(".suite").all()
    assert "tests/test_<b>.py" in group.locator("summary").first.inner_text()
    assert "3 benchmarks" in group.locator("summary").first.inner_text()
    names = group.locator(".benchmark .name").all_inner_texts()
    assert sorted(names) == ["test_0", "test_1", "test_2"]
    assert page.locator(".benchmark").count() == len(overview["benchmarks"])
    group.locator("summary").first.click()
    assert group.locator(".benchmark").first.is_hidden()
    assert found_by_axe(page) == []


@pytest.mark.parametrize(
    "kinds",
    [("overview", "series", "commit", "compare"), pytest.param(("grid", "coverage"), marks=pytest.mark.slow)],
)
def test_names_are_text_on_all_pages(visit, hostile_names, tmp_path, kinds) -> None:
    sample = web_sample.Sample(60, names=hostile_names)
    sample.write(tmp_path)
    checksum = sample.changes[1]["version"]["checksum"]
    queries = {**KINDS, "commit": f"?c={checksum}", "compare": f"?a=v1.3&b={checksum}"}
    for kind in kinds:
        page = visit(kind, queries[kind], folder=tmp_path)
        assert page.get_attribute("html", "data-ready") == "yes"
        assert page.locator("main img, main script, main b script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        if kind == "overview":
            page.locator("#search").fill("script")
            page.wait_for_selector("#found .kind")
            assert "<script>" in page.locator("#found").inner_text()
        for canvas in page.locator("canvas[tabindex]").all():
            canvas.focus()
            page.keyboard.press("ArrowLeft")
            tip(page)
        assert page.evaluate("window.owned") is None
