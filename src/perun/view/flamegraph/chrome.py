"""Calls as the JSON of the Trace Event Format, which Perfetto and the browser's own tracing page show."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator
from itertools import count, repeat
from posixpath import basename
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from perun.errors import ProfileError
from perun.view.flamegraph.calls import Calls, Thread, Which

if TYPE_CHECKING:
    from perun.profile.format.core import Profile

_MICROSECONDS: Final = {"": 1.0, "ns": 1e-3, "us": 1.0, "µs": 1.0, "μs": 1.0, "ms": 1e3, "s": 1e6}
_BY_ORDER: Final = "call-order"
_ROWS: Final = 10_000


def chrome_trace(profile: Profile, *, name: str, unit: str, exporter: str) -> Iterator[str]:
    """The document piece by piece: one complete event (`"ph": "X"`) for each call, in microseconds.

    The size of the structure that a call worked on is the argument `size` of its event. Processes and threads
    have the numbers of the profile, and events that name them (`"ph": "M"`).

    :param name: of the process, where there is one only; else each has that of its program.
    :param unit: of the timestamps and the amounts.
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
    whiches = calls.threads_known
    processes = _numbers(which.process for which in whiches)
    of_process: dict[Hashable, list[Hashable]] = {process: [] for process in processes}
    for which in whiches:
        of_process[which.process].append(which.thread)
    threads = {
        Which(process, thread): number
        for process, known in of_process.items()
        for thread, number in _numbers(known).items()
    }
    own = {} if len(processes) == 1 else calls.places
    told = [
        _told("process_name", pid, 0, basename(own.get(process, "")) or name)
        for process, pid in processes.items()
    ]
    told += [
        _told("thread_name", processes[which.process], number, _thread_name(which))
        for which, number in threads.items()
        if which.thread is not None
    ]
    yield ",\n".join(told)
    names = [json.dumps(frame.name) for frame in calls.frames]
    for thread in calls.threads():
        yield from _events(thread, names, processes[thread.which.process], threads[thread.which], factor)
    yield "\n]}\n"


def _thread_name(which: Which) -> str:
    if type(which.thread) is not int:
        return str(which.thread)
    return "main thread" if which.thread == which.process else f"thread {which.thread}"


def _events(thread: Thread, names: list[str], pid: int, number: int, factor: float) -> Iterator[str]:
    head = f',\n{{"ph":"X","pid":{pid},"tid":{number},"name":'
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


def _numbers(known: Iterable[Hashable]) -> dict[Hashable, int]:
    """A number for each process or thread: its own where it has one, else a free one that is not 0."""
    ordered = list(dict.fromkeys(known))
    numbers: dict[Hashable, int] = {one: one for one in ordered if type(one) is int}
    taken = set(numbers.values())
    free = (number for number in count(1) if number not in taken)
    return {one: numbers[one] if one in numbers else next(free) for one in ordered}


def _told(what: str, pid: int, thread: int, name: str) -> str:
    return json.dumps(
        {"ph": "M", "pid": pid, "tid": thread, "name": what, "args": {"name": name}}, separators=(",", ":")
    )
