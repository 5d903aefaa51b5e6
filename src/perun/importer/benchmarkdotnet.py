"""Importer of BenchmarkDotNet: the JSON of its exporters `JsonExporter.Full`, `FullCompressed` and `Brief`.

https://benchmarkdotnet.org/articles/configs/exporters.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from perun.importer._common import benchmark, number, numbers, time
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.plugin.suites import BenchmarkValue


class BenchmarkdotnetImporter:
    """Reads the time of each iteration, and the bytes that an operation allocates."""

    name: ClassVar[str] = "benchmarkdotnet"
    help: ClassVar[str] = "BenchmarkDotNet's JSON, by --exporters json."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """JSON that tells the version of BenchmarkDotNet."""
        return head.lstrip()[:1] == b"{" and b'"BenchmarkDotNetVersion"' in head

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each benchmark and type."""
        for row in file.json()["Benchmarks"]:
            told = row.get("Statistics")
            if not told:
                ctx.note(f"{row['Method']} of {file.name} failed, and is left out")
                continue
            samples = numbers(told.get("OriginalValues") or [])  # in nanoseconds
            values = [time(*(one / 1e9 for one in samples or [number(told["Mean"])]))]
            allocated = (row.get("Memory") or {}).get("BytesAllocatedPerOperation")
            if allocated is not None:
                values.append(BenchmarkValue("memory", "allocated", "B", (number(allocated),), is_count=True))
            parts = (row.get("Namespace"), row["Type"], row["Method"])
            name = ".".join(str(part) for part in parts if part)
            words = str(row.get("Parameters") or "")
            yield from benchmark(
                self.name, self.name, name, values, parameters=words, means=not samples
            )  # fmt: skip


PLUGIN = BenchmarkdotnetImporter
