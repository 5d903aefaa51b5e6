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
from typing import TYPE_CHECKING, Final, NamedTuple

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


class Span(NamedTuple):
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


def events(lanes: Sequence[Lane], spans: Iterable[Span], stops: Iterable[tuple[int, int]]) -> Iterator[Event]:
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


def text(lanes: Sequence[Lane], spans: Iterable[Span], stops: Iterable[tuple[int, int]]) -> Iterator[str]:
    """The lines of the timeline as a table."""
    yield f"{'time [s]':>12}  {'thread':<20} {'event':<24} {'amount':>12}  object\n"
    for event in events(lanes, spans, stops):
        line = f"{event.time:12.6f}  {printable(event.thread):<20} {event.api:<24} {event.amount:>12.12g}"
        yield f"{line}  {printable(event.object)}".rstrip() + "\n"


def json_lines(
    lanes: Sequence[Lane], spans: Iterable[Span], stops: Iterable[tuple[int, int]]
) -> Iterator[str]:
    """The events as lines that are a JSON object each."""
    for event in events(lanes, spans, stops):
        yield json.dumps(event._asdict()) + "\n"


def comma_separated(
    lanes: Sequence[Lane], spans: Iterable[Span], stops: Iterable[tuple[int, int]]
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


def _of_calls(names: Sequence[str], spans: Iterable[Span]) -> Iterator[Event]:
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
