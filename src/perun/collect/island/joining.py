"""The timeline of a run in at most so many entries: calls that follow closely become one entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from perun.collect._common.columns import Ints
from perun.island.statistics import label_of
from perun.profile.island import COLUMNS, NO_OBJECT, SEVERAL, Api, Thread, Timeline

if TYPE_CHECKING:
    from perun.island.opening import Recorded
    from perun.island.record import Recording

MAX_STOPS: Final = 10_000
"""Stops that a timeline has at most; of more those that are near become one."""
_GAPS: Final = tuple(1_000 * 4**step for step in range(28))
"""Nanoseconds that may be between two calls of an entry, one after the other tried; the last is a year and
more."""
_OF_SEVERAL: Final = 1_000_000
"""From this gap on calls are joined whatever their object: a screen has no thousand points for a second."""


class Calls(NamedTuple):
    """Calls in the order of threads and, of each, of starts: the columns of a timeline, shape (n,)."""

    thread: Ints
    api: Ints
    object: Ints
    start: Ints
    duration: Ints
    amount: Ints


class Joined(NamedTuple):
    """Entries in the order of threads and starts: the columns of a timeline, by their names.

    :param gap: nanoseconds; calls of one entry are no farther apart. 0 where each is an entry of its own.
    """

    columns: dict[str, Ints]
    gap: int


def joined(calls: Calls, most: int) -> Joined:
    """The calls as entries: those of one thread to one function on one object that follow closely are one.

    :param most: how many entries there may be, unless there are more threads and functions.
    """
    if len(calls.start) <= most:
        return Joined(
            _together(calls, calls.object, np.arange(len(calls.start)), np.arange(len(calls.start))), 0
        )
    gap = 0
    for objects in (calls.object, np.full_like(calls.object, SEVERAL)):
        order = np.lexsort((calls.start, objects, calls.api, calls.thread))
        keys = np.stack((calls.thread, calls.api, objects))[:, order]
        begins = np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))
        apart = calls.start[order][1:] - (calls.start + calls.duration)[order][:-1]
        for gap in _GAPS:
            if objects is calls.object and gap >= _OF_SEVERAL:
                break
            firsts = begins | np.append(True, apart > gap)
            if int(firsts.sum()) <= most:
                return Joined(_together(calls, objects, order, np.flatnonzero(firsts)), gap)
    return Joined(_together(calls, objects, order, np.flatnonzero(begins)), gap)


def _together(calls: Calls, objects: Ints, order: Ints, firsts: Ints) -> dict[str, Ints]:
    """The entries that begin at the places `firsts` of the calls in this order."""
    if not len(firsts):
        return {name: np.zeros(0, np.int64) for name in COLUMNS}
    start = calls.start[order][firsts]
    ends = np.maximum.reduceat((calls.start + calls.duration)[order], firsts)
    found = {
        "thread": calls.thread[order][firsts],
        "api": calls.api[order][firsts],
        "object": objects[order][firsts],
        "start": start,
        "duration": ends - start,
        "busy": np.add.reduceat(calls.duration[order], firsts),
        "amount": np.add.reduceat(calls.amount[order], firsts),
        "calls": np.diff(np.append(firsts, len(order))),
    }
    shown = np.lexsort((-found["duration"], found["start"], found["thread"]))
    return {name: found[name][shown] for name in COLUMNS}


def timeline_region(opened: Recorded, most: int, shown: Callable[[str], str]) -> dict[str, Any]:
    """The region `timeline` of a profile.

    :param most: about how many entries it has at most. :param shown: how an object is named.
    """
    apis: dict[Any, int] = {}
    objects: dict[str, int] = {}
    parts, first = [], 0
    lives = np.array([thread.destroyed for thread in opened.threads], np.int64)
    for recording in opened.recordings:
        parts.append(_calls(recording, first, lives, opened.start, apis, objects))
        first += len(recording.threads)
    calls = Calls(*map(np.concatenate, zip(*parts, strict=True)))
    columns = joined(calls, most).columns
    return Timeline(
        round(opened.live * 1e9),
        opened.processes,
        [Thread(lane.name, lane.process, lane.created, lane.destroyed) for lane in opened.lanes],
        [Api(api.name, api.type, api.subtype, "ns" if api.unit == "s" else api.unit) for api in apis],
        list(map(shown, objects)),
        {name: column.tolist() for name, column in columns.items()},
        _stops(opened.stops),
        len(calls.start),
    ).as_region()


def _calls(
    recording: Recording, first: int, lives: Ints, start: int, apis: dict[Any, int], objects: dict[str, int]
) -> Calls:
    """The calls of a process.

    :param first: the number of its first thread in the run. :param lives: when each thread of the run ended.
    :param apis: and :param objects: get what is new in it.
    """
    table = recording.columns()
    used_apis, api = np.unique(table["api"], return_inverse=True)
    used_objects, object = np.unique(table["object"], return_inverse=True)
    names = [label_of(recording, number) for number in used_objects.tolist()]
    thread = table["thread"].astype(np.int64) + first
    begin = table["start"]
    # A call that has not returned lasts as long as its thread.
    end = np.maximum(np.where(table["end"] < 0, lives[thread], table["end"]), begin)
    numbers = [apis.setdefault(recording.apis[number], len(apis)) for number in used_apis.tolist()]
    places = [objects.setdefault(name, len(objects)) if name else NO_OBJECT for name in names]
    return Calls(
        thread,
        np.array(numbers, np.int64)[api],
        np.array(places, np.int64)[object],
        begin - start,
        end - begin,
        table["amount"].astype(np.int64),
    )


def _stops(stops: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Starts and durations; of very many stops those that are near become one."""
    starts, ends = np.array(stops, np.int64).reshape(-1, 2).T
    same = np.zeros_like(starts)
    columns = joined(Calls(same, same, same, starts, ends - starts, same), MAX_STOPS).columns
    return list(zip(columns["start"].tolist(), columns["duration"].tolist(), strict=True))
