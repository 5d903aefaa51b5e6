"""Maps of the heap (the chapter on profile conversions that still has them)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import ProfileError
from perun.profile.convert import to_heap_map_format, to_heat_map_format
from perun.profile.factory import Profile
from perun.profile.memory import CELLS, lifetimes


def resource(subtype: str, address: int, amount: int, line: int = 1) -> dict[str, Any]:
    uid = {"source": "a.c", "function": "main", "line": line}
    return {"type": "memory", "subtype": subtype, "address": address, "amount": amount, "uid": uid}


def profile(*snapshots: list[dict[str, Any]]) -> Profile:
    return Profile(
        header={"type": "memory", "units": {"memory": "kB"}},
        snapshots=[{"time": f"0.{n}", "resources": resources} for n, resources in enumerate(snapshots, 1)],
    )


EXAMPLE = (
    [resource("malloc", 100, 10), resource("calloc", 200, 4, line=2)],
    [resource("free", 100, 0), resource("malloc", 300, 2)],
    [resource("free", 200, 0), resource("free", 300, 0)],
)


def test_a_heap_map_is_what_is_allocated_at_the_end_of_each_snapshot() -> None:
    found = to_heap_map_format(profile(*EXAMPLE))
    assert found == {
        "type": "heap",
        "unit": "kB",
        "stats": {
            "max_amount": 10, "min_amount": 2, "max_address": 301, "min_address": 100,
            "max_sum_amount": 14, "min_sum_amount": 0,
        },
        "info": [
            {"line": 1, "function": "main", "source": "a.c"},
            {"line": 2, "function": "main", "source": "a.c"},
        ],
        "snapshots": [
            {
                "time": "0.1", "max_amount": 10, "min_amount": 4, "sum_amount": 14,
                "max_address": 203, "min_address": 100,
                "map": [
                    {"address": 100, "amount": 10, "uid": 0, "subtype": "malloc"},
                    {"address": 200, "amount": 4, "uid": 1, "subtype": "calloc"},
                ],
            },
            {
                "time": "0.2", "max_amount": 4, "min_amount": 2, "sum_amount": 6,
                "max_address": 301, "min_address": 200,
                "map": [
                    {"address": 200, "amount": 4, "uid": 1, "subtype": "calloc"},
                    {"address": 300, "amount": 2, "uid": 0, "subtype": "malloc"},
                ],
            },
            {"time": "0.3", "max_amount": 0, "min_amount": 0, "sum_amount": 0,
             "max_address": 0, "min_address": 0, "map": []},
        ],
    }  # fmt: skip


def test_an_address_that_is_used_again_within_a_snapshot() -> None:
    found = to_heap_map_format(
        profile(
            [resource("malloc", 100, 10), resource("free", 100, 0), resource("malloc", 100, 20)],
            [resource("free", 100, 0), resource("malloc", 100, 30)],
            [resource("malloc", 200, 5), resource("free", 200, 0)],
        )
    )
    maps = [[(chunk["address"], chunk["amount"]) for chunk in one["map"]] for one in found["snapshots"]]
    assert maps == [[(100, 20)], [(100, 30)], [(100, 30)]]


def test_a_heat_map_counts_allocations_at_each_address() -> None:
    found = to_heat_map_format(
        profile([resource("malloc", 10, 3), resource("malloc", 12, 2)], [resource("malloc", 10, 1)])
    )
    assert found == {
        "type": "heat", "unit": "kB", "stats": {"max_address": 13, "min_address": 10, "cell_size": 1},
        "map": [2, 1, 2, 1]
    }  # fmt: skip


chunks = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), min_size=1, max_size=15)


@given(chunks)
def test_heat_of_any_allocations(chunks: list[tuple[int, int]]) -> None:
    found = to_heat_map_format(profile([resource("malloc", *chunk) for chunk in chunks]))
    taken = [address for start, size in chunks for address in range(start, start + size)]
    first, last = (min(taken), max(taken)) if taken else (0, -1)
    assert found["map"] == [taken.count(address) for address in range(first, last + 1)]


@given(chunks)
def test_a_chunk_that_is_released_is_gone(chunks: list[tuple[int, int]]) -> None:
    one_each = {address: amount for address, amount in chunks if amount}
    made = [resource("malloc", *chunk) for chunk in one_each.items()]
    released = [resource("free", address, 0) for address in one_each]
    found = to_heap_map_format(profile(made or [resource("malloc", 1, 1)], released))
    assert found["snapshots"][0]["sum_amount"] == sum(one_each.values()) or not made
    if made:
        assert found["snapshots"][1]["map"] == []


events = st.tuples(st.sampled_from(["malloc", "calloc", "free"]), st.integers(0, 5), st.integers(0, 9))


@given(st.lists(st.lists(events, min_size=1, max_size=8), min_size=1, max_size=6))
def test_lifetimes_tell_the_same_as_the_heap_map(snapshots: list[list[tuple[str, int, int]]]) -> None:
    made = profile(
        *[
            [
                resource(subtype, 16 * place, 0 if subtype == "free" else amount, line=place)
                for subtype, place, amount in one
            ]
            for one in snapshots
        ]
    )
    expected = to_heap_map_format(made)
    found = lifetimes(made)
    assert found.times == [snapshot["time"] for snapshot in expected["snapshots"]]
    assert [dict(zip(("line", "function", "source"), site, strict=True)) for site in found.sites] == expected[
        "info"
    ]
    for number, snapshot in enumerate(expected["snapshots"]):
        live = [chunk for chunk in found.chunks if chunk.first <= number < chunk.end]
        told = [(chunk.address, chunk.amount, chunk.site, chunk.subtype) for chunk in sorted(live)]
        assert told == [
            (chunk["address"], chunk["amount"], chunk["uid"], chunk["subtype"]) for chunk in snapshot["map"]
        ]
    assert all(chunk.first < chunk.end <= len(found.times) for chunk in found.chunks)
    heat = to_heat_map_format(made)
    assert sum(span.size * span.times for span in found.spans) == sum(heat["map"])


def test_a_heap_that_is_spread_over_the_whole_address_space() -> None:
    found = to_heat_map_format(profile([resource("malloc", 0x1000, 1), resource("mmap", 2**47, 4096)]))
    assert len(found["map"]) <= CELLS
    assert found["map"][0] == found["map"][-1] == 1 and sum(found["map"]) <= 3
    assert found["stats"]["cell_size"] * len(found["map"]) >= 2**47 + 4096 - 0x1000


def test_uids_that_are_text_and_what_is_no_memory() -> None:
    made = Profile()
    made.update_resources([
        {"uid": "f", "address": 1, "amount": 2},
        {"uid": "f", "address": 1.5, "amount": 2},
        {"uid": "f", "address": 5, "amount": -2},
        {"uid": "f", "amount": 2},
    ])  # fmt: skip
    found = to_heap_map_format(made)
    assert found["info"] == [{"line": 0, "function": "f", "source": ""}]
    assert found["unit"] == "B"
    assert [(one["time"], one["sum_amount"]) for one in found["snapshots"]] == [("0", 2)]


@pytest.mark.parametrize("convert", [to_heap_map_format, to_heat_map_format, lifetimes])
def test_a_profile_without_memory_is_refused(convert: Any) -> None:
    made = Profile()
    made.update_resources([{"uid": "f", "amount": 1.5}])
    with pytest.raises(ProfileError, match="no resource has an address"):
        convert(made)
