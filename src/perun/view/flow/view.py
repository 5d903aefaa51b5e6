"""The flow view: what resources amount to along a key, a line for each value of another (manual 6.1.3)."""

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

MOST_PLACES: Final = 1000
MOST_LINES: Final = 16
"""More values of the two keys than that are put together, which a note of the chart says."""

_NOTHING_IS_ZERO: Final = ("sum", "count", "nunique")


@dataclass(frozen=True)
class FlowParams:
    """What is shown along what, and where it goes."""

    function: str = param(
        "sum",
        choices=FUNCTIONS,
        metavar="<aggregation_function>",
        argument=True,
        help="What each point shows of its resources.",
    )
    of: str = param(
        "",
        short="-o",
        required=True,
        metavar="<of_resource_key>",
        help="Sets key that is source of the data for the flow, i.e. what will be displayed on Y axis, e.g. "
        "the amount of resources.",
    )
    through: str = param(
        "snapshots",
        short="-t",
        metavar="<through_key>",
        help="Sets key that is source of the data value, i.e. the independent variable, like e.g. snapshots "
        "or size of the structure.",
    )
    by: str = param(
        "",
        short="-b",
        required=True,
        metavar="<by_resource_key>",
        help="For each <by_resource_key> one graph will be output, e.g. for each subtype or for each "
        "location of resource.",
    )
    stacked: bool = param(
        False,
        short="-s",
        help="Will stack the y axis values for different <by> keys on top of each other. Additionally shows "
        "the sum of the values.",
    )
    accumulate: bool = param(
        True,
        long="--accumulate/--no-accumulate",
        help="Will accumulate the values for all previous values of X axis.",
    )
    filename: str = param(
        "", short="-f", metavar="<html>", help="Sets the outputs for the graph to the file."
    )
    x_axis_label: str = param(
        "", short="-xl", metavar="<text>", help="Sets the custom label on the X axis of the flow graph."
    )
    y_axis_label: str = param(
        "", short="-yl", metavar="<text>", help="Sets the custom label on the Y axis of the flow graph."
    )
    graph_title: str = param(
        "", short="-gt", metavar="<text>", help="Sets the custom title of the flow graph."
    )
    view_in_browser: bool = param(
        False, short="-v", help="The generated graph will be immediately opened in the browser."
    )
    terminal: bool = param(
        False, help="The graph will be drawn in the terminal, or as text where the output is none."
    )


class FlowView:
    """The view of flows.

    Shows how the sum, the mean or the like of a key goes along another key, as lines or as areas.
    """

    name: ClassVar[str] = "flow"
    help: ClassVar[str] = "Customizable interpretation of resources using the flow format."
    Params: ClassVar[type] = FlowParams

    def readiness(self, environ: Mapping[str, str]) -> Iterator[Readiness]:
        """Whether pages can be written here."""
        from perun.view._common.plot import readiness

        return readiness()

    def render(self, profile: Profile, params: FlowParams, out: TextIO, ctx: ViewContext = ALONE) -> None:
        """Write the chart to a page, whose name `out` gets, or as text to `out`.

        :raises UsageError: where a key is in no resource, options do not go together, or the file cannot
            be written.
        :raises ProfileError: where the profile has no resources.
        """
        from perun.view._common.output import Output, write

        charts = (chart(profile, params),)
        output = Output(self.name, params.filename, params.view_in_browser, params.terminal)
        write(charts, output, profile, out, ctx)


def chart(profile: Profile, params: FlowParams) -> Chart:
    """The chart of the profile; for what is raised see :meth:`FlowView.render`."""
    import numpy as np

    from perun.view._common.aggregate import keeps_unit, title
    from perun.view._common.chart import Axis, Chart, axis_label, facts
    from perun.view._common.crowds import crossed, few_of
    from perun.view._common.values import Resources

    _check(params)
    resources = Resources(profile)
    values = resources.measured(params.of, "--of", params.function)
    through = few_of(resources, params.through, "--through", params.function, values, MOST_PLACES)
    by = few_of(resources, params.by, "--by", params.function, values, MOST_LINES)
    heights = _filled(crossed(params.function, by, through, values), params)
    at = np.arange(len(through.names), dtype=float) if through.at is None else through.at
    what = f"{title(params.function)} of {params.of!r}"
    how = [f"for each {params.by!r}", "stacked" if params.stacked else "", "accumulated" * params.accumulate]
    unit = resources.unit(params.of) if keeps_unit(params.function) else ""
    shown = f"{'accumulated ' * params.accumulate}{what}".replace("'", "")
    heading = f"{what[0].upper()}{what[1:]} through {params.through!r} " + ", ".join(filter(None, how))
    return Chart(
        title=params.graph_title or heading,
        notes=tuple(note for note in (facts(profile, resources.size), through.note, by.note) if note),
        x=Axis(
            params.x_axis_label or axis_label(params.through, resources.unit(params.through)),
            resources.unit(params.through),
            through.names if through.at is None else (),
        ),
        y=Axis(params.y_axis_label or axis_label(shown, unit), unit),
        series=(_stacked if params.stacked else _lines)(at, heights, by.names),
        legend=params.by,
    )


def _check(params: FlowParams) -> None:
    if not params.of:
        raise UsageError("the flow of what is not said", "name a key with --of, e.g. --of amount")
    if not params.by:
        raise UsageError("which resources make a line is not said", "name a key with --by, e.g. --by uid")


def _filled(heights: Floats, params: FlowParams) -> Floats:
    """Where there is nothing, an accumulated value stays as it is, and a sum of nothing is 0."""
    import numpy as np

    from perun.view._common.aggregate import finite_sums, plain

    if params.accumulate:
        return finite_sums(np.nancumsum, heights, axis=1)
    if params.stacked or plain(params.function) in _NOTHING_IS_ZERO:
        return np.nan_to_num(heights, nan=0.0)
    return heights


def _lines(at: Floats, heights: Floats, names: Sequence[str]) -> tuple[Series, ...]:
    import numpy as np

    from perun.view._common.chart import Series

    made = []
    for number, (name, own) in enumerate(zip(names, heights, strict=True)):
        some = ~np.isnan(own)
        made.append(Series(name, "line", at[some], own[some], number, marked=True))
    return tuple(made)


def _stacked(at: Floats, heights: Floats, names: Sequence[str]) -> tuple[Series, ...]:
    """Areas above each other, and their sum as a line."""
    import numpy as np

    from perun.view._common.aggregate import finite_sums
    from perun.view._common.chart import Series

    ends = finite_sums(np.cumsum, heights, axis=0)
    bases = ends - heights
    made = [
        Series(name, "area", at, ends[number], number, bases[number], heights[number])
        for number, name in enumerate(names)
    ]
    return (*made, Series("sum", "line", at, ends[-1], -1))
