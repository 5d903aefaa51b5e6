"""Coverage by counters of edges: programs compiled by clang with the flags of `build.py`.

The counters have 32 bits and stay at their largest value; they lie in memory that is shared with the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy
from numpy.typing import NDArray

from perun.errors import JobFailed
from perun.fuzz.coverage import shared
from perun.fuzz.coverage.counting import Counting
from perun.fuzz.coverage.inputs import Input
from perun.fuzz.coverage.notes import not_compiled
from perun.fuzz.coverage.shared import Record
from perun.fuzz.coverage.ways import share

_CAPACITY: Final = 1 << 16
"""Counters for which there is room at first."""
_FIRST_RUN: Final = 10.0


class EdgeCoverage(Counting):
    """Counts are of edges of the graphs of functions."""

    unit = "edges"

    def start(self) -> None:
        """Load the program, and learn how many edges it has."""
        self.close()
        given = self._given = Input(self._target, self._scratch)
        record = self._share(given, _CAPACITY)
        if record.edges >= _CAPACITY:
            assert self._way is not None
            self._way.close()
            record = self._share(given, record.edges + 1)
        if not record.edges:
            raise not_compiled(given.program)
        start = record.edges_offset + 4  # the first one is no edge
        self._edges = numpy.frombuffer(record.memory, numpy.uint32, record.edges, start)

    def _counts(self) -> NDArray[numpy.int64]:
        return self._edges.astype(numpy.int64)

    def _share(self, given: Input, capacity: int) -> Record:
        """Find the way to run it, with room for so many counters; the record says how many it has."""

        def make(once: bool) -> Record:
            argument = 0 if once else given.index  # it is among the words of a program that is started
            return Record([], capacity, self._target.memory, argument, once=once)

        self._way, record, self.note = share(self._target, given, make, self._environ)
        if self.note:  # nothing has run as yet
            given.write(b"")
            self._way.run(b"", _FIRST_RUN)
            if record.state == shared.REFUSED:
                raise JobFailed(f"cannot share the counters of {given.program}")
        return record

    def _environ(self, record: Record) -> Mapping[str, str]:
        return shared.environ_of(self._target.environ, record)
