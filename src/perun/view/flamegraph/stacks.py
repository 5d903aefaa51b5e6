"""Call stacks of a profile: from the traces of its resources, or from calls that lie within each other.

Traces are those of the manual's section 2.1: they start at the innermost call. Where resources have no trace
but a `timestamp`, each is a call that starts then and lasts its `amount`, both in the same unit; it was made
by the call of the same `thread` (or `tid`) that it lies in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.errors import ProfileError, UsageError
from perun.profile.grouping import COLUMNS, Group, flatten

if TYPE_CHECKING:
    from perun.profile.core import Profile

COUNT: Final = "count"
"""What may be asked for beside the numbers of the resources: how many resources there are."""

_FUNCTIONS: Final = ("function", "func", "method", "procedure", "name")
_SOURCES: Final = ("source", "file", "module", "package", "bin")
_THREADS: Final = ("thread", "tid", "pid")
_UNKNOWN_PLACES: Final = ("", "unreachable", "unknown", "??", "None")


_LARGEST: Final = 1e290  # of which a sum is still a float


class Frame(NamedTuple):
    """One call in a stack; a source that is not known is empty, a line 0."""

    name: str
    source: str = ""
    line: int = 0


Stack = tuple[Frame, ...]


class Stacks(NamedTuple):
    """What stacks consume, the outermost call first.

    :param amounts: stack to the sum of what it consumed itself, which is above 0.
    :param left_out: number of resources with a stack whose amount is below 0 or no number.
    """

    amounts: dict[Stack, float]
    left_out: int


def stacks_of(profile: Profile, of: str = "amount") -> Stacks:
    """The stacks of the profile; memory that is released is no resource of a stack.

    :param of: which number of the resources to sum up, or :data:`COUNT`.
    :raises UsageError: where no resource has such a number.
    :raises ProfileError: where no resource has a stack, or all of them consumed nothing.
    """
    groups = [group for group in profile.groups() if group.constants.get("subtype") != "free"]
    if of != COUNT and not any(of in group.columns or of in group.constants for group in groups):
        known = sorted({name for group in groups for name in _numbers(group)} | {COUNT})
        raise UsageError(f"no resource has {of!r}", "those of the profile are: " + ", ".join(known))
    sums = _Sums()
    calls: dict[Any, list[_Call]] = {}
    for group in groups:
        if "trace" in group.constants or "trace" in group.columns:
            _add_traces(sums, group, of)
        elif "timestamp" in group.columns or "timestamp" in group.constants:
            _add_calls(calls, group, of)
    for made in calls.values():
        _add_nested(sums, made, of)
    if not sums.amounts and not sums.left_out and not sums.empty:
        raise ProfileError(
            "no resource has a trace, or a timestamp from which calls within calls could be told",
            "collect a profile with perun collect memory, or look at this one with: "
            "perun show <profile> bars sum --of amount --per uid",
        )
    if not sums.amounts:
        raise ProfileError(
            f"no stack has a {of} above 0", f"choose another number with --of, e.g. --of {COUNT}"
        )
    return Stacks(sums.amounts, sums.left_out)


class _Sums:
    def __init__(self) -> None:
        self.amounts: dict[Stack, float] = {}
        self.frame = _Frames()
        self.left_out = 0
        self.empty = 0

    def add(self, stack: Stack, amount: Any) -> None:
        if not _is_amount(amount):
            self.left_out += 1
        elif not amount:
            self.empty += 1
        else:
            self.amounts[stack] = self.amounts.get(stack, 0) + amount


class _Call(NamedTuple):
    start: float
    end: float
    frame: Frame
    value: Any


def _add_traces(sums: _Sums, group: Group, of: str) -> None:
    known: dict[int, Stack] = {}
    for trace, subtype, amount in zip(
        *(_values(group, name) for name in ("trace", "subtype", of)), strict=False
    ):
        if not trace or subtype == "free":
            continue
        if id(trace) not in known:
            records = trace if isinstance(trace, (list, tuple)) else [trace]
            known[id(trace)] = tuple(map(sums.frame, reversed(records)))
        sums.add(known[id(trace)], amount)


def _add_calls(calls: dict[Any, list[_Call]], group: Group, of: str) -> None:
    frame = frame_of(group.constants.get("uid", "?"))
    thread = next((flatten(group.constants[name]) for name in _THREADS if name in group.constants), None)
    made = calls.setdefault(thread, [])
    for start, amount, value in zip(
        *(_values(group, name) for name in ("timestamp", "amount", of)), strict=False
    ):
        if type(start) in (int, float) and _is_amount(abs(start)) and _is_amount(amount):
            made.append(_Call(start, start + amount, frame, value))


def _add_nested(sums: _Sums, calls: list[_Call], of: str) -> None:
    calls.sort(key=lambda call: (call.start, -call.end))
    running: list[tuple[_Call, Stack, list[float]]] = []

    def close() -> None:
        call, stack, inner = running.pop()
        # Time is the one number of a call that those made within it are a part of.
        sums.add(stack, max(call.end - call.start - sum(inner), 0) if of == "amount" else call.value)

    for call in calls:
        while running and running[-1][0].end < call.end:
            close()
        while running and running[-1][0].end <= call.start and call.start < call.end:
            close()
        stack = (*running[-1][1], call.frame) if running else (call.frame,)
        if running:
            running[-1][2].append(call.end - call.start)
        running.append((call, stack, []))
    while running:
        close()


class _Frames:
    """Frames of records; the same record is looked at once, for a trace has it again and again."""

    def __init__(self) -> None:
        self._known: dict[Any, Frame] = {}

    def __call__(self, record: Any) -> Frame:
        key = tuple(record.items()) if isinstance(record, dict) else record
        try:
            frame = self._known.get(key)
            if frame is None:
                frame = self._known[key] = frame_of(record)
        except TypeError:  # something nested within
            return frame_of(record)
        return frame


def frame_of(record: Any) -> Frame:
    """The frame of one record of a trace, or of a uid: a mapping, or any text."""
    if not isinstance(record, Mapping):
        return Frame(str(flatten(record)))
    name = _first(record, _FUNCTIONS)
    source = _first(record, _SOURCES)
    if not name:
        return Frame(str(flatten(record)) or "?")
    line = record.get("line")
    return Frame(
        name, "" if source in _UNKNOWN_PLACES else source, line if type(line) is int and line > 0 else 0
    )


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= _LARGEST  # no comparison holds for NaN


def _first(record: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((str(flatten(record[name])) for name in names if record.get(name) is not None), "")


def _values(group: Group, name: str) -> Iterable[Any]:
    if name in group.columns:
        return group.columns[name]
    return repeat(1 if name == COUNT else group.constants.get(name), group.size)


def _numbers(group: Group) -> Iterator[str]:
    for name in group.columns:
        if name in COLUMNS:
            yield name
    for name, value in group.constants.items():
        if type(value) in (int, float):
            yield name
