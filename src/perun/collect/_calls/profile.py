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
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.collect._calls.events import UNKNOWN, Calls
from perun.collect._common.profiles import new_profile
from perun.profile.factory import Profile
from perun.profile.format.columns import PACKED_FROM, is_packed

if TYPE_CHECKING:
    from perun.plugin.api import Run
    from perun.profile.format.columns import Column

COLLECTOR_TYPE: Final = "mixed"
COLLECTOR_DEFAULT_UNITS: Final = {"mixed(time delta)": "us"}
BY_ORDER: Final = "call-order"
"""The `size-source` of resources whose size is the number of earlier calls of their function."""
_MICROSECOND: Final = 1000.0
_MAX_NUMBERS: Final = 1 << 20  # combinations of keys that an array can count


class Function(NamedTuple):
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


class _GroupColumns:
    """The columns of one group while they grow; times are in nanoseconds."""

    FIELDS: Final = ("start", "duration", "exclusive", "size", "order")

    def __init__(self) -> None:
        self.columns = [array("q") for _ in self.FIELDS]

    def add(self, values: Sequence[NDArray[np.int64]]) -> None:
        """Append equally many values to each column."""
        for column, more in zip(self.columns, values, strict=True):
            column.frombytes(np.ascontiguousarray(more, np.int64).data.cast("B"))

    def take(self) -> dict[str, array[int]]:
        """Remove and return the columns."""
        taken = dict(zip(self.FIELDS, self.columns, strict=True))
        self.columns = []
        return taken


class CallTable:
    """Collects the calls of a profile, in 40 bytes each.

    :ivar total: number of calls so far.
    """

    def __init__(self) -> None:
        self.total = 0
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
        columns = [getattr(calls, name)[by_group] for name in _GroupColumns.FIELDS]
        for start, end in pairwise(starts):
            function, caller, thread, has_size = (int(key[by_group[start]]) for key in keys)
            group = _Key(function, caller, process, thread, bool(has_size))
            self._groups.setdefault(group, _GroupColumns()).add([column[start:end] for column in columns])

    def profile(
        self,
        functions: Sequence[Function] | Mapping[int, Function],
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
        resources: dict[str, dict[str, Column]] = {}
        constants: dict[str, dict[str, Any]] = {}
        counts: Counter[str] = Counter()
        has_processes = len({key.process for key in self._groups}) > 1
        for key, columns in self._finished():
            name = functions[key.function].name
            group = f"{name}#{counts[name]}"
            counts[name] += 1
            resources[group] = columns
            constants[group] = _constants(key, functions, "structure-unit-size" in columns)
            if key.process and has_processes:
                constants[group]["process"] = key.process
        profile["resource_type_map"] = constants
        profile["resources"] = resources
        self.total = 0
        return profile

    def _finished(self) -> Iterator[tuple[_Key, dict[str, Column]]]:
        """The groups in the order of their keys, each with its columns in the profile."""
        by_function: dict[int, list[_Key]] = {}
        for key in sorted(self._groups):
            by_function.setdefault(key.function, []).append(key)
        for keys in by_function.values():
            measured = any(key.sized for key in keys)
            taken = [self._groups.pop(key).take() for key in keys]
            ranks = [] if measured else _ranks([columns["start"] for columns in taken])
            for number, key in enumerate(keys):
                columns = taken[number]
                packed = {
                    "amount": _microseconds(columns.pop("duration")),
                    "exclusive": _column(columns.pop("exclusive")),
                    "call-order": _column(columns.pop("order")),
                    "timestamp": _microseconds(columns.pop("start")),
                }
                if key.sized or not measured:
                    sizes = columns.pop("size") if measured else ranks[number]
                    packed["structure-unit-size"] = _column(sizes)
                columns.clear()
                yield key, packed


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
    key: _Key, functions: Sequence[Function] | Mapping[int, Function], has_size: bool
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


def _ranks(starts: Sequence[array[int]]) -> list[array[int]]:
    """For each value its rank among those of all arrays, from 0; of equal values the first comes first."""
    joined = np.concatenate([np.array(some, np.int64) for some in starts])
    ranks = np.empty(len(joined), np.int64)
    ranks[np.argsort(joined, kind="stable")] = np.arange(len(joined))
    parts = np.split(ranks, np.cumsum([len(some) for some in starts])[:-1])
    return [array("q", part.tobytes()) for part in parts]


def _microseconds(nanoseconds: array[int]) -> Column:
    times = np.array(nanoseconds, np.float64)
    times /= _MICROSECOND
    column = array("d")
    column.frombytes(times.data.cast("B"))
    return _column(column)


def _column(values: Column) -> Column:
    return values.tolist() if is_packed(values) and len(values) < PACKED_FROM else values  # type: ignore[union-attr]
