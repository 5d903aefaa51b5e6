"""Addresses as places on a page."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import ProfileError
from perun.profile.factory import Profile
from perun.view.heapmap import CELLS, PLUGIN, ROWS, HeapParams, counts_of, layout_of

SPANS = st.lists(
    st.tuples(st.one_of(st.integers(0, 5000), st.integers(0, 2**64)), st.integers(1, 2**20)),
    min_size=1,
    max_size=60,
)


@given(SPANS)
def test_every_address_has_a_place_of_its_own_in_the_order_of_addresses(spans: list[tuple[int, int]]) -> None:
    layout = layout_of(spans)
    addresses = sorted({address for address, amount in spans for address in (address, address + amount - 1)})
    places = layout.places(addresses)
    assert places == sorted(set(places))
    assert 0 <= places[0] < layout.row_size
    assert places[-1] < layout.rows * layout.row_size
    for address, amount in spans:  # a chunk is in one piece
        first, last = layout.places([address, address + amount - 1])
        assert last - first == amount - 1
    for place, address in zip(places, addresses, strict=True):
        assert place % layout.row_size == address % layout.row_size
    assert layout.row_size & (layout.row_size - 1) == 0
    assert layout.rows <= ROWS + 2 * len(layout.regions) + 1
    assert len(layout.regions) <= 41


@given(SPANS)
def test_cells_count_the_allocations_that_touch_them(spans: list[tuple[int, int]]) -> None:
    layout = layout_of(spans)
    cell, counts = counts_of(spans, layout)
    assert len(counts) == layout.rows * layout.row_size // cell
    assert layout.row_size // cell <= CELLS
    touched = 0
    for place, (_, amount) in zip(layout.places(address for address, _ in spans), spans, strict=True):
        touched += (place + amount - 1) // cell - place // cell + 1
    assert sum(counts) == touched
    assert min(counts) >= 0


def test_what_lies_far_apart_is_in_regions_of_its_own() -> None:
    layout = layout_of([(0x55D0C0DE1000, 4096), (0x55D0C0DE9000, 4096), (0x7F3A00000000, 65536)])
    assert [region.start * layout.row_size for region in layout.regions] == [0x55D0C0DE1000, 0x7F3A00000000]


def test_holes_in_a_heap_stay() -> None:
    assert len(layout_of([(0, 10), (60_000, 10)]).regions) == 1
    assert len(layout_of([(number << 22, 1 << 21) for number in range(100)]).regions) == 1


def data_of(profile: Profile, tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "x.html"
    PLUGIN().render(profile, HeapParams(filename=str(path)), io.StringIO())
    found = re.search(r'id="data">(.*?)</script>', path.read_text("utf-8"))
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_what_the_page_reads(tmp_path: Path) -> None:
    def resource(subtype: str, address: int, amount: int) -> dict[str, Any]:
        return {"subtype": subtype, "address": address, "amount": amount, "uid": {"function": "f", "line": 3}}

    data = data_of(
        Profile(header={"type": "memory", "units": {"memory": "B"}}, snapshots=[
            {"time": "0.1", "resources": [resource("malloc", 70, 8), resource("calloc", 200, 4)]},
            {"time": "0.2", "resources": [resource("free", 70, 0)]},
        ]),
        tmp_path,
    )  # fmt: skip
    assert data["times"] == ["0.1", "0.2"]
    assert data["sites"] == [{"line": 3, "function": "f", "source": ""}]
    assert data["regions"] == [{"address": "64", "row": 0, "rows": 3}]
    assert data["rowSize"] == 64
    assert [data[name] for name in ("places", "amounts", "firsts", "ends", "kinds")] == [
        [6, 136], [8, 4], [0, 0], [1, 2], [1, 0],
    ]  # fmt: skip
    assert data["subtypes"] == ["calloc", "malloc"]
    assert sum(data["counts"]) == 12


def test_profiles_without_a_heap(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="no resource has an address"):
        data_of(Profile(header={"type": "time"}), tmp_path)
    released = Profile(header={"type": "memory"})
    released.update_resources([{"uid": "f", "subtype": "free", "address": 4, "amount": 0}])
    with pytest.raises(ProfileError, match="no allocations to show, only releases"):
        data_of(released, tmp_path)
