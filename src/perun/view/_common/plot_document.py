"""The JSON of a Bokeh document for a chart.

This module makes the JSON without Bokeh's Python models, because their import takes longer than everything
else. The tests load the documents with these models, which proves them valid.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from perun.pages import SERIES, WHISKER, colour, ramp
from perun.profile.amounts import is_size, readable
from perun.view._common import (
    Axis,
    Chart,
    ChartSeries,
    Density,
    Floats,
    Span,
    np,
    short_names,
    shortened,
)

Json = dict[str, Any]
_HEIGHT: Final = 560
_NAME_IN_LEGEND: Final = 44
_NAME_ON_AXIS: Final = 26
NAME_IN_HOVER: Final = 200
"""Characters of a name in a tooltip, and in the title of a page."""
_MANY_POINTS: Final = 500
"""More points than these are drawn smaller."""
_MAX_MARKED: Final = 60
"""A line with more points has no markers."""
_OF_BOX: Final = (
    ("upper whisker", "@high"),
    ("third quartile", "@third"),
    ("median", "@y"),
    ("first quartile", "@first"),
    ("lower whisker", "@low"),
)
"""What the tooltip of a box tells, and from which column."""
_MARKERS: Final = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "star", "plus")
_DASHES: Final[tuple[str | list[int], ...]] = ("dashed", "dashed", "dotted", "dotdash")
_HATCHES: Final = ("", "right_diagonal_line", "cross", "dot")
"""What tells the uses of a colour apart: dashes of lines, patterns of bars, and another marker of points."""
_DENSITY_COLOURS: Final = 48
_DIGITS: Final = 7
"""Significant digits of coordinates: more than a screen has pixels, fewer than make a page large."""
_QUAD: Final = 4
"""Which renderer of a series of boxes draws the boxes."""
_SOLID: Final = ("bars", "box")
"""Kinds whose x has a name."""
_WHISKERS: Final = 3
"""Renderers that whiskers take: the line and its two ends."""


def document(chart: Chart) -> Json:
    """The chart as an item for `Bokeh.embed.embed_item`: a document of format version 3."""
    return _Document(chart).item()


class _Document:
    """Makes the models of one document; a model is written out where it first occurs and then referred to."""

    def __init__(self, chart: Chart) -> None:
        self._chart = chart
        self._numbers = itertools.count(1)

    def item(self) -> Json:
        figure = self._figure()
        return {
            "target_id": None,
            "root_id": figure["id"],
            "doc": {"version": "", "title": "", "roots": [figure]},
        }

    def _figure(self) -> Json:
        chart = self._chart
        drawn = [self._renderers(series) for series in chart.series]
        density = [self._image(chart.density)] if chart.density else []
        renderers = [*density, *(one for group in drawn for one in group)]
        x_axis = self._axis(chart.x, x=True)
        y_axis = self._axis(chart.y, x=False)
        return self._model(
            "Figure",
            height=_HEIGHT,
            sizing_mode="stretch_width",
            x_range=self._x_range(),
            y_range=self._y_range(),
            x_scale=self._model("LogScale" if chart.x.log else "LinearScale"),
            y_scale=self._model("LogScale" if chart.y.log else "LinearScale"),
            title=None,
            renderers=renderers,
            toolbar=self._toolbar(drawn, density),
            toolbar_location="above",
            left=[y_axis],
            below=[x_axis],
            right=self._legends(drawn, density),
            center=[
                self._model("Grid", axis=_ref(y_axis), dimension=1),
                *([] if chart.x.names else [self._model("Grid", axis=_ref(x_axis))]),
            ],
        )

    def _model(self, kind: str, /, **attributes: Any) -> Json:
        model: Json = {"type": "object", "name": kind, "id": f"p{next(self._numbers)}"}
        if attributes:
            model["attributes"] = attributes
        return model

    def _axis(self, axis: Axis, *, x: bool) -> Json:
        code, args = "return perunTick(tick, ticks, unit)", {"unit": axis.unit}
        names = short_names(axis.names, _NAME_ON_AXIS)
        settings: Json = {"mantissas": [1, 2, 5]}
        if names:
            code, args = "return names[tick] ?? ''", {"names": names}  # type: ignore[dict-item]
            settings |= {"min_interval": 1, "desired_num_ticks": min(len(names), 40), "num_minor_ticks": 0}
        elif is_size(axis.unit):
            settings = {"base": 1024, "mantissas": [2**power for power in range(10)], "num_minor_ticks": 4}
        if axis.log:
            # Each tick has a prefix of its own: that of the largest would make the others unreadable.
            code, settings = "return perunNumber(tick, unit)", {}
        slanted = sum(map(len, names)) > 60 or max(map(len, names), default=0) > 14
        return self._model(
            "LogAxis" if axis.log else "LinearAxis",
            axis_label=shortened(axis.label, NAME_IN_HOVER),
            ticker=self._model("LogTicker" if axis.log else "AdaptiveTicker", **settings),
            formatter=self._model("CustomJSTickFormatter", args=_map(args), code=code),
            **(
                {"major_label_orientation": 0.7}
                if x and slanted
                else {"major_label_policy": self._model("NoOverlap", min_distance=6)}
            ),
        )

    def _x_range(self) -> Json:
        chart = self._chart
        if chart.x.names:
            return self._model("Range1d", start=-0.7, end=len(chart.x.names) - 0.3)
        ends = [chart.density.x] if chart.density else [_span_of(one) for one in chart.series if one.x.size]
        return self._range(ends, log=chart.x.log)

    def _y_range(self) -> Json:
        chart = self._chart
        if chart.density:
            return self._range([chart.density.y], log=chart.y.log)
        # A model may go far beyond its points, so that these alone set the range.
        points = [_extent(one.y) for one in chart.series if one.kind == "points" and one.y.size]
        if points:
            return self._range(points, log=chart.y.log)
        solid = [one for one in chart.series if one.base is not None]
        floor: Json = {"start": 0} if solid and all((one.y >= 0).all() for one in solid) else {}
        if floor and chart.y.log:
            bases = [one.base for one in solid if one.base is not None and one.x.size]
            floor = {"start": min(float(base.min()) for base in bases)}
        return self._model("DataRange1d", only_visible=True, range_padding=0.05, **floor)

    def _range(self, ends: Sequence[tuple[float, float]], *, log: bool = False) -> Json:
        # A bar of many decades begins at its middle less half of its width, which may be rounded to 0.
        low = min((end[1] if log and end[0] <= 0 else end[0] for end in ends), default=0.0)
        high = max((end[1] for end in ends), default=1.0)
        if log:
            room = max((high / low) ** 0.05, 1.05) if math.isfinite(high / low) else 1e10
            return self._model("Range1d", start=max(low / room, 5e-324), end=_finite(high * room))
        room = (high / 20 - low / 20) or abs(low) / 20 or 0.5
        return self._model("Range1d", start=_finite(low - room), end=_finite(high + room))

    def _source(self, columns: Mapping[str, Any]) -> Json:
        return self._model("ColumnDataSource", data=_map(columns))

    def _renderers(self, series: ChartSeries) -> list[Json]:
        """The renderers of one series; :func:`_reacting` is the one that reacts to the pointer."""
        shade = colour(series.colour)
        columns: Json = {"x": _json_numbers(series.x), "y": _json_numbers(series.y)}
        if series.base is not None:
            columns["base"] = _json_numbers(series.base)
        if series.value is not None:
            columns["value"] = _json_numbers(series.value)
        if series.kind in _SOLID:
            names = self._chart.x.names
            found = series.labels or [names[round(at)] for at in series.x.tolist()]
            columns["at"] = [shortened(one, NAME_IN_HOVER) for one in found]
            if not isinstance(series.width, float):
                columns["width"] = _json_numbers(series.width)
        if series.kind == "box":
            return self._boxes(series, shade, columns)
        has_spread = _has_spread(series)
        if has_spread:
            columns |= self._spread_columns(series)
        source = self._source(columns)
        glyphs = [*self._glyphs(series, shade), *(self._whiskers() if has_spread else ())]
        return self._drawn(series, source, glyphs)

    def _drawn(self, series: ChartSeries, source: Json, glyphs: Sequence[Json]) -> list[Json]:
        name = shortened(_hover_name(series), NAME_IN_HOVER)
        drawn = []
        for number, glyph in enumerate(glyphs):
            settings = {"data_source": source if not number else _ref(source), "glyph": glyph}
            drawn.append(self._model("GlyphRenderer", name=name, **settings))
        return drawn

    def _boxes(self, series: ChartSeries, shade: str, columns: Json) -> list[Json]:
        assert isinstance(series.width, float) and series.counts is not None
        x, half = series.x, series.width / 2
        for name in ("low", "first", "third", "high"):
            columns[name] = _json_numbers(np.array([getattr(box, name) for box in series.boxes]))
        columns["left"], columns["right"] = _json_numbers(x - half), _json_numbers(x + half)
        columns["n"] = [f"{count:,.0f}" for count in series.counts.tolist()]
        style = {"line_color": _value(shade), "line_width": _value(1.6)}
        cap = {"marker": _value("dash"), "size": _value(12), **style}
        at, y, first, third = (_field(name) for name in ("x", "y", "first", "third"))
        fill = {"fill_color": _value(shade), "fill_alpha": _value(0.35)}
        sides = {"left": _field("left"), "right": _field("right")}
        glyphs = [
            self._model("Segment", x0=at, x1=at, y0=_field("low"), y1=first, **style),
            self._model("Segment", x0=at, x1=at, y0=third, y1=_field("high"), **style),
            self._model("Scatter", x=at, y=_field("low"), **cap),
            self._model("Scatter", x=at, y=_field("high"), **cap),
            self._model("Quad", top=third, bottom=first, **sides, **fill, **style),
            self._model("Segment", x0=sides["left"], x1=sides["right"], y0=y, y1=y,
                        **(style | {"line_width": _value(3)})),
        ]  # fmt: skip
        drawn = self._drawn(series, self._source(columns), glyphs)
        places = np.repeat(x, [len(box.outliers) for box in series.boxes])
        if places.size:
            beyond = np.array([one for box in series.boxes for one in box.outliers])
            source = self._source({"x": _json_numbers(places), "y": _json_numbers(beyond)})
            drawn += self._drawn(series, source, [self._points(series, shade, 5, 0.55)])
        return drawn

    def _glyphs(self, series: ChartSeries, shade: str) -> list[Json]:
        x, y = _field("x"), _field("y")
        if series.kind == "bars":
            style = {"fill_color": _value(shade), "fill_alpha": _value(0.9), "line_color": _value(shade)}
            if hatch := _HATCHES[_use(series) % len(_HATCHES)]:
                light = {"hatch_color": _value("#ffffff"), "hatch_alpha": _value(0.75)}
                style |= {"hatch_pattern": _value(hatch), "hatch_scale": _value(8), **light}
            thin = _value(0.5)
            base = _field("base")
            width = _value(series.width) if isinstance(series.width, float) else _field("width")
            return [self._model("VBar", x=x, width=width, top=y, bottom=base, line_width=thin, **style)]
        if series.kind == "points":
            return [self._points(series, shade, 5 if len(series.x) > _MANY_POINTS else 7, 0.55)]
        line: Json = {"line_color": shade, "line_width": 2.5}
        if series.dashed or _use(series):
            line["line_dash"] = _DASHES[_use(series) % len(_DASHES)]
        if series.kind == "step":
            return [self._model("Step", x=x, y=y, mode="after", **line)]
        drawn = self._model("Line", x=x, y=y, **line)
        if series.kind == "area":
            area = self._model("VArea", x=x, y1=_field("base"), y2=y, fill_color=shade, fill_alpha=0.7)
            return [area, drawn]
        marked = series.marked and len(series.x) <= _MAX_MARKED
        return [drawn, self._points(series, shade, 6, 1.0)] if marked else [drawn]

    def _spread_columns(self, series: ChartSeries) -> Json:
        """The columns of the whiskers, which a logarithmic axis shows from its lower end at least."""
        assert series.spread is not None and series.counts is not None
        spread = np.nan_to_num(series.spread, nan=0.0)
        lower = series.y - spread
        if self._chart.y.log:
            lower = np.where(lower > 0, lower, series.y if series.base is None else series.base)
        text = [readable(one, self._chart.y.unit) if one == one else "-" for one in series.spread.tolist()]
        return {
            "lower": _json_numbers(lower),
            "upper": _json_numbers(series.y + spread),
            "spread": text,
            "n": [f"{count:,.0f}" for count in series.counts.tolist()],
        }

    def _whiskers(self) -> list[Json]:
        x, lower, upper = _field("x"), _field("lower"), _field("upper")
        style = {"line_color": _value(WHISKER[0]), "line_width": _value(1.4)}
        caps = {"marker": _value("dash"), "size": _value(9), **style}
        return [
            self._model("Segment", x0=x, x1=x, y0=lower, y1=upper, **style),
            self._model("Scatter", x=x, y=lower, **caps),
            self._model("Scatter", x=x, y=upper, **caps),
        ]

    def _points(self, series: ChartSeries, shade: str, size: int, alpha: float) -> Json:
        return self._model(
            "Scatter",
            x=_field("x"),
            y=_field("y"),
            size=_value(size),
            marker=_value(_MARKERS[(series.colour + 3 * _use(series)) % len(_MARKERS)]),
            fill_color=_value(shade),
            fill_alpha=_value(alpha),
            line_color=_value(shade),
        )

    def _image(self, density: Density) -> Json:
        counts = density.counts
        most = float(counts.max())
        mapper = self._model(
            "LogColorMapper" if most > 10 else "LinearColorMapper",
            palette=[ramp(0.08 + 0.92 * step / (_DENSITY_COLOURS - 1)) for step in range(_DENSITY_COLOURS)],
            low=1,
            high=max(most, 2),
            low_color="rgba(0, 0, 0, 0)",
        )
        picture = {
            "type": "ndarray",
            "array": [int(count) for count in counts.ravel().tolist()],
            "shape": list(counts.shape),
            "dtype": "float32",
            "order": "little",
        }
        (left, right), (lower, upper) = density.x, density.y
        place = {"x": [left], "y": [lower], "dw": [right - left], "dh": [upper - lower]}
        glyph = {name: _field(name) for name in ("image", *place)}
        return self._model(
            "GlyphRenderer",
            name="density",
            data_source=self._source({"image": [picture], **place}),
            glyph=self._model("Image", **glyph, color_mapper=mapper),
        )

    def _legends(self, drawn: Sequence[Sequence[Json]], density: Sequence[Json]) -> list[Json]:
        """The legend, whose entries hide and show series, and the colour scale of a density."""
        legends = []
        series = self._chart.series
        names = short_names([one.name for one in series], _NAME_IN_LEGEND)
        items = [
            self._model(
                "LegendItem",
                label=_value(_legend_name(name, one)),
                renderers=[_ref(renderer) for renderer in group],
            )
            for name, one, group in zip(names, series, drawn, strict=True)
            if one.name
        ]
        if len(items) > 1 or (items and (density or any(one.kind == "points" for one in series))):
            shown = items[::-1] if any(one.kind == "area" for one in series) else items
            title = {"title": shortened(self._chart.legend, _NAME_IN_LEGEND)} if self._chart.legend else {}
            legends.append(self._model("Legend", items=shown, click_policy="hide", **title))
        for image in density:
            mapper = image["attributes"]["glyph"]["attributes"]["color_mapper"]
            formatter = self._model("CustomJSTickFormatter", code="return perunNumber(tick)")
            legends.append(
                self._model(
                    "ColorBar",
                    color_mapper=_ref(mapper),
                    formatter=formatter,
                    title="points",
                    width=14,
                    padding=6,
                )
            )
        return legends

    def _toolbar(self, drawn: Sequence[Sequence[Json]], density: Sequence[Json]) -> Json:
        tools = [
            self._model("PanTool"),
            self._model("BoxZoomTool"),
            self._model("WheelZoomTool"),
            self._model("ZoomInTool"),
            self._model("ZoomOutTool"),
            self._model("ResetTool"),
            self._model("SaveTool"),
        ]
        # Series whose tooltips are alike share one tool.
        hovers: dict[tuple[str, str, bool, bool], list[Json]] = {}
        for series, group in zip(self._chart.series, drawn, strict=True):
            value = "@y" if series.value is None else "@value"
            between = series.kind == "line" and not series.marked
            key = (value, series.kind if series.kind in _SOLID else "", between, _has_spread(series))
            hovers.setdefault(key, []).append(_ref(_reacting(series, group)))
        tools += [self._hover(*key, renderers) for key, renderers in hovers.items()]
        tools += [self._density_hover(image) for image in density]
        return self._model("Toolbar", tools=tools, logo=None, autohide=False)

    def _density_hover(self, image: Json) -> Json:
        # What Bokeh takes for the cell is wrong on a logarithmic axis, on which cells are of equal size, too.
        chart = self._chart
        args = {"source": _ref(image["attributes"]["data_source"]), "logs": [chart.x.log, chart.y.log]}
        code = "return perunCell(source, logs, special_vars)"
        cell = self._model("CustomJSHover", args=_map(args), code=code)
        return self._model(
            "HoverTool",
            renderers=[_ref(image)],
            tooltips=[("points in this cell", "@image{custom}")],
            formatters=_map({"@image": cell}),
            visible=False,
        )

    def _hover(
        self, value: str, solid: str, between: bool, has_spread: bool, renderers: Sequence[Json]
    ) -> Json:
        """The tooltip of the renderers.

        :param value: the column that it shows. :param solid: `bars` or `box` if x has a name, else empty.
        :param between: whether it also appears between the points of a line.
        :param has_spread: whether it tells the spread and the number of values, too.
        """
        chart = self._chart
        shown = [*_OF_BOX] if solid == "box" else [(shortened(chart.y.label, _NAME_IN_LEGEND), value)]
        formatters = {column: self._formatter(chart.y.unit) for _, column in shown}
        if not solid:
            formatters["@x"] = self._formatter(chart.x.unit, chart.x.names)
        rows = [
            *(
                [(shortened(chart.legend, _NAME_IN_LEGEND), "$name")]
                if any(one.name for one in chart.series)
                else []
            ),
            (shortened(chart.x.label, _NAME_IN_LEGEND), "@at" if solid else "@x{custom}"),
            *((label, f"{column}{{custom}}") for label, column in shown),
            *([("standard deviation", "@spread")] if has_spread else []),
            *([("n", "@n")] if has_spread or solid == "box" else []),
        ]
        return self._model(
            "HoverTool",
            renderers=list(renderers),
            tooltips=rows,
            formatters=_map(formatters),
            visible=False,  # no button in the toolbar: it is always on
            **({"line_policy": "interp"} if between else {}),
        )

    def _formatter(self, unit: str, names: Sequence[str] = ()) -> Json:
        if names:
            args: Json = {"names": [shortened(name, NAME_IN_HOVER) for name in names]}
            return self._model("CustomJSHover", args=_map(args), code="return names[value] ?? ''")
        code = "return perunNumber(Number(value), unit, 4)"
        return self._model("CustomJSHover", args=_map({"unit": unit}), code=code)


def _has_spread(series: ChartSeries) -> bool:
    """Whether whiskers show how far the values of some mean lie apart."""
    return series.spread is not None and bool((series.spread == series.spread).any())


def _use(series: ChartSeries) -> int:
    """How often its colour was used before, by the series that come first."""
    return max(0, series.colour) // len(SERIES)


def _reacting(series: ChartSeries, renderers: Sequence[Json]) -> Json:
    """The renderer that reacts to the pointer: the box, or the last one that is no whisker."""
    if series.kind == "box":
        return renderers[_QUAD]
    return renderers[-1 - _WHISKERS if _has_spread(series) else -1]


def _legend_name(name: str, series: ChartSeries) -> str:
    return f"{name} ({series.note})" if series.kind == "points" and series.note else name


def _hover_name(series: ChartSeries) -> str:
    return f"{series.name}: {series.note}" if series.kind == "line" and series.note else series.name


def _ref(model: Json) -> Json:
    return {"id": model["id"]}


def _map(entries: Mapping[str, Any]) -> Json:
    return {"type": "map", "entries": [[key, value] for key, value in entries.items()]}


def _field(name: str) -> Json:
    return {"type": "field", "field": name}


def _value(value: Any) -> Json:
    return {"type": "value", "value": value}


def _json_numbers(values: Floats) -> list[float]:
    """Coordinates for JSON, with as many digits as are visible in a chart of all of them."""
    if not values.size:
        return []
    low, high = _extent(values)
    # Numbers that are close together and far from 0, such as times since 1970, need more digits.
    share = max(abs(low) / 2, abs(high) / 2) / ((high / 2 - low / 2) or 1.0)
    digits = min(17, _DIGITS + max(0, math.ceil(math.log10(share or 1.0))))
    # The largest floats are rounded up to infinity.
    rounded = (_finite(float(f"{value:.{digits}g}")) for value in values.tolist())
    return [int(value) if value.is_integer() and abs(value) < 1e15 else value for value in rounded]


def _extent(values: Floats) -> Span:
    return float(values.min()), float(values.max())


def _span_of(series: ChartSeries) -> Span:
    """The lowest and the highest x that the series takes."""
    if isinstance(series.width, float):
        return _extent(series.x)
    halves = series.width / 2
    return float((series.x - halves)[0]), float((series.x + halves)[-1])


def _finite(value: float) -> float:
    return max(-1.7e308, min(1.7e308, value))
