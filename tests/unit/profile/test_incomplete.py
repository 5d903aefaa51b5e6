"""What a profile says it lacks of its run, whoever wrote it."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perun.profile.incomplete import interrupted, killed, lost, mark, reasons_of, text_of, timed_out

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


def test_reasons_are_added_once_and_read_back() -> None:
    profile = {"header": {"type": "time"}}
    mark(profile, [])
    assert profile == {"header": {"type": "time"}}
    reasons = [interrupted(1.25), lost(7, "calls")]
    mark(profile, reasons)
    mark(profile, [lost(7, "calls"), killed(9), timed_out(5)])
    again = json.loads(json.dumps(profile))
    assert reasons_of(again) == (*reasons, killed(9), timed_out(5))
    assert text_of(again) == (
        "interrupted after 1.25 s; 7 calls lost; killed by SIGKILL; stopped by the time limit of 5 s"
    )


@pytest.mark.parametrize("header", [None, {}, {"incomplete": []}, {"incomplete": None}, {"incomplete": ""}])
def test_complete(header: object) -> None:
    assert text_of({"header": header}) == ""
    assert text_of({}) == ""


@given(JSON)
@example([""])
def test_whatever_else_is_there_says_that_it_is_incomplete(written: object) -> None:
    profile = {"header": {"incomplete": written}}
    assert bool(text_of(profile)) == bool(written)
    entry = {"header": {"incomplete": [{"reason": "lost", "amount": written, "unit": "calls"}]}}
    assert text_of(entry).endswith("calls lost")
