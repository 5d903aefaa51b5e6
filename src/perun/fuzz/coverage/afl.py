"""Coverage of programs that were built by the compilers of AFL: by their own fork server and map of counters.

The map is a segment of System V shared memory, whose number is in `__AFL_SHM_ID`. A program prints its size
where `AFL_DUMP_MAP_SIZE` is set. Counters have 8 bits and begin anew after 255.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path
from typing import Final

import numpy

from perun.errors import JobFailed
from perun.fuzz.coverage.api import Execution, Target
from perun.fuzz.coverage.inputs import Input
from perun.fuzz.coverage.running import ForkServer, NoServer

_SIZE: Final = 65536
"""Bytes of the map of programs that do not tell."""
_PRIVATE, _CREATE, _REMOVE = 0, 0o1600, 0


class AflCoverage:
    """See :class:`~perun.fuzz.coverage.api.Coverage`; counts are of places of AFL's map.

    :param scratch: an empty folder.
    """

    unit = "edges"

    def __init__(self, target: Target, scratch: Path) -> None:
        self.note = "the program was built for AFL, whose counters begin anew after 255"
        self._target = target
        self._scratch = scratch
        self._given: Input | None = None
        self._server: ForkServer | None = None
        self._map: _Segment | None = None

    def start(self) -> None:
        """Start the fork server of the program."""
        self.close()
        given = self._given = Input(self._target, self._scratch)
        if given.index:
            raise JobFailed(
                f"{given.program} was built for AFL, whose fork server passes no arguments",
                "pass the input as a file or on standard input, or build it by perun fuzz --build",
            )
        size = self._size(given)
        self._map = _Segment(size)
        self._serve()
        self._map.release()

    def run(self, data: bytes, timeout: float) -> Execution:
        """Run the program on `data`."""
        if self._server is None or self._given is None or self._map is None:
            self.start()
        assert self._server is not None and self._given is not None and self._map is not None
        self._given.write(data)
        self._map.counts[:] = 0
        try:
            ended = self._server.run(timeout)
        except NoServer:
            program = self._given.program
            self.close()
            raise JobFailed(f"{program} ended in the fork server of AFL", "run it by hand") from None
        except BaseException:
            self.close()
            raise
        counts = self._map.counts.astype(numpy.int64)
        return Execution(ended.outcome, ended.code, int(counts.sum()), counts, ended.seconds)

    def close(self) -> None:
        """End the program and remove the segment."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._map is not None:
            self._map.close()
            self._map = None
        if self._given is not None:
            self._given.close()
            self._given = None

    def _serve(self) -> None:
        assert self._given is not None and self._map is not None
        environ = {
            **self._target.environ,
            "__AFL_SHM_ID": str(self._map.number),
            "AFL_MAP_SIZE": str(len(self._map.counts)),
        }
        try:
            self._server = ForkServer(self._given, self._target.cwd, environ, memory=self._target.memory)
        except NoServer:
            program = self._given.program
            self.close()
            raise JobFailed(
                f"the fork server of AFL in {program} does not start",
                "run the program by hand, or build it with the flags of perun fuzz --build",
            ) from None

    def _size(self, given: Input) -> int:
        """The size of the map, as the program tells it."""
        try:
            told = subprocess.run(
                given.argv,
                executable=given.program,
                env={**self._target.environ, "AFL_DUMP_MAP_SIZE": "1"},
                cwd=self._target.cwd,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=10,
                check=False,
            ).stdout
            return max(_SIZE, int(told.split()[-1]))
        except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
            return _SIZE


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
