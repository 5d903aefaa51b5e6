"""The heap map view: the snapshots of a memory profile as one page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

from perun.errors import ProfileError
from perun.plugin.api import NO_VIEW_CONTEXT, ViewContext
from perun.plugin.params import param
from perun.profile.heap import lifetimes
from perun.profile.memory import notes, totals
from perun.view._common import options
from perun.view._common.chart import command_line
from perun.view._common.files import destination, report
from perun.view._common.interactive import write_interactive_page
from perun.view.heapmap.layout import counts_of, layout_of

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.profile.heap import Lifetimes


@dataclass(frozen=True)
class HeapParams:
    """Where the page goes, and what it shows at first."""

    filename: str = options.filename()
    graph_title: str = options.title("page")
    heat: bool = param(False, help="Start the page with the heat map of all snapshots.")
    view_in_browser: bool = options.view_in_browser()


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
        path = destination(params.filename, self.name, profile)
        write_interactive_page(
            path,
            __file__,
            data={**document(profile, found), "heat": params.heat},
            title=params.graph_title or f"Heap map of {command_line(profile) or 'a profile'}",
        )
        report(path, out, ctx, browse=params.view_in_browser)


def document(profile: Profile, found: Lifetimes) -> dict[str, Any]:
    """The data of the page: chunks as columns, with places of :class:`~perun.view.heapmap.layout.Layout`.

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
