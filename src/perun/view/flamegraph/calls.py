"""Calls with the times at which they began: which one lies within which, thread by thread, in columns.

A resource is a call where it has no trace but a `timestamp`: it starts then and lasts its `amount`, both in
the same unit. It was made by the call that it lies in, which is of the same `thread` (or `tid`) of the same
`process` (or `pid`); where times are too coarse to tell, its `call-order` and its `caller` do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from perun.profile.format.columns import is_packed
from perun.profile.uid import flatten
from perun.view.flamegraph.frames import LARGEST, Frame, frame_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perun.profile.format.grouping import Group

DEEPEST: Final = 1000
"""Calls within more calls than these count for the innermost one that is still told."""
NONE: Final = -1
"""Number of a frame or a node that is not there."""

_THREADS: Final = ("thread", "tid", "pid")
_PROCESSES: Final = ("process", "pid")
_THOUSAND: Final = 1000  # nanoseconds of a microsecond, in which whole numbers are exact
_EXACT: Final = 2.0**52
_MOST: Final = 1 << 61  # of which two add up to 64 bits
_ULPS: Final = 4
_ROWS: Final = 1 << 16


class Which(NamedTuple):
    """What the profile calls a process and a thread of it; None where it does not."""

    process: Hashable
    thread: Hashable


class Thread(NamedTuple):
    """The calls of one thread, in the order in which they began.

    :param which: the thread and its process.
    :param start: when they began, `scale` to the unit of the profile. :param end: when they ended.
    :param scale: what `start` and `end` are multiplied with, so that they are whole where that can be.
    :param frame: number of the frame of each in :attr:`Calls.frames`; :param caller: that of its caller.
    :param value: the number that was asked for, NaN where it is none.
    """

    which: Which
    start: NDArray[Any]
    end: NDArray[Any]
    scale: int
    frame: NDArray[np.int64]
    caller: NDArray[np.int64]
    value: NDArray[Any]


class Nodes(NamedTuple):
    """The calls of a thread put together by their stacks; a node comes after the one that it lies in.

    :param parent: the node that each lies in, NONE where none. :param frame: the frame of each node.
    :param of_call: the node of each call. :param inner: the time of the calls directly within each call.
    :param cut: how many calls were too deep for nodes of their own.
    """

    parent: list[int]
    frame: list[int]
    of_call: NDArray[np.int64]
    inner: NDArray[Any]
    cut: int


class Calls:
    """The calls of a profile.

    :ivar frames: the frames that calls refer to.
    :ivar places: of each process the `location` of its first call, empty where it has none.
    """

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.places: dict[Hashable, str] = {}
        self._begun: dict[Hashable, float] = {}
        self._numbers: dict[Frame, int] = {}
        self._of_text: dict[Any, int] = {}
        self._parts: dict[Which, list[dict[str, NDArray[Any]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, group: Group, of: str = "amount") -> None:
        """Take in the resources of a group that are calls.

        :param of: which number of each is kept as its value.
        """
        start, amount = (_numbers(group, name) for name in ("timestamp", "amount"))
        with np.errstate(invalid="ignore"):
            chosen = (np.abs(start) <= LARGEST) & (amount >= 0) & (amount <= LARGEST)
        size = int(np.count_nonzero(chosen))
        if not size:
            return
        caller = group.constants.get("caller")
        which = Which(_first(group, _PROCESSES), _first(group, _THREADS))
        self._note_place(which.process, float(start[chosen].min()), group.constants.get("location"))
        self._parts.setdefault(which, []).append(
            {
                "start": start[chosen],
                "amount": amount[chosen],
                "order": _numbers(group, "call-order")[chosen],
                "value": _numbers(group, of)[chosen] if of != "count" else np.ones(size, np.int64),
                "frame": np.full(size, self._number(group.constants.get("uid", "?")), np.int64),
                "caller": np.full(size, NONE if caller is None else self._number(caller), np.int64),
            }
        )

    @property
    def threads_known(self) -> list[Which]:
        """The threads that there are."""
        return list(self._parts)

    def threads(self) -> Iterator[Thread]:
        """The threads one after the other, in the order of the profile; each is taken out."""
        for which in self.threads_known:
            parts = self._parts.pop(which)
            columns = {}
            for name in list(parts[0]):
                columns[name] = np.concatenate([part.pop(name) for part in parts])
            yield _thread(which, columns)

    def _note_place(self, process: Hashable, begun: float, place: Any) -> None:
        if begun < self._begun.get(process, float("inf")):
            self._begun[process] = begun
            self.places[process] = str(flatten(place)) if place else ""

    def _number(self, uid: Any) -> int:
        frame = frame_of(uid)
        number = self._numbers.setdefault(frame, len(self.frames))
        if number == len(self.frames):
            self.frames.append(frame)
        return number


def nodes_of(thread: Thread) -> Nodes:
    """What lies in what; calls that overlap without one being within the other are beside each other."""
    parents: list[int] = []
    frames: list[int] = []
    depths: list[int] = []
    children: dict[tuple[int, int], int] = {}
    running: list[tuple[Any, int, int]] = []  # end, row, node
    total = len(thread.start)
    of_call = np.empty(total, np.int64)
    inside = np.empty(total, np.int64)
    slack = _slack(thread)
    cut = 0

    def node_in(parent: int, frame: int) -> int:
        node = children.get((parent, frame))
        if node is None:
            node = children[parent, frame] = len(parents)
            parents.append(parent)
            frames.append(frame)
            depths.append(depths[parent] + 1 if parent >= 0 else 1)
        return node

    # The frames that callers without calls of their own, as sampling leaves them, have in a stack.
    missing: dict[tuple[int, int], bool] = {}

    def is_missing(node: int, caller: int) -> bool:
        known = missing.get((node, caller))
        if known is None:
            above = node
            while above >= 0 and frames[above] != caller:
                above = parents[above]
            known = missing[node, caller] = above < 0
        return known

    for first in range(0, total, _ROWS):
        rows = slice(first, first + _ROWS)
        nodes: list[int] = []
        outer: list[int] = []
        columns = (thread.start[rows], thread.end[rows], thread.frame[rows], thread.caller[rows])
        for row, (start, end, frame, caller) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True), first
        ):
            while running:
                last, _, node = running[-1]
                # What takes no time may lie at the very end of its caller, or just behind another call.
                behind = last <= start and (start < end or (caller >= 0 and frames[node] != caller))
                if behind or last + slack < end:
                    running.pop()
                else:
                    break
            _, around, parent = running[-1] if running else (0, NONE, NONE)
            if (
                caller >= 0
                and (parent < 0 or (frames[parent] != caller and depths[parent] < DEEPEST))
                and is_missing(parent, caller)
            ):
                parent = node_in(parent, caller)
            if parent >= 0 and depths[parent] >= DEEPEST:
                cut += 1
                node = parent
            else:
                node = node_in(parent, frame)
            nodes.append(node)
            outer.append(around)
            running.append((end, row, node))
        of_call[rows] = nodes
        inside[rows] = outer
    inner = np.zeros(total, thread.start.dtype)
    within = inside >= 0
    np.add.at(inner, inside[within], (thread.end - thread.start)[within])
    return Nodes(parents, frames, of_call, inner, cut)


def _thread(which: Which, columns: dict[str, NDArray[Any]]) -> Thread:
    start, amount, scale = _scaled(columns.pop("start"), columns.pop("amount"))
    end = start + amount
    del amount
    order = columns.pop("order")
    # What began at the same moment: by the order of the calls where it is known, else the longest first.
    ordered = (-end, order, start) if not np.isnan(order).any() else (-end, start)
    by_time = np.lexsort(ordered)
    del order, ordered
    return Thread(
        which,
        start[by_time],
        end[by_time],
        scale,
        *(columns.pop(name)[by_time] for name in ("frame", "caller", "value")),
    )


def _scaled(start: NDArray[Any], amount: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], int]:
    for scale in (1, _THOUSAND):
        starts, amounts = _whole(start, scale), _whole(amount, scale)
        if starts is not None and amounts is not None:
            return starts, amounts, scale
    return start, amount, 1


def _whole(numbers: NDArray[Any], scale: int) -> NDArray[np.int64] | None:
    """The numbers times `scale`, where these are whole, as far as floats can tell, and exact."""
    if numbers.dtype.kind == "i":
        return numbers * scale if (np.abs(numbers) < _MOST // scale).all() else None
    scaled = numbers * scale
    size = np.abs(scaled)
    if not (size < _EXACT).all():
        return None
    rounded = np.rint(scaled)
    close: bool = (np.abs(scaled - rounded) <= _ULPS * np.spacing(size) * (scale > 1)).all()
    return rounded.astype(np.int64) if close else None


def _slack(thread: Thread) -> float:
    """By how much a call may end after the one it lies in, as times in floats are not exact."""
    if thread.end.dtype.kind == "i":
        return 0
    return _ULPS * float(np.spacing(np.abs(thread.end).max()))


def _first(group: Group, names: Iterable[str]) -> Hashable:
    """The first of these constants that the group has."""
    found: Hashable = next(
        (flatten(group.constants[name]) for name in names if name in group.constants), None
    )
    return found


def _numbers(group: Group, name: str) -> NDArray[Any]:
    """One number for each resource; NaN where there is none."""
    values: Any = group.columns.get(name)
    if values is None:
        return np.full(group.size, _number(group.constants.get(name)))
    if is_packed(values):
        return np.array(values)
    return _as_numbers(values)


def _as_numbers(values: Iterable[Any]) -> NDArray[Any]:
    values = list(values)
    if all(type(value) is int and abs(value) < _MOST for value in values):
        return np.array(values, np.int64)
    return np.array([_number(value) for value in values], np.float64)


def _number(value: Any) -> float:
    # A whole number may be larger than any float.
    return float(value) if type(value) in (int, float) and abs(value) <= LARGEST else float("nan")
