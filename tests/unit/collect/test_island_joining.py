"""Timelines with more calls than they may have entries: what is joined, and that nothing is lost."""

from collections.abc import Iterable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from perun.collect.island import _GAPS, _OF_SEVERAL, CallColumns, TimelineColumns, joined
from perun.profile.island import COLUMNS, SEVERAL, TimelineEntry


def call(start: int, duration: int, *, thread: int = 0, api: int = 0, object: int = 0) -> TimelineEntry:
    return TimelineEntry(thread, api, object, start, duration, duration, 8, 1)


def calls_of(entries: Iterable[TimelineEntry]) -> CallColumns:
    ordered = sorted(entries, key=lambda one: (one.thread, one.start, -one.duration))
    names = ("thread", "api", "object", "start", "duration", "amount")
    return CallColumns(*(np.array([getattr(one, name) for one in ordered], np.int64) for name in names))


def entries_of(found: TimelineColumns) -> list[TimelineEntry]:
    return list(
        map(TimelineEntry._make, zip(*(found.columns[name].tolist() for name in COLUMNS), strict=True))
    )


def number_of_runs(calls: Iterable[TimelineEntry], gap: int, several: bool) -> int:
    """How many entries calls make that are no farther apart than this."""
    found, last = 0, dict[tuple[int, int, int], int]()
    for one in sorted(calls, key=lambda one: (one.start, -one.duration)):
        key = (one.thread, one.api, SEVERAL if several else one.object)
        found += key not in last or one.start - last[key] > gap
        last[key] = one.start + one.duration
    return found


def test_few_calls_stay_as_they_are() -> None:
    calls = [call(10, 5), call(15, 5), call(30, 1, thread=1)]
    found = joined([calls_of(calls)], 3)
    assert entries_of(found) == calls and found.gap == 0
    assert entries_of(joined([calls_of([])], 3)) == []


def test_near_calls_of_one_object_become_one() -> None:
    far = 10**9
    calls = [call(0, 100), call(200, 100), call(400, 100), call(far, 50), call(far + 60, 50)]
    found = joined([calls_of(calls)], 2)
    assert entries_of(found) == [
        TimelineEntry(0, 0, 0, 0, 500, 300, 24, 3),
        TimelineEntry(0, 0, 0, far, 110, 100, 16, 2),
    ]
    assert 0 < found.gap < far


def test_calls_in_between_do_not_keep_others_apart() -> None:
    calls = [call(number * 100, 10, api=number % 2, object=number % 2) for number in range(100)]
    found = entries_of(joined([calls_of(calls)], 2))
    assert [(one.api, one.object, one.calls) for one in found] == [(0, 0, 50), (1, 1, 50)]


def test_calls_on_many_objects_become_one_in_the_end() -> None:
    (entry,) = entries_of(
        joined([calls_of(call(number * 1000, 10, object=number) for number in range(100))], 4)
    )
    assert (entry.object, entry.calls, entry.amount) == (SEVERAL, 100, 800)


@given(
    st.lists(
        st.builds(
            call, st.integers(0, 10**7), st.integers(0, 10**5), thread=st.integers(0, 2),
            api=st.integers(0, 2), object=st.integers(-1, 30)
        ),
        max_size=120
    ),
    st.integers(1, 40),
    st.integers(1, 50)
)  # fmt: skip
def test_nothing_is_lost(calls: list[TimelineEntry], most: int, size: int) -> None:
    columns = calls_of(calls)
    blocks = [CallColumns(*(one[at : at + size] for one in columns)) for at in range(0, len(calls), size)]
    found = joined(blocks, most)
    whole = joined([columns], most)
    assert found.gap == whole.gap and entries_of(found) == entries_of(whole)
    entries = entries_of(found)
    several = SEVERAL in found.columns["object"]
    gaps = [0, *(gap for gap in _GAPS if gap < _OF_SEVERAL or several)]
    for gap in gaps[: gaps.index(found.gap)]:  # the least with which they are few enough
        assert gap == 0 or number_of_runs(calls, gap, several) > most
    assert len(entries) == number_of_runs(calls, found.gap, several) if found.gap else len(calls) <= most
    kinds = {(one.thread, one.api) for one in calls}
    assert len(entries) <= max(most, len(kinds))
    assert [(one.thread, one.start) for one in entries] == sorted((one.thread, one.start) for one in entries)
    for name in ("busy", "amount", "calls"):
        assert sum(getattr(one, name) for one in calls) == sum(getattr(one, name) for one in entries)
    last: dict[tuple[int, int, int], int] = {}
    for one in sorted(calls, key=lambda one: one.start):
        key = (one.thread, one.api, SEVERAL if several else one.object)
        if last.get(key, -(10**9)) + found.gap < one.start:  # it is too far from the one before
            assert any(entry[:4] == (*key, one.start) for entry in entries)
        last[key] = max(last.get(key, 0), one.start + one.duration)
    for one in calls:
        assert any(
            (entry.thread, entry.api) == (one.thread, one.api)
            and entry.object in (one.object, SEVERAL)
            and entry.start <= one.start
            and one.start + one.duration <= entry.start + entry.duration
            for entry in entries
        )
