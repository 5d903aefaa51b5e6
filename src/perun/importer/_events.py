"""Calls with their times, of the Trace Event Format, as profiles that `perun collect trace` makes.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from perun.importer._common import number
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.profile.calls import MAX_DEPTH
from perun.profile.factory import Profile

_TYPE, _SUBTYPE = "mixed", "time delta"
_MOST: Final = 4_000_000
_NUMBER: Final = re.compile(r"^\[\d+\] ")


class TracedCalls:
    """Calls of threads, from events that begin and end them."""

    def __init__(self) -> None:
        self.resources: list[dict[str, Any]] = []
        self.program = ""
        self.unended = 0
        self.other = 0
        self._open: dict[tuple[Any, Any], list[tuple[str, str, float]]] = {}
        self._last = 0.0

    def take(self, event: Mapping[str, Any]) -> None:
        """One event; what is no call is passed over."""
        kind = event.get("ph")
        thread = (event.get("pid", 0), event.get("tid", event.get("pid", 0)))
        if kind == "M":
            if event.get("name") == "process_name" and not self.program:
                self.program = _NUMBER.sub("", str(event["args"]["name"]))
            return
        if kind not in ("X", "B", "E"):
            self.other += 1
            return
        at = number(event["ts"])
        self._last = max(self._last, at)
        opened = self._open.setdefault(thread, [])
        if kind == "X":
            lasts = number(event.get("dur", 0))
            self._last = max(self._last, at + lasts)
            self._add(thread, str(event["name"]), _source(event), at, lasts)
        elif kind == "B":
            if len(opened) < 100 * MAX_DEPTH:
                opened.append((str(event["name"]), _source(event), at))
        elif opened and event.get("name") in (None, opened[-1][0]):
            name, source, begun = opened.pop()
            self._add(thread, name, source, begun, at - begun)

    def end(self) -> None:
        """The calls that did not end last until the last event."""
        for thread, opened in self._open.items():
            while opened:
                name, source, begun = opened.pop()
                self.unended += 1
                self._add(thread, name, source, begun, self._last - begun)

    def _add(self, thread: tuple[Any, Any], name: str, source: str, at: float, lasts: float) -> None:
        if lasts < 0 or len(self.resources) >= _MOST:
            raise ValueError("a call ends before it begins, or there are too many")
        uid = {"source": source, "function": name} if source else {"function": name}
        process, own = (one if isinstance(one, (int, str)) else str(one) for one in thread)
        self.resources.append({
            "uid": uid, "type": _TYPE, "subtype": _SUBTYPE, "amount": lasts, "timestamp": at,
            "process": process, "thread": own,
        })  # fmt: skip


def _source(event: Mapping[str, Any]) -> str:
    args = event.get("args")
    found = args.get("filename") if isinstance(args, Mapping) else None
    return found if isinstance(found, str) else ""


def imported(calls: TracedCalls, collector: str, file: ImportFile, ctx: ImportContext) -> Iterator[Imported]:
    """The profile of the calls.

    :raises ProfileError: where there are none.
    """
    calls.end()
    if not calls.resources:
        raise file.wrong("it has no calls: no events of the kinds X, B and E")
    if calls.other:
        ctx.note(f"{calls.other} events of {file.name} are no calls, and are left out")
    if calls.unended:
        ctx.note(f"{calls.unended} calls of {file.name} did not end: they last until its last event")
    header = {
        "type": _TYPE, "units": {f"{_TYPE}({_SUBTYPE})": "us"}, "cmd": calls.program or collector,
        "args": "", "workload": "",
    }  # fmt: skip
    about = {"name": collector, "params": {}}
    profile = Profile({"header": header, "collector_info": about, "postprocessors": []})
    order = sorted(calls.resources, key=lambda one: (one["timestamp"], -one["amount"]))
    profile.update_resources([{**one, "call-order": place} for place, one in enumerate(order)])
    yield Imported(profile)


def events_of(text: bytes) -> list[Any]:
    """The events of a document: a list, or an object with one; the end of a list may be missing."""
    try:
        found = json.loads(text)
    except ValueError:
        stripped = text.rstrip().rstrip(b",")
        if not stripped.startswith(b"["):
            raise
        found = json.loads(stripped + b"]")
    events = found["traceEvents"] if isinstance(found, dict) else found
    if not isinstance(events, list):
        raise ValueError("traceEvents is no list")
    return events
