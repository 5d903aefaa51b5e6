"""Call stacks of a profile: from the traces of its resources, or from the times of calls.

Traces are those of the manual's section 2.1: they start at the innermost call. A resource without a trace but
with a `timestamp` is a call; :mod:`perun.view.flamegraph.calls` finds its caller by the times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core.errors import ProfileError, UsageError
from perun.profile.format.grouping import COLUMNS, Group
from perun.profile.memory import RELEASES, is_release, is_summary
from perun.view.flamegraph.calls import MAX_AMOUNT, Frame, frame_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perun.profile.format.core import Profile
    from perun.view.flamegraph.calls import Calls, CallTree


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


def stacks_of(profile: Profile, of: str = "amount") -> Stacks:
    """The call stacks of the profile. Releases of memory do not count.

    :param of: the key of the number to sum up, or :data:`COUNT`.
    :raises UsageError: if no resource has such a number.
    :raises ProfileError: if there are no resources, none has a stack, or no stack has an amount above 0.
    """
    from perun.view.flamegraph.calls import Calls, is_corrected

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
    calls = Calls(corrected=is_corrected(profile))
    for group in groups:
        if "trace" in group.constants or "trace" in group.columns:
            _add_traces(sums, group, of)
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


def _add_traces(sums: _Sums, group: Group, of: str) -> None:
    known: dict[int, Stack] = {}
    for trace, subtype, amount in zip(
        *(_values(group, name) for name in ("trace", "subtype", of)), strict=False
    ):
        if not trace or (isinstance(subtype, str) and subtype in RELEASES):
            continue
        if id(trace) not in known:
            records = trace if isinstance(trace, (list, tuple)) else [trace]
            known[id(trace)] = tuple(map(sums.frame, reversed(records)))
        sums.add(known[id(trace)], amount)


def _add_nested(sums: _Sums, calls: Calls, of: str) -> None:
    from perun.view.flamegraph.calls import call_tree

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
    import numpy as np

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


def _values(group: Group, name: str) -> Iterable[Any]:
    if name in group.columns:
        return group.columns[name]
    return repeat(group.constants.get(name, 1 if name == COUNT else None), group.size)


def _numbers(group: Group) -> Iterator[str]:
    for name in group.columns:
        if name in COLUMNS:
            yield name
    for name, value in group.constants.items():
        if type(value) in (int, float):
            yield name


# Call stacks of one or two profiles, merged into one tree for the page.


class Tree:
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
