"""Decodes the events of a thread to calls; `native/record.h` owns the format and describes it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from perun.collect._calls.events import UNKNOWN, Calls, Events
from perun.collect._calls.nesting import Nesting
from perun.collect._calls.overhead import Overhead
from perun.collect._common.columns import Bools, Ints
from perun.collect._common.recordings import Words

ID_BITS: Final = 17
ID_MASK: Final = (1 << ID_BITS) - 1
MAX_FUNCTIONS: Final = ID_MASK - 15
"""The most functions of a process; larger ids mark other events."""

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
    """The runtime never writes such events; the message says why."""


class Decoder:
    """Decodes the events of one thread, piece by piece; times are ticks.

    Calls that sampling leaves out become calls of imaginary functions, so that their time does not count for
    their callers; then they are dropped.

    :ivar last: the latest tick of an event so far.
    """

    def __init__(self, thread: int, functions: int, overhead: Overhead | None = None) -> None:
        """:param functions: number of defined functions. :param overhead: of the recording of these, then of
        the same where sampling left out the entry, then of a call that sampling left out.
        """
        self.last = 0
        self._functions = functions
        self._nesting = Nesting(thread, overhead)
        self._rest = np.zeros(0, np.uint64)
        self._tick = 0

    def add(self, words: Words) -> Calls:
        """The calls that end with these events, which follow all earlier ones.

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
        """The calls that are open after all events; they end at `time`."""
        # The last event may be a count whose ticks were never written.
        rest = self._rest[(self._rest & np.uint64(ID_MASK)) != UNSAMPLED_COUNT]
        open_calls = [self._decoded(rest), self._recorded(self._nesting.finish(max(time, self.last)))]
        return Calls.joined(open_calls)

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
                raise InvalidEvents("a size does not follow the entry of a call")
            size[owner] = sizes
        is_entry, is_exit = number < self._functions, number == EXIT
        function = np.where(is_exit, UNKNOWN, number.astype(np.int64))
        if (is_entry | is_exit).all():
            return self._called(Events(self._unrolled(value), function, is_entry, size))
        return self._sampled(number, value, is_entry, Events(value, function, is_entry, size))

    def _sampled(
        self, number: NDArray[np.int32], value: Ints, is_entry: Bools, events: Events
    ) -> Calls:
        """The calls of events of which some stand for calls that sampling left out."""
        is_count, is_ticks, is_mark = (
            number == one for one in (UNSAMPLED_COUNT, UNSAMPLED_TICKS, UNSAMPLED)
        )
        has_time = is_entry | (number == EXIT)
        if not (has_time | is_count | is_ticks | is_mark).all():
            raise InvalidEvents("a call is of a function that is not defined")
        if np.count_nonzero(is_count) != len(_before(is_ticks, is_count)):
            raise InvalidEvents("the ticks of calls that sampling left out are missing")
        # Function f + n stands for a call of f that is dropped in the end; 2n for a group of calls, which is
        # entered at 0 and left at its ticks, so that its duration is right.
        events.function[_before(is_mark, is_entry)] += self._functions
        events.function[is_count], events.function[is_ticks] = 2 * self._functions, UNKNOWN
        counts = np.where(is_count, value, is_entry)
        events.time[is_count] = 0
        events.time[has_time] = self._unrolled(value[has_time])
        steps = ~is_mark
        entry = (is_entry | is_count)[steps]
        chosen = events.where(steps).replace(entry=entry)
        return self._called(chosen, counts[steps])

    def _called(self, events: Events, counts: Ints | None = None) -> Calls:
        calls = self._recorded(self._nesting.add(events, counts))
        if self._nesting.stray:
            raise InvalidEvents("more calls end than begin")
        return calls

    def _recorded(self, calls: Calls) -> Calls:
        """The calls of real functions, with real callers."""
        known = self._functions
        caller = np.where(calls.caller >= known, calls.caller - known, calls.caller)
        calls = calls.replace(caller=caller)
        is_real = calls.function < known
        return calls if is_real.all() else calls.where(is_real)

    def _unrolled(self, ticks: Ints) -> Ints:
        """Ticks of full width from their low bits: consecutive events are less than half a cycle apart."""
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
    """The positions just before these events, which must be their owners."""
    at: Ints = np.flatnonzero(events) - 1
    if len(at) and (int(at[0]) < 0 or not owners[at].all()):
        raise InvalidEvents("an event about a call does not follow the entry of that call")
    return at
