"""Why a version costs what it does, as `perun explain` found it the last time."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from itertools import groupby
from typing import Final

import msgspec
from msgspec import Struct

from perun.errors import DamagedStore, PerunError, ProfileNotFound
from perun.measurement import present
from perun.porcelain.explain import kept
from perun.porcelain.web import data
from perun.porcelain.web.numbers import short, shorts
from perun.porcelain.web.state import State
from perun.profile.amounts import percent, readable_pair

MOST: Final = 500
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


class _Case(Struct):
    command: str
    totals: list[_Cost]
    functions: list[_Function]
    smaller: int
    unseen: list[str]


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


def positions(state: State) -> list[int]:
    """The positions of the versions that were explained, ascending, the newest ones."""
    found = (state.place_of(one) for one in kept.versions(state.repo))
    return sorted(one for one in found if one >= 0)[-MOST:]


def stamp(state: State, checksum: str) -> object:
    """What is another one when the version was explained again."""
    with suppress(OSError):
        status = os.stat(kept.path_of(state.repo, checksum))
        return status.st_mtime_ns, status.st_size
    return None


def damaged(state: State, position: int, problem: PerunError) -> data.Explained:
    """The piece that says in a site why there is none. :param problem: that it could not be made by."""
    version = state.ref(position)
    return data.Explained(version, version, [problem.message], [], [])


def explained(state: State, checksum: str) -> data.Explained:
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
    return data.Explained(_ref(state, found.base), _ref(state, found.head), found.notes, cases, others)


def _ref(state: State, version: _Version) -> data.Ref:
    place = state.place_of(version.checksum)
    if place >= 0:
        return state.ref(place)
    return data.Ref(-1, version.checksum, 0, version.author, version.subject)


def _case(case: _Case) -> data.Reasons:
    shown = case.functions[:FUNCTIONS]
    return data.Reasons(
        case.command, [_cost(one) for one in case.totals], [_reason(one) for one in shown],
        len(case.functions) - len(shown), case.smaller, case.unseen,
    )  # fmt: skip


def _cost(one: _Cost) -> data.Cost:
    sides = readable_pair(one.before, one.after, one.unit)
    ratio = math.nan if one.ratio is None else one.ratio
    text = present.step((one.before, one.after), ratio, *(one.interval or (ratio, ratio)), one.unit)
    return data.Cost(
        one.metric, one.unit, short(one.before), short(one.after),
        None if one.ratio is None else short(one.ratio), shorts(one.interval) if one.interval else None,
        short(one.share), f"{' -> '.join(sides)}  {text}", percent(one.share),
    )  # fmt: skip


def _reason(one: _Function) -> data.Reason:
    largest = max((cost.share for cost in one.costs), key=abs, default=0.0)
    grows = one.growth is not None and one.growth.changed and one.growth.worse
    diffs = [_diff(one.path, one.diff)] if one.diff else []
    diffs += [_diff(path, list(lines)) for path, lines in groupby(one.near, key=lambda line: line.path)]
    return data.Reason(
        one.location, one.sentence, grows or largest > 0, [_cost(cost) for cost in one.costs],
        [one.growth.before, one.growth.after] if one.growth else None, diffs,
    )  # fmt: skip


def _diff(place: str, lines: list[_Line]) -> data.Diff:
    shown = [data.DiffLine(one.mark, one.old, one.new, one.text) for one in lines[:LINES]]
    return data.Diff(place, shown, len(lines) - len(shown))
