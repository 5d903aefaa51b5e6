"""What the engines yield: entries and exits of functions, or completed calls.

Functions are numbers, which :class:`perun.collect._calls.profile.CalledFunction` names in the end. Times are
nanoseconds since the start of the run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from perun.collect._calls.overhead import Overhead
from perun.native.columns import Bools, Columns, Floats, Ints

UNKNOWN: Final = -1
"""In place of a size or of a caller: it is not known, or none of the traced functions."""


@dataclass(frozen=True, eq=False)
class CallEvents(Columns):
    """Entries and exits of one thread in the order of time.

    :param time: nanoseconds. :param function: number of the function that is entered or left.
    :param entry: whether it is an entry. :param size: size of the structure, :data:`UNKNOWN` at an exit.
    """

    time: Ints
    function: Ints
    entry: Bools
    size: Ints


@dataclass(frozen=True, eq=False)
class Calls(Columns):
    """Completed calls, a row each, in any order.

    :param function: number of the function. :param thread: id of the thread in the kernel.
    :param start: nanoseconds. :param duration: nanoseconds from the entry to the exit.
    :param exclusive: the duration minus those of the traced calls that the call made itself.
    :param size: size of the structure that it worked on, or :data:`UNKNOWN`.
    :param caller: number of the innermost traced function that was running, or :data:`UNKNOWN`.
    :param order: sorts the calls of a thread by their entries; no two are equal.
    """

    function: Ints
    thread: Ints
    start: Ints
    duration: Ints
    exclusive: Ints
    size: Ints
    caller: Ints
    order: Ints


# Matches the entries and exits of one thread to calls, batch by batch and in constant memory.
#
# Entries and exits that fit are matched like parentheses, by array operations. Where an exit is missing (a
# longjmp, the end of a thread, a lost event), the next exit of a caller ends the call, too. An exit without
# an entry is dropped. Both are counted. An exit of the function :data:`UNKNOWN` ends the innermost open call.
#
# What recording costs is subtracted from the times of calls where it is known: at each event from what had
# been spent on recording until then, so that a call loses its own share and that of all calls within it.
# Where more would be subtracted than a call took, it takes 0; its callers lose the whole cost nevertheless.


@dataclass(frozen=True, eq=False)
class _Steps(Columns):
    """Entries and exits; `order` and `callees` have a meaning at entries only.

    :param order: number of the entry. :param callees: nanoseconds of the calls that it has completed so far.
    :param spent: nanoseconds that recording had cost until then. :param doubt: by how much they may be wrong.
    """

    time: Ints
    function: Ints
    entry: Bools
    size: Ints
    order: Ints
    callees: Ints
    spent: Floats
    doubt: Floats


class Nesting:
    """Turns events of one thread into calls.

    :ivar missed: number of missing exits so far. :ivar stray: number of exits without an entry.
    """

    def __init__(self, thread: int, overhead: Overhead | None = None) -> None:
        """:param overhead: what recording costs; None where times are to be as they were recorded."""
        self.thread = thread
        self._overhead = overhead
        self._spent = (0.0, 0.0)
        self.missed = 0
        self.stray = 0
        self._entries = 0
        self._open = _Steps.empty()

    @property
    def depth(self) -> int:
        """The number of open calls."""
        return len(self._open)

    def add(self, events: CallEvents, counts: Ints | None = None) -> Calls:
        """The calls that end with these events, which follow all earlier ones.

        :param counts: by how much each event raises the `order` of later calls, because the recorder left out
            entries; by default an entry raises it by one.
        """
        steps = self._with_open_calls(events, counts)
        pairs = _matched(steps)
        if pairs is None:
            steps = self._repaired(steps)
            pairs = _matched(steps)
            assert pairs is not None
        return self._calls(steps, *pairs)

    def finish(self, time: int) -> Calls:
        """The calls that are still open: they end at `time` (ns), and their exits count as missed."""
        count = self.depth
        self.missed += count
        function = self._open.function[::-1]
        ends = np.full(count, time, np.int64)
        return self.add(
            CallEvents(ends, function, np.zeros(count, np.bool_), np.full(count, UNKNOWN, np.int64))
        )

    def _with_open_calls(self, events: CallEvents, counts: Ints | None) -> _Steps:
        """The entries of the open calls, followed by the new events."""
        entry = np.asarray(events.entry, np.bool_)
        order = (entry if counts is None else counts).cumsum() + (self._entries - 1)
        if len(order):
            self._entries = int(order[-1]) + 1
        callees = np.zeros(len(entry), np.int64)
        spent = doubt = np.broadcast_to(np.float64(0), len(entry))
        if self._overhead is not None:
            begun = entry.astype(np.int64) if counts is None else np.where(entry, counts, 0)
            (spent, doubt), self._spent = self._overhead.spent(events.function, begun, self._spent)
        steps = _Steps(events.time, events.function, entry, events.size, order, callees, spent, doubt)
        return _Steps.joined([self._open, steps])

    def _repaired(self, steps: _Steps) -> _Steps:
        """The steps with missing exits added and exits without an entry removed."""
        functions, entries = steps.function.tolist(), steps.entry.tolist()
        running: list[int] = []
        open_calls: Counter[int] = Counter()
        chosen: list[int] = []  # positions of entries and exits; an exit that ends several calls is repeated
        ended: list[int] = []  # the functions of these
        for position, (function, is_entry) in enumerate(zip(functions, entries, strict=True)):
            if is_entry:
                running.append(function)
                open_calls[function] += 1
                chosen.append(position)
                ended.append(function)
            elif open_calls[function] or (function == UNKNOWN and running):
                while True:
                    last = running.pop()
                    open_calls[last] -= 1
                    chosen.append(position)
                    ended.append(last)
                    if function in (last, UNKNOWN):
                        break
                    self.missed += 1
            else:
                self.stray += 1
        return steps.where(np.array(chosen, np.int64)).replace(function=np.array(ended, np.int64))

    def _calls(self, steps: _Steps, entries: Ints, exits: Ints, parents: Ints) -> Calls:
        """The completed calls of matched steps; those without an exit stay open.

        :param entries: positions of all entries. :param exits: of each its exit, -1 where there is none.
        :param parents: of each the position of its caller within `entries`, or -1.
        """
        still_open = np.flatnonzero(exits < 0)
        done: Ints | slice = np.flatnonzero(exits >= 0) if len(still_open) else slice(None)
        function, time = steps.function[entries], steps.time[entries]
        ends, begins = exits[done], entries[done]
        recorded = np.maximum(steps.time[ends] - time[done], 0)
        left = recorded
        if self._overhead is not None:
            left = recorded - np.rint(steps.spent[ends] - steps.spent[begins]).astype(np.int64)
        callees, caller = steps.callees[entries], parents[done]
        has_caller = caller >= 0
        np.add.at(callees, caller[has_caller], left[has_caller])
        self._open = steps.where(entries[still_open]).replace(callees=callees[still_open])
        duration = np.maximum(left, 0)
        exclusive = np.clip(left - callees[done], 0, duration)
        callers = np.where(has_caller, function[caller], UNKNOWN)
        if self._overhead is not None:
            doubt = steps.doubt[ends] - steps.doubt[begins]
            self._overhead.count(function[done], callers, recorded, (duration, exclusive), doubt)
        return Calls(
            function[done],
            np.full(len(duration), self.thread, np.int64),
            time[done],
            duration,
            exclusive,
            steps.size[begins],
            callers,
            steps.order[begins],
        )


def _matched(steps: _Steps) -> tuple[Ints, Ints, Ints] | None:
    """Entries, exits and parents for :meth:`Nesting._calls`; None where the steps do not match."""
    count = len(steps.entry)
    entered = steps.entry.cumsum()
    depth = 2 * entered - np.arange(1, count + 1)  # open calls after each step: entries minus exits
    level = depth + ~steps.entry  # an exit is as deep as its entry
    if count and int(level.min()) < 1:
        return None  # more exits than entries
    # numpy sorts 16-bit integers by radix sort, which is several times faster.
    narrow = level.astype(np.int16) if count and int(level.max()) < 1 << 15 else level
    by_level = np.argsort(narrow, kind="stable")
    # At one level entries and exits alternate, so that each pair is a call. Only the last entry of each level
    # up to the final depth has no exit yet.
    open_levels = np.arange(1, int(depth[-1]) + 1 if count else 1)
    unpaired = np.searchsorted(narrow[by_level], open_levels.astype(narrow.dtype), "right") - 1
    begun, ended = np.delete(by_level, unpaired).reshape(-1, 2).T
    left = steps.function[ended]
    if not ((left == steps.function[begun]) | (left == UNKNOWN)).all():
        return None  # an exit of another function than the one that was entered
    number = entered - 1
    exits = np.full(int(entered[-1]) if count else 0, -1, np.int64)
    exits[number[begun]] = ended
    parents = _parents(steps.entry, number, level, by_level[steps.entry[by_level]])
    return np.flatnonzero(steps.entry), exits, parents


def _parents(entry: Bools, number: Ints, level: Ints, by_level: Ints) -> Ints:
    """For each entry the number of the entry of its caller, or UNKNOWN.

    The step before the first call of a caller is the entry of that caller; later calls of the same level have
    the same caller until the next first call.

    :param number: of each step the number of the last entry up to it. :param level: depth of each step.
    :param by_level: positions of the entries, sorted by level and then by time.
    """
    is_first = entry[by_level - 1]  # at level 1 without a meaning: these have no caller
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(by_level)), 0))
    parents = np.full(len(by_level), UNKNOWN, np.int64)
    parents[number[by_level]] = np.where(level[by_level] > 1, number[by_level[first] - 1], UNKNOWN)
    return parents
