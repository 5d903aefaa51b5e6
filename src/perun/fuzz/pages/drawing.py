"""Charts as SVG, which a page holds without any script: points, lines and steps over two axes of numbers."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from perun.fuzz.results import TimeSeries
from perun.pages import SERIES, escape
from perun.profile.amounts import readable

WIDTH: Final = 560
HEIGHT: Final = 300
_LEFT: Final = 66
_BELOW: Final = 44
_ABOVE: Final = 12
_RIGHT: Final = 14
_TICKS: Final = 6

STYLE: Final = """\
.chart { width: 100%; max-width: 40rem; height: auto; font: 12px var(--font); }
.chart text { fill: var(--muted); }
.chart .axis { stroke: var(--line); stroke-width: 1; }
.chart .line { fill: none; stroke-width: 2; }
.chart .quartile { stroke: var(--muted); stroke-dasharray: 4 4; }
""" + "".join(
    f".chart .s{number} {{ stroke: {light}; }} .chart .p{number} {{ fill: {light}; }}\n"
    f"@media (prefers-color-scheme: dark) {{ .chart .s{number} {{ stroke: {dark}; }} "
    f".chart .p{number} {{ fill: {dark}; }} }}\n"
    for number, (light, dark) in enumerate(SERIES[:3])
)


class DrawnSeries(NamedTuple):
    """One series: `points` have marks, a `line` goes from point to point, `steps` keep their height."""

    name: str
    kind: Literal["points", "line", "steps"]
    x: Sequence[float]
    y: Sequence[float]


class Mark(NamedTuple):
    """A vertical dashed line at `x` with its name."""

    name: str
    x: float


class DrawingAxis(NamedTuple):
    """The text beside an axis, the unit of its numbers, and whether it is logarithmic."""

    label: str
    unit: str = ""
    log: bool = False


def chart(
    title: str, x: DrawingAxis, y: DrawingAxis, series: Sequence[DrawnSeries], marks: Sequence[Mark] = ()
) -> str:
    """The chart as an SVG element; empty where there is nothing to draw.

    What a logarithmic axis cannot show, 0 and less, is left out.
    """
    shown = [one for one in (_visible(one, x, y) for one in series) if one.x]
    if not shown:
        return ""
    across = _Scale(x, [value for one in shown for value in one.x], _LEFT, WIDTH - _RIGHT)
    up = _Scale(y, [value for one in shown for value in one.y], HEIGHT - _BELOW, _ABOVE)
    parts = [f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">']
    parts += [f"<title>{escape(title)}</title>", *_axes(x, y, across, up)]
    parts += [_mark(number, one, across) for number, one in enumerate(marks) if not x.log or one.x > 0]
    for number, one in enumerate(shown):
        parts += _series(one, min(number, 2), across, up)
    parts += [_legend(one.name, number) for number, one in enumerate(shown)] if len(shown) > 1 else []
    return "".join((*parts, "</svg>"))


class _Scale:
    """Places of values between two places of the picture."""

    def __init__(self, axis: DrawingAxis, values: Sequence[float], start: float, end: float) -> None:
        self.log = axis.log
        low, high = self._at(min(values)), self._at(max(values))
        if not axis.log:
            low = min(0.0, low)
        if low == high:
            high = low + 1
        self.low, self.high = low, high
        self._start, self._end = start, end

    def _at(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def __call__(self, value: float) -> float:
        share = (self._at(value) - self.low) / (self.high - self.low)
        return self._start + share * (self._end - self._start)

    def ticks(self) -> list[float]:
        """Round values to be written beside the axis."""
        if self.log and self.high - self.low >= 1:
            step = max(1, math.ceil((self.high - self.low) / _TICKS))
            return [10.0**power for power in range(math.ceil(self.low), math.floor(self.high) + 1, step)]
        low, high = (10**self.low, 10**self.high) if self.log else (self.low, self.high)
        size = 10 ** math.floor(math.log10((high - low) / _TICKS))
        step = next((size * one for one in (1, 2, 5, 10) if (high - low) / (size * one) <= _TICKS), size * 10)
        numbers = range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)
        return [number * step for number in numbers if number or not self.log]


def _visible(one: DrawnSeries, x: DrawingAxis, y: DrawingAxis) -> DrawnSeries:
    def fits(at: float, value: float) -> bool:
        drawn = (at > 0 or not x.log) and (value > 0 or not y.log)
        return drawn and math.isfinite(at) and math.isfinite(value)

    kept = [(at, value) for at, value in zip(one.x, one.y, strict=True) if fits(at, value)]
    return one._replace(x=[at for at, _ in kept], y=[value for _, value in kept])


def _axes(x: DrawingAxis, y: DrawingAxis, across: _Scale, up: _Scale) -> list[str]:
    bottom = HEIGHT - _BELOW
    parts = [f'<path class="axis" fill="none" d="M{_LEFT} {_ABOVE}V{bottom}H{WIDTH - _RIGHT}"/>']
    for value in across.ticks():
        at = across(value)
        parts.append(f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{_number(value, x)}</text>')
    for value in up.ticks():
        at = up(value)
        parts.append(f'<path class="axis" d="M{_LEFT} {at:.1f}h{WIDTH - _RIGHT - _LEFT}" opacity=".5"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{_number(value, y)}</text>')
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x.label)}</text>')
    height = (_ABOVE + bottom) / 2
    turned = f'transform="rotate(-90 12 {height})"'
    parts.append(f'<text x="12" y="{height}" text-anchor="middle" {turned}>{escape(y.label)}</text>')
    return parts


def _number(value: float, axis: DrawingAxis) -> str:
    return escape(readable(value, axis.unit))


def _mark(number: int, one: Mark, across: _Scale) -> str:
    """A line with its name, one below the other, as several may be at one place."""
    at, height = across(one.x), _ABOVE + 10 + 14 * number
    line = f'<path class="quartile" d="M{at:.1f} {_ABOVE}V{HEIGHT - _BELOW}"/>'
    is_late = at > (_LEFT + WIDTH) / 2
    anchor = "end" if is_late else "start"
    place = f'x="{at - 3 if is_late else at + 3:.1f}" text-anchor="{anchor}"'
    return f'{line}<text {place} y="{height}">{escape(one.name)}</text>'


def _series(one: DrawnSeries, colour: int, across: _Scale, up: _Scale) -> list[str]:
    places = [(across(at), up(value)) for at, value in zip(one.x, one.y, strict=True)]
    if one.kind == "points":
        return [f'<circle class="p{colour}" cx="{at:.1f}" cy="{value:.1f}" r="3.5"/>' for at, value in places]
    if one.kind == "line":
        path = "L".join(f"{at:.1f} {value:.1f}" for at, value in places)
    else:
        path = f"{places[0][0]:.1f} {places[0][1]:.1f}" + "".join(
            f"H{at:.1f}V{value:.1f}" for at, value in places[1:]
        )
    return [f'<path class="line s{colour}" d="M{path}"/>']


def _legend(name: str, number: int) -> str:
    at = _ABOVE + 14 + 16 * number
    mark = f'<rect class="p{min(number, 2)}" x="{_LEFT + 10}" y="{at - 9}" width="10" height="10"/>'
    return f'{mark}<text x="{_LEFT + 26}" y="{at}">{escape(name)}</text>'


# The two time series as PDF (manual 9.8), which matplotlib draws.

FILES: Final = {"coverage": "coverage_ts.pdf", "degradations": "degradations_ts.pdf"}
_COLOURS: Final = ("#e69f00", "#d55e00", "#cc79a7")
_NAMES: Final = ("first quartile", "second quartile", "third quartile")


def time_series(series: TimeSeries, title: str, label: str) -> bytes:
    """A series over time with the places of its quartiles, as the bytes of a PDF.

    :raises ImportError: where matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.step(
        [one.seconds for one in series.points],
        [one.value for one in series.points],
        where="post",
        color="#0072b2",
    )
    for name, colour, one in zip(_NAMES, _COLOURS, series.quartiles(), strict=False):
        axes.axvline(one.seconds, color=colour, linestyle="--", linewidth=1)
        axes.axhline(one.value, color=colour, linestyle=":", linewidth=1)
        axes.plot([one.seconds], [one.value], "o", color=colour, label=f"{name}: {one.value:.4g}")
    axes.set(title=title, xlabel="time [s]", ylabel=label)
    if series.points:
        axes.legend()
    written = io.BytesIO()
    # No date, so that the same results make the same file.
    figure.savefig(written, format="pdf", metadata={"CreationDate": None})
    return written.getvalue()
