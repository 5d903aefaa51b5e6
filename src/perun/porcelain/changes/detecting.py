"""The steps of each series of a history."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from perun.models.change_points import voting
from perun.models.change_points.spikes import spikes
from perun.porcelain.changes.data import History, Level, Step
from perun.porcelain.changes.remembered import Found, Remembered, digest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

FEWEST: Final = 2 * voting.FEWEST
"""Versions of a series, at least."""
ENOUGH: Final = 400
"""Points before the newest ones of a long series that are searched with them."""
EXACT_EFFECT: Final = 0.01
"""The least change of what is counted."""
_NORMAL: Final = 1.96
Progress = Callable[[int, int], None]


class Placed(NamedTuple):
    """A step and the columns of the history: the last one of the old level, and the first one of the new
    one."""

    last: int
    first: int
    step: Step


class Detected(NamedTuple):
    """The steps of all series, how many have too few versions, and how many points are spikes."""

    steps: list[Placed]
    short: int
    spikes: int


def detect(history: History, effect: float, remembered: Remembered, progress: Progress) -> Detected:
    """The steps of each series by the vote of :mod:`perun.models.change_points`.

    :param effect: the least change, as a share of the level before.
    :param remembered: what was found before, for that effect.
    """
    steps: list[Placed] = []
    short = odd = 0
    for number, row in enumerate(history.values):
        columns = np.flatnonzero(np.isfinite(row))
        values = row[columns]
        if len(values) < FEWEST:
            short += 1
            continue
        if (values == values[0]).all():
            continue
        key = history.keys[number]
        if key.exact and (exact := _exact_steps(values, effect)) is not None:
            steps += _placed(history, number, columns, values, exact)
            continue
        name = json.dumps(key)
        found = remembered.of(name, values)
        if found is None:
            progress(number, len(history.keys))
            found = searched(values, effect, remembered.before(name, values))
            remembered.keep(name, found)
        odd += found.spikes
        steps += _placed(history, number, columns, values, found.changes)
    progress(len(history.keys), len(history.keys))
    remembered.save()
    return Detected(steps, short, odd)


def searched(values: Floats, effect: float, before: Found | None) -> Found:
    """What is found in the values of a series, shape (n,).

    :param before: what was found in its first values. Of a long series only the end is searched then: what is
        new, with so many points before it as tell a level.
    """
    start = 0
    old: tuple[voting.Change, ...] = ()
    if before is not None and before.points > voting.LONGEST:
        start = before.points - ENOUGH
        # A level is searched from its beginning, where that is not far.
        near = [one.place for one in before.changes if start - ENOUGH <= one.place <= start]
        start = near[-1] if near else start
        old = tuple(one for one in before.changes if one.place <= start)
    seen = voting.change_points(values[start:], effect)
    new = [change._replace(place=change.place + start) for change in seen.changes]
    odd = int(seen.spikes.sum())
    if before is not None and start:
        # Those of the old part that are counted again are as many as before.
        odd += before.spikes - int(spikes(np.log(values[start : before.points])).sum())
    return Found(digest(values), len(values), odd, (*old, *new))


def _exact_steps(values: Floats, effect: float) -> list[voting.Change] | None:
    """Of counts that repeat exactly, each change is one; None where they do not repeat.

    A count that most versions share with the version before has no noise, so that no test is needed.
    """
    changed = np.flatnonzero(np.diff(values)) + 1
    if len(changed) * 3 > len(values):
        return None
    found = []
    for place in changed:
        before, after = float(values[place - 1]), float(values[place])
        if abs(math.log(after / before)) >= math.log1p(effect):
            found.append(voting.Change(int(place), ("exact",), before, after, 0.0))
    return found


def _placed(
    history: History, number: int, columns: NDArray[np.intp], values: Floats, found: Sequence[voting.Change]
) -> list[Placed]:
    bounds = [0, *(change.place for change in found), len(values)]
    key = history.keys[number]
    placed = []
    for i, change in enumerate(found):
        before = _level(values[bounds[i] : bounds[i + 1]], change.before)
        after = _level(values[bounds[i + 1] : bounds[i + 2]], change.after)
        last, first = int(columns[change.place - 1]), int(columns[change.place])
        half = math.exp(_NORMAL * change.error)
        step = Step(
            key, before, after, change.ratio, change.ratio / half, change.ratio * half, change.votes,
            conditions=_changed_conditions(history, number, last, first),
        )  # fmt: skip
        placed.append(Placed(last, first, step))
    return placed


def _level(values: Floats, level: float) -> Level:
    """The level with the interval of the median, by the order statistics of the sign test.

    W. Conover: Practical Nonparametric Statistics, 3.2: ranks (n - 1.96 sqrt(n)) / 2 from either end.
    """
    ordered = np.sort(values)
    count = len(ordered)
    rank = max(0, math.floor((count - _NORMAL * math.sqrt(count)) / 2))
    return Level(level, float(ordered[rank]), float(ordered[count - 1 - rank]), count)


def _changed_conditions(history: History, number: int, last: int, first: int) -> tuple[str, ...]:
    """The names of conditions of the machine that differ between the two columns."""
    key = history.keys[number]
    under = []
    for column in (last, first):
        known = history.conditions[column]
        of_key = next(
            (
                values
                for (configuration, machine), values in known.items()
                if configuration == key.configuration and (key.exact or machine == key.machine)
            ),
            (),
        )
        under.append(dict(of_key))
    old, new = under
    return tuple(name for name in old if name in new and old[name] != new[name] and name != "build")
