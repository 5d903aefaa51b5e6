"""The scatter view: one key over another as points, with the models of each uid (manual 6.1.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from perun.view._common.chart_view import ChartView
from perun.view.scatter.params import ScatterParams

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.view._common.chart import Chart


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
