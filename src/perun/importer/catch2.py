"""Importer of Catch2's benchmarks: what `--reporter xml` writes, which has means of samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar
from xml.etree import ElementTree

from perun.importer._common import benchmark, number, time
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams


class Catch2Importer:
    """Reads the mean of each benchmark; it is named by its test case and sections."""

    name: ClassVar[str] = "catch2"
    help: ClassVar[str] = "Catch2's XML, by --reporter xml; it has means."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """XML of a run of Catch2: release 3 and 2 name their outermost elements differently."""
        return head.lstrip()[:1] == b"<" and (b"<Catch2TestRun" in head or b"<Catch " in head)

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each benchmark."""
        data = file.data()
        if b"<!DOCTYPE" in data:
            raise file.wrong("it defines entities, as Catch2 does not")
        try:
            run = ElementTree.fromstring(data)
        except ElementTree.ParseError as problem:
            raise file.wrong(f"it is no XML: {problem}") from None
        found: dict[str, list[float]] = {}
        waiting = [("", run)]
        while waiting:
            above, element = waiting.pop()
            own = element.get("name", "").strip()
            mean = element.find("mean")
            if element.tag == "BenchmarkResults" and mean is not None:
                found.setdefault(above + own, []).append(number(mean.get("value")) / 1e9)
            path = f"{above}{own}/" if element.tag in ("TestCase", "Section") else above
            waiting += [(path, below) for below in reversed(element)]
        for name, seconds in found.items():
            yield from benchmark(self.name, self.name, name, [time(*seconds)], means=True)


PLUGIN = Catch2Importer
