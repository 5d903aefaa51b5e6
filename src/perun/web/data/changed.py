"""Changes of level, as pages show them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import groupby
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from perun.core.errors import DamagedStore, PerunError, ProfileNotFound
from perun.history.changes.data import Segment, SeriesKey
from perun.history.trend import text_of
from perun.measurement import present
from perun.profile.amounts import percent, readable_pair
from perun.running.explain import kept
from perun.web.data import form
from perun.web.data.naming import identity, name_of, short, shorts, title_of
from perun.web.data.state import VersionChangePoint, WebState

Reported = Callable[[str], bool]
"""Whether there is a comparison of a pair of versions, `A..B`."""
MOST_CHANGES: Final = 2000
"""Changes of the list of all of them."""
DOUBTFUL: Final = 200
PICTURED: Final = 100
"""Of these as many get the values around them."""
AROUND: Final = 20
"""Values on either side of a change."""


def change_list(state: WebState, reported: Reported) -> form.ChangeList:
    """The piece `changes`. :param reported: of which pairs there is a comparison."""
    placed = state.changes[:MOST_CHANGES]
    made = [shown(state, one, reported, number < PICTURED) for number, one in enumerate(placed)]
    doubtful = [shown(state, one, reported) for one in state.doubtful[:DOUBTFUL]]
    return form.ChangeList(made, len(state.changes), doubtful)


def shown(
    state: WebState, placed: VersionChangePoint, reported: Reported, pictured: bool = False
) -> form.Change:
    """One change. :param pictured: with the values around it."""
    known = placed.of.version.checksum, placed.step.series
    if known not in state.shown:
        state.shown[known] = _shown(state, placed)
    found = state.shown[known]
    around = _around(state, placed.step.series, found.version.at) if pictured else None
    return replace(found, report=reported(pair_of(placed)), spark=around)


def _shown(state: WebState, placed: VersionChangePoint) -> form.Change:
    """The change without what is told of its report, and without a picture."""
    of, step, entry = placed
    key = step.series
    version, since = (state.ref(state.place_of(one.checksum)) for one in (of.version, of.since))
    return form.Change(
        version, since, len(of.possible), identity(key), title_of(key), key.location,
        text_of(key.configuration), state.machine_of(state.table.row[key]), key.unit, key.exact,
        step.is_degradation, step.verdict.name, short(step.ratio), [short(step.low), short(step.high)],
        _level(step.before), _level(step.after),
        form.Acknowledged(entry.until or None, entry.because or None) if entry else None,
        step.reverted_by, step.reverts, list(step.moved_with), list(step.conditions), step.remark,
        report=False, spark=None, decides=step.decides, word=present.NAMES[step.verdict],
        text=present.step(step.values, step.ratio, step.low, step.high, key.unit),
        sides=list(readable_pair(*step.values, key.unit)), name=name_of(key, state.names),
    )  # fmt: skip


def pair_of(placed: VersionChangePoint) -> str:
    """The comparison of the versions before and after a change: `A..B`."""
    return f"{placed.of.since.checksum}..{placed.of.version.checksum}"


def worst_first(changes: Iterable[VersionChangePoint]) -> list[VersionChangePoint]:
    """What got worse and is not acknowledged first, the largest first."""
    return sorted(changes, key=_rank)


def _rank(one: VersionChangePoint) -> tuple[bool, bool, bool, float]:
    step = one.step
    return one.entry is not None, not step.is_degradation, bool(step.reverted_by), -step.size


def _level(level: Segment) -> form.Level:
    return form.Level(short(level.value), [short(level.low), short(level.high)], level.points)


def _around(state: WebState, key: SeriesKey, position: int) -> form.Around:
    row = state.table.row[key]
    points = state.points_main(row)
    place = int(np.searchsorted(points, position))
    first = max(0, place - AROUND)
    own = points[first : place + AROUND]
    return form.Around(shorts(state.table.values[row, state.columns[own]]), place - first)


# Why a version costs what it does, as `perun explain` found it the last time.

MOST_FUNCTIONS: Final = 500
"""Versions."""
FUNCTIONS: Final = 20
"""Functions of one command."""
LINES: Final = 40
"""Lines of one place of the diff."""


class _Version(Struct):
    checksum: str
    date: str
    author: str
    subject: str


class _Cost(Struct):
    metric: str
    unit: str
    before: float
    after: float
    ratio: float | None
    interval: tuple[float, float] | None
    share: float


class _Growth(Struct):
    changed: bool
    worse: bool
    before: str
    after: str


class _Line(Struct):
    mark: str
    old: int
    new: int
    text: str
    path: str = ""


class _Function(Struct):
    location: str
    path: str
    sentence: str
    costs: list[_Cost]
    diff: list[_Line]
    near: list[_Line]
    growth: _Growth | None = None


class _Cause(Struct):
    location: str
    name: str
    path: str
    sentence: str
    share: float
    diff: list[_Line]


class _Case(Struct):
    command: str
    totals: list[_Cost]
    functions: list[_Function]
    smaller: int
    unseen: list[str]
    causes: list[_Cause] = []


class _Other(Struct):
    path: str
    kind: str
    added: int
    removed: int


class _Answer(Struct):
    """What of `perun.explain/1` is shown."""

    base: _Version
    head: _Version
    notes: list[str]
    configurations: list[_Case]
    others: list[_Other]


def positions(state: WebState) -> list[int]:
    """The positions of the versions that were explained, ascending, the newest ones."""
    found = (state.place_of(one) for one in kept.versions(state.repo))
    return sorted(one for one in found if one >= 0)[-MOST_FUNCTIONS:]


def stamp(state: WebState, checksum: str) -> object:
    """What is another one when the version was explained again."""
    with suppress(OSError):
        status = os.stat(kept.path_of(state.repo, checksum))
        return status.st_mtime_ns, status.st_size
    return None


def damaged(state: WebState, position: int, problem: PerunError) -> form.Explained:
    """The piece that says in a site why there is none. :param problem: that it could not be made by."""
    version = state.ref(position)
    return form.Explained(version, version, [problem.message], [], [])


def explained(state: WebState, checksum: str) -> form.Explained:
    """The piece `explained/CHECKSUM`.

    :raises ProfileNotFound: if the version was not explained. :raises DamagedStore: if what was kept of it
        cannot be read.
    """
    hint = f"explain it: perun explain {checksum[:10]}"
    text = kept.answer(state.repo, checksum)
    if text is None:
        raise ProfileNotFound(f"{checksum[:10]} was not explained", hint)
    try:
        found = msgspec.json.decode(text, type=_Answer)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        message = f"what perun explain found of {checksum[:10]} cannot be read: {problem}"
        raise DamagedStore(message, hint) from None
    others = [f"{one.path} ({one.kind}): +{one.added} -{one.removed}" for one in found.others]
    cases = [_case(one) for one in found.configurations]
    return form.Explained(_ref(state, found.base), _ref(state, found.head), found.notes, cases, others)


def _ref(state: WebState, version: _Version) -> form.Ref:
    place = state.place_of(version.checksum)
    if place >= 0:
        return state.ref(place)
    return form.Ref(-1, version.checksum, 0, version.author, version.subject)


def _case(case: _Case) -> form.Reasons:
    """Causes come first; one that is a function has its costs."""
    functions = {one.location: _reason(one) for one in case.functions}
    told = [_with_cause(one, functions.pop(one.location, None)) for one in case.causes]
    told += functions.values()
    return form.Reasons(
        case.command, [_cost(one) for one in case.totals], told[:FUNCTIONS],
        max(len(told) - FUNCTIONS, 0), case.smaller, case.unseen,
    )  # fmt: skip


def _with_cause(cause: _Cause, function: form.Reason | None) -> form.Reason:
    if function is not None:
        return replace(function, sentence=cause.sentence)
    diffs = [_diff(cause.path, cause.diff)] if cause.diff else []
    return form.Reason(cause.name or cause.path, cause.sentence, cause.share > 0, [], None, diffs)


def _cost(one: _Cost) -> form.Cost:
    sides = readable_pair(one.before, one.after, one.unit)
    ratio = math.nan if one.ratio is None else one.ratio
    text = present.step((one.before, one.after), ratio, *(one.interval or (ratio, ratio)), one.unit)
    return form.Cost(
        one.metric, one.unit, short(one.before), short(one.after),
        None if one.ratio is None else short(one.ratio), shorts(one.interval) if one.interval else None,
        short(one.share), f"{' -> '.join(sides)}  {text}", percent(one.share),
    )  # fmt: skip


def _reason(one: _Function) -> form.Reason:
    largest = max((cost.share for cost in one.costs), key=abs, default=0.0)
    grows = one.growth is not None and one.growth.changed and one.growth.worse
    diffs = [_diff(one.path, one.diff)] if one.diff else []
    diffs += [_diff(path, list(lines)) for path, lines in groupby(one.near, key=lambda line: line.path)]
    return form.Reason(
        one.location, one.sentence, grows or largest > 0, [_cost(cost) for cost in one.costs],
        [one.growth.before, one.growth.after] if one.growth else None, diffs,
    )  # fmt: skip


def _diff(place: str, lines: list[_Line]) -> form.Diff:
    shown = [form.DiffLine(one.mark, one.old, one.new, one.text) for one in lines[:LINES]]
    return form.Diff(place, shown, len(lines) - len(shown))
