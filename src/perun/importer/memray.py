"""Importer of memray's recordings, by `memray transform csv`: what was allocated at the peak."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from typing import ClassVar, Final

from perun.core.extras import install_command
from perun.core.process import programs
from perun.importer._common import FileReader, note_cut
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.profile.calls import Frame
from perun.profile.sampled import SampledStacks

_LZ4, _MAGIC = b"\x04\x22\x4d\x18", b"memray"
_MOST_FIELD: Final = 1 << 24


class MemrayImporter:
    """Reads what each call stack had allocated when most was, and how often.

    memray itself reads the file, in a process of its own.
    """

    name: ClassVar[str] = "memray"
    help: ClassVar[str] = "A recording of memray (.bin): what was allocated at the peak."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """The mark of memray, also where the file is packed."""
        return head.startswith(_MAGIC) or (head.startswith(_LZ4) and _MAGIC in head[:64])

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """One profile."""
        if file.path is None:
            raise file.wrong("memray reads recordings from files only", "name the file")
        out = ctx.scratch / "memray.csv"
        words = [sys.executable, "-m", "memray", "transform", "csv", "-f", "-o", str(out), str(file.path)]
        with FileReader(words, file, ctx, stdout=programs.DEVNULL, stderr=programs.PIPE) as process:
            errors = process.communicate()[1]
            if b"No module" in errors:
                raise file.wrong("memray is not installed", f"install it with: {install_command('memory')}")
            process.finish("memray", errors)
        stacks = SampledStacks({"peak": "B", "allocations": ""})
        csv.field_size_limit(_MOST_FIELD)
        with out.open(encoding="utf-8", errors="replace", newline="") as rows:
            for row in csv.DictReader(rows):
                frames = [_frame(one) for one in (row["stack_trace"] or "").split("|") if one]
                stacks.add(stacks.node(frames[::-1]), int(row["size"]), int(row["num_allocations"]))
        note_cut(stacks, file, ctx)
        yield Imported(stacks.profile(self.name, ""))


def _frame(text: str) -> Frame:
    name, source, line = (*text.rsplit(";", 2), "", "")[:3]
    return Frame(name or "?", source, int(line) if line.isdigit() and len(line) < 10 else 0)


PLUGIN = MemrayImporter
