"""Coverage by counters of edges: programs compiled by clang with the flags of `build.py`.

The counters have 32 bits and stay at their largest value; they lie in memory that is shared with the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy

from perun.errors import JobFailed
from perun.fuzz.coverage import shared
from perun.fuzz.coverage.api import Execution, Target
from perun.fuzz.coverage.inputs import Input
from perun.fuzz.coverage.notes import not_compiled
from perun.fuzz.coverage.shared import Record
from perun.fuzz.coverage.ways import Shared, share

_CAPACITY: Final = 1 << 16
"""Counters for which there is room at first."""
_FIRST_RUN: Final = 10.0


class EdgeCoverage:
    """See :class:`~perun.fuzz.coverage.api.Coverage`; counts are of edges of the graphs of functions.

    :param scratch: an empty folder.
    """

    unit = "edges"

    def __init__(self, target: Target, scratch: Path) -> None:
        self.note = ""
        self._target = target
        self._scratch = scratch
        self._given: Input | None = None
        self._shared: Shared | None = None

    def start(self) -> None:
        """Load the program, and learn how many edges it has."""
        self.close()
        given = self._given = Input(self._target, self._scratch)
        edges = self._share(given, _CAPACITY)
        if edges >= _CAPACITY:
            self._end()
            edges = self._share(given, edges + 1)
        assert self._shared is not None
        if not edges:
            raise not_compiled(given.program)
        self.note = self._shared.note
        start = self._shared.record.edges_offset + 4  # the first one is no edge
        self._counts = numpy.frombuffer(self._shared.record.memory, numpy.uint32, edges, start)

    def run(self, data: bytes, timeout: float) -> Execution:
        """Run the program on `data`."""
        if self._shared is None or self._given is None:
            self.start()
        assert self._shared is not None and self._given is not None
        self._given.write(data)
        try:
            ended = self._shared.way.run(data, timeout)
        except BaseException:
            self.close()
            raise
        counts = self._counts.astype(numpy.int64)
        return Execution(ended.outcome, ended.code, int(counts.sum()), counts, ended.seconds)

    def close(self) -> None:
        """End the program."""
        self._end()
        if self._given is not None:
            self._given.close()
            self._given = None

    def _end(self) -> None:
        if self._shared is not None:
            self._shared.way.close()
            self._shared = None

    def _share(self, given: Input, capacity: int) -> int:
        """Find the way to run it, with room for so many counters; how many it has."""

        def make(once: bool) -> Record:
            argument = 0 if once else given.index  # it is among the words of a program that is started
            return Record([], capacity, self._target.memory, argument, once=once)

        self._shared = share(self._target, given, make, self._environ)
        record = self._shared.record
        if self._shared.note:  # nothing has run as yet
            given.write(b"")
            self._shared.way.run(b"", _FIRST_RUN)
            if record.state == shared.REFUSED:
                raise JobFailed(f"cannot share the counters of {given.program}")
        return record.edges

    def _environ(self, record: Record) -> Mapping[str, str]:
        return shared.environ_of(self._target.environ, record)
