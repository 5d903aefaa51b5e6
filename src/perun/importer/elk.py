"""Importer of results from an Elasticsearch: the answer of a search, a list, or a line for each.

Each number of a document is a metric, by the path of its keys, and its texts are the parameters. Documents
with the same texts are samples of one benchmark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from perun.importer._common import benchmark, moment_of, number
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import param
from perun.plugin.suites import PRINTED, BenchmarkValue

_MOST_FIELDS: Final = 1000
_DATES: Final = ("@timestamp", "timestamp", "date")


@dataclass(frozen=True)
class ElkParams:
    """Which field names the benchmark."""

    name: str = param("", help="The field that names the benchmark; else `name` or `benchmark`.")


class ElkImporter:
    """Reads documents of one search."""

    name: ClassVar[str] = "elk"
    help: ClassVar[str] = "Documents of Elasticsearch (JSON): the answer of a search, a list, or lines."
    Params: ClassVar[type] = ElkParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """JSON with sources of documents."""
        return head.lstrip()[:1] in (b"{", b"[") and b'"_source"' in head

    def read(self, file: ImportFile, params: ElkParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each benchmark."""
        names = (params.name,) if params.name else ("name", "benchmark", "benchmark.name", "metric.name")
        gathered: dict[tuple[str, str], tuple[dict[str, list[float]], float | None]] = {}
        for document in _documents(file):
            texts: dict[str, str] = {}
            values: dict[str, float] = {}
            for key, value in _fields(document):
                if isinstance(value, str):
                    texts[key] = value
                elif not isinstance(value, bool):
                    values[key] = number(value)
            moment = next((moment_of(texts.pop(key)) for key in _DATES if key in texts), None)
            name = next((texts.pop(key) for key in names if key in texts), "document")
            words = ", ".join(f"{key}={texts[key]}" for key in sorted(texts) if len(texts[key]) < 80)
            metrics, _ = gathered.setdefault((name, words), ({}, moment))
            for key, value in values.items():
                metrics.setdefault(key, []).append(value)
        for (name, words), (metrics, moment) in gathered.items():
            listed = [BenchmarkValue(PRINTED, key, "", tuple(own)) for key, own in metrics.items()]
            yield from benchmark(self.name, self.name, name, listed, parameters=words, moment=moment)


def _documents(file: ImportFile) -> Iterator[Mapping[str, Any]]:
    try:
        whole = json.loads(file.data())
    except ValueError:
        whole = [json.loads(line) for line in file.text().splitlines() if line.strip()]
    if isinstance(whole, Mapping):
        hits = whole.get("hits")
        whole = hits["hits"] if isinstance(hits, Mapping) else [whole]
    for one in whole:
        yield one.get("_source", one)


def _fields(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The path of keys to each text and number."""
    waiting: list[tuple[str, Any]] = [("", document)]
    seen = 0
    while waiting:
        path, value = waiting.pop()
        seen += 1
        if seen > _MOST_FIELDS:
            raise ValueError("a document has too many fields")
        if isinstance(value, Mapping):
            waiting += [(f"{path}.{key}" if path else str(key), one) for key, one in value.items()]
        elif isinstance(value, (str, int, float)):
            yield path, value


PLUGIN = ElkImporter
