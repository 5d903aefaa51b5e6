"""The bars view: one number for each value of a key, stacked or grouped by another key (manual 6.1.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, TextIO

from perun.errors import UsageError
from perun.plugin.api import ALONE, Readiness, ViewContext
from perun.plugin.params import param
from perun.view._common.aggregate import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from perun.profile.factory import Profile
    from perun.view._common.chart import Chart, Floats, Series

MOST_BARS: Final = 200
MOST_GROUPS: Final = 16
"""More values of the two keys than that are put together, which a note of the chart says."""


@dataclass(frozen=True)
class BarsParams:
    """What is shown for what, and where it goes."""

    function: str = param(
        "sum",
        choices=FUNCTIONS,
        metavar="<aggregation_function>",
        argument=True,
        help="What each bar shows of its resources.",
    )
    of: str = param(
        "",
        short="-o",
        required=True,
        metavar="<of_resource_key>",
        help="Sets key that is source of the data for the bars, i.e. what will be displayed on Y axis.",
    )
    per: str = param(
        "snapshots",
        short="-p",
        metavar="<per_resource_key>",
        help="Sets key that is source of values displayed on X axis of the bar graph.",
    )
    by: str = param(
        "",
        short="-b",
        metavar="<by_resource_key>",
        help="Sets the key that will be used either for stacking or grouping of values.",
    )
    stacked: bool = param(
        False, short="-s", help="Will stack the values by <resource_key> specified by option --by."
    )
    grouped: bool = param(
        False, short="-g", help="Will group the values by <resource_key> specified by option --by."
    )
    filename: str = param(
        "", short="-f", metavar="<html>", help="Sets the outputs for the graph to the file."
    )
    x_axis_label: str = param(
        "", short="-xl", metavar="<text>", help="Sets the custom label on the X axis of the bar graph."
    )
    y_axis_label: str = param(
        "", short="-yl", metavar="<text>", help="Sets the custom label on the Y axis of the bar graph."
    )
    graph_title: str = param(
        "", short="-gt", metavar="<text>", help="Sets the custom title of the bars graph."
    )
    view_in_browser: bool = param(
        False, short="-v", help="The generated graph will be immediately opened in the browser."
    )
    terminal: bool = param(
        False, help="The graph will be drawn in the terminal, or as text where the output is none."
    )


class BarsView:
    """The view of bars.

    Shows the sum, the mean or the like of a key as bars, one for each value of another key.
    """

    name: ClassVar[str] = "bars"
    help: ClassVar[str] = "Customizable interpretation of resources using the bar format."
    Params: ClassVar[type] = BarsParams

    def readiness(self, environ: Mapping[str, str]) -> Iterator[Readiness]:
        """Whether pages can be written here."""
        from perun.view._common.plot import readiness

        return readiness()

    def render(self, profile: Profile, params: BarsParams, out: TextIO, ctx: ViewContext = ALONE) -> None:
        """Write the chart to a page, whose name `out` gets, or as text to `out`.

        :raises UsageError: where a key is in no resource, options do not go together, or the file cannot
            be written.
        :raises ProfileError: where the profile has no resources.
        """
        from perun.view._common.output import Output, write

        charts = (chart(profile, params),)
        output = Output(self.name, params.filename, params.view_in_browser, params.terminal)
        write(charts, output, profile, out, ctx)


def chart(profile: Profile, params: BarsParams) -> Chart:
    """The chart of the profile; for what is raised see :meth:`BarsView.render`."""
    from perun.view._common.aggregate import keeps_unit, title
    from perun.view._common.chart import Axis, Chart, axis_label, facts
    from perun.view._common.crowds import crossed, few_of, one_place
    from perun.view._common.values import Resources

    _check(params)
    resources = Resources(profile)
    values = resources.measured(params.of, "--of", params.function)
    per = few_of(resources, params.per, "--per", params.function, values, MOST_BARS)
    by = (
        few_of(resources, params.by, "--by", params.function, values, MOST_GROUPS)
        if params.by
        else one_place(resources.size)
    )
    heights = crossed(params.function, by, per, values)
    what = f"{title(params.function)} of {params.of!r}"
    how = f", {'grouped' if params.grouped else 'stacked'} by {params.by!r}" if params.by else ""
    unit = resources.unit(params.of) if keeps_unit(params.function) else ""
    return Chart(
        title=params.graph_title or f"{what[0].upper()}{what[1:]} per {params.per!r}{how}",
        notes=tuple(note for note in (facts(profile, resources.size), per.note, by.note) if note),
        x=Axis(params.x_axis_label or params.per, names=per.names),
        y=Axis(params.y_axis_label or axis_label(what.replace("'", ""), unit), unit),
        series=(_grouped if params.grouped else _stacked)(heights, by.names),
        legend=params.by,
    )


def _check(params: BarsParams) -> None:
    if not params.of:
        raise UsageError("bars of what is not said", "name a key with --of, e.g. --of amount")
    if params.stacked and params.grouped:
        raise UsageError("--stacked and --grouped do not go together", "leave out one of them")
    if (params.stacked or params.grouped) and not params.by:
        option = "--stacked" if params.stacked else "--grouped"
        raise UsageError(f"{option} needs to know by which key", "add --by <by_resource_key>, e.g. --by uid")


def _stacked(heights: Floats, names: Sequence[str]) -> tuple[Series, ...]:
    """Positive values above each other, negative ones below."""
    import numpy as np

    from perun.view._common.chart import Series

    made = []
    largest = np.finfo(np.float64).max
    ends = np.zeros((2, heights.shape[1]))  # of what is positive, of what is negative
    for number, (name, own) in enumerate(zip(names, heights, strict=True)):
        at = np.flatnonzero(~np.isnan(own))
        side = (own[at] < 0).astype(int)
        base = ends[side, at]
        with np.errstate(over="ignore"):
            ends[side, at] = np.clip(base + own[at], -largest, largest)
        made.append(Series(name, "bars", at.astype(float), ends[side, at], number, base, own[at]))
    return tuple(made)


def _grouped(heights: Floats, names: Sequence[str]) -> tuple[Series, ...]:
    """Bars next to each other; one that is not there takes no room."""
    import numpy as np

    from perun.view._common.chart import Series

    there = ~np.isnan(heights)
    counts = there.sum(axis=0)
    ranks = np.cumsum(there, axis=0) - 1
    width = 0.84 / max(1, int(counts.max()))
    made = []
    for number, (name, own) in enumerate(zip(names, heights, strict=True)):
        at = np.flatnonzero(there[number])
        x = at + (ranks[number, at] - (counts[at] - 1) / 2) * width
        made.append(Series(name, "bars", x, own[at], number, np.zeros(len(at)), own[at], width=width * 0.94))
    return tuple(made)
