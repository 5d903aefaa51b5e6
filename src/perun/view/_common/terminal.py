"""Charts as text, for a terminal on a remote machine: bars as lines of blocks, everything else as dots.

Without colours series are told apart by characters; without Unicode everything is ASCII.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from perun.view._common.canvas import plotted
from perun.view._common.chart import Chart, Series, short_names
from perun.view._common.numbers import readable
from perun.view._common.screen import Screen, legend, padded, width_of

_NAME: Final = 30
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def drawn(chart: Chart, screen: Screen) -> str:
    """The chart as text, with a line break at its end."""
    lines = [screen.plain(line) for line in (chart.title, *chart.notes)] + [""]
    if any(series.kind == "bars" for series in chart.series):
        lines += _bars(chart, screen)
    else:
        lines += plotted(chart, screen)
    return "".join(line.rstrip() + "\n" for line in lines)


class _Bar(NamedTuple):
    start: float
    end: float
    value: float
    number: int


def _bars(chart: Chart, screen: Screen) -> list[str]:
    found: dict[int, list[_Bar]] = {}
    for series in chart.series:
        for place, bar in _places(series):
            found.setdefault(place, []).append(bar)
    labels = [screen.plain(name) for name in short_names(chart.x.names, _NAME)]
    margin = max(map(width_of, labels), default=0)
    ends = [0.0, *(end for bars in found.values() for bar in bars for end in (bar.start, bar.end))]
    scale = _Scale(min(ends), max(ends), max(10, screen.columns - margin - 14))
    edge = "│" if screen.unicode else "|"
    lines = []
    for place, label in enumerate(labels):
        rows = _rows(found.get(place, []))
        for number, row in enumerate(rows or [[]]):
            total = sum(bar.value for bar in row)
            value = screen.plain(readable(total, chart.y.unit)) if row else ""
            start = padded("" if number else label, margin)
            lines.append(f"{start} {edge}{scale.line(row, screen)} {value}")
    names = [series.name for series in chart.series]
    short = short_names(names, screen.columns - 4)
    signs = (
        (screen.fill(one.colour), one.colour, name) for one, name in zip(chart.series, short, strict=True)
    )
    heading = screen.plain(f"{chart.y.label} per {chart.x.label}")
    return [heading, *lines, *legend(signs, chart.legend, screen)]


def _places(series: Series) -> Iterable[tuple[int, _Bar]]:
    base = series.base if series.base is not None else series.y * 0
    values = series.value if series.value is not None else series.y
    for at, start, end, value in zip(
        series.x.tolist(), base.tolist(), series.y.tolist(), values.tolist(), strict=True
    ):
        yield round(at), _Bar(start, end, value, series.colour)


def _rows(bars: Sequence[_Bar]) -> list[list[_Bar]]:
    """Stacked bars in one row, grouped ones, which all start at 0, each in its own."""
    some = [bar for bar in bars if bar.start != bar.end]
    if sum(bar.start == 0 for bar in some) > 1 and not any(bar.start for bar in some):
        return [[bar] for bar in bars]
    return [list(some or bars[:1])] if bars else []


class _Scale(NamedTuple):
    """From values to columns of the terminal."""

    low: float
    high: float
    width: int

    def at(self, value: float) -> float:
        span = self.high / 2 - self.low / 2
        return (value / 2 - self.low / 2) / span * self.width if span else 0.0

    def line(self, bars: Sequence[_Bar], screen: Screen) -> str:
        """The bars of one row."""
        text, column = "", 0
        for bar in sorted(bars, key=lambda bar: min(bar.start, bar.end)):
            low, high = sorted((self.at(bar.start), self.at(bar.end)))
            start, end = max(column, round(low)), round(high)
            text += " " * (start - column)
            column = max(column, start)
            if end > column:
                text += screen.paint(screen.fill(bar.number) * (end - column), bar.number)
                column = end
            elif bar.start != bar.end and len(bars) == 1:
                sign = _EIGHTHS[max(1, int((high - low) * 8))] if screen.unicode else "."
                text += screen.paint(sign, bar.number)
                column += 1
        return text
