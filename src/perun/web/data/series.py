"""Series: the list of them, and the points of each."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from perun.core.errors import ProfileNotFound
from perun.history.trend import text_of
from perun.measurement import present
from perun.measurement.estimate import Estimate
from perun.web.data import form
from perun.web.data.changed import Reported, shown
from perun.web.data.naming import (
    bucket_size,
    counts,
    deltas,
    halves,
    medians,
    metric_of,
    name_of,
    short,
    shorts,
    title_of,
)
from perun.web.data.state import SeriesGroup, WebState

PIECE: Final = 1024
"""Positions of one piece of points: what is older than the newest of them never changes again."""
TAIL: Final = 64
"""Positions of which the newest points are part of the page itself, at most: so that of a long series little
is made again for one more version."""
MOST: Final = 5000
"""Series of the list."""
SPARK: Final = 40
RELATED: Final = 30

Positions = NDArray[np.intp]


def series_list(state: WebState) -> form.SeriesList:
    """The piece `series`."""
    groups = list(state.groups.values())
    return form.SeriesList([listed(state, one) for one in groups[:MOST]], max(0, len(groups) - MOST))


def listed(state: WebState, group: SeriesGroup) -> form.Series:
    """A series as lists have it."""
    if group.id not in state.listed:
        state.listed[group.id] = _listed(state, group)
    return state.listed[group.id]


def _listed(state: WebState, group: SeriesGroup) -> form.Series:
    key = group.key
    row = state.main_row(group)
    points = state.points_main(row)
    latest = interval = at = None
    text = ""
    if points.size:
        at = int(points[-1])
        column = state.columns[at]
        value, half = (float(one[row, column]) for one in (state.table.values, state.table.halves))
        latest, text = short(value), text_of_value(value, half, key.unit)
        interval = shorts((value - half, value + half)) if np.isfinite(half) else None
    return form.Series(
        group.id, title_of(key), key.location, text_of(key.configuration), key.configuration.collector,
        metric_of(key), key.unit, key.exact, key.larger_is_better, latest, at, interval,
        len(state.changes_of.get(group.id, ())), spark(state, row, points, SPARK)[0],
        name_of(key, state.names), text,
    )  # fmt: skip


def text_of_value(value: float, half: float, unit: str) -> str:
    """A value with half the width of its interval, NaN where that is not known, as all commands write it."""
    if not np.isfinite(half):
        return present.value(Estimate(value, None, None, 1), unit)
    # Only how wide it is, and whether it is wider than the value, is written.
    low = 0.0 if half >= value > 0 else -half
    return present.value(Estimate(value, low, low + 2 * half, 1), unit)


def spark(state: WebState, row: int, points: Positions, most: int) -> tuple[form.Numbers, list[int]]:
    """At most so many medians of the values at the points, and the position of the first of each."""
    size = bucket_size(len(points), most)
    values = medians(state.table.values[row, state.columns[points]], size)
    return shorts(values), points[::size].tolist()


def series_page(state: WebState, name: str, reported: Reported) -> form.SeriesPage:
    """The piece `series/ID`. :param reported: of which pairs there is a comparison.

    :raises ProfileNotFound: if there is no such series.
    """
    group = group_of(state, name)
    tail = tail_of(state)
    configuration = group.key.configuration
    places = [(row, line, own) for row in group.rows for line, own in _on_lines(state, row)]
    chunks = sorted({one for _, _, own in places for one in _numbers(own[own < tail] // PIECE)})
    same = [one for one in state.of_configuration[configuration] if one != name]
    return form.SeriesPage(
        listed(state, group),
        form.Configuration(*configuration[:4], list(configuration.postprocessors)),
        [line_of(state, *one[:2], one[2][one[2] >= tail]) for one in places if (one[2] >= tail).any()],
        tail,
        chunks,
        [shown(state, one, reported) for one in state.changes_of.get(name, ())],
        same[:RELATED],
    )


def tail_of(state: WebState) -> int:
    """The position from which on points are part of the page of a series, and not of a piece of their own."""
    return len(state.commits.versions) // TAIL * TAIL


def points_piece(state: WebState, name: str, number: int) -> form.Points:
    """The piece `series/ID/K`.

    :raises ProfileNotFound: if there is no such series.
    """
    first = number * PIECE
    return points(state, name, first, min(first + PIECE, tail_of(state)) - 1)


def points(state: WebState, name: str, first: int, last: int) -> form.Points:
    """The points at positions `first` to `last`, both included.

    :raises ProfileNotFound: if there is no such series.
    """
    group = group_of(state, name)
    found = []
    for row in group.rows:
        for line, own in _on_lines(state, row):
            own = own[(own >= first) & (own <= last)]
            if own.size:
                found.append(line_of(state, row, line, own))
    return form.Points(found)


def group_of(state: WebState, name: str) -> SeriesGroup:
    """The series with that id.

    :raises ProfileNotFound: if there is none.
    """
    if name not in state.groups:
        raise ProfileNotFound(f"there is no series {name}", "look for it in the list of all series")
    return state.groups[name]


def _on_lines(state: WebState, row: int) -> list[tuple[int, Positions]]:
    """The positions of the values of a row by branch, the main line first."""
    own = state.points(row)
    lines = state.lines[own]
    return [(line, own[lines == line]) for line in _numbers(lines)]


def _numbers(values: NDArray[np.integer]) -> list[int]:
    """Which numbers there are, ascending; the same as `np.unique`, which loads much the first time."""
    found: list[int] = np.flatnonzero(np.bincount(values)).tolist()
    return found


def line_of(state: WebState, row: int, line: int, own: Positions) -> form.Line:
    """The points of a row of the table at the positions, of one branch."""
    columns = state.columns[own]
    values = state.table.values[row, columns]
    return form.Line(
        state.machine_of(row), line, deltas(own), shorts(values),
        halves(values, state.table.halves[row, columns]), counts(state.table.counts[row, columns]),
    )  # fmt: skip
