"""Importer of V8's `.cpuprofile`, as `node --cpu-prof` and Chrome's developer tools write it.

The format is `Profiler.Profile` of the Chrome DevTools Protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from perun.importer._common import note_cut
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.profile.calls import Frame
from perun.profile.sampled import SampledStacks


class CpuprofileImporter:
    """Reads the samples with the times from each to the next; `(root)` is left out."""

    name: ClassVar[str] = "cpuprofile"
    help: ClassVar[str] = "V8's .cpuprofile, of node --cpu-prof and Chrome."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """JSON with nodes that have call frames."""
        return head.lstrip()[:1] == b"{" and b'"callFrame"' in head and b'"nodes"' in head

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """One profile."""
        whole = file.json()
        nodes: dict[int, Mapping[str, Any]] = {one["id"]: one for one in whole["nodes"]}
        children = {number: list(one.get("children") or ()) for number, one in nodes.items()}
        for number, one in nodes.items():
            if (parent := one.get("parent")) is not None:
                children[parent].append(number)
        roots = nodes.keys() - {child for own in children.values() for child in own}
        stacks = SampledStacks({"cpu": "us", "samples": ""})
        known: dict[int, int] = {}
        waiting = [(root, -1) for root in sorted(roots)]
        while waiting:
            number, above = waiting.pop()
            if number in known:
                raise ValueError(f"node {number} has two callers")
            frame = nodes[number]["callFrame"]
            name = frame["functionName"] or "(anonymous)"
            line = frame.get("lineNumber", -1) + 1
            own = Frame(str(name), str(frame.get("url") or ""), line if 0 < line < 1 << 31 else 0)
            known[number] = above if name == "(root)" else stacks.below(above, own)
            waiting += [(child, known[number]) for child in children[number]]
        samples = whole.get("samples")
        if samples:
            deltas = [max(0, delta + 0) for delta in whole["timeDeltas"]]
            ends = [*deltas[1:], 0]  # a sample lasts until the next one
            for number, lasts in zip(samples, ends, strict=True):
                stacks.add(known[number], lasts, 1)
        else:
            for number, one in nodes.items():
                stacks.add(known[number], 0, one.get("hitCount", 0) + 0)
        note_cut(stacks, file, ctx)
        yield Imported(stacks.profile(self.name, ""))


PLUGIN = CpuprofileImporter
