"""Importer of speedscope JSON, as py-spy, rbspy, speedscope and others write it.

The format is that of https://www.speedscope.app/file-format-schema.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from perun.importer._common import note_cut, number
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.profile.calls import Frame
from perun.profile.sampled import SampledStacks, unit_name


class SpeedscopeImporter:
    """Reads sampled and evented profiles; of several threads a stack begins with its own."""

    name: ClassVar[str] = "speedscope"
    help: ClassVar[str] = "speedscope JSON, also of py-spy and rbspy."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """JSON that names its schema."""
        return head.lstrip()[:1] == b"{" and b"speedscope.app/file-format-schema" in head

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each unit."""
        whole = file.json()
        frames = []
        for one in whole["shared"]["frames"]:
            line = one.get("line")
            line = line if isinstance(line, int) and 0 < line < 1 << 31 else 0
            frames.append(Frame(str(one["name"]) or "?", str(one.get("file") or ""), line))
        by_unit: dict[str, list[Mapping[str, Any]]] = {}
        for one in whole["profiles"]:
            by_unit.setdefault(unit_name(str(one.get("unit", "none"))), []).append(one)
        for unit, own in by_unit.items():
            stacks = SampledStacks({"time" if unit.endswith("s") else "samples": unit})
            for one in own:
                begin = stacks.node([Frame(str(one.get("name") or "thread"))]) if len(own) > 1 else -1
                if one["type"] == "evented":
                    _evented(stacks, one, frames, begin)
                else:
                    _sampled(stacks, one, frames, begin)
            note_cut(stacks, file, ctx)
            program = str(whole.get("name") or "") if len(whole["profiles"]) == 1 else ""
            yield Imported(stacks.profile(self.name, program))


def _sampled(stacks: SampledStacks, one: Mapping[str, Any], frames: list[Frame], begin: int) -> None:
    known: dict[tuple[int, ...], int] = {}
    for sample, weight in zip(one["samples"], one["weights"], strict=True):
        stack = tuple(sample)
        node = known.get(stack)
        if node is None:
            node = begin
            for place in sample:
                node = stacks.below(node, frames[place])
            known[stack] = node
        stacks.add(node, number(weight))


def _evented(stacks: SampledStacks, one: Mapping[str, Any], frames: list[Frame], begin: int) -> None:
    """Times of calls as those of the stacks that were open."""
    path, at = [begin], number(one.get("startValue", 0))
    for event in one["events"]:
        now = number(event["at"])
        stacks.add(path[-1], now - at)
        at = now
        if event["type"] == "O":
            path.append(stacks.below(path[-1], frames[event["frame"]]))
        elif len(path) > 1:
            path.pop()


PLUGIN = SpeedscopeImporter
