"""What a program did in the order of time: the calls of all its threads, when these came and went, and its
stops.

Writers take plain values, so that a timeline that was kept in a profile is written as one that was just
recorded.
"""

from __future__ import annotations

import csv
import heapq
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from perun.island.layout import Api


_SECOND: Final = 1_000_000_000
ALL: Final = "ALL"
"""What a stop has in place of the name of a thread."""


class Lane(NamedTuple):
    """A thread: from `created` to `destroyed`, ns since the start of the run."""

    process: int
    name: str
    created: int
    destroyed: int


class CallSpan(NamedTuple):
    """A call, or several of one kind that follow each other, from `start` to `end` in ns since the start of
    the run.

    `thread` is the position of its lane.
    """

    process: int
    thread: int
    api: Api
    object: str
    start: int
    end: int
    amount: int
    calls: int = 1


class Event(NamedTuple):
    """An entry of the timeline: seconds since the start of the run, the thread, what happens, and its amount.

    As in the document of Island, a call has an event `start NAME` where it takes time, and an event NAME when
    it returned; a thread has `thread created` and `thread destroyed`; a stop is an event `Stopped` of the
    thread `ALL` whose amount is its length in seconds.
    """

    time: float
    thread: str
    api: str
    object: str
    amount: float


def events(
    lanes: Sequence[Lane], spans: Iterable[CallSpan], stops: Iterable[tuple[int, int]]
) -> Iterator[Event]:
    """All events in the order of time.

    :param spans: in the order of their starts; as many of them are held in memory as go on at one time.
    """
    names = thread_names(lanes)
    lives = sorted(
        event
        for lane, name in zip(lanes, names, strict=True)
        for event in (
            _event(lane.created, name, "thread created"),
            _event(lane.destroyed, name, "thread destroyed"),
        )
    )
    stopped = (_event(start, ALL, "Stopped", amount=(end - start) / _SECOND) for start, end in stops)
    yield from heapq.merge(lives, stopped, _of_calls(names, spans), key=attrgetter("time"))


def thread_names(lanes: Sequence[Lane]) -> list[str]:
    """How a timeline names the threads: with the number of the process where there are several."""
    several = len({lane.process for lane in lanes}) > 1
    return [f"{lane.process}: {lane.name}" if several else lane.name for lane in lanes]


def text(lanes: Sequence[Lane], spans: Iterable[CallSpan], stops: Iterable[tuple[int, int]]) -> Iterator[str]:
    """The lines of the timeline as a table."""
    yield f"{'time [s]':>12}  {'thread':<20} {'event':<24} {'amount':>12}  object\n"
    for event in events(lanes, spans, stops):
        line = f"{event.time:12.6f}  {printable(event.thread):<20} {event.api:<24} {event.amount:>12.12g}"
        yield f"{line}  {printable(event.object)}".rstrip() + "\n"


def json_lines(
    lanes: Sequence[Lane], spans: Iterable[CallSpan], stops: Iterable[tuple[int, int]]
) -> Iterator[str]:
    """The events as lines that are a JSON object each."""
    for event in events(lanes, spans, stops):
        yield json.dumps(event._asdict()) + "\n"


def comma_separated(
    lanes: Sequence[Lane], spans: Iterable[CallSpan], stops: Iterable[tuple[int, int]]
) -> Iterator[str]:
    """The events as CSV (RFC 4180), with a head."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(Event._fields)
    for event in events(lanes, spans, stops):
        writer.writerow((f"{event.time:.9f}", *event[1:4], f"{event.amount:.12g}"))
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def printable(words: str) -> str:
    """The text without characters that a terminal or a line cannot show."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in words)


def _of_calls(names: Sequence[str], spans: Iterable[CallSpan]) -> Iterator[Event]:
    returning: list[tuple[int, int, Event]] = []
    for number, span in enumerate(spans):
        while returning and returning[0][0] <= span.start:
            yield heapq.heappop(returning)[2]
        name = names[span.thread]
        if span.end > span.start:
            yield _event(span.start, name, f"start {span.api.name}", span.object)
        heapq.heappush(
            returning, (span.end, number, _event(span.end, name, span.api.name, span.object, span.amount))
        )
    while returning:
        yield heapq.heappop(returning)[2]


def _event(time: int, thread: str, api: str, object: str = "", amount: float = 0) -> Event:
    return Event(time / _SECOND, thread, api, object, amount)


# Timelines for other programs: the trace format of Chrome and Perfetto, and that of speedscope.
#
# Formats: "Trace Event Format" (JSON object format, complete events), and
# https://www.speedscope.app/file-format-schema.json.

_MICROSECOND: Final = 1000
_STOPS: Final = "stops"


def chrome(
    lanes: Sequence[Lane],
    spans: Iterable[CallSpan],
    stops: Iterable[tuple[int, int]],
    *,
    name: str,
    exporter: str,
) -> Iterator[str]:
    """The pieces of the trace: a row for each thread of each process, and one for stops.

    :param name: of the program; :param exporter: which program writes this, with its version.
    """
    yield '{"displayTimeUnit":"ns","otherData":' + json.dumps({"exporter": exporter}) + ',"traceEvents":[\n'
    yield json.dumps(_about(0, len(lanes), "thread_name", _STOPS))
    for process in sorted({lane.process for lane in lanes}):
        yield ",\n" + json.dumps(_about(process, 0, "process_name", name))
    for number, lane in enumerate(lanes):
        yield ",\n" + json.dumps(_about(lane.process, number, "thread_name", lane.name))
        yield ",\n" + json.dumps(_about(lane.process, number, "thread_sort_index", number))
    for start, end in stops:
        yield ",\n" + json.dumps(_complete("Stopped", 0, len(lanes), start, end, {}))
    for span in spans:
        facts: dict[str, Any] = {"amount": span.amount, "object": span.object, "calls": span.calls}
        yield ",\n" + json.dumps(
            _complete(span.api.name, span.process, span.thread, span.start, span.end, facts)
        )
    yield "\n]}\n"


def speedscope(
    lanes: Sequence[Lane],
    spans: Iterable[CallSpan],
    stops: Iterable[tuple[int, int]],
    *,
    name: str,
    exporter: str,
) -> Iterator[str]:
    """The pieces of the file: a profile for each thread, and one for stops where there are some.

    All spans are held in memory, since the format wants them thread by thread.
    """
    frames: dict[str, int] = {}
    found: list[list[tuple[int, int, int]]] = [[] for _ in lanes]
    for span in spans:
        frame = f"{span.api.name} {span.object}".rstrip()
        found[span.thread].append((frames.setdefault(frame, len(frames)), span.start, span.end))
    profiles = [
        (title, (lane.created, lane.destroyed), opened)
        for lane, title, opened in zip(lanes, thread_names(lanes), found, strict=True)
    ]
    stopped = [(frames.setdefault("Stopped", len(frames)), start, end) for start, end in stops]
    if stopped:
        profiles.append((_STOPS, (min(stopped[0][1], 0), stopped[-1][2]), stopped))
    yield '{"$schema":"https://www.speedscope.app/file-format-schema.json",'
    yield f'"name":{json.dumps(name)},"exporter":{json.dumps(exporter)},"activeProfileIndex":0,\n'
    yield '"shared":{"frames":' + json.dumps([{"name": frame} for frame in frames]) + '},\n"profiles":['
    for number, (title, (created, destroyed), opened) in enumerate(profiles):
        yield ",\n" * bool(number)
        yield from _profile(title, created, destroyed, opened)
    yield "]}\n"


def _profile(title: str, created: int, destroyed: int, opened: list[tuple[int, int, int]]) -> Iterator[str]:
    head = {
        "type": "evented",
        "name": title,
        "unit": "nanoseconds",
        "startValue": created,
        "endValue": destroyed,
    }
    yield json.dumps(head)[:-1] + ',"events":['
    for number, event in enumerate(_nested(opened)):
        yield "," * bool(number) + json.dumps(event)
    yield "]}"


def _nested(calls: Iterable[tuple[int, int, int]]) -> Iterator[dict[str, Any]]:
    """The events of calls: one that overlaps the one before is cut off where that ends, as the format wants
    it.
    """
    open_calls: list[tuple[int, int]] = []
    for frame, start, end in calls:
        while open_calls and open_calls[-1][1] <= start:
            yield _trace_event("C", *open_calls.pop())
        yield _trace_event("O", frame, start)
        open_calls.append((frame, min(end, open_calls[-1][1]) if open_calls else end))
    while open_calls:
        yield _trace_event("C", *open_calls.pop())


def _trace_event(type: str, frame: int, at: int) -> dict[str, Any]:
    return {"type": type, "frame": frame, "at": at}


def _about(process: int, thread: int, what: str, value: str | int) -> dict[str, Any]:
    key = "sort_index" if isinstance(value, int) else "name"
    return {"ph": "M", "pid": process, "tid": thread, "name": what, "args": {key: value}}


def _complete(
    name: str, process: int, thread: int, start: int, end: int, facts: dict[str, Any]
) -> dict[str, Any]:
    times = {"ts": start / _MICROSECOND, "dur": (end - start) / _MICROSECOND}
    return {
        "ph": "X",
        "name": name,
        "cat": name.partition(".")[0],
        "pid": process,
        "tid": thread,
        **times,
        "args": facts,
    }
