"""Box plot: how repeated measurements are distributed, a box for each key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from perun.profile.factory import Profile
from perun.view._common import (
    Axis,
    Box,
    Chart,
    ChartSeries,
    Floats,
    axis_label,
    chart_view,
    is_logarithmic,
    note_of,
    np,
    pivot,
    profile_summary,
    quantity,
)
from perun.view._common.chart_view import ChartView
from perun.view._common.pivot import Bins, bins_of, single_bin
from perun.view._common.values import Resources, nothing_in_common

if TYPE_CHECKING:
    from numpy.typing import NDArray


# The box plot view: quartiles, whiskers and outliers of values, a box for each value of a key.
#
# Source: J. W. Tukey, Exploratory Data Analysis, 1977, chapter 2. Quartiles are interpolated linearly between
# the two nearest values (R. J. Hyndman, Y. Fan, The American Statistician 50(4), 1996, definition 7).

MAX_BOXES: Final = 60
MAX_GROUPS: Final = 16
"""Limits of the bins of the two keys; a note of the chart says when values share bins."""
MAX_OUTLIERS: Final = 200
"""Of a box, the outliers that are furthest from it."""

_REACH: Final = 1.5
"""Whiskers end at the last value within this multiple of the distance of the quartiles."""
_GROUP_WIDTH: Final = 0.72
_BOX_SHARE: Final = 0.86


@dataclass(frozen=True)
class BoxplotParams:
    """The keys to show, and where the chart goes."""

    of: str = chart_view.key(
        "<of_resource_key>",
        "The key whose values are distributed (Y axis).",
        "amount",
    )
    per: str = chart_view.key(
        "<per_resource_key>",
        "The key with a box for each of its values (X axis). By default, the first of workload, uid and "
        "subtype of which the profile has several.",
    )
    by: str = chart_view.key(
        "<by_resource_key>",
        "The key with boxes side by side for each of its values. By default, the clocks of a time profile.",
    )
    filename: str = chart_view.filename()
    x_axis_label: str = chart_view.axis_label("X")
    y_axis_label: str = chart_view.axis_label("Y")
    y_scale: str = chart_view.scale("Y")
    graph_title: str = chart_view.title("chart")
    view_in_browser: bool = chart_view.view_in_browser()
    terminal: bool = chart_view.terminal()


class BoxplotView(ChartView[BoxplotParams]):
    """The view of box plots.

    A box goes from the first to the third quartile, with a line at the median. Whiskers go on to the last
    values within 1.5 times its height; what lies beyond is drawn as points.
    """

    name: ClassVar[str] = "boxplot"
    help: ClassVar[str] = "Box plot: how the values of repeated measurements are distributed."
    Params: ClassVar[type] = BoxplotParams

    def charts(self, profile: Profile, params: BoxplotParams) -> tuple[Chart, ...]:
        """The one chart of the profile."""
        return (chart(profile, params),)


def chart(profile: Profile, params: BoxplotParams) -> Chart:
    """The chart of the profile.

    :raises UsageError: if no resource has a key, a number in `--of`, or all of them at once.
    :raises ProfileError: if the profile has no resources.
    """
    resources = Resources(profile)
    values = resources.numbers(params.of, "--of")
    per = params.per or pivot.varied(resources, pivot.BOXES, but=(params.by,))
    by = params.by or (pivot.CLOCK if per != pivot.CLOCK and pivot.clocks(resources) else "")
    columns = bins_of(resources, per, "--per", "median", values, MAX_BOXES)
    rows = bins_of(resources, by, "--by", "median", values, MAX_GROUPS) if by else single_bin(resources.size)
    known = ~np.isnan(values) & (columns.codes >= 0) & (rows.codes >= 0)
    if not known.any():
        raise nothing_in_common(params.of, per, by)
    log = is_logarithmic(params.y_scale, [values[known]], "--y-scale")
    series = _series(rows, columns, values, known)
    number = pivot.extent([int(count) for one in series if one.counts is not None for count in one.counts])
    notes = [
        profile_summary(profile, resources.size),
        columns.note,
        rows.note,
        f"boxes are quartiles, whiskers reach 1.5 times as far, points are outliers; n = {number}",
        note_of("y", params.y_scale, log=log),
    ]
    unit = resources.unit(params.of)
    what = quantity(params.of, unit)
    y = Axis(axis_label(what, unit), unit, log=log)
    return pivot.categorical(profile, params, what, y, (per, by), columns, rows)._replace(
        notes=tuple(filter(None, notes)), series=series
    )


def _series(rows: Bins, columns: Bins, values: Floats, known: NDArray[np.bool_]) -> tuple[ChartSeries, ...]:
    """A series for each row, whose boxes stand side by side with those of the other rows."""
    # Sorted by row, column and value, so that the values of each box are one ascending slice.
    number = len(columns.names)
    pairs = (rows.codes * number + columns.codes)[known]
    order = np.lexsort((values[known], pairs))
    ascending = values[known][order]
    bounds = np.searchsorted(pairs[order], np.arange(len(rows.names) * number + 1))
    width = _GROUP_WIDTH / len(rows.names)
    made = []
    for row, name in enumerate(rows.names):
        starts = bounds[row * number : (row + 1) * number + 1]
        at = np.flatnonzero(np.diff(starts))
        boxes = [_box(ascending[starts[one] : starts[one + 1]]) for one in at]
        x = at + (row - (len(rows.names) - 1) / 2) * width
        medians = np.array([box.median for box in boxes])
        series = ChartSeries(name, "box", x.astype(float), medians, row, width=width * _BOX_SHARE)
        made.append(series._replace(boxes=tuple(boxes), counts=np.diff(starts)[at].astype(float)))
    return tuple(one for one in made if one.boxes)


def _box(ascending: Floats) -> Box:
    # Halved, as the difference of the largest floats is infinite.
    quartiles = np.percentile(ascending / 2, [25, 50, 75]) * 2
    # Halves of the smallest floats are 0, which a logarithmic axis does not have.
    first, median, third = np.clip(quartiles, ascending[0], ascending[-1]).tolist()
    reach = _REACH * (third / 2 - first / 2)
    inside = (ascending / 2 >= first / 2 - reach) & (ascending / 2 <= third / 2 + reach)
    outliers = ascending[~inside]
    if len(outliers) > MAX_OUTLIERS:
        outliers = outliers[np.argsort(-abs(outliers / 2 - median / 2))[:MAX_OUTLIERS]]
    kept = ascending[inside]
    # Of few values, a quartile may lie between an outlier and the first value that is none.
    low, high = min(float(kept[0]), first), max(float(kept[-1]), third)
    return Box(low, first, median, third, high, tuple(outliers.tolist()))


PLUGIN = BoxplotView
