"""Importer of JMH's JSON (`-rf json`): iterations are samples, those of single shots or sampled times too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from perun.importer._common import benchmark, number
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.plugin.suites import PRINTED, BenchmarkValue
from perun.profile.amounts import TIMES

_ALLOCATED: Final = "gc.alloc.rate.norm"


class JmhImporter:
    """Reads the raw data of all forks; a throughput in operations is of which more is better."""

    name: ClassVar[str] = "jmh"
    help: ClassVar[str] = "JMH's JSON, by -rf json."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """JSON with benchmarks that have a primary metric."""
        return (head.lstrip()[:1] == b"[" and b'"primaryMetric"' in head) or b'"jmhVersion"' in head

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each benchmark and type."""
        for row in file.json():
            metrics = {"": row["primaryMetric"], **(row.get("secondaryMetrics") or {})}
            values = [value for label, one in metrics.items() if (value := _value(label, one))]
            means = not (row["primaryMetric"].get("rawData") or row["primaryMetric"].get("rawDataHistogram"))
            given = row.get("params") or {}
            words = " ".join(f"{key}={given[key]}" for key in sorted(given))
            yield from benchmark(
                self.name, self.name, str(row["benchmark"]), values, parameters=words, means=means
            )


def _value(label: str, metric: Mapping[str, Any]) -> BenchmarkValue | None:
    label = label.lstrip("\u00b7")  # before 1.37
    unit = str(metric["scoreUnit"])
    raw = metric.get("rawData") or _means(metric.get("rawDataHistogram")) or [[metric["score"]]]
    forks = [fork if isinstance(fork, list) else [fork] for fork in raw]  # kotlinx-benchmark knows no forks
    samples = [number(one) for fork in forks for one in fork if not _is_missing(one)]
    if not samples:
        return None
    first, slash, per = unit.partition("/")
    if slash and per == "op" and first in TIMES:
        return BenchmarkValue("time", label, "s", tuple(one * TIMES[first] for one in samples))
    if slash and first == "ops" and per in TIMES:
        rates = tuple(one / TIMES[per] for one in samples)
        return BenchmarkValue(PRINTED, label, "ops/s", rates, larger_is_better=True)
    if label == _ALLOCATED:
        return BenchmarkValue("memory", "allocated", "B", tuple(samples))
    return BenchmarkValue(PRINTED, label or unit, "" if unit == "#" else unit, tuple(samples))


def _means(forks: Any) -> list[list[float]]:
    """Of sampled times, which are rows of a time and how often it was, the mean of each iteration."""
    found = []
    for fork in forks or ():
        rows = [[(number(time), number(count)) for time, count in one] for one in fork if one]
        found.append([sum(t * n for t, n in one) / sum(n for _, n in one) for one in rows])
    return found


def _is_missing(value: Any) -> bool:
    return value in ("NaN", None) or (isinstance(value, float) and not math.isfinite(value))


PLUGIN = JmhImporter
