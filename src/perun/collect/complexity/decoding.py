"""The events of a thread, as the runtime records them, and the calls that they make.

`native/record.h` owns the format and describes it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from perun.collect._calls.events import UNKNOWN, Calls, Events
from perun.collect._calls.nesting import Nesting
from perun.collect._common.columns import Bools, Ints
from perun.collect._common.recordings import Words

ID_BITS: Final = 17
ID_MASK: Final = (1 << ID_BITS) - 1
MAX_FUNCTIONS: Final = ID_MASK - 15
"""Functions that a process may define; the numbers above are markers."""

EXIT: Final = ID_MASK
SIZE: Final = ID_MASK - 1
UNSAMPLED_COUNT: Final = ID_MASK - 2
UNSAMPLED_TICKS: Final = ID_MASK - 3
UNSAMPLED: Final = ID_MASK - 4

_ROUND: Final = 1 << 64 - ID_BITS
"""Ticks after which the stored low bits wrap around."""
_FARTHEST: Final = 1 << 61
_SHIFT: Final = np.uint64(ID_BITS)


class InvalidEvents(ValueError):
    """The runtime does not write such events; the message says why."""


class Decoder:
    """Makes calls of the events of one thread, piece by piece; times are ticks.

    Calls that sampling omits become calls of imaginary functions, so that no other call gets their time;
    afterwards they are dropped.

    :ivar last: the latest tick of an event so far.
    """

    def __init__(self, thread: int, functions: int) -> None:
        """:param functions: how many are defined."""
        self.last = 0
        self._functions = functions
        self._nesting = Nesting(thread)
        self._rest = np.zeros(0, np.uint64)
        self._tick = 0

    def add(self, words: Words) -> Calls:
        """The calls that these events, which follow those before, complete.

        :raises InvalidEvents: where the runtime writes no such events.
        """
        if len(self._rest):
            words = np.concatenate([self._rest, words])
        # The next event may belong to the last one, e.g. its size: hold it back.
        held = len(words) and (int(words[-1]) & ID_MASK) not in (EXIT, SIZE, UNSAMPLED_TICKS, UNSAMPLED)
        whole = len(words) - 1 if held else len(words)
        self._rest = words[whole:].copy()
        return self._decoded(words[:whole])

    def finish(self, time: int) -> Calls:
        """The calls that have not ended, after all events were added, as if they had at `time`."""
        # A count at the end of the events is incomplete: its ticks were never written.
        rest = self._rest[(self._rest & np.uint64(ID_MASK)) != UNSAMPLED_COUNT]
        made = [self._decoded(rest), self._kept(self._nesting.finish(max(time, self.last)))]
        return Calls.joined(made)

    def _decoded(self, words: Words) -> Calls:
        number = (words & np.uint64(ID_MASK)).astype(np.int32)
        value = (words >> _SHIFT).astype(np.int64)
        is_size = number == SIZE
        sized = np.flatnonzero(is_size)
        size = np.full(len(words) - len(sized), UNKNOWN, np.int64)
        if len(sized):
            sizes = value[sized]
            number, value = number[~is_size], value[~is_size]
            owner = sized - np.arange(1, len(sized) + 1)  # the event before, once no size is among them
            if int(owner[0]) < 0 or not (number[owner] < self._functions).all():
                raise InvalidEvents("a size belongs to no call")
            size[owner] = sizes
        is_entry, is_exit = number < self._functions, number == EXIT
        function = np.where(is_exit, UNKNOWN, number.astype(np.int64))
        if (is_entry | is_exit).all():
            return self._called(Events(self._unrolled(value), function, is_entry, size))
        return self._sampled(number, value, is_entry, Events(value, function, is_entry, size))

    def _sampled(
        self, number: NDArray[np.int32], value: Ints, is_entry: Bools, events: Events
    ) -> Calls:
        """The same where sampling omitted calls."""
        unsampled, taken, omitted = number == UNSAMPLED_COUNT, number == UNSAMPLED_TICKS, number == UNSAMPLED
        timed = is_entry | (number == EXIT)
        if not (timed | unsampled | taken | omitted).all():
            raise InvalidEvents("a call is of a function that is not defined")
        if np.count_nonzero(unsampled) != len(_before(taken, unsampled)):
            raise InvalidEvents("the time of calls that sampling left out is missing")
        events.function[_before(omitted, is_entry)] += self._functions
        events.function[unsampled], events.function[taken] = 2 * self._functions, UNKNOWN
        counts = np.where(unsampled, value, is_entry)
        events.time[unsampled] = 0
        events.time[timed] = self._unrolled(value[timed])
        steps = ~omitted
        entry = (is_entry | unsampled)[steps]
        chosen = events.where(steps).replace(entry=entry)
        return self._called(chosen, counts[steps])

    def _called(self, events: Events, counts: Ints | None = None) -> Calls:
        made = self._kept(self._nesting.add(events, counts))
        if self._nesting.stray:
            raise InvalidEvents("more calls end than begin")
        return made

    def _kept(self, calls: Calls) -> Calls:
        known = self._functions
        caller = np.where(calls.caller >= known, calls.caller - known, calls.caller)
        calls = calls.replace(caller=caller)
        kept = calls.function < known
        return calls if kept.all() else calls.where(kept)

    def _unrolled(self, ticks: Ints) -> Ints:
        """Ticks of full width from stored low bits: consecutive events are less than half a cycle apart."""
        if not len(ticks):
            return ticks
        before = np.empty_like(ticks)
        before[0], before[1:] = self._tick % _ROUND, ticks[:-1]
        half = _ROUND // 2
        steps: Any = ((ticks - before + half) & _ROUND - 1) - half
        whole: Ints = steps.cumsum() + self._tick
        self._tick = int(whole[-1])
        self.last = max(self.last, int(whole.max()))
        if self.last >= _FARTHEST or int(whole.min()) <= -_FARTHEST:
            raise InvalidEvents("its times are out of range")
        return whole


def _before(events: Bools, owners: Bools) -> Ints:
    """The positions just before these events, where those are that they belong to."""
    at: Ints = np.flatnonzero(events) - 1
    if len(at) and (int(at[0]) < 0 or not owners[at].all()):
        raise InvalidEvents("a detail of a call stands without the call")
    return at
