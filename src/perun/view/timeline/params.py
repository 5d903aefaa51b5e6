"""The options of the view of timelines."""

from __future__ import annotations

from dataclasses import dataclass

from perun.plugin.params import param
from perun.view._common import options

FORMATS = ("html", "summary", "text", "csv", "json", "chrome", "speedscope")


@dataclass(frozen=True)
class TimelineParams:
    """What is written, and where it goes."""

    format: str = param(
        "html",
        choices=FORMATS,
        help="A page (html); what was used and where the time went (summary); the events of all threads in "
        "the order of time as text, CSV or JSON; or a file for Perfetto and chrome://tracing (chrome) or "
        "https://www.speedscope.app (speedscope).",
    )
    filename: str = options.filename(
        "Write to this file, which is replaced if it exists. Formats but html go to the terminal without it."
    )
    graph_title: str = options.title("page")
    view_in_browser: bool = options.view_in_browser()
