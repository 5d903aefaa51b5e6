"""Totals of recordings: per thread, file and socket, and where the time went."""

import csv
import io
import json
import tracemalloc
from collections import defaultdict
from typing import Any, cast

import numpy as np
import pytest
from hand_made import NUMBERS, HandMade, call, ns, thread

from perun.island import statistics, timeline
from perun.island.accounting import Stops, no_stops
from perun.island.layout import APIS, CONCURRENT
from perun.island.record import Object, Recording, Thread
from perun.island.statistics import ThreadTime, Usage
from perun.island.timeline import CallSpan, Lane

FILE = Object(0, "file", "/data/a.txt", 1, 0, -1, {})
AGAIN = FILE._replace(number=1, serial=2)
SOCKET = Object(2, "tcp", "example.org:80", 1, 0, -1, {})


def accounted(
    made: HandMade, ended: float = 10, stops: Stops | None = None, rule: str = "exact"
) -> tuple[list[Usage], list[ThreadTime]]:
    rows, lives, _ = statistics.of_process(0, cast("Recording", made), ns(ended), stops or no_stops(), rule)
    return rows, lives


def stops(*pairs: tuple[float, float]) -> Stops:
    return Stops(*(np.array([ns(pair[end]) for pair in pairs], np.int64) for end in (0, 1)))


def main_thread(**more: int) -> Thread:
    return thread(0, "MainThread", 0, **more)


def one(rows: list[Usage], **wanted: str) -> Usage:
    (found,) = (row for row in rows if all(getattr(row, name) == value for name, value in wanted.items()))
    return found


def test_each_file_and_socket_is_counted_by_itself() -> None:
    calls = [
        call("file.open", 1, 1.5, 1, object=0),
        call("file.write", 2, 3, 8, object=0),
        call("file.write", 3, 4, 8, object=0, physical=16),
        call("file.writelines", 4, 4.5, 4, object=1),
        call("file.read", 5, 6, 100, object=1),
        call("socket.send", 6, 7, 30, resource="tcpsend", object=2),
    ]
    rows, _ = accounted(HandMade(calls, [main_thread()], [FILE, AGAIN, SOCKET]))
    first = one(rows, object="/data/a.txt#1", subtype="filewrite")
    assert (first.amount, first.unit, first.physical, first.calls, first.seconds) == (16, "B", 24, 2, 2)
    assert one(rows, object="/data/a.txt#1", subtype="filesopened").amount == 1
    second = one(rows, object="/data/a.txt#2", subtype="filewrite")
    assert (second.amount, second.calls, second.seconds) == (4, 1, 0.5)
    assert one(rows, object="tcp example.org:80#1").amount == 30
    by_kind = statistics.totals(rows, lambda row: row.subtype)
    assert (by_kind["filewrite"].amount, by_kind["filewrite"].calls) == (20, 3)
    assert by_kind["fileread"].physical == 100


def test_threads_of_one_name_are_told_apart() -> None:
    threads = [main_thread(), thread(1, "worker", 1, 3), thread(2, "worker", 2, 4)]
    calls = [call("file.write", 2, 2.5, 8, thread=number) for number in (1, 2)]
    rows, lives = accounted(HandMade(calls, threads))
    assert [life.name for life in lives] == ["MainThread", "worker", "worker #2"]
    assert {row.thread for row in rows if row.subtype == "filewrite"} == {"worker", "worker #2"}


@pytest.mark.parametrize("rule", ["exact", "seed", "source2010"])
def test_the_rows_of_a_thread_sum_to_its_life(rule: str) -> None:
    calls = [
        call("file.write", 1, 2, 8), call("time.sleep", 3, 6, ns(1)), call("lock.acquire", 6, 7.25),
        call("file.write", 2, 2.2, 8, thread=1, island=1),
        call("asyncio.sleep", 2, 9, ns(7), flags=CONCURRENT),
    ]  # fmt: skip
    threads = [main_thread(cpu=ns(0.7), run_queue=ns(0.1)), thread(1, "worker", 1.5, 8, cpu=ns(99))]
    made = HandMade(calls, threads, islands=("program", "inner"), entered=[(3.5, 1), (7, 0)])
    rows, lives = accounted(made, 10, stops((0.25, 0.5), (1.5, 1.75), (4, 6.5)), rule)
    for life in lives:
        own = [row for row in rows if row.thread == life.name]
        assert sum(row.seconds for row in own) == pytest.approx(
            (life.destroyed - life.created) / ns(1), abs=1e-9
        )
        assert all(row.seconds >= 0 and row.ambiguous <= row.seconds for row in own)
        assert sum(row.seconds for row in own if row.type == "stopped") == pytest.approx(life.stopped)
        assert life.stopped == life.by_rule[rule]


def test_computing_is_told_from_waiting_for_a_processor_and_for_the_interpreter() -> None:
    rows, _ = accounted(HandMade([call("file.read", 4, 8)], [main_thread(cpu=ns(2), run_queue=ns(1.5))]))
    seconds = {(row.type, row.subtype): row.seconds for row in rows if row.type != "disk"}
    assert seconds == {("cpu", "user-thread"): 2, ("wait", "runqueue"): 1.5, ("wait", "blocked"): 2.5}


def test_the_processor_time_of_short_calls_is_not_counted_twice() -> None:
    # 1,000 calls of 20 us compute; so 0.02 s of the thread's processor time are theirs.
    calls = [call("file.write", number / 1000, number / 1000 + 20e-6, 8) for number in range(1000)]
    rows, _ = accounted(HandMade(calls, [main_thread(cpu=ns(0.5))]), 1)
    assert one(rows, subtype="user-thread").seconds == pytest.approx(0.48)
    assert one(rows, subtype="blocked").seconds == pytest.approx(0.5)


def test_nobody_knows_what_a_thread_without_a_clock_did() -> None:
    rows, _ = accounted(HandMade([], [main_thread()]))
    assert [(row.type, row.subtype, row.seconds) for row in rows] == [("unknown", "unknown", 10)]
    rows, _ = accounted(HandMade([], [main_thread(cpu=ns(2), sampled=ns(7))]))
    assert {row.subtype: row.seconds for row in rows} == {"user-thread": 2, "unknown": 3, "blocked": 5}


def test_a_call_beside_which_the_thread_did_other_things_takes_no_time_of_it() -> None:
    calls = [call("asyncio.sleep", 0, 5, ns(5), flags=CONCURRENT), call("file.write", 1, 2, 8)]
    rows, _ = accounted(HandMade(calls, [main_thread()]))
    slept = one(rows, subtype="asyncio")
    assert (slept.amount, slept.unit, slept.seconds, slept.calls) == (5, "s", 0, 1)
    assert one(rows, subtype="filewrite").seconds == 1


def test_each_island_has_rows_of_its_own() -> None:
    calls = [
        call("file.write", 1, 2, 8), call("file.write", 3, 4, 16, island=1),
        call("file.write", 5, 6, 32, island=0),
    ]  # fmt: skip
    made = HandMade(calls, [main_thread(cpu=ns(9))], islands=("program", "A"), entered=[(2.5, 1), (5, 0)])
    rows, _ = accounted(made, 8, stops((4.5, 5)))
    written = {row.island: row.amount for row in rows if row.subtype == "filewrite"}
    assert written == {"program": 40, "A": 16}
    stopped = {row.island: row.seconds for row in rows if row.type == "stopped"}
    assert stopped == {"A": 0.5}
    between = {row.island: row.seconds for row in rows if row.type == "cpu"}
    assert between == {"program": 1 + 0.5 + 2, "A": 1}


def test_the_table_of_time_consumption_is_that_of_the_document() -> None:
    calls = [
        call("socket.send", 0, 1, 8, resource="tcpsend"), call("socket.send", 1, 2, 8, resource="udpsend"),
        call("socket.recv", 2, 3, 8, resource="tcprecv"), call("file.read", 3, 4, 8),
        call("file.write", 4, 5, 8),
        call("socket.connect", 5, 6, 1, resource="outsockets"), call("random.bytes", 6, 7, 8),
        call("time.sleep", 7, 8, ns(1)), call("lock.acquire", 8, 8.5),
    ]  # fmt: skip
    rows, _ = accounted(HandMade(calls, [main_thread(cpu=ns(9))]), 10, stops((9, 9.5)))
    main, everything = statistics.consumption(rows)
    assert main.name == "MainThread"
    assert list(main.seconds.items()) == [
        ("cpu", 1), ("netsend", 2), ("netrecv", 1), ("fileread", 1), ("filewrite", 1), ("outsockets", 1),
        ("random", 1), ("sleep", 1), ("stopped", 0.5), ("lock", 0.5),
    ]  # fmt: skip
    assert main.live == 10 and (everything.name, everything.live) == ("all threads", 10)


def test_what_a_stop_takes_from_a_call_is_no_time_of_that() -> None:
    rows, (life,) = accounted(HandMade([call("file.write", 1, 3, 8)], [main_thread()]), 10, stops((1.5, 2)))
    assert one(rows, subtype="filewrite").seconds == 1.5 and one(rows, type="stopped").seconds == 0.5
    assert life.by_rule == {"exact": 0.5, "seed": 0.5, "source2010": 0.5}


def test_a_process_that_recorded_no_thread_has_no_rows() -> None:
    assert accounted(HandMade()) == ([], [])


@pytest.mark.parametrize(
    ("kind", "ambiguous"), [("pipe", 0.5), ("terminal", 0.5), ("file", 0), ("device", 0)]
)
def test_reading_a_pipe_waits_for_who_writes_to_it(kind: str, ambiguous: float) -> None:
    made = HandMade([call("file.read", 1, 3, 8, object=0)], [main_thread()], [FILE._replace(kind=kind)])
    rows, (life,) = accounted(made, 10, stops((1.5, 2)))
    assert life.ambiguous == ambiguous and life.stopped == 0.5 - ambiguous
    assert one(rows, subtype="fileread").ambiguous == ambiguous


def test_what_the_scheduler_held_back_is_told_and_sums_to_the_life() -> None:
    made = cast("Recording", HandMade([], [main_thread(cpu=ns(2), run_queue=ns(3))]))
    rows, _, _ = statistics.of_process(0, made, ns(10), no_stops(), "exact", ns(4))
    seconds = {row.subtype: row.seconds for row in rows}
    assert seconds == {"user-thread": 2, "throttled": 4, "runqueue": 3, "blocked": 1}


def test_an_island_that_a_damaged_recording_does_not_name_is_told_by_its_number() -> None:
    rows, _ = accounted(HandMade([call("file.write", 1, 2, 8, island=7)], [main_thread()]))
    assert {row.island for row in rows if row.subtype == "filewrite"} == {"island 7"}


# -- The timeline: events in the order of time, as text, JSON and CSV -------------------------------


LANES = [Lane(0, "MainThread", 0, ns(9)), Lane(0, "work\ner", ns(1), ns(5))]
STOPS = [(ns(2.5), ns(3))]


def span(thread: int, name: str, start: float, end: float, amount: int = 0, object: str = "") -> CallSpan:
    return CallSpan(0, thread, APIS[NUMBERS[name]], object, ns(start), ns(end), amount)


SPANS = [
    span(0, "file.open", 0.5, 0.5, 1, "/a#1"),
    span(0, "file.write", 1, 4, 8, "/a#1"),
    span(1, "time.sleep", 2, 3.5, ns(1)),
    span(1, "file.read", 4, 4.5, 3),
]


def test_events_are_those_of_the_document_in_the_order_of_time() -> None:
    found = [(one.time, one.thread, one.api, one.amount) for one in timeline.events(LANES, SPANS, STOPS)]
    assert found == [
        (0, "MainThread", "thread created", 0),
        (0.5, "MainThread", "file.open", 1),
        (1, "work\ner", "thread created", 0),
        (1, "MainThread", "start file.write", 0),
        (2, "work\ner", "start time.sleep", 0),
        (2.5, "ALL", "Stopped", 0.5),
        (3.5, "work\ner", "time.sleep", ns(1)),
        (4, "MainThread", "file.write", 8),
        (4, "work\ner", "start file.read", 0),
        (4.5, "work\ner", "file.read", 3),
        (5, "work\ner", "thread destroyed", 0),
        (9, "MainThread", "thread destroyed", 0),
    ]


def test_threads_of_several_processes_are_named_with_their_process() -> None:
    assert timeline.thread_names([Lane(0, "a", 0, 1), Lane(1, "a", 0, 1)]) == ["0: a", "1: a"]
    assert timeline.thread_names(LANES) == ["MainThread", "work\ner"]


def test_as_text_each_event_is_a_line() -> None:
    lines = list(timeline.text(LANES, SPANS, STOPS))
    assert len(lines) == 1 + 12
    assert lines[2].split() == ["0.500000", "MainThread", "file.open", "1", "/a#1"]
    assert all(line.count("\n") == 1 for line in lines) and "work\\ner" in lines[3]


def test_as_json_and_as_csv_it_says_the_same() -> None:
    events = [one._asdict() for one in timeline.events(LANES, SPANS, STOPS)]
    assert [json.loads(line) for line in timeline.json_lines(LANES, SPANS, STOPS)] == events
    rows = list(
        csv.DictReader(io.StringIO("".join(timeline.comma_separated(LANES, SPANS, STOPS)), newline=""))
    )
    assert [{**row, "time": float(row["time"]), "amount": float(row["amount"])} for row in rows] == events


def test_a_long_timeline_is_merged_in_constant_memory() -> None:
    def spans(count: int):  # type: ignore[no-untyped-def]
        return (span(number % 2, "file.write", number, number + 1, 8) for number in range(count))

    def peak(count: int) -> int:
        tracemalloc.start()
        for _ in timeline.text(LANES, spans(count), ()):
            pass
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(100)
    assert peak(2000) < peak(200) + 10_000


# -- Timelines for other programs: what they read, by their own definitions --------------------------------


NAMES = {"name": "prog </script>\n", "exporter": "tests"}


def chrome(lanes: list[Lane] = LANES, spans: Any = SPANS, stops: Any = STOPS) -> Any:
    return json.loads("".join(timeline.chrome(lanes, iter(spans), stops, **NAMES)))


def speedscope(lanes: list[Lane] = LANES, spans: Any = SPANS, stops: Any = STOPS) -> Any:
    return json.loads("".join(timeline.speedscope(lanes, iter(spans), stops, **NAMES)))


def test_chrome_has_a_complete_event_for_each_call_and_stop() -> None:
    events = [one for one in chrome()["traceEvents"] if one["ph"] == "X"]
    assert [(one["name"], one["ts"], one["dur"], one["tid"]) for one in events] == [
        ("Stopped", 2_500_000, 500_000, 2),
        ("file.open", 500_000, 0, 0),
        ("file.write", 1_000_000, 3_000_000, 0),
        ("time.sleep", 2_000_000, 1_500_000, 1),
        ("file.read", 4_000_000, 500_000, 1),
    ]
    assert events[2]["args"] == {"amount": 8, "object": "/a#1", "calls": 1}
    assert events[2]["cat"] == "file"


def test_chrome_names_processes_and_threads() -> None:
    named = {(one["name"], one["tid"]): one["args"] for one in chrome()["traceEvents"] if one["ph"] == "M"}
    assert named["process_name", 0] == {"name": NAMES["name"]}
    assert named["thread_name", 1] == {"name": "work\ner"} and named["thread_name", 2] == {"name": "stops"}
    assert named["thread_sort_index", 1] == {"sort_index": 1}


def nested(profile: dict[str, Any]) -> list[tuple[int, float, float]]:
    """The frames that are opened and closed, as speedscope wants it: one inside of the other, never back in
    time.
    """
    open_frames: list[tuple[int, float]] = []
    found, last = [], profile["startValue"]
    for event in profile["events"]:
        assert event["at"] >= last
        last = event["at"]
        if event["type"] == "O":
            open_frames.append((event["frame"], last))
        else:
            frame, start = open_frames.pop()
            assert frame == event["frame"]
            found.append((frame, start, last))
    assert not open_frames and last <= profile["endValue"]
    return found


def test_speedscope_has_a_profile_for_each_thread() -> None:
    file = speedscope()
    frames = [frame["name"] for frame in file["shared"]["frames"]]
    found = {
        profile["name"]: [(frames[frame], start / 1e9, end / 1e9) for frame, start, end in nested(profile)]
        for profile in file["profiles"]
    }
    assert found == {
        "MainThread": [("file.open /a#1", 0.5, 0.5), ("file.write /a#1", 1, 4)],
        "work\ner": [("time.sleep", 2, 3.5), ("file.read", 4, 4.5)],
        "stops": [("Stopped", 2.5, 3)],
    }
    assert {profile["unit"] for profile in file["profiles"]} == {"nanoseconds"}
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"


def test_calls_that_overlap_or_lie_in_each_other_stay_well_formed() -> None:
    spans = [
        span(0, "file.writelines", 1, 8),
        span(0, "file.read", 2, 3),
        span(0, "asyncio.sleep", 4, 9),
        span(0, "file.read", 5, 6),
    ]
    (main, _) = speedscope(spans=spans, stops=())["profiles"]
    lengths = defaultdict(list)
    for frame, start, end in nested(main):
        lengths[frame].append((end - start) / 1e9)
    # The one beside which the thread did other things is cut off at the end of the call in which it began.
    assert dict(lengths) == {0: [7], 1: [1, 1], 2: [4]}


def test_a_run_without_calls() -> None:
    assert [profile["events"] for profile in speedscope(spans=(), stops=())["profiles"]] == [[], []]
    assert [one["ph"] for one in chrome([], (), ())["traceEvents"]] == ["M"]
