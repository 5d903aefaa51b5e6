"""The page of a timeline in a real browser: rows, zoom, search, keyboard, stops, hostile names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from islands import READ, RECV, SECOND, SLEEP, WRITE, Call, profile, real, timeline, usage
from perun.profile.factory import Profile
from perun.profile.island import ApiFunction
from perun.view.timeline import TimelineView

if TYPE_CHECKING:
    from playwright.sync_api import Page

MS = 1_000_000
THREADS = ("MainThread", "worker", "idle")
CALLS: tuple[Call, ...] = (
    (0, WRITE, "/tmp/out.txt#1", 100 * MS, 200 * MS, 800),
    (0, SLEEP, "", 400 * MS, 300 * MS, 300 * MS),
    (0, READ, "/etc/hosts#1", 800 * MS, 100 * MS, 40),
    (1, RECV, "tcp example.org:80#1", 50 * MS, 500 * MS, 4096),
)


def shown(threads: Sequence[str] = THREADS, calls: Sequence[Call] = CALLS) -> Profile:
    rows = [
        real(1.0),
        usage("filewrite", 800, uid="/tmp/out.txt#1", calls=1, seconds=0.2),
        usage("sleep", 0.3, calls=1, seconds=0.3),
        usage("user-thread", 0.4, seconds=0.4),
        usage("tcp-recv", 4096, uid="tcp example.org:80#1", thread="worker", calls=1, seconds=0.5),
    ]
    return profile(rows, timeline(threads, calls, stops=[(450 * MS, 100 * MS)]))


@pytest.fixture
def page(open_page: Callable[..., Page], written: Callable[..., Path]) -> Page:
    return open_page(written(TimelineView(), shown()))


def pixel(page: Page, share: float, row: int) -> list[int]:
    """The colour in the middle of a row, at a share of the run."""
    found: list[int] = page.evaluate(
        """([share, row]) => {
            const canvas = document.getElementById("graph"), ratio = canvas.width / canvas.clientWidth;
            const label = Math.min(190, Math.round(canvas.clientWidth * 0.22));
            const x = (label + share * (canvas.clientWidth - label)) * ratio, y = (22 + row * 23 + 3) * ratio;
            return [...canvas.getContext("2d").getImageData(x, y, 1, 1).data.slice(0, 3)];
        }""",
        [share, row],
    )
    return found


def settled(page: Page) -> None:
    """Wait until what has just changed is drawn."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def at(page: Page, share: float, row: int) -> tuple[float, float]:
    """The place in the window of a share of the run in a row."""
    box = page.locator("#graph").bounding_box()
    assert box is not None
    label = min(190, round(box["width"] * 0.22))
    return box["x"] + label + share * (box["width"] - label), box["y"] + 22 + row * 23 + 9


def test_calls_are_where_they_were(page: Page) -> None:
    writing, idle, waiting = pixel(page, 0.2, 0), pixel(page, 0.05, 0), pixel(page, 0.3, 1)
    assert len({tuple(writing), tuple(idle), tuple(waiting)}) == 3
    assert pixel(page, 0.75, 0) == idle == pixel(page, 0.02, 1)
    stopped = pixel(page, 0.5, 1)
    assert stopped != waiting
    page.uncheck("#stops")
    settled(page)
    assert pixel(page, 0.5, 1) == waiting


def test_a_long_call_right_behind_a_short_one_is_drawn(open_page, written) -> None:
    """Both begin in one column of pixels, of which one call is drawn."""
    short = tuple((0, WRITE, "/tmp/out.txt#1", 400 * MS + number * 1000, 500, 8) for number in range(5))
    calls = (*short, (0, SLEEP, "", 400 * MS + 6000, 300 * MS, 300 * MS), CALLS[2])
    page = open_page(written(TimelineView(), shown(calls=calls)))
    assert pixel(page, 0.6, 0) != pixel(page, 0.75, 0)


def test_pointing_tells_what_a_call_was(page: Page) -> None:
    page.mouse.move(*at(page, 0.5, 0))
    tip = page.locator("#tip")
    assert "time.sleep" in tip.inner_text()
    assert "Stopped meanwhile: 100 ms" in tip.inner_text()
    page.mouse.click(*at(page, 0.2, 0))
    details = page.locator("#details").inner_text()
    for fact in ("file.write", "/tmp/out.txt#1", "disk, filewrite", "200 ms", "800 B"):
        assert fact in details
    page.mouse.click(*at(page, 0.95, 0))
    assert "Point at a call" in page.locator("#details").inner_text()


def test_keys_go_from_call_to_call(page: Page) -> None:
    page.locator("#graph").focus()
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
        seen.append(page.locator("#details h2").inner_text())
    assert seen == ["file.write", "time.sleep", "file.read", "socket.recv", "file.write"]
    assert page.locator("#reset").is_disabled()
    page.keyboard.press("Enter")
    assert page.locator("#reset").is_enabled()
    page.keyboard.press("0")
    assert page.locator("#reset").is_disabled()


def test_search_counts_and_goes_on(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("out|sleep")
    assert page.locator("#found").inner_text() == "2 calls, 500 ms"
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert page.locator("#details h2").inner_text() == "time.sleep"
    page.fill("#search", "[")
    assert page.locator("#found").inner_text() == "not a regular expression"
    page.keyboard.press("Escape")
    assert page.locator("#found").inner_text() == ""


def test_tables_tell_times_and_objects(page: Page) -> None:
    threads = page.locator("#threads-rows").inner_text()
    assert "MainThread" in threads and "400 ms (44.4 %)" in threads and "all threads" in threads
    page.click("#objects > summary")
    page.click("#objects-rows button >> text=example.org")
    assert page.locator("#search").input_value() == "tcp example\\.org:80#1"
    assert page.locator("#details h2").inner_text() == "socket.recv"


def test_the_address_keeps_what_is_shown(open_page, written) -> None:
    path = written(TimelineView(), shown())
    page = open_page(path)
    page.mouse.dblclick(*at(page, 0.2, 0))
    page.fill("#search", "write")
    settled(page)
    fragment = page.evaluate("location.hash")
    again = open_page(path, fragment=fragment)
    assert again.evaluate("location.hash") == fragment
    assert again.locator("#search").input_value() == "write"
    assert again.locator("#reset").is_enabled()


def test_threads_without_calls_are_folded(page: Page) -> None:
    tall = page.locator("#sheet").evaluate("sheet => sheet.offsetHeight")
    page.check("#idle")
    assert page.locator("#sheet").evaluate("sheet => sheet.offsetHeight") == tall + 23


def test_calls_at_one_time_have_rows_of_their_own(open_page, written) -> None:
    calls: list[Call] = [(0, SLEEP, "", 100 * MS, 500 * MS, 0), (0, WRITE, "a#1", 200 * MS, 100 * MS, 1)]
    page = open_page(written(TimelineView(), shown(["loop"], calls)))
    page.mouse.click(*at(page, 0.25, 0))
    assert page.locator("#details h2").inner_text() == "time.sleep"
    x, y = at(page, 0.25, 0)
    page.mouse.click(x, y + 18)
    assert page.locator("#details h2").inner_text() == "file.write"


def test_100_000_calls_are_drawn_in_a_frame(open_page, written) -> None:
    """The work of a frame is counted in what it draws, which does not depend on the speed of the machine."""
    step = SECOND // 50_000
    calls: list[Call] = [
        (thread, WRITE, f"/tmp/{number % 50}#1", number * step, step // 2, 8)
        for thread in (0, 1)
        for number in range(50_000)
    ]
    page = open_page(written(TimelineView(), shown(["one", "two"], calls)))
    assert "100,000 calls" in page.locator(".subtitle").inner_text()
    drawn = page.evaluate(
        """() => {
            let count = 0;
            const pen = CanvasRenderingContext2D.prototype, fill = pen.fillRect;
            pen.fillRect = function (...box) { count++; return fill.apply(this, box); };
            document.getElementById("in").click();
            return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(count))));
        }"""
    )
    assert 1000 < drawn < 10_000
    page.mouse.click(*at(page, 0.5, 1))
    page.fill("#search", "/tmp/7#")
    assert page.locator("#found").inner_text().startswith("2,000 calls")


def test_hostile_names(open_page, written, hostile_names) -> None:
    calls: list[Call] = [(n, WRITE, name, n * 10 * MS, 5 * MS, 1) for n, name in enumerate(hostile_names)]
    rows = [
        real(1.0),
        *(usage("filewrite", 1, uid=name, thread=name + "!", calls=1, seconds=0.1) for name in hostile_names),
    ]
    made = profile(rows, timeline(list(hostile_names), calls))
    page = open_page(written(TimelineView(), made, graph_title=hostile_names[1]))
    page.click("#objects > summary")
    for row in range(3):
        page.mouse.move(*at(page, row * 0.01 + 0.002, row))
    page.select_option("#colour", "object")
    assert page.locator("#objects-rows tr").count() == len(hostile_names)


def test_samples_are_told_by_functions(open_page, written) -> None:
    runs = ApiFunction("runs", "sample", "cpu", "ns")
    first = (0, runs, "read_input", 0, 400 * MS, 400 * MS)
    made = profile([], timeline(["main"], [first, (0, runs, "<b>sort</b>", 500 * MS, 300 * MS, 300 * MS)]))
    made["header"]["type"] = "sample"
    page = open_page(written(TimelineView(), made))
    assert "2 samples" in page.locator(".subtitle").inner_text()
    assert pixel(page, 0.2, 0) != pixel(page, 0.6, 0)
    page.mouse.move(*at(page, 0.6, 0))
    assert page.locator("#tip b").inner_text() == "<b>sort</b>"
    assert page.locator("#objects-rows tr").first.inner_text().split() == [
        "400", "ms", "1", "400", "ms", "sample", "cpu", "read_input"
    ]  # fmt: skip


def test_dark_and_narrow(open_page: Callable[..., Page], written: Callable[..., Path]) -> None:
    path = written(TimelineView(), shown())
    light = pixel(open_page(path), 0.95, 0)
    page = open_page(path, dark=True, width=420, height=700)
    assert pixel(page, 0.95, 0) != light
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_busy_program(open_page, written, screenshot) -> None:
    """What the manual shows: threads that read, write, wait and sleep."""
    random = Random(4)
    kinds = ((WRITE, "build/out.log#1"), (READ, "data.csv#1"), (RECV, "tcp example.org:443#1"), (SLEEP, ""))
    calls: list[Call] = []
    for thread in range(4):
        now = random.randrange(20 * MS)
        while now < 1_900 * MS:
            duration = int(random.expovariate(1 / (12 * MS)))
            calls.append((thread, *random.choice(kinds), now, duration, random.randrange(10_000)))
            now += duration + int(random.expovariate(1 / (6 * MS)))
    calls += [(4, SLEEP, "", number * 40 * MS, (600 + number * 90) * MS, 0) for number in range(6)]
    names = ("MainThread", "worker-1", "worker-2", "worker-3", "loop")
    rows = [real(2.0)]
    for name in names[:4]:
        rows.append(usage("filewrite", 8e6, uid="build/out.log#1", thread=name, calls=80, seconds=0.5))
        rows.append(usage("user-thread", 0.9, thread=name, seconds=0.9))
        rows.append(usage("sleep", 0.6, thread=name, calls=30, seconds=0.6))
    stops = [(700 * MS, 60 * MS), (1_300 * MS, 20 * MS)]
    line = timeline(names, calls, end=2_000 * MS, stops=stops)
    page = open_page(written(TimelineView(), profile(rows, line)))
    settled(page)
    screenshot(page, "timeline")
    assert page.locator("#threads-rows tr").count() == 5
    legend = page.locator("#legend").inner_text()
    assert all(name in legend for name in ("disk filewrite", "net tcp-recv", "sleep", "stopped \u2013 80 ms"))
