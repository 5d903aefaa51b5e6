"""Profiles of sampled call stacks: what each stack took, and each function with all that it called.

A resource of the type `sample` with a trace stands for what the innermost function of that stack took
itself, its `amount`; its subtype says what was sampled, e.g. `cpu`. What a recording sampled besides stands
in columns of that name. A resource without a trace sums up a function with all that it called, and the one
whose uid ends with :data:`WHOLE` the whole recording. Each number is one of a recording: how it varies is
seen over several.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from operator import add
from typing import Any, Final

from perun.core.errors import ProfileError
from perun.profile.arrays import np
from perun.profile.calls import Frame
from perun.profile.format.core import Profile
from perun.profile.uid import flatten

SAMPLED: Final = "sample"
"""Type of the profile and its resources."""
CPU: Final = "cpu"
"""Subtype of what is sampled by the time of the processor."""
WAITING: Final = "waiting"
"""Subtype of what threads waited without a processor, in real time."""
WHOLE: Final = "(total)"
"""Stands in the uid of the whole in place of a function: no function is called so, but some are `total`."""
IMPORTED: Final = "imported"
"""Region of a profile that tells where it was imported from: the format, the name of the file, and whether it
has means only."""
OTHER: Final = Frame("(other callers)")
"""Stands for the callers of a function in stacks that are not kept."""
MOST_NODES: Final = 1 << 20
"""Different call stacks, with those that they begin with: deeper frames count for their callers then."""
MOST_FRAMES: Final = 1 << 18
_KEYS: Final = MOST_FRAMES + 1
"""One more than the numbers of frames, with that of the frames that are too many."""
MOST_DEPTH: Final = 1000
MOST_STACKS: Final = 50_000
"""Stacks that are kept: the largest ones; the rest is told by function."""
_MOST_FUNCTIONS: Final = 3000
_NAMES: Final = {
    "nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms", "seconds": "s", "bytes": "B",
    "byte": "B", "count": "", "none": "", "samples": "",
}  # fmt: skip


def unit_name(unit: str) -> str:
    """A unit as profiles spell it: `ns` for `nanoseconds`, empty for a count."""
    return _NAMES.get(unit.lower(), unit)


class SampledStacks:
    """Sums of samples by call stack, in memory that grows with the different stacks and not the samples.

    :ivar cut: frames that are left out, as their stacks are too deep, or too many.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        """:param values: what is sampled, e.g. `cpu`, to its unit as profiles spell it; the first is the
        `amount`."""
        self.values = dict(values)
        self.cut = 0
        self._frames: list[Frame] = []
        self._numbers: dict[Frame, int] = {}
        self._nodes: dict[int, int] = {}
        self._parent, self._frame, self._depth = array("i"), array("i"), array("i")
        self._sums: dict[int, list[float]] = {}

    def number(self, frame: Frame) -> int:
        """The number of a frame, for :meth:`node_of`; :data:`MOST_FRAMES` where there are too many."""
        number = self._numbers.get(frame)
        if number is None:
            if len(self._frames) >= MOST_FRAMES:
                return MOST_FRAMES
            number = self._numbers[frame] = len(self._frames)
            self._frames.append(frame)
        return number

    def node(self, stack: Sequence[Frame]) -> int:
        """The number of a stack, which begins with the outermost call; -1 for an empty one."""
        return self.node_of([*map(self.number, stack)])

    def node_of(self, numbers: Sequence[int]) -> int:
        """As :meth:`node`, by the numbers of the frames."""
        node, nodes = -1, self._nodes
        for at, number in enumerate(numbers):
            below = nodes.get((node + 1) * _KEYS + number)
            if below is None:
                return self._grown(node, numbers[at:])
            node = below
        return node

    def _grown(self, node: int, tail: Sequence[int]) -> int:
        """The number of a stack that goes on with these frames, the first of which is new there."""
        first, depth = len(self._parent), self._depth[node] + 1 if node >= 0 else 1
        end = first + len(tail)
        if depth + len(tail) > MOST_DEPTH or end > MOST_NODES or max(tail) >= MOST_FRAMES:
            for number in tail:
                node = self._below(node, number)
            return node
        callers = [node, *range(first, end - 1)]
        self._parent.extend(callers)
        self._frame.extend(tail)
        self._depth.extend(range(depth, depth + len(tail)))
        keys = [(caller + 1) * _KEYS + number for caller, number in zip(callers, tail, strict=True)]
        self._nodes.update(zip(keys, range(first, end), strict=True))
        return end - 1

    def below(self, node: int, frame: Frame) -> int:
        """The number of a stack that goes on with this frame; the stack itself where it is too deep."""
        return self._below(node, self.number(frame))

    def _below(self, node: int, number: int) -> int:
        key = (node + 1) * _KEYS + number
        below = self._nodes.get(key)
        if below is not None:
            return below
        depth = self._depth[node] + 1 if node >= 0 else 1
        if depth > MOST_DEPTH or number >= MOST_FRAMES or len(self._parent) >= MOST_NODES:
            self.cut += 1
            return node
        below = self._nodes[key] = len(self._parent)
        self._parent.append(node)
        self._frame.append(number)
        self._depth.append(depth)
        return below

    def add(self, node: int, *amounts: float) -> None:
        """One more sample of the stack, or several.

        :param amounts: of each of the values.
        """
        if len(amounts) != len(self.values):
            raise ValueError(f"{len(amounts)} numbers of a sample in place of {len(self.values)}")
        if node >= 0:
            sums = self._sums.get(node)
            if sums is None:
                self._sums[node] = list(amounts)
            else:
                for place, amount in enumerate(amounts):
                    sums[place] += amount

    def profile(self, collector: str, program: str) -> Profile:
        """What was sampled.

        :param collector: the name that stands for it. :param program: what was sampled; may be empty.
        :raises ProfileError: where there is no sample with a stack.
        """
        if not any(map(any, self._sums.values())):
            raise ProfileError(
                "it has no sample with a call stack", "record it anew, with call stacks (perf record -g)"
            )
        main, *others = self.values
        units = {f"{SAMPLED} ({name})": unit for name, unit in self.values.items()}
        groups = _Groups()
        self._add_groups(groups, program or collector, main, others)
        return Profile(
            {
                "header": {
                    "type": SAMPLED, "cmd": program or collector, "args": "", "workload": "",
                    "units": {SAMPLED: self.values[main], **units},
                },
                "collector_info": {"name": collector, "params": {}},
                "postprocessors": [],
                "resource_type_map": groups.constants,
                "resources": groups.columns,
            }
        )  # fmt: skip

    def _add_groups(self, groups: _Groups, program: str, main: str, others: Sequence[str]) -> None:
        names = (main, *others)
        totals = dict(zip(names, map(sum, zip(*self._sums.values(), strict=True)), strict=True))
        groups.add(main, {"source": program, SAMPLED: WHOLE}, totals)
        records = [_record(frame) for frame in self._frames]
        plain = [_record(frame, line=False) for frame in self._frames]
        named = [str(flatten(one)) for one in plain]
        used = [node for node, sums in self._sums.items() if any(sums)]
        used.sort(key=lambda node: (-abs(self._sums[node][0]), node))
        callers, frames = self._parent.tolist(), self._frame.tolist()
        for node in used[:MOST_STACKS]:
            frame, trace, at = frames[node], [], node
            while at >= 0:
                trace.append(records[frames[at]])
                at = callers[at]
            amounts = dict(zip(names, self._sums[node], strict=True))
            groups.add(main, plain[frame], amounts, trace, named[frame])
        rest: dict[int, list[float]] = {}
        for node in used[MOST_STACKS:]:
            frame = self._frame[node]
            rest[frame] = [*map(add, rest.get(frame, (0,) * len(names)), self._sums[node])]
        for frame, sums in rest.items():
            trace = [records[frame], _record(OTHER)]
            groups.add(main, plain[frame], dict(zip(names, sums, strict=True)), trace)
        for function, amount in self._inclusive():
            groups.add(main, {**_record(function, line=False), SAMPLED: "inclusive"}, {main: amount})

    def _inclusive(self) -> list[tuple[Frame, float]]:
        """The functions that took most with all that they called; of recursive calls the outermost counts."""
        parent, frame, depth = (np.array(one) for one in (self._parent, self._frame, self._depth))
        sums, sizes = np.zeros(len(parent)), np.ones(len(parent), np.int32)
        sums[list(self._sums)] = [float(own[0]) for own in self._sums.values()]
        order = np.lexsort((parent, depth))  # by depth, and there by caller
        levels = np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)
        for level in levels[:0:-1]:
            np.add.at(sums, parent[level], sums[level])
            np.add.at(sizes, parent[level], sizes[level])
        # Numbers in which all stacks below a stack, as many as its size, follow it.
        places = np.zeros(len(parent), np.int32)
        for level in levels:
            before, callers = np.cumsum(sizes[level]) - sizes[level], parent[level]
            first = np.append(True, np.diff(callers) != 0)
            behind = before - np.maximum.accumulate(np.where(first, before, 0))
            places[level] = np.where(callers < 0, 0, places[callers] + 1) + behind
        plain: dict[Frame, int] = {}
        numbers = [plain.setdefault(one._replace(line=0), len(plain)) for one in self._frames]
        function = np.array(numbers, np.int64)[frame]
        order = np.lexsort((places, function))
        function, places = function[order], places[order]
        far = function * (len(parent) + 1)
        ends = np.maximum.accumulate(far + places + sizes[order])
        outermost = np.append(True, (far + places)[1:] >= ends[:-1])
        found = np.bincount(function[outermost], sums[order][outermost], len(plain))
        functions, amounts = list(plain), found.tolist()
        largest = np.argsort(-found, kind="stable")[:_MOST_FUNCTIONS].tolist()
        return [(functions[number], amounts[number]) for number in largest if amounts[number]]


class _Groups:
    """The regions of a profile with its resources, each of which is a group."""

    def __init__(self) -> None:
        self.constants: dict[str, dict[str, Any]] = {}
        self.columns: dict[str, dict[str, list[float]]] = {}
        self._counts: dict[str, int] = {}

    def add(
        self, subtype: str, uid: Any, amounts: Mapping[str, float], trace: Any = None, name: str = ""
    ) -> None:
        """One more resource; the first of the amounts is that of the subtype.

        :param name: the uid as text, where that is known.
        """
        name = name or str(flatten(uid))
        number = self._counts[name] = self._counts.get(name, -1) + 1
        key = f"{name}#{number}"
        own = {} if trace is None else {"trace": trace}
        self.constants[key] = {"subtype": subtype, **own, "type": SAMPLED, "uid": uid}
        self.columns[key] = {
            ("amount" if one == subtype else one): [_whole(amount)] for one, amount in amounts.items()
        }


def _record(frame: Frame, *, line: bool = True) -> dict[str, Any]:
    record: dict[str, Any] = {"source": frame.source} if frame.source else {}
    record["function"] = frame.name
    return {**record, "line": frame.line} if line and frame.line else record


def _whole(amount: float) -> float:
    """The amount, as an integer where it is one."""
    return int(amount) if abs(amount) < 2**53 and amount == int(amount) else amount
