"""The page of a fuzzing campaign in a real browser."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perun.fuzz import pages, results

if TYPE_CHECKING:
    from playwright.sync_api import Page

sys.path.append(str(Path(__file__).parents[1] / "fuzzing"))
import campaigns


def test_the_page_shows_results_charts_and_inputs(tmp_path, open_page, screenshot) -> None:
    campaigns.folder_of(tmp_path)
    campaigns.understood(tmp_path)
    pages.write(tmp_path, results.load(tmp_path), plots=False)
    for dark in (False, True):
        page = open_page(tmp_path / "index.html", dark=dark)
        assert page.locator("tbody tr").count() >= 4
        assert page.locator("td", has_text="quadratic in the number of spaces").first.is_visible()
        assert page.locator("svg.chart").first.is_visible()
        assert page.locator("svg.chart").count() >= 4
        first = page.locator("details#r1")
        assert first.locator(".sides pre").count() == 2
        assert "spaces" in first.locator(".sides pre").nth(1).inner_text()
        background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (background == "rgb(255, 255, 255)") is not dark
        screenshot(page, f"fuzzing-{'dark' if dark else 'light'}")
    page.get_by_role("link", name="slow-main.c").first.click()
    assert page.evaluate("location.hash") == "#r1"


def test_it_fits_a_narrow_window(tmp_path: Path, open_page: Callable[..., Page]) -> None:
    campaigns.folder_of(tmp_path)
    pages.write(tmp_path, campaigns.understood(tmp_path), plots=False)
    page = open_page(tmp_path / "index.html", width=380)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_names_and_contents_are_only_text(tmp_path, open_page, hostile_names) -> None:
    everything = " ".join(hostile_names)
    campaign = campaigns.folder_of(tmp_path, text=everything.encode("utf-8", "replace").decode())
    for number, one in enumerate(campaign.results):
        data = " ".join(hostile_names[number::3]).encode("utf-8", "surrogatepass")
        (tmp_path / one.file).write_bytes(data)
    pages.write(tmp_path, campaign, plots=False)
    page = open_page(tmp_path / "index.html")
    assert page.locator("script").count() == 0
    assert page.locator("img").count() == 0
    assert "<script>window.owned = 1</script>" in page.locator("body").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>.c", "a'b\"c & d.c", "javascript:alert(1)"])
def test_names_of_files_are_only_text(tmp_path: Path, open_page: Callable[..., Page], name: str) -> None:
    name = name.replace("/", "_")
    pages.write(tmp_path, campaigns.folder_of(tmp_path, name), plots=False)
    page = open_page(tmp_path / "index.html")
    links = page.locator("a[href^='./']")
    for number in range(links.count()):
        assert (tmp_path / Path(links.nth(number).get_attribute("href") or "")).parts
    assert name in page.locator("h1, summary").all_inner_texts()[1]
