"""Timeline: what each thread of a program did when, and when the program was stopped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TextIO

import perun
from perun.core.wording import counted
from perun.island.layout import Api
from perun.plugin.api import NO_VIEW_CONTEXT, ViewContext
from perun.plugin.params import param
from perun.profile.amounts import readable
from perun.profile.factory import Profile
from perun.profile.island import NO_OBJECT, SEVERAL, ObjectUsage, Timeline, timeline_of, usage_of
from perun.profile.sampled import WAITING
from perun.view._common import chart_view, command_line
from perun.view._common.files import needs_page, write_interactive_page, write_or_print
from perun.view._common.screen import printable

if TYPE_CHECKING:
    from perun.island import timeline as writers


FORMATS = ("html", "summary", "text", "csv", "json", "chrome", "speedscope")


@dataclass(frozen=True)
class TimelineParams:
    """What is written, and where it goes."""

    format: str = param(
        "html",
        choices=FORMATS,
        help="A page (html); what was used and where the time went (summary); the events of all threads in "
        "the order of time as text, CSV or JSON; or a file for Perfetto and chrome://tracing (chrome) or "
        "https://www.speedscope.app (speedscope).",
    )
    filename: str = chart_view.filename(
        "Write to this file, which is replaced if it exists. Formats but html go to the terminal without it."
    )
    graph_title: str = chart_view.title("page")
    view_in_browser: bool = chart_view.view_in_browser()


# What an island used, and where its time went, as text for the terminal.

_THREADS: Final = 8
_KINDS: Final = 8
_OBJECTS: Final = 20
_WIDTH: Final = 24
"""Rows of each table, and the width of a kind."""


class _Sum(NamedTuple):
    """What several resources add up to; of several runs, the mean of a run."""

    seconds: float
    calls: float
    amount: float
    unit: str


def summary(usage: Iterable[ObjectUsage]) -> Iterator[str]:
    """The lines: where the time of all threads and of each went, and what was used of each object."""
    rows = list(usage)
    runs = max((row.order for row in rows), default=1)
    threads: dict[str, list[ObjectUsage]] = defaultdict(list)
    for row in rows:
        threads[row.thread].append(row)
    yield "Where the time went" + (f", mean of {counted(runs, 'run')}" if runs > 1 else "")
    if len(threads) > 1:
        yield from _of_thread(f"all {counted(len(threads), 'thread')}", rows, runs)
    order = sorted(threads.items(), key=lambda item: -sum(row.seconds for row in item[1]))
    for name, own in order[:_THREADS]:
        yield from _of_thread(name, own, runs)
    yield from _rest(len(order) - _THREADS, "thread")
    objects = _sums([row for row in rows if row.uid != row.thread], ("type", "subtype", "uid"), runs)
    if not objects:
        return
    yield ""
    yield "What was used"
    yield f"  {'time':>9}  {'calls':>8}  {'amount':>9}  {'kind':<{_WIDTH}} object"
    largest = sorted(objects.items(), key=lambda item: (-item[1].seconds, -item[1].amount, item[0]))
    for (kind, subtype, uid), found in largest[:_OBJECTS]:
        amount = readable(found.amount, found.unit)
        yield (
            f"  {readable(found.seconds, 's'):>9}  {found.calls:>8,.10g}  {amount:>9}"
            f"  {_kind(kind, subtype):<{_WIDTH}} {printable(uid)}"
        )
    yield from _rest(len(largest) - _OBJECTS, "object")


def _of_thread(name: str, rows: Sequence[ObjectUsage], runs: int) -> Iterator[str]:
    kinds = _sums(rows, ("type", "subtype"), runs)
    live = sum(one.seconds for one in kinds.values())
    yield f"  {printable(name)}: {readable(live, 's')}"
    largest = sorted(
        ((key, one) for key, one in kinds.items() if one.seconds), key=lambda item: -item[1].seconds
    )
    for key, found in largest[:_KINDS]:
        yield f"    {found.seconds / live:>6.1%}  {readable(found.seconds, 's'):>9}  {_kind(*key)}"
    yield from _rest(len(largest) - _KINDS, "kind")


def _rest(count: int, noun: str) -> Iterator[str]:
    if count > 0:
        yield f"  and {counted(count, noun)} more"


def _sums(rows: Iterable[ObjectUsage], keys: Sequence[str], runs: int) -> dict[tuple[str, ...], _Sum]:
    found: dict[tuple[str, ...], _Sum] = {}
    for row in rows:
        key = tuple(getattr(row, name) for name in keys)
        before = found.get(key, _Sum(0.0, 0.0, 0.0, row.unit))
        found[key] = _Sum(
            before.seconds + row.seconds / runs,
            before.calls + row.calls / runs,
            before.amount + row.amount / runs,
            row.unit,
        )
    return found


def _kind(kind: str, subtype: str) -> str:
    return kind if kind == subtype else f"{kind} {subtype}"


class TimelineView:
    """Shows each thread as a row with its calls, and when the program was stopped; or with the functions in
    which it was sampled.

    What a thread did and how much it used is told of each call, or run of like calls. The page needs no
    network; zoom and search are part of it.
    """

    name: ClassVar[str] = "timeline"
    help: ClassVar[str] = "Timeline of samples or an island: what each thread did when."
    Params: ClassVar[type] = TimelineParams

    def render(
        self, profile: Profile, params: TimelineParams, out: TextIO, ctx: ViewContext = NO_VIEW_CONTEXT
    ) -> None:
        """Write the page to a file, and its name to `out`; other formats go to `out` if no file is named.

        :raises ProfileError: if the profile has no timeline.
        :raises UsageError: if `params` contradict each other, or the file cannot be written.
        """
        needs_page(params.format, browse=params.view_in_browser)
        if params.format == "summary":
            lines = [command_line(profile), "", *summary(usage_of(profile))]
            write_or_print(params.filename, (f"{line}\n" for line in lines), out)
            return
        timeline = timeline_of(profile)
        if params.format != "html":
            pieces = pieces_of(timeline, params.format, _title(profile, params))
            write_or_print(params.filename, pieces, out)
            return
        write_interactive_page(
            *(profile, params, out, ctx, __file__),
            data={**timeline.as_region(), "rows": usage_rows(profile), "noun": timeline.noun},
            title=_title(profile, params),
            subtitle=subtitle(timeline),
            scripts=("rows.js", "tables.js", "page.js"),
        )


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
        counted(timeline.calls, timeline.noun),
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


# Timelines of profiles for other programs, by the writers of :mod:`perun.island`.


def pieces_of(timeline: Timeline, form: str, name: str) -> Iterable[str]:
    """The timeline in one of the formats but html, piece by piece.

    :param name: of the program.
    """
    from perun.island import timeline as writers

    lanes = [writers.Lane(one.process, one.name, one.created, one.destroyed) for one in timeline.threads]
    stops = [(start, start + duration) for start, duration in timeline.stops]
    is_trace = form in ("chrome", "speedscope")
    spans = _spans(timeline, by_function=is_trace and timeline.noun == "sample")
    if is_trace:
        write = writers.chrome if form == "chrome" else writers.speedscope
        return write(lanes, spans, stops, name=name, exporter=f"perun {perun.__version__}")
    return {"text": writers.text, "csv": writers.comma_separated, "json": writers.json_lines}[form](
        lanes, spans, stops
    )


def _spans(timeline: Timeline, *, by_function: bool) -> Iterator[writers.CallSpan]:
    """The entries in the order of their starts; with the functions of samples in place of what they did."""
    from perun.island import timeline as writers

    apis = [Api(one.name, one.type, one.subtype, "", one.unit, False) for one in timeline.apis]
    others = {SEVERAL: "(several)", NO_OBJECT: ""}
    for entry in sorted(timeline.entries(), key=lambda entry: entry.start):
        api = apis[entry.api]
        name = others[entry.object] if entry.object < 0 else timeline.objects[entry.object]
        if by_function:
            label = f"waits in {name}" if api.subtype == WAITING else name
            api, name = Api(label, api.type, api.subtype, "", api.unit, False), ""
        yield writers.CallSpan(
            timeline.threads[entry.thread].process,
            entry.thread,
            api,
            name,
            entry.start,
            entry.start + entry.duration,
            entry.amount,
            entry.calls,
        )


PLUGIN = TimelineView
