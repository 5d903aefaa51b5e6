"""The analysis of recordings in C: the same results as `analysis.py` and `records.py`, several times as fast.

Where the library was not built, :func:`load` returns nothing, and numpy does the work.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.collect.memory.analysis import LAST_SNAPSHOT, AllocationEvents, AllocationRows, HeapTotals
from perun.collect.memory.events import LiveBlocks
from perun.native.columns import Ints

LIBRARY: Final = Path(__file__).with_name("libperun_memory_analysis.so")
"""Made of `analysis_native/`, which the build puts beside this module."""
_NUMBER: Final = ctypes.c_int64
_POINTER: Final = ctypes.c_void_p


class _Chunk(ctypes.Structure):
    """`struct decode_chunk` of `analysis_native/analysis.h`."""

    _fields_ = (
        *((name, _NUMBER) for name in ("events", "sites", "amounts", "fresh", "first_ticks", "thread")),
        *((name, _NUMBER) for name in ("before", "span", "origin", "passed")),
        ("width", ctypes.c_uint8 * 7),
        ("address_shift", ctypes.c_uint8),
        ("tick_shift", ctypes.c_uint8),
    )


class _Columns(ctypes.Structure):
    """`struct decode_columns`."""

    _fields_ = tuple(
        (name, _POINTER)
        for name in ("stack_ids", "subtypes", "site", "releases", "address", "size", "thread", "time")
    )


class _Events(ctypes.Structure):
    """`struct replay_events`."""

    _fields_ = (
        *((name, _NUMBER) for name in ("count", "sites")),
        *((name, _POINTER) for name in AllocationEvents.names()),
    )


_TOTALS: Final = tuple(name for name in HeapTotals._fields if name != "releases")


class _Totals(ctypes.Structure):
    """`struct replay_totals`."""

    _fields_ = tuple((name, _NUMBER) for name in _TOTALS)


class ChunkColumns(NamedTuple):
    """The columns of a chunk, as of :class:`AllocationEvents`, with the ids of stacks."""

    stack_ids: Ints
    subtypes: Ints
    site: Ints
    releases: NDArray[np.bool_]
    address: Ints
    size: Ints
    thread: Ints
    time: Ints


class TickClock(NamedTuple):
    """How ticks become times: the tick `before` is `origin` nanoseconds after the start of the run, and the
    `span` ticks after it are `passed` nanoseconds; what is outside of these counts as their begin or end."""

    before: int
    span: int
    origin: int
    passed: int


class Buffers:
    """Memory for the columns of one chunk after the other, which is faster than new memory for each."""

    def __init__(self) -> None:
        self._columns: list[NDArray[Any]] = []

    def columns(self, types: Sequence[Any], count: int) -> list[NDArray[Any]]:
        """Arrays of `count` numbers each, with any content; those of the last call are no longer valid."""
        if not self._columns or len(self._columns[0]) < count:
            self._columns = [np.empty(count, of) for of in types]
        return [column[:count] for column in self._columns]


@cache
def load(path: Path = LIBRARY) -> Library | None:
    """The library; None where it was not built, or the system cannot load it."""
    try:
        return Library(ctypes.CDLL(str(path)))
    except OSError:
        return None


class Library:
    """The functions of the library, with their types."""

    def __init__(self, functions: ctypes.CDLL) -> None:
        self.decode = functions.decode
        self.decode.argtypes = (_POINTER, _NUMBER, _POINTER, _POINTER)
        self.new = functions.replay_new
        self.new.argtypes, self.new.restype = (_NUMBER, _NUMBER), _POINTER
        self.add = functions.replay_add
        self.add.argtypes = (_POINTER, _POINTER)
        self.delete = functions.replay_delete
        self.interval = functions.replay_interval
        self.row_count = functions.replay_row_count
        self.live_count = functions.replay_live_count
        for function in (self.interval, self.row_count, self.live_count):
            function.restype = _NUMBER
        self.live = functions.replay_live
        self.live.argtypes, self.live.restype = (_POINTER,) * 4, None
        self.rows = functions.replay_rows
        self.totals = functions.replay_totals
        for function in (self.rows, self.totals):
            function.argtypes, function.restype = (_POINTER, _POINTER), None
        for function in (self.delete, self.interval, self.row_count, self.live_count):
            function.argtypes = (_POINTER,)
        self.delete.restype = None


_TYPES: Final = tuple(np.bool_ if name == "releases" else np.int64 for name in ChunkColumns._fields[2:])


def decoded(
    data: memoryview, chunk: Any, tick_shift: int, clock: TickClock, library: Library, buffers: Buffers
) -> ChunkColumns | None:
    """The columns of a chunk; None where they are not as the recorder writes them.

    :param data: what follows the definitions.
    :param chunk: its header, with the fields of `struct record_chunk`.
    :param buffers: what the columns of events are in.
    :raises MemoryError: where there is no room for the columns.
    """
    sites = [np.empty(chunk.sites, np.int64) for _ in range(2)]
    columns = ChunkColumns(*sites, *buffers.columns(_TYPES, chunk.events))
    header = _Chunk(
        chunk.events,
        chunk.sites,
        chunk.amounts,
        chunk.fresh,
        chunk.first_ticks >> tick_shift,
        chunk.thread,
        *clock,
        (ctypes.c_uint8 * 7)(*chunk.width),
        chunk.address_shift,
        tick_shift,
    )
    content = np.frombuffer(data, np.uint8)
    pointers = _Columns(*(column.ctypes.data for column in columns))
    right = library.decode(content.ctypes.data, len(content), ctypes.byref(header), ctypes.byref(pointers))
    return columns if right else None


class NativeAnalysis:
    """Adds up the events of a run, which come in batches, to rows and totals; as :class:`Analysis`."""

    def __init__(self, library: Library, interval: int, max_snapshots: int = 0) -> None:
        self._library = library
        most = min(max_snapshots or LAST_SNAPSHOT, LAST_SNAPSHOT)
        self._replay = library.new(max(1, interval), most)
        if not self._replay:
            raise MemoryError

    def __del__(self) -> None:
        if self._replay:
            self._library.delete(self._replay)

    @property
    def interval(self) -> int:
        """Length of a snapshot in nanoseconds."""
        return int(self._library.interval(self._replay))

    def add(self, events: AllocationEvents) -> None:
        """Add the next events.

        :raises MemoryError: where there is no room for the live blocks.
        """
        columns = [np.ascontiguousarray(column) for column in events]
        pointers = [column.ctypes.data for column in columns]
        batch = _Events(len(events), len(events.stacks), *pointers)
        if not self._library.add(self._replay, ctypes.byref(batch)):
            raise MemoryError

    def rows(self) -> AllocationRows:
        """The rows of all events so far."""
        columns = np.empty((len(AllocationRows.names()), self._library.row_count(self._replay)), np.int64)
        self._library.rows(self._replay, columns.ctypes.data)
        return AllocationRows(*columns[:, np.argsort(columns[0])])

    def live(self) -> LiveBlocks:
        """The blocks that are live after all events so far."""
        blocks = LiveBlocks(*np.empty((3, self._library.live_count(self._replay)), np.int64))
        self._library.live(self._replay, *(column.ctypes.data for column in blocks))
        return blocks

    def totals(self) -> HeapTotals:
        """The totals of all events so far."""
        found = _Totals()
        self._library.totals(self._replay, ctypes.byref(found))
        known = {name: getattr(found, name) for name in _TOTALS}
        return HeapTotals(releases=found.events - found.allocations, **known)
