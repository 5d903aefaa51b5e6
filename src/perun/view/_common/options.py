"""Parameters that several views declare alike."""

from __future__ import annotations

from typing import Any

from perun.plugin.params import param
from perun.view._common.aggregate import FUNCTIONS
from perun.view._common.scale import SCALES


def aggregation(help: str) -> Any:
    """The aggregation function (manual 6.1.1 and 6.1.3), an argument in front of the options."""
    return param("sum", choices=FUNCTIONS, metavar="<aggregation_function>", argument=True, help=help)


def filename(help: str = "Write the page to this file, which is replaced if it exists.") -> Any:
    """The file that the view writes; empty for a new one named after the profile."""
    return param("", short="-f", metavar="<html>", help=help)


def axis_label(axis: str) -> Any:
    """The label of one axis, `X` or `Y`; empty for the key that the axis shows."""
    return param("", short=f"-{axis.lower()}l", metavar="<text>", help=f"Label of the {axis} axis.")


def scale(axis: str) -> Any:
    """The scale of one axis, `X` or `Y`."""
    about = "auto: logarithmic where the values differ by more than a factor of 1,000, and most are small."
    return param("auto", choices=SCALES, metavar="<scale>", help=f"Scale of the {axis} axis; {about}")


def title(of: str) -> Any:
    """The title of what the view draws; by default the keys or the command."""
    return param("", short="-gt", metavar="<text>", help=f"Title of the {of}.")


def view_in_browser() -> Any:
    """Whether the page is opened in the browser as soon as it is written."""
    return param(False, short="-v", help="Open the page in the browser.")


def terminal() -> Any:
    """Whether the chart is drawn as text on the output instead of a page."""
    return param(False, help="Draw the chart as text in the terminal instead of writing a page.")
