"""The flow view: an aggregate of resources along a key, a line for each value of another (manual 6.1.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from perun.errors import UsageError
from perun.plugin.params import param
from perun.view._common import options
from perun.view._common.chart_view import ChartView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perun.profile.factory import Profile
    from perun.view._common.chart import Chart, Floats, Series

MAX_POINTS: Final = 1000
MAX_LINES: Final = 16
"""Limits of the bins of the two keys; a note of the chart says when values share bins."""

_ZERO_IF_EMPTY: Final = ("sum", "count", "nunique")
"""Functions that are 0 where there are no values; a mean of nothing is unknown instead."""


@dataclass(frozen=True)
class FlowParams:
    """The keys to show, and where the chart goes."""

    function: str = options.aggregation("The function of the resources that each point shows.")
    of: str = param(
        "",
        short="-o",
        required=True,
        metavar="<of_resource_key>",
        help="The key whose values give the height of the lines (Y axis), e.g. amount.",
    )
    through: str = param(
        "snapshots",
        short="-t",
        metavar="<through_key>",
        help="The independent variable (X axis), e.g. snapshots or structure-unit-size.",
    )
    by: str = param(
        "",
        short="-b",
        required=True,
        metavar="<by_resource_key>",
        help="The key with a line for each of its values, e.g. subtype or uid.",
    )
    stacked: bool = param(
        False, short="-s", help="Stack the lines as areas on top of each other, and show their sum."
    )
    accumulate: bool = param(
        True,
        long="--accumulate/--no-accumulate",
        help="Add up the values from left to right along the X axis.",
    )
    filename: str = options.filename()
    x_axis_label: str = options.axis_label("X")
    y_axis_label: str = options.axis_label("Y")
    graph_title: str = options.title("chart")
    view_in_browser: bool = options.view_in_browser()
    terminal: bool = options.terminal()


class FlowView(ChartView[FlowParams]):
    """The view of flows.

    Shows an aggregate of one key, such as its sum or mean, along another key, as lines or as areas.
    """

    name: ClassVar[str] = "flow"
    help: ClassVar[str] = "Line or area chart: an aggregate of one key along another one."
    Params: ClassVar[type] = FlowParams

    def charts(self, profile: Profile, params: FlowParams) -> tuple[Chart, ...]:
        """The one chart of the profile."""
        return (chart(profile, params),)


def chart(profile: Profile, params: FlowParams) -> Chart:
    """The chart of the profile.

    :raises UsageError: if no resource has a key, or options contradict each other.
    :raises ProfileError: if the profile has no resources.
    """
    import numpy as np

    from perun.view._common.chart import Axis, Chart, axis_label
    from perun.view._common.pivot import Key, pivot_of

    _check(params)
    through, by = Key(params.through, "--through", MAX_POINTS), Key(params.by, "--by", MAX_LINES)
    found = pivot_of(profile, params.function, params.of, through, by)
    names, centers = found.columns.names, found.columns.centers
    x = np.arange(len(names), dtype=float) if centers is None else centers
    what = found.description
    how = [f"for each {params.by!r}", "stacked" if params.stacked else "", "accumulated" * params.accumulate]
    shown = f"{'accumulated ' * params.accumulate}{what}".replace("'", "")
    heading = f"{what[0].upper()}{what[1:]} through {params.through!r} " + ", ".join(filter(None, how))
    return Chart(
        title=params.graph_title or heading,
        notes=found.notes,
        x=Axis(
            params.x_axis_label or axis_label(params.through, found.column_unit),
            found.column_unit,
            names if centers is None else (),
        ),
        y=Axis(params.y_axis_label or axis_label(shown, found.unit), found.unit),
        series=(_stacked if params.stacked else _lines)(x, _filled(found.values, params), found.rows.names),
        legend=params.by,
    )


def _check(params: FlowParams) -> None:
    if not params.of:
        raise UsageError("--of is missing: it names the key that the lines show", "add it, e.g. --of amount")
    if not params.by:
        raise UsageError("--by is missing: each value of its key gets a line", "add it, e.g. --by uid")


def _filled(heights: Floats, params: FlowParams) -> Floats:
    """The heights, shape (lines, points), without gaps where the gap has a value.

    An accumulated value stays as it is where nothing is added, and a sum of nothing is 0.
    """
    import numpy as np

    from perun.view._common.aggregate import canonical, finite_sums

    if params.accumulate:
        return finite_sums(np.nancumsum, heights, axis=1)
    if params.stacked or canonical(params.function) in _ZERO_IF_EMPTY:
        return np.nan_to_num(heights, nan=0.0)
    return heights


def _lines(x: Floats, heights: Floats, names: Sequence[str]) -> tuple[Series, ...]:
    """A line for each row of `heights`, without the points that have no value."""
    import numpy as np

    from perun.view._common.chart import Series

    series = []
    for number, (name, own) in enumerate(zip(names, heights, strict=True)):
        known = ~np.isnan(own)
        series.append(Series(name, "line", x[known], own[known], number, marked=True))
    return tuple(series)


def _stacked(x: Floats, heights: Floats, names: Sequence[str]) -> tuple[Series, ...]:
    """An area for each row of `heights`, on top of each other, and their sum as a line."""
    import numpy as np

    from perun.view._common.aggregate import finite_sums
    from perun.view._common.chart import Series

    ends = finite_sums(np.cumsum, heights, axis=0)
    bases = ends - heights
    series = [
        Series(name, "area", x, ends[number], number, bases[number], heights[number])
        for number, name in enumerate(names)
    ]
    return (*series, Series("sum", "line", x, ends[-1], -1))
