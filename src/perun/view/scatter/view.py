"""The scatter view: one key over another as points, with the models of each uid (manual 6.1.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from perun.view._common.chart_view import ChartView
from perun.view.scatter.params import ScatterParams

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.view._common.chart import Chart


class ScatterView(ChartView[ScatterParams]):
    """Interactive visualization of resources and models in scatter plot format.

    Resources are points, the models of the profile are lines. One page holds a chart for each uid and lets
    the reader choose; more than 10,000 points are shown as their density.
    """

    name: ClassVar[str] = "scatter"
    help: ClassVar[str] = "Interactive visualization of resources and models in scatter plot format."
    Params: ClassVar[type] = ScatterParams

    def charts(self, profile: Profile, params: ScatterParams) -> tuple[Chart, ...]:
        """All uids in one chart, then a chart for each; see :func:`perun.view.scatter.charts.charts`."""
        from perun.view.scatter.charts import charts

        return charts(profile, params)
