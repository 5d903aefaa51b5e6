"""Flow: aggregated resources as lines or areas along an independent key (manual 6.1.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from perun.core.errors import UsageError
from perun.plugin.params import param
from perun.profile.factory import Profile
from perun.view._common import (
    Axis,
    Chart,
    ChartSeries,
    Floats,
    axis_label,
    chart_view,
    is_logarithmic,
    note_of,
    np,
    pivot,
    title_of,
    word_of,
)
from perun.view._common.chart_view import ChartView
from perun.view._common.pivot import Pivot, ResourceKey, canonical, finite_sums, pivot_of, spread_note
from perun.view._common.values import Resources

MAX_POINTS: Final = 1000
MAX_LINES: Final = 16
"""Limits of the bins of the two keys; a note of the chart says when values share bins."""

_ZERO_IF_EMPTY: Final = ("sum", "count", "nunique")
"""Functions that are 0 where there are no values; a mean of nothing is unknown instead."""


@dataclass(frozen=True)
class FlowParams:
    """The keys to show, and where the chart goes."""

    function: str = chart_view.aggregation("The function of the resources that each point shows.")
    of: str = chart_view.key(
        "<of_resource_key>",
        "The key whose values give the height of the lines (Y axis), e.g. amount.",
        "amount",
    )
    through: str = chart_view.key(
        "<through_key>",
        "The independent variable (X axis). By default, the first of snapshots, structure-unit-size, "
        "workload, order (of runs) and call-order of which the profile has several.",
    )
    by: str = chart_view.key(
        "<by_resource_key>",
        "The key with a line for each of its values. By default, uid, or subtype if there is one uid only.",
    )
    stacked: bool = param(
        False, short="-s", help="Stack the lines as areas on top of each other, and show their sum."
    )
    accumulate: bool = param(
        True,
        long="--accumulate/--no-accumulate",
        help="Add up the values from left to right along the X axis.",
    )
    filename: str = chart_view.filename()
    x_axis_label: str = chart_view.axis_label("X")
    y_axis_label: str = chart_view.axis_label("Y")
    x_scale: str = chart_view.scale("X")
    y_scale: str = chart_view.scale("Y")
    graph_title: str = chart_view.title("chart")
    view_in_browser: bool = chart_view.view_in_browser()
    terminal: bool = chart_view.terminal()


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
    resources = Resources(profile)
    by = params.by or pivot.varied(resources, pivot.SERIES, but=(params.through,))
    through = params.through or pivot.varied(resources, pivot.LINES, but=(by,))
    points, lines = ResourceKey(through, "--through", MAX_POINTS), ResourceKey(by, "--by", MAX_LINES)
    found = pivot_of(resources, params.function, params.of, points, lines)
    names, centers = found.columns.names, found.columns.centers
    x = np.arange(len(names), dtype=float) if centers is None else centers
    heights = _filled(found.values, params)
    what = f"{'accumulated ' * params.accumulate}{found.what}"
    log_x = centers is not None and is_logarithmic(params.x_scale, [x], "--x-scale")
    log_y = _is_logarithmic(heights, params)
    notes = [
        "" if params.accumulate or params.stacked else spread_note(found),
        note_of("x", params.x_scale, log=log_x),
        note_of("y", params.y_scale, log=log_y),
    ]
    series = _stacked(x, heights, found.rows.names) if params.stacked else _lines(x, heights, found, params)
    return Chart(
        title=params.graph_title or title_of(profile, what, word_of(through), found.rows.names, word_of(by)),
        notes=(*found.notes, *filter(None, notes)),
        x=Axis(
            params.x_axis_label or axis_label(word_of(through), found.column_unit),
            found.column_unit,
            names if centers is None else (),
            log_x,
        ),
        y=Axis(params.y_axis_label or axis_label(what, found.unit), found.unit, log=log_y),
        series=series,
        legend=word_of(by),
    )


def _is_logarithmic(heights: Floats, params: FlowParams) -> bool:
    if params.accumulate and params.y_scale == "auto":
        return False  # sums that grow are compared by their difference
    if not params.stacked:
        return is_logarithmic(params.y_scale, [heights.ravel()], "--y-scale")
    if params.y_scale == "log":
        raise UsageError("--y-scale log cannot show areas that add up", "leave out --stacked")
    return False


def _filled(heights: Floats, params: FlowParams) -> Floats:
    """The heights, shape (lines, points), without gaps where the gap has a value.

    An accumulated value stays as it is where nothing is added, and a sum of nothing is 0.
    """
    if params.accumulate:
        return finite_sums(np.nancumsum, heights, axis=1)
    if params.stacked or canonical(params.function) in _ZERO_IF_EMPTY:
        return np.nan_to_num(heights, nan=0.0)
    return heights


def _lines(x: Floats, heights: Floats, found: Pivot, params: FlowParams) -> tuple[ChartSeries, ...]:
    """A line for each row of `heights`, without the points that have no value."""
    # What is accumulated is no mean, and of other functions there is no spread.
    spread = None if params.accumulate else found.spread
    series = []
    for number, (name, own) in enumerate(zip(found.rows.names, heights, strict=True)):
        known = ~np.isnan(own)
        series.append(
            ChartSeries(
                *(name, "line", x[known], own[known], number),
                marked=True,
                spread=None if spread is None else spread[number, known],
                counts=None if spread is None else found.counts[number, known],
            )
        )
    return tuple(series)


def _stacked(x: Floats, heights: Floats, names: Sequence[str]) -> tuple[ChartSeries, ...]:
    """An area for each row of `heights`, on top of each other, and their sum as a line."""
    ends = finite_sums(np.cumsum, heights, axis=0)
    bases = ends - heights
    series = [
        ChartSeries(name, "area", x, ends[number], number, bases[number], heights[number])
        for number, name in enumerate(names)
    ]
    return (*series, ChartSeries("sum", "line", x, ends[-1], -1))


PLUGIN = FlowView
