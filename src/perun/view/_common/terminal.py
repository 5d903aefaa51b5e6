"""Charts as text, for a terminal on a remote machine: bars as lines of blocks, everything else as dots.

Without colours series are told apart by characters; without Unicode everything is ASCII.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from perun.view._common.chart import Chart, Series, short_names
from perun.view._common.numbers import readable

if TYPE_CHECKING:
    from perun.plugin.api import ViewContext

_USUAL_WIDTH: Final = 80
_LEAST_WIDTH: Final = 40
_MOST_WIDTH: Final = 160
_NAME: Final = 30
_COLOURS: Final = (33, 166, 36, 175, 74, 178, 245, 227)
"""The palette of the pages in the 256 colours of a terminal."""
_FILLS: Final = "█▓▒░▚▞▄▀abcdefgh"
_ASCII_FILLS: Final = "#=+o*x%@abcdefgh"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


class Screen(NamedTuple):
    """What text is drawn for: its width in characters, whether it has colours, and more than ASCII."""

    columns: int = _USUAL_WIDTH
    coloured: bool = False
    unicode: bool = True

    @classmethod
    def of(cls, out: TextIO, ctx: ViewContext) -> Screen:
        """What `out` is."""
        columns = max(_LEAST_WIDTH, min(_MOST_WIDTH, ctx.columns or _USUAL_WIDTH))
        try:
            "█⣿µ…".encode(getattr(out, "encoding", None) or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return cls(columns, ctx.coloured, False)
        return cls(columns, ctx.coloured, True)

    def paint(self, text: str, number: int) -> str:
        """`text` in the colour of series `number`; the sum, below 0, is in that of the text."""
        if not self.coloured or not text.strip() or number < 0:
            return text
        return f"\x1b[38;5;{_COLOURS[number % len(_COLOURS)]}m{text}\x1b[0m"

    def fill(self, number: int) -> str:
        """The character that bars of series `number` are made of."""
        if self.coloured:
            return "█" if self.unicode else "#"
        fills = _FILLS if self.unicode else _ASCII_FILLS
        return fills[number % len(fills)]

    def plain(self, text: str) -> str:
        """Text of a profile in one line, without orders to the terminal."""
        return "".join(
            char
            if char.isprintable() and (self.unicode or char.isascii())
            else char.encode("unicode_escape").decode("ascii")
            for char in text.translate(_SPELLED if not self.unicode else {})
        )


_SPELLED: Final = str.maketrans({"…": "..", "µ": "u", "×": "x", "²": "2", "·": "*"})  # noqa: RUF001


def drawn(chart: Chart, screen: Screen) -> str:
    """The chart as text, with a line break at its end."""
    from perun.view._common.canvas import plotted

    lines = [screen.plain(line) for line in (chart.title, *chart.notes)] + [""]
    if any(series.kind == "bars" for series in chart.series):
        lines += _bars(chart, screen)
    else:
        lines += plotted(chart, screen)
    return "".join(line.rstrip() + "\n" for line in lines)


def width_of(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def padded(text: str, width: int) -> str:
    """The text with blanks before it, so that it takes `width` columns."""
    return " " * (width - width_of(text)) + text


def legend(names: Iterable[tuple[str, int, str]], title: str, screen: Screen) -> list[str]:
    """Lines that tell what each sign, given with the number of its colour and a name, stands for."""
    lines = [f"{screen.paint(sign, number)} {screen.plain(name)}" for sign, number, name in names if name]
    return ["", *([screen.plain(title)] if title and lines else []), *lines] if lines else []


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
