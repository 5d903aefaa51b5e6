"""The rows of all recorded processes in one table, with sites in place of call stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perun.collect.memory.analysis import AllocationEvents, AllocationRows, Analysis, EventBatch
from perun.collect.memory.events import LiveBlockStates
from perun.collect.memory.places import AllocationSite
from perun.native.columns import Bools, Columns, Ints
from perun.native.symboliser import SymbolFrame

_OF_ROWS: Final = ("amount", "events", "peak", "leaked", "leaked_blocks", "temporary", "lifetime")
REACH: Final = ("definitely_lost", "indirectly_lost", "possibly_lost", "still_reachable")
"""Bytes by how they can be reached at the end, in the order of `STATES`; 0 where that is not known."""
SUMS: Final = (*_OF_ROWS, *REACH)
"""Columns that are added up when rows are merged."""


@dataclass(frozen=True, eq=False)
class SiteRows(Columns):
    """The columns of :class:`AllocationRows`, with the numbers of a process and a site in place of the stack.

    Rows are sorted by process, site, subtype and snapshot.
    """

    process: Ints
    site: Ints
    subtype: Ints
    snapshot: Ints
    address: Ints
    amount: Ints
    events: Ints
    peak: Ints
    leaked: Ints
    leaked_blocks: Ints
    temporary: Ints
    lifetime: Ints
    definitely_lost: Ints
    indirectly_lost: Ints
    possibly_lost: Ints
    still_reachable: Ints


@dataclass(frozen=True)
class AllocationTable:
    """Rows, and the sites to which their column `site` refers by position."""

    sites: Sequence[AllocationSite]
    rows: SiteRows

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, kept: Bools) -> AllocationTable:
        """The rows that a mask selects; all sites stay."""
        return AllocationTable(self.sites, self.rows.where(kept))

    def with_sites(self, change: Callable[[int, AllocationSite], AllocationSite]) -> AllocationTable:
        """The table with every site changed; sites that become equal are merged."""
        known: dict[AllocationSite, int] = {}
        numbers = np.array(
            [known.setdefault(change(number, site), len(known)) for number, site in enumerate(self.sites)],
            np.int64,
        )
        return AllocationTable(list(known), _grouped(self.rows.replace(site=numbers[self.rows.site])))

    def coarser(self) -> AllocationTable:
        """The table with snapshots of twice the length."""
        return AllocationTable(self.sites, _grouped(self.rows.replace(snapshot=self.rows.snapshot >> 1)))

    def groups(self) -> Iterable[slice]:
        """The rows by group; those of a group differ only in the snapshot."""
        keys = np.stack([self.rows.process, self.rows.site, self.rows.subtype])
        return _runs(keys)


def table_of(
    processes: Sequence[tuple[AllocationRows, Sequence[AllocationSite | None], int, LiveBlockStates | None]],
) -> AllocationTable:
    """The rows of the processes by site, without the stacks that have no site.

    Memory that the C library keeps until the end does not count as leaked.

    :param processes: for each its rows, the sites of its stacks, how often to double its snapshots, and how
        its live blocks can be reached, if that is known.
    """
    known: dict[AllocationSite, int] = {}
    parts = []
    for number, (rows, sites, doubled, reach) in enumerate(processes):
        of_stack = np.array(
            [-1 if site is None else known.setdefault(site, len(known)) for site in sites], np.int64
        )
        site = of_stack[rows.stack] if len(of_stack) else rows.stack
        kept = site >= 0
        of_libc = np.array([one is not None and one.kept_by_libc for one in sites], np.bool_)[rows.stack]
        rows = rows.replace(
            leaked=np.where(of_libc, 0, rows.leaked), leaked_blocks=np.where(of_libc, 0, rows.leaked_blocks)
        )
        found = SiteRows(
            np.full(len(rows), number, np.int64),
            site,
            rows.subtype,
            rows.snapshot >> doubled,
            rows.address,
            *(getattr(rows, name) for name in _OF_ROWS),
            *(np.where(of_libc, 0, column) for column in _reach(rows, reach)),
        )
        parts.append(found.where(kept))
    return AllocationTable(list(known), _grouped(SiteRows.joined(parts)))


def _reach(rows: AllocationRows, reach: LiveBlockStates | None) -> Ints:
    """Bytes of the live blocks of each row by state, shape (states, rows)."""
    sizes = np.zeros((len(REACH), len(rows)), np.int64)
    if reach is not None:
        sizes[:, np.searchsorted(rows.key, reach.keys)] = reach.sizes
    return sizes


def _grouped(rows: SiteRows) -> SiteRows:
    """One row for each process, site, subtype and snapshot: the first address, and the sums of the others."""
    order = np.lexsort((rows.snapshot, rows.subtype, rows.site, rows.process))
    keys = np.stack([rows.process, rows.site, rows.subtype, rows.snapshot])[:, order]
    starts = np.array([run.start for run in _runs(keys)], np.int64)
    if not len(starts):
        return rows
    sums = {name: np.add.reduceat(getattr(rows, name)[order], starts) for name in SUMS}
    # The sort is stable, so that the address of the first row stays.
    return rows.where(order[starts]).replace(**sums)


def _runs(keys: NDArray[np.int64]) -> list[slice]:
    """Ranges of equal columns of `keys`, of shape (n, rows)."""
    size = keys.shape[1]
    if not size:
        return []
    changes = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
    edges = [0, *changes.tolist(), size]
    return [slice(begin, end) for begin, end in pairwise(edges)]


# -- fitting a table into a file -----------------------------------------------------------------------------

OTHERS: Final = SymbolFrame("others", "unreachable", 0)
"""The uid of the sum of all sites that are too small to be listed."""
# Bytes of indented JSON: of a group without its trace and columns, of a frame without its names, of a row.
_GROUP_SIZE: Final = 560
_FRAME_SIZE: Final = 105
_ROW_SIZE: Final = 62


def fitted(
    table: AllocationTable, size: int, *, coarser: bool, shorter: bool
) -> tuple[AllocationTable, int, int]:
    """Shrink the table to about `size` bytes of JSON, by longer snapshots and shorter traces.

    Rows get half of the size: the length of snapshots is doubled until they fit. Traces get the rest: the
    sites with the smallest amounts lose their traces first, and are then merged into one.

    :param coarser: whether snapshots may become longer. :param shorter: whether traces may become shorter.
    :returns: the table, how often the length of snapshots was doubled, and the number of sites whose trace
        was shortened.
    """
    doubled = 0
    while coarser and len(table) * _ROW_SIZE > size // 2 and int(table.rows.snapshot.max()) > 0:
        table, doubled = table.coarser(), doubled + 1
    if not shorter or not len(table):
        return table, doubled, 0
    group_sites = [int(table.rows.site[run.start]) for run in table.groups()]
    groups = np.bincount(group_sites, minlength=len(table.sites))
    weights = np.zeros(len(table.sites), np.int64)
    for name in ("amount", "peak", "leaked"):
        np.add.at(weights, table.rows.site, getattr(table.rows, name))
    order = np.argsort(-weights, kind="stable").tolist()
    used = len(table) * _ROW_SIZE
    full, places, short = set[int](), set[SymbolFrame](), 0
    for number in order:
        site, count = table.sites[number], int(groups[number])
        cost = count * (_GROUP_SIZE + sum(map(_frame_size, site.trace)))
        if used + cost <= size * 3 // 4:
            used += cost
            full.add(number)
            continue
        short += 1
        cost = count * (_GROUP_SIZE + _frame_size(site.uid))
        if site.uid not in places and used + cost <= size:
            used += cost
            places.add(site.uid)

    def change(number: int, site: AllocationSite) -> AllocationSite:
        if number in full:
            return site
        uid = site.uid if site.uid in places else OTHERS
        return AllocationSite(uid, (uid,))  # table_of has subtracted the memory kept by the C library already

    return (table.with_sites(change) if short else table), doubled, short


def _frame_size(frame: SymbolFrame) -> int:
    return _FRAME_SIZE + len(frame.function) + len(frame.source)


# Finds the joint peak of several processes: the moment at which all their heaps together are largest.
#
# The peaks of processes that run one after the other do not add up. So this replays their events side by
# side, in windows of time for which all recordings are read, and finds the largest heap of each window.

AT_A_TIME = 1 << 18
"""How many events of each process are replayed at once."""


def replay(
    analyses: Sequence[Analysis],
    recordings: Sequence[Iterable[AllocationEvents]],
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
        windows: Sequence[AllocationEvents | None],
        pieces: Sequence[EventBatch | None],
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
        pieces: Sequence[EventBatch | None],
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

    def __init__(self, pieces: Iterator[AllocationEvents]) -> None:
        self._pieces = pieces
        self._parts: list[AllocationEvents] = []
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

    def take(self, until: int | None) -> AllocationEvents | None:
        """Remove and return the events up to a time, or all for None; None if there are none."""
        if not self._parts:
            return None
        events = AllocationEvents.joined(self._parts)
        count = len(events)
        if until is not None:
            count = int(np.searchsorted(_ascending(events.time), until, "right"))
        if count == len(events):
            self._parts = []
            return events
        self._parts = [events.where(slice(count, None)).without_unused_sites()]
        return events.where(slice(0, count)).without_unused_sites() if count else None
