"""Importer of folded stacks: a line for each, as the scripts of FlameGraph, py-spy and bpftrace write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from perun.importer._common import located, note_cut, number
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import param
from perun.profile.calls import Frame
from perun.profile.sampled import SampledStacks, unit_name

_LINE: Final = re.compile(r"(\S.*?)\s+(-?\d{1,30}(?:\.\d{1,30})?)\s*")


@dataclass(frozen=True)
class FoldedParams:
    """What the numbers are, which the format does not say."""

    unit: str = param("", help="The unit of the numbers, e.g. us or B; by default they count samples.")


class FoldedImporter:
    """Reads lines `outermost;...;innermost 12`; a frame may be `name (source:line)`."""

    name: ClassVar[str] = "folded"
    help: ClassVar[str] = "Folded stacks, a line for each: stackcollapse-*, py-spy's raw, bpftrace."
    Params: ClassVar[type] = FoldedParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """Nearly all lines are stacks that end with a number, and one has several frames."""
        lines = head.decode("utf-8", "replace").split("\n")[:50]
        lines = [line for line in lines[: -1 if len(lines) > 1 else None] if line.strip() and line[0] != "#"]
        good = [line for line in lines if _LINE.fullmatch(line)]
        return len(good) > 0.9 * len(lines) and any(";" in line for line in good)

    def read(self, file: ImportFile, params: FoldedParams, ctx: ImportContext) -> Iterator[Imported]:
        """One profile."""
        unit = unit_name(params.unit)
        stacks = SampledStacks({"samples" if not unit else "amount of stacks": unit})
        frames: dict[str, Frame] = {}
        wrong = 0
        for line in file.lines():
            found = _LINE.fullmatch(line)
            if found is None:
                wrong += bool(line.strip() and not line.startswith("#"))
                continue
            stack = []
            for text in found[1].split(";"):
                if text not in frames:
                    if len(frames) > 1 << 18:
                        frames.clear()
                    frames[text] = located(text)
                stack.append(frames[text])
            stacks.add(stacks.node(stack), number(found[2]))
        if wrong:
            ctx.note(f"{wrong} lines of {file.name} are no stack with a number, and are left out")
        note_cut(stacks, file, ctx)
        yield Imported(stacks.profile(self.name, ""))


PLUGIN = FoldedImporter
