"""Opening a page for the user to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from perun.plugin.api import ViewContext


_IN_TERMINAL: Final = ("www-browser", "links", "elinks", "lynx", "w3m")


def open_in_browser(path: Path, ctx: ViewContext) -> None:
    """Open the file in the user's browser; where there is none, a note says so, for the file is there."""
    import webbrowser

    try:
        browser = webbrowser.get()
        # One that runs in the terminal could show no picture, and would not give the terminal back.
        shows = Path(getattr(browser, "name", "")).name not in _IN_TERMINAL
        opened = shows and browser.open(path.resolve().as_uri())
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        ctx.note(f"no browser could be opened; open {path} yourself")
