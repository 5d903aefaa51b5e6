"""Replays the events of a run in batches and constant memory, to find how its heap develops.

Sorting a batch by address puts each block next to the event that releases it, so that no loop goes over
events. Blocks that a batch does not release stay in the table of live blocks for the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from perun.collect.memory.events import REALLOC_RELEASE, LiveBlocks
from perun.native.columns import Bools, Columns, Ints

_NEVER: Final = np.iinfo(np.int64).max
# The key of a row is one number: the stack in the high bits, 8 bits of subtype, and 24 bits of snapshot.
_STACK_SHIFT: Final = 32
_SUBTYPE_SHIFT: Final = 24
LAST_SNAPSHOT: Final = (1 << _SUBTYPE_SHIFT) - 1
"""The largest number of a snapshot."""
_PENDING_ROWS: Final = 1 << 20
_EVENTS_AT_A_TIME: Final = 1 << 18


@dataclass(frozen=True, eq=False)
class AllocationEvents(Columns):
    """Events in the order of time; columns of shape (n,), but for the sites.

    A site is a pair of a call stack and a subtype; each event is at one site.

    :param stacks: of each site its call stack, shape (sites,). :param subtypes: likewise its kind of events.
    :param site: position of the site. :param size: requested bytes, 0 for a release.
    :param releases: whether the event releases the block at `address`; otherwise it allocates one.
    :param thread: number of the thread. :param time: nanoseconds since the start of the run.
    """

    stacks: Ints
    subtypes: Ints
    site: Ints
    releases: Bools
    address: Ints
    size: Ints
    thread: Ints
    time: Ints

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def joined(cls, tables: Sequence[Self]) -> Self:
        """The events of all tables, one table after the other, with the sites of all."""
        before = np.cumsum([0, *(len(table.stacks) for table in tables)])
        shifted = [
            table.replace(site=table.site + shift) if shift else table
            for table, shift in zip(tables, before[:-1].tolist(), strict=True)
        ]
        return super().joined(shifted)

    def where(self, rows: Any) -> Self:
        """The events that a mask, an array of positions or a slice selects; all sites stay."""
        return self.replace(**{name: getattr(self, name)[rows] for name in self.names()[2:]})

    def without_unused_sites(self) -> Self:
        """The same events, without the sites at which none of them is."""
        used, site = np.unique(self.site, return_inverse=True)
        return self.replace(
            stacks=self.stacks[used], subtypes=self.subtypes[used], site=site.astype(np.int64)
        )


@dataclass(frozen=True, eq=False)
class AllocationRows(Columns):
    """Events grouped by stack, subtype and snapshot: a row each, sorted by key; columns of shape (rows,).

    `amount` is bytes, `events` the number of events, `address` that of the first one. `peak` and `leaked` are
    the bytes that were live at the peak and at the end, in `leaked_blocks` blocks. `temporary` is the number
    of blocks that were released before their thread allocated another one. `lifetime` is the sum of the
    lifetimes of the blocks in nanoseconds.
    """

    key: Ints
    amount: Ints
    events: Ints
    address: Ints
    peak: Ints
    leaked: Ints
    leaked_blocks: Ints
    temporary: Ints
    lifetime: Ints

    @property
    def stack(self) -> Ints:
        """Number of the call stack of each row."""
        return self.key >> _STACK_SHIFT

    @property
    def subtype(self) -> Ints:
        """Number of the subtype of each row."""
        return (self.key >> _SUBTYPE_SHIFT) & 0xFF

    @property
    def snapshot(self) -> Ints:
        """Number of the snapshot of each row."""
        return self.key & LAST_SNAPSHOT


class HeapTotals(NamedTuple):
    """The whole heap: bytes, numbers of blocks, and times in nanoseconds since the start.

    :param allocated: the sum of all allocations. :param peak: size of the heap when it was largest, at
        `peak_time`, after the event at position `peak_event`.
    :param leaked: bytes that were live at the end.
    :param unknown_releases: number of releases of blocks whose allocation was not recorded.
    """

    events: int
    allocations: int
    releases: int
    allocated: int
    peak: int
    peak_time: int
    peak_event: int
    leaked: int
    leaked_blocks: int
    temporary: int
    unknown_releases: int
    last_time: int


class SingleEvents(NamedTuple):
    """Every event in the order of time; `ended_by` is the position of the event that ended its block."""

    events: AllocationEvents
    ended_by: Ints
    temporary: Bools


@dataclass(frozen=True, eq=False)
class _Live(Columns):
    """Live blocks; `order` is the position of the allocating event among all events."""

    address: Ints
    size: Ints
    key: Ints
    time: Ints
    order: Ints
    thread: Ints
    next: Ints  # position of the next allocation of the same thread; _NEVER if there is none yet


class Analysis:
    """Adds up the events of a run, which come in batches, to rows and totals.

    :param interval: length of a snapshot in nanoseconds. :param max_snapshots: if there would be more, the
        interval is doubled, as often as needed; 0 for never.
    :param keep: also keep every single event, which needs memory for each.
    """

    def __init__(self, interval: int, max_snapshots: int = 0, *, keep: bool = False) -> None:
        self.interval = max(1, interval)
        self._max_snapshots = min(max_snapshots or LAST_SNAPSHOT, LAST_SNAPSHOT)
        self._live = _Live.empty()
        self._parts: list[NDArray[np.int64]] = []
        self._pending = 0
        self._peak_part = np.empty((_FIELDS, 0), np.int64)
        self._order = 0
        self.live_bytes = 0
        self._sums = dict.fromkeys(("allocations", "allocated", "temporary", "unknown_releases"), 0)
        self._peak = (0, 0, -1)  # bytes, time, position of the event
        self._last_time = 0
        self._keep = keep
        self._kept: list[AllocationEvents] = []
        self._pairs: list[tuple[Ints, Ints, Ints]] = []  # see Piece.pairs
        self._waiting: list[AllocationEvents] = []
        self._waiting_events = 0

    @property
    def live_blocks(self) -> int:
        """The number of live blocks."""
        return len(self._live.size)

    def add(self, events: AllocationEvents) -> None:
        """Add the next events."""
        if len(events):
            self._waiting.append(events)
            self._waiting_events += len(events)
            # Each replay sorts all live blocks, too. Batches as large as their number keep the total linear.
            if self._waiting_events >= max(_EVENTS_AT_A_TIME, len(self._live.size)):
                self._replay()

    def _replay(self) -> None:
        if not self._waiting:
            return
        events = AllocationEvents.joined(self._waiting)
        self._waiting, self._waiting_events = [], 0
        piece = self.replay(events)
        highest = int(np.argmax(piece.heap))
        if int(piece.heap[highest]) > self._peak[0]:
            self.keep_peak(piece, highest, int(events.time[highest]))

    def replay(self, events: AllocationEvents) -> EventBatch:
        """Replay events without looking for the peak, which the caller has to find and keep.

        :param events: at least one. Large batches are faster, because each replay sorts all live blocks.
        """
        self._last_time = max(self._last_time, int(events.time.max()))
        while self._last_time // self.interval >= self._max_snapshots:
            self._double_interval()
        snapshots = events.time // self.interval
        places = (events.stacks << _STACK_SHIFT) | (events.subtypes << _SUBTYPE_SHIFT)
        keys = places[events.site] | snapshots
        piece = EventBatch(events, self._live, self._order, keys, self.live_bytes)
        self._collect(events, piece, snapshots)
        self._live = piece.live_after()
        self._order += len(events)
        self.live_bytes = int(piece.heap[-1])
        if self._keep:
            self._kept.append(events)
            self._pairs.append(piece.pairs())
        return piece

    def keep_peak(self, piece: EventBatch | None, position: int, time: int) -> None:
        """Keep the heap after an event of the last replayed piece as the peak.

        :param piece: None if nothing has happened since the last piece. :param position: of the event in the
            piece; -1 for before its first event. :param time: nanoseconds since the start of the run.
        """
        if piece is None:
            heap, event, keys, sizes = self.live_bytes, self._order - 1, self._live.key, self._live.size
        else:
            heap, event = piece.heap_after(position), piece.start + position
            keys, sizes = piece.live_at(event)
        self._peak = heap, time, event
        self._peak_part = _summed([_part(keys, peak=sizes)])

    def keep_empty_peak(self, time: int) -> None:
        """Keep an empty heap as the peak: the process has ended when the heap of all processes is largest."""
        self._peak = 0, time, -1
        self._peak_part = np.empty((_FIELDS, 0), np.int64)

    def rows(self) -> AllocationRows:
        """The rows of all events. No events can be added afterwards."""
        self._replay()
        live = self._live
        self._append(
            _part(
                live.key,
                leaked=live.size,
                leaked_blocks=np.ones_like(live.size),
                lifetime=np.maximum(self._last_time - live.time, 0),
            )
        )
        self._parts.append(self._peak_part)
        self._consolidate()
        return AllocationRows(*self._parts[0])

    def totals(self) -> HeapTotals:
        """The totals of all events so far."""
        self._replay()
        return HeapTotals(
            events=self._order,
            releases=self._order - self._sums["allocations"],
            **dict(zip(("peak", "peak_time", "peak_event"), self._peak, strict=True)),
            leaked=int(self._live.size.sum()),
            leaked_blocks=len(self._live.size),
            last_time=self._last_time,
            **self._sums,
        )

    def live(self) -> LiveBlocks:
        """The blocks that are live after all events so far."""
        self._replay()
        return LiveBlocks(self._live.address, self._live.size, self._live.key)

    def single_events(self) -> SingleEvents:
        """Every event so far; only with `keep`."""
        self._replay()
        events = AllocationEvents.joined(self._kept)
        ended_by = np.full(len(events), -1, np.int64)
        temporary = np.zeros(len(events), np.bool_)
        for allocating, ending, short in self._pairs:
            ended_by[allocating] = ending
            temporary[short] = True
        return SingleEvents(events, ended_by, temporary)

    def _collect(self, events: AllocationEvents, piece: EventBatch, snapshots: Ints) -> None:
        """Add the events of a piece to the sums and rows."""
        allocates = ~events.releases
        temporary = piece.temporary
        self._sums["allocations"] += int(allocates.sum())
        self._sums["allocated"] += int(events.size[allocates].sum())
        self._sums["temporary"] += int(temporary.sum())
        self._sums["unknown_releases"] += piece.unknown_releases
        # Counting by small codes of site and snapshot is faster than sorting by keys. If the codes are many
        # more than the events, they are made dense first.
        first = int(snapshots.min())
        width = int(snapshots.max()) - first + 1
        codes = events.site * width + (snapshots - first)
        if len(events.stacks) * width > 4 * max(len(events), _EVENTS_AT_A_TIME):
            codes = np.unique(codes, return_inverse=True)[1]
        size = int(codes.max()) + 1
        here = piece.is_released_here
        codes_here = codes[piece.released_here]
        part = np.zeros((_FIELDS, size), np.int64)
        row = dict(zip(AllocationRows.names(), part, strict=True))
        row["key"][codes] = piece.event_keys
        row["amount"][:] = _summed_by(codes, events.size, size)
        row["events"][:] = np.bincount(codes, minlength=size)
        row["address"][codes[::-1]] = events.address[::-1]  # the last assignment wins: the first address
        row["temporary"][:] = np.bincount(codes_here, weights=temporary[here], minlength=size)
        row["lifetime"][:] = _summed_by(codes_here, piece.lifetimes[here], size)
        self._append(part[:, row["events"] > 0])
        self._append(
            _part(
                piece.released.key[~here],
                temporary=temporary[~here].astype(np.int64),
                lifetime=piece.lifetimes[~here],
            )
        )

    def _append(self, part: NDArray[np.int64]) -> None:
        part = _summed([part])
        self._parts.append(part)
        self._pending += part.shape[1]
        if self._pending > _PENDING_ROWS:
            self._consolidate()
            self._pending = self._parts[0].shape[1] // 2  # so that consolidating stays linear overall

    def _consolidate(self) -> None:
        self._parts = [_summed(self._parts)]

    def _double_interval(self) -> None:
        self.interval *= 2
        self._parts = [_summed([_halved(part)]) for part in self._parts]
        self._peak_part = _summed([_halved(self._peak_part)])
        self._live.key[:] = _halved_keys(self._live.key)


_FIELDS: Final = len(AllocationRows.names())
_ADDRESS: Final = AllocationRows.names().index("address")


def _summed_by(codes: Ints, values: Ints, size: int) -> Ints:
    """The sum of the values of each code, exact below 2^53."""
    return np.bincount(codes, weights=values, minlength=size).astype(np.int64)


def _part(keys: Ints, **fields: Ints) -> NDArray[np.int64]:
    part = np.zeros((_FIELDS, len(keys)), np.int64)
    part[0] = keys
    for name, values in fields.items():
        part[AllocationRows.names().index(name)] = values
    return part


def _summed(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """All parts as one, sorted, with one column for each key; the first address that is not 0 stays."""
    whole = np.concatenate(parts, axis=1) if len(parts) != 1 else parts[0]
    if not whole.shape[1]:
        return whole
    order = np.argsort(whole[0], kind="stable")
    whole = whole[:, order]
    starts = np.flatnonzero(np.r_[True, whole[0, 1:] != whole[0, :-1]])
    summed = np.add.reduceat(whole, starts, axis=1)
    summed[0] = whole[0, starts]
    summed[_ADDRESS] = _first_set(whole[_ADDRESS], starts)
    return summed


def _first_set(values: Ints, starts: Ints) -> Ints:
    positions = np.where(values != 0, np.arange(len(values)), len(values))
    first = np.minimum.reduceat(positions, starts)
    return np.where(first < len(values), values[np.minimum(first, len(values) - 1)], 0)


def _halved_keys(keys: Ints) -> Ints:
    return (keys & ~LAST_SNAPSHOT) | ((keys & LAST_SNAPSHOT) >> 1)


def _halved(part: NDArray[np.int64]) -> NDArray[np.int64]:
    halved = part.copy()
    halved[0] = _halved_keys(part[0])
    return halved


class EventBatch:
    """A batch of events together with the blocks that were live before it.

    In `_all` the live blocks come first, then the events; `_end` is the position of the event that ends each
    block, or :data:`_NEVER`.

    :ivar start: position of the first event among all events.
    :ivar is_released_here: which of the released blocks were also allocated in this piece.
    :ivar released_here: positions in the piece of the events that allocated those.
    :ivar change: bytes by which each event changes the heap. :ivar heap: bytes after each event.
    """

    def __init__(
        self, events: AllocationEvents, live: _Live, start: int, keys: Ints, live_bytes: int
    ) -> None:
        self.event_keys = keys
        self.start = start
        self._bytes_before = live_bytes
        count, before = len(events), len(live.address)
        order = np.arange(start, start + count)
        known_before, known_here = _next_allocations(events, live, order)
        here = _Live(events.address, events.size, keys, events.time, order, events.thread, known_here)
        self._all = _Live.joined([live.replace(next=known_before), here])
        is_block = np.concatenate([np.ones(before, np.bool_), ~events.releases])
        # Sorted by address and then by time, each block is directly before the event that ends it.
        by_address = np.argsort(self._all.address, kind="stable")
        first, second = by_address[:-1], by_address[1:]
        same = (self._all.address[first] == self._all.address[second]) & is_block[first]
        blocks, enders = first[same], second[same]
        self._end = np.full(before + count, _NEVER, np.int64)
        self._end[blocks] = self._all.order[enders]
        self._ended = blocks, enders
        # An allocation at a live address means that its release was not recorded; it ends the block too.
        is_release = ~is_block[enders]
        self._released, self._releasing = blocks[is_release], enders[is_release]
        self._is_block = is_block
        self.is_released_here = self._released >= before
        self.released_here = self._released[self.is_released_here] - before
        self.unknown_releases = int(events.releases.sum()) - len(self._released)
        self.change = np.where(events.releases, 0, events.size)
        np.subtract.at(self.change, enders - before, self._all.size[blocks])
        self.heap = live_bytes + np.cumsum(self.change)

        self.released = self._all.where(self._released)
        """The blocks that events of this piece release."""
        self.lifetimes = np.maximum(self._all.time[self._releasing] - self.released.time, 0)
        """Lifetimes of the released blocks in nanoseconds."""
        kind = events.subtypes[events.site[self._releasing - before]]
        is_last = self.released.next > self._all.order[self._releasing]
        self.temporary = is_last & (kind != REALLOC_RELEASE)
        """Which of the released blocks were the latest allocation of their thread; realloc does not count."""

    def pairs(self) -> tuple[Ints, Ints, Ints]:
        """Positions of allocating events, of the events that end their blocks, and of temporary blocks."""
        order = self._all.order
        blocks, enders = self._ended
        return order[blocks], order[enders], order[self._released[self.temporary]]

    def heap_after(self, position: int) -> int:
        """Bytes that are live after the event at this position of the piece; -1 for before the first one."""
        return int(self.heap[position]) if position >= 0 else self._bytes_before

    def live_at(self, order: int) -> tuple[Ints, Ints]:
        """Keys and sizes of the blocks that are live just after the event at this position of all events."""
        live = self._is_block & (self._all.order <= order) & (self._end > order)
        return self._all.key[live], self._all.size[live]

    def live_after(self) -> _Live:
        """The blocks that are live after the piece."""
        return self._all.where(np.flatnonzero(self._is_block & (self._end == _NEVER)))


def _next_allocations(events: AllocationEvents, live: _Live, order: Ints) -> tuple[Ints, Ints]:
    """For each live block and for each event the position of the next allocation of its thread."""
    allocating = np.flatnonzero(~events.releases)
    by_thread = allocating[np.argsort(events.thread[allocating], kind="stable")]
    threads = events.thread[by_thread]
    after = np.full(len(order), _NEVER, np.int64)
    same = threads[:-1] == threads[1:]
    after[by_thread[:-1][same]] = order[by_thread[1:][same]]
    before = live.next.copy()
    if len(threads):
        firsts = np.flatnonzero(np.r_[True, ~same])
        place = np.minimum(np.searchsorted(threads[firsts], live.thread), len(firsts) - 1)
        known = (before == _NEVER) & (threads[firsts][place] == live.thread)
        before[known] = order[by_thread[firsts[place[known]]]]
    return before, after
