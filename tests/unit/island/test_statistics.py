"""Totals of recordings: per thread, file and socket, and where the time went."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from hand_made import HandMade, call, ns, thread

from perun.island import statistics
from perun.island.accounting import Stops, no_stops
from perun.island.layout import CONCURRENT
from perun.island.record import Object, Recording, Thread
from perun.island.statistics import ThreadTime, Usage

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
    seconds = {row.subtype: row.seconds for row in rows if row.type == "cpu"}
    assert seconds == {"user-thread": 2, "runqueue": 1.5, "gil-other": 2.5}


def test_the_processor_time_of_short_calls_is_not_counted_twice() -> None:
    # 1,000 calls of 20 us compute; so 0.02 s of the thread's processor time are theirs.
    calls = [call("file.write", number / 1000, number / 1000 + 20e-6, 8) for number in range(1000)]
    rows, _ = accounted(HandMade(calls, [main_thread(cpu=ns(0.5))]), 1)
    assert one(rows, subtype="user-thread").seconds == pytest.approx(0.48)
    assert one(rows, subtype="gil-other").seconds == pytest.approx(0.5)


def test_a_thread_without_a_clock_is_said_to_compute() -> None:
    rows, _ = accounted(HandMade([], [main_thread()]))
    assert [(row.type, row.subtype, row.seconds) for row in rows] == [("cpu", "user-thread", 10)]


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
    made = HandMade(calls, [main_thread()], islands=("program", "A"), entered=[(2.5, 1), (5, 0)])
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
    rows, _ = accounted(HandMade(calls, [main_thread()]), 10, stops((9, 9.5)))
    main, everything = statistics.consumption(rows)
    assert main.name == "MainThread"
    assert list(main.seconds.items()) == [
        ("cpu", 1), ("netsend", 2), ("netrecv", 1), ("fileread", 1), ("filewrite", 1), ("outsockets", 1),
        ("random", 1), ("sleep", 1), ("stopped", 0.5), ("lock", 0.5),
    ]  # fmt: skip
    assert main.live == 10
    assert (everything.name, everything.live) == ("all threads", 10)


def test_what_a_stop_takes_from_a_call_is_no_time_of_that() -> None:
    rows, (life,) = accounted(HandMade([call("file.write", 1, 3, 8)], [main_thread()]), 10, stops((1.5, 2)))
    assert one(rows, subtype="filewrite").seconds == 1.5
    assert one(rows, type="stopped").seconds == 0.5
    assert life.by_rule == {"exact": 0.5, "seed": 0.5, "source2010": 0.5}


def test_a_process_that_recorded_no_thread_has_no_rows() -> None:
    assert accounted(HandMade()) == ([], [])


@pytest.mark.parametrize(
    ("kind", "ambiguous"), [("pipe", 0.5), ("terminal", 0.5), ("file", 0), ("device", 0)]
)
def test_reading_a_pipe_waits_for_who_writes_to_it(kind: str, ambiguous: float) -> None:
    made = HandMade([call("file.read", 1, 3, 8, object=0)], [main_thread()], [FILE._replace(kind=kind)])
    rows, (life,) = accounted(made, 10, stops((1.5, 2)))
    assert life.ambiguous == ambiguous
    assert life.stopped == 0.5 - ambiguous
    assert one(rows, subtype="fileread").ambiguous == ambiguous


def test_what_the_scheduler_held_back_is_told_and_sums_to_the_life() -> None:
    made = cast("Recording", HandMade([], [main_thread(cpu=ns(2), run_queue=ns(3))]))
    rows, _, _ = statistics.of_process(0, made, ns(10), no_stops(), "exact", ns(4))
    seconds = {row.subtype: row.seconds for row in rows}
    assert seconds == {"user-thread": 2, "throttled": 4, "runqueue": 3, "gil-other": 1}


def test_an_island_that_a_damaged_recording_does_not_name_is_told_by_its_number() -> None:
    rows, _ = accounted(HandMade([call("file.write", 1, 2, 8, island=7)], [main_thread()]))
    assert {row.island for row in rows if row.subtype == "filewrite"} == {"island 7"}
