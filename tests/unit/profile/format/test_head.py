"""The head of a large profile, of which no more is read than is needed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perun.core.errors import ProfileError
from perun.profile.format.head import DECODED_WHOLE, MAX_BYTES, decode

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
