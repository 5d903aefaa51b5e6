"""Exporter of the text of `go test -bench`, which benchstat compares:
https://go.dev/design/14313-benchmark-format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from perun.exporter._common import BenchmarkSeries, Note, series_of
from perun.plugin.params import NoParams
from perun.profile.factory import Profile

_UNITS: Final = {"allocated": "B/op", "allocations": "allocs/op"}


class BenchstatExporter:
    """Writes a line for each sample, with all metrics that have as many."""

    name: ClassVar[str] = "benchstat"
    help: ClassVar[str] = "Lines as go test -bench prints them, for benchstat."
    suffix: ClassVar[str] = ".txt"
    Params: ClassVar[type] = NoParams

    def write(self, profile: Profile, params: NoParams, note: Note) -> Iterator[bytes]:
        """The lines."""
        by_name: dict[str, list[BenchmarkSeries]] = {}
        for one in series_of(profile):
            by_name.setdefault(_name(one), []).append(one)
        for name, own in by_name.items():
            own.sort(key=lambda one: not one.is_time)  # benchstat shows the first metric first
            for place in range(max(len(one.samples) for one in own)):
                cells = [_cell(one, place) for one in own if place < len(one.samples)]
                yield "\t".join([name, "1", *cells, ""]).rstrip("\t").encode() + b"\n"


def _name(one: BenchmarkSeries) -> str:
    """A name as Go has it: a word that begins with `Benchmark`."""
    parts = "/".join(filter(None, [one.name, one.parameters]))
    word = re.sub(r"\s+", "_", parts)
    last = word.rpartition(".Benchmark")
    if last[1]:
        return f"Benchmark{last[2]}"
    return word if word.startswith("Benchmark") else f"Benchmark{word[:1].upper()}{word[1:]}"


def _cell(one: BenchmarkSeries, place: int) -> str:
    value = one.samples[place]
    if one.is_time:
        return f"{value * 1e9:.10g} ns/op"
    label = one.subtype or one.type
    unit = _UNITS.get(label) or (f"{label}-ns/op" if one.unit == "s" else one.unit or label)
    amount = value * 1e9 if one.unit == "s" else value
    return f"{amount:.10g} {re.sub(chr(92) + 's+', '_', unit)}"


PLUGIN = BenchstatExporter
