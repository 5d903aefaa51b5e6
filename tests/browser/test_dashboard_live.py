"""The dashboard as `perun web serve` shows it, also while a real program is measured."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
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
def served(measured_template, tmp_path_factory) -> Iterator[Served]:
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


# -- while a program is measured -----------------------------------------------------------------------------


if TYPE_CHECKING:
    pass

PERUN = (sys.executable, "-m", "perun")
# It waits for the file that the test makes once the page has told that it is measured.
PROGRAM = """\
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) static void fill(long size)
{
    char *all = malloc(size);
    memset(all, 1, size);
    free(all);
}
__attribute__((noinline)) static void work(long size) { fill(size); }
int main(int count, char **given)
{
    while (count > 1 && access(given[1], F_OK))
        usleep(20000);
    work(SIZE);
    return 0;
}
"""

SETTINGS = """\
cmds: [./app]
workloads: ["{go}"]
collectors: [{{name: memory}}]
execute: {{pre_run: [cc -g -O0 -o app app.c]}}
profiles: {{register_after_run: true}}
"""


class Project(NamedTuple):
    """A project with two versions. :param go: the file that its program waits for."""

    path: Path
    go: Path
    environ: dict[str, str]

    def run(self, *command: str) -> str:
        made = subprocess.run(command, cwd=self.path, env=self.environ, capture_output=True, text=True)
        assert made.returncode == 0, made.stdout + made.stderr
        return made.stdout


@pytest.fixture
def project(tmp_path: Path) -> Project:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    path = tmp_path / "project"
    path.mkdir()
    environ = {**os.environ, "PERUN_TRUST": "1"}
    made = Project(path, tmp_path / "go", environ)
    made.run("git", "init", "-q", "-b", "main")
    for size in (1 << 16, 1 << 20):
        (path / "app.c").write_text(f"#define SIZE {size}\n{PROGRAM}")
        made.run("git", "add", "app.c")
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        made.run("git", *who, "commit", "-q", "-m", f"Fill {size} bytes")
    made.run(*PERUN, "init", "--vcs-type", "git")
    with open(path / ".perun" / "local.yml", "a") as file:
        file.write(SETTINGS.format(go=made.go))
    return made


@pytest.fixture
def address(project: Project) -> Iterator[str]:
    """Where the dashboard of the project is served."""
    server = subprocess.Popen(
        [*PERUN, "web", "serve", "--no-open"], cwd=project.path, env=project.environ, text=True,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    with server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            assert "http" in line
            yield f"http{line.partition('http')[2].partition('#')[0]}"
        finally:
            server.terminate()


@pytest.mark.slow
def test_a_batch_tells_how_far_it_is_and_its_stacks_are_drawn(browser, project, address) -> None:
    context = browser.new_context(locale="en-US")
    measuring = subprocess.Popen(
        [*PERUN, "run", "--crawl-parents", "matrix"], cwd=project.path, env=project.environ,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{address}index.html")
        page.locator("#running", has_text="measuring").wait_for()
        assert " 0 of " in page.locator("#running").inner_text()
        project.go.write_text("")
        assert measuring.wait(300) == 0, measuring.stderr and measuring.stderr.read()
        # It ends, and what it stored shows by itself.
        page.locator("#running").wait_for(state="detached")
        page.wait_for_function("() => document.querySelector('#made').textContent.startsWith('2 measured')")
        first = project.run("git", "rev-parse", "HEAD~1").strip()
        page.goto(f"{address}compare.html?a={first}&b=HEAD")
        page.locator("iframe").first.scroll_into_view_if_needed()
        page.frame_locator("iframe").first.locator("html[data-drawn]").wait_for()
        drawn = page.frames[1].content()
        assert "fill" in drawn and "work" in drawn
    finally:
        measuring.kill()
        measuring.communicate()
        context.close()
