"""Where the time of one thread went: into each of its calls, into computing between them, or it was stopped.

All times are whole ns of CLOCK_MONOTONIC, so that what a thread did sums to its life exactly.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from perun.island.stop_log import RULES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perun.island.layout import Api

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

    def tightened(self, moments: Times) -> Stops:
        """The same stops, ended where the process was seen running again.

        The parent learns a little later than the process itself that it goes on. All threads are stopped when
        it learns of a stop, so that whatever they do after its start they do after its end.

        :param moments: times at which the process did something, rising.
        """

        import numpy as np

        following = np.searchsorted(moments, self.starts, "right")
        seen = np.append(moments, np.iinfo(np.int64).max)[following]
        return Stops(self.starts, np.minimum(self.ends, seen))

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


class Account(NamedTuple):
    """Where the life of one thread went, in ns.

    `between` is by the number of the island; `by_rule` says what of all calls is stopped by each rule.
    """

    live: int
    calls: CallTimes
    between: dict[int, IslandTime]
    by_rule: dict[str, int]


def account(
    calls: Any,
    apis: Sequence[Api],
    life: tuple[int, int],
    entered: IslandEntries,
    stops: Stops,
    rule: str,
    waits: Container[int] = (),
) -> Account:
    """The account of one thread.

    :param calls: its records (`Recording.columns`) in the order of their starts; one may lie in another.
    :param apis: what their numbers mean.
    :param life: when the thread began and ended. :param entered: the islands that it was in.
    :param rule: one of :data:`perun.island.stop_log.RULES`.
    :param waits: numbers of objects whose calls wait for somebody else: pipes, terminals.
    """

    import numpy as np

    born, died = life
    start = np.clip(calls["start"], born, died)
    end = np.maximum(start, np.clip(np.where(calls["end"] < 0, died, calls["end"]), born, died))
    parents = _parents(start, end)
    own = _without_children(end - start, parents)
    inside = _without_children(stops.within(start, end), parents)
    found = CallTimes(own, np.zeros(len(calls), np.int64), np.zeros(len(calls), np.int64))
    by_rule = dict.fromkeys(RULES, 0)
    for position in np.flatnonzero(inside > 0).tolist():
        call = calls[position]
        one = _Call(call, apis, int(start[position]), int(own[position]), int(inside[position]))
        verdicts = {"exact": one.exact(stops), "seed": one.seed(), "source2010": one.by("source2010")}
        if call["arrived"] < 0 and (apis[call["api"]].blocking or call["object"] in waits):
            found.ambiguous[position] = verdicts["exact"] if rule == "exact" else 0
            verdicts["exact"] = 0
        for name, verdict in verdicts.items():
            by_rule[name] += verdict
        found.stopped[position] = verdicts[rule]
    top = parents < 0
    between = _between(start[top], end[top], life, entered, stops)
    return Account(died - born, found, between, by_rule)


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
    outer: list[int] = []
    for position in inner.tolist():
        outer = [*outer, position - 1] if parents[position - 1] >= 0 else [position - 1]
        while outer and end[outer[-1]] <= start[position]:
            outer.pop()
        if outer:
            parents[position] = outer[-1]
            end[position] = min(end[position], end[outer[-1]])
    return parents


def _without_children(values: Times, parents: Times) -> Times:
    import numpy as np

    own = values.copy()
    children = parents >= 0
    np.subtract.at(own, parents[children], values[children])
    return own


def _between(
    start: Times, end: Times, life: tuple[int, int], entered: IslandEntries, stops: Stops
) -> dict[int, IslandTime]:
    """What is left of the life without these calls, by island."""

    import numpy as np

    times = np.clip(entered.times, *life)
    # Entering an island parts the time between calls as a call does that takes none.
    order = np.argsort(np.concatenate((start, times)), kind="stable")
    begins = np.concatenate(([life[0]], np.maximum.accumulate(np.concatenate((end, times))[order])))
    ends = np.maximum(begins, np.append(np.concatenate((start, times))[order], life[1]))
    where = np.append(entered.first, entered.islands)[np.searchsorted(times, begins, "right")]
    stopped = stops.within(begins, ends)
    return {
        number: IslandTime(int((ends - begins)[where == number].sum()), int(stopped[where == number].sum()))
        for number in np.unique(where).tolist()
    }
