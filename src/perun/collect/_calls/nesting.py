"""Matches the entries and exits of one thread to calls, in batches and constant memory.

Entries and exits that fit are matched as parentheses are, without a loop over them. Where an exit is missing
(a longjmp, a thread that ended, a call the recorder lost) the calls are closed by the next exit of one that
was entered before; where the entry is missing the exit is left out. Both are counted. An exit of the function
:data:`UNKNOWN` is that of the last call that is open.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from perun.collect._calls.events import UNKNOWN, Calls, Events
from perun.collect._common.columns import Bools, Columns, Ints


@dataclass(frozen=True, eq=False)
class _Steps(Columns):
    """Entries and exits; `order` and `inner` mean something at entries only.

    :param order: number of the entry. :param inner: nanoseconds of the calls within it that are gone already.
    """

    time: Ints
    function: Ints
    entry: Bools
    size: Ints
    order: Ints
    inner: Ints


class Nesting:
    """Turns events of one thread into calls.

    :ivar missed: exits that were missing so far; :ivar stray: exits without an entry.
    """

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.missed = 0
        self.stray = 0
        self._entries = 0
        self._open = _Steps.empty()

    @property
    def depth(self) -> int:
        """How many calls are open."""
        return len(self._open)

    def add(self, events: Events, counts: Ints | None = None) -> Calls:
        """The calls that these events, which follow those before, complete.

        :param counts: how many entries each event stands for in the order of the calls; by default each entry
            for one.
        """
        steps = self._after_open(events, counts)
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

    def _after_open(self, events: Events, counts: Ints | None) -> _Steps:
        entry = np.asarray(events.entry, np.bool_)
        order = (entry if counts is None else counts).cumsum() + (self._entries - 1)
        if len(order):
            self._entries = int(order[-1]) + 1
        inner = np.zeros(len(entry), np.int64)
        steps = _Steps(events.time, events.function, entry, events.size, order, inner)
        return _Steps.joined([self._open, steps])

    def _repaired(self, steps: _Steps) -> _Steps:
        """The steps with missing exits added and exits without an entry removed."""
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
            elif open_calls[function] or (function == UNKNOWN and running):
                while True:
                    last = running.pop()
                    open_calls[last] -= 1
                    chosen.append(position)
                    closed.append(last)
                    if function in (last, UNKNOWN):
                        break
                    self.missed += 1
            else:
                self.stray += 1
        return steps.where(np.array(chosen, np.int64)).replace(function=np.array(closed, np.int64))

    def _calls(self, steps: _Steps, entries: Ints, exits: Ints, parents: Ints) -> Calls:
        """The calls of matched steps; those that are not closed are kept.

        :param entries: positions of all entries. :param exits: of their exits, -1 where there is none.
        :param parents: for each entry the position among `entries` of what it was called within, or -1.
        """
        left = np.flatnonzero(exits < 0)
        whole: Ints | slice = np.flatnonzero(exits >= 0) if len(left) else slice(None)
        function, time = steps.function[entries], steps.time[entries]
        duration = np.maximum(steps.time[exits[whole]] - time[whole], 0)
        inner, around = steps.inner[entries], parents[whole]
        called = around >= 0
        np.add.at(inner, around[called], duration[called])
        self._open = steps.where(entries[left]).replace(inner=inner[left])
        return Calls(
            function[whole],
            np.full(len(duration), self.thread, np.int64),
            time[whole],
            duration,
            np.maximum(duration - inner[whole], 0),
            steps.size[entries[whole]],
            np.where(called, function[around], UNKNOWN),
            steps.order[entries[whole]],
        )


def _matched(steps: _Steps) -> tuple[Ints, Ints, Ints] | None:
    """Entries, their exits and their parents, see :meth:`Nesting._calls`; None where they do not match."""
    count = len(steps.entry)
    entered = steps.entry.cumsum()
    depth = 2 * entered - np.arange(1, count + 1)  # after each step
    level = depth + ~steps.entry  # an exit is as deep as its entry
    if count and int(level.min()) < 1:
        return None
    # Short numbers are sorted faster.
    narrow = level.astype(np.int16) if count and int(level.max()) < 1 << 15 else level
    by_level = np.argsort(narrow, kind="stable")
    # At one depth entries and exits alternate, so that each pair is a call; the last entry may still be open.
    still_open = np.arange(1, int(depth[-1]) + 1 if count else 1)
    ends = np.searchsorted(narrow[by_level], still_open.astype(narrow.dtype), "right") - 1
    begun, ended = np.delete(by_level, ends).reshape(-1, 2).T
    left = steps.function[ended]
    if not ((left == steps.function[begun]) | (left == UNKNOWN)).all():
        return None
    number = entered - 1
    exits = np.full(int(entered[-1]) if count else 0, -1, np.int64)
    exits[number[begun]] = ended
    parents = _parents(steps.entry, number, level, by_level[steps.entry[by_level]])
    return np.flatnonzero(steps.entry), exits, parents


def _parents(entry: Bools, number: Ints, level: Ints, by_level: Ints) -> Ints:
    """Of each entry the number of the entry that it was called within, or -1.

    Just before the first call within another one that is entered; those after the first have the same caller.

    :param number: of each step, that of the last entry until then. :param level: of each step.
    :param by_level: positions of entries, sorted by their level, then in order.
    """
    is_first = entry[by_level - 1]  # of the outermost calls any may be
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(by_level)), 0))
    parents = np.full(len(by_level), UNKNOWN, np.int64)
    parents[number[by_level]] = np.where(level[by_level] > 1, number[by_level[first] - 1], UNKNOWN)
    return parents
