"""The page of a heap map in a real browser: slider, play, heat, colours, keyboard, and hostile names."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perun.profile.factory import Profile
from perun.view.heapmap import HeapMapView

if TYPE_CHECKING:
    from playwright.sync_api import Page

GUTTER = 124
ROW = 13


def resource(subtype: str, address: int, amount: int, name: str = "main", line: int = 3) -> dict[str, Any]:
    uid = {"source": "app.c", "function": name, "line": line}
    return {"type": "memory", "subtype": subtype, "address": address, "amount": amount, "uid": uid}


def profile_of(*snapshots: list[dict[str, Any]]) -> Profile:
    return Profile(
        header={"type": "memory", "cmd": "./app", "workload": "in.txt", "units": {"memory": "B"}},
        collector_info={"name": "memory", "params": {}},
        snapshots=[
            {"time": f"{number / 10}", "resources": resources}
            for number, resources in enumerate(snapshots, 1)
        ],
    )


# Rows are 64 addresses long: a heap of a few bytes, and a mapping far away.
EXAMPLE = (
    [resource("malloc", 0x1000, 32), resource("calloc", 0x1020, 16, "table")],
    [resource("malloc", 0x1080, 64, "grow"), resource("malloc", 0x7F0000000000, 64, "map")],
    [resource("free", 0x1000, 0), resource("malloc", 0x1000, 8)],
    [resource("free", address, 0) for address in (0x1000, 0x1020, 0x1080, 0x7F0000000000)],
)


@pytest.fixture
def heap(open_page: Callable[..., Page], written: Callable[..., Path]) -> Callable[..., Page]:
    def opened(profile: Profile | None = None, *, dark: bool = False, **options: Any) -> Page:
        page = open_page(written(HeapMapView(), profile or profile_of(*EXAMPLE), **options), dark=dark)
        page.wait_for_selector("html[data-drawn]")
        return page

    return opened


def point(page: Page, share: float, y: float) -> tuple[float, float]:
    """Where on the screen a share of a row lies, `y` pixels below the top of the map."""
    box = page.locator("#map").bounding_box()
    assert box
    return box["x"] + GUTTER + share * (box["width"] - GUTTER - 4), box["y"] + y


def told(page: Page) -> str:
    return page.locator("#summary").inner_text()


def picture(page: Page) -> str:
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.evaluate("() => document.getElementById('map').toDataURL()")


def slide(page: Page, snapshot: int) -> None:
    page.get_by_role("slider").fill(str(snapshot))


def test_the_slider_goes_through_the_snapshots(heap: Callable[..., Page]) -> None:
    page = heap()
    assert page.title() == "Heap map of ./app in.txt"
    assert page.locator("#subtitle").inner_text() == "at most 176 B at once; 5 allocations, 4 snapshots"
    assert page.locator("#when").inner_text() == "1 of 4, at 0.1 s"
    assert told(page) == "48 B allocated in 2 chunks, the largest 32 B; no holes between them."
    first = picture(page)
    slide(page, 1)
    assert page.locator("#when").inner_text() == "2 of 4, at 0.2 s"
    assert told(page) == (
        "176 B allocated in 4 chunks, the largest 64 B; 80 B free between them in 1 hole, the largest 80 B."
    )
    second = picture(page)
    assert first != second
    slide(page, 2)
    assert "152 B allocated in 4 chunks" in told(page)
    slide(page, 3)
    assert told(page) == "nothing is allocated at the end of this snapshot."
    slide(page, 0)
    assert picture(page) == first
    # It says what it stands for.
    slider = page.get_by_role("slider", name="Snapshot")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "snapshot 2 of 4, at 0.2 s: 176 B in 4 chunks"
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, canvas")].filter(one =>
            !(one.getAttribute("aria-label") || one.textContent.trim() || (one.labels && one.labels.length))
        ).map(one => one.outerHTML)"""
    )
    assert nameless == []


def test_it_plays_to_the_end_and_again(heap: Callable[..., Page]) -> None:
    page = heap()
    button = page.locator("#play")
    # At once, as it may have played to the end when the next order of the test arrives.
    assert "Pause" in page.evaluate("() => { play.click(); return play.textContent; }")
    page.wait_for_function("() => document.getElementById('play').textContent.includes('Play')")
    assert page.locator("#when").inner_text().startswith("4 of 4")
    # Whatever would go on is a timer that nobody has cleared.
    page.evaluate(
        """() => {
          window.running = new Set();
          const {setInterval: set, clearInterval: clear} = window;
          window.setInterval = (...given) => { const id = set(...given); running.add(id); return id; };
          window.clearInterval = id => { running.delete(id); clear(id); };
        }"""
    )
    timers = page.evaluate(
        """() => new Promise(done => {
          const key = {key: "p", bubbles: true};
          const press = () => document.body.dispatchEvent(new KeyboardEvent("keydown", key));
          const when = document.getElementById("when");
          const watch = new MutationObserver(() => {
            if (!when.textContent.startsWith("2 of 4")) return;
            watch.disconnect();
            const before = running.size;
            press();
            done([before, running.size]);
          });
          watch.observe(when, {childList: true, characterData: true, subtree: true});
          press();
        })"""
    )
    assert "Play" in button.inner_text()
    assert timers == [1, 0]
    assert page.locator("#when").inner_text().startswith("2 of 4")
    page.keyboard.press("[")
    page.keyboard.press("[")
    page.keyboard.press("[")
    assert page.locator("#when").inner_text().startswith("1 of 4")
    page.keyboard.press("]")
    assert page.locator("#when").inner_text().startswith("2 of 4")


def test_the_peak_and_the_timeline(heap: Callable[..., Page]) -> None:
    page = heap()
    page.get_by_role("button", name="Peak").click()
    assert page.locator("#when").inner_text() == "2 of 4, at 0.2 s"
    box = page.locator("#timeline").bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + 20)
    assert page.locator("#when").inner_text() == "4 of 4, at 0.4 s"


def test_what_is_under_the_pointer_and_what_is_clicked(heap: Callable[..., Page]) -> None:
    page = heap()
    tip = page.locator("#tip")
    page.mouse.move(*point(page, 0.6, 8))
    assert tip.inner_text().split("\n") == [
        "table (app.c:3)",
        "16 B by calloc, 33.3 % of what is allocated",
        "0x1020 \u2013 0x102f",
        "allocated at 0.1 s, until 0.4 s",
    ]
    page.mouse.move(*point(page, 0.9, 8))
    assert not tip.is_visible()
    slide(page, 1)
    far = 2 + 3 * ROW + 9 + 6  # below three rows of the heap and a break
    page.mouse.click(*point(page, 0.5, far))
    assert "map (app.c:3)" in page.locator("#details").inner_text()
    assert "0x7f0000000000 \u2013 0x7f000000003f" in page.locator("#details").inner_text()
    page.keyboard.press("ArrowLeft")
    assert "grow (app.c:3)" in page.locator("#details").inner_text()


def test_who_allocated_what_in_which_colours(heap: Callable[..., Page]) -> None:
    page = heap()
    slide(page, 1)
    rows = [re.sub(r"\s+", " ", row) for row in page.locator("#rows tr").all_inner_texts()]
    assert rows[2:] == ["32 B 18.2 % 1 main (app.c:3)", "16 B 9.1 % 1 table (app.c:3)"]
    assert sorted(rows[:2]) == ["64 B 36.4 % 1 grow (app.c:3)", "64 B 36.4 % 1 map (app.c:3)"]
    seen = set()
    for by, text in [
        ("site", "main (app.c:3)"),
        ("kind", "calloc"),
        ("amount", "8 B to 64 B"),
        ("age", "new"),
    ]:
        page.get_by_label("Colour by").select_option(by)
        assert text in page.locator("#legend").inner_text()
        seen.add(picture(page))
    assert len(seen) == 4


def test_the_heat_over_all(heap: Callable[..., Page]) -> None:
    page = heap()
    before = picture(page)
    page.get_by_role("button", name="Heat map").click()
    assert told(page) == "5 allocations over all snapshots; the hottest address range was allocated 2 times."
    assert picture(page) != before
    page.mouse.move(*point(page, 0.05, 8))
    assert page.locator("#tip").inner_text() == "allocated 2 times\n0x1003 \u2013 0x1003"
    page.mouse.move(*point(page, 0.4, 8))
    assert page.locator("#tip").inner_text() == "allocated 1 time\n0x1019 \u2013 0x1019"
    assert not page.locator("#sites").is_visible()
    page.get_by_role("button", name="Snapshots").click()
    assert "48 B allocated" in told(page)
    assert heap(heat=True).locator("#show-heat").get_attribute("aria-pressed") == "true"


def test_light_and_dark(heap: Callable[..., Page]) -> None:
    page = heap(dark=True)
    backgrounds = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        backgrounds.append(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
    light, dark = (sum(map(int, re.findall(r"\d+", one)[:3])) for one in backgrounds)
    assert light > 700 > 200 > dark


def test_a_long_place_does_not_widen_the_page_of_a_phone(open_page, written) -> None:
    profile = profile_of([resource("malloc", 0x1000, 32, "/home/somebody/a/long/path/" * 4 + "list.c")])
    page = open_page(written(HeapMapView(), profile), width=390)
    page.wait_for_selector("html[data-drawn]")
    assert page.locator("#legend li").count()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_hostile_names_are_text(heap: Callable[..., Page], hostile: str) -> None:
    profile = profile_of(
        [resource(hostile, 0x1000, 32, hostile), resource("malloc", 0x1020, 8)],
        [resource("malloc", 0x1040, 32, hostile + "2", line=0)],
    )
    profile["header"]["cmd"] = hostile
    page = heap(profile)
    page.mouse.move(*point(page, 0.1, 8))
    tip = page.locator("#tip b").inner_text()
    assert len(tip) <= 2000
    if hostile.isprintable():
        assert tip.startswith(hostile[:50])
        assert hostile[:50] in page.locator("h1").inner_text()
        assert hostile[:50] in page.locator("#rows").inner_text()
    page.mouse.click(*point(page, 0.1, 8))
    page.get_by_label("Colour by").select_option("kind")
    assert page.locator("script").count() == 2
    assert page.locator("img, svg").count() == 0


def test_one_snapshot_and_odd_addresses(heap: Callable[..., Page]) -> None:
    page = heap(profile_of([resource("malloc", 0, 1), resource("malloc", 2**64 - 16, 16)]))
    assert page.get_by_role("slider").is_disabled()
    assert page.locator("#play").is_disabled()
    assert told(page).startswith("17 B allocated in 2 chunks")
    page.mouse.move(*point(page, 0.8, 2 + ROW + 9 + 6))
    assert "0xfffffffffffffff0 \u2013 0xffffffffffffffff" in page.locator("#tip").inner_text()
    page = heap(profile_of([resource("malloc", 2**66, 2**65)]))
    assert "in 1 chunk" in told(page)


@pytest.mark.slow
def test_many_chunks(written: Callable[..., Path], open_page: Callable[..., Page]) -> None:
    chance = random.Random(5)
    snapshots = [
        [
            resource("malloc", 4096 + 64 * (number * 1000 + i), chance.randint(1, 64), f"f{i % 50}")
            for i in range(1000)
        ]
        for number in range(100)
    ]
    page = open_page(written(HeapMapView(), profile_of(*snapshots)))
    page.wait_for_selector("html[data-drawn]")
    slide(page, 99)
    assert told(page).endswith("holes, the largest 63 B.") or "100,000 chunks" in told(page)
    assert picture(page)


def test_what_the_manual_shows(heap: Callable[..., Page], screenshot: Any) -> None:
    chance = random.Random(4)
    places = ("parse", "token", "insert", "grow", "line", "hash", "copy")
    live: dict[int, int] = {}
    free: list[tuple[int, int]] = []
    top, mapped = 0x55D0C0DE1000, 0x7F3A00000000
    snapshots = []
    for number in range(60):
        resources = []
        for _ in range(120):
            if live and chance.random() < (0.35 if number < 36 else 0.65):
                address = chance.choice(list(live))
                free.append((address, live.pop(address)))
                resources.append(resource("free", address, 0))
                continue
            amount = 16 * chance.randint(1, 2 ** chance.randint(1, 8))
            fitting = [one for one in free if amount <= one[1] < 4 * amount]
            if fitting:
                address = fitting[0][0]
                free.remove(fitting[0])
            elif chance.random() < 0.01:
                address, amount = mapped, 65536 * 2
                mapped += amount + 4096
            else:
                address = top
                top += amount + 16
            live[address] = amount
            place = chance.randrange(len(places))
            resources.append(resource("malloc", address, amount, places[place], 10 + place))
        snapshots.append(resources)
    page = heap(profile_of(*snapshots))
    page.get_by_role("button", name="Peak").click()
    picture(page)
    screenshot(page, "heapmap")
    page.get_by_role("button", name="Heat map").click()
    picture(page)
    screenshot(page, "heapmap-heat")
