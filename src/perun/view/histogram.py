"""Histogram: how often measured values lie in which interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final

from perun.core.errors import UsageError
from perun.plugin.params import param
from perun.profile.amounts import readable
from perun.profile.factory import Profile
from perun.view._common import (
    Axis,
    Chart,
    ChartSeries,
    Floats,
    axis_label,
    chart_view,
    is_logarithmic,
    name_of,
    note_of,
    np,
    pivot,
    profile_summary,
    quantity,
    title_of,
    widened,
)
from perun.view._common.chart_view import ChartView
from perun.view._common.values import Resources, nothing_in_common

MAX_BINS: Final = 100
MAX_ROWS: Final = 24
"""More intervals are not chosen automatically, on a page and in the terminal."""
MAX_CHARTS: Final = 200
MOST_BINS: Final = 10_000
"""A page has fewer pixels than so many intervals; millions of them would not fit into memory."""


@dataclass(frozen=True)
class HistogramParams:
    """The key to show, and where the charts go."""

    of: str = chart_view.key(
        "<of_resource_key>",
        "The key whose values are counted (X axis).",
        "amount",
    )
    by: str = chart_view.key(
        "<by_resource_key>",
        "The key with a histogram for each of its values. By default, uid, or subtype if there is one uid "
        "only.",
    )
    bins: int = param(
        0,
        short="-n",
        minimum=1,
        metavar="<number>",
        help="The number of intervals; by default, the values decide.",
    )
    filename: str = chart_view.filename()
    x_axis_label: str = chart_view.axis_label("X")
    y_axis_label: str = chart_view.axis_label("Y")
    x_scale: str = chart_view.scale("X")
    graph_title: str = chart_view.title("chart")
    view_in_browser: bool = chart_view.view_in_browser()
    terminal: bool = chart_view.terminal()


class HistogramView(ChartView[HistogramParams]):
    """The view of histograms.

    Shows how many of the measured values lie in which interval: whether there are two groups of runs, or few
    that take much longer. One page holds a histogram for each value of `--by`.
    """

    name: ClassVar[str] = "histogram"
    help: ClassVar[str] = "Histogram: how many of the values lie in which interval."
    Params: ClassVar[type] = HistogramParams
    DRAWN: ClassVar[int] = 4
    CHOSEN_BY: ClassVar[str] = "a page shows them all, without --terminal"

    def charts(self, profile: Profile, params: HistogramParams) -> tuple[Chart, ...]:
        """A histogram for each value of the key, those of most values if there are too many.

        :raises UsageError: if no resource has a key, a number in `--of`, or both at once, or `--bins` is too
            large.
        :raises ProfileError: if the profile has no resources.
        """
        if params.bins > MOST_BINS:
            raise UsageError(
                f"--bins {params.bins}: a histogram has at most {MOST_BINS:,} intervals",
                "leave out --bins, and the values decide",
            )
        resources = Resources(profile)
        values = resources.numbers(params.of, "--of")
        by = params.by or pivot.varied(resources, pivot.SERIES)
        groups = resources.categories(by, "--by") if params.by or resources.has(by) else None
        if groups is None:
            return (_chart(resources, params, values[~np.isnan(values)], ""),)
        codes = np.where(np.isnan(values), -1, groups.codes)
        # Sorted by group once, so that the values of each are one slice.
        order = np.argsort(codes, kind="stable")
        names = groups.names
        bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
        sizes = np.diff(bounds)
        if not sizes.any():
            raise nothing_in_common(params.of, by)
        largest = np.argsort(-sizes, kind="stable")[:MAX_CHARTS].tolist()
        return tuple(
            _chart(resources, params, values[order[bounds[one] : bounds[one + 1]]], name_of(names[one]))
            for one in sorted(largest)
            if sizes[one]
        )


def _chart(resources: Resources, params: HistogramParams, values: Floats, name: str) -> Chart:
    unit = resources.unit(params.of)
    what = quantity(params.of, unit)
    log = is_logarithmic(params.x_scale, [values], "--x-scale")
    halves = values / 2  # the sum of large floats may be infinite
    mean, median = float(np.mean(halves / len(values)) * len(values)) * 2, float(np.median(halves)) * 2
    notes = [
        profile_summary(resources.profile, resources.size),
        f"n = {len(values):,}, mean {readable(mean, unit)}, median {readable(median, unit)}",
        note_of("x", params.x_scale, log=log),
    ]
    title = title_of(resources.profile, what, "", ())
    x = Axis(params.x_axis_label or axis_label(what, unit), unit, log=log)
    return Chart(
        title=params.graph_title or (f"{title}: {name}" if name else title),
        notes=tuple(filter(None, notes)),
        x=x,
        y=Axis(params.y_axis_label or "number of values"),
        series=(_bars(values, params.bins, MAX_ROWS if params.terminal else MAX_BINS, x),),
        name=name or "(all)",
    )


def _bars(values: Floats, number: int, most: int, axis: Axis) -> ChartSeries:
    """A bar for each interval, also for those without values."""
    edges = _edges(np.log10(values) if axis.log else values, number, most)
    edges = 10**edges if axis.log else edges
    places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    counts = np.bincount(places, minlength=len(edges) - 1).astype(float)
    ends = [readable(edge, axis.unit, 4) for edge in edges.tolist()]
    return ChartSeries(
        *("", "bars", edges[:-1] / 2 + edges[1:] / 2, counts, 0, np.zeros(len(counts)), counts),
        width=np.diff(edges),
        labels=tuple(f"{start} to {end}" for start, end in pairwise(ends)),
    )


def _edges(values: Floats, number: int, most: int) -> Floats:
    """The ends of the intervals, ascending, one more than there are intervals.

    Their width is the smaller one of those of D. Freedman and P. Diaconis (2 IQR / n^(1/3), Zeitschrift für
    Wahrscheinlichkeitstheorie 57, 1981) and H. A. Sturges (range / (1 + log2 n), JASA 21, 1926), as numpy's
    `auto`; of whole numbers it is a whole number.

    :param values: shape (n,), at least one. :param number: how many intervals; 0 to choose by that rule.
    :param most: how many are chosen at most.
    """
    low, high = widened(float(values.min()), float(values.max()), 0.05)
    extent = high / 2 - low / 2
    if not number:
        first, third = np.percentile(values / 2, [25, 75])
        sturges = extent / (1 + math.log2(len(values)))
        diaconis = 2 * float(third - first) / len(values) ** (1 / 3)
        width = min(sturges, diaconis) if diaconis > 0 else sturges
        # Halves of the smallest floats are 0.
        number = max(1, min(most, math.ceil(extent / width))) if width else 1
        if (values == np.floor(values)).all() and max(abs(low), abs(high)) < 2**53:
            whole = math.ceil(2 * extent / number)
            return low + whole * np.arange(math.ceil(2 * extent / whole) + 1.0)
    return np.linspace(low / 2, high / 2, number + 1) * 2


PLUGIN = HistogramView
