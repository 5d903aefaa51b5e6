"""Finds the joint peak of several processes: the moment at which all their heaps together are largest.

The peaks of processes that run one after the other do not add up. So this replays their events side by side,
in windows of time for which all recordings are read, and finds the largest heap of each window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from perun.collect._common.columns import Columns, Ints
from perun.collect.memory.analysis import Analysis, Events, Piece

AT_A_TIME = 1 << 18
"""How many events of each process are replayed at once."""


def replay(
    analyses: Sequence[Analysis],
    recordings: Sequence[Iterable[Events]],
    ends: Sequence[Callable[[], int]] = (),
) -> None:
    """Replay the events of each recording by its analysis, and keep the joint peak in each analysis.

    :param recordings: with times of one clock in nanoseconds.
    :param ends: returns when each process ended, by the same clock; called once all its events are read. By
        default a process ends with its last event.
    """
    sources = [_Source(iter(recording)) for recording in recordings]
    for source, ended_at in zip(sources, ends, strict=False):
        source.end = ended_at
    best = 0
    while True:
        for source, analysis in zip(sources, analyses, strict=True):
            source.fill(max(AT_A_TIME, analysis.live_blocks))
        # No recording yields an event before this time any more.
        until = min((source.last for source in sources if source.has_more), default=None)
        windows = [source.take(until) for source in sources]
        if not any(windows):
            return
        before = sum(
            analysis.live_bytes
            for analysis, source in zip(analyses, sources, strict=True)
            if not source.has_ended
        )
        pieces = [
            analysis.replay(events) if events else None
            for analysis, events in zip(analyses, windows, strict=True)
        ]
        ending = [source.ends_by(until) for source in sources]
        window = _Window.of(analyses, windows, pieces, ending)
        best = window.keep_higher(analyses, pieces, [source.has_ended for source in sources], before, best)
        for source, end in zip(sources, ending, strict=True):
            source.has_ended = source.has_ended or end is not None


@dataclass(frozen=True, eq=False)
class _Window(Columns):
    """All changes of the heaps within a window, in the order of time.

    :ivar time: nanoseconds. :ivar change: bytes. :ivar owner: number of the process; for the end of process
        i of n it is n + i.
    """

    time: Ints
    change: Ints
    owner: Ints

    @classmethod
    def of(
        cls,
        analyses: Sequence[Analysis],
        windows: Sequence[Events | None],
        pieces: Sequence[Piece | None],
        ending: Sequence[int | None],
    ) -> _Window:
        """The changes by events and by the ends of processes."""
        # Ends come after the events: the sort is stable, so that at one moment a process ends last.
        count = len(windows)
        times = [_ascending(events.time) for events in windows if events]
        changes = [piece.change for piece in pieces if piece]
        owners = [np.repeat(np.arange(count), [len(events) if events else 0 for events in windows])]
        ended = [(number, end) for number, end in enumerate(ending) if end is not None]
        times.append(np.array([end for _, end in ended], np.int64))
        changes.append(np.array([-analyses[number].live_bytes for number, _ in ended], np.int64))
        owners.append(np.array([count + number for number, _ in ended], np.int64))
        whole = cls(*map(np.concatenate, (times, changes, owners)))
        order = np.argsort(whole.time, kind="stable")
        return whole.where(order)

    def keep_higher(
        self,
        analyses: Sequence[Analysis],
        pieces: Sequence[Piece | None],
        has_ended: Sequence[bool],
        before: int,
        best: int,
    ) -> int:
        """Keep the largest heap of the window as the peak if it is above `best`; return the larger of both.

        :param has_ended: which processes ended before the window. :param before: bytes before the window.
        """
        heap = before + np.cumsum(self.change)
        highest = int(np.argmax(heap))
        if int(heap[highest]) <= best:
            return best
        happened = np.bincount(self.owner[: highest + 1], minlength=2 * len(analyses)).tolist()
        time = int(self.time[highest])
        for number, analysis in enumerate(analyses):
            if has_ended[number] or happened[len(analyses) + number]:
                analysis.keep_empty_peak(time)
            else:
                analysis.keep_peak(pieces[number], happened[number] - 1, time)
        return int(heap[highest])


def _ascending(times: Ints) -> Ints:
    """The times made non-decreasing, because threads may record events slightly late."""
    ascending: Ints = np.maximum.accumulate(times)
    return ascending


class _Source:
    """The events of one recording that are read and not replayed yet.

    :ivar last: time of the last one. :ivar has_more: whether the recording may have more.
    :ivar end: returns when the process ended. :ivar has_ended: whether that is before the next window.
    """

    def __init__(self, pieces: Iterator[Events]) -> None:
        self._pieces = pieces
        self._parts: list[Events] = []
        self.last = 0
        self.has_more = True
        self.end: Callable[[], int] = lambda: 0
        self.has_ended = False

    def fill(self, wanted: int) -> None:
        """Read until there are at least so many events, or the recording ends."""
        total = sum(len(events) for events in self._parts)
        while self.has_more and total < wanted:
            events = next(self._pieces, None)
            if events is None:
                self.has_more = False
            elif len(events):
                self._parts.append(events)
                total += len(events)
                self.last = max(self.last, int(events.time.max()))

    def ends_by(self, until: int | None) -> int | None:
        """When the process ended, if that is within the window up to `until`; else None."""
        if self.has_ended or self.has_more or self._parts:
            return None
        end = max(self.last, self.end())
        return end if until is None or end <= until else None

    def take(self, until: int | None) -> Events | None:
        """Remove and return the events up to a time, or all for None; None if there are none."""
        if not self._parts:
            return None
        events = Events.joined(self._parts)
        count = len(events)
        if until is not None:
            count = int(np.searchsorted(_ascending(events.time), until, "right"))
        if count == len(events):
            self._parts = []
            return events
        self._parts = [events.where(slice(count, None)).without_unused_sites()]
        return events.where(slice(0, count)).without_unused_sites() if count else None
