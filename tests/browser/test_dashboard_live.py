"""The dashboard as `perun web serve` shows it: real profiles of a real repository, brought up to date."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import measured_history

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


class Served(NamedTuple):
    """A repository and its dashboard. :param address: without the token."""

    history: measured_history.Measured
    address: str
    token: str


@pytest.fixture(scope="module")
def served(
    measured_template: measured_history.Measured, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """The real command for a repository in which the time of the program doubles."""
    folder = tmp_path_factory.mktemp("live") / "project"
    shutil.copytree(measured_template.path, folder, symlinks=True)
    made = measured_template._replace(path=folder, main=list(measured_template.main))
    command = [sys.executable, "-m", "perun", "web", "serve", "--no-open"]
    server = subprocess.Popen(
        command, cwd=made.path, stdout=subprocess.PIPE, text=True, env={**os.environ, "PERUN_TRUST": "1"}
    )
    with server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            address, _, token = line.partition("http")[2].strip().partition("#token=")
            assert token, line
            yield Served(made, f"http{address}", token)
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def online(browser: Browser, served: Served) -> Iterator[Page]:
    """A window that may reach the server, and must not want anything else."""
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield page
    context.close()


@pytest.fixture
def visit(online: Page, served: Served) -> Iterator[Callable[[str], Page]]:
    """Open an address of the server: `visit("series.html?id=...")`; nothing may be complained of."""
    complaints: list[str] = []

    def hear(message: Any) -> None:
        if message.type == "error":
            complaints.append(f"{message.text}: {message.location.get('url')}")

    def request(asked: Any) -> None:
        if not asked.url.startswith((served.address, "data:", "blob:")):
            complaints.append(f"request: {asked.url}")

    def error(problem: Any) -> None:
        complaints.append(f"error: {problem}")

    heard: tuple[tuple[Any, Any], ...] = (("console", hear), ("request", request), ("pageerror", error))
    for event, does in heard:
        online.on(event, does)

    def visited(path: str) -> Page:
        online.goto("about:blank")
        online.goto(served.address + path)
        online.wait_for_selector("html[data-ready]")
        assert online.get_attribute("html", "data-ready") == "yes", online.locator("#notices").inner_text()
        return online

    yield visited
    for event, does in heard:
        online.remove_listener(event, does)
    assert complaints == []


def slower(page: Page) -> dict[str, Any]:
    """The change that made the time of the program double."""
    changes = page.evaluate("load('changes')")["changes"]
    found: dict[str, Any] = next(one for one in changes if one["unit"] == "s" and one["degradation"])
    return found


def test_every_page_shows_what_is_stored(visit: Callable[[str], Page], served: Served) -> None:
    page = visit("")
    assert "since v1.0" in page.locator("h1").inner_text()
    first = page.locator("#changes .change").first.inner_text()
    culprit = served.history.main[measured_history.SLOWER]
    assert culprit[:7] in first and "Change number 24" in first
    change = slower(page)
    assert 1.8 < change["ratio"] < 2.2
    page = visit(f"series.html?id={change['series']}")
    assert page.evaluate("perunChart.lines[0].at.length") == len(served.history.main)
    assert page.evaluate("perunChart.changes[0].at") == change["version"]["at"]
    assert change["version"]["checksum"] == culprit
    page = visit(f"commit.html?c={culprit[:9]}")
    assert (
        "Degradation" in page.evaluate("document.querySelector('#why').textContent")
        or page.locator("#why .worse").count()
    )
    assert page.locator("#profiles tbody tr").count() == 2
    page = visit(f"compare.html?a={served.history.main[20]}&b=HEAD")
    assert "worse in" in page.locator("#sentence").inner_text()
    assert page.locator(".distributions canvas").count() > 0
    assert page.locator("table.rows .worse").count() > 0
    assert visit("coverage.html").locator("#strips tbody tr").count() == 2
    policy = page.evaluate("fetch('grid.html').then(answer => answer.headers.get('content-security-policy'))")
    assert "script-src 'self';" in policy and "unsafe" not in policy


def test_a_new_profile_shows_by_itself(visit: Callable[[str], Page], served: Served) -> None:
    page = visit("commit.html")
    before = page.locator("#list tbody tr").count()
    new = measured_history.commit(served.history, len(served.history.main))
    page.wait_for_function(
        "count => document.querySelectorAll('#list tbody tr').length === count", arg=before + 1
    )
    assert new[:7] in page.locator("#list tbody tr").first.inner_text()


def test_who_has_the_token_can_acknowledge_a_change(visit: Callable[[str], Page], served: Served) -> None:
    change = slower(visit(""))
    address = f"series.html?id={change['series']}"
    page = visit(address)
    assert page.locator("button", has_text="Acknowledge").count() == 0
    page = visit(f"{address}#token={served.token}")
    assert served.token not in page.url
    page.locator("#steps button", has_text="Acknowledge").click()
    page.locator("dialog input[name=because]").fill("the table is larger")
    page.locator("dialog button", has_text="Acknowledge").click()
    page.locator("#steps .chip", has_text="acknowledged").wait_for()
    kept = json.loads((served.history.path / ".perun" / "acknowledged.json").read_text())["acknowledged"]
    assert [one["because"] for one in kept] == ["the table is larger"]
    assert kept[0]["version"] == change["version"]["checksum"]
    page = visit(f"commit.html?c={change['version']['checksum']}")
    assert page.locator("#steps .change.known").count() == 1
