"""Scatter: resources as points, with the models made of them (manual 6.1.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from perun.plugin.params import param
from perun.view._common import chart_view
from perun.view._common.chart_view import ChartView

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.view._common.chart import Chart


@dataclass(frozen=True)
class ScatterParams:
    """The keys to show, and where the charts go."""

    of: str = param(
        "amount", short="-o", metavar="<of_key>", help="The key whose values give the Y axis of the points."
    )
    per: str = param(
        "",
        short="-p",
        metavar="<per_key>",
        help="The key whose values give the X axis of the points. By default, the first of "
        "structure-unit-size, workload, order (of runs), snapshots, call-order and timestamp of which the "
        "profile has numbers.",
    )
    uid: tuple[str, ...] = param(
        (), metavar="<uid>", help="Show only this uid; may be repeated. All uids by default."
    )
    filename: str = chart_view.filename()
    x_axis_label: str = chart_view.axis_label("X")
    y_axis_label: str = chart_view.axis_label("Y")
    x_scale: str = chart_view.scale("X")
    y_scale: str = chart_view.scale("Y")
    graph_title: str = chart_view.title("chart")
    view_in_browser: bool = chart_view.view_in_browser()
    terminal: bool = chart_view.terminal()


class ScatterView(ChartView[ScatterParams]):
    """Resources as points, and the models of each uid as lines.

    One page holds a chart for each uid and lets the reader choose. A chart of more than 10,000 points shows
    their density instead.
    """

    name: ClassVar[str] = "scatter"
    help: ClassVar[str] = "Scatter plot: one key over another one, with the models of each uid."
    Params: ClassVar[type] = ScatterParams

    def charts(self, profile: Profile, params: ScatterParams) -> tuple[Chart, ...]:
        """All uids in one chart, then a chart for each; see :func:`perun.view.scatter.charts.charts`."""
        from perun.view.scatter.charts import charts

        return charts(profile, params)


PLUGIN = ScatterView
