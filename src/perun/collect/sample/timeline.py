"""When each thread ran which function: samples one after the other, as the timeline of a profile."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from perun.collect.sample.frames import NamedStacks
from perun.collect.sample.records import SampleRecording, summed, within
from perun.profile.island import COLUMNS, ApiFunction, Timeline, TimelineThread
from perun.profile.sampled import CPU, SAMPLED, WAITING

MOST: Final = 20_000
"""Entries of a timeline: a page shows no more."""
_APIS: Final = (ApiFunction("runs", SAMPLED, CPU, "ns"), ApiFunction("waits", SAMPLED, WAITING, "ns"))


def timeline_region(recording: SampleRecording, named: NamedStacks, scale: float) -> dict[str, Any]:
    """The region `timeline` of a profile: of each thread the functions in which it was sampled, in the order
    of time.

    Samples that follow each other in one function are one entry, whose `calls` are the samples and whose
    `amount` are the nanoseconds that they stand for. Of more than :data:`MOST` those of a function within a
    slice of time are told one after the other.

    :param scale: CPU time for each nanosecond that samples stand for, as in the resources.
    """
    functions: dict[str, int] = {}
    used, of_stack = np.unique(recording.moments["stack"], return_inverse=True)
    leaves = [named.trace(recording.stacks[number])[0][0].function for number in used.tolist()]
    numbers = np.array([functions.setdefault(name, len(functions)) for name in leaves], np.uint32)
    moments = recording.moments.copy()
    moments["stack"] = numbers[of_stack]
    rows, _ = within(_in_runs(moments, 2 * recording.period), MOST)
    rows = rows[np.lexsort((rows["start"], rows["tid"]))]
    columns: dict[str, list[int]] = {name: [] for name in COLUMNS}
    lanes: dict[int, list[int]] = {}
    for start, weight, samples, pid, tid, function, waits in rows.tolist():
        lane = lanes.setdefault(tid, [len(lanes), pid, start, start])
        begin = max(start, lane[3]) - recording.start  # those of a slice come one after the other
        lane[3] = begin + weight + recording.start
        amount = weight if waits else round(weight * scale)
        entry = (lane[0], waits, function, begin, weight, amount, amount, samples)
        for name, value in zip(COLUMNS, entry, strict=True):
            columns[name].append(value)
    names = [recording.name(tid, last) or str(tid) for tid, (*_, last) in lanes.items()]
    processes = {pid: number for number, pid in enumerate(dict.fromkeys(lane[1] for lane in lanes.values()))}
    end = max((lane[3] for lane in lanes.values()), default=recording.start)
    return Timeline(
        max(recording.end, end) - recording.start,
        [f"{recording.name(pid, end) or pid} ({pid})" for pid in processes],
        [
            TimelineThread(
                name if names.count(name) == 1 else f"{name} ({tid})",
                *(processes[pid], first - recording.start, last - recording.start),
            )
            for name, (tid, (_, pid, first, last)) in zip(names, lanes.items(), strict=True)
        ],
        _APIS,
        list(functions),
        columns,
        [],
        int(rows["samples"].sum()),
    ).as_region()


def _in_runs(moments: NDArray[np.void], gap: int) -> NDArray[np.void]:
    """Moments of one thread and function that follow each other within so many nanoseconds, as one."""
    found = moments.take(np.lexsort((moments["start"], moments["tid"])))
    if not len(found):
        return found
    ends = found["start"] + found["weight"]
    alike = [found[name][1:] == found[name][:-1] for name in ("tid", "stack", "waits")]
    near = found["start"][1:] - ends[:-1] <= gap
    return summed(found, np.flatnonzero(np.append(True, ~np.logical_and.reduce([*alike, near]))))
