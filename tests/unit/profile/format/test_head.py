"""The head of a large profile, of which no more is read than is needed."""

import json
import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perun.core.errors import ProfileError
from perun.profile.format.head import DECODED_WHOLE, MAX_BYTES, decode
from perun.profile.format.json import decode_head
from perun.profile.format.quick_head import quick_head
from perun.profile.head import ProfileHeader

NAMES = ['a "quoted" name', "ends with a backslash \\", '\\"', "{[", "plain", "é", "", "]}" * 20]


def profile(names: list[str], size: int) -> bytes:
    """A profile with many texts, larger than what is decoded as a whole; its origin comes last."""
    resources = {f"{number}#0": {"uid": names, "amount": [number]} for number in range(size)}
    regions = {"header": {"type": "memory"}, "collector_info": {"name": "memory"}, "postprocessors": []}
    return json.dumps({**regions, "resources": resources, "origin": "f" * 40}).encode()


def cut(data: bytes, sizes: Iterator[int]) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = next(sizes)
        yield data[at : at + size]
        at += size


def test_pieces_that_all_end_within_a_text() -> None:
    data = profile(["x" * 1000], 6000)
    ends = [at + 500 for at in range(0, len(data), 70_000)]
    middles = [data.index(b"x" * 1000, end) + 500 for end in ends if data.find(b"x" * 1000, end) > 0]
    places = [0, *sorted(set(middles)), len(data)]
    pieces = [data[start:end] for start, end in pairwise(places)]
    assert len(data) > 5 * MAX_BYTES and len(pieces) > 80
    assert decode(pieces, "file")["origin"] == "f" * 40


@settings(deadline=None, max_examples=3)
@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5), st.integers(0, 1 << 30))
def test_pieces_of_any_sizes(names: list[str], seed: int) -> None:
    data = profile(names, 0)
    data = profile(names, 1 + (DECODED_WHOLE + 400_000) // max(len(profile(names, 1)) - len(data), 1))
    chance = random.Random(seed)
    pieces = cut(data, iter(lambda: chance.choice((1000, 4097, 65536)), None))
    found = decode(pieces, "file")
    assert (found["header"]["type"], found["origin"]) == ("memory", "f" * 40)


def test_a_text_that_never_ends_is_refused() -> None:
    data = profile(["x" * 100], 20_000).replace(b'"origin"', b'"orig' + b"i" * 3 * MAX_BYTES)
    with pytest.raises(ProfileError, match=f"longer than {MAX_BYTES} bytes"):
        decode(cut(data, iter(lambda: 65536, None)), "file")


# -- the quick way -------------------------------------------------------------------------------------------


HEADER = {"type": "time", "cmd": "./x", "args": "-a", "workload": "w", "units": {"time": "s"}}
REGIONS = {
    "header": HEADER, "collector_info": {"name": "time", "params": {"repeat": 3}},
    "postprocessors": [{"name": "normalizer", "params": {}}, {"name": "clusterizer"}],
    "resources": {"time": [{"amount": [1.5, 2.5]}]}, "origin": "a" * 40
}  # fmt: skip

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
