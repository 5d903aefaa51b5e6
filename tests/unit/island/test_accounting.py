"""Where the time of a thread went: calls, computing and stops, against a simulator that goes through it step
by step.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from hand_made import api, blocks, call, ns
from hypothesis import given, settings
from hypothesis import strategies as st

from perun.island.accounting import Account, CallTimes, IslandEntries, IslandTime, Stops, no_stops
from perun.island.layout import APIS
from perun.island.record import Call
from perun.island.stop_log import RULES
from shared import examples

LIMITED = {"expected": ns(2)}
"""20 bytes at 10 bytes per second, from 0."""
CASES = {
    # the call, the stops, and what counts as stopped by seed, source2010 and exact
    "a call without a limit": (call("file.write", 0, 1), [(0, 1)], (1, 1, 1)),
    "20 B at 10 B/s, stop 0.6 to 1.6": (call("file.write", 0, 2, 20, **LIMITED), [(0.6, 1.6)], (0, 0, 0)),
    "20 B at 10 B/s, stop 1.8 to 2.8": (call("file.write", 0, 2.8, 20, **LIMITED), [(1.8, 2.8)], (0, 0, 0.8)),
    "20 B at 10 B/s, stop 0.6 to 3.6": (
        call("file.write", 0, 3.6, 20, **LIMITED), [(0.6, 3.6)], (0, 1.6, 1.6),
    ),
    "20 B at 10 B/s, 1 s of a slow disk": (call("file.write", 0, 4, 20, **LIMITED), [(0.5, 1.5)], (1, 0, 1)),
    "sleep of 1 s, stop 0.4 to 2.4": (call("time.sleep", 0, 2.4, ns(1)), [(0.4, 2.4)], (0, 1.4, 1.4)),
    "sleep that a slow machine made longer": (call("time.sleep", 0, 4, ns(1)), [(0.4, 2.4)], (0, 2, 2)),
    "two stops count together": (call("file.read", 0, 2), [(0.5, 1), (1.5, 1.75)], (0.75, 0.75, 0.75)),
    # It waited for the data until 1.5; only from there on the stop cost anything.
    "data came in the stop": (
        call("socket.recv", 0, 2, 8, resource="tcprecv", arrived=ns(1.5)), [(1, 2)], (1, 1, 0.5),
    ),
    "data came before the stop": (
        call("socket.recv", 0, 2, 8, resource="tcprecv", arrived=ns(0.5)), [(1, 2)], (1, 1, 1),
    ),
    "data came before the call": (
        call("socket.recv", 1, 2, 8, resource="tcprecv", arrived=ns(0.5)), [(1, 2)], (1, 1, 1),
    ),
    "data came after the stop": (
        call("socket.recv", 0, 3, 8, resource="tcprecv", arrived=ns(3)), [(1, 2)], (1, 1, 0),
    ),
}  # fmt: skip
RULE_NAMES = ("seed", "source2010", "exact")


def stops(*pairs: tuple[float, float]) -> Stops:
    return Stops(*(np.array([ns(pair[end]) for pair in pairs], np.int64) for end in (0, 1)))


def entered(first: int = 0, *others: tuple[float, int]) -> IslandEntries:
    times = np.array([ns(time) for time, _ in others], np.int64)
    return IslandEntries(first, times, np.array([island for _, island in others], np.int64))


class Accounted(NamedTuple):
    """What the account of a thread says, `calls` by their starts."""

    live: int
    calls: CallTimes
    between: dict[int, IslandTime]
    by_rule: dict[str, int]


def accounted(
    calls: list[Call], life: tuple[int, int], islands: IslandEntries, during: Stops, rule: str, size: int
) -> Accounted:
    """The account that is given the calls in blocks of this size."""
    account = Account(APIS, life, islands, during, rule)
    ordered = sorted(calls, key=lambda one: one.start)
    numbered = [one._replace(physical=number) for number, one in enumerate(ordered)]
    rows = []
    for block in blocks(numbered, size):
        numbers = block.calls["physical"][block.done].tolist()
        rows += zip(numbers, *(column.tolist() for column in account.add(block)), strict=True)
    columns = np.array(sorted(rows), np.int64).reshape(-1, 4).T[1:]
    return Accounted(life[1] - life[0], CallTimes(*columns), account.between(), account.by_rule)


def of(
    calls: list[Call], life: tuple[float, float], stopped: Stops, rule: str = "exact",
    islands: IslandEntries | None = None
) -> Accounted:  # fmt: skip
    return accounted(calls, (ns(life[0]), ns(life[1])), islands or entered(), stopped, rule, 2)


def parts(found: Accounted) -> int:
    """All that the thread did; `live` if nothing is missing and nothing twice."""
    return int(found.calls.actual.sum()) + sum(one.time for one in found.between.values())


@pytest.mark.parametrize("case", CASES)
def test_a_stop_in_a_call(case: str) -> None:
    one, during, expected = CASES[case]
    for rule, seconds in zip(RULE_NAMES, expected, strict=True):
        found = of([one], (-1, 5), stops(*during), rule)
        assert found.calls.stopped.tolist() == [ns(seconds)], rule
        assert found.by_rule[rule] == ns(seconds)
        assert parts(found) == found.live == ns(6)


@pytest.mark.parametrize("name", ["lock.acquire", "thread.join", "socket.accept"])
def test_waiting_for_somebody_else_is_never_silently_stopped(name: str) -> None:
    found = of([call(name, 0, 3)], (0, 4), stops((1, 2)))
    assert found.calls.stopped.tolist() == [0]
    assert found.calls.ambiguous.tolist() == [ns(1)]
    seed = of([call(name, 0, 3)], (0, 4), stops((1, 2)), "seed")
    assert seed.calls.stopped.tolist() == [ns(1)], "the document assumes that it is due to being stopped"


def test_outside_of_calls_a_stop_is_stopped_time() -> None:
    calls = [call("file.write", 1, 2), call("file.write", 4, 5)]
    found = of(calls, (0, 8), stops((0.25, 0.5), (1.5, 3), (6, 7)))
    assert found.between[0].time == ns(6) and found.between[0].stopped == ns(0.25 + 1 + 1)
    assert found.calls.stopped.tolist() == [ns(0.5), 0]


def test_the_time_between_calls_belongs_to_the_island_that_the_thread_is_in() -> None:
    calls = [call("file.write", 1, 2), call("file.write", 4, 5), call("file.write", 7, 8)]
    islands = entered(0, (0.5, 1), (2, 0), (3, 2), (4.5, 1), (9, 0))
    found = of(calls, (0, 10), stops((2.5, 3.25)), islands=islands)
    assert {island: one.time for island, one in found.between.items()} == {
        0: ns(0.5 + 1 + 1), 1: ns(0.5 + 2 + 1), 2: ns(1),
    }  # fmt: skip
    assert {island: one.stopped for island, one in found.between.items()} == {0: ns(0.5), 1: 0, 2: ns(0.25)}
    assert parts(found) == found.live


def test_the_time_of_a_call_in_another_one_counts_once_for_the_inner() -> None:
    calls = [
        call("file.writelines", 0, 10),
        call("file.read", 1, 3),
        call("time.sleep", 4, 8, ns(2)),
        call("file.read", 5, 6),
        call("file.read", 10, 11),
    ]
    found = of(calls, (0, 12), stops((2, 2.5), (5.5, 7.5), (9, 9.5)))
    assert found.calls.actual.tolist() == [ns(4), ns(2), ns(3), ns(1), ns(1)]
    # The sleep lasted 3 s by itself, 1.5 s of them stopped, and asked for 2 s.
    assert found.calls.stopped.tolist() == [ns(0.5), ns(0.5), ns(1), ns(0.5), 0]
    assert parts(found) == found.live


def test_a_call_that_never_returned_lasts_to_the_end_of_the_thread() -> None:
    one = call("time.sleep", 1, 2, ns(100))._replace(end=-1)
    assert of([one], (0, 4), no_stops()).calls.actual.tolist() == [ns(3)]


def test_what_a_damaged_recording_says_counts_no_time_twice() -> None:
    calls = [
        call("file.read", -5, 3), call("file.read", 2, 4), call("file.read", 3.5, 1),
        call("file.read", 9, 20), call("file.read", 30, 40),
    ]  # fmt: skip
    found = of(calls, (0, 10), stops((1, 2.5), (9.5, 30)))
    assert parts(found) == found.live and (found.calls.actual >= 0).all()


def test_a_stop_ends_where_the_process_does_something_again() -> None:
    late = stops((1, 2), (3, 4), (5, 6)).tightened(
        np.array(list(map(ns, seen))) for seen in ((0.5, 7), (1.6,), (1.5, 1.6))
    )
    assert late.ends.tolist() == [ns(1.5), ns(4), ns(6)] and late.starts.tolist() == [ns(1), ns(3), ns(5)]


# A simulator that is written apart from the accounting: it goes through the thread in steps, and asks of each
# what the thread does and whether it is stopped.


class Plan(NamedTuple):
    """A thread of equal steps: what it does in each, and whether the process is stopped in it."""

    calls: list[Call]
    stopped: set[int]
    length: int


KINDS = (
    ("file.write", ""), ("file.read", ""), ("time.sleep", ""), ("lock.acquire", ""),
    ("socket.recv", "tcprecv"),
)  # fmt: skip


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    at, calls = draw(st.integers(0, 5)), []
    for _ in range(draw(st.integers(0, 6))):
        length = draw(st.integers(0, 10))
        name, resource = draw(st.sampled_from(KINDS))
        extra: dict[str, int] = {}
        amount = draw(st.integers(0, 12))
        if name == "file.write" and draw(st.booleans()):
            extra["expected"] = at + amount
        if name == "socket.recv" and draw(st.booleans()):
            extra["arrived"] = draw(st.integers(max(0, at - 2), at + length))
        made = call(name, 0, 0, amount, resource=resource, **extra)
        calls.append(made._replace(start=at, end=at + length))
        at += length + draw(st.integers(0, 4))
    length = at + draw(st.integers(0, 5))
    stopped: set[int] = set()
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, max(0, length - 1)))
        stopped |= set(range(start, min(length, start + draw(st.integers(1, 6)))))
    return Plan(calls, stopped, length)


def simulated(plan: Plan, rule: str) -> Counter[str]:
    """Steps of each category."""
    found: Counter[str] = Counter()
    in_call: set[int] = set()
    for one in plan.calls:
        name = APIS[one.api].name
        steps = list(range(one.start, one.end))
        in_call |= set(steps)
        waited = [step for step in steps if step < one.arrived]
        needed = one.amount if name == "time.sleep" else max(0, one.expected - one.start)
        halted = [step for step in steps if step in plan.stopped]
        if rule == "seed":
            counts = len(steps) >= needed + len(halted) and name != "time.sleep"
            stopped = len(halted) if counts else 0
        elif rule == "source2010":
            kept = max(needed, len(steps) - len(halted))
            stopped = max(0, len(steps) - kept) if len(halted) > needed else 0
        else:
            # What the call cannot do without: its expected time, and each step in which the process ran.
            # While it
            # waited for data a stop cost nothing.
            halted = [step for step in halted if step not in waited]
            actual = len(steps) - len(waited)
            needs = max(0, needed - len(waited))
            stopped = min(len(halted), max(0, actual - needs))
        if rule == "exact" and stopped and name in ("lock.acquire", "socket.recv") and one.arrived < 0:
            found["ambiguous"] += stopped
            stopped = 0
        found["stopped"] += stopped
        found[name] += len(steps) - stopped
    outside = set(range(plan.length)) - in_call
    found["stopped"] += len(outside & plan.stopped)
    found["cpu"] += len(outside - plan.stopped)
    return found


@pytest.mark.parametrize("rule", sorted(RULES))
@settings(max_examples=examples(60))
@given(plan=plans(), size=st.integers(1, 8))
def test_a_random_thread_is_accounted_as_the_simulator_does(rule: str, plan: Plan, size: int) -> None:
    edges = [step for step in sorted(plan.stopped) if step - 1 not in plan.stopped]
    ends = [step + 1 for step in sorted(plan.stopped) if step + 1 not in plan.stopped]
    during = Stops(np.array(edges, np.int64), np.array(ends, np.int64))
    result = accounted(plan.calls, (0, plan.length), entered(), during, rule, size)
    found = Counter({"stopped": sum(one.stopped for one in result.between.values())})
    found["cpu"] = sum(one.time - one.stopped for one in result.between.values())
    made = sorted(plan.calls, key=lambda one: one.start)
    for one, actual, stopped, ambiguous in zip(
        made, *(column.tolist() for column in result.calls), strict=True
    ):
        found[APIS[one.api].name] += actual - stopped
        found["stopped"] += stopped
        found["ambiguous"] += ambiguous
    expected = simulated(plan, rule)
    assert {name: found[name] for name in {*found, *expected}} == {
        name: expected[name] for name in {*found, *expected}
    }
    assert sum(found.values()) - found["ambiguous"] == plan.length


def test_the_kinds_of_the_simulator_are_in_the_table() -> None:
    assert [APIS[api(name, resource)].name for name, resource in KINDS] == [name for name, _ in KINDS]


# -- Which part of a stop counts as stopped: the rules on the cases that tell them apart -------------


TABLE = {
    # what happens: (actual, expected, stops), and what counts as stopped by seed, source2010 and exact
    "a call without a limit, 1 s stop": ((1.0, 0, 1), (1, 1, 1)),
    "20 B at 10 B/s, stop 0.6 to 1.6": ((2, 2, 1), (0, 0, 0)),
    "20 B at 10 B/s, stop 1.8 to 2.8": ((2.8, 2, 1), (0, 0, 0.8)),
    "20 B at 10 B/s, stop 0.6 to 3.6": ((3.6, 2, 3), (0, 1.6, 1.6)),
    "20 B at 10 B/s, 1 s of a slow disk and 1 s stop": ((4, 2, 1), (1, 0, 1)),
    "sleep of 1 s, stop 0.4 to 2.4": ((2.4, 1, 2), (0, 1.4, 1.4)),
    "a call that ended before it was expected to": ((1, 2, 0.5), (0, 0, 0)),
    "no stop at all": ((1, 0, 0), (0, 0, 0)),
}


@pytest.mark.parametrize("case", TABLE)
@pytest.mark.parametrize(("position", "rule"), list(enumerate(("seed", "source2010", "exact"))))
def test_each_rule_on_each_case(case: str, position: int, rule: str) -> None:
    (actual, expected, stops), stopped = TABLE[case]
    assert RULES[rule](ns(actual), ns(expected), ns(stops)) == ns(stopped[position])


@given(st.sampled_from(sorted(RULES)), st.integers(0, 1000), st.integers(0, 1000), st.data())
def test_no_more_is_stopped_than_the_stops_and_nothing_less_than_0(rule, actual, expected: int, data) -> None:
    stops = data.draw(st.integers(0, actual))
    assert 0 <= RULES[rule](actual, expected, stops) <= stops
