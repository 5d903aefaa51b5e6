"""Importer of hyperfine's `--export-json`: of releases 1, and of 2, which has several metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from perun.importer._common import as_parameters, benchmark, moment_of, number, numbers, time
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.plugin.suites import PRINTED, BenchmarkValue

_METRICS: Final = {
    "time_wall_clock": ("time", "", "s"), "time_user": ("time", "user", "s"),
    "time_system": ("time", "sys", "s"), "memory_peak_resident": ("memory", "peak", "B"),
}  # fmt: skip
"""Metrics of schema 2, to type, subtype and unit of resources; `time_cpu` is the sum of two others."""
_DERIVED: Final = ("time_cpu", "exit_code")


class HyperfineImporter:
    """Reads the time of each run; a command is a benchmark, with its parameters."""

    name: ClassVar[str] = "hyperfine"
    help: ClassVar[str] = "hyperfine --export-json, of releases 1 and 2."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """JSON with results of commands."""
        marks = (b'"times"', b'"measurements"', b'"exit_codes"')
        return (
            head.lstrip()[:1] == b"{" and b'"results"' in head and b'"command"' in head
            and any(mark in head for mark in marks)
        )  # fmt: skip

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each command and type."""
        whole = file.json()
        version = whole.get("schema_version") or (whole.get("metadata") or {}).get("json_schema_version", 1)
        if version not in (1, 2):
            raise file.wrong(f"its schema has version {version!r:.20}, of which 1 and 2 are known")
        moment = moment_of((whole.get("metadata") or {}).get("start_time"))
        for one in whole["results"]:
            values = list(_runs(one) if version == 2 else _times(one))
            means = not any(found.samples for found in values)
            if means:
                values = [time(number(one["mean"]))]
            yield from benchmark(
                self.name, self.name, str(one["command"]), values,
                parameters=as_parameters(one.get("parameters")), moment=moment, means=means,
            )  # fmt: skip


def _times(one: Mapping[str, Any]) -> Iterator[BenchmarkValue]:
    yield time(*numbers(one.get("times") or []))
    yield BenchmarkValue("memory", "peak", "B", numbers(one.get("memory_usage_byte") or []))


def _runs(one: Mapping[str, Any]) -> Iterator[BenchmarkValue]:
    """The metrics that all runs have."""
    runs = one.get("measurements") or []
    names = [name for name in (runs[0] if runs else ()) if name not in _DERIVED]
    for name in names:
        cells = [run.get(name) for run in runs]
        if all(isinstance(cell, Mapping) and "value" in cell for cell in cells):
            kind, subtype, unit = _METRICS.get(name, (PRINTED, name, ""))
            yield BenchmarkValue(kind, subtype, unit, tuple(number(cell["value"]) for cell in cells))


PLUGIN = HyperfineImporter
