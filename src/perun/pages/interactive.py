"""What pages with scripts share, of views and of the dashboard: numbers, colours, canvases, tooltips."""

from __future__ import annotations

from perun.pages.document import numbers_script, text_beside
from perun.pages.theme import CSS


def shared_script() -> str:
    """The script that theirs begin with: :func:`perun.pages.document.numbers_script` and `interactive.js`."""
    return f"{numbers_script()}\n{text_beside(__file__, 'interactive.js')}"


def shared_style() -> str:
    """The style sheet that theirs begin with: the theme and `interactive.css`."""
    return CSS + text_beside(__file__, "interactive.css")
