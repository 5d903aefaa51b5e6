"""The base of the views that draw charts, which differ only in the charts that they make."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TextIO, TypeVar

from perun.core.errors import PluginError, UsageError
from perun.core.extras import install_command
from perun.pages import CSS, dark_colours, data_block, escape, numbers_script, text_beside
from perun.plugin.api import NO_VIEW_CONTEXT, Readiness, ViewContext
from perun.plugin.params import param
from perun.profile.amounts import readable
from perun.profile.factory import Profile
from perun.view._common import SCALES, Axis, Chart, ChartSeries, share_of, shortened
from perun.view._common.files import PageParams, destination, report, write_page
from perun.view._common.pivot import FUNCTIONS
from perun.view._common.plot_document import NAME_IN_HOVER, document
from perun.view._common.screen import (
    Screen,
    axis_names,
    box_lines,
    legend,
    plot_lines,
    right_aligned,
    width_of,
)


class ChartParams(PageParams, Protocol):
    """The parameters of every chart view: where the charts go."""

    @property
    def terminal(self) -> bool:
        """Whether to draw as text on the output instead of writing a page."""


P = TypeVar("P", bound=ChartParams)


class ChartView(ABC, Generic[P]):
    """A view whose charts go to a page or to the terminal; a subclass makes the charts."""

    name: ClassVar[str]
    DRAWN: ClassVar[int] = 1
    """How many charts are drawn in the terminal."""
    CHOSEN_BY: ClassVar[str] = "choose another one with --uid"
    """What shows the other ones."""

    @abstractmethod
    def charts(self, profile: Profile, params: P) -> Sequence[Chart]:
        """The charts of the profile, at least one; the first is shown first."""

    def readiness(self, environ: Mapping[str, str]) -> Iterator[Readiness]:
        """What this machine lacks to write pages."""
        return readiness()

    def render(self, profile: Profile, params: P, out: TextIO, ctx: ViewContext = NO_VIEW_CONTEXT) -> None:
        """Write the charts to a page and its name to `out`, or draw the first ones on `out` as text.

        :raises UsageError: if no resource has a key, options contradict each other, or the file cannot be
            written.
        :raises ProfileError: if the profile has no resources.
        :raises PluginError: if a page is wanted and Bokeh is not installed.
        """
        charts = self.charts(profile, params)
        if params.terminal:
            self._draw(charts, params, out, ctx)
            return
        path = destination(params.filename, self.name, profile)
        write_plots(path, charts)
        report(path, out, ctx, browse=params.view_in_browser)

    def _draw(self, charts: Sequence[Chart], params: P, out: TextIO, ctx: ViewContext) -> None:
        if params.filename or params.view_in_browser:
            option = "--filename" if params.filename else "--view-in-browser"
            raise UsageError(
                f"--terminal and {option} exclude each other", f"leave out --terminal or {option}"
            )
        screen = Screen.of(out, ctx)
        out.write("\n".join(chart_text(one, screen) for one in charts[: self.DRAWN]))
        if len(charts) > self.DRAWN:
            which = "the first" if self.DRAWN == 1 else f"the first {self.DRAWN}"
            ctx.note(f"the terminal shows {which} of {len(charts)} charts; {self.CHOSEN_BY}")


# Parameters that several views declare alike.


def aggregation(help: str) -> Any:
    """The aggregation function (manual 6.1.1 and 6.1.3), an argument in front of the options."""
    return param("sum", choices=FUNCTIONS, metavar="<aggregation_function>", argument=True, help=help)


def key(metavar: str, help: str, default: str = "") -> Any:
    """A key of the resources, whose short option is the first letter of the metavar."""
    return param(default, short=f"-{metavar[1]}", metavar=metavar, help=help)


def filename(help: str = "Write the page to this file, which is replaced if it exists.") -> Any:
    """The file that the view writes; empty for a new one named after the profile."""
    return param("", short="-f", metavar="<html>", help=help)


def axis_label(axis: str) -> Any:
    """The label of one axis, `X` or `Y`; empty for the key that the axis shows."""
    return param("", short=f"-{axis.lower()}l", metavar="<text>", help=f"Label of the {axis} axis.")


def scale(axis: str) -> Any:
    """The scale of one axis, `X` or `Y`."""
    about = "auto: logarithmic where the values differ by more than a factor of 1,000, and most are small."
    return param("auto", choices=SCALES, metavar="<scale>", help=f"Scale of the {axis} axis; {about}")


def title(of: str) -> Any:
    """The title of what the view draws; by default the keys or the command."""
    return param("", short="-gt", metavar="<text>", help=f"Title of the {of}.")


def view_in_browser() -> Any:
    """Whether the page is opened in the browser as soon as it is written."""
    return param(False, short="-v", help="Open the page in the browser.")


def terminal() -> Any:
    """Whether the chart is drawn as text on the output instead of a page."""
    return param(False, help="Draw the chart as text in the terminal instead of writing a page.")


# Charts as text, e.g. for a terminal on a remote machine: bars as lines of blocks, all else as dots.
#
# Without colours, each series has a character of its own; without Unicode, everything is ASCII.

_VALUE: Final = 14
"""Columns for the text behind a bar, if none is wider."""
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def chart_text(chart: Chart, screen: Screen) -> str:
    """The chart as text that ends with a line break."""
    lines = [screen.printable(line) for line in (chart.title, *chart.notes)] + [""]
    if any(series.kind == "box" for series in chart.series):
        lines += box_lines(chart, screen)
    elif any(series.kind == "bars" for series in chart.series):
        lines += _bars(chart, screen)
    else:
        lines += plot_lines(chart, screen)
    return "".join(line.rstrip() + "\n" for line in lines)


class _Bar(NamedTuple):
    """One bar from `start` to `end` on the axis of values; its own value differs if it is stacked.

    :param spread: the standard deviation of the values that it is the mean of, NaN if it is not known.
    :param number: how many these are; NaN if the bar is no mean.
    """

    start: float
    end: float
    value: float
    colour: int
    spread: float
    number: float


def _bars(chart: Chart, screen: Screen) -> list[str]:
    found: dict[int, list[_Bar]] = {}
    for series in chart.series:
        for place, bar in _bars_of(series):
            found.setdefault(place, []).append(bar)
    labels = axis_names(chart.x.names or chart.series[0].labels, screen)
    margin = max(map(width_of, labels), default=0)
    ends = [end for bars in found.values() for bar in bars for end in (bar.start, bar.end)]
    rows = [
        ("" if number else label, row, screen.printable(_value(row, chart.y)))
        for place, label in enumerate(labels)
        for number, row in enumerate(_rows(found.get(place, [])) or [[]])
    ]
    room = max(_VALUE, *(2 + width_of(value) for _, _, value in rows))
    ends += [] if chart.y.log else [0.0]
    scale = _Scale(min(ends), max(ends), max(10, screen.columns - margin - room), chart.y.log)
    edge = "│" if screen.unicode else "|"
    lines = [
        f"{right_aligned(label, margin)} {edge}{scale.line(row, screen)} {value}"
        for label, row, value in rows
    ]
    heading = screen.printable(f"{chart.y.label} per {chart.x.label}{', logarithmic' * chart.y.log}")
    return [heading, *lines, *legend(chart, screen)]


def _bars_of(series: ChartSeries) -> Iterable[tuple[int, _Bar]]:
    """The bars of a series, each with the position of its category."""
    base = series.base if series.base is not None else series.y * 0
    values = series.value if series.value is not None else series.y
    unknown = series.y * math.nan
    spread = unknown if series.spread is None else series.spread
    counts = unknown if series.spread is None or series.counts is None else series.counts
    columns = (one.tolist() for one in (series.x, base, series.y, values, spread, counts))
    rows = enumerate(zip(*columns, strict=True))
    for number, (at, start, end, value, deviation, count) in rows:
        yield number if series.labels else round(at), _Bar(start, end, value, series.colour, deviation, count)


def _value(row: Sequence[_Bar], axis: Axis) -> str:
    """What the bars of a row stand for; of a single mean also how far its values lie apart."""
    if not row:
        return ""
    text = readable(sum(bar.value for bar in row), axis.unit)
    number = row[0].number
    if len(row) > 1 or math.isnan(number):
        return text
    deviation = row[0].spread
    around = "" if math.isnan(deviation) else f" ± {readable(deviation, axis.unit, 2)}"
    return f"{text}{around} (n = {number:,.0f})"


def _rows(bars: Sequence[_Bar]) -> list[list[_Bar]]:
    """The rows of one category: one for all stacked bars, or one for each grouped bar."""
    visible = [bar for bar in bars if bar.start != bar.end]
    if len(visible) > 1 and not any(bar.start for bar in visible):
        return [[bar] for bar in bars]
    return [list(visible or bars[:1])] if bars else []


class _Scale(NamedTuple):
    """Maps values between `low` and `high`, by their logarithms if `log` is true, to `width` columns."""

    low: float
    high: float
    width: int
    log: bool = False

    def at(self, value: float) -> float:
        """The column of a value, as a fraction."""
        if not self.high / 2 > self.low / 2:
            return 0.0
        if self.log:
            low, high, value = (math.log10(one) for one in (self.low, self.high, value))
            return share_of(value, (low, high)) * self.width
        return share_of(value, (self.low, self.high)) * self.width

    def line(self, bars: Sequence[_Bar], screen: Screen) -> str:
        """The bars of one row; of two bars that share a column, the first one gets it."""
        text, column = "", 0
        for bar in sorted(bars, key=lambda bar: min(bar.start, bar.end)):
            low, high = sorted((self.at(bar.start), self.at(bar.end)))
            start, end = max(column, round(low)), round(high)
            text += " " * (start - column)
            column = max(column, start)
            if end > column:
                text += screen.paint(screen.fill(bar.colour) * (end - column), bar.colour)
                column = end
            elif bar.start != bar.end and len(bars) == 1:
                # Less than half a column: a part of a block, so that a small value differs from none.
                sign = _EIGHTHS[max(1, int((high - low) * 8))] if screen.unicode else "."
                text += screen.paint(sign, bar.colour)
                column += 1
        return text


# Charts as a page: the JSON of a Bokeh document for each, which the script of the page draws with BokehJS.
#
# BokehJS is part of the installed package of Bokeh, whose Python modules are not imported.

_NO_BOKEH: Final = "Bokeh is not installed, and pages with charts need it"


def write_plots(path: Path, charts: Sequence[Chart]) -> None:
    """Write a page that shows the first chart, and lets the reader choose among all.

    :raises UsageError: if the file cannot be written.
    :raises PluginError: if Bokeh is not installed.
    """
    import json

    data = [
        {
            "name": shortened(chart.name, NAME_IN_HOVER),
            "title": chart.title,
            "notes": [*chart.notes],
            "item": document(chart),
        }
        for chart in charts
    ]
    first = charts[0]
    body = _BODY.format(
        title=escape(first.title),
        notes=escape(". ".join(note.rstrip(".") for note in first.notes)),
        chooser=_CHOOSER if len(charts) > 1 else "",
        data=data_block("charts", data),
    )
    colours = f"const perunDarkColours = {json.dumps(dark_colours())};\n"
    scripts = (bokeh_script(), numbers_script(), colours + text_beside(__file__, "plot.js"))
    write_page(
        path,
        title=shortened(first.title, NAME_IN_HOVER),
        body=body,
        style=CSS + text_beside(__file__, "plot.css"),
        scripts=scripts,
        evaluates=True,  # BokehJS compiles the code of its formatters
    )


def bokeh_script() -> str:
    """The text of BokehJS, from the files of the installed package.

    :raises PluginError: if it is not installed.
    """
    path = _bokeh_path()
    if path is None:
        raise PluginError(_NO_BOKEH, f"{_how_to_install()}, or draw in the terminal with --terminal")
    return path.read_text("utf-8")


def readiness() -> Iterator[Readiness]:
    """What this machine lacks to write pages with charts; nothing where all is there."""
    if _bokeh_path() is None:
        yield Readiness("pages", _NO_BOKEH, f"{_how_to_install()}; --terminal works without it")


def _how_to_install() -> str:
    return f"install it with: {install_command('plots')}"


def _bokeh_path() -> Path | None:
    from importlib.util import find_spec

    found = find_spec("bokeh")
    for folder in (found.submodule_search_locations or ()) if found else ():
        script = Path(folder, "server", "static", "js", "bokeh.min.js")
        if script.is_file():
            return script
    return None


_CHOOSER: Final = """\
<div class="controls">
<label for="chooser">Show</label> <select id="chooser"></select>
<input id="find" type="search" placeholder="find" aria-label="find a chart by its name">
<button id="before" type="button" title="the previous chart">&#9664;</button>
<button id="behind" type="button" title="the next chart">&#9654;</button>
</div>"""

_BODY: Final = """\
<main>
<h1 id="title">{title}</h1>
<p class="subtitle" id="notes">{notes}</p>
{chooser}
<div id="plot" role="img"></div>
<p class="note">Click a name in the legend to hide or show its data; drag to move the chart, choose the
magnifier to zoom into a box, point at data to read the values.</p>
</main>
<noscript>This page draws its chart with JavaScript, which is turned off in this browser.</noscript>
{data}"""
