"""The terminal that charts are drawn for: its width, colours and characters, and the width of text on it."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Final, NamedTuple, TextIO

from perun.plugin.api import ViewContext
from perun.profile.amounts import is_size, readable
from perun.view._common import (
    Axis,
    Box,
    Chart,
    ChartSeries,
    Density,
    Floats,
    Span,
    np,
    share_of,
    short_names,
    shortened,
    widened,
)

_USUAL_WIDTH: Final = 80
_NAME: Final = 30
_LEAST_WIDTH: Final = 40
_MAX_WIDTH: Final = 160
_COLOURS: Final = (33, 166, 36, 175, 74, 178, 245, 227)
"""The palette of the pages in the 256 colours of a terminal."""
COLOURS: Final = len(_COLOURS)
"""How many series differ by their colour."""
_FILLS: Final = "█▓▒░▚▞▄▀abcdefgh"
_ASCII_FILLS: Final = "#=+o*x%@abcdefgh"


class Screen(NamedTuple):
    """A terminal.

    :param columns: its width in characters. :param coloured: whether it shows ANSI colours.
    :param unicode: whether it shows more than ASCII.
    """

    columns: int = _USUAL_WIDTH
    coloured: bool = False
    unicode: bool = True

    @classmethod
    def of(cls, out: TextIO, ctx: ViewContext) -> Screen:
        """The screen behind `out`: its encoding decides on Unicode, the context on width and colours."""
        columns = max(_LEAST_WIDTH, min(_MAX_WIDTH, ctx.columns or _USUAL_WIDTH))
        try:
            "█⣿µ…".encode(getattr(out, "encoding", None) or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return cls(columns, ctx.coloured, False)
        return cls(columns, ctx.coloured, True)

    def paint(self, text: str, number: int) -> str:
        """`text` in the colour of series `number`; a negative number (of a sum) keeps the default colour."""
        if not self.coloured or not text.strip() or number < 0:
            return text
        return f"\x1b[38;5;{_COLOURS[number % len(_COLOURS)]}m{text}\x1b[0m"

    def fill(self, number: int) -> str:
        """The character that fills the bars of series `number`."""
        fills = _FILLS if self.unicode else _ASCII_FILLS
        return fills[(max(0, number) // COLOURS if self.coloured else number) % len(fills)]

    def printable(self, text: str) -> str:
        """Text of a profile in one line, with control characters and what the screen cannot show escaped."""
        return printable(text) if self.unicode else printable(text.translate(_ASCII_SPELLINGS), ascii=True)


_ASCII_SPELLINGS: Final = str.maketrans({"…": "..", "µ": "u", "×": "x", "²": "2", "·": "*", "±": "+-"})


def printable(text: str, *, ascii: bool = False) -> str:
    """The text with each character that is not printable as its escape, e.g. `\\x1b`.

    A line break would break a row apart, and a terminal obeys control characters.

    :param ascii: escape all that is not ASCII, too.
    """
    return "".join(
        char
        if char.isprintable() and (not ascii or char.isascii())
        else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def width_of(text: str) -> int:
    """The number of terminal columns that the text takes; wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def right_aligned(text: str, width: int) -> str:
    """The text with blanks before it, so that it takes `width` columns."""
    return " " * (width - width_of(text)) + text


def axis_names(names: Sequence[str], screen: Screen) -> list[str]:
    """The names of categories, short enough to stand before a row."""
    shown = [screen.printable(name) for name in short_names(names, _NAME)]
    return [name if width_of(name) <= _NAME else shortened(name, _NAME // 2) for name in shown]


def legend(chart: Chart, screen: Screen, sign: Callable[[ChartSeries], str] | None = None) -> list[str]:
    """The lines of the legend, below its title; a series without a name has none.

    :param sign: of a series; by default, the character that fills its bars.
    """
    short = short_names([one.name for one in chart.series], screen.columns - 4)
    lines = [
        f"{screen.paint(sign(one) if sign else screen.fill(one.colour), one.colour)} {screen.printable(name)}"
        for one, name in zip(chart.series, short, strict=True)
        if name
    ]
    title = [screen.printable(chart.legend)] if chart.legend else []
    return ["", *title, *lines] if lines else []


# Box plots as text: a row for each box, with its whiskers and outliers.

_LEAST: Final = 10
_ROOM_FOR_QUARTILES: Final = 70
"""A screen of fewer columns shows the median only as a number."""
_SIGNS: Final = ("├", "─", "┤", "▒", "█", "·")
_ASCII_SIGNS: Final = ("|", "-", "|", "=", "#", "o")
"""The lower end, whisker, upper end, box, median and outlier."""


def box_lines(chart: Chart, screen: Screen) -> list[str]:
    """The rows of the boxes in the order of the x axis, and the ends of the axis below them."""
    found = sorted(
        (
            (float(x), box, series.colour, float(count))
            for series in chart.series
            if series.counts is not None
            for x, box, count in zip(series.x, series.boxes, series.counts, strict=True)
        ),
        key=lambda row: row[0],
    )
    names = axis_names(chart.x.names, screen)
    labels, before = [], -1
    for x, *_ in found:
        place = round(x)
        labels.append("" if place == before else names[place])
        before = place
    unit = chart.y.unit
    brief = screen.columns < _ROOM_FOR_QUARTILES
    texts = [
        screen.printable(readable(box.median, unit) if brief else _text(box, unit, count))
        for _, box, _, count in found
    ]
    margin = max(map(width_of, labels))
    width = max(_LEAST, screen.columns - margin - max(map(width_of, texts)) - 4)
    ends = _ends([box for _, box, *_ in found], chart.y.log)
    edge = "│" if screen.unicode else "|"
    lines = []
    for label, (_, box, colour, _), text in zip(labels, found, texts, strict=True):
        picture = screen.paint(_picture(box, ends, chart.y.log, width, screen), colour)
        lines.append(f"{right_aligned(label, margin)} {edge}{picture} {text}")
    low, high = (screen.printable(readable(10**end if chart.y.log else end, unit)) for end in ends)
    gap = max(1, width - width_of(low) - width_of(high))
    lines.append(f"{' ' * (margin + 2)}{low}{' ' * gap}{high}")
    heading = f"{chart.y.label} per {chart.x.label}{', logarithmic' * chart.y.log}: median"
    heading += "" if brief else " [quartiles]"
    return [screen.printable(heading), *lines, *legend(chart, screen)]


def _text(box: Box, unit: str, count: float) -> str:
    median, first, third = (readable(one, unit) for one in (box.median, box.first, box.third))
    return f"{median} [{first}, {third}] (n = {count:,.0f})"


def _ends(boxes: list[Box], log: bool) -> Span:
    values = [end for box in boxes for end in (box.low, box.high, *box.outliers)]
    low, high = min(values), max(values)
    return widened(math.log10(low), math.log10(high), 0.05) if log else widened(low, high, 0.05)


def _picture(box: Box, ends: Span, log: bool, width: int, screen: Screen) -> str:
    start, line, end, body, middle, outlier = _SIGNS if screen.unicode else _ASCII_SIGNS

    def column(value: float) -> int:
        share = share_of(math.log10(value) if log else value, ends)
        return min(width - 1, max(0, int(share * width)))

    cells = [" "] * width
    for value in box.outliers:
        cells[column(value)] = outlier
    low, first, median, third, high = map(column, (box.low, box.first, box.median, box.third, box.high))
    cells[low : high + 1] = [line] * (high - low + 1)
    cells[low], cells[high] = start, end
    cells[first : third + 1] = [body] * (third - first + 1)
    cells[median] = middle
    return "".join(cells)


# Points and lines as text: Braille dots, or characters that tell series apart without colours.

_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BRAILLE: Final = 0x2800
"""The pattern without dots; in a cell of 4 rows by 2 columns `_DOTS[row][column]` is the bit of a dot."""
_POINT_SIGNS: Final = "●▲■◆○△□◇abcdefghijklm"
_ASCII_POINT_SIGNS: Final = "ox+*#@%=abcdefghijklm"
_SIGN_OF_SUM: Final = "-"
_SHADES: Final = " ░▒▓█"
_ASCII_SHADES: Final = " .:*#"
_ROWS: Final = 20
_TICKS: Final = 7
_NAME_OF_TICK: Final = 14
_MARGIN: Final = 0.03
_FEW_DECADES: Final = 3
_CLIP: Final = 10_000
"""Dots beyond the canvas where a line is cut off, as a model may go far beyond the points."""


def plot_lines(chart: Chart, screen: Screen) -> list[str]:
    """The chart as lines of text, with axes and legend."""
    chart = _in_decades(chart)
    x_ends, y_ends = _spans(chart)
    y_ticks = list(_ticks(y_ends, chart.y))
    labels = [screen.printable(label) for _, label in y_ticks]
    margin = max(map(width_of, labels), default=0) + 1
    canvas = _Canvas(max(20, screen.columns - margin - 2), _ROWS, x_ends, y_ends, screen)
    alone = len(chart.series) == 1 and not chart.density
    # Dots differ by their colour alone, signs also where colours repeat.
    dots = alone or (screen.coloured and max((one.colour for one in chart.series), default=0) < COLOURS)
    if chart.density:
        canvas.shade(chart.density)
    # Drawn from back to front: points, then lines, of which the first series is the most important.
    points = [series for series in chart.series if series.kind == "points"]
    lines_drawn = [series for series in chart.series if series.kind != "points"]
    for series in (*points, *reversed(lines_drawn)):
        canvas.draw(series, dots=dots)
    edge, corner, across = ("┤", "└", "─") if screen.unicode else ("|", "+", "-")
    at = {canvas.row(value): label for (value, _), label in zip(y_ticks, labels, strict=True)}
    side = "│" if screen.unicode else "|"
    lines = [
        right_aligned(at.get(row, ""), margin) + (edge if row in at else side) + text
        for row, text in enumerate(canvas.lines())
    ]
    ticks, names = canvas.below(_ticks(x_ends, chart.x))
    rule = "".join("┬" if column in ticks and screen.unicode else across for column in range(canvas.columns))
    lines += [" " * margin + corner + rule, " " * (margin + 1) + names]
    lines.append(" " * (margin + 1) + screen.printable(chart.x.label))
    shown = legend(chart, screen, lambda series: canvas.sign(series, dots))
    return [screen.printable(chart.y.label), *lines, *shown]


class _Canvas:
    """A grid of characters, each of which consists of Braille dots, or is the sign of a series."""

    def __init__(self, columns: int, rows: int, x: Span, y: Span, screen: Screen) -> None:
        self.columns = columns
        self._rows = rows
        self._x, self._y = x, y
        self._screen = screen
        self._dots = [[0] * columns for _ in range(rows)]
        self._signs = [[""] * columns for _ in range(rows)]
        self._colours = [[-1] * columns for _ in range(rows)]

    def row(self, value: float) -> int:
        """The row of a value on the y axis."""
        return min(self._rows - 1, max(0, self._rows - 1 - int(share_of(value, self._y) * self._rows)))

    def sign(self, series: ChartSeries, dots: bool) -> str:
        """The sign of the series in the legend.

        :param dots: whether the series is drawn with dots, which all series have in common.
        """
        if dots:
            return "⣿" if self._screen.unicode else "*"
        if series.colour < 0:
            return _SIGN_OF_SUM
        signs = _POINT_SIGNS if self._screen.unicode else _ASCII_POINT_SIGNS
        return signs[series.colour % len(signs)]

    def draw(self, series: ChartSeries, *, dots: bool) -> None:
        """Draw a series over what is on the canvas.

        :param dots: with Braille dots, at eight times the resolution; else with the sign of the series.
        """
        fine = dots and self._screen.unicode
        width, height = (self.columns * 2, self._rows * 4) if fine else (self.columns, self._rows)
        across = _places(series.x, self._x, width)
        up = _places(series.y, self._y, height)
        if series.kind == "step":
            # Each value holds until the next x: a horizontal line, then a vertical one.
            across, up = np.repeat(across, 2)[1:], np.repeat(up, 2)[:-1]
        places = zip(across.tolist(), up.tolist(), strict=True)
        sign = self.sign(series, dots)
        for x, y in places if series.kind == "points" else _joined(list(places)):
            if not (0 <= x < width and 0 <= y < height):
                continue
            row, column = (height - 1 - y) // (4 if fine else 1), x // (2 if fine else 1)
            if fine:
                self._dots[row][column] |= _DOTS[(height - 1 - y) % 4][x % 2]
            else:
                self._signs[row][column] = sign
            self._colours[row][column] = series.colour

    def shade(self, density: Density) -> None:
        """Draw the density of points, with shades on a logarithmic scale."""
        shades = _SHADES if self._screen.unicode else _ASCII_SHADES
        rows, columns = density.counts.shape
        centers = [np.linspace(*ends, number * 2 + 1)[1::2] for ends, number in
                   ((density.x, columns), (density.y, rows))]  # fmt: skip
        # The grid of the density is finer than the canvas: its cells are added up by character.
        across = np.clip(_places(centers[0], self._x, self.columns), 0, self.columns - 1)
        up = np.clip(_places(centers[1], self._y, self._rows), 0, self._rows - 1)
        sums = np.zeros((self._rows, self.columns))
        np.add.at(sums, (up[:, None], across[None, :]), density.counts)
        level = np.log1p(sums) / max(math.log1p(float(sums.max())), 1e-9) * (len(shades) - 1)
        for row, column in zip(*np.nonzero(sums), strict=True):
            sign = shades[max(1, round(float(level[row, column])))]
            self._signs[self._rows - 1 - row][column] = sign

    def lines(self) -> Iterator[str]:
        """The rows, from the top."""
        for dots, signs, colours in zip(self._dots, self._signs, self._colours, strict=True):
            cells = [
                chr(_BRAILLE + dot) if dot else sign or " " for dot, sign in zip(dots, signs, strict=True)
            ]
            # One colour code for a run of cells, not for each cell.
            runs = groupby(zip(cells, colours, strict=True), key=itemgetter(1))
            yield "".join(
                self._screen.paint("".join(cell for cell, _ in run), colour) for colour, run in runs
            )

    def below(self, ticks: Iterable[tuple[float, str]]) -> tuple[set[int], str]:
        """The columns with a tick, and the line with their labels; a label that would overlap is left out."""
        columns, text = set(), ""
        for value, label in ticks:
            column = min(self.columns - 1, max(0, int(share_of(value, self._x) * self.columns)))
            label = self._screen.printable(label)
            start = max(0, min(column - width_of(label) // 2, self.columns - width_of(label)))
            if text and start <= width_of(text):
                continue
            columns.add(column)
            text += " " * (start - width_of(text)) + label
        return columns, text


def _in_decades(chart: Chart) -> Chart:
    """The chart with logarithms in place of the values of each logarithmic axis, without what has none."""
    if not (chart.x.log or chart.y.log):
        return chart
    made = []
    with np.errstate(all="ignore"):
        for one in chart.series:
            x = np.log10(one.x) if chart.x.log else one.x
            y = np.log10(one.y) if chart.y.log else one.y
            known = np.isfinite(x) & np.isfinite(y)
            made.append(one._replace(x=x[known], y=y[known]))
    density = chart.density and chart.density._replace(
        x=_decades(chart.density.x, chart.x.log), y=_decades(chart.density.y, chart.y.log)
    )
    return chart._replace(series=tuple(made), density=density)


def _decades(ends: Span, log: bool) -> Span:
    return (math.log10(ends[0]), math.log10(ends[1])) if log else ends


def _spans(chart: Chart) -> tuple[Span, Span]:
    """The spans of both axes, the same that a page shows first."""
    if chart.density:
        return chart.density.x, chart.density.y
    drawn = [series for series in chart.series if series.x.size]
    # A model may go far beyond its points, which alone set the span then.
    points = [series for series in drawn if series.kind == "points"] or drawn
    x = _span_of([float(end) for series in drawn for end in (series.x.min(), series.x.max())])
    y = [float(end) for series in points for end in (series.y.min(), series.y.max())]
    return x, _span_of([0.0, *y] if any(series.base is not None for series in drawn) else y)


def _span_of(values: Sequence[float]) -> Span:
    return widened(min(values, default=0.0), max(values, default=1.0), _MARGIN)


def _places(values: Floats, ends: Span, number: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The place of each value among `number` equal ones between the ends; negative or larger outside."""
    with np.errstate(all="ignore"):
        scaled = share_of(values, ends) * number
    places = np.floor(np.clip(scaled, -_CLIP, number + _CLIP)).astype(np.int64)
    # A value at the very end belongs to the last place.
    return np.where((places == number) & (values <= ends[1]), number - 1, places)


def _joined(places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """All places on straight lines from each one to the next."""
    yield from places[:1]
    for (x, y), (to_x, to_y) in pairwise(places):
        steps = max(abs(to_x - x), abs(to_y - y), 1)
        for step in range(1, steps + 1):
            yield x + round((to_x - x) * step / steps), y + round((to_y - y) * step / steps)


def _ticks(ends: Span, axis: Axis) -> Iterator[tuple[float, str]]:
    """Round numbers between the ends, each with its label; of categories, as many as there is room for."""
    low, high = ends
    if axis.names:
        names = short_names(axis.names, _NAME_OF_TICK)
        every = max(1, math.ceil(len(names) / _TICKS))
        yield from ((float(place), names[place]) for place in range(0, len(names), every))
        return
    if axis.log:
        yield from _ticks_in_decades(low, high, axis.unit)
        return
    step = _round_step(high / _TICKS - low / _TICKS, 1024 if is_size(axis.unit) else 10)
    first = math.ceil(low / step)
    for number in range(_TICKS * 3):
        value = (first + number) * step
        if value > high * (1 + 1e-12) + step * 1e-9 or math.isinf(value):
            break
        yield value, readable(value, axis.unit, 4)


def _ticks_in_decades(low: float, high: float, unit: str) -> Iterator[tuple[float, str]]:
    """Powers of ten, or 1, 2 and 5 times these where there are few; the ends and places are logarithms."""
    every = max(1, math.ceil((high - low) / _TICKS))
    factors = (1, 2, 5) if high - low < _FEW_DECADES else (1,)
    for power in range(math.floor(low), math.ceil(high) + 1):
        for factor in factors if power % every == 0 else ():
            place = power + math.log10(factor)
            if low - 1e-9 <= place <= high + 1e-9:
                yield place, readable(factor * 10.0**power, unit)


def _round_step(least: float, base: int) -> float:
    if not least > 0:
        return 1.0
    power = float(base) ** math.floor(math.log(least, base))
    steps = (1, 2, 5, 10) if base == 10 else [2**one for one in range(11)]
    return next((step * power for step in steps if step * power >= least * (1 - 1e-9)), least)
