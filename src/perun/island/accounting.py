"""Where the time of one thread went: into each of its calls, into computing between them, or it was stopped.

All times are whole ns of CLOCK_MONOTONIC, so that what a thread did sums to its life exactly.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from perun.island.stop_log import RULES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perun.island.layout import Api
    from perun.island.record import CallBlock

    Times = NDArray[np.int64]


class Stops:
    """When a process was stopped, for questions about many intervals at once.

    :param starts, ends: of stops that follow each other, ns.
    """

    def __init__(self, starts: Times, ends: Times) -> None:
        import numpy as np

        self.starts = starts
        self.ends = ends
        self._totals = np.concatenate(([0], np.cumsum(ends - starts)))

    def tightened(self, moments: Iterable[Times]) -> Stops:
        """The same stops, ended where the process was seen running again.

        The parent learns a little later than the process itself that it goes on. All threads are stopped when
        it learns of a stop, so that whatever they do after its start they do after its end.

        :param moments: times at which the process did something, in arrays that rise each.
        """

        import numpy as np

        seen = self.ends.copy()
        for some in moments:
            first, last = np.searchsorted(self.starts, some[[0, -1]]) if len(some) else (0, 0)
            following = some[np.searchsorted(some, self.starts[first:last], "right")]
            seen[first:last] = np.minimum(seen[first:last], following)
            seen[:first] = np.minimum(seen[:first], some[:1])
        return Stops(self.starts, seen)

    def within(self, start: Any, end: Any) -> Any:
        """For how many ns of each interval the process was stopped."""
        import numpy as np

        if not len(self.starts):
            return 0 * start
        return self._until(end) - self._until(np.minimum(start, end))

    def _until(self, times: Any) -> Any:
        import numpy as np

        position = np.searchsorted(self.ends, times, "right")
        starts = np.append(self.starts, np.iinfo(np.int64).max)
        return self._totals[position] + np.maximum(0, times - np.minimum(starts[position], times))


def no_stops() -> Stops:
    """Those of a process that was never stopped."""
    import numpy as np

    return Stops(np.zeros(0, np.int64), np.zeros(0, np.int64))


class CallTimes(NamedTuple):
    """What is known of each call of a thread; times in ns.

    `actual` is how long it took without calls that were made in it, `stopped` the part of it that was stopped
    by the rule; `ambiguous` is the part in which the process was stopped while the call waited for something,
    so that nobody knows whether it would have gone on earlier.
    """

    actual: Times
    stopped: Times
    ambiguous: Times


class IslandEntries(NamedTuple):
    """The islands of a thread: the one that it began in, and when it entered which others."""

    first: int
    times: Times
    islands: NDArray[np.int32]


class IslandTime(NamedTuple):
    """The time of a thread in no call, in one island, and how much of it was stopped; ns."""

    time: int
    stopped: int


class Account:
    """The account of one thread, which is given its calls in blocks.

    :param apis: what the numbers of calls mean.
    :param life: when the thread began and ended. :param entered: the islands that it was in.
    :param rule: one of :data:`perun.island.stop_log.RULES`.
    :param waits: numbers of objects whose calls wait for somebody else: pipes, terminals.
    :ivar by_rule: ns of the calls so far that are stopped by each rule.
    """

    def __init__(
        self,
        apis: Sequence[Api],
        life: tuple[int, int],
        entered: IslandEntries,
        stops: Stops,
        rule: str,
        waits: Container[int] = (),
    ) -> None:
        import numpy as np

        self._apis = apis
        self._life = life
        self._stops = stops
        self._rule = rule
        self._waits = waits
        self._between = _Between(life, entered, stops)
        self._held = np.zeros((3, 0), np.int64)
        self.by_rule = dict.fromkeys(RULES, 0)

    def add(self, block: CallBlock) -> CallTimes:
        """The times of those calls of a block that are done; one may lie in another, and in another block."""
        import numpy as np

        calls, held = block.calls, block.held
        start = np.clip(calls["start"], *self._life)
        end = np.where(calls["end"] < 0, self._life[1], calls["end"])
        end = np.maximum(start, np.clip(end, *self._life))
        end[:held], _, _ = self._held
        parents = _parents(start, end)
        parents[:held] = -1  # what they take of their own parents has been counted
        times, stopped = end - start, self._stops.within(start, end)
        times[:held] = stopped[:held] = 0
        own, inside = _without_children(times, parents), _without_children(stopped, parents)
        own[:held] += self._held[1]
        inside[:held] += self._held[2]
        top = np.flatnonzero(parents[held:] < 0) + held
        self._between.add(start[top], end[top])
        self._held = np.stack((end, own, inside))[:, ~block.done]
        return self._times(calls, block.done, start, own, inside)

    def between(self) -> dict[int, IslandTime]:
        """The time in no call by the number of the island, when all blocks were added."""
        return self._between.all()

    def _times(
        self, calls: Any, done: NDArray[np.bool_], start: Times, own: Times, inside: Times
    ) -> CallTimes:
        import numpy as np

        ambiguous, counted = np.zeros((2, len(calls)), np.int64)
        for position in np.flatnonzero((inside > 0) & done).tolist():
            call = calls[position]
            one = _Call(call, self._apis, int(start[position]), int(own[position]), int(inside[position]))
            verdicts = {
                "exact": one.exact(self._stops), "seed": one.seed(), "source2010": one.by("source2010")
            }  # fmt: skip
            if call["arrived"] < 0 and (self._apis[call["api"]].blocking or call["object"] in self._waits):
                ambiguous[position] = verdicts["exact"] if self._rule == "exact" else 0
                verdicts["exact"] = 0
            for name, verdict in verdicts.items():
                self.by_rule[name] += verdict
            counted[position] = verdicts[self._rule]
        return CallTimes(own[done], counted[done], ambiguous[done])


class _Call:
    """A call in which the process was stopped."""

    def __init__(self, call: Any, apis: Sequence[Api], start: int, actual: int, stops: int) -> None:
        api = apis[call["api"]]
        self._start, self._actual = start, actual
        self.stops = stops
        self._sleeps = api.resource == "sleep"
        deadline = start + int(call["amount"]) if self._sleeps else int(call["expected"])
        self._expected = max(0, deadline - start)
        arrived = int(call["arrived"])
        self._waited = min(max(0, arrived - start), actual) if arrived >= 0 else 0

    def exact(self, stops: Stops) -> int:
        """What the stops cost: until data arrives that it waits for, nothing."""
        before = int(stops.within(self._start, self._start + self._waited))
        left = max(0, self.stops - before)
        return RULES["exact"](self._actual - self._waited, max(0, self._expected - self._waited), left)

    def seed(self) -> int:
        """By the document, where stops have no effect on sleeping."""
        return 0 if self._sleeps else self.by("seed")

    def by(self, rule: str) -> int:
        return RULES[rule](self._actual, self._expected, self.stops)


def _parents(start: Times, end: Times) -> Times:
    """The position of the call in which each call was made, -1 where there is none; it stands before it.

    Where a damaged recording has calls that overlap, the later one is cut off at the end of the earlier one.
    """

    import numpy as np

    parents = np.full(len(start), -1, np.int64)
    latest = np.maximum.accumulate(end)
    inner = np.flatnonzero(start[1:] < latest[:-1]) + 1
    if not len(inner):
        return parents
    starts, ends = start.tolist(), end.tolist()
    outer: list[int] = []
    last = -2
    for position in inner.tolist():
        outer = [*outer, position - 1] if last == position - 1 else [position - 1]
        begin = starts[position]
        while outer and ends[outer[-1]] <= begin:
            outer.pop()
        if outer:
            parents[position] = outer[-1]
            ends[position] = min(ends[position], ends[outer[-1]])
            last = position
    end[:] = ends
    return parents


def _without_children(values: Times, parents: Times) -> Times:
    import numpy as np

    own = values.copy()
    children = parents >= 0
    np.subtract.at(own, parents[children], values[children])
    return own


class _Between:
    """Adds up what is left of a life without the calls that lie in no other one, by island."""

    def __init__(self, life: tuple[int, int], entered: IslandEntries, stops: Stops) -> None:
        import numpy as np

        self._end, self._died = life
        self._times = np.clip(entered.times, *life)
        self._islands = np.append(entered.first, entered.islands)
        self._next = 0
        self._stops = stops
        self._sums: dict[int, IslandTime] = {}

    def add(self, start: Times, end: Times) -> None:
        """Calls that begin when the ones before had begun, by their starts."""
        import numpy as np

        if not len(start):
            return
        # Entering an island parts the time between calls as a call does that takes none.
        entered = self._times[self._next :]
        entered = entered[: np.searchsorted(entered, start[-1], "right")]
        self._next += len(entered)
        if len(entered):
            order = np.argsort(np.concatenate((start, entered)), kind="stable")
            start, end = (np.concatenate((column, entered))[order] for column in (start, end))
        begins = np.maximum.accumulate(np.append(self._end, end))
        self._end = int(begins[-1])
        self._count(begins[:-1], np.maximum(begins[:-1], start))

    def all(self) -> dict[int, IslandTime]:
        """The sums to the end of the life."""
        import numpy as np

        left = self._times[self._next :]
        self.add(left, left)
        self._count(np.array([self._end]), np.array([max(self._end, self._died)]))
        return dict(sorted(self._sums.items()))

    def _count(self, begins: Times, ends: Times) -> None:
        import numpy as np

        stopped = self._stops.within(begins, ends)
        if not len(begins):
            return
        where = self._islands[np.searchsorted(self._times, begins, "right")]
        for number in np.unique(where).tolist():
            before, here = self._sums.get(number, IslandTime(0, 0)), where == number
            self._sums[number] = IslandTime(
                before.time + int((ends - begins)[here].sum()), before.stopped + int(stopped[here].sum())
            )
