"""Importer of results of airspeed velocity: a file of each commit and environment, below `results/MACHINE`.

The format is that of https://asv.readthedocs.io/en/latest/dev.html, of result files of the versions 1 and 2.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from perun.importer._common import benchmark, number, of_machine
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.plugin.suites import BenchmarkValue

_MOST: Final = 1 << 24


class AsvImporter:
    """Reads the samples that asv has recorded (`--record-samples`), else the median that it shows."""

    name: ClassVar[str] = "asv"
    help: ClassVar[str] = "Results of airspeed velocity; a folder of them with --history."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """JSON with a commit and an environment."""
        return head.lstrip()[:1] == b"{" and b'"commit_hash"' in head and b'"env_name"' in head

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each benchmark and combination of its parameters."""
        whole = file.json()
        commit, columns = str(whole["commit_hash"]), whole.get("result_columns")
        date = whole.get("date")
        moment = date / 1000 if isinstance(date, (int, float)) else None
        kinds = _kinds(file)
        machine = whole.get("params") or {}
        total = str(machine.get("num_cpu", ""))
        for name, row in whole["results"].items():
            cells = dict(zip(columns, row, strict=False)) if columns else {"result": row, "params": []}
            if isinstance(cells["result"], Mapping):  # version 1
                cells = dict(cells["result"])
            results, axes = cells["result"], cells.get("params") or []
            results = results if isinstance(results, list) else [results]
            samples = cells.get("samples") or []
            kind = kinds.get(name) or _kind_by_name(name)
            for place, chosen in enumerate(itertools.islice(itertools.product(*axes), len(results))):
                own = samples[place] if place < len(samples) else None
                if results[place] is None:
                    continue
                values = [number(one) for one in own or [results[place]]]
                counted = kind[0] == "memory" and kind[1] == "object"
                for found in benchmark(
                    self.name, self.name, name, [BenchmarkValue(*kind, tuple(values), is_count=counted)],
                    parameters=", ".join(map(str, chosen)), version=commit, moment=moment,
                    means=not own and not counted,
                ):  # fmt: skip
                    count = int(total) if total.isdigit() and len(total) < 6 else None
                    yield of_machine(found, machine.get("cpu"), count, machine.get("arch"))


def _kind_by_name(name: str) -> tuple[str, str, str]:
    """What a benchmark measures, by the beginning of its name, as asv has it."""
    last = name.rpartition(".")[2].lower()
    if last.startswith("mem"):
        return "memory", "object", "B"
    if last.startswith("peakmem"):
        return "memory", "peak", "B"
    return ("printed", "", "") if last.startswith("track") else ("time", "", "s")


def _kinds(file: ImportFile) -> dict[str, tuple[str, str, str]]:
    """What the file `benchmarks.json` beside the folder says of units."""
    path = file.path.parent.parent / "benchmarks.json" if file.path is not None else None
    if path is None or not path.is_file() or path.stat().st_size > _MOST:
        return {}
    listed = json.loads(path.read_bytes())
    found = {}
    for name, one in listed.items() if isinstance(listed, dict) else ():
        unit = one.get("unit") if isinstance(one, Mapping) else None
        kind = _kind_by_name(name)
        if kind[0] == "printed" and isinstance(unit, str) and unit != "unit":
            found[name] = ("printed", "", unit)
    return found


PLUGIN = AsvImporter
