"""The page of a flame graph in a real browser: zoom, search, colours, keyboard, and hostile names."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perun.plugin.api import ViewContext
from perun.profile.factory import Profile
from perun.view.flamegraph import FlameGraphView

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROW = 18
FRAMES = 100_000


def profile_of(stacks: dict[tuple[str, ...], int], sources: dict[str, str] | None = None) -> Profile:
    """A memory profile of stacks, the outermost call first."""
    known = sources or {}
    profile = Profile(
        header={"type": "memory", "cmd": "./app", "workload": "in.txt", "units": {"memory": "B"}},
        collector_info={"name": "memory", "params": {}},
    )
    profile.update_resources(
        {
            "type": "memory",
            "subtype": "malloc",
            "amount": amount,
            "address": 64 * number,
            "uid": stack[-1],
            "trace": [
                {"function": name, "source": known.get(name, "app.c"), "line": 1} for name in reversed(stack)
            ],
        }
        for number, (stack, amount) in enumerate(stacks.items())
    )
    return profile


STACKS = {
    ("main", "parse", "malloc"): 500,
    ("main", "parse", "copy", "malloc"): 100,
    ("main", "read"): 300,
    ("main", "read", "calloc"): 100,
}
SOURCES = {"malloc": "libc.so.6", "calloc": "libc.so.6"}


@pytest.fixture
def graph(open_page: Callable[..., Page], written: Callable[..., Path]) -> Callable[..., Page]:
    def opened(
        profile: Profile | None = None, *, fragment: str = "", dark: bool = False, **options: Any
    ) -> Page:
        path = written(FlameGraphView(), profile or profile_of(STACKS, SOURCES), **options)
        page = open_page(path, fragment=fragment, dark=dark)
        page.wait_for_selector("html[data-drawn]")
        return page

    return opened


def point(page: Page, share: float, depth: int, levels: int = 5, icicle: bool = False) -> tuple[float, float]:
    """Where on the screen a share of the width lies, at a depth."""
    box = page.locator("#graph").bounding_box()
    assert box
    row = depth if icicle else levels - 1 - depth
    return box["x"] + share * box["width"], box["y"] + 1 + (row + 0.5) * ROW


def shown(page: Page) -> dict[str, str]:
    """What the page tells of the selected call."""
    terms = page.locator("#details dt").all_inner_texts()
    told = dict(zip(terms, page.locator("#details dd").all_inner_texts(), strict=True))
    return {"name": page.locator("#details h2").inner_text(), **told}


def path(page: Page) -> list[str]:
    return page.locator("#path button").all_inner_texts()


def colours(page: Page, share: float, depth: int, levels: int = 5) -> list[int]:
    """The colour of a pixel near the upper left of what is drawn there."""
    return page.evaluate(
        """([share, row]) => {
            const canvas = document.getElementById("graph");
            const ratio = canvas.width / canvas.clientWidth;
            const [x, y] = [share * canvas.width, (row * 18 + 4) * ratio];
            return [...canvas.getContext("2d").getImageData(x, y, 1, 1).data];
        }""",
        [share, levels - 1 - depth],
    )


def settled(page: Page) -> None:
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_what_is_under_the_pointer_is_told_with_unit_and_share(graph: Callable[..., Page]) -> None:
    page = graph()
    assert page.title() == "Flame graph of ./app in.txt"
    assert "1,000 B in all" in page.locator(".subtitle").inner_text()
    page.mouse.move(*point(page, 0.1, 2))
    tip = page.locator("#tip")
    assert tip.is_visible()
    told = tip.inner_text()
    assert told.startswith("parse\n")
    assert "Source: app.c:1" in told
    assert "Total: 600 B, 60.0 % of all" in told
    assert "Itself: 0 B" in told
    page.mouse.move(*point(page, 0.95, 2))
    assert "Itself: 300 B, 30.0 % of all" in tip.inner_text()
    page.mouse.move(5, 5)
    assert not tip.is_visible()
    # What assistive technology finds has names.
    assert page.get_by_role("application", name=re.compile("Flame graph. Arrow keys")).count() == 1
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, canvas")].filter(one =>
            !one.hidden && !(one.getAttribute("aria-label") || one.textContent.trim() ||
            (one.labels && one.labels.length))).map(one => one.outerHTML)"""
    )
    assert nameless == []
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("#details").get_attribute("aria-live") == "polite"


def test_zoom_by_click_and_the_ways_back(graph: Callable[..., Page], screenshot: Any) -> None:
    page = graph()
    reset = page.get_by_role("button", name="Reset zoom")
    assert reset.is_disabled()
    page.mouse.click(*point(page, 0.8, 2))
    assert path(page) == ["all", "main", "read"]
    page.mouse.move(*point(page, 0.1, 3))
    assert page.locator("#tip").inner_text().startswith("calloc")
    page.mouse.click(*point(page, 0.1, 3))
    assert path(page) == ["all", "main", "read", "calloc"]
    page.locator("#path").get_by_text("read").click()
    assert path(page) == ["all", "main", "read"]
    page.mouse.click(*point(page, 0.5, 1))  # a caller lies below, as wide as the page
    assert path(page) == ["all", "main"]
    page.mouse.click(*point(page, 0.8, 2))
    reset.click()
    assert path(page) == ["all"]
    assert reset.is_disabled()


def test_search_tells_matches_and_their_share(graph: Callable[..., Page]) -> None:
    page = graph()
    search = page.get_by_role("searchbox")
    found = page.locator("#found")
    search.fill("^[mc]alloc$")
    assert found.inner_text() == "3 matches, 70.0 %"
    search.fill("PARSE")
    assert found.inner_text() == "no match"
    search.fill("parse|copy")  # one lies in the other
    assert found.inner_text() == "2 matches, 60.0 %"
    search.fill("main(")
    assert found.inner_text() == "not a regular expression"
    assert search.get_attribute("aria-invalid") == "true"
    search.fill("calloc")
    page.mouse.click(*point(page, 0.8, 2))
    assert found.inner_text() == "1 match, 10.0 % (25.0 % of the zoomed call)"
    search.fill("")
    assert found.inner_text() == ""
    # The list of the heaviest functions searches, too.
    page.get_by_role("button", name="Reset zoom").click()
    page.locator("#heaviest summary").click()
    page.wait_for_selector("#heaviest-rows tr")
    rows = page.locator("#heaviest-rows tr").all_inner_texts()
    assert re.sub(r"\s+", " ", rows[0]) == "600 B 60.0 % 600 B 60.0 % malloc"
    page.locator("#heaviest").get_by_role("button", name="malloc").click()
    assert page.locator("#found").inner_text() == "2 matches, 60.0 %"


def test_matches_keep_their_colour_and_others_lose_it(graph: Callable[..., Page]) -> None:
    page = graph()
    before = [colours(page, share, 2) for share in (0.3, 0.8)]
    page.get_by_role("searchbox").fill("read")
    settled(page)
    after = [colours(page, share, 2) for share in (0.3, 0.8)]
    assert after[1] == before[1]
    assert after[0] != before[0]


def test_keyboard(graph: Callable[..., Page]) -> None:
    page = graph()
    # Letters are no orders within the search.
    page.keyboard.press("/")
    page.keyboard.type("ic/0")
    assert page.get_by_role("searchbox").input_value() == "ic/0"
    assert page.get_by_role("button", name="Icicle").get_attribute("aria-pressed") == "false"
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("alloc")
    assert page.locator("#found").inner_text() == "3 matches, 70.0 %"
    seen = []
    for _ in range(4):
        page.keyboard.press("Enter")
        seen.append((shown(page)["name"], shown(page)["Total"].partition(",")[0]))
    assert seen == [("malloc", "500 B"), ("malloc", "100 B"), ("calloc", "100 B"), ("malloc", "500 B")]
    page.keyboard.press("Shift+Enter")
    assert shown(page)["name"] == "calloc"
    page.keyboard.press("Escape")
    assert page.get_by_role("searchbox").input_value() == ""
    assert page.evaluate("document.activeElement.id") == "graph"
    page.keyboard.press("ArrowDown")
    assert shown(page)["name"] == "read"
    page.keyboard.press("ArrowLeft")
    assert shown(page)["name"] == "parse"
    page.keyboard.press("ArrowUp")
    assert shown(page)["name"] == "malloc"
    page.keyboard.press("ArrowRight")
    assert shown(page)["name"] == "copy"
    page.keyboard.press("Enter")
    assert path(page) == ["all", "main", "parse", "copy"]
    page.keyboard.press("Escape")
    assert path(page) == ["all", "main", "parse"]
    page.keyboard.press("0")
    assert path(page) == ["all"]
    page.keyboard.press("i")
    assert page.get_by_role("button", name="Icicle").get_attribute("aria-pressed") == "true"
    page.keyboard.press("c")
    assert page.locator("#colour").input_value() == "name"


def test_icicle_has_the_outermost_call_on_top(graph: Callable[..., Page], screenshot: Any) -> None:
    page = graph(icicle=True)
    page.mouse.move(*point(page, 0.1, 2, icicle=True))
    assert page.locator("#tip").inner_text().startswith("parse")
    page.get_by_role("button", name="Icicle").click()
    page.mouse.move(*point(page, 0.1, 2))
    assert page.locator("#tip").inner_text().startswith("parse")


def test_colours_by_module_function_and_share(graph: Callable[..., Page]) -> None:
    page = graph()
    legend = page.locator("#legend")
    assert re.search(r"libc\.so\.6 . 70\.0 %\s+app\.c . 30\.0 %", legend.inner_text())
    # Of one module though of different functions: the same hue.
    by_module = [colours(page, share, depth) for share, depth in ((0.3, 3), (0.95, 2))]
    page.locator("#colour").select_option("share")
    settled(page)
    assert "share of all" in legend.inner_text()
    assert [colours(page, share, depth) for share, depth in ((0.3, 3), (0.95, 2))] != by_module
    page.locator("#colour").select_option("name")
    assert legend.inner_text() == ""
    # Callees first.
    page.get_by_label("Callees first").check()
    page.mouse.move(*point(page, 0.1, 1))
    told = page.locator("#tip").inner_text()
    assert told.startswith("malloc")
    assert "Total: 600 B, 60.0 % of all" in told


def test_lines_are_told_apart_where_asked(graph: Callable[..., Page]) -> None:
    profile = Profile(header={"type": "memory", "cmd": "a", "units": {"memory": "B"}})
    profile.update_resources(
        {"type": "memory", "amount": 10, "uid": "f",
         "trace": [{"function": "f", "source": "a.c", "line": line}]}
        for line in (7, 9)
    )  # fmt: skip
    page = graph(profile)
    page.mouse.move(*point(page, 0.1, 1, levels=2))
    assert "a.c:7, 9" in page.locator("#tip").inner_text()
    page.get_by_label("Separate lines").check()
    page.mouse.move(*point(page, 0.9, 1, levels=2))
    told = page.locator("#tip").inner_text()
    assert "a.c:9" in told
    assert "Total: 10 B, 50.0 % of all" in told


def test_the_address_keeps_what_is_seen(graph: Callable[..., Page]) -> None:
    page = graph()
    page.get_by_role("searchbox").fill("alloc")
    page.mouse.click(*point(page, 0.8, 2))
    page.keyboard.press("i")
    fragment = page.evaluate("location.hash")
    page.reload()
    page.wait_for_selector("html[data-drawn]")
    assert path(page) == ["all", "main", "read"]
    assert page.get_by_role("searchbox").input_value() == "alloc"
    assert page.evaluate("location.hash") == fragment


def test_the_wheel_and_dragging(graph: Callable[..., Page]) -> None:
    page = graph()
    page.mouse.move(*point(page, 0.8, 2))
    # One by one: a browser that is late makes one event of several.
    page.evaluate("() => { window.turned = 0; addEventListener('wheel', () => { turned += 1; }); }")
    page.keyboard.down("Control")
    for number in range(1, 5):
        page.mouse.wheel(0, -100)
        page.wait_for_function("number => turned === number", arg=number)
    page.keyboard.up("Control")
    page.wait_for_function("() => document.querySelectorAll('#path button').length === 3")
    assert path(page) == ["all", "main", "read"]
    start = point(page, 0.2, 2)
    page.mouse.move(*start)
    page.mouse.down()
    for step in range(1, 11):
        page.mouse.move(start[0] + 100 * step, start[1])
    page.mouse.up()
    assert path(page) == ["all", "main"]


def test_light_and_dark(graph: Callable[..., Page], screenshot: Any) -> None:
    brightness = {}
    for dark in (False, True):
        page = graph(dark=dark)
        brightness[dark] = sum(colours(page, 0.95, 4)[:3])  # where nothing is drawn
        text = page.evaluate("getComputedStyle(document.body).color")
        brightness[dark, "text"] = sum(map(int, re.findall(r"\d+", text)[:3]))
    assert brightness[False] > 700 > 200 > brightness[True]
    assert brightness[False, "text"] < 200 < 600 < brightness[True, "text"]


def test_a_differential_graph(written, open_page, screenshot) -> None:
    before = profile_of({**STACKS, ("main", "gone"): 200}, SOURCES)
    now = profile_of({**STACKS, ("main", "read"): 900, ("main", "new"): 100}, SOURCES)
    ctx = ViewContext(load=lambda spec: before)
    page = open_page(written(FlameGraphView(), now, ctx, diff="0@i"))
    page.wait_for_selector("html[data-drawn]")
    subtitle = page.locator(".subtitle").inner_text()
    assert "compared with 0@i" in subtitle
    assert "1.7 kB" in subtitle or "1.66 KiB" in subtitle
    page.keyboard.press("/")
    told = {}
    for name in ("read", "gone", "new", "parse"):
        page.get_by_role("searchbox").fill(name)
        page.keyboard.press("Enter")
        told[name] = shown(page)["Change"]
    assert told == {
        "read": "+600 B (+150.0 %)",
        "gone": "\u2212200 B (\u2212100.0 %)",
        "new": "+100 B (new)",
        "parse": "\u00b10 B (\u00b10 %)",
    }
    page.get_by_role("searchbox").fill("")
    page.get_by_label("Width").select_option("this")
    page.get_by_role("searchbox").fill("gone")
    assert page.locator("#found").inner_text() == "1 match, 0 %"
    page.get_by_role("searchbox").fill("")
    page.get_by_label("Width").select_option("larger")
    page.get_by_label("Compare shares").check()
    assert "\u00b10 B" in page.locator("#total").inner_text()
    page.get_by_label("Compare shares").uncheck()
    settled(page)
    # All is 1900 wide: read 1000, parse 600, gone 200, new 100.
    grew, same, shrank = (colours(page, share, 2) for share in (0.4, 0.7, 0.92))
    assert grew[0] > grew[2]
    assert shrank[2] > shrank[0]
    assert max(same[:3]) - min(same[:3]) < 12
    screenshot(page, "flamegraph-diff")


def test_hostile_names_are_text(graph: Callable[..., Page], hostile: str) -> None:
    name = hostile
    profile = profile_of({(name, name + "2", "leaf"): 3, (name, "leaf"): 1}, {name: name, "leaf": name})
    profile["header"]["cmd"] = profile["header"]["workload"] = name
    page = graph(profile, graph_title=name if len(name) < 100 else "")
    visible = name.replace("\ud800", "\ufffd")
    if name.isprintable():
        assert visible[:50] in page.title()
        assert visible[:50] in page.locator("h1").inner_text()
    page.mouse.move(*point(page, 0.5, 1, levels=4))
    tip = page.locator("#tip b").inner_text()
    assert len(tip) <= 2000
    page.mouse.click(*point(page, 0.5, 1, levels=4))
    if name.isprintable():
        assert tip.startswith(name[:50])
        assert shown(page)["name"] == name
    page.get_by_role("searchbox").fill("leaf")
    page.locator("#heaviest summary").click()
    page.locator("#heaviest-rows button").last.click()
    page.keyboard.press("c")
    page.keyboard.press("i")
    assert page.locator("script").count() == 2  # the data and the one script of the page
    assert page.locator("img, svg").count() == 0
    assert page.locator("body").bounding_box()["width"] <= 1280


def test_a_stack_deeper_than_the_screen(graph: Callable[..., Page]) -> None:
    depth = 5000
    page = graph(profile_of({tuple(f"f{level}" for level in range(depth)): 1}))
    box = page.locator("#graph").bounding_box()
    assert box and box["height"] < 860
    page.keyboard.press("/")
    page.keyboard.type(f"f{depth - 1}$")
    page.keyboard.press("Enter")
    assert shown(page)["name"] == f"f{depth - 1}"
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    assert len(path(page)) < 12
    assert path(page)[-1] == f"f{depth - 1}"


def test_one_frame_and_many_roots(graph: Callable[..., Page]) -> None:
    page = graph(profile_of({("only",): 1}))
    page.mouse.click(*point(page, 0.5, 1, levels=2))
    assert path(page) == ["all", "only"]
    page = graph(profile_of({(f"root{number}",): 1 for number in range(3000)}))
    page.get_by_role("searchbox").fill("root")
    assert page.locator("#found").inner_text() == "3000 matches, 100.0 %"


def large(frames: int) -> Profile:
    """A profile whose flame graph has about that many frames, up to 60 deep."""
    chance = random.Random(7)
    parents, depths = [-1], [0]
    for node in range(1, frames):
        parent = chance.randrange(max(0, node - 2000), node)
        while depths[parent] >= 60:
            parent = parents[parent]
        parents.append(parent)
        depths.append(depths[parent] + 1)
    names = [f"function_{number}" for number in range(frames)]
    callers = set(parents)
    stacks = {}
    for node in range(frames):
        if node not in callers:
            stack = []
            while node >= 0:
                stack.append(names[node])
                node = parents[node]
            stacks[tuple(reversed(stack))] = chance.randint(1, 1000)
    return profile_of(stacks)


@pytest.mark.slow
def test_a_hundred_thousand_frames(written: Callable[..., Path], open_page: Callable[..., Page]) -> None:
    page = open_page(written(FlameGraphView(), large(FRAMES)))
    page.wait_for_selector("html[data-drawn]")
    page.get_by_role("searchbox").fill("function_")
    found = page.locator("#found").inner_text()
    frames = int(found.split()[0])
    assert frames > FRAMES * 0.9
    page.get_by_role("searchbox").fill("function_1.*7$")
    settled(page)
    fewer = int(page.locator("#found").inner_text().split()[0])
    assert 0 < fewer < frames


def test_what_the_manual_shows(graph: Callable[..., Page], screenshot: Any) -> None:
    modules = {
        "parse": "parser.c",
        "token": "parser.c",
        "node": "tree.c",
        "insert": "tree.c",
        "grow": "tree.c",
    }
    modules |= {"read": "input.c", "line": "input.c", "malloc": "libc.so.6", "realloc": "libc.so.6"}
    modules |= {
        "fopen": "libc.so.6",
        "main": "main.c",
        "_start": "libc.so.6",
        "hash": "table.c",
        "put": "table.c",
    }
    tree = {
        ("_start", "main", "read", "line", "realloc"): 52_000,
        ("_start", "main", "read", "fopen", "malloc"): 4_096,
        ("_start", "main", "parse", "token", "malloc"): 91_000,
        ("_start", "main", "parse", "node", "malloc"): 160_000,
        ("_start", "main", "parse", "node", "insert", "grow", "realloc"): 210_000,
        ("_start", "main", "parse", "node", "insert", "malloc"): 48_000,
        ("_start", "main", "parse", "put", "hash", "malloc"): 33_000,
        ("_start", "main", "parse", "put", "malloc"): 71_000,
        ("_start", "main", "put", "malloc"): 20_000,
    }
    profile = profile_of(tree, modules)
    for dark in (False, True):
        page = graph(profile, dark=dark)
        page.mouse.move(*point(page, 0.2, 4, levels=8))
        screenshot(page, "flamegraph-dark" if dark else "flamegraph")
    page = graph(profile)
    page.get_by_role("searchbox").fill("^(m|re)alloc$")
    settled(page)
    screenshot(page, "flamegraph-search")


def test_the_numbers_of_a_memory_profile(graph: Callable[..., Page], screenshot: Any) -> None:
    profile = Profile(
        header={"type": "memory", "cmd": "./app", "workload": "in.txt", "units": {"memory": "B"}},
        collector_info={"name": "memory", "params": {}},
    )
    for name, numbers in {
        "kept": {"amount": 4096, "count": 4, "peak": 2048, "leaked": 0},
        "short": {"amount": 8192, "count": 8, "peak": 0, "temporary": 7},
    }.items():
        trace = [{"function": one, "source": "app.c", "line": 1} for one in (name, "main")]
        profile.update_resources(
            [{"type": "memory", "subtype": "malloc", "address": 64, "uid": name, "trace": trace, **numbers}]
        )
    page = graph(profile)
    tabs = page.locator("#modes button")
    assert tabs.all_inner_texts() == [
        "Peak 2 KiB", "Leaked 0 B", "Allocated 12 KiB", "Temporary 7 allocations", "Count 12 allocations",
    ]  # fmt: skip
    assert [tab.get_attribute("aria-pressed") for tab in tabs.all()] == ["true", *["false"] * 4]
    assert tabs.nth(1).is_disabled()
    search = page.get_by_role("searchbox")
    search.fill("short")
    assert page.locator("#found").inner_text() == "no match"
    tabs.nth(2).click()
    assert page.locator("#total").inner_text().endswith("allocated: 12 KiB in all")
    assert page.locator("#found").inner_text() == "1 match, 66.7 %"
    page.reload()
    page.wait_for_selector("html[data-drawn]")
    assert tabs.nth(2).get_attribute("aria-pressed") == "true"
    assert page.locator("#found").inner_text() == "1 match, 66.7 %"
    settled(page)
    screenshot(page, "flamegraph-modes")
