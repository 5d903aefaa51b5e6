"""The timeline of a run in at most so many entries: calls that follow closely become one entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from perun.profile.island import COLUMNS, NO_OBJECT, SEVERAL, Api, Entry, Thread, Timeline

if TYPE_CHECKING:
    from perun.island.opening import Recorded

MAX_STOPS: Final = 10_000
"""Stops that a timeline has at most; of more those that are near become one."""

_FIRST_GAP: Final = 1_000
"""Nanoseconds between two calls that are joined first."""
_STEP: Final = 4
_OF_SEVERAL: Final = 1_000_000
"""Nanoseconds from which on calls are joined whatever their object: a screen has no thousand points for a
second."""


class Joined:
    """Takes calls in the order of their starts and keeps at most so many entries of them.

    A call belongs to the entry before it of the same thread, function and object if it starts within a gap
    after that. The gap is 0 at first, and grows whenever there are twice as many entries as there may be:
    then those that there are are joined again. So its memory does not depend on the number of calls.

    :ivar calls: how many calls the entries stand for.
    :ivar gap: nanoseconds; two calls that are farther apart are two entries.
    """

    def __init__(self, most: int) -> None:
        """:param most: how many entries there may be, unless there are more threads and functions."""
        self._most = max(most, 1)
        self._entries: list[Entry] = []
        self._last: dict[tuple[int, int, int], int] = {}
        self.calls = 0
        self.gap = 0

    def add(self, entries: Iterable[Entry]) -> None:
        """Take more calls, or entries of several, with starts that do not decrease."""
        for entry in entries:
            self._add(entry)
            self.calls += entry.calls
            if len(self._entries) > 2 * self._most:
                self._coarsen()

    def entries(self) -> list[Entry]:
        """The entries in the order of threads and starts."""
        while len(self._entries) > self._most and self._coarsen():
            pass
        return sorted(self._entries, key=lambda entry: (entry.thread, entry.start, -entry.duration))

    def _add(self, entry: Entry) -> None:
        if self.gap >= _OF_SEVERAL:
            key = (entry.thread, entry.api, SEVERAL)
        else:
            key = (entry.thread, entry.api, entry.object)
        place = self._last.get(key)
        if place is not None and self.gap:
            before = self._entries[place]
            end = before.start + before.duration
            if entry.start - end <= self.gap:
                self._entries[place] = _together(before, entry)
                return
        self._last[key] = len(self._entries)
        self._entries.append(entry)

    def _coarsen(self) -> bool:
        """Join the entries anew with a longer gap; whether there may be fewer."""
        if self.gap >= _OF_SEVERAL and len(self._entries) <= len(self._last):
            return False
        self.gap = self.gap * _STEP or _FIRST_GAP
        entries, self._entries, self._last = self._entries, [], {}
        for entry in entries:
            self._add(entry)
        return True


def _together(one: Entry, other: Entry) -> Entry:
    end = max(one.start + one.duration, other.start + other.duration)
    return Entry(
        one.thread,
        one.api,
        one.object if one.object == other.object else SEVERAL,
        one.start,
        end - one.start,
        one.busy + other.busy,
        one.amount + other.amount,
        one.calls + other.calls,
    )


def timeline_region(opened: Recorded, most: int, shown: Callable[[str], str]) -> dict[str, Any]:
    """The region `timeline` of a profile.

    :param most: about how many entries it has at most. :param shown: how an object is named.
    """
    apis: dict[Any, int] = {}
    objects: dict[str, int] = {}
    joined = Joined(most)
    joined.add(
        Entry(
            span.thread,
            apis.setdefault(span.api, len(apis)),
            objects.setdefault(span.object, len(objects)) if span.object else NO_OBJECT,
            span.start,
            span.end - span.start,
            span.end - span.start,
            span.amount,
            span.calls,
        )
        for span in opened.spans()
    )
    entries = joined.entries()
    columns = dict(zip(COLUMNS, map(list, zip(*entries, strict=True)), strict=True)) if entries else {}
    return Timeline(
        round(opened.live * 1e9),
        opened.processes,
        [Thread(lane.name, lane.process, lane.created, lane.destroyed) for lane in opened.lanes],
        [Api(api.name, api.type, api.subtype, "ns" if api.unit == "s" else api.unit) for api in apis],
        list(map(shown, objects)),
        columns or {name: [] for name in COLUMNS},
        _stops(opened.stops),
        joined.calls,
    ).as_region()


def _stops(stops: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Starts and durations; of very many stops those that are near become one."""
    joined = Joined(MAX_STOPS)
    joined.add(Entry(0, 0, NO_OBJECT, start, end - start, end - start, 0, 1) for start, end in stops)
    return [(one.start, one.duration) for one in joined.entries()]
