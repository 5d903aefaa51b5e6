"""The profile of calls (manual 4.1.1): groups by function, caller and thread, in packed columns.

Beyond the manual a resource has its `timestamp` (us since the start of the run), `exclusive` time (ns),
`call-order`, `thread`, `caller` and `location`; and its `process`, if there are several. The constant
`size-source` tells the meaning of `structure-unit-size`: the expression whose value it is, or `call-order`
where no size was read, for the number of earlier calls of the function.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, repeat
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.collect._calls.events import UNKNOWN, Calls
from perun.collect._common.runs import new_profile
from perun.profile.factory import Profile
from perun.profile.format.columns import PACKED_FROM, CompressedColumn, is_packed

if TYPE_CHECKING:
    from perun.plugin.api import Run
    from perun.profile.format.columns import Column, Kind, StoredColumn

COLLECTOR_TYPE: Final = "mixed"
COLLECTOR_DEFAULT_UNITS: Final = {"mixed(time delta)": "us"}
BY_ORDER: Final = "call-order"
"""The `size-source` of resources whose size is the number of earlier calls of their function."""
_MICROSECOND: Final = 1000.0
ROOM: Final = 1 << 20
"""Calls that are kept as they are: 40 MB."""
_STEP: Final = 1 << 16
_WORTH_IT: Final = 1 << 8  # calls of a group from which on compressing them saves room
_MAX_NUMBERS: Final = 1 << 20  # combinations of keys that an array can count


class CalledFunction(NamedTuple):
    """The function that has a number.

    :param name: the uid, e.g. `SLList_insert(SLList*, int)`. :param location: path of its binary.
    :param sizes: the expression of its sizes, e.g. `list->size`; empty where it has none.
    """

    name: str
    location: str = ""
    sizes: str = ""


class _Key(NamedTuple):
    function: int
    caller: int
    process: int
    thread: int
    sized: bool


class _Field(NamedTuple):
    """A column of calls, and what it is in a profile: in microseconds, or as it is."""

    column: str
    name: str
    is_time: bool = False


_FIELDS: Final = (
    _Field("duration", "amount", True),
    _Field("exclusive", "exclusive"),
    _Field("order", "call-order"),
    _Field("start", "timestamp", True),
    _Field("size", "structure-unit-size"),
)
_SIZE: Final = "structure-unit-size"


class _GroupColumns:
    """The columns of one group while they grow; times are in nanoseconds.

    :ivar packed: by field of the profile, what was added last. :ivar compressed: what was added before that.
    """

    def __init__(self) -> None:
        self.packed = {field.name: array("q") for field in _FIELDS}
        self.compressed: dict[str, CompressedColumn] = {}

    def __len__(self) -> int:
        """The number of calls that are not compressed."""
        return len(self.packed[_SIZE])

    @property
    def calls(self) -> int:
        """The number of all calls."""
        return len(self) + len(self.compressed.get(_SIZE, ()))

    def add(self, values: Sequence[NDArray[np.int64]]) -> None:
        """Append equally many values to each column."""
        for column, more in zip(self.packed.values(), values, strict=True):
            column.frombytes(np.ascontiguousarray(more, np.int64).data.cast("B"))

    def compress(self) -> None:
        """Compress what is not yet."""
        if not self.compressed:
            kinds: dict[str, Kind] = {field.name: "d" if field.is_time else "q" for field in _FIELDS}
            self.compressed = {name: CompressedColumn(kind) for name, kind in kinds.items()}
        for field in _FIELDS:
            column = self.packed[field.name]
            self.compressed[field.name].append(np.frombuffer(column, np.int64), thousandths=field.is_time)
            self.packed[field.name] = array("q")

    def starts(self) -> Iterator[NDArray[np.int64]]:
        """When the calls started, in nanoseconds, piece by piece."""
        if self.compressed:
            yield from self.compressed["timestamp"].parts(thousandths=True)
        yield np.array(self.packed["timestamp"], np.int64)

    def take(self) -> dict[str, StoredColumn]:
        """Remove and return the columns as they are in a profile."""
        if self.compressed:
            self.compress()
            taken, self.compressed = self.compressed, {}
            return dict(taken)
        found: dict[str, StoredColumn] = {}
        for field in _FIELDS:
            column = self.packed.pop(field.name)
            found[field.name] = _microseconds(column) if field.is_time else _column(column)
        return found


class CallTable:
    """Collects the calls of a profile: 40 bytes each, and compressed where there are more than `room`.

    :ivar total: number of calls so far.
    """

    def __init__(self, room: int = ROOM) -> None:
        self.total = 0
        self._room = room
        self._packed = 0
        self._groups: dict[_Key, _GroupColumns] = {}

    def add(self, calls: Calls, process: int = 0) -> None:
        """Add calls of any threads, in any order.

        :param process: id of their process in the kernel; 0 where it is not known.
        """
        if not len(calls):
            return
        self.total += len(calls)
        sized = calls.size >= 0
        keys = (calls.function, calls.caller, calls.thread, sized)
        by_group = _by_group(keys, calls.order)
        changed = np.zeros(len(calls) - 1, np.bool_)
        for key in keys:
            sorted_key = key[by_group]
            changed |= sorted_key[1:] != sorted_key[:-1]
        starts = [0, *(np.flatnonzero(changed) + 1).tolist(), len(calls)]
        columns = [getattr(calls, field.column)[by_group] for field in _FIELDS]
        for start, end in pairwise(starts):
            function, caller, thread, has_size = (int(key[by_group[start]]) for key in keys)
            group = _Key(function, caller, process, thread, bool(has_size))
            self._groups.setdefault(group, _GroupColumns()).add([column[start:end] for column in columns])
        self._packed += len(calls)
        if self._packed > self._room:
            self._compress()

    def _compress(self) -> None:
        """Compress the longest groups until half of the room is free."""
        for group in sorted(self._groups.values(), key=len, reverse=True):
            if self._packed <= self._room // 2 or len(group) < _WORTH_IT:
                break
            self._packed -= len(group)
            group.compress()
        # Many short groups would take more room in many short chunks.
        self._room = max(self._room, 2 * self._packed)

    def profile(
        self,
        functions: Sequence[CalledFunction] | Mapping[int, CalledFunction],
        run: Run,
        collector: Mapping[str, Any],
        summary: Mapping[str, Any],
    ) -> Profile:
        """The profile of all calls; the table is empty afterwards.

        :param functions: the functions by their numbers.
        :param collector: the region `collector_info`, with `name` and `params`.
        :param summary: totals of the run: the region `trace` of the profile.
        """
        profile = new_profile(
            run, COLLECTOR_TYPE, COLLECTOR_DEFAULT_UNITS, collector["name"], collector["params"]
        )
        profile["trace"] = dict(summary)
        resources: dict[str, dict[str, StoredColumn]] = {}
        constants: dict[str, dict[str, Any]] = {}
        counts: Counter[str] = Counter()
        has_processes = len({key.process for key in self._groups}) > 1
        for key, columns in self._finished():
            name = functions[key.function].name
            group = f"{name}#{counts[name]}"
            counts[name] += 1
            resources[group] = columns
            constants[group] = _constants(key, functions, _SIZE in columns)
            if key.process and has_processes:
                constants[group]["process"] = key.process
        profile["resource_type_map"] = constants
        profile["resources"] = resources
        self.total = self._packed = 0
        return profile

    def _finished(self) -> Iterator[tuple[_Key, dict[str, StoredColumn]]]:
        """The groups in the order of their keys, each with its columns in the profile."""
        by_function: dict[int, list[_Key]] = {}
        for key in sorted(self._groups):
            by_function.setdefault(key.function, []).append(key)
        for keys in by_function.values():
            measured = any(key.sized for key in keys)
            groups = [self._groups.pop(key) for key in keys]
            ranks = repeat(None) if measured else _ranks(groups)
            for key, rank in zip(keys, ranks, strict=False):
                group = groups.pop(0)
                columns = group.take()
                if rank is not None:
                    is_compressed = isinstance(columns[_SIZE], CompressedColumn)
                    own = _compressed(rank) if is_compressed else _column(array("q", rank.tobytes()))
                    columns[_SIZE] = own
                elif not key.sized:
                    del columns[_SIZE]
                yield key, columns


def _by_group(keys: Sequence[NDArray[Any]], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions that sort calls by their keys, and those of equal keys by `order`."""
    lowest = [int(key.min()) for key in keys]
    spans = [int(key.max()) - low + 1 for key, low in zip(keys, lowest, strict=True)]
    if prod(spans) > _MAX_NUMBERS or (order[1:] < order[:-1]).any():
        return np.lexsort((order, *reversed(keys)))
    # The calls are in order already, and groups are few: numbering them makes keys of 16 bits, which numpy
    # sorts by radix sort, several times faster than all keys one after the other.
    number = np.zeros(len(order), np.int64)
    for key, low, span in zip(keys, lowest, spans, strict=True):
        number *= span
        number += key - low
    rank = (np.bincount(number) > 0).cumsum()
    short = rank.astype(np.uint16) if int(rank[-1]) < 1 << 16 else rank
    return np.argsort(short[number], kind="stable")


def _constants(
    key: _Key, functions: Sequence[CalledFunction] | Mapping[int, CalledFunction], has_size: bool
) -> dict[str, Any]:
    function = functions[key.function]
    constants: dict[str, Any] = {
        "type": COLLECTOR_TYPE,
        "subtype": "time delta",
        "uid": function.name,
        "thread": key.thread,
        "location": function.location,
    }
    if key.caller != UNKNOWN:
        constants["caller"] = functions[key.caller].name
    if has_size:
        constants["size-source"] = (function.sizes or "recorded") if key.sized else BY_ORDER
    return constants


def _ranks(groups: Sequence[_GroupColumns]) -> list[NDArray[np.int64]]:
    """For each call its rank among those of all groups by their starts, from 0; of equal ones the first comes
    first."""
    sizes = [group.calls for group in groups]
    starts = np.empty(sum(sizes), np.int64)
    end = 0
    for group in groups:
        for piece in group.starts():
            starts[end : end + len(piece)] = piece
            end += len(piece)
    if (starts[1:] >= starts[:-1]).all():
        ranks = np.arange(len(starts))
    else:
        order = np.argsort(starts, kind="stable")
        ranks = starts  # of which nothing is needed any more
        for place in range(0, len(order), _STEP):
            own = order[place : place + _STEP]
            ranks[own] = np.arange(place, place + len(own))
    return np.split(ranks, np.cumsum(sizes)[:-1])


def _compressed(values: NDArray[np.int64]) -> CompressedColumn:
    column = CompressedColumn("q")
    column.append(values)
    return column


def _microseconds(nanoseconds: array[int]) -> Column:
    times = np.array(nanoseconds, np.float64)
    times /= _MICROSECOND
    column = array("d")
    column.frombytes(times.data.cast("B"))
    return _column(column)


def _column(values: Column) -> Column:
    return values.tolist() if is_packed(values) and len(values) < PACKED_FROM else values  # type: ignore[union-attr]
