"""The quick way to the head of a profile gives what the other one does, or nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import ProfileError
from perun.profile.format.json import decode_head
from perun.profile.format.quick_head import quick_head
from perun.profile.head import ProfileHeader

HEADER = {"type": "time", "cmd": "./x", "args": "-a", "workload": "w", "units": {"time": "s"}}
REGIONS = {
    "header": HEADER,
    "collector_info": {"name": "time", "params": {"repeat": 3}},
    "postprocessors": [{"name": "normalizer", "params": {}}, {"name": "clusterizer"}],
    "resources": {"time": [{"amount": [1.5, 2.5]}]},
    "origin": "a" * 40,
}

texts = st.text(max_size=6) | st.sampled_from(["time", "a b", "\x1f", "\u2003", "\ud800", "\u00e9"])
values = st.none() | st.booleans() | st.integers() | st.floats() | texts
values |= st.lists(values, max_size=2) | st.dictionaries(texts, values, max_size=2)
units = values | st.fixed_dictionaries({}, optional={"name": values, "params": values})
headers = values | st.fixed_dictionaries(
    {"type": values}, optional=dict.fromkeys(("cmd", "args", "workload", "units", "bin", "params"), values)
)


def slow_head(data: bytes) -> ProfileHeader | None:
    try:
        return ProfileHeader.of(decode_head(data, "x"))
    except ProfileError:
        return None


def test_it_reads_todays_layout() -> None:
    data = json.dumps(REGIONS).encode()
    assert quick_head(data) == slow_head(data) != None  # noqa: E711


@pytest.mark.parametrize(
    "header", [{**HEADER, "bin": "./y"}, {**HEADER, "params": "-b"}, {**HEADER, "workload": 3}]
)
def test_it_leaves_older_layouts(header: dict[str, Any]) -> None:
    data = json.dumps({**REGIONS, "header": header}).encode()
    assert quick_head(data) is None
    assert slow_head(data) is not None


@given(
    st.fixed_dictionaries(
        {"header": headers, "collector_info": units},
        optional={"postprocessors": values | st.lists(units, max_size=2), "origin": values, "more": values},
    )
)
def test_it_never_differs(regions: dict[str, Any]) -> None:
    data = json.dumps(regions).encode()
    assert quick_head(data) in (None, slow_head(data))


@given(st.sampled_from([*HEADER]), values, st.sampled_from(["collector_info", "postprocessors"]), units)
def test_it_never_differs_where_one_thing_is_wrong(key: str, value: Any, region: str, unit: Any) -> None:
    for changed in (
        {**REGIONS, "header": {**HEADER, key: value}},
        {**REGIONS, region: [unit] if region == "postprocessors" else unit},
    ):
        data = json.dumps(changed).encode()
        assert quick_head(data) in (None, slow_head(data))


@given(st.text(st.characters(codec="ascii"), max_size=40).map(str.encode), st.integers(0, 300))
def test_it_never_differs_where_bytes_are_damaged(noise: bytes, place: int) -> None:
    whole = json.dumps(REGIONS).encode()
    data = whole[:place] + noise + whole[place + len(noise) :]
    assert quick_head(data) in (None, slow_head(data))
