"""The scatter view: one key over another as points, with the models of each uid (manual 6.1.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TextIO

from perun.plugin.api import ALONE, ViewContext
from perun.plugin.params import param

if TYPE_CHECKING:
    from perun.profile.factory import Profile


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


class ScatterView:
    """Interactive visualization of resources and models in scatter plot format.

    Resources are shown as points, the models that the profile has as lines. One page holds all uids, to be
    chosen from; very many points are shown as the density of them.
    """

    name: ClassVar[str] = "scatter"
    help: ClassVar[str] = "Interactive visualization of resources and models in scatter plot format."
    Params: ClassVar[type] = ScatterParams

    def render(self, profile: Profile, params: ScatterParams, out: TextIO, ctx: ViewContext = ALONE) -> None:
        """Write the charts to a page, whose name `out` gets, or the first of them as text to `out`.

        :raises UsageError: where a key is in no resource or has no numbers, no resource has the uid, or the
            file cannot be written.
        :raises ProfileError: where the profile has no resources.
        """
        from perun.view._common.output import Output, write
        from perun.view.scatter.charts import charts

        output = Output(self.name, params.filename, params.view_in_browser, params.terminal)
        write(charts(profile, params), output, profile, out, ctx)
