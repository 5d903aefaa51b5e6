"""Scatter: resources as points, with the models made of them (manual 6.1.4)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from perun.core.errors import ProfileError, UsageError
from perun.core.wording import counted
from perun.models.record import ModelRecord
from perun.plugin.params import nearest, param
from perun.profile.amounts import readable
from perun.profile.factory import Profile
from perun.profile.records import record_of
from perun.view._common import (
    Axis,
    Chart,
    ChartSeries,
    Codes,
    Density,
    Floats,
    Span,
    axis_label,
    chart_view,
    is_logarithmic,
    name_of,
    note_of,
    np,
    pivot,
    profile_summary,
    quantity,
    share_of,
    title_of,
    widened,
    word_of,
)
from perun.view._common.chart_view import ChartView
from perun.view._common.values import Resources

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class ScatterParams:
    """The keys to show, and where the charts go."""

    of: str = chart_view.key(
        "<of_key>",
        "The key whose values give the Y axis of the points.",
        "amount",
    )
    per: str = chart_view.key(
        "<per_key>",
        "The key whose values give the X axis of the points. By default, the first of structure-unit-size, "
        "workload, order (of runs), snapshots, call-order and timestamp of which the profile has numbers.",
    )
    uid: tuple[str, ...] = param(
        (), metavar="<uid>", help="Show only this uid; may be repeated. All uids by default."
    )
    filename: str = chart_view.filename()
    x_axis_label: str = chart_view.axis_label("X")
    y_axis_label: str = chart_view.axis_label("Y")
    x_scale: str = chart_view.scale("X")
    y_scale: str = chart_view.scale("Y")
    graph_title: str = chart_view.title("chart")
    view_in_browser: bool = chart_view.view_in_browser()
    terminal: bool = chart_view.terminal()


class ScatterView(ChartView[ScatterParams]):
    """Resources as points, and the models of each uid as lines.

    One page holds a chart for each uid and lets the reader choose. A chart of more than 10,000 points shows
    their density instead.
    """

    name: ClassVar[str] = "scatter"
    help: ClassVar[str] = "Scatter plot: one key over another one, with the models of each uid."
    Params: ClassVar[type] = ScatterParams

    def charts(self, profile: Profile, params: ScatterParams) -> tuple[Chart, ...]:
        """All uids in one chart, then a chart for each; see :func:`perun.view.scatter.charts`."""
        return charts(profile, params)


PLUGIN = ScatterView


# Models as lines: formulas by their coefficients, averages through points, regressograms as steps.

_STRAIGHT: Final = ("constant", "linear")
_EVERY: Final = 10
"""Every tenth point of a curved model is drawn, which looks the same and makes the page smaller."""
_MAX_POINTS: Final = 300
_STEPS: Final = "regressogram"
_FORMULAS: Final = {
    "constant": "{b0}",
    "linear": "{b0} + {b1} x",
    "logarithmic": "{b0} + {b1} ln x",
    "quadratic": "{b0} + {b1} x + {b2} x²",
    "power": "{b0} x^{b1}",
    "exponential": "{b0} · {b1}^x",
}


def curves(models: Iterable[ModelRecord], x: Floats) -> tuple[list[ChartSeries], list[str]]:
    """The models as series, the best one first, and a sentence for each model that cannot be drawn.

    :param x: the x of the points that the models were made of, shape (n,).
    """
    from perun.profile.strategies import best

    given = list(models)
    leader = best(given)
    records = sorted(given, key=lambda record: (record is not leader, -record.r_square))
    several = {kind for kind, count in Counter(record.type for record in records).items() if count > 1}
    found: list[ChartSeries] = []
    problems: list[str] = []
    for record in records:
        name = f"{record.type.replace('_', ' ')}, R² {record.r_square:.3f}"
        if record.type in several:
            name += f", x {readable(record.x_start)} to {readable(record.x_end)}"
        try:
            line = _curve(record, x)
        except ProfileError as problem:
            problems.append(f"Not drawn: {problem.message}.")
            continue
        number = len(found) + 1
        found.append(line._replace(name=name, colour=number, note=_formula(record), dashed=number > 1))
    return found, problems


def _curve(record: ModelRecord, x: Floats) -> ChartSeries:
    if record.is_parametric:
        from perun.profile.convert import plot_data_from_coefficients_of

        data = plot_data_from_coefficients_of(record.model)
        points = np.array([data["plot_x"], data["plot_y"]])
        every = max(1, points.shape[1] - 1) if record.type in _STRAIGHT else _EVERY
        kept = np.unique(np.append(np.arange(0, points.shape[1], every), points.shape[1] - 1))
        line = ChartSeries("", "line", points[0, kept], points[1, kept]) if points.size else None
    else:
        line = _averages(record, np.unique(x), np.sort(x))
    if line is None or not line.x.size:
        raise ProfileError(f"the model {record.type!r} of {record.uid!r} has no finite point to draw")
    return line


def _averages(record: ModelRecord, different: Floats, ascending: Floats) -> ChartSeries | None:
    values = np.array(record.values, np.float64)
    values[~np.isfinite(values)] = np.nan
    if not (values.size and np.isfinite([record.x_start, record.x_end]).all()):
        return None
    if record.type == _STEPS:
        edges = np.linspace(record.x_start, record.x_end, values.size + 1)
        return ChartSeries("", "step", edges, np.append(values, values[-1]))
    # The number of values says where they are: at each point, at each different x, or evenly spaced.
    at = next(
        (known for known in (ascending, different) if known.size == values.size),
        np.linspace(record.x_start, record.x_end, values.size),
    )
    good = np.flatnonzero(np.isfinite(values))
    if good.size > _MAX_POINTS:
        good = good[np.linspace(0, good.size - 1, _MAX_POINTS).astype(int)]
    return ChartSeries("", "line", at[good], values[good])


def _formula(record: ModelRecord) -> str:
    formula = _FORMULAS.get(record.type)
    if formula is None or not record.is_parametric:
        return ""
    b0, b1, b2 = (f"{value:.4g}" for value in (record.b0, record.b1, record.b2))
    return "y = " + formula.format(b0=b0, b1=b1, b2=b2).replace("+ -", "- ")


# The charts of the scatter view: one of all uids, then one of each.

MAX_POINTS: Final = 10_000
"""A chart with more points shows their density instead."""
MAX_POINTS_OF_PAGE: Final = 300_000
"""All charts of a page together have at most these, so that the page stays loadable."""
MAX_COLOURS: Final = 16
MAX_CHARTS: Final = 1000
_CELLS: Final = (120, 200)
"""Rows and columns of the grid of a density."""
_MARGIN: Final = 0.05
_MAX_PROBLEMS: Final = 3


class _Points(NamedTuple):
    """The points of one uid, and its models as lines.

    :param x: shape (n,); :param y: likewise. :param problems: why models are not drawn, a sentence each.
    """

    uid: str
    x: Floats
    y: Floats
    models: list[ChartSeries]
    problems: list[str]


def charts(profile: Profile, params: ScatterParams) -> tuple[Chart, ...]:
    """A chart of all uids if there are several, then one of each, in the order of the profile.

    :raises UsageError: if no resource has both numbers, or one of the uids, or no key suits the x axis.
    :raises ProfileError: if the profile has no resources.
    """
    resources = Resources(profile)
    params = replace(params, per=params.per or pivot.numeric(resources, pivot.POINTS, "--per"))
    x = resources.numbers(params.per, "--per")
    y = resources.numbers(params.of, "--of")
    if not (~np.isnan(x) & ~np.isnan(y)).any():
        raise UsageError(
            f"no resource has a number in both {params.of!r} and {params.per!r}",
            "name other keys with --of and --per",
        )
    left_out: list[str] = []
    models = _models(profile, params, left_out)
    found = _by_uid(resources, x, y, models, params)
    left_out += [problem for one in found for problem in one.problems][:_MAX_PROBLEMS]
    make = _Charts(resources, params, found, tuple(left_out))
    if len(found) == 1:
        return (make.of_one(found[0], 1),)
    shown = sorted(found, key=lambda one: -len(one.x))[:MAX_CHARTS]
    chosen = [one for one in found if any(one is other for other in shown)]
    return (make.of_all(found, len(chosen)), *(make.of_one(one, len(chosen)) for one in chosen))


def _models(profile: Profile, params: ScatterParams, left_out: list[str]) -> Mapping[str, list[ModelRecord]]:
    """The models of the two keys by uid; a note in `left_out` counts those of other keys."""
    models: dict[str, list[ModelRecord]] = {}
    others = 0
    for _, model in profile.all_models():
        record = record_of(model)
        of = str(model.get("of_key") or params.of)
        if of != params.of or (record.per_key or params.per) != params.per:
            others += 1
            continue
        models.setdefault(record.uid, []).append(record)
    if others:
        left_out.append(f"Not drawn: {counted(others, 'model')} of other keys.")
    return models


def _by_uid(
    resources: Resources,
    x: Floats,
    y: Floats,
    models: Mapping[str, Sequence[ModelRecord]],
    params: ScatterParams,
) -> list[_Points]:
    wanted, of, per = params.uid, params.of, params.per
    codes, places = _places(resources)
    uids = Counter(uid for _, uid in places)
    # Also as the charts call them, without an unknown source.
    known = dict.fromkeys(one for place in places for one in _spellings(*place))
    for uid in wanted:
        if uid not in known:
            hint = (
                nearest(uid, list(known))
                if len(known) <= 1000
                else "see `perun show <profile> tableof resources`"
            )
            raise UsageError(f"--uid: no resource has the uid {uid!r}", hint)
    good = ~np.isnan(x) & ~np.isnan(y)
    # Sorted by uid once, so that the points of each uid are one slice.
    order = np.argsort(codes, kind="stable")
    order = order[good[order]]
    bounds = np.searchsorted(codes[order], np.arange(len(places) + 1))
    found = []
    for number, (name, uid) in enumerate(places):
        if wanted and _spellings(name, uid).isdisjoint(wanted):
            continue
        own = order[bounds[number] : bounds[number + 1]]
        if own.size:
            # Older releases made models of all that was measured of a uid together.
            fitting = models.get(name) or (models.get(uid, ()) if uids[uid] == 1 else ())
            lines, problems = curves(fitting, x[own])
            # Whatever of the location tells the series apart: of the only command, the clock alone.
            short = uid if uids[uid] == 1 else name[len(uid) + 2 : -1] if len(uids) == 1 else name
            found.append(_Points(name_of(short), x[own], y[own], lines, problems))
    if not found:
        raise UsageError(
            f"no resource of the chosen uids has a number in both {of!r} and {per!r}",
            "name other uids with --uid, or leave it out",
        )
    return found


def _spellings(location: str, uid: str) -> set[str]:
    """What `--uid` may call a place: its uid or its location, as the profile or the charts write it."""
    return {location, uid, name_of(location), name_of(uid)}


def _places(resources: Resources) -> tuple[NDArray[np.intp], list[tuple[str, str]]]:
    """For each resource the position of its place in a list, shape (resources,), -1 of those without a uid.

    A place is the location, as models name it, and the uid: the clocks of a command are places of their own.
    """
    from perun.measurement.series import Metric

    if not resources.has("uid"):
        return np.zeros(resources.size, np.intp), [("", "")]
    fields = [key for key in ("uid", "type", "subtype") if resources.has(key)]
    found = [resources.categories(key, "--uid") for key in fields]
    names = [one.names for one in found]
    sizes = [len(values) + 1 for values in names]
    # 0 stands for a missing value here.
    mixed = np.ravel_multi_index([one.codes + 1 for one in found], sizes)
    different, inverse = np.unique(mixed, return_inverse=True)
    places: dict[tuple[str, str], int] = {}
    moved = np.full(different.size, -1, np.intp)
    for number, codes in enumerate(np.stack(np.unravel_index(different, sizes), axis=1).tolist()):
        if codes[0]:
            given = zip(fields, names, codes, strict=True)
            named = {key: values[code - 1] for key, values, code in given if code}
            uid = named["uid"]
            location = Metric(uid, named.get("type", ""), named.get("subtype", ""), "", False).location
            moved[number] = places.setdefault((location, uid), len(places))
    return moved[inverse], list(places)


class _Charts:
    """Makes the charts of one profile, which share their axes, their title and their notes."""

    def __init__(
        self,
        resources: Resources,
        params: ScatterParams,
        found: Sequence[_Points],
        left_out: tuple[str, ...],
    ) -> None:
        of, per = resources.unit(params.of), resources.unit(params.per)
        # All charts of a page have the same scale, so that they can be compared.
        log_x = is_logarithmic(params.x_scale, [one.x for one in found], "--x-scale")
        log_y = is_logarithmic(params.y_scale, [one.y for one in found], "--y-scale")
        what, along = quantity(params.of, of), word_of(params.per)
        self._x = Axis(params.x_axis_label or axis_label(along, per), per, log=log_x)
        self._y = Axis(params.y_axis_label or axis_label(what, of), of, log=log_y)
        names = [one.uid for one in found]
        self._title = params.graph_title or title_of(resources.profile, what, along, ())
        self._title_of_all = params.graph_title or title_of(resources.profile, what, along, names)
        self._own_title = bool(params.graph_title)
        self._legend = "clock" if pivot.clocks(resources) else "uid"
        scales = (
            note_of("x", params.x_scale, log=log_x),
            note_of("y", params.y_scale, log=log_y),
        )
        self._notes = (profile_summary(resources.profile, resources.size), *left_out, *filter(None, scales))

    def of_one(self, points: _Points, charts: int) -> Chart:
        """The points of one uid with all of its models; :param charts: the number of charts on the page."""
        title = self._title if self._own_title or not points.uid else f"{self._title}: {points.uid}"
        if len(points.x) > _most_points(charts):
            return self._dense(title, points.x, points.y, points.models, points.uid)
        series = ChartSeries("measured", "points", points.x, points.y, note=counted(len(points.x), "point"))
        return Chart(
            title, self._notes, self._x, self._y, (series, *points.models), name=points.uid or "(no uid)"
        )

    def of_all(self, found: Sequence[_Points], charts: int) -> Chart:
        """The points of all uids; the largest ones have a colour each and their best model."""
        name = f"all {len(found):,} {self._legend}s"
        listed = self._own_title or self._title_of_all != self._title
        title = self._title_of_all if listed else f"{self._title}: {len(found):,} {self._legend}s"
        if sum(len(one.x) for one in found) > MAX_POINTS:
            x = np.concatenate([one.x for one in found])
            y = np.concatenate([one.y for one in found])
            return self._dense(title, x, y, [], name)
        largest = sorted(found, key=lambda one: -len(one.x))
        own = largest if len(found) <= MAX_COLOURS else largest[: MAX_COLOURS - 1]
        series = []
        for number, one in enumerate(own):
            series.append(
                ChartSeries(one.uid, "points", one.x, one.y, number, note=counted(len(one.x), "point"))
            )
            if one.models:
                line = one.models[0]
                series.append(line._replace(name=f"{one.uid}: {line.name}", colour=number, dashed=False))
        rest = largest[len(own) :]
        if rest:
            x, y = (np.concatenate([one[axis] for one in rest]) for axis in (1, 2))
            count = counted(len(x), "point")
            series.append(ChartSeries(f"({len(rest):,} others)", "points", x, y, MAX_COLOURS - 1, note=count))
        return Chart(title, self._notes, self._x, self._y, tuple(series), legend=self._legend, name=name)

    def _dense(self, title: str, x: Floats, y: Floats, models: Sequence[ChartSeries], name: str) -> Chart:
        points = counted(len(x), "point")
        notes = (*self._notes, f"The colour of a cell shows how many of the {points} lie in it.")
        heading = f"{title} (density of {points})"
        density = _density(x, y, self._x.log, self._y.log)
        return Chart(heading, notes, self._x, self._y, tuple(models), density, name=name)


def _most_points(charts: int) -> int:
    return max(200, min(MAX_POINTS, MAX_POINTS_OF_PAGE // charts))


def _density(x: Floats, y: Floats, log_x: bool, log_y: bool) -> Density:
    """The points in each cell; cells are of equal size on the screen."""
    rows, columns = _CELLS
    across, x_ends = _cells(x, columns, log=log_x)
    up, y_ends = _cells(y, rows, log=log_y)
    counts = np.bincount(up * columns + across, minlength=rows * columns)
    return Density(counts.reshape(rows, columns).astype(np.float32), x_ends, y_ends)


def _cells(values: Floats, number: int, *, log: bool) -> tuple[Codes, Span]:
    """The cell of each value among `number` equal ones, and their ends; the upper end belongs to the last."""
    ends = widened(float(values.min()), float(values.max()), _MARGIN)
    span = (math.log10(ends[0]), math.log10(ends[1])) if log else ends
    cells = (share_of(np.log10(values) if log else values, span) * number).astype(np.intp)
    return np.clip(cells, 0, number - 1), ends
