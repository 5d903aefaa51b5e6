"""Importer of pyperf's JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from perun.importer._common import benchmark, moment_of, number, of_machine
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.plugin.suites import BenchmarkValue

_UNITS: Final = {
    "second": ("time", "", "s"), "byte": ("memory", "peak", "B"), "integer": ("printed", "", ""),
}  # fmt: skip

_ARCHITECTURE: Final = re.compile(r"x86_64|aarch64|arm64|riscv64|ppc64le|s390x")


class PyperfImporter:
    """Reads the values of all runs as samples; runs that only choose the loops have none."""

    name: ClassVar[str] = "pyperf"
    help: ClassVar[str] = "pyperf's JSON, by -o or --append."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """JSON with the runs of benchmarks, and their warmups or metadata."""
        return (
            head.lstrip()[:1] == b"{" and b'"runs"' in head and b'"metadata"' in head
            and (b'"warmups"' in head or b'"values"' in head or b'"perf_version"' in head)
        )  # fmt: skip

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each benchmark."""
        whole = file.json()
        common = whole.get("metadata") or {}
        for one in whole["benchmarks"]:
            about: dict[str, Any] = {**common, **(one.get("metadata") or {})}
            runs = one["runs"]
            samples = [number(value) for run in runs for value in run.get("values") or ()]
            first = {**about, **(runs[0].get("metadata") or {})} if runs else about
            kind = _UNITS[first.get("unit", "second")]
            for found in benchmark(
                self.name, self.name, str(about.get("name") or "benchmark"),
                [BenchmarkValue(*kind, tuple(samples))], moment=moment_of(first.get("date")),
            ):  # fmt: skip
                names = _ARCHITECTURE.findall(str(about.get("platform")))
                cpu = about.get("cpu_model_name")
                yield of_machine(found, cpu, about.get("cpu_count"), names[0] if names else None)


PLUGIN = PyperfImporter
