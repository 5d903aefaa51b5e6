"""Importer of pytest-benchmark's JSON: `--benchmark-json`, and its storage in `.benchmarks`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from perun.importer._common import benchmark, moment_of, number, numbers, of_machine, time
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams


class PytestBenchmarkImporter:
    """Reads each round as a sample; where the file was saved without its data, the mean."""

    name: ClassVar[str] = "pytest_benchmark"
    help: ClassVar[str] = "pytest-benchmark's JSON: --benchmark-json, --benchmark-save-data."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """JSON with the description of a machine, and of a commit."""
        return head.lstrip()[:1] == b"{" and b'"machine_info"' in head and b'"commit_info"' in head

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each test."""
        whole = file.json()
        commit = (whole.get("commit_info") or {}).get("id")
        machine = whole.get("machine_info") or {}
        cpu = machine.get("cpu") or {}
        moment = moment_of(whole.get("datetime"))
        for one in whole["benchmarks"]:
            stats, node = one["stats"], str(one["fullname"])
            samples = numbers(stats.get("data") or [])
            parameters = str(one.get("param") or "")
            if parameters:
                node = node.removesuffix(f"[{parameters}]")
            for found in benchmark(
                self.name, "pytest --benchmark-only", node,
                [time(*samples) if samples else time(number(stats["mean"]))],
                parameters=parameters, moment=moment, means=not samples,
                version=commit if isinstance(commit, str) and len(commit) == 40 else "",
            ):  # fmt: skip
                yield of_machine(found, cpu.get("brand_raw"), cpu.get("count"), machine.get("machine"))


PLUGIN = PytestBenchmarkImporter
