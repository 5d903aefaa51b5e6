"""Call stacks of a profile: from the traces of its resources, or from the times of calls.

Traces are those of the manual's section 2.1: they start at the innermost call. A resource without a trace but
with a `timestamp` is a call; :mod:`perun.profile.calls` finds its caller by the times.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import count, repeat
from posixpath import basename
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core.errors import ProfileError, UsageError
from perun.profile.arrays import np
from perun.profile.calls import (
    MAX_AMOUNT,
    CallTree,
    Frame,
    ProfileCalls,
    ThreadCalls,
    ThreadId,
    call_tree,
    frame_of,
    is_corrected,
)
from perun.profile.format.core import Profile
from perun.profile.format.grouping import COLUMNS, ResourceGroup
from perun.profile.memory import RELEASES, is_release, is_summary

if TYPE_CHECKING:
    from numpy.typing import NDArray


COUNT: Final = "count"
"""In place of the key of a number: the number of resources."""

_MAX_SUM: Final = 2.0**62  # larger sums may not fit into 64 bits
Stack = tuple[Frame, ...]


class Stacks(NamedTuple):
    """What call stacks consume; a stack begins with the outermost call.

    :param amounts: the exclusive amount of each stack, above 0, in the unit of the profile.
    :param left_out: number of resources with a stack whose amount is negative or not a number. One without
        the key counts as 0: what was released before the peak of a memory profile has no `peak`.
    :param too_deep: number of calls that count for their caller because they are nested too deeply.
    """

    amounts: dict[Stack, float]
    left_out: int
    too_deep: int = 0


def stacks_of(profile: Profile, of: str = "amount", subtype: str = "") -> Stacks:
    """The call stacks of the profile. Releases of memory do not count.

    :param of: the key of the number to sum up, or :data:`COUNT`. :param subtype: only resources of this one.
    :raises UsageError: if no resource has such a number.
    :raises ProfileError: if there are no resources, none has a stack, or no stack has an amount above 0.
    """
    found = list(profile.groups())
    if not found:
        raise ProfileError("the profile has no resources", "collect a new profile; this one measured nothing")
    groups = [one for one in found if not is_release(one.constants) and not is_summary(one.constants)]
    if of != COUNT and not any(of in group.columns or of in group.constants for group in groups):
        known = sorted({name for group in groups for name in _numbers(group)} | {COUNT})
        raise UsageError(
            f"no resource has a number in {of!r}",
            "name another key with --of; the profile has: " + ", ".join(known),
        )
    sums = _Sums()
    calls = ProfileCalls(corrected=is_corrected(profile))
    for group in groups:
        if "trace" in group.constants or "trace" in group.columns:
            _add_traces(sums, group, of, subtype)
        elif "timestamp" in group.columns or "timestamp" in group.constants:
            calls.add(group, of)
    _add_nested(sums, calls, of)
    if not sums.amounts and not sums.left_out and not sums.empty:
        raise ProfileError(
            "the profile has no call stacks: no resource has a trace or a timestamp",
            "collect a profile with perun collect memory or perun collect trace, or draw this one with: "
            "perun show <profile> bars sum --of amount --per uid",
        )
    if not sums.amounts:
        raise ProfileError(
            f"no call stack has a value of {of!r} above 0",
            f"name another key with --of, e.g. --of {COUNT}",
        )
    return Stacks(sums.amounts, sums.left_out, sums.too_deep)


class _Sums:
    def __init__(self) -> None:
        self.amounts: dict[Stack, float] = {}
        self.frame = _FrameCache()
        self.left_out = 0
        self.empty = 0
        self.too_deep = 0

    def add(self, stack: Stack, amount: Any) -> None:
        if amount is None or (_is_amount(amount) and not amount):
            self.empty += 1
        elif not _is_amount(amount):
            self.left_out += 1
        else:
            self.amounts[stack] = self.amounts.get(stack, 0) + amount


def _add_traces(sums: _Sums, group: ResourceGroup, of: str, only: str) -> None:
    known: dict[int, Stack] = {}
    for trace, subtype, amount in zip(
        *(_values(group, name) for name in ("trace", "subtype", of)), strict=False
    ):
        if not trace or (isinstance(subtype, str) and subtype in RELEASES) or (only and subtype != only):
            continue
        if id(trace) not in known:
            records = trace if isinstance(trace, (list, tuple)) else [trace]
            known[id(trace)] = tuple(map(sums.frame, reversed(records)))
        sums.add(known[id(trace)], amount)


def _add_nested(sums: _Sums, calls: ProfileCalls, of: str) -> None:
    for thread in calls.threads():
        tree = call_tree(thread)
        sums.too_deep += tree.too_deep
        if of == "amount":
            # The duration of a call includes that of its callees; all other numbers are of the call alone.
            amounts = _sums_by_node(tree, tree.node, tree.exclusive, thread.scale)
        else:
            valid = (thread.value >= 0) & (thread.value <= MAX_AMOUNT)
            sums.left_out += int((~valid).sum())
            amounts = _sums_by_node(tree, tree.node[valid], thread.value[valid], 1)
        stacks: list[Stack] = []
        for parent, frame, amount in zip(tree.parent, tree.frame, amounts, strict=True):
            stacks.append((*(stacks[parent] if parent >= 0 else ()), calls.frames[frame]))
            sums.add(stacks[-1], amount)


def _sums_by_node(tree: CallTree, node: NDArray[Any], values: NDArray[Any], scale: int) -> list[float]:
    """For each node of the tree the sum of the values of its calls, divided by `scale`."""
    # Integers whose sum does not fit into 64 bits are added up as floats.
    fits = values.dtype.kind != "i" or float(values.sum(dtype=np.float64)) < _MAX_SUM
    sums = np.zeros(len(tree.parent), values.dtype if fits else np.float64)
    np.add.at(sums, node, values if fits else values.astype(np.float64))
    by_node: list[float] = (sums / scale if scale > 1 else sums).tolist()
    return by_node


class _FrameCache:
    """Frames of records, each made once: traces have the same records again and again."""

    def __init__(self) -> None:
        self._known: dict[Any, Frame] = {}

    def __call__(self, record: Any) -> Frame:
        key = tuple(record.items()) if isinstance(record, dict) else record
        try:
            frame = self._known.get(key)
            if frame is None:
                frame = self._known[key] = frame_of(record)
        except TypeError:  # a record with a nested list or mapping cannot be a key
            return frame_of(record)
        return frame


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MAX_AMOUNT  # false for NaN


def _values(group: ResourceGroup, name: str) -> Iterable[Any]:
    if name in group.columns:
        return group.columns[name]
    return repeat(group.constants.get(name, 1 if name == COUNT else None), group.size)


def _numbers(group: ResourceGroup) -> Iterator[str]:
    for name in group.columns:
        if name in COLUMNS:
            yield name
    for name, value in group.constants.items():
        if type(value) in (int, float):
            yield name


# Call stacks of one or two profiles, merged into one tree for the page.


class StackTree:
    """A tree of calls: a node for each call stack, callers before their callees.

    :ivar frames: the different frames.
    :ivar parents: of each node the node of its caller, -1 for an outermost call.
    :ivar frame_of: of each node the index of its frame in `frames`.
    :ivar amounts: for each profile a list with the exclusive amount of each node.
    """

    def __init__(self, profiles: Sequence[dict[Stack, float]]) -> None:
        self.frames: list[Frame] = []
        self.parents: list[int] = []
        self.frame_of: list[int] = []
        self.amounts: list[list[float]] = [[] for _ in profiles]
        self._indices: dict[Frame, int] = {}
        self._seen: dict[int, int] = {}
        self._children: dict[tuple[int, int], int] = {}
        for number, stacks in enumerate(profiles):
            for stack, amount in stacks.items():
                self.amounts[number][self._node(stack)] += amount

    def _node(self, stack: Stack) -> int:
        node = -1
        seen = self._seen
        for frame in stack:
            # Equal frames of one profile are the same object; its id is a faster key than its text.
            index = seen.get(id(frame))
            if index is None:
                index = seen[id(frame)] = self._index(frame)
            child = self._children.get((node, index))
            if child is None:
                child = self._children[node, index] = len(self.parents)
                self.parents.append(node)
                self.frame_of.append(index)
                for amounts in self.amounts:
                    amounts.append(0)
            node = child
        return node

    def _index(self, frame: Frame) -> int:
        index = self._indices.setdefault(frame, len(self.frames))
        if index == len(self.frames):
            self.frames.append(frame)
        return index

    def document(self) -> dict[str, Any]:
        """The data of the page: each name and source once, nodes as columns, parents before their children.

        `parents` holds the distance of a node to its parent, 0 for an outermost call: small numbers make a
        small page.
        """
        sources = sorted({frame.source for frame in self.frames})
        numbers = {source: number for number, source in enumerate(sources)}
        return {
            "sources": sources,
            "names": [frame.name for frame in self.frames],
            "places": [numbers[frame.source] for frame in self.frames],
            "lines": [frame.line for frame in self.frames],
            "parents": [node - parent if parent >= 0 else 0 for node, parent in enumerate(self.parents)],
            "frames": self.frame_of,
            "amounts": self.amounts,
        }


# Call stacks in the formats of other tools: folded stacks, and the JSON of speedscope.

_SPEEDSCOPE_UNITS: Final = {
    **{"B": "bytes", "b": "bytes", "byte": "bytes", "bytes": "bytes"},
    **{"ns": "nanoseconds", "us": "microseconds", "µs": "microseconds", "ms": "milliseconds", "s": "seconds"},
}
_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


def folded(stacks: dict[Stack, float], by_line: bool = False) -> str:
    """One line for each stack: its frames, the outermost first, joined by `;`, then a blank and the amount.

    flamegraph.pl, speedscope, inferno and others read this format. In names `;` becomes `:`, and white space
    becomes one blank.

    :param by_line: write frames as `name (source:line)`, so that calls from different lines differ.
    """
    sums: dict[str, float] = {}
    for stack, amount in stacks.items():
        text = ";".join(_folded_frame(frame, by_line) for frame in stack)
        sums[text] = sums.get(text, 0) + amount
    return "".join(f"{text} {_decimal(amount)}\n" for text, amount in sorted(sums.items()))


def speedscope(stacks: dict[Stack, float], *, name: str, unit: str, exporter: str) -> dict[str, Any]:
    """The document of https://www.speedscope.app: each stack is a sample, and its amount the weight."""
    numbers: dict[Frame, int] = {}
    samples = [[numbers.setdefault(frame, len(numbers)) for frame in stack] for stack in stacks]
    return {
        "$schema": _SCHEMA,
        "exporter": exporter,
        "name": name,
        "activeProfileIndex": 0,
        "shared": {"frames": [_speedscope_frame(frame) for frame in numbers]},
        "profiles": [
            {
                "type": "sampled",
                "name": name,
                "unit": _SPEEDSCOPE_UNITS.get(unit, "none"),
                "startValue": 0,
                "endValue": sum(stacks.values()),
                "samples": samples,
                "weights": list(stacks.values()),
            }
        ],
    }


def _folded_frame(frame: Frame, by_line: bool) -> str:
    text = _with_line(frame) if by_line else frame.name
    return " ".join(text.replace(";", ":").split()) or "?"


def _with_line(frame: Frame) -> str:
    if not frame.source and not frame.line:
        return frame.name
    return f"{frame.name} ({frame.source or '?'}:{frame.line})"


def _decimal(amount: float) -> str:
    """The number without an exponent, which some readers do not accept."""
    if isinstance(amount, int):
        return str(amount)
    text = format(Decimal(repr(amount)), "f")
    return text.removesuffix(".0")


def _speedscope_frame(frame: Frame) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": frame.name}
    if frame.source:
        entry["file"] = frame.source
    if frame.line:
        entry["line"] = frame.line
    return entry


# Calls in the Trace Event Format (JSON), which Perfetto and chrome://tracing read.

_MICROSECONDS: Final = {"": 1.0, "ns": 1e-3, "us": 1.0, "µs": 1.0, "μs": 1.0, "ms": 1e3, "s": 1e6}
_NO_SIZE: Final = "call-order"
"""The `size-source` of a call whose `structure-unit-size` is the number of earlier calls."""
_BATCH: Final = 10_000  # events of one piece of text


def chrome_trace(profile: Profile, *, name: str, unit: str, exporter: str) -> Iterator[str]:
    """Yield the document in pieces of text: a complete event (`"ph": "X"`, in microseconds) for each call.

    The size of the structure that a call works on is the argument `size` of its event. Processes and threads
    keep the numbers that they have in the profile; metadata events (`"ph": "M"`) name them.

    :param name: the name of the process, if there is only one; several are named after their programs.
    :param unit: the unit of timestamps and amounts in the profile.
    :raises ProfileError: at the call, if the unit is not one of time or no resource is a call.
    """
    if unit not in _MICROSECONDS:
        raise ProfileError(
            f"--format chrome needs amounts of time; those of the profile are in {unit}",
            "choose another --format: html, folded or speedscope",
        )
    calls = ProfileCalls()
    for group in profile.groups():
        if "trace" not in group.constants and "trace" not in group.columns:
            has_size = group.constants.get("size-source") != _NO_SIZE
            calls.add(group, "structure-unit-size" if has_size else "")
    if not calls:
        raise ProfileError(
            "--format chrome needs the start times of calls, but no resource has a timestamp",
            "collect a profile with perun collect trace or perun collect complexity, or choose another "
            "--format, e.g. folded",
        )
    return _pieces(calls, name, _MICROSECONDS[unit], exporter)


def _pieces(calls: ProfileCalls, name: str, factor: float, exporter: str) -> Iterator[str]:
    import json

    yield f'{{"displayTimeUnit":"ns","otherData":{json.dumps({"exporter": exporter})},"traceEvents":[\n'
    pids = _numbered(thread.process for thread in calls.thread_ids)
    tids = {
        ThreadId(process, thread): tid
        for process in pids
        for thread, tid in _numbered(id.thread for id in calls.thread_ids if id.process == process).items()
    }
    programs = {} if len(pids) == 1 else calls.programs
    metadata = [
        _metadata("process_name", pid, 0, basename(programs.get(process, "")) or name)
        for process, pid in pids.items()
    ]
    metadata += [
        _metadata("thread_name", pids[thread.process], tid, _thread_name(thread))
        for thread, tid in tids.items()
        if thread.thread is not None
    ]
    yield ",\n".join(metadata)
    names = [json.dumps(frame.name) for frame in calls.frames]
    for thread in calls.threads():
        yield from _events(thread, names, pids[thread.id.process], tids[thread.id], factor)
    yield "\n]}\n"


def _thread_name(id: ThreadId) -> str:
    if type(id.thread) is not int:
        return str(id.thread)
    return "main thread" if id.thread == id.process else f"thread {id.thread}"


def _events(thread: ThreadCalls, names: list[str], pid: int, tid: int, factor: float) -> Iterator[str]:
    # Written without the json module, which takes several times as long for millions of events.
    head = f',\n{{"ph":"X","pid":{pid},"tid":{tid},"name":'
    for first in range(0, len(thread.start), _BATCH):
        rows = slice(first, first + _BATCH)
        start = thread.start[rows]
        times = (_times(one, thread.scale, factor) for one in (start, thread.end[rows] - start))
        value = thread.value[rows]
        sizes: Any = repeat(float("nan")) if np.isnan(value).all() else value.tolist()
        yield "".join(
            f'{head}{names[frame]},"ts":{ts},"dur":{duration}}}'
            if size != size  # NaN
            else f'{head}{names[frame]},"ts":{ts},"dur":{duration},"args":{{"size":{_whole(size)}}}}}'
            for frame, ts, duration, size in zip(thread.frame[rows].tolist(), *times, sizes, strict=False)
        )


def _times(times: Any, scale: int, factor: float) -> list[float]:
    in_microseconds: list[float] = np.round(times / scale * factor, 3).tolist()
    return in_microseconds


def _whole(size: float) -> float:
    """The size as an integer if it is whole; a column that also has NaN holds floats."""
    return int(size) if size == int(size) else size


def _numbered(known: Iterable[Hashable]) -> dict[Hashable, int]:
    """A number for each process or thread: its own if that is a number, else an unused one above 0."""
    ordered = list(dict.fromkeys(known))
    numbers: dict[Hashable, int] = {one: one for one in ordered if type(one) is int}
    taken = set(numbers.values())
    free = (number for number in count(1) if number not in taken)
    return {one: numbers[one] if one in numbers else next(free) for one in ordered}


def _metadata(key: str, pid: int, tid: int, name: str) -> str:
    import json

    return json.dumps(
        {"ph": "M", "pid": pid, "tid": tid, "name": key, "args": {"name": name}}, separators=(",", ":")
    )
