"""Calls of entries and exits, and the profile of calls."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.check._common.exclusive import exclusive_times
from perun.collect._calls.calibration import CALLS, ROUNDS, UNCERTAIN, CalibrationCalls, cost_of
from perun.collect._calls.events import UNKNOWN, CallEvents, Calls, Nesting
from perun.collect._calls.overhead import CallCost, Overhead, below, merge
from perun.collect._calls.profile import BY_ORDER, CalledFunction, CallTable
from perun.plugin.api import Run
from perun.profile.format.columns import CompressedColumn
from perun.profile.format.json import dumps_pending, loads, validate

Row = tuple[int, int, int, int]


def events(rows: list[Row]) -> CallEvents:
    """Events of rows (time, function, whether it is an entry, size)."""
    columns = np.array(rows, np.int64).reshape(-1, 4)
    return CallEvents(columns[:, 0], columns[:, 1], columns[:, 2].astype(np.bool_), columns[:, 3])


def rows_of(calls: Calls) -> list[tuple[int, ...]]:
    return sorted(zip(*(column.tolist() for column in calls), strict=True))


def sequential(rows: list[Row], end: int) -> list[tuple[int, ...]]:
    """The calls of events, in the plainest way."""
    calls: list[tuple[int, ...]] = []
    stack: list[list[int]] = []
    entries = 0

    def close(time: int) -> None:
        function, start, inner, size, order = stack.pop()
        duration = time - start
        caller = stack[-1][0] if stack else UNKNOWN
        calls.append((function, 7, start, duration, duration - inner, size, caller, order))
        if stack:
            stack[-1][2] += duration

    for time, function, entry, size in rows:
        if entry:
            stack.append([function, time, 0, size, entries])
            entries += 1
        elif any(call[0] == function for call in stack):
            while stack[-1][0] != function:
                close(time)
            close(time)
    while stack:
        close(end)
    return sorted(calls)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), max_size=80), st.integers(1, 90)
)
def test_any_events_in_any_pieces(steps: list[tuple[int, int, bool]], length: int) -> None:
    time, rows = 0, []
    for step, function, entry in steps:
        time += step
        rows.append((time, function, int(entry), 5 if entry else UNKNOWN))
    nesting = Nesting(7)
    pieces = [nesting.add(events(rows[at : at + length])) for at in range(0, len(rows), length)]
    pieces.append(nesting.finish(time))
    found = Calls.joined(pieces)
    assert nesting.depth == 0 and len(found) == sum(row[2] for row in rows)
    if length >= len(rows):  # a piece cannot know of an exit that is found missing later
        assert rows_of(found) == sequential(rows, time)
    else:
        assert [row[:4] for row in rows_of(found)] == [row[:4] for row in sequential(rows, time)]


def test_missing_and_stray_exits_are_counted() -> None:
    nesting = Nesting(7)
    # 1 calls 2, which leaves by a longjmp; 9 was entered before the recording; 3 never ends.
    first = nesting.add(
        events([(0, 9, 0, -1), (1, 1, 1, -1), (2, 2, 1, 4), (5, 1, 0, -1), (6, 3, 1, -1), (7, 4, 1, -1)])
    )
    assert rows_of(first) == [(1, 7, 1, 4, 1, -1, -1, 0), (2, 7, 2, 3, 3, 4, 1, 1)]
    assert (nesting.missed, nesting.stray, nesting.depth) == (1, 1, 2)
    last = nesting.finish(10)
    assert rows_of(last) == [(3, 7, 6, 4, 1, -1, -1, 2), (4, 7, 7, 3, 3, -1, 3, 3)]
    assert (nesting.missed, nesting.depth) == (3, 0)


def test_deep_recursion() -> None:
    depth = 50_000
    rows = [(time, 1, 1, -1) for time in range(depth)] + [
        (time, 1, 0, -1) for time in range(depth, 2 * depth)
    ]
    calls = Nesting(7).add(events(rows))
    assert len(calls) == depth
    assert (calls.exclusive == np.where(calls.order == depth - 1, 1, 2)).all()
    assert int(calls.exclusive.sum()) == 2 * depth - 1


FUNCTIONS = [CalledFunction("main", "/bin/prog"), CalledFunction("insert(List*)", "/bin/prog", "l->size")]
COLLECTOR = {"name": "complexity", "params": {}}


def table_of(*rows: tuple[int, ...]) -> CallTable:
    table = CallTable()
    table.add(Calls(*np.array(rows, np.int64).reshape(-1, 8).T))
    return table


def test_calls_of_several_processes_are_apart() -> None:
    table = CallTable()
    calls = Calls(*np.array([(0, 5, 0, 10, 10, -1, -1, 0)], np.int64).T)
    for process in (70, 70, 80):
        table.add(calls, process)
    profile = table.profile(FUNCTIONS, Run("./prog"), COLLECTOR, {})
    assert [
        (group.constants["process"], group.constants["thread"], group.size) for group in profile.groups()
    ] == [
        (70, 5, 2),
        (80, 5, 1),
    ]
    for processes in ((70, 70), (0, 0)):
        for process in processes:
            table.add(calls, process)
        (group,) = table.profile(FUNCTIONS, Run("./prog"), COLLECTOR, {}).groups()
        assert "process" not in group.constants


@pytest.mark.parametrize("functions", [3, 50, 3_000_000])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_groups_whatever_their_number(functions: int, is_sorted: bool) -> None:
    numbers = np.random.default_rng(7)
    total = 4_000
    order = np.arange(total) if is_sorted else numbers.permutation(total)
    function, caller = (numbers.integers(0, functions, total) for _ in range(2))
    size = numbers.integers(-1, 1, total)
    thread = np.full(total, 5)
    table = CallTable()
    table.add(Calls(function, thread, order * 10, order + 1, order, size, caller, order))
    names = {number: CalledFunction(f"f{number}") for number in {*function.tolist(), *caller.tolist()}}
    profile = table.profile(names, Run("./prog"), COLLECTOR, {})
    found = []
    for group in profile.groups():
        orders = list(group.columns["call-order"])
        assert orders == sorted(orders)
        uid, by = (int(group.constants[name][1:]) for name in ("uid", "caller"))
        found += [(one, uid, by) for one in orders]
    assert sorted(found) == sorted(zip(order.tolist(), function.tolist(), caller.tolist(), strict=True))


def test_profile_of_the_manual() -> None:
    table = table_of(
        (1, 5, 1000, 11_000, 11_000, 0, 0, 1),
        (1, 5, 13_000, 500, 500, 1, 0, 2),
        (0, 5, 0, 20_000, 8_500, -1, -1, 0),
    )
    assert table.total == 3
    profile = table.profile(FUNCTIONS, Run("./prog", "a", "b"), COLLECTOR, {"calls": 3})
    validate(profile, "made")
    assert loads(dumps_pending(profile), "again").serialize() == profile.serialize()
    assert profile["header"]["units"] == {"mixed(time delta)": "us"} and profile["trace"] == {"calls": 3}
    main, first, second = (resource for _, resource in profile.all_resources())
    assert first == {
        "amount": 11.0, "exclusive": 11_000, "call-order": 1, "timestamp": 1.0, "structure-unit-size": 0,
        "type": "mixed", "subtype": "time delta", "uid": "insert(List*)", "thread": 5,
        "location": "/bin/prog", "caller": "main", "size-source": "l->size"
    }  # fmt: skip
    assert (second["structure-unit-size"], second["amount"]) == (1, 0.5)
    assert "caller" not in main
    (calls,) = exclusive_times(profile).values()
    assert {name: found.total for name, found in calls.items()} == {"main": 8500.0, "insert(List*)": 11_500.0}


def test_calls_instead_of_sizes() -> None:
    table = table_of((1, 5, 30, 1, 1, -1, 0, 3), (1, 6, 20, 1, 1, -1, 0, 0), (1, 5, 10, 1, 1, -1, -1, 1))
    profile = table.profile(FUNCTIONS, Run("./prog"), COLLECTOR, {})
    found = [resource for _, resource in profile.all_resources()]
    assert {one["timestamp"]: one["structure-unit-size"] for one in found} == {0.01: 0, 0.02: 1, 0.03: 2}
    assert {one["size-source"] for one in found} == {BY_ORDER}


def test_a_call_whose_size_could_not_be_read() -> None:
    table = table_of((1, 5, 10, 1, 1, -1, 0, 1), (1, 5, 20, 1, 1, 8, 0, 2))
    found = [one for _, one in table.profile(FUNCTIONS, Run("./prog"), COLLECTOR, {}).all_resources()]
    assert [one.get("structure-unit-size") for one in found] == [None, 8]
    assert "size-source" not in found[0]


@pytest.mark.parametrize("pieces", [1, 7])
def test_long_columns_are_packed(pieces: int) -> None:
    table = CallTable()
    for piece in range(pieces):
        order = np.arange(100) + 100 * piece
        same = np.ones(100, np.int64)
        table.add(Calls(same, same, order * 10, same * 7, same * 7, order, -same, order))
    (group,) = table.profile(FUNCTIONS, Run("./prog"), COLLECTOR, {}).groups()
    assert {name: column.typecode for name, column in group.columns.items()} == {  # type: ignore[union-attr]
        "amount": "d",
        "exclusive": "q",
        "call-order": "q",
        "timestamp": "d",
        "structure-unit-size": "q",
    }
    assert list(group.columns["structure-unit-size"]) == list(range(100 * pieces))


@pytest.mark.parametrize("sized", [1, -1])
def test_many_calls_are_compressed_on_the_way(sized: int) -> None:
    """In less room than the calls need the profile is the same, to the last digit."""
    texts = []
    for room in (1 << 20, 2000):
        table = CallTable(room)
        for piece in range(8):
            order = np.arange(1000) + 1000 * piece
            function, caller, thread = (order // 8 % 2, order % 3 % 2, 5 + order % 5 // 4)
            start = order * 10 + (order % 7 == 0) * 4000  # not sorted within a group
            size = np.where(function == 1, order * sized, UNKNOWN)
            table.add(Calls(function, thread, start, order % 90, order % 40, size, caller, order), piece // 7)
        assert table.total == 8000
        profile = table.profile(FUNCTIONS, Run("./prog"), COLLECTOR, {})
        columns = [one for own in profile.regions()["resources"].values() for one in own.values()]
        assert any(isinstance(one, CompressedColumn) for one in columns) == (room < 8000)
        texts.append(dumps_pending(profile))
        assert table.total == 0
    assert texts[0] == texts[1]


def test_nothing() -> None:
    table = CallTable()
    table.add(Calls.joined([]))
    assert not list(table.profile(FUNCTIONS, Run("./prog"), COLLECTOR, {}).all_resources())


# -- What recording costs is subtracted from the times of calls: exactly, where each call costs the same


NAMES = ["main", "middle", "leaf"]
COSTS = [CallCost(800, 1100, 190), CallCost(4200, 1150, 530), CallCost(70, 80, 15)]


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


def recorded_events(rows: list[tuple[int, int, bool]]) -> CallEvents:
    time, function, entry = zip(*rows, strict=True)
    sizes = np.full(len(rows), UNKNOWN, np.int64)
    return CallEvents(np.array(time), np.array(function), np.array(entry), sizes)


def nested(rows: list[tuple[int, int, bool]], length: int, costs: list[CallCost]) -> tuple[Calls, Overhead]:
    """The calls of events that come in pieces, in the order of their entries."""
    overhead = Overhead(costs)
    nesting = Nesting(7, overhead)
    pieces = [nesting.add(recorded_events(rows[at : at + length])) for at in range(0, len(rows), length)]
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
def test_nothing_is_negative_and_what_was_recorded_can_be_had_back(tree: Tree, wrong, length: int) -> None:
    rows: list[tuple[int, int, bool]] = []
    recorded(tree, 0, rows)
    raw, _ = nested(rows, length, [CallCost()] * 3)
    calls, overhead = nested(rows, length, [CallCost(*one) for one in wrong])
    assert int(calls.duration.min()) >= 0 and int(calls.exclusive.min()) >= 0
    assert (calls.exclusive <= calls.duration).all()
    for name, row in overhead.by_function(NAMES).items():
        mine = calls.function == NAMES.index(name)
        assert row["at-zero"] == np.count_nonzero(calls.duration[mine] == 0)
        for which, column in (("inclusive", "duration"), ("exclusive", "exclusive")):
            assert row[which]["time"] == getattr(calls, column)[mine].sum()
            assert row[which]["time"] + row[which]["subtracted"] == getattr(raw, column)[mine].sum()


def test_without_costs_times_are_as_recorded() -> None:
    rows = [(0, 0, True), (10, 2, True), (15, 2, False), (40, 0, False)]
    calls = Nesting(7).add(recorded_events(rows))
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
    assert sums["same"]["calls"] == 2 and sums["same"]["inclusive"]["time"] == 5_000 - 800 + 10_000 - 4_200
    merge(sums, overhead.by_function(["same", "else", "other"]))
    assert sums["same"]["calls"] == 3 and list(sums) == ["same", "else"]


def test_the_cost_is_that_of_most_calls() -> None:
    """One call in fifty is interrupted; a call that is not recorded takes 4 ns."""
    start = np.arange(ROUNDS * CALLS) * 1904
    start += np.cumsum(np.arange(len(start)) % 50 == 0) * 10**6
    duration = np.where(np.arange(len(start)) % 50 == 49, 10**6, 810)
    bare = CalibrationCalls(start[:3], np.full(3, 810 + 4 * CALLS))
    assert cost_of(CalibrationCalls(start, duration), bare) == CallCost(810, 1090, UNCERTAIN * 1900)
    assert cost_of(CalibrationCalls(start[1:], duration[1:]), bare) is None  # a call is missing
