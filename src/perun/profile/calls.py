"""Calls with the times at which they began, thread by thread in columns, and which call made which.

A resource is a call if it has no trace but a `timestamp`: it starts then and lasts its `amount`, both in the
same unit. Its caller is the call whose time contains its own, of the same `thread` (or `tid`) and the same
`process` (or `pid`). Where times are too coarse to decide, `call-order` and `caller` of the resource do.

Collectors take off the amounts what recording costs, and leave the timestamps as they are, so that a call
may seem to end before the calls that it made. Of such profiles (:func:`is_corrected`) `call-order` and
`caller` tell which call made which, and `exclusive` what a call took itself (`docs/trace.md`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.profile.arrays import np
from perun.profile.format.columns import is_packed
from perun.profile.format.core import Profile
from perun.profile.format.grouping import ResourceGroup
from perun.profile.uid import flatten

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Frames of call stacks, made from the records of traces and from uids.

MAX_AMOUNT: Final = 1e290
"""Larger amounts are left out, because the sum of many could overflow a float."""

_FUNCTIONS: Final = ("function", "func", "method", "procedure", "name")
_SOURCES: Final = ("source", "file", "module", "package", "bin")
_UNKNOWN_PLACES: Final = ("", "unreachable", "unknown", "??", "None")


class Frame(NamedTuple):
    """One call in a stack; an unknown source is empty, an unknown line 0."""

    name: str
    source: str = ""
    line: int = 0


def frame_of(record: Any) -> Frame:
    """The frame of a record of a trace, or of a uid; each is a mapping or text."""
    if not isinstance(record, Mapping):
        return Frame(str(flatten(record)))
    name = _first_text(record, _FUNCTIONS)
    source = _first_text(record, _SOURCES)
    if not name:
        return Frame(str(flatten(record)) or "?")
    line = record.get("line")
    return Frame(
        name, "" if source in _UNKNOWN_PLACES else source, line if type(line) is int and line > 0 else 0
    )


def _first_text(record: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((str(flatten(record[name])) for name in names if record.get(name) is not None), "")


MAX_DEPTH: Final = 1000
"""Deeper calls have no node of their own; they count for their caller at this depth."""
NONE: Final = -1
"""In place of the number of a frame, a row or a node: there is none."""

_THREAD_KEYS: Final = ("thread", "tid", "pid")
_PROCESS_KEYS: Final = ("process", "pid")
_NS_PER_US: Final = 1000  # times in microseconds often are whole numbers of nanoseconds
_EXACT_FLOATS: Final = 2.0**52  # below, a float holds every whole number
_EXACT_SUMS: Final = 1 << 61  # two numbers below add up to less than 2^63
_ULPS: Final = 4  # by how many units in the last place sums of floats may be off
_BATCH: Final = 1 << 16  # rows that are Python objects at once


class ThreadId(NamedTuple):
    """What the profile calls a process and a thread of it; None where it does not name them."""

    process: Hashable
    thread: Hashable


class ThreadCalls(NamedTuple):
    """The calls of one thread as columns with a row for each call, in the order in which they began.

    :param id: the thread and its process.
    :param start: when each began, in the unit of the profile times `scale`. :param end: when it ended.
    :param scale: the factor that makes `start` and `end` whole numbers; 1 where they are floats.
    :param frame: index into :attr:`ProfileCalls.frames`. :param caller: that of the caller which the resource
        names, or NONE.
    :param value: the requested number of each call, NaN where it has none.
    :param exclusive: of a corrected profile what each call took itself, in the unit of the profile times
        `scale`; the calls are in the order of `call-order` then. None of others.
    """

    id: ThreadId
    start: NDArray[Any]
    end: NDArray[Any]
    scale: int
    frame: NDArray[np.int64]
    caller: NDArray[np.int64]
    value: NDArray[Any]
    exclusive: NDArray[Any] | None = None


class CallTree(NamedTuple):
    """The calls of a thread, merged into one node for each call stack; callers come before their callees.

    :param parent: of each node the node of its caller, or NONE. :param frame: of each node its frame.
    :param node: of each call its node. :param exclusive: of each call what it took itself, in the unit of the
        profile times the scale of the thread.
    :param too_deep: how many calls are deeper than MAX_DEPTH.
    """

    parent: list[int]
    frame: list[int]
    node: NDArray[np.int64]
    exclusive: NDArray[Any]
    too_deep: int


def is_corrected(profile: Profile) -> bool:
    """Whether the amounts of calls are without what recording them costs, but the timestamps are not.

    Those of a normalized profile are no times, so that they do not fit to the others.
    """
    region = profile.get("trace")
    normalized = any(one.get("name") == "normalizer" for one in profile.get("postprocessors", ()))
    return isinstance(region, Mapping) and "overhead" in region and not normalized


class ProfileCalls:
    """The calls of a profile.

    :ivar frames: the frames to which calls refer by index.
    :ivar programs: of each process the `location` of its first call, empty where that has none.
    """

    def __init__(self, *, corrected: bool = False) -> None:
        """:param corrected: whether the profile :func:`is_corrected`, to nest calls by it."""
        self._corrected = corrected
        self.frames: list[Frame] = []
        self.programs: dict[Hashable, str] = {}
        self._first_start: dict[Hashable, float] = {}
        self._numbers: dict[Frame, int] = {}
        self._parts: dict[ThreadId, list[dict[str, NDArray[Any]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, group: ResourceGroup, of: str = "amount") -> None:
        """Add those resources of a group that are calls.

        :param of: the key of the number that becomes the value of each call; `count` is 1 for each.
        """
        start, amount = (_numbers(group, name) for name in ("timestamp", "amount"))
        with np.errstate(invalid="ignore"):
            chosen = (np.abs(start) <= MAX_AMOUNT) & (amount >= 0) & (amount <= MAX_AMOUNT)
        size = int(np.count_nonzero(chosen))
        if not size:
            return
        caller = group.constants.get("caller")
        thread = ThreadId(_first(group, _PROCESS_KEYS), _first(group, _THREAD_KEYS))
        self._note_program(thread.process, float(start[chosen].min()), group.constants.get("location"))
        self._parts.setdefault(thread, []).append(
            {
                "start": start[chosen],
                "amount": amount[chosen],
                "order": _numbers(group, "call-order")[chosen],
                "exclusive": _numbers(group, "exclusive")[chosen],
                "value": _numbers(group, of)[chosen] if of != "count" else np.ones(size, np.int64),
                "frame": np.full(size, self._number(group.constants.get("uid", "?")), np.int64),
                "caller": np.full(size, NONE if caller is None else self._number(caller), np.int64),
            }
        )

    @property
    def thread_ids(self) -> list[ThreadId]:
        """The threads that have calls, in the order of the profile."""
        return list(self._parts)

    def threads(self) -> Iterator[ThreadCalls]:
        """Yield the threads in the order of the profile; each is removed, to need less memory."""
        for thread in self.thread_ids:
            parts = self._parts.pop(thread)
            columns = {}
            for name in list(parts[0]):
                columns[name] = np.concatenate([part.pop(name) for part in parts])
            yield _thread(thread, columns, corrected=self._corrected)

    def _note_program(self, process: Hashable, start: float, location: Any) -> None:
        if start < self._first_start.get(process, float("inf")):
            self._first_start[process] = start
            self.programs[process] = str(flatten(location)) if location else ""

    def _number(self, uid: Any) -> int:
        frame = frame_of(uid)
        number = self._numbers.setdefault(frame, len(self.frames))
        if number == len(self.frames):
            self.frames.append(frame)
        return number


def call_tree(thread: ThreadCalls) -> CallTree:
    """Merge the calls of a thread by their call stacks; calls that overlap in part have the same caller."""
    if thread.exclusive is not None:
        return _tree_by_callers(thread, thread.exclusive)
    tree = _Nodes()
    total = len(thread.start)
    node_of = np.empty(total, np.int64)
    caller_of = np.empty(total, np.int64)
    slack = _slack(thread)
    # The calls that contain the current moment, the innermost last: end, row and node of each.
    running: list[tuple[Any, int, int]] = []
    for first in range(0, total, _BATCH):
        rows = slice(first, first + _BATCH)
        nodes: list[int] = []
        callers: list[int] = []
        columns = (thread.start[rows], thread.end[rows], thread.frame[rows], thread.caller[rows])
        for row, (start, end, frame, caller) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True), first
        ):
            while running:
                last, _, node = running[-1]
                # A call without duration may be the last of its caller, or follow another call.
                is_over = last <= start and (start < end or (caller >= 0 and tree.frame[node] != caller))
                if is_over or last + slack < end:
                    running.pop()
                else:
                    break
            _, caller_row, parent = running[-1] if running else (0, NONE, NONE)
            node = tree.node_of_call(parent, frame, caller)
            nodes.append(node)
            callers.append(caller_row)
            running.append((end, row, node))
        node_of[rows] = nodes
        caller_of[rows] = callers
    callees = np.zeros(total, thread.start.dtype)
    has_caller = caller_of >= 0
    np.add.at(callees, caller_of[has_caller], (thread.end - thread.start)[has_caller])
    exclusive = (thread.end - thread.start - callees).clip(min=0)
    return CallTree(tree.parent, tree.frame, node_of, exclusive, tree.too_deep)


def _tree_by_callers(thread: ThreadCalls, exclusive: NDArray[Any]) -> CallTree:
    """The tree of calls in the order in which they began, each below the innermost one of its `caller`.

    Where several calls of the caller are running, one within another, the innermost is taken whose callees
    took as much time as this call, besides those that it has been given already.
    """
    tree = _Nodes()
    node_of = np.empty(len(thread.start), np.int64)
    # The calls that may have made the next one, the innermost last: frame, node, and time left for callees.
    running: list[tuple[int, int, Any]] = []
    numbers: Counter[int] = Counter()  # of running calls by frame
    for first in range(0, len(node_of), _BATCH):
        rows = slice(first, first + _BATCH)
        nodes: list[int] = []
        duration = thread.end[rows] - thread.start[rows]
        columns = (duration, duration - exclusive[rows], thread.frame[rows], thread.caller[rows])
        for took, of_callees, frame, caller in zip(*(column.tolist() for column in columns), strict=True):
            candidates = numbers[caller]
            parent = NONE
            while running:
                own, node, left = running.pop()
                # Without a candidate, sampling left out the call of the caller: what has room made it.
                fits = own == caller if candidates else caller != NONE
                if fits and (candidates == 1 or left >= took):
                    running.append((own, node, left - took))
                    parent = node
                    break
                numbers[own] -= 1
                candidates -= own == caller
            node = tree.node_of_call(parent, frame, caller)
            nodes.append(node)
            running.append((frame, node, of_callees))
            numbers[frame] += 1
        node_of[rows] = nodes
    return CallTree(tree.parent, tree.frame, node_of, exclusive, tree.too_deep)


class _Nodes:
    """The nodes of a call tree while it grows."""

    def __init__(self) -> None:
        self.parent: list[int] = []
        self.frame: list[int] = []
        self.too_deep = 0
        self._depth: list[int] = []
        self._children: dict[tuple[int, int], int] = {}
        self._absent: dict[tuple[int, int], bool] = {}

    def node_of_call(self, parent: int, frame: int, caller: int) -> int:
        """The node of a call of `frame` below the node `parent`; `caller` is its caller's frame, or NONE."""
        if caller >= 0 and self._lacks(parent, caller):
            # Sampling left out the call of the caller. Its frame still belongs into the stack.
            parent = self._child(parent, caller)
        if parent >= 0 and self._depth[parent] >= MAX_DEPTH:
            self.too_deep += 1
            return parent
        return self._child(parent, frame)

    def _child(self, parent: int, frame: int) -> int:
        node = self._children.get((parent, frame))
        if node is None:
            node = self._children[parent, frame] = len(self.parent)
            self.parent.append(parent)
            self.frame.append(frame)
            self._depth.append(self._depth[parent] + 1 if parent >= 0 else 1)
        return node

    def _lacks(self, node: int, caller: int) -> bool:
        """Whether the stack of a node has room for the frame of this caller, but does not have it."""
        if node < 0:
            return True
        if self.frame[node] == caller or self._depth[node] >= MAX_DEPTH:
            return False
        absent = self._absent.get((node, caller))
        if absent is None:
            above = node
            while above >= 0 and self.frame[above] != caller:
                above = self.parent[above]
            absent = self._absent[node, caller] = above < 0
        return absent


def _thread(thread: ThreadId, columns: dict[str, NDArray[Any]], *, corrected: bool) -> ThreadCalls:
    exclusive = columns.pop("exclusive")
    corrected = corrected and not any(np.isnan(one).any() for one in (exclusive, columns["order"]))
    start, amount, scale = _scaled(columns.pop("start"), columns.pop("amount"))
    end = start + amount
    del amount
    order = columns.pop("order")
    # Of calls that began at the same moment, the first by call-order is the caller, or else the longest.
    ordered = (-end, order, start) if not np.isnan(order).any() else (-end, start)
    by_time = np.argsort(order, kind="stable") if corrected else np.lexsort(ordered)
    del order, ordered
    frame, caller, value = (columns.pop(name)[by_time] for name in ("frame", "caller", "value"))
    return ThreadCalls(
        *(thread, start[by_time], end[by_time], scale, frame, caller, value),
        exclusive[by_time] * (scale / _NS_PER_US) if corrected else None,
    )


def _scaled(start: NDArray[Any], amount: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Starts, amounts and their scale: if possible whole numbers, whose sums compare exactly."""
    for scale in (1, _NS_PER_US):
        starts, amounts = _whole(start, scale), _whole(amount, scale)
        if starts is not None and amounts is not None:
            return starts, amounts, scale
    return start, amount, 1


def _whole(numbers: NDArray[Any], scale: int) -> NDArray[np.int64] | None:
    """The numbers times `scale` as integers; None if one is not whole, or too large to be exact."""
    if numbers.dtype.kind == "i":
        return numbers * scale if (np.abs(numbers) < _EXACT_SUMS // scale).all() else None
    scaled = numbers * scale
    size = np.abs(scaled)
    if not (size < _EXACT_FLOATS).all():
        return None
    rounded = np.rint(scaled)
    close = np.abs(scaled - rounded) <= _ULPS * np.spacing(size) * (scale > 1)
    return rounded.astype(np.int64) if close.all() else None


def _slack(thread: ThreadCalls) -> float:
    """By how much a call may end after its caller, because the sum of start and duration is rounded."""
    if thread.end.dtype.kind == "i":
        return 0
    return _ULPS * float(np.spacing(np.abs(thread.end).max()))


def _first(group: ResourceGroup, names: Iterable[str]) -> Hashable:
    """The value of the first of these keys that the group has as a constant; None if it has none."""
    found: Hashable = next(
        (flatten(group.constants[name]) for name in names if name in group.constants), None
    )
    return found


def _numbers(group: ResourceGroup, name: str) -> NDArray[Any]:
    """The number of each resource under a key; NaN where it has none."""
    values: Any = group.columns.get(name)
    if values is None:
        return np.full(group.size, _number(group.constants.get(name)))
    if is_packed(values):
        return np.array(values)
    return _as_numbers(values)


def _as_numbers(values: Iterable[Any]) -> NDArray[Any]:
    values = list(values)
    if all(type(value) is int and abs(value) < _EXACT_SUMS for value in values):
        return np.array(values, np.int64)
    return np.array([_number(value) for value in values], np.float64)


def _number(value: Any) -> float:
    # A whole number may be larger than any float.
    return float(value) if type(value) in (int, float) and abs(value) <= MAX_AMOUNT else float("nan")
