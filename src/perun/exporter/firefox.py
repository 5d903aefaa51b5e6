"""Exporter of Firefox Profiler JSON: the preprocessed format of version 48, which later profilers read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from perun.exporter._common import Note, StackParams, nanoseconds, program_of, stack_values
from perun.profile.factory import Profile
from perun.profile.stacks import StackTree

_VERSION: Final = 48
_GECKO: Final = 29
_CATEGORIES: Final = [{"name": "Other", "color": "grey", "subcategories": ["Other"]}]
_LIBRARY: Final = 1
"""Type of a resource that is a library."""


class FirefoxExporter:
    """Writes call stacks as weighted samples of one thread."""

    name: ClassVar[str] = "firefox"
    help: ClassVar[str] = "Firefox Profiler JSON (.json), for profiler.firefox.com."
    suffix: ClassVar[str] = ".json"
    Params: ClassVar[type] = StackParams

    def write(self, profile: Profile, params: StackParams, note: Note) -> Iterator[bytes]:
        """The document."""
        found = stack_values(profile, params.of or "amount", note)
        ((name, unit),) = found.units.items()
        scale = nanoseconds(unit)
        weights = {stack: one / 1e6 * scale if scale else one for stack, (one,) in found.amounts.items()}
        kind = "tracing-ms" if scale else "bytes" if unit == "B" else "samples"
        tree = StackTree([weights])
        used = [node for node, amount in enumerate(tree.amounts[0]) if amount]
        program = program_of(profile) or "perun"
        times: list[float] = []
        now = 0.0
        for node in used:
            times.append(now)
            now += tree.amounts[0][node] if scale else 1
        meta = {
            "interval": 1, "startTime": 0, "processType": 0, "product": program, "stackwalk": 1,
            "version": _GECKO, "preprocessedProfileVersion": _VERSION, "categories": _CATEGORIES,
            "markerSchema": [], "symbolicated": True, "importedFrom": "perun", "usesOnlyOneStackType": True,
            "sourceCodeIsNotOnSearchfox": True, "profilingStartTime": 0, "profilingEndTime": now,
        }  # fmt: skip
        samples = {
            "stack": used, "time": times, "weight": [tree.amounts[0][node] for node in used],
            "weightType": kind, "length": len(used),
        }  # fmt: skip
        thread = {**_tables(tree), "samples": samples, **_thread(name, program)}
        document = {"meta": meta, "libs": [], "threads": [thread]}
        yield json.dumps(document, separators=(",", ":")).encode()


def _thread(name: str, program: str) -> dict[str, Any]:
    names = ("data", "name", "startTime", "endTime", "phase", "category")
    return {
        "processType": "default", "processName": program, "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0, "unregisterTime": None, "pausedRanges": [], "name": name, "isMainThread": True,
        "pid": "1", "tid": 1, "markers": {**{one: [] for one in names}, "length": 0},
    }  # fmt: skip


def _tables(tree: StackTree) -> dict[str, Any]:
    """The tables that samples refer to: stacks, frames, functions, files as resources, and strings."""
    strings: dict[str, int] = {}
    functions: dict[tuple[str, str], int] = {}
    resources: dict[str, int] = {}
    of_frame = []
    for frame in tree.frames:
        if frame.source:
            resources.setdefault(frame.source, len(resources))
        of_frame.append(functions.setdefault((frame.name, frame.source), len(functions)))
    count, size = len(tree.frames), len(functions)

    def text(value: str) -> int:
        return strings.setdefault(value, len(strings))

    return {
        "stackTable": {
            "frame": tree.frame_of, "prefix": [one if one >= 0 else None for one in tree.parents],
            "category": [0] * len(tree.parents), "subcategory": [0] * len(tree.parents),
            "length": len(tree.parents),
        },
        "frameTable": {
            "address": [-1] * count, "inlineDepth": [0] * count, "category": [None] * count,
            "subcategory": [None] * count, "func": of_frame, "nativeSymbol": [None] * count,
            "innerWindowID": [None] * count, "implementation": [None] * count,
            "line": [frame.line or None for frame in tree.frames], "column": [None] * count, "length": count,
        },
        "funcTable": {
            "name": [text(name) for name, _ in functions], "isJS": [False] * size,
            "relevantForJS": [False] * size,
            "resource": [resources[source] if source else -1 for _, source in functions],
            "fileName": [text(source) if source else None for _, source in functions],
            "lineNumber": [None] * size, "columnNumber": [None] * size, "length": size,
        },
        "resourceTable": {
            "lib": [None] * len(resources), "name": [text(source) for source in resources],
            "host": [None] * len(resources), "type": [_LIBRARY] * len(resources), "length": len(resources),
        },
        "nativeSymbols": {"libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0},
        "stringArray": list(strings),
    }  # fmt: skip


PLUGIN = FirefoxExporter
