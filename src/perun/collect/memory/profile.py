"""Makes the resources of a run: which sites allocated how much, and when it was released (manual 4.1.2).

A resource stands for the events of one call stack, subtype and snapshot, or with `--raw` for one event.
Beyond the manual it has the parts of its amount that were live at the peak, leaked, or temporary. Further
resources sum this up for functions and for the program. `docs/memory.md` describes them all.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from perun.collect.memory.analysis import AllocationRows, HeapTotals, SingleEvents
from perun.collect.memory.events import FIRST_RELEASE, KINDS, REALLOC_RELEASE, STATES, LiveBlockStates
from perun.collect.memory.places import AllocationSite
from perun.collect.memory.table import OTHERS, AllocationTable, fitted, table_of
from perun.native.columns import Ints
from perun.native.symboliser import SymbolFrame
from perun.profile.factory import flatten
from perun.profile.format.columns import PACKED_FROM

# Single events as columns, for `--raw`.


class EventGroup(NamedTuple):
    """The events of one process, one site and one subtype in the order of time; columns of shape (events,).

    `order` counts from 1. `peak` and `leaked` are the bytes that were live at the peak and at the end.
    `temporary` is 0 or 1; `timestamp` and `lifetime` are nanoseconds.
    """

    site: AllocationSite
    subtype: int
    order: Ints
    amount: Ints
    address: Ints
    thread: Ints
    timestamp: Ints
    peak: Ints
    leaked: Ints
    temporary: Ints
    lifetime: Ints


def event_groups(
    each: SingleEvents, sites: Sequence[AllocationSite | None], totals: HeapTotals
) -> Iterator[EventGroup]:
    """The events grouped by site and subtype, without those whose stack has no site.

    :param sites: of each stack its site, None for one that is not shown.
    """
    numbers: dict[AllocationSite, int] = {}
    of_stack = [-1 if site is None else numbers.setdefault(site, len(numbers)) for site in sites]
    known = list(numbers)
    events = each.events
    kind = (np.array(of_stack, np.int64)[events.stacks] << 8) | events.subtypes
    kinds = kind[events.site]
    order = np.argsort(kinds, kind="stable")
    order = order[np.searchsorted(kinds[order], 0) :]
    starts = np.flatnonzero(np.diff(kinds[order], prepend=-1))
    for where in np.split(order, starts[1:]) if len(order) else ():
        code = int(kinds[where[0]])
        size, begin = events.size[where], events.time[where]
        ended_by = each.ended_by[where]
        lives_on = (ended_by < 0) & ~events.releases[where]
        at_peak = (where <= totals.peak_event) & (lives_on | (ended_by > totals.peak_event))
        end = np.where(lives_on, totals.last_time, events.time[ended_by])
        yield EventGroup(
            known[code >> 8],
            code & 0xFF,
            where + 1,
            size,
            events.address[where],
            events.thread[where],
            begin,
            np.where(at_peak, size, 0),
            np.where(lives_on & (not known[code >> 8].kept_by_libc), size, 0),
            each.temporary[where].astype(np.int64),
            np.where(events.releases[where], 0, end - begin),
        )


UNITS: Final = {"memory": "B", "memory (allocations)": "", "memory (temporary)": ""}
"""Type of resources to its unit; two are numbers of blocks."""
METRICS: Final = {
    "allocated": "amount",
    "allocations": "events",
    "peak": "peak",
    "leaked": "leaked",
    "temporary": "temporary",
}
"""Subtype of a resource that sums up a function or the program, to the summed column of the table."""
LOST: Final = "lost"
"""Subtype of a resource as those above with `--reachable`: bytes that are definitely or indirectly lost."""
_SIZE: Final = 3_400_000
"""Bytes of JSON for resources with a trace, so that the whole file stays below 5 MB."""
_MAX_METRICS: Final = 3000
_SECOND: Final = 1_000_000_000
_ALLOCATORS: Final = {"new": "operator new", "new[]": "operator new[]"} | {
    "delete": "operator delete",
    "delete[]": "operator delete[]",
}


@dataclass(frozen=True)
class ProcessReplay:
    """One recorded process after its replay.

    :ivar name: base name of its program. :ivar interval: length of its snapshots in nanoseconds.
    :ivar sites: of each of its stacks the site, None for one that is not shown.
    :ivar single_events: with `--raw` only.
    :ivar reached: its live blocks by how it can reach them; only with `--reachable`.
    """

    name: str
    rows: AllocationRows
    totals: HeapTotals
    sites: Sequence[AllocationSite | None]
    interval: int
    single_events: SingleEvents | None = None
    reached: LiveBlockStates | None = None


@dataclass(frozen=True)
class Shape:
    """Options for the content of a profile.

    :ivar whole: traces begin with the allocator, and are never shortened (`--all`).
    :ivar coarser: snapshots may become longer to make the profile smaller.
    """

    whole: bool = False
    coarser: bool = True


class Regions:
    """The regions `resources` and `resource_type_map` of a profile while they grow."""

    def __init__(self) -> None:
        self.resources: dict[str, dict[str, Any]] = {}
        self.constants: dict[str, dict[str, Any]] = {}
        self._counts: Counter[str] = Counter()

    def add(self, constants: dict[str, Any], columns: Mapping[str, Any]) -> None:
        """Add a group of resources; numpy arrays become columns of a profile."""
        uid = str(flatten(constants["uid"]))
        key = f"{uid}#{self._counts[uid]}"
        self._counts[uid] += 1
        self.constants[key] = constants
        self.resources[key] = {name: _column(values) for name, values in columns.items()}


@dataclass(frozen=True)
class MemoryResources:
    """The resources of a run.

    :ivar interval: length of a snapshot in nanoseconds. :ivar shortened: number of shortened traces.
    :ivar sums: what the resources add up to: bytes (`peak`, `allocated`, `leaked`) and numbers of blocks
        (`allocations`, `leaked-blocks`, `temporary`).
    """

    regions: Regions
    interval: int
    shortened: int
    sums: dict[str, int]


def resources(processes: Sequence[ProcessReplay], shape: Shape, program: str) -> MemoryResources:
    """The resources of a run.

    :param processes: the first one is that of the command. :param program: name of the program.
    """
    interval = max(process.interval for process in processes)
    table = table_of(
        [
            (process.rows, process.sites, (interval // process.interval).bit_length() - 1, process.reached)
            for process in processes
        ]
    )
    regions = Regions()
    whole_table, doubled, shortened = table, 0, 0
    if processes[0].single_events is not None:
        for process in processes:
            _add_events(regions, process, shape, interval, len(processes) > 1)
    else:
        # The release by a realloc has no resource of its own: the realloc has one.
        table = table.where(table.rows.subtype != REALLOC_RELEASE)
        table, doubled, shortened = fitted(table, _SIZE, coarser=shape.coarser, shorter=not shape.whole)
        interval <<= doubled
        names = [process.name for process in processes] if len(processes) > 1 else []
        for group in _groups(table, shape, interval, names):
            regions.add(*group)
    sums = _sums(whole_table)
    for group in _metrics(whole_table, sums, processes, interval, program):
        regions.add(*group)
    return MemoryResources(regions, interval, shortened, sums)


def _sums(table: AllocationTable) -> dict[str, int]:
    rows = table.rows
    allocating = rows.subtype < FIRST_RELEASE
    return {
        "allocations": int(rows.events[allocating].sum()),
        "allocated": int(rows.amount[allocating].sum()),
        "peak": int(rows.peak.sum()),
        "leaked": int(rows.leaked.sum()),
        "leaked-blocks": int(rows.leaked_blocks.sum()),
        "temporary": int(rows.temporary.sum()),
    }


def _groups(
    table: AllocationTable, shape: Shape, interval: int, names: Sequence[str]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    known: dict[SymbolFrame, dict[str, Any]] = {}
    traces = [_uid_and_trace(site, known) for site in table.sites]
    for run in table.groups():
        subtype = KINDS[int(table.rows.subtype[run.start])]
        number = int(table.rows.site[run.start])
        constants = _constants(subtype, *traces[number], shape.whole)
        if names:
            constants["process"] = names[int(table.rows.process[run.start])]
        rows = table.rows.where(run)
        columns: dict[str, Any] = {
            "amount": rows.amount,
            "address": rows.address,
            "count": rows.events,
            "snapshot": rows.snapshot,
            "time": _times(rows.snapshot, interval),
        }
        if int(rows.subtype[0]) < FIRST_RELEASE:
            columns["lifetime"] = np.round(rows.lifetime / rows.events / _SECOND, 6)
            for name, column in _LIVENESS.items():
                if (values := getattr(rows, column)).any():
                    columns[name] = values
        yield constants, columns


_LIVENESS: Final = {
    "peak": "peak",
    "leaked": "leaked",
    "leaked-blocks": "leaked_blocks",
    "temporary": "temporary",
    **{name: name.replace("-", "_") for name in STATES},
}


def _add_events(regions: Regions, process: ProcessReplay, shape: Shape, interval: int, named: bool) -> None:
    assert process.single_events is not None
    known: dict[SymbolFrame, dict[str, Any]] = {}
    for kind in event_groups(process.single_events, process.sites, process.totals):
        constants = _constants(KINDS[kind.subtype], *_uid_and_trace(kind.site, known), shape.whole)
        if named:
            constants["process"] = process.name
        snapshots = kind.timestamp // interval
        columns: dict[str, Any] = {
            "amount": kind.amount,
            "address": kind.address,
            "order": kind.order,
            "thread": kind.thread,
            "timestamp": np.round(kind.timestamp / _SECOND, 9),
            "snapshot": snapshots,
            "time": _times(snapshots, interval),
        }
        if kind.subtype < FIRST_RELEASE:
            columns["lifetime"] = np.round(kind.lifetime / _SECOND, 9)
            for name in ("peak", "leaked", "temporary"):
                if (values := getattr(kind, name)).any():
                    columns[name] = values
        regions.add(constants, columns)


def _metrics(
    table: AllocationTable,
    sums: Mapping[str, int],
    processes: Sequence[ProcessReplay],
    interval: int,
    program: str,
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    totals = [process.totals for process in processes]
    lost = table.rows.definitely_lost + table.rows.indirectly_lost
    last = max(one.last_time for one in totals) // interval
    peak = max(totals, key=lambda one: one.peak).peak_time // interval

    def resource(uid: dict[str, Any], metric: str, amount: int) -> tuple[dict[str, Any], dict[str, Any]]:
        snapshot = int(peak if metric == "peak" else last)
        constants = {
            "type": "memory",
            "subtype": metric,
            "uid": {**uid, "memory": metric},
            "snapshot": snapshot,
            "time": _time(snapshot, interval),
        }
        if metric in ("leaked", LOST):  # checks take 0 for a profile without leaks, which lacks this
            constants["absent"] = 0
        return constants, {"amount": [amount]}

    for metric in METRICS:
        yield resource({"source": program}, metric, sums[metric])
    if any(process.reached for process in processes):
        yield resource({"source": program}, LOST, int(lost.sum()))
    for function, own in _functions(table):
        for metric, column in {**METRICS, LOST: LOST}.items():
            if own[column]:
                uid = {"source": function.source, "function": function.function}
                yield resource(uid, metric, own[column])


def _functions(table: AllocationTable) -> Iterator[tuple[SymbolFrame, dict[str, int]]]:
    """The functions that allocate and their sums, the largest first."""
    known: dict[SymbolFrame, int] = {}
    of_site = [known.setdefault(site.uid._replace(line=0), len(known)) for site in table.sites]
    table = table.where(table.rows.subtype < FIRST_RELEASE)
    place = np.array(of_site, np.int64)[table.rows.site]
    sums = {
        column: np.bincount(place, weights=getattr(table.rows, column), minlength=len(known)).astype(np.int64)
        for column in METRICS.values()
    }
    sums[LOST] = np.bincount(
        place, weights=table.rows.definitely_lost + table.rows.indirectly_lost, minlength=len(known)
    ).astype(np.int64)
    weights = sums["amount"] + sums["peak"] + sums["leaked"]
    functions = list(known)
    for number in np.argsort(-weights, kind="stable").tolist()[: _MAX_METRICS // len(METRICS)]:
        if functions[number] != OTHERS:
            yield functions[number], {column: int(values[number]) for column, values in sums.items()}


def _constants(subtype: str, uid: Any, trace: list[Any], whole: bool) -> dict[str, Any]:
    if whole:
        allocator = SymbolFrame(_ALLOCATORS.get(subtype, subtype), "unreachable", 0)
        trace = [allocator._asdict(), *trace]
    return {"type": "memory", "subtype": subtype, "trace": trace, "uid": uid}


def _uid_and_trace(
    site: AllocationSite, known: dict[SymbolFrame, dict[str, Any]]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """:param known: the frames of traces as mappings, which traces share."""
    for frame in site.trace:
        if frame not in known:
            known[frame] = frame._asdict()
    return site.uid._asdict(), [known[frame] for frame in site.trace]


def _times(snapshots: Ints, interval: int) -> Any:
    return np.round((snapshots + 1) * (interval / _SECOND), 6)


def _time(snapshot: int, interval: int) -> float:
    """Seconds from the start of the run to the end of a snapshot."""
    return round((snapshot + 1) * (interval / _SECOND), 6)


def _column(values: Any) -> Any:
    if not isinstance(values, np.ndarray):
        return values
    if len(values) < PACKED_FROM:
        return values.tolist()
    column = array("d" if values.dtype.kind == "f" else "q")
    column.frombytes(np.ascontiguousarray(values).tobytes())
    return column
