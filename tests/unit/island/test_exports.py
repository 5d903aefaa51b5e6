"""Timelines for other programs: what they read, by their own definitions."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from test_timeline import LANES, SPANS, STOPS, span

from perun.island import exports
from perun.island.timeline import Lane

NAMES = {"name": "prog </script>\n", "exporter": "tests"}


def chrome(lanes: list[Lane] = LANES, spans: Any = SPANS, stops: Any = STOPS) -> Any:
    return json.loads("".join(exports.chrome(lanes, iter(spans), stops, **NAMES)))


def speedscope(lanes: list[Lane] = LANES, spans: Any = SPANS, stops: Any = STOPS) -> Any:
    return json.loads("".join(exports.speedscope(lanes, iter(spans), stops, **NAMES)))


def test_chrome_has_a_complete_event_for_each_call_and_stop() -> None:
    trace = chrome()
    events = [one for one in trace["traceEvents"] if one["ph"] == "X"]
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
    assert named["thread_name", 1] == {"name": "work\ner"}
    assert named["thread_name", 2] == {"name": "stops"}
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
    assert not open_frames
    assert last <= profile["endValue"]
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
