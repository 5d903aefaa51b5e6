"""The timeline: events in the order of time, as text, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc

from hand_made import NUMBERS, ns

from perun.island import timeline
from perun.island.layout import APIS
from perun.island.timeline import Lane, Span

LANES = [Lane(0, "MainThread", 0, ns(9)), Lane(0, "work\ner", ns(1), ns(5))]
STOPS = [(ns(2.5), ns(3))]


def span(thread: int, name: str, start: float, end: float, amount: int = 0, object: str = "") -> Span:
    return Span(0, thread, APIS[NUMBERS[name]], object, ns(start), ns(end), amount)


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
    assert all(line.count("\n") == 1 for line in lines)
    assert "work\\ner" in lines[3]


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
