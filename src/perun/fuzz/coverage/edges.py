"""Coverage by counters of edges: programs compiled by clang with the flags of `build.py`.

The counters have 32 bits and stay at their largest value; they lie in memory that is shared with the program.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy
from numpy.typing import NDArray

from perun.core.errors import JobFailed
from perun.core.process import programs
from perun.fuzz.coverage import shared
from perun.fuzz.coverage.api import CoverageTarget
from perun.fuzz.coverage.inputs import TargetInput
from perun.fuzz.coverage.lines import not_compiled
from perun.fuzz.coverage.running import CounterCoverage, ForkServer, NoServer, RunExit, share
from perun.fuzz.coverage.shared import Record

_CAPACITY: Final = 1 << 16
"""Counters for which there is room at first."""
_FIRST_RUN: Final = 10.0


class EdgeCoverage(CounterCoverage):
    """Counts are of edges of the graphs of functions."""

    unit = "edges"

    def start(self) -> None:
        """Load the program, and learn how many edges it has."""
        self.close()
        given = self._given = TargetInput(self._target, self._scratch)
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

    def _share(self, given: TargetInput, capacity: int) -> Record:
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


# Coverage of programs that were built by the compilers of AFL: by their own fork server and map of counters.
#
# The map is a segment of System V shared memory, whose number is in `__AFL_SHM_ID`. A program prints its size
# where `AFL_DUMP_MAP_SIZE` is set. Counters have 8 bits and begin anew after 255.
#
# A program with a loop of `__AFL_LOOP` (persistent mode) is no copy for each run: it stops itself after each
# round, and its server lets it go on with the next request. It does so where `__AFL_PERSISTENT` is set.

_SIZE: Final = 65536
"""Bytes of the map of programs that do not tell."""
_PRIVATE, _CREATE, _REMOVE = 0, 0o1600, 0
_PERSISTENT: Final = b"##SIG_AFL_PERSISTENT##"
"""What AFL's compilers write into programs with such a loop."""


class AflCoverage(CounterCoverage):
    """Counts are of places of AFL's map."""

    unit = "edges"

    def start(self) -> None:
        """Start the fork server of the program."""
        self.close()
        self.note = "the program was built for AFL, whose counters begin anew after 255"
        given = self._given = TargetInput(self._target, self._scratch)
        if given.index:
            raise JobFailed(
                f"{given.program} was built for AFL, whose fork server passes no arguments",
                "pass the input as a file or on standard input, or build it by perun fuzz --build",
            )
        segment = _Segment(self._size(given))
        self._map = segment.counts
        try:
            self._way = _Served(self._target, given, segment)
        finally:
            segment.release()

    def _counts(self) -> NDArray[numpy.int64]:
        return self._map.astype(numpy.int64)

    def _size(self, given: TargetInput) -> int:
        """The size of the map, as the program tells it."""
        try:
            told = programs.run(
                given.argv,
                executable=given.program,
                environ={**self._target.environ, "AFL_DUMP_MAP_SIZE": "1"},
                cwd=self._target.cwd,
                timeout=10,
            ).stdout
            return max(1, int(told.split()[-1]))
        except (OSError, ValueError, IndexError, programs.TimeoutExpired):
            return _SIZE


class _Served:
    """See :class:`~perun.fuzz.coverage.running.RunMode`.

    :raises JobFailed: if the server does not start; the segment is given back then.
    """

    def __init__(self, target: CoverageTarget, given: TargetInput, segment: _Segment) -> None:
        self._given = given
        self._segment = segment
        environ = {
            **target.environ,
            "__AFL_SHM_ID": str(segment.number),
            "AFL_MAP_SIZE": str(len(segment.counts)),
        }
        if _PERSISTENT in Path(given.program).read_bytes():
            environ["__AFL_PERSISTENT"] = "1"
        try:
            self._server = ForkServer(given, target.cwd, environ, memory=target.memory)
        except NoServer:
            segment.close()
            raise JobFailed(
                f"the fork server of AFL in {given.program} does not start",
                "run the program by hand, or build it with the flags of perun fuzz --build",
            ) from None

    def run(self, data: bytes, timeout: float, until: float = math.inf) -> RunExit:
        self._segment.counts[:] = 0
        try:
            return self._server.run(timeout, until)
        except NoServer:
            program = self._given.program
            raise JobFailed(f"{program} ended in the fork server of AFL", "run it by hand") from None

    def close(self) -> None:
        self._server.close()
        self._segment.close()


class _Segment:
    """A segment of System V shared memory, attached here."""

    def __init__(self, size: int) -> None:
        """:raises JobFailed: if the system has none left."""
        self._library = ctypes.CDLL(None, use_errno=True)
        self._library.shmat.restype = ctypes.c_void_p
        self._library.shmdt.argtypes = [ctypes.c_void_p]
        self.number = int(self._library.shmget(_PRIVATE, ctypes.c_size_t(size), _CREATE))
        self._address = self._library.shmat(self.number, None, 0) if self.number >= 0 else -1
        if self._address in (-1, ctypes.c_void_p(-1).value, None):
            raise JobFailed(
                f"cannot make shared memory for AFL: {os.strerror(ctypes.get_errno())}",
                "ipcs -m lists the segments that are in use",
            )
        array = (ctypes.c_uint8 * size).from_address(self._address)
        self.counts = numpy.ctypeslib.as_array(array)

    def release(self) -> None:
        """Let the system remove it with the last process that has it: also where Perun is killed."""
        self._library.shmctl(self.number, _REMOVE, None)

    def close(self) -> None:
        """Let go of it."""
        self.release()
        self._library.shmdt(self._address)
