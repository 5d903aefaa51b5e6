"""What the scatter view is told."""

from __future__ import annotations

from dataclasses import dataclass

from perun.plugin.params import param


@dataclass(frozen=True)
class ScatterParams:
    """What is shown over what, and where it goes."""

    of: str = param(
        "amount",
        short="-o",
        metavar="<of_key>",
        help="Data source for the scatter plot, i.e. what will be displayed on Y axis.",
    )
    per: str = param(
        "structure-unit-size",
        short="-p",
        metavar="<per_key>",
        help="Keys that will be displayed on X axis of the scatter plot.",
    )
    uid: tuple[str, ...] = param(
        (), metavar="<uid>", help="Shows only this uid; all of them by default. May be repeated."
    )
    filename: str = param(
        "", short="-f", metavar="<html>", help="Outputs the graph to the file specified by filename."
    )
    x_axis_label: str = param(
        "", short="-xl", metavar="<text>", help="Label on the X axis of the scatter plot."
    )
    y_axis_label: str = param(
        "", short="-yl", metavar="<text>", help="Label on the Y axis of the scatter plot."
    )
    graph_title: str = param("", short="-gt", metavar="<text>", help="Title of the scatter plot.")
    view_in_browser: bool = param(False, short="-v", help="Will show the graph in browser.")
    terminal: bool = param(
        False, help="The graph will be drawn in the terminal, or as text where the output is none."
    )
