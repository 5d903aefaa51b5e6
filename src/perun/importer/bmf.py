"""Importer of the Bencher Metric Format: https://bencher.dev/docs/reference/bencher-metric-format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from perun.importer._common import benchmark, number
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.plugin.suites import PRINTED, BenchmarkValue

_MEASURES: Final = {
    "latency": ("time", "", "s", 1e-9, False), "throughput": (PRINTED, "throughput", "ops/s", 1.0, True),
}  # fmt: skip
"""Measures that Bencher has built in: a latency is in nanoseconds."""


class BmfImporter:
    """Reads the values, which are means: the format has no samples."""

    name: ClassVar[str] = "bmf"
    help: ClassVar[str] = "Bencher Metric Format (JSON); it has values without samples."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """JSON with values below measures, and nothing that other formats have."""
        if head.lstrip()[:1] != b"{" or b'"value"' not in head:
            return False
        return any(word in head for word in (b'"lower_value"', b'"upper_value"', b'"latency"'))

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each benchmark and type."""
        for name, measures in file.json().items():
            values = []
            for measure, one in measures.items():
                plain = measure.rpartition("/")[2]
                kind, subtype, unit, scale, more = _MEASURES.get(plain, (PRINTED, plain, "", 1.0, False))
                values.append(BenchmarkValue(kind, subtype, unit, (number(one["value"]) * scale,), more))
            yield from benchmark(self.name, "bencher", str(name), values, means=True)


PLUGIN = BmfImporter
