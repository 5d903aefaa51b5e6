"""Profiles of islands that tests make by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perun.profile.factory import Profile
from perun.profile.island import COLUMNS, NO_OBJECT, ApiFunction, Timeline, TimelineThread

SECOND = 1_000_000_000
UNITS = {
    "time": "s",
    "cpu": "s",
    "sleep": "s",
    "disk": "B",
    "disk (fileopen)": "",
    "net": "B",
    "stopped": "s",
}
WRITE = ApiFunction("file.write", "disk", "filewrite", "B")
READ = ApiFunction("file.read", "disk", "fileread", "B")
SLEEP = ApiFunction("time.sleep", "sleep", "sleep", "ns")
RECV = ApiFunction("socket.recv", "net", "tcp-recv", "B")

Call = tuple[int, ApiFunction, str, int, int, int]
"""Thread, function, object, start and duration in nanoseconds, amount."""


def timeline(
    threads: Sequence[str], calls: Sequence[Call], *, end: int = SECOND, stops: Sequence[tuple[int, int]] = ()
) -> Timeline:
    """A timeline of one process whose threads live from the start to the end."""
    apis = list(dict.fromkeys(call[1] for call in calls))
    objects = list(dict.fromkeys(call[2] for call in calls if call[2]))
    rows = [
        (
            thread,
            apis.index(api),
            objects.index(name) if name else NO_OBJECT,
            start,
            duration,
            duration,
            amount,
            1,
        )
        for thread, api, name, start, duration, amount in sorted(calls, key=lambda call: (call[0], call[3]))
    ]
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True)) or {
        name: [] for name in COLUMNS
    }
    lanes = [TimelineThread(name, 0, 0, end) for name in threads]
    return Timeline(end, ["prog.py"], lanes, apis, objects, columns, list(stops), len(calls))


def usage(
    subtype: str,
    amount: float,
    *,
    uid: str = "",
    thread: str = "MainThread",
    calls: int = 0,
    seconds: float = 0.0,
    order: int = 1,
) -> dict[str, Any]:
    """A resource of what a thread used; its type follows from the subtype."""
    kinds = {"file": "disk", "tcp-": "net", "user": "cpu", "gil-": "cpu", "runq": "cpu"}
    kind = kinds.get(subtype[:4], subtype)
    return {
        **{"type": kind, "subtype": subtype, "uid": uid or thread, "thread": thread},
        **{"amount": amount, "calls": calls, "seconds": seconds, "order": order},
        "trace": [part for part in (uid, subtype, kind, thread) if part],
    }


def real(seconds: float, order: int = 1, command: str = "python3 prog.py") -> dict[str, Any]:
    """The resource with the time of a run."""
    return {"type": "time", "subtype": "real", "uid": command, "amount": seconds, "order": order}


def profile(
    resources: Sequence[Mapping[str, Any]] = (), line: Timeline | None = None, **regions: Any
) -> Profile:
    """A profile of the collector `island`."""
    made = Profile(
        {
            "header": {
                "type": "island",
                "units": UNITS,
                "cmd": "python3 prog.py",
                "args": "",
                "workload": "",
            },
            "collector_info": {"name": "island", "params": {}},
            "postprocessors": [],
            **regions,
        }
    )
    if line is not None:
        made["timeline"] = line.as_region()
    made.update_resources(resources or [real(1.0)], columns=("calls", "seconds"))
    return made
