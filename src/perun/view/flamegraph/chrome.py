"""Calls as the JSON of the Trace Event Format, which Perfetto and the browser's own tracing page show."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from itertools import count, repeat
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from perun.errors import ProfileError
from perun.view.flamegraph.calls import Calls, Thread

if TYPE_CHECKING:
    from perun.profile.core import Profile

_MICROSECONDS: Final = {"": 1.0, "ns": 1e-3, "us": 1.0, "µs": 1.0, "μs": 1.0, "ms": 1e3, "s": 1e6}
_BY_ORDER: Final = "call-order"
_PROCESS: Final = 1
_ROWS: Final = 10_000


def chrome_trace(profile: Profile, *, name: str, unit: str, exporter: str) -> Iterator[str]:
    """The document piece by piece: one complete event (`"ph": "X"`) for each call, in microseconds.

    The size of the structure that a call worked on is the argument `size` of its event.

    :param name: of the process. :param unit: of the timestamps and the amounts.
    :raises ProfileError: before the first piece, where the profile has no calls with the times they began.
    """
    if unit not in _MICROSECONDS:
        raise ProfileError(
            f"a Chrome trace has times, and the amounts of the profile are in {unit}",
            "choose another --format, e.g. html, folded or speedscope",
        )
    calls = Calls()
    for group in profile.groups():
        if "trace" not in group.constants and "trace" not in group.columns:
            sized = group.constants.get("size-source") != _BY_ORDER
            calls.add(group, "structure-unit-size" if sized else "")
    if not calls:
        raise ProfileError(
            "no resource has a timestamp that says when its call began, so there is no Chrome trace",
            "collect a profile with perun collect trace or perun collect complexity, or choose another "
            "--format, e.g. folded",
        )
    return _pieces(calls, name, _MICROSECONDS[unit], exporter)


def _pieces(calls: Calls, name: str, factor: float, exporter: str) -> Iterator[str]:
    yield f'{{"displayTimeUnit":"ns","otherData":{json.dumps({"exporter": exporter})},"traceEvents":[\n'
    yield _told("process_name", 0, name)
    names = [json.dumps(frame.name) for frame in calls.frames]
    numbers = _numbers(calls.threads_known)
    for thread in calls.threads():
        number = numbers[thread.number]
        if number != thread.number and thread.number is not None:
            yield ",\n" + _told("thread_name", number, str(thread.number))
        yield from _events(thread, names, number, factor)
    yield "\n]}\n"


def _events(thread: Thread, names: list[str], number: int, factor: float) -> Iterator[str]:
    head = f',\n{{"ph":"X","pid":{_PROCESS},"tid":{number},"name":'
    for first in range(0, len(thread.start), _ROWS):
        rows = slice(first, first + _ROWS)
        start = thread.start[rows]
        times = (_times(one, thread.scale, factor) for one in (start, thread.end[rows] - start))
        value = thread.value[rows]
        sizes: Any = repeat(float("nan")) if np.isnan(value).all() else value.tolist()
        yield "".join(
            f'{head}{names[frame]},"ts":{begun},"dur":{lasted}}}'
            if size != size  # NaN
            else f'{head}{names[frame]},"ts":{begun},"dur":{lasted},"args":{{"size":{_plain(size)}}}}}'
            for frame, begun, lasted, size in zip(thread.frame[rows].tolist(), *times, sizes, strict=False)
        )


def _times(times: Any, scale: int, factor: float) -> list[float]:
    made: list[float] = np.round(times / scale * factor, 3).tolist()
    return made


def _plain(size: float) -> float:
    """Sizes are whole, though beside calls without a size they are kept as floats."""
    return int(size) if size == int(size) else size


def _numbers(threads: Sequence[Hashable]) -> dict[Hashable, int]:
    """A number for each thread: its own where it has one, else one that is free."""
    numbers: dict[Hashable, int] = {thread: thread for thread in threads if type(thread) is int}
    taken = set(numbers.values())
    free = (number for number in count() if number not in taken)
    return {thread: numbers[thread] if thread in numbers else next(free) for thread in threads}


def _told(what: str, thread: int, name: str) -> str:
    return json.dumps(
        {"ph": "M", "pid": _PROCESS, "tid": thread, "name": what, "args": {"name": name}},
        separators=(",", ":"),
    )
