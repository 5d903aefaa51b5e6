"""Importer of uftrace: the folder that `uftrace record` writes, by `uftrace dump --chrome`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from perun.core.process import programs
from perun.importer._events import TracedCalls, events_of, imported
from perun.plugin.interchange import MOST, ImportContext, Imported, ImportFile
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
        try:
            done = programs.run(words, environ={**ctx.environ, "LC_ALL": "C"})
        except OSError:
            raise file.wrong("uftrace is not installed, which reads it", "apt-get install uftrace") from None
        if done.code or len(done.stdout) > MOST:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise file.wrong(f"uftrace cannot read it: {''.join(last) or f'status {done.code}'}")
        calls = TracedCalls()
        for event in events_of(done.stdout):
            if not str(event.get("name", "")).startswith("linux:"):
                calls.take(event)
        yield from imported(calls, self.name, file, ctx)


PLUGIN = UftraceImporter
