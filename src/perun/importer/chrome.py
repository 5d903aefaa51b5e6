"""Importer of Chrome's Trace Event Format, as Chrome, Node.js, Clang's -ftime-trace and others write it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Final

from perun.importer._events import TracedCalls, events_of, imported
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams

_EVENT: Final = re.compile(rb'"ph"\s*:\s*"[A-Za-z]"')


class ChromeImporter:
    """Reads calls with their times; other events are left out."""

    name: ClassVar[str] = "chrome"
    help: ClassVar[str] = "Chrome's Trace Event Format (JSON), also of Perfetto, Clang and Node.js."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """JSON with a list of events."""
        begin = head.lstrip()
        return (begin[:1] == b"[" or (begin[:1] == b"{" and b'"traceEvents"' in head)) and bool(
            _EVENT.search(head)
        )

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """One profile."""
        calls = TracedCalls()
        for event in events_of(file.data()):
            calls.take(event)
        yield from imported(calls, self.name, file, ctx)


PLUGIN = ChromeImporter
