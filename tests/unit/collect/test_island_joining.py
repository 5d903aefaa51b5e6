"""Timelines with more calls than they may have entries: what is joined, and that nothing is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perun.collect.island.joining import Joined
from perun.profile.island import SEVERAL, Entry


def call(
    start: int, duration: int, *, thread: int = 0, api: int = 0, object: int = 0, amount: int = 8
) -> Entry:
    return Entry(thread, api, object, start, duration, duration, amount, 1)


def test_few_calls_stay_as_they_are() -> None:
    calls = [call(10, 5), call(15, 5), call(30, 1, thread=1)]
    joined = Joined(3)
    joined.add(calls)
    assert joined.entries() == calls
    assert joined.gap == 0


def test_near_calls_of_one_object_become_one() -> None:
    far = 10**9
    joined = Joined(2)
    joined.add([call(0, 100), call(200, 100), call(400, 100), call(far, 50), call(far + 60, 50)])
    assert joined.entries() == [
        Entry(0, 0, 0, 0, 500, 300, 24, 3),
        Entry(0, 0, 0, far, 110, 100, 16, 2),
    ]
    assert joined.gap < far


def test_calls_on_many_objects_become_one_in_the_end() -> None:
    joined = Joined(4)
    joined.add(call(number * 1000, 10, object=number) for number in range(100))
    (entry,) = joined.entries()
    assert (entry.object, entry.calls, entry.amount) == (SEVERAL, 100, 800)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**7),
            st.integers(0, 10**5),
            st.integers(0, 2),
            st.integers(0, 2),
            st.integers(-1, 30),
        ),
        max_size=200,
    ),
    st.integers(1, 40),
)
def test_nothing_is_lost(rows: list[tuple[int, int, int, int, int]], most: int) -> None:
    calls = sorted(
        (
            call(start, duration, thread=thread, api=api, object=object)
            for start, duration, thread, api, object in rows
        ),
        key=lambda one: one.start,
    )
    joined = Joined(most)
    joined.add(calls)
    entries = joined.entries()
    kinds = {(one.thread, one.api) for one in calls}
    assert len(entries) <= max(most, len(kinds))
    assert joined.calls == len(calls) == sum(one.calls for one in entries)
    for name in ("busy", "amount"):
        assert sum(getattr(one, name) for one in calls) == sum(getattr(one, name) for one in entries)
    for one in calls:
        assert any(
            (entry.thread, entry.api) == (one.thread, one.api)
            and entry.object in (one.object, SEVERAL)
            and entry.start <= one.start
            and one.start + one.duration <= entry.start + entry.duration
            for entry in entries
        )
