"""Importer of what `go test -bench` prints: https://go.dev/design/14313-benchmark-format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from os.path import commonpath
from typing import ClassVar, Final

from perun.importer._common import benchmark, number
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.plugin.suites import PRINTED, BenchmarkValue

_RESULT: Final = re.compile(r"(Benchmark[A-Z_\d]?\S*)\s+(\d{1,18})\s+(\d.*)")
_PROCESSORS: Final = re.compile(r"-\d+$")
_UNITS: Final = {
    "ns/op": ("time", "", "s"), "B/op": ("memory", "allocated", "B"),
    "allocs/op": ("memory", "allocations", ""),
}  # fmt: skip


class GoImporter:
    """Reads each line as a sample: `-count 10` gives ten."""

    name: ClassVar[str] = "go"
    help: ClassVar[str] = "What go test -bench prints, also as benchstat reads it."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """A line of a result, in text of lines."""
        text = head.decode("utf-8", "replace")
        return any(_RESULT.match(line) and "/op" in line for line in text.split("\n"))

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each benchmark and type."""
        package = ""
        found: dict[tuple[str, str], dict[str, list[float]]] = {}
        for line in file.lines():
            key, colon, value = line.partition(": ")
            if key == "pkg" and colon:
                package = value.strip()
            result = _RESULT.match(line)
            if result is None:
                continue
            words = result[3].split()
            own = found.setdefault((package, _PROCESSORS.sub("", result[1])), {})
            for amount, unit in zip(words[::2], words[1::2], strict=False):
                own.setdefault(unit, []).append(number(amount))
        packages = {one for one, _ in found if one}
        shared = commonpath(packages) if len(packages) > 1 else "".join(packages)
        for (package, path), measured in found.items():
            top, _, parameters = path.partition("/")
            within = package[len(shared) :].strip("/")
            yield from benchmark(
                self.name, "go test -bench", f"{within}.{top}" if within else top, _values(measured),
                parameters=parameters,
            )  # fmt: skip


def _values(measured: dict[str, list[float]]) -> list[BenchmarkValue]:
    values = []
    for unit, samples in measured.items():
        kind, subtype, own = _UNITS.get(unit, (PRINTED, unit, unit))
        scale = 1e9 if unit == "ns/op" else 1
        values.append(
            BenchmarkValue(
                kind, subtype, own, tuple(one / scale for one in samples), unit.endswith("/s"))
        )  # fmt: skip
    return values


PLUGIN = GoImporter
