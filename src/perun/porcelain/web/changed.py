"""Changes of level, as pages show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
from msgspec.structs import replace

from perun.measurement import present
from perun.porcelain.changes.data import Level, SeriesKey
from perun.porcelain.trend import text_of
from perun.porcelain.web import data
from perun.porcelain.web.naming import identity, name_of, title_of
from perun.porcelain.web.numbers import short, shorts
from perun.porcelain.web.state import Placed, State
from perun.profile.amounts import readable_pair

Reported = Callable[[str], bool]
"""Whether there is a comparison of a pair of versions, `A..B`."""
MOST: Final = 2000
"""Changes of the list of all of them."""
DOUBTFUL: Final = 200
PICTURED: Final = 100
"""Of these as many get the values around them."""
AROUND: Final = 20
"""Values on either side of a change."""


def change_list(state: State, reported: Reported) -> data.ChangeList:
    """The piece `changes`. :param reported: of which pairs there is a comparison."""
    placed = state.changes[:MOST]
    made = [shown(state, one, reported, number < PICTURED) for number, one in enumerate(placed)]
    doubtful = [shown(state, one, reported) for one in state.doubtful[:DOUBTFUL]]
    return data.ChangeList(made, len(state.changes), doubtful)


def shown(state: State, placed: Placed, reported: Reported, pictured: bool = False) -> data.Change:
    """One change. :param pictured: with the values around it."""
    known = placed.of.version.checksum, placed.step.series
    if known not in state.shown:
        state.shown[known] = _shown(state, placed)
    found = state.shown[known]
    around = _around(state, placed.step.series, found.version.at) if pictured else None
    return replace(found, report=reported(pair_of(placed)), spark=around)


def _shown(state: State, placed: Placed) -> data.Change:
    """The change without what is told of its report, and without a picture."""
    of, step, entry = placed
    key = step.series
    version, since = (state.ref(state.place_of(one.checksum)) for one in (of.version, of.since))
    return data.Change(
        version, since, len(of.possible), identity(key), title_of(key), key.location,
        text_of(key.configuration), state.machine_of(state.table.row[key]), key.unit, key.exact,
        step.is_degradation, step.verdict.name, short(step.ratio), [short(step.low), short(step.high)],
        _level(step.before), _level(step.after),
        data.Acknowledged(entry.until or None, entry.because or None) if entry else None,
        step.taken_back, step.takes_back, list(step.moved_with), list(step.conditions), step.remark,
        report=False, spark=None, decides=step.decides, word=present.NAMES[step.verdict],
        text=present.step(step.values, step.ratio, step.low, step.high, key.unit),
        sides=list(readable_pair(*step.values, key.unit)), name=name_of(key, state.names),
    )  # fmt: skip


def pair_of(placed: Placed) -> str:
    """The comparison of the versions before and after a change: `A..B`."""
    return f"{placed.of.since.checksum}..{placed.of.version.checksum}"


def worst_first(changes: Iterable[Placed]) -> list[Placed]:
    """What got worse and is not acknowledged first, the largest first."""
    return sorted(changes, key=_rank)


def _rank(one: Placed) -> tuple[bool, bool, bool, float]:
    step = one.step
    return one.entry is not None, not step.is_degradation, bool(step.taken_back), -step.size


def _level(level: Level) -> data.Level:
    return data.Level(short(level.value), [short(level.low), short(level.high)], level.points)


def _around(state: State, key: SeriesKey, position: int) -> data.Around:
    row = state.table.row[key]
    points = state.points_main(row)
    place = int(np.searchsorted(points, position))
    first = max(0, place - AROUND)
    own = points[first : place + AROUND]
    return data.Around(shorts(state.table.values[row, state.columns[own]]), place - first)
