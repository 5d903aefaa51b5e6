"""The heap map view: the snapshots of a memory profile as one page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

from perun.errors import ProfileError
from perun.plugin.api import ALONE, ViewContext
from perun.plugin.params import param

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.profile.heap import Lifetimes


@dataclass(frozen=True)
class HeapParams:
    """Where the page goes and what it shows at first."""

    filename: str = param(
        "",
        short="-f",
        metavar="<html>",
        help="Sets the output file of the page; replaced where it exists. By default a new file named after "
        "the profile.",
    )
    graph_title: str = param("", short="-gt", metavar="<text>", help="Sets the custom title of the page.")
    heat: bool = param(False, help="The page starts with the heat map over all snapshots.")
    view_in_browser: bool = param(
        False, short="-v", help="The generated page will be immediately opened in the browser."
    )


class HeapMapView:
    """Shows the address space of a memory profile: what lies where, snapshot by snapshot.

    The heat map tells over all snapshots how often memory was allocated at each address. The page needs no
    network.
    """

    name: ClassVar[str] = "heapmap"
    help: ClassVar[str] = "Heap map of the memory that is allocated in each snapshot."
    Params: ClassVar[type] = HeapParams

    def render(self, profile: Profile, params: HeapParams, out: TextIO, ctx: ViewContext = ALONE) -> None:
        """Write the page to a file, whose name `out` gets.

        :raises ProfileError: where the profile has no memory with addresses.
        :raises UsageError: where the file cannot be written.
        """
        from perun.profile.heap import lifetimes
        from perun.view._common.files import destination

        found = lifetimes(profile)
        if not found.allocations:
            raise ProfileError(
                "nothing was allocated, only released", "collect a profile with perun collect memory"
            )
        path = destination(params.filename, self.name, profile)
        _write_page(path, profile, found, params)
        out.write(f"{path}\n")
        if params.view_in_browser:
            from perun.view._common.browser import open_in_browser

            open_in_browser(path, ctx)


def _write_page(path: Path, profile: Profile, found: Lifetimes, params: HeapParams) -> None:
    from string import Template

    from perun.view._common import numbers
    from perun.view._common.look import CSS
    from perun.view._common.page import beside, data_block, escape, write_page

    what = profile.configuration
    command = " ".join(part for part in (what.cmd, what.args, what.workload) if part)
    title = params.graph_title or f"Heap map of {command or 'a profile'}"
    body = Template(beside(__file__, "page.html")).substitute(
        title=escape(title), data=data_block("data", {**document(profile, found), "heat": params.heat})
    )
    write_page(
        path,
        title=title,
        body=body,
        style=CSS + beside(__file__, "page.css"),
        scripts=[beside(numbers.__file__, "numbers.js") + beside(__file__, "page.js")],
    )


def document(profile: Profile, found: Lifetimes) -> dict[str, Any]:
    """What the page reads: chunks as columns, with places of :class:`~perun.view.heapmap.layout.Layout`.

    Addresses are text, as a browser's numbers have 53 bits.
    """
    from perun.view._common.look import PALETTE, RAMP
    from perun.view.heapmap.layout import counts_of, layout_of

    layout = layout_of(found.allocations)
    cell, counts = counts_of(found.allocations, layout)
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
        "allocations": len(found.allocations),
        "palette": PALETTE,
        "ramp": RAMP,
    }
