"""Importer of tables of two columns: the name of a benchmark, and a value; each row is a sample."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from perun.importer._common import benchmark, number, unit_of
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import param
from perun.plugin.suites import BenchmarkValue


@dataclass(frozen=True)
class CsvParams:
    """What the values are, which the format does not say."""

    unit: str = param("", help="The unit of the values, e.g. ms or MB; by default they are plain numbers.")


class CsvImporter:
    """Reads `name,value`; rows of one name are samples, and the first row may be a heading."""

    name: ClassVar[str] = "csv"
    help: ClassVar[str] = "Lines name,value of a .csv; rows of one name are samples."
    Params: ClassVar[type] = CsvParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """The name of the file, as any text may have a comma."""
        return path.lower().endswith((".csv", ".csv.gz"))

    def read(self, file: ImportFile, params: CsvParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each name."""
        found: dict[str, list[float]] = {}
        kind, subtype, unit, scale = unit_of(params.unit, "" if params.unit else "value")
        try:
            for place, row in enumerate(csv.reader(file.lines(), strict=True)):
                if not row or (not place and len(row) == 2 and _is_heading(row[1])):
                    continue
                name, value = row
                found.setdefault(name.strip(), []).append(number(value) * scale)
        except csv.Error as problem:
            raise file.wrong(f"it is no CSV: {problem}") from None
        for name, samples in found.items():
            measured = BenchmarkValue(kind, subtype, unit, tuple(samples))
            yield from benchmark(self.name, self.name, name, [measured])


def _is_heading(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return True
    return False


PLUGIN = CsvImporter
