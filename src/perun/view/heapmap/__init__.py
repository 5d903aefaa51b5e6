"""Heap map: the heap by address, snapshot by snapshot, and a heat map of all allocations."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Final, NamedTuple, TextIO

from perun.core.errors import ProfileError
from perun.plugin.api import NO_VIEW_CONTEXT, ViewContext
from perun.plugin.params import param
from perun.profile.factory import Profile
from perun.profile.memory import Lifetimes, lifetimes, notes, totals
from perun.view._common import chart_view, command_line
from perun.view._common.files import write_interactive_page

# Places of addresses on a page: rows of equal length, without the vast unused parts of an address space.

ROWS: Final = 48
"""The approximate number of rows of a heap in one piece."""
CELLS: Final = 256
"""The largest number of cells in a row of the heat map."""

_REGIONS: Final = 40
_SMALLEST_ROW: Final = 64
_SMALLEST_GAP: Final = 1 << 16
"""An unused part of at most this size (bytes) is always shown."""


class Region(NamedTuple):
    """A part of the address space.

    :param start: its first row, counted from address 0. :param row: its first row on the page.
    :param rows: its number of rows.
    """

    start: int
    row: int
    rows: int


class AddressLayout(NamedTuple):
    """The places of addresses on the page.

    :param row_size: bytes in a row, a power of two; each row starts at a multiple of it.
    :param regions: the parts of the address space in ascending order.
    """

    row_size: int
    regions: list[Region]

    @property
    def rows(self) -> int:
        """The number of rows of all regions."""
        return sum(region.rows for region in self.regions)

    def places(self, addresses: Iterable[int]) -> list[int]:
        """The place of each address: its row on the page times the size of a row, plus its offset in the row.

        The addresses must be among those that the layout is made of.
        """
        starts = [region.start for region in self.regions]
        shifts = [(region.row - region.start) * self.row_size for region in self.regions]
        return [address + shifts[bisect_right(starts, address // self.row_size) - 1] for address in addresses]


def layout_of(spans: Sequence[tuple[int, int]]) -> AddressLayout:
    """The layout for memory at `spans`, each an address and a positive size in bytes; at least one."""
    pieces = _pieces(spans)
    # The next power of two: row boundaries are round addresses then, which a reader can compare.
    extent = sum(last - first + 1 for first, last in pieces)
    row_size = max(_SMALLEST_ROW, 1 << (-(-extent // ROWS) - 1).bit_length())
    rows: list[tuple[int, int]] = []
    for first, last in pieces:
        start, end = first // row_size, last // row_size
        if rows and start <= rows[-1][1] + 1:
            rows[-1] = rows[-1][0], end
        else:
            rows.append((start, end))
    regions: list[Region] = []
    row = 0
    for start, end in rows:
        regions.append(Region(start, row, end - start + 1))
        row += end - start + 1
    return AddressLayout(row_size, regions)


def counts_of(
    spans: Sequence[tuple[int, int]], layout: AddressLayout, times: Iterable[int] | None = None
) -> tuple[int, list[int]]:
    """The size of a cell in bytes, and the number of allocations of each cell, row by row.

    :param times: how often each span was allocated; by default, once.
    """
    cell = max(1, layout.row_size // CELLS)
    # Only where a count changes is noted for each span; the running sum gives the counts of all cells.
    steps = [0] * (layout.rows * (layout.row_size // cell) + 1)
    places = layout.places(address for address, _ in spans)
    each = [1] * len(spans) if times is None else times
    for place, (_, amount), number in zip(places, spans, each, strict=True):
        steps[place // cell] += number
        steps[(place + amount - 1) // cell + 1] -= number
    return cell, list(accumulate(steps))[:-1]


def _pieces(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """First and last addresses of the parts of the heap that wide gaps without any allocation separate."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted((address, address + amount - 1) for address, amount in spans):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    gaps = sorted((after[0] - before[1] - 1 for before, after in pairwise(joined)), reverse=True)
    # A hole in the heap is fragmentation, which the map has to show; the gap to a mapped file is not.
    least = max(_SMALLEST_GAP, sum(last - first + 1 for first, last in joined) // 4)
    if len(gaps) >= _REGIONS:
        least = max(least, gaps[_REGIONS - 1])
    pieces: list[tuple[int, int]] = []
    for first, last in joined:
        if pieces and first - pieces[-1][1] - 1 <= least:
            pieces[-1] = pieces[-1][0], last
        else:
            pieces.append((first, last))
    return pieces


@dataclass(frozen=True)
class HeapParams:
    """Where the page goes, and what it shows at first."""

    filename: str = chart_view.filename()
    graph_title: str = chart_view.title("page")
    heat: bool = param(False, help="Start the page with the heat map of all snapshots.")
    view_in_browser: bool = chart_view.view_in_browser()


class HeapMapView:
    """Shows the heap of a memory profile: the allocated chunks by address, snapshot by snapshot.

    The heat map counts the allocations at each address over all snapshots. The page needs no network.
    """

    name: ClassVar[str] = "heapmap"
    help: ClassVar[str] = "Heap map: which addresses are allocated in each snapshot."
    Params: ClassVar[type] = HeapParams

    def render(
        self, profile: Profile, params: HeapParams, out: TextIO, ctx: ViewContext = NO_VIEW_CONTEXT
    ) -> None:
        """Write the page to a file, and its name to `out`.

        :raises ProfileError: if the profile has no memory with addresses.
        :raises UsageError: if the file cannot be written.
        """
        found = lifetimes(profile)
        if not found.spans:
            raise ProfileError(
                "the profile has no allocations to show, only releases of memory",
                "collect a new profile with: perun collect memory",
            )
        write_interactive_page(
            *(profile, params, out, ctx, __file__),
            data={**document(profile, found), "heat": params.heat},
            title=params.graph_title or f"Heap map of {command_line(profile) or 'a profile'}",
        )


def document(profile: Profile, found: Lifetimes) -> dict[str, Any]:
    """The data of the page: chunks as columns, with places of :class:`~perun.view.heapmap.AddressLayout`.

    Sizes are in the unit of the profile (bytes). Addresses are text, as numbers of JavaScript have 53 bits
    only.
    """
    spans = [(span.address, span.size) for span in found.spans]
    layout = layout_of(spans)
    cell, counts = counts_of(spans, layout, [span.times for span in found.spans])
    chunks = found.chunks
    subtypes = sorted({chunk.subtype for chunk in chunks})
    number = {subtype: place for place, subtype in enumerate(subtypes)}
    places = layout.places(chunk.address for chunk in chunks)
    units = profile.get("header", {}).get("units", {})
    return {
        "unit": str(units.get("memory", "B")),
        "times": found.times,
        "sites": [
            {"line": line if type(line) is int else 0, "function": function, "source": source}
            for line, function, source in found.sites
        ],
        "subtypes": subtypes,
        "rowSize": layout.row_size,
        "regions": [
            {"address": str(region.start * layout.row_size), "row": region.row, "rows": region.rows}
            for region in layout.regions
        ],
        "places": places,
        "amounts": [chunk.amount for chunk in chunks],
        "owners": [chunk.site for chunk in chunks],
        "kinds": [number[chunk.subtype] for chunk in chunks],
        "firsts": [chunk.first for chunk in chunks],
        "ends": [chunk.end for chunk in chunks],
        "cell": cell,
        "counts": counts,
        "allocations": found.allocations,
        "single": found.single,
        "totals": _totals(profile),
        "notes": notes(profile),
    }


def _totals(profile: Profile) -> dict[str, float]:
    """The totals of the run that the page names; empty where the profile does not know them."""
    known = totals(profile)
    if known is None:
        return {}
    return {"peak": known.peak, "allocated": known.allocated, "leaked": known.leaked}


PLUGIN = HeapMapView
