"""Opening a page in the browser of the user."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from perun.plugin.api import ViewContext


_IN_TERMINAL: Final = ("www-browser", "links", "elinks", "lynx", "w3m")


def open_in_browser(path: Path, ctx: ViewContext) -> None:
    """Open the file in the user's browser; a failure is only a note, because the file is complete."""
    import webbrowser

    try:
        browser = webbrowser.get()
        # A browser that runs in the terminal shows no canvas, and blocks the terminal until it is left.
        shows = Path(getattr(browser, "name", "")).name not in _IN_TERMINAL
        opened = shows and browser.open(path.resolve().as_uri())
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        ctx.note(f"cannot open a browser; open {path} in one")
