"""Importer of Gungraun, which was called iai-callgrind: `summary.json` (`--save-summary=json`).

Its schemas (`summary.v*.schema.json`) nest the counts differently. Since version 3 they stand in `summary`
below `total`, each with `metrics`, of which `Left` and the first of `Both` are those of the new run; before
that, in `events` of each run, as `new`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from perun.importer._common import benchmark, number
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.plugin.suites import PRINTED, BenchmarkValue

_INSTRUCTIONS: Final = ("Ir", "TotalInstructions", "Instructions")
_MOST: Final = 100_000


class GungraunImporter:
    """Reads what was counted; a count needs no repetition."""

    name: ClassVar[str] = "gungraun"
    help: ClassVar[str] = "summary.json of Gungraun (iai-callgrind), by --save-summary=json."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """JSON with the summary of a benchmark."""
        if head.lstrip()[:1] != b"{" or b'"module_path"' not in head:
            return False
        return b'"callgrind_summary"' in head or b'"benchmark_exe"' in head or b'"profiles"' in head

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each type of counts."""
        whole = file.json()
        counts: dict[str, float] = {}
        for name, metric in _metrics(whole):
            count = _new(metric)
            if count is not None and "new" in metric:
                counts[name] = counts.get(name, 0) + count
            elif count is not None:
                counts.setdefault(name, count)
        values = [
            BenchmarkValue("instructions", "", "instr", (count,), is_count=True)
            if name in _INSTRUCTIONS else BenchmarkValue(PRINTED, name, "", (count,))
            for name, count in counts.items()
        ]  # fmt: skip
        name = "::".join(str(part) for part in (whole["module_path"],) if part)
        function = str(whole.get("function_name") or "")
        name = name if not function or name.endswith(function) else f"{name}::{function}"
        yield from benchmark(self.name, self.name, name, values, parameters=str(whole.get("id") or ""))


def _metrics(whole: Any) -> Iterator[tuple[str, Any]]:
    """Names and metrics, in the totals only, or in the events of runs that have none."""
    waiting, seen = [(whole, False)], 0
    while waiting:
        one, inside = waiting.pop()
        seen += 1
        if seen > _MOST:
            raise ValueError("it is nested too widely")
        if isinstance(one, list):
            waiting += [(part, inside) for part in reversed(one)]
        elif isinstance(one, Mapping):
            for key, value in reversed(list(one.items())):
                if inside and isinstance(value, Mapping) and ("metrics" in value or "new" in value):
                    yield str(key), value.get("metrics", value)
                else:
                    waiting.append((value, inside or key in ("total", "events")))


def _new(metric: Mapping[str, Any]) -> float | None:
    """That of the new run; None where only the old one had it."""
    found = metric.get("Left", metric.get("new"))
    if "Both" in metric:
        found = metric["Both"][0]
    if found is None:
        return None
    if isinstance(found, Mapping):  # since 0.15: of which kind the number is
        found = next(iter(found.values()))
    return number(found)


PLUGIN = GungraunImporter
