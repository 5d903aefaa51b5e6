"""What recording costs is subtracted from the times of calls: exactly, where each call costs the same."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.collect._calls.calibration import CALLS, ROUNDS, UNCERTAIN, CalibrationCalls, cost_of
from perun.collect._calls.events import UNKNOWN, Calls, Events, Nesting
from perun.collect._calls.overhead import Cost, Overhead, below, merge

NAMES = ["main", "middle", "leaf"]
COSTS = [Cost(800, 1100, 190), Cost(4200, 1150, 530), Cost(70, 80, 15)]


class Tree(NamedTuple):
    """A call without a recorder: nanoseconds before each call that it makes, and after the last one."""

    function: int
    own: list[int]
    callees: list[Tree]

    @property
    def inclusive(self) -> int:
        return sum(self.own) + sum(callee.inclusive for callee in self.callees)


def trees(depth: int = 4) -> st.SearchStrategy[Tree]:
    callees = st.lists(trees(depth - 1), max_size=3) if depth else st.just([])
    times = st.lists(st.integers(0, 50_000), min_size=4, max_size=4)
    return st.builds(
        lambda function, own, inner: Tree(function, own[: len(inner) + 1], inner),
        st.integers(0, 2),
        times,
        callees,
    )


def recorded(tree: Tree, clock: int, rows: list[tuple[int, int, bool]]) -> int:
    """Add the events of a call that is recorded from a time on; return the time behind it."""
    cost = COSTS[tree.function]
    clock += int(cost.outside) // 2
    rows.append((clock, tree.function, True))
    clock += int(cost.inside) // 3 + tree.own[0]
    for callee, after in zip(tree.callees, tree.own[1:], strict=True):
        clock = recorded(callee, clock, rows) + after
    clock += int(cost.inside) - int(cost.inside) // 3
    rows.append((clock, tree.function, False))
    return clock + int(cost.outside) - int(cost.outside) // 2


def flat(tree: Tree) -> list[Tree]:
    """All calls in the order of their entries."""
    return [tree, *(one for callee in tree.callees for one in flat(callee))]


def events(rows: list[tuple[int, int, bool]]) -> Events:
    time, function, entry = zip(*rows, strict=True)
    sizes = np.full(len(rows), UNKNOWN, np.int64)
    return Events(np.array(time), np.array(function), np.array(entry), sizes)


def nested(rows: list[tuple[int, int, bool]], length: int, costs: list[Cost]) -> tuple[Calls, Overhead]:
    """The calls of events that come in pieces, in the order of their entries."""
    overhead = Overhead(costs)
    nesting = Nesting(7, overhead)
    pieces = [nesting.add(events(rows[at : at + length])) for at in range(0, len(rows), length)]
    pieces.append(nesting.finish(rows[-1][0]))
    calls = Calls.joined(pieces)
    return calls.where(np.argsort(calls.order)), overhead


@given(trees(), st.integers(1, 60))
def test_times_are_those_without_the_recorder(tree: Tree, length: int) -> None:
    rows: list[tuple[int, int, bool]] = []
    recorded(tree, 1_000_000, rows)
    calls, overhead = nested(rows, length, COSTS)
    assert calls.duration.tolist() == [one.inclusive for one in flat(tree)]
    assert calls.exclusive.tolist() == [sum(one.own) for one in flat(tree)]
    sums = overhead.by_function(NAMES)
    raw = np.array([time for time, _, entry in rows if entry])
    assert calls.start.tolist() == raw.tolist()  # when calls began is left as it was recorded
    for number, name in enumerate(NAMES):
        own = [one for one in flat(tree) if one.function == number]
        if not own:
            assert name not in sums
            continue
        spreads = [sum(COSTS[inner.function].spread for inner in flat(one)) for one in own]
        direct = [
            COSTS[number].spread + sum(COSTS[inner.function].spread for inner in one.callees) for one in own
        ]
        assert sums[name]["calls"] == len(own)
        assert sums[name]["inclusive"]["time"] == sum(one.inclusive for one in own)
        assert sums[name]["exclusive"]["time"] == sum(sum(one.own) for one in own)
        assert sums[name]["inclusive"]["uncertainty"] == sum(spreads)
        assert sums[name]["exclusive"]["uncertainty"] == sum(direct)


@given(trees(), st.lists(st.tuples(*[st.floats(0, 9_000)] * 3), min_size=3, max_size=3), st.integers(1, 60))
def test_nothing_is_negative_and_what_was_recorded_can_be_had_back(
    tree: Tree, wrong: list[tuple[float, float, float]], length: int
) -> None:
    rows: list[tuple[int, int, bool]] = []
    recorded(tree, 0, rows)
    raw, _ = nested(rows, length, [Cost()] * 3)
    calls, overhead = nested(rows, length, [Cost(*one) for one in wrong])
    assert int(calls.duration.min()) >= 0
    assert int(calls.exclusive.min()) >= 0
    assert (calls.exclusive <= calls.duration).all()
    for name, row in overhead.by_function(NAMES).items():
        mine = calls.function == NAMES.index(name)
        assert row["at-zero"] == np.count_nonzero(calls.duration[mine] == 0)
        for which, column in (("inclusive", "duration"), ("exclusive", "exclusive")):
            assert row[which]["time"] == getattr(calls, column)[mine].sum()
            assert row[which]["time"] + row[which]["subtracted"] == getattr(raw, column)[mine].sum()


def test_without_costs_times_are_as_recorded() -> None:
    rows = [(0, 0, True), (10, 2, True), (15, 2, False), (40, 0, False)]
    calls = Nesting(7).add(events(rows))
    assert (calls.duration.tolist(), calls.exclusive.tolist()) == ([40, 5], [35, 5])


@pytest.mark.parametrize("depth", [10_000, 40_000])
def test_deep_recursion_loses_the_cost_of_all_levels(depth: int) -> None:
    cost, own = COSTS[0], 7
    rows, clock = [], 0
    for _ in range(depth):
        clock += int(cost.outside)
        rows.append((clock, 0, True))
        clock += int(cost.inside) + own
    for _ in range(depth):
        rows.append((clock, 0, False))
    calls, overhead = nested(rows, 3_000, COSTS)
    assert (calls.duration == own * np.arange(depth, 0, -1)).all()
    assert (calls.exclusive == own).all()
    assert overhead.by_function(NAMES)["main"]["inclusive"]["below"]  # 190 ns of doubt for each 7 ns


def test_an_interrupted_call_does_not_make_the_others_certain() -> None:
    """A leaf of 2 ns, of which one call in a hundred waits for the processor for a millisecond."""
    rows, clock = [], 0
    for number in range(300):
        rows.append((clock, 2, True))
        clock += 72 + 1_000_000 * (number % 100 == 0)
        rows.append((clock, 2, False))
        clock += 80
    _, overhead = nested(rows, 1000, COSTS)
    sums = overhead.by_function(NAMES)
    assert sums["leaf"]["inclusive"]["time"] > sums["leaf"]["inclusive"]["uncertainty"]
    assert below(sums) == ["leaf"]


def test_functions_of_one_name_are_summed_up() -> None:
    rows = [(0, 0, True), (5_000, 0, False), (6_000, 1, True), (16_000, 1, False)]
    _, overhead = nested(rows, 10, COSTS)
    sums = overhead.by_function(["same", "same", "other"])
    assert sums["same"]["calls"] == 2
    assert sums["same"]["inclusive"]["time"] == 5_000 - 800 + 10_000 - 4_200
    merge(sums, overhead.by_function(["same", "else", "other"]))
    assert sums["same"]["calls"] == 3
    assert list(sums) == ["same", "else"]


def test_the_cost_is_that_of_most_calls() -> None:
    """One call in fifty is interrupted; a call that is not recorded takes 4 ns."""
    start = np.arange(ROUNDS * CALLS) * 1904
    start += np.cumsum(np.arange(len(start)) % 50 == 0) * 10**6
    duration = np.where(np.arange(len(start)) % 50 == 49, 10**6, 810)
    bare = CalibrationCalls(start[:3], np.full(3, 810 + 4 * CALLS))
    found = cost_of(CalibrationCalls(start, duration), bare)
    assert found == Cost(810, 1090, UNCERTAIN * 1900)
    assert cost_of(CalibrationCalls(start[1:], duration[1:]), bare) is None  # a call is missing
