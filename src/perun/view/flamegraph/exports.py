"""Call stacks in the formats of other tools: folded stacks, and the JSON of speedscope."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import count, repeat
from posixpath import basename
from typing import TYPE_CHECKING, Any, Final

from perun.core.errors import ProfileError
from perun.view.flamegraph.calls import Calls, Frame, Thread, ThreadId
from perun.view.flamegraph.stacks import Stack

if TYPE_CHECKING:
    from perun.profile.format.core import Profile


_SPEEDSCOPE_UNITS: Final = {
    **{"B": "bytes", "b": "bytes", "byte": "bytes", "bytes": "bytes"},
    **{"ns": "nanoseconds", "us": "microseconds", "µs": "microseconds", "ms": "milliseconds", "s": "seconds"},
}
_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


def folded(stacks: dict[Stack, float], by_line: bool = False) -> str:
    """One line for each stack: its frames, the outermost first, joined by `;`, then a blank and the amount.

    flamegraph.pl, speedscope, inferno and others read this format. In names `;` becomes `:`, and white space
    becomes one blank.

    :param by_line: write frames as `name (source:line)`, so that calls from different lines differ.
    """
    sums: dict[str, float] = {}
    for stack, amount in stacks.items():
        text = ";".join(_folded_frame(frame, by_line) for frame in stack)
        sums[text] = sums.get(text, 0) + amount
    return "".join(f"{text} {_decimal(amount)}\n" for text, amount in sorted(sums.items()))


def speedscope(stacks: dict[Stack, float], *, name: str, unit: str, exporter: str) -> dict[str, Any]:
    """The document of https://www.speedscope.app: each stack is a sample, and its amount the weight."""
    numbers: dict[Frame, int] = {}
    samples = [[numbers.setdefault(frame, len(numbers)) for frame in stack] for stack in stacks]
    return {
        "$schema": _SCHEMA,
        "exporter": exporter,
        "name": name,
        "activeProfileIndex": 0,
        "shared": {"frames": [_speedscope_frame(frame) for frame in numbers]},
        "profiles": [
            {
                "type": "sampled",
                "name": name,
                "unit": _SPEEDSCOPE_UNITS.get(unit, "none"),
                "startValue": 0,
                "endValue": sum(stacks.values()),
                "samples": samples,
                "weights": list(stacks.values()),
            }
        ],
    }


def _folded_frame(frame: Frame, by_line: bool) -> str:
    text = _with_line(frame) if by_line else frame.name
    return " ".join(text.replace(";", ":").split()) or "?"


def _with_line(frame: Frame) -> str:
    if not frame.source and not frame.line:
        return frame.name
    return f"{frame.name} ({frame.source or '?'}:{frame.line})"


def _decimal(amount: float) -> str:
    """The number without an exponent, which some readers do not accept."""
    if isinstance(amount, int):
        return str(amount)
    from decimal import Decimal

    text = format(Decimal(repr(amount)), "f")
    return text.removesuffix(".0")


def _speedscope_frame(frame: Frame) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": frame.name}
    if frame.source:
        entry["file"] = frame.source
    if frame.line:
        entry["line"] = frame.line
    return entry


# Calls in the Trace Event Format (JSON), which Perfetto and chrome://tracing read.

_MICROSECONDS: Final = {"": 1.0, "ns": 1e-3, "us": 1.0, "µs": 1.0, "μs": 1.0, "ms": 1e3, "s": 1e6}
_NO_SIZE: Final = "call-order"
"""The `size-source` of a call whose `structure-unit-size` is the number of earlier calls."""
_BATCH: Final = 10_000  # events of one piece of text


def chrome_trace(profile: Profile, *, name: str, unit: str, exporter: str) -> Iterator[str]:
    """Yield the document in pieces of text: a complete event (`"ph": "X"`, in microseconds) for each call.

    The size of the structure that a call works on is the argument `size` of its event. Processes and threads
    keep the numbers that they have in the profile; metadata events (`"ph": "M"`) name them.

    :param name: the name of the process, if there is only one; several are named after their programs.
    :param unit: the unit of timestamps and amounts in the profile.
    :raises ProfileError: at the call, if the unit is not one of time or no resource is a call.
    """
    if unit not in _MICROSECONDS:
        raise ProfileError(
            f"--format chrome needs amounts of time; those of the profile are in {unit}",
            "choose another --format: html, folded or speedscope",
        )
    calls = Calls()
    for group in profile.groups():
        if "trace" not in group.constants and "trace" not in group.columns:
            has_size = group.constants.get("size-source") != _NO_SIZE
            calls.add(group, "structure-unit-size" if has_size else "")
    if not calls:
        raise ProfileError(
            "--format chrome needs the start times of calls, but no resource has a timestamp",
            "collect a profile with perun collect trace or perun collect complexity, or choose another "
            "--format, e.g. folded",
        )
    return _pieces(calls, name, _MICROSECONDS[unit], exporter)


def _pieces(calls: Calls, name: str, factor: float, exporter: str) -> Iterator[str]:
    import json

    yield f'{{"displayTimeUnit":"ns","otherData":{json.dumps({"exporter": exporter})},"traceEvents":[\n'
    pids = _numbers(thread.process for thread in calls.thread_ids)
    tids = {
        ThreadId(process, thread): tid
        for process in pids
        for thread, tid in _numbers(id.thread for id in calls.thread_ids if id.process == process).items()
    }
    programs = {} if len(pids) == 1 else calls.programs
    metadata = [
        _metadata("process_name", pid, 0, basename(programs.get(process, "")) or name)
        for process, pid in pids.items()
    ]
    metadata += [
        _metadata("thread_name", pids[thread.process], tid, _thread_name(thread))
        for thread, tid in tids.items()
        if thread.thread is not None
    ]
    yield ",\n".join(metadata)
    names = [json.dumps(frame.name) for frame in calls.frames]
    for thread in calls.threads():
        yield from _events(thread, names, pids[thread.id.process], tids[thread.id], factor)
    yield "\n]}\n"


def _thread_name(id: ThreadId) -> str:
    if type(id.thread) is not int:
        return str(id.thread)
    return "main thread" if id.thread == id.process else f"thread {id.thread}"


def _events(thread: Thread, names: list[str], pid: int, tid: int, factor: float) -> Iterator[str]:
    # Written without the json module, which takes several times as long for millions of events.
    import numpy as np

    head = f',\n{{"ph":"X","pid":{pid},"tid":{tid},"name":'
    for first in range(0, len(thread.start), _BATCH):
        rows = slice(first, first + _BATCH)
        start = thread.start[rows]
        times = (_times(one, thread.scale, factor) for one in (start, thread.end[rows] - start))
        value = thread.value[rows]
        sizes: Any = repeat(float("nan")) if np.isnan(value).all() else value.tolist()
        yield "".join(
            f'{head}{names[frame]},"ts":{ts},"dur":{duration}}}'
            if size != size  # NaN
            else f'{head}{names[frame]},"ts":{ts},"dur":{duration},"args":{{"size":{_whole(size)}}}}}'
            for frame, ts, duration, size in zip(thread.frame[rows].tolist(), *times, sizes, strict=False)
        )


def _times(times: Any, scale: int, factor: float) -> list[float]:
    import numpy as np

    in_microseconds: list[float] = np.round(times / scale * factor, 3).tolist()
    return in_microseconds


def _whole(size: float) -> float:
    """The size as an integer if it is whole; a column that also has NaN holds floats."""
    return int(size) if size == int(size) else size


def _numbers(known: Iterable[Hashable]) -> dict[Hashable, int]:
    """A number for each process or thread: its own if that is a number, else an unused one above 0."""
    ordered = list(dict.fromkeys(known))
    numbers: dict[Hashable, int] = {one: one for one in ordered if type(one) is int}
    taken = set(numbers.values())
    free = (number for number in count(1) if number not in taken)
    return {one: numbers[one] if one in numbers else next(free) for one in ordered}


def _metadata(key: str, pid: int, tid: int, name: str) -> str:
    import json

    return json.dumps(
        {"ph": "M", "pid": pid, "tid": tid, "name": key, "args": {"name": name}}, separators=(",", ":")
    )
