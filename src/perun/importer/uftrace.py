"""Importer of uftrace: the folder that `uftrace record` writes, by `uftrace dump --chrome`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from perun.core.process import programs
from perun.importer._common import FileReader
from perun.importer._events import TracedCalls, events_of, imported
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams


class UftraceImporter:
    """Reads the calls of all threads, with their times."""

    name: ClassVar[str] = "uftrace"
    help: ClassVar[str] = "The folder that uftrace record writes (uftrace.data)."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """A folder with the files that each recording has."""
        folder = Path(path)
        return not head and all((folder / name).is_file() for name in ("info", "task.txt"))

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """One profile."""
        if file.path is None or not file.path.is_dir():
            raise file.wrong("it is no folder", "name the folder that uftrace record -d has written")
        words = ["uftrace", "dump", "--chrome", "--no-pager", "-d", str(file.path)]
        path = ctx.scratch / "uftrace.json"
        try:
            with (
                path.open("wb") as out,
                FileReader(words, file, ctx, stdout=out, stderr=programs.PIPE) as process,
            ):
                process.finish("uftrace", process.communicate()[1])
        except OSError:
            raise file.wrong("uftrace is not installed, which reads it", "apt-get install uftrace") from None
        calls = TracedCalls()
        for event in events_of(file.beside(path).data()):
            if not str(event.get("name", "")).startswith("linux:"):
                calls.take(event)
        yield from imported(calls, self.name, file, ctx)


PLUGIN = UftraceImporter
