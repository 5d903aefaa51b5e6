"""Profiles of sampled call stacks: what each stack took, and each function with all that it called.

A resource of the type `sample` with a trace stands for what the innermost function of that stack took
itself, its `amount`; its subtype says what was sampled, e.g. `cpu`. What a recording sampled besides stands
in columns of that name. A resource without a trace sums up a function with all that it called, and the one
whose uid ends with `total` the whole recording. Each number is one of a recording: how it varies is seen over
several.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from perun.core.errors import ProfileError
from perun.profile.calls import Frame
from perun.profile.format.core import Profile

SAMPLED: Final = "sample"
"""Type of the profile and its resources."""
CPU: Final = "cpu"
"""Subtype of what is sampled by the time of the processor."""
IMPORTED: Final = "imported"
"""Region of a profile that tells where it was imported from: the format, the name of the file, and whether it
has means only."""
OTHER: Final = Frame("(other callers)")
"""Stands for the callers of a function in stacks that are not kept."""
MOST_NODES: Final = 1 << 20
"""Different call stacks, with those that they begin with: deeper frames count for their callers then."""
MOST_FRAMES: Final = 1 << 18
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
        self._nodes: dict[tuple[int, int], int] = {}
        self._parent, self._frame, self._depth = array("q"), array("q"), array("q")
        self._amounts: list[list[float]] = [[] for _ in self.values]

    def node(self, stack: Sequence[Frame]) -> int:
        """The number of a stack, which begins with the outermost call; -1 for an empty one."""
        node = -1
        for frame in stack:
            node = self.below(node, frame)
        return node

    def below(self, node: int, frame: Frame) -> int:
        """The number of a stack that goes on with this frame; the stack itself where it is too deep."""
        number = self._numbers.get(frame)
        below = None if number is None else self._nodes.get((node, number))
        if below is not None:
            return below
        depth = self._depth[node] + 1 if node >= 0 else 1
        full = len(self._frames) >= MOST_FRAMES if number is None else False
        if full or depth > MOST_DEPTH or len(self._parent) >= MOST_NODES:
            self.cut += 1
            return node
        if number is None:
            number = self._numbers[frame] = len(self._frames)
            self._frames.append(frame)
        below = self._nodes[node, number] = len(self._parent)
        self._parent.append(node)
        self._frame.append(number)
        self._depth.append(depth)
        for own in self._amounts:
            own.append(0)
        return below

    def add(self, node: int, *amounts: float) -> None:
        """One more sample of the stack, or several.

        :param amounts: of each of the values.
        """
        if node >= 0:
            for own, amount in zip(self._amounts, amounts, strict=True):
                own[node] += amount

    def profile(self, collector: str, program: str) -> Profile:
        """What was sampled.

        :param collector: the name that stands for it. :param program: what was sampled; may be empty.
        :raises ProfileError: where there is no sample with a stack.
        """
        if not any(any(own) for own in self._amounts):
            raise ProfileError(
                "it has no sample with a call stack", "record it anew, with call stacks (perf record -g)"
            )
        main, *others = self.values
        units = {f"{SAMPLED} ({name})": unit for name, unit in self.values.items()}
        profile = Profile(
            {
                "header": {
                    "type": SAMPLED, "cmd": program or collector, "args": "", "workload": "",
                    "units": {SAMPLED: self.values[main], **units},
                },
                "collector_info": {"name": collector, "params": {}},
                "postprocessors": [],
            }
        )  # fmt: skip
        resources = list(self._resources(program or collector, main, others))
        profile.update_resources(resources, columns=others)
        return profile

    def _resources(self, program: str, main: str, others: Sequence[str]) -> Iterator[dict[str, Any]]:
        totals = {name: _whole(sum(own)) for name, own in zip((main, *others), self._amounts, strict=True)}
        yield {
            "type": SAMPLED, "subtype": main, "uid": {"source": program, SAMPLED: "total"},
            "amount": totals.pop(main), **totals,
        }  # fmt: skip
        used = [node for node in range(len(self._parent)) if any(own[node] for own in self._amounts)]
        used.sort(key=lambda node: -abs(self._amounts[0][node]))
        for node in used[:MOST_STACKS]:
            yield self._resource(self._stack(node), main, others, [own[node] for own in self._amounts])
        rest: dict[int, list[float]] = {}
        for node in used[MOST_STACKS:]:
            sums = rest.setdefault(self._frame[node], [0] * len(self._amounts))
            for place, own in enumerate(self._amounts):
                sums[place] += own[node]
        for number, sums in rest.items():
            yield self._resource([self._frames[number], OTHER], main, others, sums)
        for frame, amount in self._inclusive():
            uid = {**_record(frame, line=False), SAMPLED: "inclusive"}
            yield {"type": SAMPLED, "subtype": main, "uid": uid, "amount": _whole(amount)}

    def _resource(
        self, trace: Sequence[Frame], main: str, others: Sequence[str], amounts: Sequence[float]
    ) -> dict[str, Any]:
        return {
            "type": SAMPLED, "subtype": main, "uid": _record(trace[0], line=False),
            "trace": [_record(frame) for frame in trace], "amount": _whole(amounts[0]),
            **{name: _whole(amount) for name, amount in zip(others, amounts[1:], strict=True)},
        }  # fmt: skip

    def _stack(self, node: int) -> list[Frame]:
        """The frames of a stack, the innermost first."""
        stack = []
        while node >= 0:
            stack.append(self._frames[self._frame[node]])
            node = self._parent[node]
        return stack

    def _inclusive(self) -> list[tuple[Frame, float]]:
        """The functions that took most with all that they called; of recursive calls the outermost counts."""
        sums = list(self._amounts[0])
        for node in range(len(sums) - 1, -1, -1):  # callers come before their callees
            if self._parent[node] >= 0:
                sums[self._parent[node]] += sums[node]
        plain = [frame._replace(line=0) for frame in self._frames]
        children: dict[int, list[int]] = {}
        for node, parent in enumerate(self._parent):
            children.setdefault(parent, []).append(node)
        found: dict[Frame, float] = {}
        inside: dict[Frame, None] = {}
        waiting = children.get(-1, []).copy()
        while waiting:
            node = waiting.pop()
            if node < 0:
                inside.popitem()
                continue
            function = plain[self._frame[node]]
            if function not in inside:
                found[function] = found.get(function, 0) + sums[node]
                inside[function] = None
                waiting.append(-1)  # all that it calls comes before that
            waiting += children.get(node, ())
        largest = sorted(found.items(), key=lambda one: -one[1])[:_MOST_FUNCTIONS]
        return [(function, amount) for function, amount in largest if amount]


def _record(frame: Frame, *, line: bool = True) -> dict[str, Any]:
    record: dict[str, Any] = {"source": frame.source} if frame.source else {}
    record["function"] = frame.name
    return {**record, "line": frame.line} if line and frame.line else record


def _whole(amount: float) -> float:
    """The amount, as an integer where it is one."""
    return int(amount) if abs(amount) < 2**53 and amount == int(amount) else amount
