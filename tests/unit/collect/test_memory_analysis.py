"""The replay of allocations against one that goes through them one by one."""

from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import perun.collect.memory.analysis as module
from perun.collect.memory import native, table
from perun.collect.memory.analysis import AllocationEvents, Analysis
from perun.collect.memory.events import FIRST_RELEASE, REALLOC_RELEASE
from perun.collect.memory.native import NativeAnalysis

AnalysisOf = Callable[..., Analysis | NativeAnalysis]
KINDS = (1, 2, 10, 32, REALLOC_RELEASE)


class Event(NamedTuple):
    site: int
    address: int
    size: int
    thread: int
    pause: int


EVENTS = st.lists(
    st.builds(
        Event, st.integers(0, 19), st.integers(1, 8).map(lambda place: place * 16), st.integers(0, 100),
        st.integers(0, 2), st.integers(0, 40)
    ),
    min_size=1, max_size=80
)  # fmt: skip
SITES = [(number // len(KINDS), KINDS[number % len(KINDS)]) for number in range(20)]
"""Stack and kind of each site."""


def events_of(events: list[Event]) -> AllocationEvents:
    columns = [np.array(column, np.int64) for column in zip(*events, strict=True)]
    site, address, size, thread, pause = columns
    stacks, kinds = (np.array(column, np.int64) for column in zip(*SITES, strict=True))
    releases = kinds[site] >= FIRST_RELEASE
    size = np.where(releases, 0, size)
    return AllocationEvents(stacks, kinds, site, releases, address, size, thread, np.cumsum(pause))


def cut(events: AllocationEvents, places: list[int]) -> Iterator[AllocationEvents]:
    edges = [0, *sorted(min(place, len(events)) for place in places), len(events)]
    for begin, end in pairwise(edges):
        yield events.where(slice(begin, end))


class OneByOne:
    """What :class:`Analysis` finds out, in the plainest way."""

    def __init__(self, events: AllocationEvents, interval: int) -> None:
        self.rows: dict[tuple[int, int, int], dict[str, int]] = {}
        self.live: dict[int, dict[str, Any]] = {}
        self.peak = self.peak_event = -1
        self.unknown = self.temporary = heap = 0
        newest: dict[int, int] = {}
        self.ended_by = [-1] * len(events)
        peaked: list[dict[str, Any]] = []
        columns = zip(*(column.tolist() for column in list(events)[2:]), strict=True)
        for number, (site, releases, address, size, thread, time) in enumerate(columns):
            stack, kind = SITES[site]
            row = self.row(stack, kind, time // interval, address)
            row["amount"] += size
            row["events"] += 1
            block = self.live.pop(address, None)
            if block:
                heap -= block["size"]
                self.ended_by[block["number"]] = number
            if releases and block:
                block["row"]["lifetime"] += time - block["time"]
                if newest[block["thread"]] == block["number"] and kind != REALLOC_RELEASE:
                    block["row"]["temporary"] += 1
                    self.temporary += 1
            elif releases:
                self.unknown += 1
            else:
                self.live[address] = {
                    "row": row, "size": size, "time": time, "thread": thread, "number": number
                }  # fmt: skip
                newest[thread] = number
                heap += size
            if heap > max(self.peak, 0):
                self.peak, self.peak_event, peaked = heap, number, list(self.live.values())
        for block in peaked:
            block["row"]["peak"] += block["size"]
        self.peak = max(self.peak, 0)
        end = int(events.time.max())
        for block in self.live.values():
            block["row"]["leaked"] += block["size"]
            block["row"]["leaked_blocks"] += 1
            block["row"]["lifetime"] += end - block["time"]

    def row(self, stack: int, kind: int, snapshot: int, address: int) -> dict[str, int]:
        names = ("amount", "events", "peak", "leaked", "leaked_blocks", "temporary", "lifetime")
        return self.rows.setdefault((stack, kind, snapshot), {"address": address, **dict.fromkeys(names, 0)})


def rows_of(analysis: Analysis | NativeAnalysis) -> dict[tuple[int, int, int], dict[str, int]]:
    rows = analysis.rows()
    keys = zip(rows.stack.tolist(), rows.subtype.tolist(), rows.snapshot.tolist(), strict=True)
    fields = rows.names()[1:]
    values = zip(*(getattr(rows, name).tolist() for name in fields), strict=True)
    return {key: dict(zip(fields, row, strict=True)) for key, row in zip(keys, values, strict=True)}


@pytest.fixture(scope="module", params=["numpy", "native"])
def analysis_of(request: pytest.FixtureRequest) -> AnalysisOf:
    """Each of both implementations: `analysis_of(interval, max_snapshots)`."""
    if request.param == "numpy":
        return Analysis
    library = native.load()
    if library is None:
        pytest.skip(f"{native.LIBRARY} was not built")
    return lambda *arguments: NativeAnalysis(library, *arguments)


@pytest.fixture(params=[(7, 11), (1 << 18, 1 << 20)], ids=["small pieces", "one piece"])
def piecewise(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_EVENTS_AT_A_TIME", request.param[0])
    monkeypatch.setattr(module, "_PENDING_ROWS", request.param[1])


@pytest.mark.usefixtures("piecewise")
class TestReplay:
    # The pieces are the same for every example.
    from hypothesis import HealthCheck, settings

    quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

    @quick
    @given(events=EVENTS, places=st.lists(st.integers(0, 80), max_size=4))
    def test_is_what_one_by_one_would_be(self, analysis_of: AnalysisOf, events, places: list[int]) -> None:
        every = events_of(events)
        analysis = analysis_of(50)
        for piece in cut(every, places):
            analysis.add(piece)
        expected = OneByOne(every, 50)
        assert rows_of(analysis) == expected.rows
        totals = analysis.totals()
        allocated = [event.size for event in events if SITES[event.site][1] < FIRST_RELEASE]
        assert (totals.events, totals.allocations, totals.allocated) == (
            len(events), len(allocated), sum(allocated)
        )  # fmt: skip
        assert (totals.peak, totals.peak_event) == (expected.peak, expected.peak_event)
        assert (totals.unknown_releases, totals.temporary) == (expected.unknown, expected.temporary)
        assert totals.leaked == sum(block["size"] for block in expected.live.values())
        assert totals.leaked_blocks == len(expected.live) and totals.last_time == int(every.time.max())

    @quick
    @given(events=EVENTS, places=st.lists(st.integers(0, 80), max_size=4))
    def test_knows_which_event_ended_a_block(self, events: list[Event], places: list[int]) -> None:
        every = events_of(events)
        analysis = Analysis(50, keep=True)
        for piece in cut(every, places):
            analysis.add(piece)
        assert analysis.single_events().ended_by.tolist() == OneByOne(every, 50).ended_by

    @quick
    @given(events=EVENTS, most=st.integers(1, 12))
    def test_snapshots_become_longer(self, analysis_of: AnalysisOf, events: list[Event], most: int) -> None:
        every = events_of(events)
        analysis = analysis_of(3, most)
        for piece in cut(every, [10, 20, 40]):
            analysis.add(piece)
        found = rows_of(analysis)
        assert analysis.interval % 3 == 0
        assert int(every.time.max()) // analysis.interval < most
        assert found == OneByOne(every, analysis.interval).rows


def test_nothing_at_all(analysis_of: AnalysisOf) -> None:
    analysis = analysis_of(50)
    assert rows_of(analysis) == {}
    assert analysis.totals().peak == analysis.totals().events == 0
    assert len(Analysis(50, keep=True).single_events().events) == 0


def test_many_blocks_threads_and_snapshots(analysis_of: AnalysisOf) -> None:
    """More than the first size of every table, released in another order, by another thread."""
    chooser = np.random.default_rng(1)
    count = 9_000
    address = chooser.permutation(count) * 16 + (1 << 40)
    released = chooser.permutation(address[:-100])
    allocations = [Event(5 * (i % 3), int(at), i % 50, i % 700 * 1000, 1) for i, at in enumerate(address)]
    releases = [Event(3 + 5 * (i % 4), int(at), 0, -i, 1) for i, at in enumerate(released)]
    every = events_of([*allocations, *releases])
    analysis = analysis_of(3, 3000)
    for piece in cut(every, [17, 6_000, 13_500]):
        analysis.add(piece)
    found = rows_of(analysis)
    expected = OneByOne(every, analysis.interval)
    assert found == expected.rows
    totals = analysis.totals()
    assert (totals.peak, totals.leaked_blocks, totals.unknown_releases) == (expected.peak, 100, 0)


# -- The peak of several processes at one moment, against one that goes through all events one by one


MALLOC, FREE = 1, 32
assert MALLOC < FIRST_RELEASE <= FREE

Step = tuple[int, int, int]
"""Place of the block, bytes (0 releases it), and the pause before, in nanoseconds."""
MAX_PROCESSES = 3
"""Processes at most."""
PROCESS = st.lists(
    st.tuples(st.integers(1, 5), st.integers(0, 40), st.integers(1, 3)), min_size=0, max_size=30
)


def events_of_steps(events: list[Step], number: int = 0) -> AllocationEvents:
    """The events of a process; no two of several processes are at one moment."""
    columns = list(zip(*events, strict=True)) or [(), (), ()]
    address, size, pause = (np.array(column, np.int64) for column in columns)
    releases = size == 0
    site = releases.astype(np.int64)
    times = np.cumsum(pause) * MAX_PROCESSES + number
    stacks, kinds = np.array([3, 4]), np.array([MALLOC, FREE])
    return AllocationEvents(stacks, kinds, site, releases, address, size, np.zeros_like(size), times)


def pieces(events: AllocationEvents, length: int) -> Iterator[AllocationEvents]:
    for begin, end in pairwise([*range(0, len(events), length), len(events)]):
        yield events.where(slice(begin, end))


def plain_peak(processes: list[list[Step]]) -> tuple[int, list[int]]:
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
def test_is_what_one_by_one_would_be(processes: list[list[Step]], length: int, at_a_time: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(table, "AT_A_TIME", at_a_time)
        recorded = [events_of_steps(events, number) for number, events in enumerate(processes)]
        analyses = [Analysis(1000) for _ in processes]
        table.replay(analyses, [pieces(one, length) for one in recorded])
    best, at_best = plain_peak(processes)
    assert [one.totals().peak for one in analyses] == at_best and sum(at_best) == best
    assert [int(one.rows().peak.sum()) for one in analyses] == at_best


def test_processes_that_follow_each_other_do_not_add_up() -> None:
    first = [(1, 1000, 1), (1, 0, 1)]
    second = [(1, 800, 10), (2, 30, 1)]
    analyses = [Analysis(1000), Analysis(1000)]
    table.replay(analyses, [[events_of_steps(first)], [events_of_steps(second)]])
    assert [one.totals().peak for one in analyses] == [1000, 0]
    assert {one.totals().peak_time for one in analyses} == {MAX_PROCESSES}


def test_what_a_process_never_released_goes_with_it() -> None:
    first, second = [(1, 1000, 1)], [(1, 800, 10), (2, 30, 1)]
    for end, peaks in ((1, [1000, 0]), (29, [1000, 0]), (32, [1000, 800]), (99, [1000, 830])):
        analyses = [Analysis(1000), Analysis(1000)]
        recorded = [[events_of_steps(first)], [events_of_steps(second)]]
        table.replay(analyses, recorded, [lambda end=end: end, lambda: 0])  # type: ignore[misc]
        assert [one.totals().peak for one in analyses] == peaks


def test_one_process_has_the_peak_that_it_has_alone() -> None:
    chance = np.random.default_rng(1)
    sizes = chance.integers(0, 100, 3000) * chance.integers(0, 2, 3000)
    places = chance.integers(1, 90, 3000)
    events = events_of_steps([(int(place), int(size), 1) for place, size in zip(places, sizes, strict=True)])
    alone, one = Analysis(1000), Analysis(1000)
    for piece in pieces(events, 100):
        alone.add(piece)
    table.replay([one], [pieces(events, 100)])
    assert alone.totals() == one.totals()
    assert all((old == new).all() for old, new in zip(alone.rows(), one.rows(), strict=True))
