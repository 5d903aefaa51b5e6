"""Calls of entries and exits, and the profile of calls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.check._common.exclusive import exclusive_times
from perun.collect._calls.events import UNKNOWN, Calls, Events, Nesting
from perun.collect._calls.profile import BY_ORDER, CalledFunction, CallTable
from perun.plugin.api import Run
from perun.profile.format.columns import CompressedColumn
from perun.profile.format.json import dumps_pending, loads, validate

Row = tuple[int, int, int, int]


def events(rows: list[Row]) -> Events:
    """Events of rows (time, function, whether it is an entry, size)."""
    columns = np.array(rows, np.int64).reshape(-1, 4)
    return Events(columns[:, 0], columns[:, 1], columns[:, 2].astype(np.bool_), columns[:, 3])


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
    assert nesting.depth == 0
    assert len(found) == sum(row[2] for row in rows)
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
    assert profile["header"]["units"] == {"mixed(time delta)": "us"}
    assert profile["trace"] == {"calls": 3}
    main, first, second = (resource for _, resource in profile.all_resources())
    assert first == {
        "amount": 11.0,
        "exclusive": 11_000,
        "call-order": 1,
        "timestamp": 1.0,
        "structure-unit-size": 0,
        "type": "mixed",
        "subtype": "time delta",
        "uid": "insert(List*)",
        "thread": 5,
        "location": "/bin/prog",
        "caller": "main",
        "size-source": "l->size",
    }
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
    profile = table.profile(FUNCTIONS, Run("./prog"), COLLECTOR, {})
    (group,) = profile.groups()
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
