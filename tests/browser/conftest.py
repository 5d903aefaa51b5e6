"""A real browser for the pages that views write: Debian's chromium, driven by playwright, without a network.

Where there is no chromium or no playwright the tests are skipped, and say why. Screenshots go to
`build/screenshots`, from where the manual takes them.
"""

from __future__ import annotations

import importlib.util
import io
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perun.plugin.api import NO_VIEW_CONTEXT, ViewContext
from perun.profile.factory import Profile

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first is the same browser without windows: it opens a page in two thirds of the processor time."""
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
LIKE_OTHERS = frozenset(HOSTILE[number] for number in (0, 2, 4, 6, 7, 9, 13))
"""Those on which a page that is safe from the others hardly fails: only the slow tests give each a page."""


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.slow if name in LIKE_OTHERS else ()) for name in HOSTILE],
    ids=lambda name: ascii(name[:16]).strip("'\""),
)
def hostile(request: pytest.FixtureRequest) -> str:
    """A name that wants to be more than text: markup, quotes, odd characters, 10,000 characters."""
    name: str = request.param
    return name


@pytest.fixture
def hostile_names() -> Sequence[str]:
    """All names that want to be more than text, for pages that show many."""
    return HOSTILE


@pytest.fixture
def most_hostile_names() -> Sequence[str]:
    """Those of them that differ most."""
    return tuple(name for name in HOSTILE if name not in LIKE_OTHERS)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a process."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("there is no chromium; as root: apt-get install chromium-headless-shell")
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("playwright is not installed; it is part of the extra 'test'")
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as driver:
        try:
            started = driver.chromium.launch(executable_path=path, headless=True, args=list(FLAGS))
        except Error as problem:  # e.g. of Ubuntu, whose command only names the package to install
            pytest.skip(f"{path} does not start: {problem.message.splitlines()[0]}")
        yield started
        started.close()


class Window:
    """The one window that all tests of a process use: to make another takes longer than most tests do."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._page: Page | None = None
        self.complaints: list[str] = []
        """What pages wrote to the console as an error, threw, asked by a dialog or wanted from a network."""

    def open(self, address: str, *, dark: bool, width: int, height: int) -> Page:
        """Show a page, in place of the one that was shown."""
        page = self._page = self._page or self._made()
        # Elsewhere first: another fragment of the same address would be the same page still.
        page.goto("about:blank")
        page.mouse.move(0, 0)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.goto(address)
        return page

    def executed(self) -> Any:
        """What a text of a profile has left behind that was executed, which none should; None where none."""
        return self._page.evaluate("window.owned") if self._page else None

    def _made(self) -> Page:
        page = self._browser.new_context(offline=True, locale="en-US").new_page()
        page.set_default_timeout(60_000)

        def hear(message: Any) -> None:
            if message.type == "error":
                self.complaints.append(f"console: {message.text}")

        def refuse(dialog: Any) -> None:
            self.complaints.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        def request(asked: Any) -> None:
            if not asked.url.startswith(("file:", "data:", "blob:", "about:")):
                self.complaints.append(f"request: {asked.url}")

        def crashed(_: Any) -> None:
            self.complaints.append("the page crashed")
            self._page = None

        page.on("console", hear)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", refuse)
        page.on("request", request)
        page.on("crash", crashed)
        return page


@pytest.fixture(scope="session")
def window(browser: Browser) -> Window:
    """The window of the browser."""
    return Window(browser)


@pytest.fixture
def open_page(window: Window) -> Iterator[Callable[..., Page]]:
    """Open a file: `open_page(path, dark=True, width=1280, height=860)`; it must have been quiet.

    The page takes the place of one that was opened before. Complaints of any of them fail the test.
    """
    window.complaints.clear()
    executed: list[Any] = []

    def opened(
        path: Path, *, dark: bool = False, width: int = 1280, height: int = 860, fragment: str = ""
    ) -> Page:
        executed.append(window.executed())
        return window.open(path.resolve().as_uri() + fragment, dark=dark, width=width, height=height)

    yield opened
    # What was opened before belongs to another test.
    executed = [one for one in (*executed[1:], window.executed()) if one is not None]
    assert window.complaints == []
    assert executed == [], "a text of the profile was executed"


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Write the page of a view: `written(View(), profile, context, option=value)`; the file."""

    def write(view: Any, profile: Profile, ctx: ViewContext = NO_VIEW_CONTEXT, **options: Any) -> Path:
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
