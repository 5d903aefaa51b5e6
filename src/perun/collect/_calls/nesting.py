"""Calls of the entries and exits of one thread, piece by piece, in memory that does not grow with the run.

Entries and exits that fit are matched as parentheses are, without a loop over them. Where an exit is missing
(a longjmp, a thread that ended, a call the recorder lost) the calls are closed by the next exit of one that
was entered before; where the entry is missing the exit is left out. Both are counted.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.collect._calls.events import UNKNOWN, Calls, Events, Ints


class _Steps(NamedTuple):
    """Entries and exits; `order` and `inner` mean something at entries only.

    :param order: number of the entry. :param inner: nanoseconds of the calls within it that are gone already.
    """

    time: Ints
    function: Ints
    entry: NDArray[np.bool_]
    size: Ints
    order: Ints
    inner: Ints

    def where(self, chosen: Ints) -> _Steps:
        return _Steps._make(column[chosen] for column in self)


class Nesting:
    """Turns events of one thread into calls.

    :ivar missed: exits that were missing so far; :ivar stray: exits without an entry.
    """

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.missed = 0
        self.stray = 0
        self._entries = 0
        nothing = np.zeros(0, np.int64)
        self._open = _Steps(nothing, nothing, nothing.astype(np.bool_), nothing, nothing, nothing)

    @property
    def depth(self) -> int:
        """How many calls are open."""
        return len(self._open.time)

    def add(self, events: Events) -> Calls:
        """The calls that these events, which follow those before, complete."""
        steps = self._after_open(events)
        pairs = _matched(steps)
        if pairs is None:
            steps = self._repaired(steps)
            pairs = _matched(steps)
            assert pairs is not None
        return self._calls(steps, *pairs)

    def finish(self, time: int) -> Calls:
        """The calls that are still open, closed at `time` and counted as missed exits."""
        left = self.depth
        self.missed += left
        function = self._open.function[::-1]
        ends = np.full(left, time, np.int64)
        return self.add(Events(ends, function, np.zeros(left, np.bool_), np.full(left, UNKNOWN, np.int64)))

    def _after_open(self, events: Events) -> _Steps:
        entry = np.asarray(events.entry, np.bool_)
        order = entry.cumsum() + (self._entries - 1)
        self._entries += int(np.count_nonzero(entry))
        columns = (events.time, events.function, entry, events.size, order, np.zeros(len(entry), np.int64))
        return _Steps._make(np.concatenate(pair) for pair in zip(self._open, columns, strict=True))

    def _repaired(self, steps: _Steps) -> _Steps:
        """The steps with the exits that are missing, and without those that nothing belongs to."""
        functions, entries = steps.function.tolist(), steps.entry.tolist()
        running: list[int] = []
        open_calls: Counter[int] = Counter()
        chosen: list[int] = []  # positions of entries, and of the exits that close a call, maybe several
        closed: list[int] = []  # the functions they are of
        for position, (function, is_entry) in enumerate(zip(functions, entries, strict=True)):
            if is_entry:
                running.append(function)
                open_calls[function] += 1
                chosen.append(position)
                closed.append(function)
            elif open_calls[function]:
                while True:
                    last = running.pop()
                    open_calls[last] -= 1
                    chosen.append(position)
                    closed.append(last)
                    if last == function:
                        break
                    self.missed += 1
            else:
                self.stray += 1
        return steps.where(np.array(chosen, np.int64))._replace(function=np.array(closed, np.int64))

    def _calls(self, steps: _Steps, entries: Ints, exits: Ints, parents: Ints) -> Calls:
        """The calls of matched steps; those that are not closed are kept.

        :param entries: positions of all entries. :param exits: of their exits, -1 where there is none.
        :param parents: for each entry the position among `entries` of what it was called within, or -1.
        """
        whole = np.flatnonzero(exits >= 0)
        duration = np.zeros(len(entries), np.int64)
        duration[whole] = np.maximum(steps.time[exits[whole]] - steps.time[entries[whole]], 0)
        inner = steps.inner[entries]
        called = whole[parents[whole] >= 0]
        np.add.at(inner, parents[called], duration[called])
        function = steps.function[entries]
        caller = np.where(parents >= 0, function[parents], UNKNOWN)
        left = np.flatnonzero(exits < 0)
        self._open = steps.where(entries[left])._replace(inner=inner[left])
        return Calls(
            function,
            np.full(len(entries), self.thread, np.int64),
            steps.time[entries],
            duration,
            np.maximum(duration - inner, 0),
            steps.size[entries],
            caller,
            steps.order[entries],
        ).where(whole)


def _matched(steps: _Steps) -> tuple[Ints, Ints, Ints] | None:
    """Entries, their exits and their parents, see :meth:`Nesting._calls`; None where they do not fit."""
    count = len(steps.entry)
    level = np.where(steps.entry, 1, -1).cumsum()
    level[~steps.entry] += 1  # an exit is as deep as its entry
    if count and int(level.min()) < 1:
        return None
    # Of steps of one depth an entry and an exit follow each other by turns. Short numbers are sorted faster.
    narrow = level.astype(np.int16) if count and int(level.max()) < 1 << 15 else level
    by_level = np.argsort(narrow, kind="stable")
    is_entry = steps.entry[by_level]
    followed = is_entry[:-1] & (level[by_level[1:]] == level[by_level[:-1]])
    exit_of = np.full(count, -1, np.int64)
    exit_of[by_level[:-1][followed]] = by_level[1:][followed]
    entries = np.flatnonzero(steps.entry)
    exits = exit_of[entries]
    whole = exits >= 0
    if not np.array_equal(steps.function[entries[whole]], steps.function[exits[whole]]):
        return None
    number = steps.entry.cumsum() - 1
    return entries, exits, _parents(level, by_level[is_entry], number)


def _parents(level: Ints, by_level: Ints, number: Ints) -> Ints:
    """Of each entry the number of the last entry before it that is one level less deep, or -1.

    :param level: of each step. :param by_level: positions of entries, sorted by their level, then in order.
    :param number: of each step, that of the last entry until then.
    """
    keys = level[by_level] * len(level) + by_level
    found = np.searchsorted(keys, keys - len(level)) - 1
    parents = np.full(len(by_level), UNKNOWN, np.int64)
    inside = level[by_level] > 1
    parents[number[by_level[inside]]] = number[by_level[found[inside]]]
    return parents
