"""Importer of Google Benchmark's JSON (`--benchmark_out`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from perun.importer._common import benchmark, moment_of, number
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.plugin.suites import PRINTED, BenchmarkValue

_PARAMETER: Final = re.compile(r"-?\d[\w.+-]*|\w+:(?!:).*|real_time|process_time|manual_time")
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_FIELDS: Final = frozenset({
    "family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations",
    "real_time", "cpu_time", "error_occurred", "skipped",
})  # fmt: skip
_MEMORY: Final = {
    "allocs_per_iter": ("memory", "allocations", "", True), "max_bytes_used": ("memory", "peak", "B", False),
    "total_allocated_bytes": ("memory", "allocated", "B", False),
}  # fmt: skip
_RATES: Final = {"bytes_per_second": "B/s", "items_per_second": "items/s"}


class GoogleBenchmarkImporter:
    """Reads repetitions as samples; where there are only aggregates, their mean."""

    name: ClassVar[str] = "google_benchmark"
    help: ClassVar[str] = "Google Benchmark's JSON, by --benchmark_out."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """JSON with a context of Google Benchmark."""
        return head.lstrip()[:1] == b"{" and b'"context"' in head and b'"num_cpus"' in head

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each benchmark and type."""
        whole = file.json()
        moment = moment_of(whole["context"].get("date"))
        rows: dict[str, list[Mapping[str, Any]]] = {}
        for row in whole["benchmarks"]:
            if row.get("error_occurred") or row.get("skipped"):
                reason = row.get("error_message") or row.get("skip_message") or "skipped"
                ctx.note(f"{row['name']} of {file.name} measured nothing: {reason}")
            else:
                rows.setdefault(str(row.get("run_name") or row["name"]), []).append(row)
        for name, own in rows.items():
            singles = [row for row in own if row.get("run_type", "iteration") == "iteration"]
            shown = singles or [row for row in own if row.get("aggregate_name") == "mean"]
            parts = name.split("/")
            end = next((at for at in range(1, len(parts)) if _PARAMETER.fullmatch(parts[at])), len(parts))
            yield from benchmark(
                self.name, "google benchmark", "/".join(parts[:end]), _values(shown),
                parameters="/".join(parts[end:]), moment=moment, means=not singles,
            )  # fmt: skip


def _values(rows: list[Mapping[str, Any]]) -> list[BenchmarkValue]:
    values: dict[tuple[str, str, str, bool], list[float]] = {}
    for row in rows:
        scale = _SECONDS[row.get("time_unit", "ns")]
        for field, subtype in (("real_time", ""), ("cpu_time", "cpu")):
            if field in row:
                values.setdefault(("time", subtype, "s", False), []).append(number(row[field]) * scale)
        for field, value in row.items():
            if field not in _FIELDS and isinstance(value, (int, float)) and not isinstance(value, bool):
                kind = _MEMORY.get(field, (PRINTED, field, _RATES.get(field, ""), False))
                values.setdefault(kind, []).append(number(value))
    size = max(map(len, values.values()), default=0)
    return [
        BenchmarkValue(kind, subtype, unit, tuple(own), subtype.endswith("_per_second"), counted)
        for (kind, subtype, unit, counted), own in values.items()
        if len(own) == size
    ]


PLUGIN = GoogleBenchmarkImporter
