"""What recording costs, and the times of calls without it.

A recorder adds time to each call: some of it lies between the two times that it notes, the rest before the
first and behind the second one, which is time of the caller. So a call seems longer by its own cost inside,
and by the whole cost of each recorded call that was made within it.

The costs are those of calls of an empty function that is recorded in the same way, see
:mod:`perun.collect._calls.calibration`. They differ from call to call, by :attr:`CallCost.spread`. Times that
are smaller than the sum of these spreads say nothing about the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.native.columns import Floats, Ints

INCLUSIVE: Final = "inclusive"
EXCLUSIVE: Final = "exclusive"
_COUNTS: Final = ("calls", "at-zero", "doubtful")
_TIMES: Final = ("time", "subtracted", "uncertainty")
_USUAL: Final = 0.95
"""Share of the calls that tells what is usual: the slowest may have been interrupted by the system."""


class CallCost(NamedTuple):
    """What recording one call costs, in nanoseconds.

    :param inside: the part that lies between the times at which the call begins and ends.
    :param outside: the rest, which is time of the caller.
    :param spread: by how much the whole may be wrong.
    """

    inside: float = 0.0
    outside: float = 0.0
    spread: float = 0.0


class EventOverhead(NamedTuple):
    """What recording had cost at each event, in the unit of the recorder; shape (events,).

    :param time: subtract it from the time of the event. :param doubt: by how much `time` may be wrong.
    """

    time: Floats
    doubt: Floats


class Overhead:
    """Subtracts the cost of recording, and sums up what was subtracted, by function.

    A recorder has one for all its threads; its sums are complete once all calls are decoded.
    """

    def __init__(self, costs: Sequence[CallCost], unit: float = 1.0) -> None:
        """:param costs: by the numbers of the functions. :param unit: nanoseconds of a unit of the recorder's
        times.
        """
        rows: NDArray[np.float64] = np.array(costs, np.float64).reshape(-1, 3) / unit
        self._inside, self._outside, self._spread = rows.T.copy()
        self._unit = unit
        count = len(rows)
        self._calls, self._at_zero, self._doubtful = np.zeros((3, count), np.int64)
        self._recorded, self._left, self._doubt = np.zeros((3, 2, count))  # inclusive and exclusive

    def spent(
        self, function: Ints, counts: Ints, before: tuple[float, float]
    ) -> tuple[EventOverhead, tuple[float, float]]:
        """What recording had cost at each event, and after the last one.

        :param function: of each event. :param counts: how many calls each event begins: 0 for an exit.
        :param before: the cost and its doubt before the first event.
        """
        began = counts > 0
        whole, doubt = np.zeros((2, len(function)))
        chosen = function[began]
        whole[began] = (self._inside + self._outside)[chosen] * counts[began]
        doubt[began] = self._spread[chosen] * counts[began]
        time = np.cumsum(whole) + before[0]
        doubts = np.cumsum(doubt) + before[1]
        end = (float(time[-1]), float(doubts[-1])) if len(time) else before
        # At its beginning a call has cost what lies outside of it; the doubt of all of it is its own.
        time[began] -= self._inside[chosen] * counts[began]
        return EventOverhead(time, doubts - doubt), end

    def count(
        self, function: Ints, caller: Ints, recorded: Ints, left: tuple[Ints, Ints], doubt: Floats
    ) -> None:
        """Add completed calls to the sums.

        :param caller: number of the calling function, negative where there is none.
        :param recorded: the recorded durations. :param left: inclusive and exclusive times without the cost.
        :param doubt: by how much the inclusive times may be wrong.
        """
        size = len(self._calls)

        def total(numbers: Ints, values: Any = None) -> NDArray[Any]:
            return np.bincount(numbers, values, size)

        called = caller >= 0
        self._calls += total(function)
        self._at_zero += total(function[left[0] <= 0])
        self._doubtful += total(function[left[0] <= doubt])
        self._recorded[0] += total(function, recorded)
        self._recorded[1] += total(function, recorded) - total(caller[called], recorded[called])
        own = self._spread[function]
        self._doubt[0] += total(function, doubt)
        self._doubt[1] += total(function, own) + total(caller[called], own[called])
        for row, times in enumerate(left):
            self._left[row] += total(function, times)

    def by_function(self, names: Sequence[str] | Mapping[int, str]) -> dict[str, dict[str, Any]]:
        """The sums of each function that was called, by its name; times in whole nanoseconds.

        `inclusive` and `exclusive` hold `time` (without the cost of recording), `subtracted` (so that their
        sum is what was recorded), `uncertainty`, and `below` where the time is not above its uncertainty: in
        sum, or in 95 % of the calls. `at-zero` counts the calls for which nothing was left, `doubtful` those
        that took no longer than their uncertainty.
        """
        found: dict[str, dict[str, Any]] = {}
        for number in np.flatnonzero(self._calls).tolist():
            if number not in range(len(names)):
                continue
            counts = (self._calls, self._at_zero, self._doubtful)
            row = dict(zip(_COUNTS, (int(one[number]) for one in counts), strict=True))
            parts_of = (self._left, self._recorded - self._left, self._doubt)
            sums = np.rint([part[:, number] * self._unit for part in parts_of])
            parts = {
                which: dict(zip(_TIMES, map(int, sums[:, place]), strict=True))
                for place, which in enumerate((INCLUSIVE, EXCLUSIVE))
            }
            merge(found, {names[number]: {**row, **parts}})
        return found


def merge(into: dict[str, dict[str, Any]], more: Mapping[str, Mapping[str, Any]]) -> None:
    """Add sums by function, as :meth:`Overhead.by_function` has them, to others."""
    for name, row in more.items():
        own = into.setdefault(name, {INCLUSIVE: {}, EXCLUSIVE: {}})
        _add(own, row, _COUNTS)
        usual = own["doubtful"] >= _USUAL * own["calls"]
        for which in (INCLUSIVE, EXCLUSIVE):
            sums = own[which]
            _add(sums, row[which], _TIMES)
            sums["below"] = usual or sums["time"] <= sums["uncertainty"]


def _add(into: dict[str, Any], more: Mapping[str, Any], keys: Sequence[str]) -> None:
    for key in keys:
        into[key] = into.get(key, 0) + more[key]


def below(functions: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The names of the functions whose inclusive time is not above its uncertainty."""
    return [name for name, row in functions.items() if row[INCLUSIVE]["below"]]
