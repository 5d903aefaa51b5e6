"""Bars: aggregated resources as a bar chart (manual 6.1.1)."""

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
    decade_below,
    is_logarithmic,
    note_of,
    np,
    pivot,
)
from perun.view._common.chart_view import ChartView
from perun.view._common.pivot import Pivot, ResourceKey, pivot_of, spread_note
from perun.view._common.values import Resources

MAX_BARS: Final = 200
MAX_GROUPS: Final = 16
"""Limits of the bins of the two keys; a note of the chart says when values share bins."""

_SINGLE_WIDTH: Final = 0.8
_GROUP_WIDTH: Final = 0.84
"""The width of a whole group of bars; the distance between groups is 1."""
_BAR_SHARE: Final = 0.94
"""The share of its place that a bar fills, so that neighbours stay apart."""


@dataclass(frozen=True)
class BarsParams:
    """The keys to show, and where the chart goes."""

    function: str = chart_view.aggregation("The function of the resources that each bar shows.")
    of: str = chart_view.key(
        "<of_resource_key>",
        "The key whose values give the height of the bars (Y axis).",
        "amount",
    )
    per: str = chart_view.key(
        "<per_resource_key>",
        "The key with a bar for each of its values (X axis). By default, the first of snapshots, workload, "
        "order (of runs) and uid of which the profile has several.",
    )
    by: str = chart_view.key(
        "<by_resource_key>",
        "The key that divides each bar into stacked or grouped parts. By default, the clocks of a time "
        "profile are grouped.",
    )
    stacked: bool = param(False, short="-s", help="Stack the parts of a bar that --by gives; the default.")
    grouped: bool = param(False, short="-g", help="Put the parts of a bar that --by gives side by side.")
    filename: str = chart_view.filename()
    x_axis_label: str = chart_view.axis_label("X")
    y_axis_label: str = chart_view.axis_label("Y")
    y_scale: str = chart_view.scale("Y")
    graph_title: str = chart_view.title("chart")
    view_in_browser: bool = chart_view.view_in_browser()
    terminal: bool = chart_view.terminal()


class BarsView(ChartView[BarsParams]):
    """The view of bars.

    Shows an aggregate of one key, such as its sum or mean, as a bar for each value of another key.
    """

    name: ClassVar[str] = "bars"
    help: ClassVar[str] = "Bar chart: an aggregate of one key for each value of another one."
    Params: ClassVar[type] = BarsParams

    def charts(self, profile: Profile, params: BarsParams) -> tuple[Chart, ...]:
        """The one chart of the profile."""
        return (chart(profile, params),)


def chart(profile: Profile, params: BarsParams) -> Chart:
    """The chart of the profile.

    :raises UsageError: if no resource has a key, or options contradict each other.
    :raises ProfileError: if the profile has no resources.
    """
    _check(params)
    resources = Resources(profile)
    per, by, grouped = _keys(resources, params)
    bars, parts = ResourceKey(per, "--per", MAX_BARS), ResourceKey(by, "--by", MAX_GROUPS) if by else None
    found = pivot_of(resources, params.function, params.of, bars, parts)
    apart = grouped or not by
    log = _is_logarithmic(found.values, params, apart=apart)
    notes = [
        *found.notes,
        spread_note(found) if apart else "",
        _note_of_sum(resources, found, params),
        note_of("y", params.y_scale, log=log),
    ]
    series = _grouped(found, log=log) if apart else _stacked(found.values, found.rows.names)
    y = Axis(axis_label(found.what, found.unit), found.unit, log=log)
    return pivot.categorical(profile, params, found.what, y, (per, by), found.columns, found.rows)._replace(
        notes=tuple(filter(None, notes)), series=series
    )


def _keys(resources: Resources, params: BarsParams) -> tuple[str, str, bool]:
    """The keys of the bars and of their parts, and whether these are side by side."""
    per = params.per or pivot.varied(resources, pivot.BARS, but=(params.by,))
    if not params.by and per != pivot.CLOCK and pivot.clocks(resources):
        return per, pivot.CLOCK, True
    return per, params.by, params.grouped


def _note_of_sum(resources: Resources, found: Pivot, params: BarsParams) -> str:
    """That bars add up repeated runs, whose mean is meant more often; empty if they do not."""
    if params.function != "sum" or not (found.counts > 1).any() or not pivot.clocks(resources):
        return ""
    return "each bar adds up several runs; perun show PROFILE bars mean shows their mean"


def _is_logarithmic(heights: Floats, params: BarsParams, *, apart: bool) -> bool:
    if apart:
        return is_logarithmic(params.y_scale, [heights.ravel()], "--y-scale")
    if params.y_scale == "log":
        raise UsageError("--y-scale log cannot show parts that add up", "add --grouped, or leave it out")
    return False


def _check(params: BarsParams) -> None:
    if params.stacked and params.grouped:
        raise UsageError("--stacked and --grouped exclude each other", "leave out one of them")
    if (params.stacked or params.grouped) and not params.by:
        option = "--stacked" if params.stacked else "--grouped"
        raise UsageError(f"{option} needs a key to divide the bars by", "add --by <key>, e.g. --by uid")


def _stacked(heights: Floats, names: Sequence[str]) -> tuple[ChartSeries, ...]:
    """A series for each row of `heights`, shape (rows, bars); negative values are stacked downwards."""
    series = []
    largest = np.finfo(np.float64).max
    ends = np.zeros((2, heights.shape[1]))  # of each bar the end of its positive and of its negative stack
    for number, (name, own) in enumerate(zip(names, heights, strict=True)):
        at = np.flatnonzero(~np.isnan(own))
        side = (own[at] < 0).astype(int)
        base = ends[side, at]
        with np.errstate(over="ignore"):
            # A sum beyond the largest float would be infinite, which no page can draw.
            ends[side, at] = np.clip(base + own[at], -largest, largest)
        series.append(ChartSeries(name, "bars", at.astype(float), ends[side, at], number, base, own[at]))
    return tuple(series)


def _grouped(found: Pivot, *, log: bool) -> tuple[ChartSeries, ...]:
    """A series for each row of the table, side by side; a missing bar takes no room.

    :param log: whether the axis is logarithmic, on which bars have no 0 to start from.
    """
    heights = found.values
    present = ~np.isnan(heights)
    counts = present.sum(axis=0)
    ranks = np.cumsum(present, axis=0) - 1  # of each bar its place among those that its group really has
    alone = len(heights) == 1
    width = _SINGLE_WIDTH if alone else _GROUP_WIDTH / max(1, int(counts.max()))
    floor = decade_below(float(heights[present].min())) if log else 0.0
    series = []
    for number, (name, own) in enumerate(zip(found.rows.names, heights, strict=True)):
        at = np.flatnonzero(present[number])
        x = at + (ranks[number, at] - (counts[at] - 1) / 2) * width
        series.append(
            ChartSeries(
                *(name, "bars", x, own[at], number, np.full(len(at), floor), own[at]),
                width=width * (1.0 if alone else _BAR_SHARE),
                spread=None if found.spread is None else found.spread[number, at],
                counts=found.counts[number, at],
            )
        )
    return tuple(series)


PLUGIN = BarsView
