"""The view of timelines: a page that needs no network, or the events for other tools."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

from perun.errors import UsageError
from perun.plugin.api import NO_VIEW_CONTEXT, ViewContext
from perun.profile.amounts import readable
from perun.profile.island import Timeline, timeline_of, usage_of
from perun.view._common.chart import command_line
from perun.view._common.files import destination, report, write_pieces
from perun.view._common.interactive import write_interactive_page
from perun.view.timeline.params import TimelineParams
from perun.view.timeline.summary import summary
from perun.wording import counted

if TYPE_CHECKING:
    from perun.profile.factory import Profile


class TimelineView:
    """Shows each thread as a row with its calls, and when the program was stopped.

    What a thread did and how much it used is told of each call, or run of like calls. The page needs no
    network; zoom and search are part of it.
    """

    name: ClassVar[str] = "timeline"
    help: ClassVar[str] = "Timeline of an island: the calls of each thread, and when the program was stopped."
    Params: ClassVar[type] = TimelineParams

    def render(
        self, profile: Profile, params: TimelineParams, out: TextIO, ctx: ViewContext = NO_VIEW_CONTEXT
    ) -> None:
        """Write the page to a file, and its name to `out`; other formats go to `out` if no file is named.

        :raises ProfileError: if the profile has no timeline.
        :raises UsageError: if `params` contradict each other, or the file cannot be written.
        """
        if params.view_in_browser and params.format != "html":
            raise UsageError(
                f"a browser cannot show --format {params.format}", "leave out --view-in-browser or --format"
            )
        if params.format == "summary":
            lines = [command_line(profile), "", *summary(usage_of(profile))]
            _write(params, (f"{line}\n" for line in lines), out)
            return
        timeline = timeline_of(profile)
        if params.format != "html":
            _export(profile, timeline, params, out)
            return
        path = destination(params.filename, self.name, profile)
        write_interactive_page(
            path,
            __file__,
            data={**timeline.as_region(), "rows": usage_rows(profile)},
            title=_title(profile, params),
            subtitle=subtitle(timeline),
            scripts=("rows.js", "tables.js", "page.js"),
        )
        report(path, out, ctx, browse=params.view_in_browser)


def usage_rows(profile: Profile) -> list[list[Any]]:
    """What the tables of the page show of the first run: thread, type, subtype, object ("" for none), amount,
    unit, calls and seconds."""
    return [
        [one.thread, one.type, one.subtype, one.uid if one.uid != one.thread else "", one.amount, one.unit,
         one.calls, one.seconds]
        for one in usage_of(profile)
        if one.order == 1
    ]  # fmt: skip


def subtitle(timeline: Timeline) -> str:
    """One line about the run: how long it took, how much was recorded, how long the program was stopped."""
    parts = [
        readable(timeline.end, "ns"),
        counted(len(timeline.threads), "thread"),
        counted(timeline.calls, "call"),
    ]
    if len(timeline.processes) > 1:
        parts.insert(1, f"{len(timeline.processes)} processes")
    if timeline.stops:
        stopped = readable(sum(duration for _, duration in timeline.stops), "ns")
        parts.append(f"stopped for {stopped} by {counted(len(timeline.stops), 'stop')}")
    entries = len(timeline.columns["start"])
    if entries != timeline.calls:
        parts.append(f"drawn as {counted(entries, 'entries'.removesuffix('s'))}")
    return ", ".join(parts)


def _title(profile: Profile, params: TimelineParams) -> str:
    return params.graph_title or f"Timeline of {command_line(profile) or 'a program'}"


def _export(profile: Profile, timeline: Timeline, params: TimelineParams, out: TextIO) -> None:
    from perun.view.timeline.exporting import pieces_of

    _write(params, pieces_of(timeline, params.format, _title(profile, params)), out)


def _write(params: TimelineParams, pieces: Iterable[str], out: TextIO) -> None:
    if not params.filename:
        for piece in pieces:
            out.write(piece)
        return
    write_pieces(Path(params.filename), pieces)
    out.write(f"{params.filename}\n")
