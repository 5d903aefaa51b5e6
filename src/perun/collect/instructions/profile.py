"""The profile of counted instructions: what each call stack and each function cost, and all together.

The resources have the type `instructions` and one of two subtypes. Those that are `exclusive` have a trace
and stand for what the innermost function of that call stack executed itself: all of them together are what
the program executed. Those that are `inclusive` have no trace: each sums up a function with all that it
called, and the one whose uid ends with `total` the whole program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from perun.collect.instructions.tree import OTHER_CALLERS, Frame, Tree

TYPE: Final = "instructions"
EXCLUSIVE: Final = "exclusive"
INCLUSIVE: Final = "inclusive"
TOTAL: Final = "total"
SMALL: Final = Frame("(small functions)")
"""Stands for the functions that each cost less than :data:`SMALLEST_FUNCTION` of all."""
SMALLEST_FUNCTION: Final = 1e-6
SMALLEST_INCLUSIVE: Final = 1e-5
_MAX_FUNCTIONS: Final = 3000
_SIZE: Final = 3_500_000
"""About so many bytes of JSON for traces."""
_FRAME_SIZE: Final = 80
"""Bytes of JSON of a frame beside its names."""


class Costs(NamedTuple):
    """What was counted.

    :param tree: the call stacks. :param calls: how often each function was called, where that is known.
    :param inclusive: of each function with all that it called.
    """

    tree: Tree
    inclusive: Mapping[Frame, int]
    calls: Mapping[Frame, int]


def resources(costs: Costs, program: str) -> Iterator[dict[str, Any]]:
    """The resources of a run.

    :param program: its name, which the total goes by.
    """
    total = costs.tree.total
    uid = {"source": program, TYPE: TOTAL}
    yield {"type": TYPE, "subtype": INCLUSIVE, "uid": uid, "amount": total}
    for trace, amount in _stacks(costs.tree, total):
        yield {
            "type": TYPE,
            "subtype": EXCLUSIVE,
            "uid": _record(trace[0]),
            "trace": [_record(frame) for frame in trace],
            "amount": amount,
        }
    by_size = sorted(costs.inclusive.items(), key=lambda item: (-item[1], item[0]))
    for frame, amount in by_size[:_MAX_FUNCTIONS]:
        if frame != OTHER_CALLERS and amount and amount >= total * SMALLEST_INCLUSIVE:
            # What nothing calls is entered in another way, like a signal handler: how often is not known.
            calls = costs.calls.get(frame, 0)
            yield {
                "type": TYPE,
                "subtype": INCLUSIVE,
                "uid": {**_record(frame), TYPE: INCLUSIVE},
                "amount": amount,
                **({"calls": calls} if calls else {}),
            }


def _stacks(tree: Tree, total: int) -> Iterator[tuple[list[Frame], int]]:
    """Call stacks, innermost frame first, with what each cost itself; the largest ones are whole."""
    kept = _large(tree.exclusive(), total)
    room = _SIZE
    nodes = [node for node, amount in enumerate(tree.amounts) if amount]
    nodes.sort(key=lambda node: (-tree.amounts[node], node))
    cut: dict[Frame, int] = {}
    for node in nodes:
        frame = tree.frames[tree.places[node]]
        if frame in kept and room > 0:
            trace = tree.stack(node)
            room -= sum(_FRAME_SIZE + len(one.function) + len(one.source) for one in trace)
            if frame == OTHER_CALLERS or OTHER_CALLERS not in trace:
                yield trace, tree.amounts[node]
                continue
        shown = frame if frame in kept else SMALL
        cut[shown] = cut.get(shown, 0) + tree.amounts[node]
    for frame, amount in cut.items():
        yield [frame] if frame == SMALL else [frame, OTHER_CALLERS], amount


def _large(exclusive: Mapping[Frame, int], total: int) -> set[Frame]:
    """The functions that have resources of their own."""
    by_size = sorted(exclusive, key=lambda frame: (-exclusive[frame], frame))
    return {frame for frame in by_size[:_MAX_FUNCTIONS] if exclusive[frame] >= total * SMALLEST_FUNCTION}


def _record(frame: Frame) -> dict[str, str]:
    place = {"source": frame.source} if frame.source else {}
    return {**place, "function": frame.function}
