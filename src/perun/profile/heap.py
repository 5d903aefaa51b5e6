"""Memory profiles as maps of the heap: what lies where in each snapshot, and where most was allocated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.errors import ProfileError

if TYPE_CHECKING:
    from perun.profile.format.core import Profile

CELLS: Final = 1 << 16
"""Most cells of a heat map: a heap of more addresses has several of them in one cell."""


def to_heap_map_format(profile: Profile) -> dict[str, Any]:
    """What is allocated at which address at the end of each snapshot, for the heap map.

    `stats` has the extremes of the amounts, sums and addresses of all snapshots; a maximal address is that
    of the last byte. Resources within a snapshot have no order, so memory at an address counts as allocated
    where it was allocated more often than released up to then; the last allocation is what is there.

    :raises ProfileError: if no resource has an address and an amount that are whole numbers.
    """
    sites: dict[tuple[Any, ...], int] = {}
    live: dict[int, dict[str, Any]] = {}
    snapshots = []
    for number, time, events in _snapshots(profile):
        _apply(live, events, sites)
        snapshots.append(_snapshot(time or str(number), live.values()))
    return {
        "type": "heap",
        "unit": _unit(profile),
        "stats": _extremes(snapshots),
        "info": [dict(zip(("line", "function", "source"), site, strict=True)) for site in sites],
        "snapshots": snapshots,
    }


def to_heat_map_format(profile: Profile) -> dict[str, Any]:
    """How often memory was allocated at each address over all snapshots, for the heat map.

    `map` has one number for each cell of `stats.cell_size` addresses, from `stats.min_address` on, so that
    there are at most :data:`CELLS`; it is 1 address if the heap is small enough.

    :raises ProfileError: if no resource has an address and an amount that are whole numbers.
    """
    chunks = [event for _, _, events in _snapshots(profile) for event in events if event.amount]
    first = min((chunk.address for chunk in chunks), default=0)
    last = max((chunk.address + chunk.amount - 1 for chunk in chunks), default=first - 1)
    size = -(-(last - first + 1) // CELLS) or 1
    steps = [0] * (-(-(last - first + 1) // size) + 1)
    for chunk in chunks:
        steps[(chunk.address - first) // size] += 1
        steps[(chunk.address + chunk.amount - 1 - first) // size + 1] -= 1
    return {
        "type": "heat",
        "unit": _unit(profile),
        "stats": {"max_address": max(last, 0), "min_address": first, "cell_size": size},
        "map": list(accumulate(steps))[:-1],
    }


class Lifetimes(NamedTuple):
    """Which memory was allocated in which snapshots, one entry for each chunk of memory.

    :param times: of each snapshot its time, as text.
    :param sites: where memory was allocated: line, function, source.
    :param chunks: what is allocated at the end of some snapshot, in the order of allocation.
    :param allocations: address and amount of all that was ever allocated.
    """

    times: list[str]
    sites: list[tuple[Any, ...]]
    chunks: list[Chunk]
    allocations: list[tuple[int, int]]


class Chunk(NamedTuple):
    """Memory that is allocated at the end of the snapshots from `first` until before `end`.

    `site` is a position in :attr:`Lifetimes.sites`, snapshots are counted from 0.
    """

    address: int
    amount: int
    site: int
    subtype: str
    first: int
    end: int


def lifetimes(profile: Profile) -> Lifetimes:
    """What :func:`to_heap_map_format` says of each snapshot, in memory linear in the size of the profile.

    :raises ProfileError: if no resource has an address and an amount that are whole numbers.
    """
    sites: dict[tuple[Any, ...], int] = {}
    live: dict[int, dict[str, Any]] = {}
    since: dict[int, int] = {}
    times: list[str] = []
    chunks: list[Chunk] = []
    allocations: list[tuple[int, int]] = []

    def end(chunk: dict[str, Any], now: int) -> None:
        first = since[chunk["address"]]
        chunks.append(Chunk(chunk["address"], chunk["amount"], chunk["uid"], chunk["subtype"], first, now))

    for now, (number, time, events) in enumerate(_snapshots(profile)):
        times.append(time or str(number))
        allocations += [(event.address, event.amount) for event in events if event.amount]
        touched = {event.address: live.get(event.address) for event in events}
        _apply(live, events, sites)
        for address, before in touched.items():
            after = live.get(address)
            if after is before:
                continue
            if before is not None:
                end(before, now)
            since[address] = now
    for chunk in live.values():
        end(chunk, len(times))
    chunks.sort(key=lambda chunk: (chunk.first, chunk.address))
    return Lifetimes(times, list(sites), chunks, allocations)


class _Event(NamedTuple):
    """Memory that is allocated, or released if the amount is 0."""

    address: int
    amount: int
    subtype: str
    uid: Any


def _snapshots(profile: Profile) -> list[tuple[int, str, list[_Event]]]:
    found: dict[int, tuple[str, list[_Event]]] = {}
    has_memory = False
    for number, resource in profile.all_resources():
        events = found.setdefault(number, (str(resource.get("time", "")), []))[1]
        address, amount = resource.get("address"), resource.get("amount")
        if type(address) is int and type(amount) is int and amount >= 0:
            has_memory = True
            subtype = str(resource.get("subtype", ""))
            events.append(
                _Event(address, 0 if subtype == "free" else amount, subtype, resource.get("uid", ""))
            )
    if not has_memory:
        raise ProfileError(
            "no resource has an address and an amount of memory",
            "collect a profile with perun collect memory",
        )
    return [(number, *found[number]) for number in sorted(found)]


def _apply(
    live: dict[int, dict[str, Any]], events: Iterable[_Event], sites: dict[tuple[Any, ...], int]
) -> None:
    """Change `live`, the allocated memory by address, by the events of one snapshot; add to `sites`."""
    balance: dict[int, int] = {}
    last: dict[int, _Event] = {}
    for event in events:
        balance[event.address] = balance.get(event.address, 0) + (1 if event.amount else -1)
        if event.amount:
            last[event.address] = event
    for address, change in balance.items():
        if change + (address in live) <= 0:
            live.pop(address, None)
        elif address in last:
            event = last[address]
            live[address] = {
                "address": address,
                "amount": event.amount,
                "uid": sites.setdefault(_site(event.uid), len(sites)),
                "subtype": event.subtype,
            }


def _site(uid: Any) -> tuple[Any, ...]:
    if isinstance(uid, Mapping):
        line = uid.get("line", 0)
        line = line if isinstance(line, (int, float, str)) else str(line)
        return line, str(uid.get("function", "")), str(uid.get("source", ""))
    return 0, str(uid), ""


def _snapshot(time: str, chunks: Iterable[dict[str, Any]]) -> dict[str, Any]:
    here = [dict(chunk) for chunk in sorted(chunks, key=lambda chunk: chunk["address"])]
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
