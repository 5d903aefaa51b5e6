"""Timelines for other programs: the trace format of Chrome and Perfetto, and that of speedscope.

Formats: "Trace Event Format" (JSON object format, complete events), and
https://www.speedscope.app/file-format-schema.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from perun.island.timeline import Lane, Span, thread_names

_MICROSECOND: Final = 1000
_STOPS: Final = "stops"


def chrome(
    lanes: Sequence[Lane],
    spans: Iterable[Span],
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
    spans: Iterable[Span],
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
            yield _event("C", *open_calls.pop())
        yield _event("O", frame, start)
        open_calls.append((frame, min(end, open_calls[-1][1]) if open_calls else end))
    while open_calls:
        yield _event("C", *open_calls.pop())


def _event(type: str, frame: int, at: int) -> dict[str, Any]:
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
