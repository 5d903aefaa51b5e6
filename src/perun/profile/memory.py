"""Memory profiles: which resources are allocations, which release memory, and which sum others up.

A resource of the collector `memory` stands for allocations or releases. Further ones sum up a function or
the program: their subtype is a part of their uid (`list.c:push:peak`). What adds resources up must leave
these out, or it counts every byte several times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core.errors import ProfileError
from perun.profile.uid import flatten

if TYPE_CHECKING:
    from perun.profile.format.core import Profile


RELEASES: Final = frozenset({"free", "delete", "delete[]"})
"""Subtypes of the resources that release memory."""
SUMMARIES: Final = frozenset({"allocated", "allocations", "peak", "leaked", "temporary", "lost"})
"""Subtypes of the resources that sum others up."""
SIZES: Final = frozenset(
    {"peak", "leaked", "definitely-lost", "indirectly-lost", "possibly-lost", "still-reachable"}
)
"""Fields of resources that are parts of their `amount`, so that they have its unit."""
LEFT_OUT: Final = "left-out"
"""Key of the region `memory`: totals of what the options of the collector left out of the resources."""


def is_summary(resource: Mapping[str, Any]) -> bool:
    """Whether a resource, or the fields that a group of them shares, sums up other resources."""
    uid = resource.get("uid")
    return isinstance(uid, Mapping) and flatten(resource.get("subtype")) in SUMMARIES and "memory" in uid


def is_release(resource: Mapping[str, Any]) -> bool:
    """Whether a resource, or the fields that a group of them shares, releases memory."""
    return flatten(resource.get("subtype")) in RELEASES


class AllocationTotals(NamedTuple):
    """What a run allocated: sizes in the unit of the profile, numbers of blocks, and the time in seconds.

    `peak` is the largest size of the heap, at `peak_time`; `leaked` was never released.
    """

    peak: float
    peak_time: float
    leaked: float
    leaked_blocks: float
    allocated: float
    allocations: float
    temporary: float


def totals(profile: Profile) -> AllocationTotals | None:
    """The totals of a memory profile, which its resources add up to; None where the profile does not have
    them, as those of older releases."""
    run = profile.get("memory")
    if not isinstance(run, Mapping) or "peak" not in run:
        return None
    names = ("peak", "peak-time", "leaked", "leaked-blocks", "allocated", "allocations", "temporary")
    return AllocationTotals(*(number_of(run.get(name, 0)) or 0.0 for name in names))


def notes(profile: Profile) -> list[str]:
    """What the collector could not find out, e.g. the names of functions, in sentences for the reader."""
    run = profile.get("memory")
    found = run.get("notes") if isinstance(run, Mapping) else None
    return [str(note) for note in found] if isinstance(found, (list, tuple)) else []


def number_of(value: Any) -> float | None:
    """The value as a float; None if it is not a finite number."""
    try:
        number = float(value) if isinstance(value, (int, float)) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


# Memory profiles as maps of the heap: what lies where in each snapshot, and where most was allocated.
#
# Where resources are single events (`--raw`, other tools) a chunk of memory is a block, and a snapshot is
# what is allocated at its end. Resources within a snapshot have no order, unless they say it (`order`), so
# memory at an address counts as allocated where it was allocated more often than released up to then; the
# last allocation is what is there.
#
# Where a resource sums up the blocks of a call stack (`count`), a chunk is what such a resource says of them:
# the bytes that were live at the peak, from its snapshot to the peak, and those that were never released,
# from then on. They are drawn from the address of the first block on. What lived in between is not known.
#
# A profile that knows what was live at the peak has one snapshot more than its resources: the heap at that
# moment, so that the largest snapshot is the peak that the profile tells.

CELLS: Final = 1 << 16
"""Most cells of a heat map: a heap of more addresses has several of them in one cell."""


def to_heap_map_format(profile: Profile) -> dict[str, Any]:
    """What is allocated at which address in each snapshot, for the heap map.

    `stats` has the extremes of the amounts, sums and addresses of all snapshots; a maximal address is that
    of the last byte.

    :raises ProfileError: if no resource has an address and an amount that are whole numbers.
    """
    found = lifetimes(profile)
    maps: list[list[dict[str, Any]]] = [[] for _ in found.times]
    for chunk in sorted(found.chunks):
        for number in range(chunk.first, chunk.end):
            maps[number].append(
                {
                    "address": chunk.address,
                    "amount": chunk.amount,
                    "uid": chunk.site,
                    "subtype": chunk.subtype,
                }
            )
    snapshots = [_snapshot(time, here) for time, here in zip(found.times, maps, strict=True)]
    return {
        "type": "heap",
        "unit": _unit(profile),
        "stats": _extremes(snapshots),
        "info": [dict(zip(("line", "function", "source"), site, strict=True)) for site in found.sites],
        "snapshots": snapshots,
    }


def to_heat_map_format(profile: Profile) -> dict[str, Any]:
    """How often memory was allocated at each address over all snapshots, for the heat map.

    `map` has one number for each cell of `stats.cell_size` addresses, from `stats.min_address` on, so that
    there are at most :data:`CELLS`; it is 1 address if the heap is small enough.

    :raises ProfileError: if no resource has an address and an amount that are whole numbers.
    """
    spans = [_span(event) for _, _, events in _snapshots(profile) for event in events if event.amount]
    first = min((span.address for span in spans), default=0)
    last = max((span.address + span.size - 1 for span in spans), default=first - 1)
    size = -(-(last - first + 1) // CELLS) or 1
    steps = [0] * (-(-(last - first + 1) // size) + 1)
    for span in spans:
        steps[(span.address - first) // size] += span.times
        steps[(span.address + span.size - 1 - first) // size + 1] -= span.times
    return {
        "type": "heat",
        "unit": _unit(profile),
        "stats": {"max_address": max(last, 0), "min_address": first, "cell_size": size},
        "map": list(accumulate(steps))[:-1],
    }


class MemoryChunk(NamedTuple):
    """Memory that is allocated in the snapshots from `first` until before `end`.

    `site` is a position in :attr:`Lifetimes.sites`, snapshots are counted from 0.
    """

    address: int
    amount: int
    site: int
    subtype: str
    first: int
    end: int


class AddressSpan(NamedTuple):
    """Memory at `address` that was allocated `times` times, `size` bytes each time."""

    address: int
    size: int
    times: int


class Lifetimes(NamedTuple):
    """Which memory was allocated in which snapshots, one entry for each chunk of memory.

    :param times: of each snapshot its time, as text.
    :param sites: where memory was allocated: line, function, source.
    :param chunks: what is allocated in some snapshot, in the order of allocation.
    :param spans: where memory was ever allocated.
    :param allocations: number of allocations.
    :param single: whether each chunk is one block; else it stands for blocks of one call stack.
    """

    times: list[str]
    sites: list[tuple[Any, ...]]
    chunks: list[MemoryChunk]
    spans: list[AddressSpan]
    allocations: int
    single: bool


def lifetimes(profile: Profile) -> Lifetimes:
    """What is allocated in each snapshot, in memory linear in the size of the profile.

    :raises ProfileError: if no resource has an address and an amount that are whole numbers.
    """
    snapshots = _snapshots(profile)
    allocating = [event for _, _, events in snapshots for event in events if not event.releases]
    peaks = [place for place, one in enumerate(snapshots) if any(event.peak for event in one[2])]
    times = [time or str(number) for number, time, _ in snapshots]
    if peaks:
        # The allocation that makes the heap largest is live at the peak: that is in the last such snapshot.
        whole = totals(profile)
        times.insert(peaks[-1], f"{whole.peak_time:g}" if whole and whole.peak_time else times[peaks[-1]])
    events = [one for _, _, one in snapshots]
    single = not (peaks and any(event.blocks for event in allocating))
    sites: dict[tuple[Any, ...], int] = {}
    chunks = (
        _blocks(events, sites, peaks[-1] if peaks else -1)
        if single
        else _sums_of_blocks(events, sites, peaks[-1], len(times))
    )
    chunks.sort(key=lambda chunk: (chunk.first, chunk.address))
    spans = [_span(event) for event in allocating if event.amount]
    return Lifetimes(
        times, list(sites), chunks, spans, sum(event.blocks or 1 for event in allocating), single
    )


class _Event(NamedTuple):
    """Memory that is allocated, or released if the amount is 0.

    `peak` and `leaked` are the bytes that were live at the peak and at the end, `blocks` is their number;
    0 where the resource does not say it.
    """

    address: int
    amount: int
    subtype: str
    uid: Any
    releases: bool
    order: int = 0
    peak: int = 0
    leaked: int = 0
    blocks: int = 0


_Events = list[_Event]


def _snapshots(profile: Profile) -> list[tuple[int, str, _Events]]:
    """Number, time and events of each snapshot."""
    found: dict[int, tuple[str, _Events]] = {}
    has_memory = False
    for number, resource in profile.all_resources():
        events = found.setdefault(number, (str(resource.get("time", "")), []))[1]
        address, amount = resource.get("address"), resource.get("amount")
        if type(address) is int and type(amount) is int and amount >= 0:
            has_memory = True
            releases = is_release(resource)
            numbers = (_whole(resource.get(name)) for name in ("order", "peak", "leaked", "count"))
            events.append(
                _Event(
                    address,
                    0 if releases else amount,
                    str(resource.get("subtype", "")),
                    resource.get("uid", ""),
                    releases,
                    *numbers,
                )
            )
    if not has_memory:
        raise ProfileError(
            "no resource has an address and an amount of memory",
            "collect a profile with perun collect memory",
        )
    for _, events in found.values():
        events.sort(key=lambda event: event.order)
    return [(number, *found[number]) for number in sorted(found)]


def _whole(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _span(event: _Event) -> AddressSpan:
    """Where an event allocates; the blocks of a resource that sums up several are one after the other if they
    live at a time, else in the place of each other."""
    if event.blocks <= 1:
        return AddressSpan(event.address, event.amount, 1)
    size = max(event.peak, event.leaked, -(-event.amount // event.blocks))
    return AddressSpan(event.address, size, max(1, round(event.amount / size)))


def _blocks(snapshots: Sequence[_Events], sites: dict[tuple[Any, ...], int], peak: int) -> list[MemoryChunk]:
    """The blocks of single events, from the snapshot at whose end they are allocated.

    :param peak: the snapshot with the peak, which becomes two: at the peak, and at its end; -1 for none.
    """
    live: dict[int, tuple[_Event, int]] = {}
    chunks: list[MemoryChunk] = []
    now = 0

    def end(block: tuple[_Event, int]) -> None:
        event, first = block
        site = sites[_site(event.uid)]
        chunks.append(MemoryChunk(event.address, event.amount, site, event.subtype, first, now))

    for place, events in enumerate(snapshots):
        for part in _at_peak(events, live) if place == peak else (events,):
            for address, event in _changes(part, live):
                if address in live:
                    end(live.pop(address))
                if event is not None:
                    sites.setdefault(_site(event.uid), len(sites))
                    live[address] = event, now
            now += 1
    for block in live.values():
        end(block)
    return chunks


def _at_peak(events: _Events, live: Mapping[int, tuple[_Event, int]]) -> tuple[_Events, _Events]:
    """The events of a snapshot until its peak, and after it, by what was live then."""
    before: _Events = []
    after: _Events = []
    released: set[int] = set()
    for event in events:
        gone = event.address in live and not live[event.address][0].peak and event.address not in released
        if event.amount:
            (before if event.peak else after).append(event)
        elif gone:
            released.add(event.address)
            before.append(event)
        else:
            after.append(event)
    return before, after


def _changes(
    events: Iterable[_Event], live: Mapping[int, tuple[_Event, int]]
) -> list[tuple[int, _Event | None]]:
    """The addresses whose memory changes within a snapshot, with what is there at its end."""
    balance: dict[int, int] = {}
    last: dict[int, _Event] = {}
    for event in events:
        balance[event.address] = balance.get(event.address, 0) + (1 if event.amount else -1)
        if event.amount:
            last[event.address] = event
    changes: list[tuple[int, _Event | None]] = []
    for address, change in balance.items():
        if change + (address in live) <= 0:
            if address in live:
                changes.append((address, None))
        elif address in last:
            changes.append((address, last[address]))
    return changes


def _sums_of_blocks(
    snapshots: Sequence[_Events], sites: dict[tuple[Any, ...], int], peak: int, size: int
) -> list[MemoryChunk]:
    """What resources that sum up blocks say of these.

    :param peak: position of the heap at its peak among the snapshots. :param size: number of snapshots.
    """
    chunks = []
    for place, events in enumerate(snapshots):
        first = place if place <= peak else place + 1
        for event in events:
            if event.peak and event.peak == event.leaked:
                parts = [(event.peak, first, size)]
            else:
                parts = [(event.peak, first, peak + 1), (event.leaked, max(first, peak + 1), size)]
            for amount, begin, end in parts:
                if amount:
                    site = sites.setdefault(_site(event.uid), len(sites))
                    chunks.append(MemoryChunk(event.address, amount, site, event.subtype, begin, end))
    return chunks


def _site(uid: Any) -> tuple[Any, ...]:
    if isinstance(uid, Mapping):
        line = uid.get("line", 0)
        line = line if isinstance(line, (int, float, str)) else str(line)
        return line, str(uid.get("function", "")), str(uid.get("source", ""))
    return 0, str(uid), ""


def _snapshot(time: str, here: list[dict[str, Any]]) -> dict[str, Any]:
    """A snapshot of the heap map from its chunks, which are in the order of addresses."""
    amounts = [chunk["amount"] for chunk in here]
    return {
        "time": time,
        "max_amount": max(amounts, default=0),
        "min_amount": min(amounts, default=0),
        "sum_amount": sum(amounts),
        "max_address": max((chunk["address"] + chunk["amount"] - 1 for chunk in here), default=0),
        "min_address": min((chunk["address"] for chunk in here), default=0),
        "map": here,
    }


def _extremes(snapshots: list[dict[str, Any]]) -> dict[str, int]:
    filled = [snapshot for snapshot in snapshots if snapshot["map"]]
    names = ("max_amount", "max_address", "min_amount", "min_address")
    stats = {name: _extreme(name)((one[name] for one in filled), default=0) for name in names}
    sums = [snapshot["sum_amount"] for snapshot in snapshots]
    return {**stats, "max_sum_amount": max(sums, default=0), "min_sum_amount": min(sums, default=0)}


def _extreme(name: str) -> Any:
    return max if name.startswith("max") else min


def _unit(profile: Profile) -> str:
    units = profile.get("header", {}).get("units", {})
    return str(units.get("memory", "B"))
