"""Finds the joint peak of several processes: the moment at which all their heaps together are largest.

The peaks of processes that run one after the other do not add up. So their events are replayed side by side,
in windows of time that are complete in all recordings; the largest heap is looked for in each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from perun.collect._common.columns import Columns, Ints
from perun.collect.memory.analysis import Analysis, Events, Piece

AT_A_TIME = 1 << 18
"""Events of each process that are replayed at once, where there are as many."""


def replay(
    analyses: Sequence[Analysis],
    recordings: Sequence[Iterable[Events]],
    ends: Sequence[Callable[[], int]] = (),
) -> None:
    """Replay the events of each recording by its analysis; the peak of each is the joint one.

    :param recordings: times are of one clock, and begin with that of the first event of all.
    :param ends: by the same clock, when each process ended and its memory was gone; asked for once its events
        were read. Without them it is the last event of each.
    """
    sources = [_Source(iter(recording)) for recording in recordings]
    for source, ended_at in zip(sources, ends, strict=False):
        source.end = ended_at
    best = 0
    while True:
        for source, analysis in zip(sources, analyses, strict=True):
            source.fill(max(AT_A_TIME, analysis.live_blocks))
        # No recording can still yield an event before this time.
        until = min((source.last for source in sources if source.goes_on), default=None)
        windows = [source.taken(until) for source in sources]
        if not any(windows):
            return
        before = sum(
            analysis.live_bytes
            for analysis, source in zip(analyses, sources, strict=True)
            if not source.gone
        )
        pieces = [
            analysis.replay(events) if events else None
            for analysis, events in zip(analyses, windows, strict=True)
        ]
        ending = [source.ends_by(until) for source in sources]
        window = _Window.of(analyses, windows, pieces, ending)
        best = window.keep_higher(analyses, pieces, [source.gone for source in sources], before, best)
        for source, end in zip(sources, ending, strict=True):
            source.gone = source.gone or end is not None


@dataclass(frozen=True, eq=False)
class _Window(Columns):
    """What changed the heaps, in the order of time.

    :ivar time: when. :ivar change: bytes. :ivar owner: number of the process; what ends a process has that
        number plus their number.
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
        """Events first, so that of what is at one moment a process ends last."""
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
        gone: Sequence[bool],
        before: int,
        best: int,
    ) -> int:
        """Keep the largest heap of the window as the peak where it is above `best`; the higher of both."""
        heap = before + np.cumsum(self.change)
        highest = int(np.argmax(heap))
        if int(heap[highest]) <= best:
            return best
        happened = np.bincount(self.owner[: highest + 1], minlength=2 * len(analyses)).tolist()
        time = int(self.time[highest])
        for number, analysis in enumerate(analyses):
            if gone[number] or happened[len(analyses) + number]:
                analysis.keep_empty_peak(time)
            else:
                analysis.keep_peak(pieces[number], happened[number] - 1, time)
        return int(heap[highest])


def _ascending(times: Ints) -> Ints:
    """The times as a sequence that never decreases: threads may record their events slightly late."""
    ascending: Ints = np.maximum.accumulate(times)
    return ascending


class _Source:
    """The events of one recording that were read and not yet replayed.

    :ivar last: time of the last one. :ivar goes_on: whether there may be more in the recording.
    :ivar end: when the process ended. :ivar gone: whether that is before what is replayed next.
    """

    def __init__(self, pieces: Iterator[Events]) -> None:
        self._pieces = pieces
        self._parts: list[Events] = []
        self.last = 0
        self.goes_on = True
        self.end: Callable[[], int] = lambda: 0
        self.gone = False

    def fill(self, enough: int) -> None:
        """Read so many events, where there are as many."""
        total = sum(len(events) for events in self._parts)
        while self.goes_on and total < enough:
            events = next(self._pieces, None)
            if events is None:
                self.goes_on = False
            elif len(events):
                self._parts.append(events)
                total += len(events)
                self.last = max(self.last, int(events.time.max()))

    def ends_by(self, until: int | None) -> int | None:
        """When the process ended, where that is in the window that was taken; None otherwise."""
        if self.gone or self.goes_on or self._parts:
            return None
        end = max(self.last, self.end())
        return end if until is None or end <= until else None

    def taken(self, until: int | None) -> Events | None:
        """Take out the events up to that time, all of them where it is None; None where there are none."""
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
