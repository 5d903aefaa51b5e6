"""The peak of several processes at one moment, against one that goes through all events one by one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.collect.memory import table
from perun.collect.memory.analysis import Analysis, Events
from perun.collect.memory.events import FIRST_RELEASE

MALLOC, FREE = 1, 32
assert MALLOC < FIRST_RELEASE <= FREE

Event = tuple[int, int, int]
"""Place of the block, bytes (0 releases it), and the pause before, in nanoseconds."""
MAX_PROCESSES = 3
"""Processes at most."""
PROCESS = st.lists(
    st.tuples(st.integers(1, 5), st.integers(0, 40), st.integers(1, 3)), min_size=0, max_size=30
)


def events_of(events: list[Event], number: int = 0) -> Events:
    """The events of a process; no two of several processes are at one moment."""
    columns = list(zip(*events, strict=True)) or [(), (), ()]
    address, size, pause = (np.array(column, np.int64) for column in columns)
    releases = size == 0
    site = releases.astype(np.int64)
    times = np.cumsum(pause) * MAX_PROCESSES + number
    stacks, kinds = np.array([3, 4]), np.array([MALLOC, FREE])
    return Events(stacks, kinds, site, releases, address, size, np.zeros_like(size), times)


def pieces(events: Events, length: int) -> Iterator[Events]:
    for begin, end in pairwise([*range(0, len(events), length), len(events)]):
        yield events.where(slice(begin, end))


def plain_peak(processes: list[list[Event]]) -> tuple[int, list[int]]:
    """The largest heap of all, and what is live in each process then; all is gone after its last event."""
    order = []
    for number, events in enumerate(processes):
        times = [pause * MAX_PROCESSES + number for pause in accumulate(pause for _, _, pause in events)]
        order += [
            (time, number, address, size) for time, (address, size, _) in zip(times, events, strict=True)
        ]
        order += [(time, number, -1, 0) for time in times[-1:]]
    live: list[dict[int, int]] = [{} for _ in processes]
    best, at_best = 0, [0] * len(processes)
    for _, number, address, size in sorted(order, key=lambda one: one[0]):
        live[number].pop(address, None)
        if size:
            live[number][address] = size
        if address < 0:
            live[number] = {}
        heaps = [sum(blocks.values()) for blocks in live]
        if sum(heaps) > best:
            best, at_best = sum(heaps), heaps
    return best, at_best


@given(st.lists(PROCESS, min_size=1, max_size=MAX_PROCESSES), st.integers(1, 9), st.integers(1, 7))
def test_is_what_one_by_one_would_be(processes: list[list[Event]], length: int, at_a_time: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(table, "AT_A_TIME", at_a_time)
        recorded = [events_of(events, number) for number, events in enumerate(processes)]
        analyses = [Analysis(1000) for _ in processes]
        table.replay(analyses, [pieces(one, length) for one in recorded])
    best, at_best = plain_peak(processes)
    assert [one.totals().peak for one in analyses] == at_best
    assert sum(at_best) == best
    assert [int(one.rows().peak.sum()) for one in analyses] == at_best


def test_processes_that_follow_each_other_do_not_add_up() -> None:
    first = [(1, 1000, 1), (1, 0, 1)]
    second = [(1, 800, 10), (2, 30, 1)]
    analyses = [Analysis(1000), Analysis(1000)]
    table.replay(analyses, [[events_of(first)], [events_of(second)]])
    assert [one.totals().peak for one in analyses] == [1000, 0]
    assert {one.totals().peak_time for one in analyses} == {MAX_PROCESSES}


def test_what_a_process_never_released_goes_with_it() -> None:
    first, second = [(1, 1000, 1)], [(1, 800, 10), (2, 30, 1)]
    for end, peaks in ((1, [1000, 0]), (29, [1000, 0]), (32, [1000, 800]), (99, [1000, 830])):
        analyses = [Analysis(1000), Analysis(1000)]
        recorded = [[events_of(first)], [events_of(second)]]
        table.replay(analyses, recorded, [lambda end=end: end, lambda: 0])  # type: ignore[misc]
        assert [one.totals().peak for one in analyses] == peaks


def test_one_process_has_the_peak_that_it_has_alone() -> None:
    chance = np.random.default_rng(1)
    sizes = chance.integers(0, 100, 3000) * chance.integers(0, 2, 3000)
    places = chance.integers(1, 90, 3000)
    events = events_of([(int(place), int(size), 1) for place, size in zip(places, sizes, strict=True)])
    alone, one = Analysis(1000), Analysis(1000)
    for piece in pieces(events, 100):
        alone.add(piece)
    table.replay([one], [pieces(events, 100)])
    assert alone.totals() == one.totals()
    assert all((old == new).all() for old, new in zip(alone.rows(), one.rows(), strict=True))
