"""Call stacks of a profile: from the traces of its resources, or from calls that lie within each other.

Traces are those of the manual's section 2.1: they start at the innermost call. Where resources have no trace
but a `timestamp`, each is a call; :mod:`perun.view.flamegraph.calls` says which one lies within which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.errors import ProfileError, UsageError
from perun.profile.format.grouping import COLUMNS, Group
from perun.view.flamegraph.frames import LARGEST, Frame, frame_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perun.profile.format.core import Profile
    from perun.view.flamegraph.calls import Calls, Nodes

COUNT: Final = "count"
"""What may be asked for beside the numbers of the resources: how many resources there are."""

_LARGEST_WHOLE: Final = 2.0**62
Stack = tuple[Frame, ...]


class Stacks(NamedTuple):
    """What stacks consume, the outermost call first.

    :param amounts: stack to the sum of what it consumed itself, which is above 0.
    :param left_out: number of resources with a stack whose amount is below 0 or no number.
    :param cut: number of calls that were too deep to be told apart from those they were made by.
    """

    amounts: dict[Stack, float]
    left_out: int
    cut: int = 0


def stacks_of(profile: Profile, of: str = "amount") -> Stacks:
    """The stacks of the profile; memory that is released is no resource of a stack.

    :param of: which number of the resources to sum up, or :data:`COUNT`.
    :raises UsageError: where no resource has such a number.
    :raises ProfileError: where no resource has a stack, or all of them consumed nothing.
    """
    from perun.view.flamegraph.calls import Calls

    groups = [group for group in profile.groups() if group.constants.get("subtype") != "free"]
    if of != COUNT and not any(of in group.columns or of in group.constants for group in groups):
        known = sorted({name for group in groups for name in _numbers(group)} | {COUNT})
        raise UsageError(f"no resource has {of!r}", "those of the profile are: " + ", ".join(known))
    sums = _Sums()
    calls = Calls()
    for group in groups:
        if "trace" in group.constants or "trace" in group.columns:
            _add_traces(sums, group, of)
        elif "timestamp" in group.columns or "timestamp" in group.constants:
            calls.add(group, of)
    _add_nested(sums, calls, of)
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
    return Stacks(sums.amounts, sums.left_out, sums.cut)


class _Sums:
    def __init__(self) -> None:
        self.amounts: dict[Stack, float] = {}
        self.frame = _Frames()
        self.left_out = 0
        self.empty = 0
        self.cut = 0

    def add(self, stack: Stack, amount: Any) -> None:
        if not _is_amount(amount):
            self.left_out += 1
        elif not amount:
            self.empty += 1
        else:
            self.amounts[stack] = self.amounts.get(stack, 0) + amount


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


def _add_nested(sums: _Sums, calls: Calls, of: str) -> None:
    from perun.view.flamegraph.calls import nodes_of

    for thread in calls.threads():
        nodes = nodes_of(thread)
        sums.cut += nodes.cut
        if of == "amount":
            # Time is the one number of a call that those made within it are a part of.
            amounts = _by_node(nodes, (thread.end - thread.start - nodes.inner).clip(min=0), thread.scale)
        else:
            valid = (thread.value >= 0) & (thread.value <= LARGEST)
            sums.left_out += int((~valid).sum())
            amounts = _by_node(nodes._replace(of_call=nodes.of_call[valid]), thread.value[valid], 1)
        stacks: list[Stack] = []
        for parent, frame, amount in zip(nodes.parent, nodes.frame, amounts, strict=True):
            stacks.append((*(stacks[parent] if parent >= 0 else ()), calls.frames[frame]))
            sums.add(stacks[-1], amount)


def _by_node(nodes: Nodes, values: NDArray[Any], scale: int) -> list[float]:
    import numpy as np

    # What does not fit into 64 bits together is added up in floats.
    fits = values.dtype.kind != "i" or float(values.sum(dtype=np.float64)) < _LARGEST_WHOLE
    sums = np.zeros(len(nodes.parent), values.dtype if fits else np.float64)
    np.add.at(sums, nodes.of_call, values if fits else values.astype(np.float64))
    made: list[float] = (sums / scale if scale > 1 else sums).tolist()
    return made


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


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= LARGEST  # no comparison holds for NaN


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
