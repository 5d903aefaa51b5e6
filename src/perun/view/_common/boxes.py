"""Box plots as text: a row for each box, with its whiskers and outliers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from perun.profile.amounts import readable
from perun.view._common.chart import short_names
from perun.view._common.screen import axis_names, legend, right_aligned, width_of
from perun.view._common.span import Span, share_of, widened

if TYPE_CHECKING:
    from perun.view._common.chart import Box, Chart
    from perun.view._common.screen import Screen

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
    short = short_names([one.name for one in chart.series], screen.columns - 4)
    signs = (
        (screen.fill(one.colour), one.colour, name) for one, name in zip(chart.series, short, strict=True)
    )
    heading = f"{chart.y.label} per {chart.x.label}{', logarithmic' * chart.y.log}: median"
    heading += "" if brief else " [quartiles]"
    return [screen.printable(heading), *lines, *legend(signs, chart.legend, screen)]


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
