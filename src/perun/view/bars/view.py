"""The bars view: one number for each value of a key, stacked or grouped by another key (manual 6.1.1)."""

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

MAX_BARS: Final = 200
MAX_GROUPS: Final = 16
"""Limits of the bins of the two keys; a note of the chart says when values share bins."""

_GROUP_WIDTH: Final = 0.84
"""The width of a whole group of bars; the distance between groups is 1."""
_BAR_SHARE: Final = 0.94
"""The share of its place that a bar fills, so that neighbours stay apart."""


@dataclass(frozen=True)
class BarsParams:
    """The keys to show, and where the chart goes."""

    function: str = options.aggregation("The function of the resources that each bar shows.")
    of: str = param(
        "",
        short="-o",
        required=True,
        metavar="<of_resource_key>",
        help="The key whose values give the height of the bars (Y axis).",
    )
    per: str = param(
        "snapshots",
        short="-p",
        metavar="<per_resource_key>",
        help="The key with a bar for each of its values (X axis).",
    )
    by: str = param(
        "",
        short="-b",
        metavar="<by_resource_key>",
        help="The key that divides each bar into stacked or grouped parts.",
    )
    stacked: bool = param(False, short="-s", help="Stack the parts of a bar that --by gives; the default.")
    grouped: bool = param(False, short="-g", help="Put the parts of a bar that --by gives side by side.")
    filename: str = options.filename()
    x_axis_label: str = options.axis_label("X")
    y_axis_label: str = options.axis_label("Y")
    graph_title: str = options.title("chart")
    view_in_browser: bool = options.view_in_browser()
    terminal: bool = options.terminal()


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
    from perun.view._common.chart import Axis, Chart, axis_label
    from perun.view._common.pivot import Key, pivot_of

    _check(params)
    by = Key(params.by, "--by", MAX_GROUPS) if params.by else None
    found = pivot_of(profile, params.function, params.of, Key(params.per, "--per", MAX_BARS), by)
    what = found.description
    how = f", {'grouped' if params.grouped else 'stacked'} by {params.by!r}" if params.by else ""
    return Chart(
        title=params.graph_title or f"{what[0].upper()}{what[1:]} per {params.per!r}{how}",
        notes=found.notes,
        x=Axis(params.x_axis_label or params.per, names=found.columns.names),
        y=Axis(params.y_axis_label or axis_label(what.replace("'", ""), found.unit), found.unit),
        series=(_grouped if params.grouped else _stacked)(found.values, found.rows.names),
        legend=params.by,
    )


def _check(params: BarsParams) -> None:
    if not params.of:
        raise UsageError("--of is missing: it names the key that the bars show", "add it, e.g. --of amount")
    if params.stacked and params.grouped:
        raise UsageError("--stacked and --grouped exclude each other", "leave out one of them")
    if (params.stacked or params.grouped) and not params.by:
        option = "--stacked" if params.stacked else "--grouped"
        raise UsageError(f"{option} needs a key to divide the bars by", "add --by <key>, e.g. --by uid")


def _stacked(heights: Floats, names: Sequence[str]) -> tuple[Series, ...]:
    """A series for each row of `heights`, shape (rows, bars); negative values are stacked downwards."""
    import numpy as np

    from perun.view._common.chart import Series

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
        series.append(Series(name, "bars", at.astype(float), ends[side, at], number, base, own[at]))
    return tuple(series)


def _grouped(heights: Floats, names: Sequence[str]) -> tuple[Series, ...]:
    """A series for each row of `heights`, shape (rows, bars), side by side; a missing bar takes no room."""
    import numpy as np

    from perun.view._common.chart import Series

    present = ~np.isnan(heights)
    counts = present.sum(axis=0)
    ranks = np.cumsum(present, axis=0) - 1  # of each bar its place among those that its group really has
    width = _GROUP_WIDTH / max(1, int(counts.max()))
    series = []
    for number, (name, own) in enumerate(zip(names, heights, strict=True)):
        at = np.flatnonzero(present[number])
        x = at + (ranks[number, at] - (counts[at] - 1) / 2) * width
        base = np.zeros(len(at))
        series.append(Series(name, "bars", x, own[at], number, base, own[at], width=width * _BAR_SHARE))
    return tuple(series)
