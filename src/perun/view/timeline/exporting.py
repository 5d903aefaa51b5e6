"""Timelines of profiles for other programs, by the writers of :mod:`perun.island`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import perun
from perun.island import exports
from perun.island import timeline as writers
from perun.island.layout import Api
from perun.profile.island import NO_OBJECT, SEVERAL, Timeline


def pieces_of(timeline: Timeline, form: str, name: str) -> Iterable[str]:
    """The timeline in one of the formats but html, piece by piece.

    :param name: of the program.
    """
    lanes = [writers.Lane(one.process, one.name, one.created, one.destroyed) for one in timeline.threads]
    stops = [(start, start + duration) for start, duration in timeline.stops]
    spans = _spans(timeline)
    if form in ("chrome", "speedscope"):
        write = exports.chrome if form == "chrome" else exports.speedscope
        return write(lanes, spans, stops, name=name, exporter=f"perun {perun.__version__}")
    return {"text": writers.text, "csv": writers.comma_separated, "json": writers.json_lines}[form](
        lanes, spans, stops
    )


def _spans(timeline: Timeline) -> Iterator[writers.Span]:
    """The entries in the order of their starts."""
    apis = [Api(one.name, one.type, one.subtype, "", one.unit, False) for one in timeline.apis]
    others = {SEVERAL: "(several)", NO_OBJECT: ""}
    for entry in sorted(timeline.entries(), key=lambda entry: entry.start):
        yield writers.Span(
            timeline.threads[entry.thread].process,
            entry.thread,
            apis[entry.api],
            others[entry.object] if entry.object < 0 else timeline.objects[entry.object],
            entry.start,
            entry.start + entry.duration,
            entry.amount,
            entry.calls,
        )
