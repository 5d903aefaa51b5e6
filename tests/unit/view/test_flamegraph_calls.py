"""Flame graphs and Chrome traces of calls that were recorded with their times."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flames import named, shown, timed
from hypothesis import given
from hypothesis import strategies as st

from perun.collect._calls.events import Calls
from perun.collect._calls.profile import CalledFunction, CallTable
from perun.core.errors import ProfileError, UsageError
from perun.plugin.api import Run, ViewContext
from perun.profile.calls import MAX_DEPTH
from perun.profile.factory import Profile

Row = tuple[str, int, int, int, int, str]
"""Function, thread, beginning and duration in ns, size, caller."""


def recorded(*rows: Row, sizes: str = "list->size") -> Profile:
    """The profile that a collector makes of calls, which are given in the order in which they began."""
    names = sorted({row[0] for row in rows} | {row[5] for row in rows if row[5]})
    columns = zip(
        *(
            (names.index(name), thread, start, length, 0, size, names.index(caller) if caller else -1, order)
            for order, (name, thread, start, length, size, caller) in enumerate(rows)
        ),
        strict=True,
    )
    fields = ("function", "thread", "start", "duration", "exclusive", "size", "caller", "order")
    calls = {field: np.array(column, np.int64) for field, column in zip(fields, columns, strict=True)}
    table = CallTable()
    table.add(Calls(**calls))
    functions = [CalledFunction(name, "/bin/app", sizes) for name in names]
    return table.profile(functions, Run("./app", "10"), {"name": "complexity", "params": {}}, {})


def events(profile: Profile, **options: Any) -> list[dict[str, Any]]:
    document = json.loads(shown(profile, format="chrome", **options))
    assert set(document) == {"displayTimeUnit", "otherData", "traceEvents"}
    found: list[dict[str, Any]] = document["traceEvents"]
    return found


def spans(profile: Profile, **options: Any) -> list[dict[str, Any]]:
    """The events that are calls."""
    return [event for event in events(profile, **options) if event["ph"] == "X"]


PROGRAM: tuple[Row, ...] = (
    ("main", 7, 0, 1001, -1, ""),
    ("f", 7, 1, 400, 3, "main"),
    ("g", 7, 2, 399, -1, "f"),  # ends with f
    ("f", 7, 401, 600, 4, "main"),  # begins when f ended, ends with main
    ("f", 7, 501, 100, 5, "f"),
    ("g", 8, 100, 300, -1, ""),
)


def test_calls_are_nested_by_their_times_in_each_thread() -> None:
    assert named(recorded(*PROGRAM)) == {
        "main": 0.001,
        "main;f": 0.501,
        "main;f;g": 0.399,
        "main;f;f": 0.1,
        "g": 0.3,
    }
    assert named(recorded(*PROGRAM), "count") == {
        "main": 1,
        "main;f": 2,
        "main;f;g": 1,
        "main;f;f": 1,
        "g": 1,
    }


def test_one_function_has_the_time_it_took_in_each_place() -> None:
    # That g was called by f does not say by which of the two calls of f.
    rows: list[Row] = [("main", 1, 0, 100, -1, ""), ("a", 1, 0, 50, -1, "main"), ("f", 1, 0, 40, -1, "a")]
    rows += [("g", 1, 10, 30, -1, "f"), ("b", 1, 50, 50, -1, "main"), ("f", 1, 50, 50, -1, "b")]
    assert named(recorded(*rows)) == {"main;a": 0.01, "main;a;f": 0.01, "main;a;f;g": 0.03, "main;b;f": 0.05}


def test_where_the_clock_does_not_tell_order_and_caller_do() -> None:
    rows: list[Row] = [("main", 1, 0, 10, -1, ""), ("a", 1, 5, 0, -1, "main"), ("b", 1, 5, 0, -1, "main")]
    rows += [("c", 1, 5, 0, -1, "b"), ("d", 1, 5, 5, -1, "main"), ("e", 1, 5, 5, -1, "d")]
    assert named(recorded(*rows), "count") == {
        "main": 1, "main;a": 1, "main;b": 1, "main;b;c": 1, "main;d": 1, "main;d;e": 1
    }  # fmt: skip


def test_a_caller_whose_call_is_not_there_is_a_frame() -> None:
    rows: list[Row] = [("main", 1, 0, 100, -1, ""), ("g", 1, 10, 20, -1, "f"), ("work", 2, 0, 5, -1, "spawn")]
    assert named(recorded(*rows)) == {"main": 0.08, "main;f;g": 0.02, "spawn;work": 0.005}


@given(st.recursive(st.just([]), lambda inner: st.lists(inner, max_size=4), max_leaves=30), st.integers(0, 3))
def test_any_tree_of_calls_is_found_again(tree: list[Any], gap: int) -> None:
    rows: list[Row] = []
    stacks: dict[str, int] = {}

    def call(inner: list[Any], above: str, begin: int) -> int:
        # A function that calls itself in no time at all could be called by any of its calls.
        name = f"f{len(inner)}" if gap else f"f{len(inner)} at {above.count(';') + bool(above)}"
        stack = f"{above};{name}" if above else name
        stacks[stack] = stacks.get(stack, 0) + 1
        row = len(rows)
        rows.append((name, 1, begin, 0, -1, above.rpartition(";")[2]))
        now = begin + gap
        for one in inner:
            now = call(one, stack, now) + gap
        rows[row] = (*rows[row][:3], now - begin, *rows[row][4:])
        return now

    total = call(tree, "", 12_345)
    assert named(recorded(*rows), "count") == stacks
    if gap:
        assert sum(named(recorded(*rows)).values()) == pytest.approx((total - 12_345) / 1000)


def test_floats_need_not_be_exact() -> None:
    # 0.1 + 0.2 is a little more than 0.3.
    outer, inner = 0.3000000001, 0.2000000001
    found = named(timed(("main", 0, outer), ("f", 0.1, inner)))
    assert found == {"main": pytest.approx(0.1), "main;f": inner}
    assert named(timed(("main", 0, 3e-5), ("f", 1e-5, 2e-5), unit="s")) == {
        "main": pytest.approx(1e-5),
        "main;f": pytest.approx(2e-5),
    }
    epoch = 1_800_000_000_000_000_000
    assert named(timed(("main", epoch, 10), ("f", epoch + 3, 4), unit="ns")) == {"main": 6, "main;f": 4}


def test_what_is_too_deep_counts_for_the_innermost_that_is_told() -> None:
    rows: list[Row] = [("f", 1, depth, 20_000 - 2 * depth, -1, "f" if depth else "") for depth in range(5000)]
    notes: list[str] = []
    lines = shown(recorded(*rows), ViewContext(notes.append), format="folded").splitlines()
    assert len(lines) == MAX_DEPTH
    assert sum(float(line.rpartition(" ")[2]) for line in lines) == pytest.approx(20)
    assert notes == [
        f"the graph adds {5000 - MAX_DEPTH:,} calls nested deeper than {MAX_DEPTH} levels to their callers"
    ]


def test_exclusive_times_have_their_own_unit(tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    profile = recorded(*PROGRAM)
    for group in profile["resources"].values():
        group["exclusive"] = [5] * len(group["amount"])
    shown(profile, filename=str(path), of="exclusive")
    assert '"unit":"ns"' in path.read_text("utf-8")
    shown(profile, filename=str(path))
    assert '"unit":"us"' in path.read_text("utf-8")


def test_a_chrome_trace_has_an_event_for_each_call() -> None:
    name, *threads = (event for event in events(recorded(*PROGRAM)) if event["ph"] == "M")
    assert name == {"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": "./app 10"}}
    assert threads == [
        {"ph": "M", "pid": 1, "tid": number, "name": "thread_name", "args": {"name": f"thread {number}"}}
        for number in (7, 8)
    ]
    found = spans(recorded(*PROGRAM))
    assert all((event["ph"], event["pid"]) == ("X", 1) for event in found)
    assert [
        (event["tid"], event["name"], event["ts"], event["dur"], event.get("args")) for event in found
    ] == [
        (7, "main", 0, 1.001, None),
        (7, "f", 0.001, 0.4, {"size": 3}),
        (7, "g", 0.002, 0.399, None),
        (7, "f", 0.401, 0.6, {"size": 4}),
        (7, "f", 0.501, 0.1, {"size": 5}),
        (8, "g", 0.1, 0.3, None),
    ]


def test_numbers_of_calls_are_no_sizes_in_a_chrome_trace() -> None:
    rows: list[Row] = [("f", 1, 0, 5, -1, ""), ("f", 1, 5, 5, -1, "")]
    assert [event.get("args") for event in spans(recorded(*rows))] == [None, None]
    sized = timed(("f", 0, 5))
    sized.update_resources([{"uid": "g", "timestamp": 7, "amount": 1, "structure-unit-size": 2.5}])
    assert [event.get("args") for event in spans(sized)] == [None, {"size": 2.5}]


@pytest.mark.parametrize(("unit", "factor"), [("ns", 0.001), ("us", 1), ("ms", 1000), ("s", 1_000_000)])
def test_a_chrome_trace_is_in_microseconds(unit: str, factor: float) -> None:
    (event,) = spans(timed(("f", 2000, 0.5), unit=unit))
    assert event["ts"] == 2000 * factor
    assert event["dur"] == pytest.approx(0.5 * factor, abs=0.0005)


def test_threads_of_a_chrome_trace_have_numbers() -> None:
    profile = timed(("f", 0, 5), thread="worker")
    profile.update_resources(
        {"uid": "g", "timestamp": 1, "amount": 2, "thread": thread} for thread in (0, "other")
    )
    found = events(profile, graph_title="T<>\ud800")
    assert [event["args"]["name"] for event in found if event["ph"] == "M"] == [
        "T<>\ud800",
        "worker",
        "thread 0",
        "other",
    ]
    assert {event["tid"] for event in found if event["ph"] == "X"} == {0, 1, 2}


def of_processes() -> Profile:
    """Three processes; the last executes another program, in a thread with a number of the first one's."""
    profile = Profile(header={"type": "mixed", "cmd": "./app", "units": {"mixed(time delta)": "us"}})
    rows = [
        (70, 70, "main", 0, 90, "/opt/app"),
        (70, 71, "work", 10, 20, "/opt/app"),
        (80, 80, "work", 20, 30, "/opt/app"),
        (90, 91, "late", 45, 5, "/usr/lib/late.so"),
        (90, 71, "start", 40, 40, "/usr/bin/tool"),
    ]
    names = ("process", "thread", "uid", "timestamp", "amount", "location")
    profile.update_resources({"type": "mixed", **dict(zip(names, row, strict=True))} for row in rows)
    return profile


def test_processes_of_a_chrome_trace_are_apart() -> None:
    found = events(of_processes())
    assert {(event["pid"], event["tid"], event["name"]) for event in found if event["ph"] == "X"} == {
        (70, 70, "main"),
        (70, 71, "work"),
        (80, 80, "work"),
        (90, 91, "late"),
        (90, 71, "start"),
    }
    assert {
        (event["name"], event["pid"], event["tid"], event["args"]["name"])
        for event in found
        if event["ph"] == "M"
    } == {
        ("process_name", 70, 0, "app"),
        ("process_name", 80, 0, "app"),
        ("process_name", 90, 0, "tool"),
        ("thread_name", 70, 70, "main thread"),
        ("thread_name", 70, 71, "thread 71"),
        ("thread_name", 80, 80, "main thread"),
        ("thread_name", 90, 91, "thread 91"),
        ("thread_name", 90, 71, "thread 71"),
    }
    # Calls of threads that have one number are not within each other.
    assert named(of_processes()) == {"main": 90, "work": 50, "late": 5, "start": 40}


@pytest.mark.parametrize(
    "profile",
    [recorded(*PROGRAM), of_processes(), timed(("f", 0.25, 5)), timed(("f", 0, 5), thread="worker")],
    ids=["threads", "processes", "no thread", "text"],
)
def test_events_are_what_the_format_asks_for(profile: Profile) -> None:
    """The Trace Event Format: the keys that an event of each kind has to have, and their types."""
    text = shown(profile, format="chrome")
    document = json.loads(text, parse_constant=lambda what: pytest.fail(f"{what} is no JSON"))
    assert document["displayTimeUnit"] in ("ms", "ns")
    told: dict[str, set[tuple[int, ...]]] = {"process_name": set(), "thread_name": set()}
    used = set()
    for event in document["traceEvents"]:
        assert isinstance(event["name"], str)
        assert type(event["pid"]) is int
        assert type(event["tid"]) is int
        if event["ph"] == "M":
            key = (event["pid"],) if event["name"] == "process_name" else (event["pid"], event["tid"])
            assert key not in told[event["name"]]
            told[event["name"]].add(key)
            assert isinstance(event["args"]["name"], str)
        else:
            assert event["ph"] == "X"
            assert isinstance(event["ts"], int | float)
            assert isinstance(event["dur"], int | float)
            assert event["dur"] >= 0
            assert isinstance(event.get("args", {}), dict)
            used.add((event["pid"], event["tid"]))
    assert told["process_name"] == {(pid,) for pid, _ in used}
    has_threads = any("thread" in one for one in profile["resource_type_map"].values())
    assert told["thread_name"] == (used if has_threads else set())


def test_a_chrome_trace_is_written_whole_or_not_at_all(tmp_path, monkeypatch) -> None:
    path = tmp_path / "trace.json"
    path.write_text("old")
    profile = recorded(*PROGRAM)
    with monkeypatch.context() as patch:
        patch.setattr("perun.profile.stacks._times", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            shown(profile, format="chrome", filename=str(path))
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["trace.json"]
    assert shown(profile, format="chrome", filename=str(path)) == f"{path}\n"
    assert len(json.loads(path.read_text())["traceEvents"]) == 3 + len(PROGRAM)


def test_profiles_without_times_have_no_chrome_trace(tmp_path: Path) -> None:
    path = tmp_path / "x"
    untimed = Profile(header={"type": "mixed", "units": {"mixed": "us"}}, collector_info={"name": "trace"})
    untimed.update_resources([{"uid": "f", "amount": 1, "caller": "main"}])
    with pytest.raises(ProfileError, match="but no resource has a timestamp") as caught:
        shown(untimed, format="chrome", filename=str(path))
    assert "perun collect trace" in caught.value.hint
    with pytest.raises(ProfileError, match="the profile are in B"):
        shown(timed(("f", 0, 5), unit="B"), format="chrome", filename=str(path))
    with pytest.raises(UsageError, match="shows the durations of calls, not"):
        shown(timed(("f", 0, 5)), format="chrome", of="count")
    with pytest.raises(UsageError, match="a browser cannot show --format chrome"):
        shown(timed(("f", 0, 5)), format="chrome", view_in_browser=True)
    assert not path.exists()


def corrected(*rows: tuple[str, str, int, int, int]) -> Profile:
    """A profile whose amounts are without what recording cost: function, caller, beginning, duration and
    exclusive time of calls in the order in which they began, in ns."""
    profile = Profile(
        header={"type": "mixed", "cmd": "./app", "units": {"mixed(time delta)": "us"}}, trace={"overhead": {}}
    )
    profile.update_resources(
        {**{"type": "mixed", "subtype": "time delta", "uid": uid, "call-order": order, "thread": 1},
         **({"caller": caller} if caller else {}),
         **{"timestamp": start / 1000, "amount": length / 1000, "exclusive": exclusive}}
        for order, (uid, caller, start, length, exclusive) in enumerate(rows)
    )  # fmt: skip
    return profile


def test_calls_that_seem_to_outlast_their_caller_are_below_it() -> None:
    """Their beginnings are those with what recording costs, their durations those without it."""
    profile = corrected(
        ("main", "", 0, 100, 10),
        ("f", "main", 50, 60, 20),
        ("g", "f", 120, 40, 40),
        ("f", "main", 400, 30, 0),
        ("g", "f", 470, 30, 30),
    )
    assert named(profile) == {"main": 0.01, "main;f": 0.02, "main;f;g": 0.07}
    assert named(profile, "count") == {"main": 1, "main;f": 2, "main;f;g": 2}


def test_a_call_is_below_that_of_its_callers_which_has_room_for_it() -> None:
    profile = corrected(
        ("f", "", 0, 100, 10),
        ("f", "f", 200, 50, 20),
        ("g", "f", 400, 30, 30),
        ("g", "f", 700, 40, 40),  # the second f has no time left for it
        ("h", "x", 900, 5, 5),  # sampling left out the call of x
    )
    assert named(profile) == {"f": 0.01, "f;f": 0.02, "f;f;g": 0.03, "f;g": 0.04, "x;h": 0.005}


def test_the_graph_of_recorded_calls_adds_up_to_the_outermost_ones() -> None:
    rows = [("main", "", 0, 5_010, 10)]
    for turn in range(100):  # 50 ns each, of which recording made 700
        rows += [("f", "main", 10 + 700 * turn, 50, 20), ("g", "f", 300 + 700 * turn, 30, 30)]
    assert sum(named(corrected(*rows)).values()) == pytest.approx(5.01)
