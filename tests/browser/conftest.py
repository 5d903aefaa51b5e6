"""A real browser for the pages that views write: Debian's chromium, driven by playwright, without a network.

Where there is no chromium or no playwright the tests are skipped, and say why. Screenshots go to
`build/screenshots`, from where the manual takes them.
"""

from __future__ import annotations

import importlib.util
import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perun.plugin.api import ALONE, ViewContext
from perun.profile.factory import Profile

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",  # tests may be run by root, whom chromium gives no sandbox
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOSTILE = (
    "<script>window.owned = 1</script>",
    "</script><script>window.owned = 2</script>",
    "<img src=x onerror='window.owned = 3'>",
    "\"'><svg onload=window.owned=4>",
    "`${window.owned = 5}`",
    "<!--<script>",
    "&lt;b&gt; &amp;",
    "žluťoučký kůň 🐎 日本語 العربية",
    "line\nbreak\ttab\0nul\x1b[31m",
    "\u202eright to left\u2028separator",
    "x" * 10_000,
    "\ud800 half a character",
    "__proto__",
    "$title ${data} {{x}} %s",
)
"""Names that want to be more than text."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A browser takes seconds to start, and has to be installed: `make test-all` does that."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=HOSTILE, ids=lambda name: ascii(name[:16]).strip("'\""))
def hostile(request: pytest.FixtureRequest) -> str:
    """A name that wants to be more than text: markup, quotes, odd characters, 10,000 characters."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a process."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("there is no chromium; as root: apt-get install chromium")
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("playwright is not installed; it is part of the extra 'test'")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, headless=True, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a file: `open_page(path, dark=True, width=1280, height=860)`; at the end it must have been quiet.

    Whatever the page wrote to the console as an error, threw, asked by a dialog or wanted from a network
    fails the test.
    """
    complaints: list[str] = []
    contexts = []

    def watched(page: Page) -> None:
        def hear(message: Any) -> None:
            if message.type == "error":
                complaints.append(f"console: {message.text}")

        def refuse(dialog: Any) -> None:
            complaints.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        def request(asked: Any) -> None:
            if not asked.url.startswith(("file:", "data:", "blob:")):
                complaints.append(f"request: {asked.url}")

        page.on("console", hear)
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", refuse)
        page.on("request", request)

    def opened(
        path: Path, *, dark: bool = False, width: int = 1280, height: int = 860, fragment: str = ""
    ) -> Page:
        context = browser.new_context(
            offline=True,
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            locale="en-US",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        watched(page)
        page.goto(path.resolve().as_uri() + fragment)
        return page

    yield opened
    owned = [page.evaluate("window.owned") for context in contexts for page in context.pages]
    for context in contexts:
        context.close()
    assert complaints == []
    assert [one for one in owned if one is not None] == [], "a text of the profile was executed"


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Write the page of a view: `written(View(), profile, context, option=value)`; the file."""

    def write(view: Any, profile: Profile, ctx: ViewContext = ALONE, **options: Any) -> Path:
        path = tmp_path / f"{view.name}.html"
        out = io.StringIO()
        view.render(profile, view.Params(**options, filename=str(path)), out, ctx)
        assert out.getvalue() == f"{path}\n"
        return path

    return write


@pytest.fixture
def screenshot() -> Callable[[Page, str], Path]:
    """Keep what a page looks like for the manual: `screenshot(page, "flamegraph")`."""

    def take(page: Page, name: str) -> Path:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        page.screenshot(path=path)
        return path

    return take
