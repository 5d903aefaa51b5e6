"""The log of stops: when the process did not run because it was stopped, as its parent saw it.

An entry has 16 bytes: the end of a stop, and the time stopped from the first stop to this end, both as signed
64-bit integers in ns of CLOCK_MONOTONIC, little endian. The start of a stop is its end less the difference to
the total before. Stops follow each other, so that both columns rise: a search by halves finds the stops of an
interval, and two totals tell how long the process was stopped in it, however many stops there are. A header
of 16 bytes precedes the entries.

The writer keeps a few entries in memory, the reader none. An entry that a crash cut off is not read.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.core.errors import ProfileError
from perun.core.regular import IrregularFile, open_for_writing, open_regular

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


HEADER: Final = b"PerunStops\x00\x01\x00\x00\x00\x00"
"""Magic and version (little endian) of the file."""
MAX_SIZE: Final = 1 << 34
_ENTRY: Final = struct.Struct("<qq")
_MOST_KEPT: Final = 4096
_DELAY: Final = 100_000_000
"""ns after which an entry is written though there is room for more in memory."""


class Stop(NamedTuple):
    """The process was stopped from `start` to `end`, ns of CLOCK_MONOTONIC."""

    start: int
    end: int


class StopWriter:
    """Writes the log; a context manager that closes it.

    :raises OSError: where the file cannot be made or written.
    """

    def __init__(self, path: Path) -> None:
        self._file = open_for_writing(path)
        self._file.write(HEADER)
        self._file.flush()
        self._kept = bytearray()
        self._written = 0
        self._end = 0
        self._total = 0

    def __enter__(self) -> StopWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def append(self, start: int, end: int) -> None:
        """Note a stop that began after the last one ended; what overlaps that one is cut off."""
        start = max(start, self._end)
        if end <= start:
            return
        self._end = end
        self._total += end - start
        self._kept += _ENTRY.pack(end, self._total)
        now = time.monotonic_ns()
        if len(self._kept) >= _MOST_KEPT * _ENTRY.size or now - self._written >= _DELAY:
            self.flush()
            self._written = now

    def flush(self) -> None:
        """Write what is still in memory."""
        self._file.write(self._kept)
        self._file.flush()
        self._kept.clear()

    def close(self) -> None:
        """Write what is still in memory, and close the file."""
        try:
            self.flush()
        finally:
            self._file.close()


class StopLog:
    """Reads the log from disk, a few entries for each question; a context manager that closes the file.

    :raises ProfileError: where the file is no log of stops, or cannot be read.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = open_regular(path, MAX_SIZE)
        except (IrregularFile, OSError) as problem:
            raise ProfileError(f"cannot read the log of stops {path}: {problem.strerror}") from None
        self._descriptor = self._file.fileno()
        if os.pread(self._descriptor, len(HEADER), 0) != HEADER:
            self._file.close()
            raise ProfileError(
                f"{path} is not a log of stops that this version reads", "record the program again"
            )
        self._count = (os.fstat(self._descriptor).st_size - len(HEADER)) // _ENTRY.size

    def __enter__(self) -> StopLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def between(self, start: int, end: int) -> Iterator[Stop]:
        """The stops that overlap the interval, in order, cut off at its ends."""
        position = self._first_ending_after(start)
        before = self._entry(position - 1)[1]
        while position < self._count:
            stop_end, total = self._entry(position)
            stop_start = stop_end - (total - before)
            if max(start, stop_start) >= end:
                return
            yield Stop(max(start, stop_start), min(end, stop_end))
            before = total
            position += 1

    def stopped(self, start: int, end: int) -> int:
        """For how many ns of the interval the process was stopped."""
        return max(0, self._until(end) - self._until(start))

    def columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The starts and the ends of all stops, for questions about many intervals."""
        import numpy as np

        data = os.pread(self._descriptor, self._count * _ENTRY.size, len(HEADER))
        ends, totals = np.frombuffer(data, "<i8").reshape(-1, 2).T.astype(np.int64)
        return ends - np.diff(totals, prepend=0), ends

    def _until(self, time: int) -> int:
        """For how many ns the process was stopped up to this time."""
        position = self._first_ending_after(time)
        before = self._entry(position - 1)[1]
        if position == self._count:
            return before
        end, total = self._entry(position)
        return before + max(0, time - (end - (total - before)))

    def _first_ending_after(self, time: int) -> int:
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if self._entry(middle)[0] > time:
                high = middle
            else:
                low = middle + 1
        return low

    def _entry(self, position: int) -> tuple[int, int]:
        if position < 0:
            return 0, 0
        end, total = _ENTRY.unpack(
            os.pread(self._descriptor, _ENTRY.size, len(HEADER) + position * _ENTRY.size)
        )
        return end, total


# How much of a stop that falls into a call counts as stopped time, and how much as the call's own.
#
# A process that is stopped (SIGSTOP, Ctrl-Z, a debugger) does nothing, but what it waits for goes on: a write
# that is held back by a limit of 10 bytes per second, or a sleep, may last no longer for it. Each rule looks
# at one call:
#
# - actual: how long it took, from its start to its return;
# - expected: how long it takes where nothing stops it, as far as that is known: until the deadline that the
#   limit set, the time that a sleep asks for, else 0;
# - stops: for how much of it the process was stopped, the sum if there were several stops.
#
# All three are in one unit, and so is the answer, which is never more than `stops`. Outside of calls a stop
# is always stopped time: the thread would have computed.


def exact(actual: int, expected: int, stops: int) -> int:
    """The call has its expected time, or what is left without the stops where that is more; the rest is
    stopped.
    """
    return actual - max(min(expected, actual), actual - stops)


def seed(actual: int, expected: int, stops: int) -> int:
    """The rule of the document of Island: the stops count wholly or not at all, by `actual >= expected +
    stops`.
    """
    return stops if actual >= expected + stops else 0


def source2010(actual: int, expected: int, stops: int) -> int:
    """The rule of Island's source of 2010: stops count where they are longer than the call was expected to
    be.
    """
    if stops <= expected:
        return 0
    return actual - min(actual, max(expected, actual - stops))


RULES: Final[dict[str, Callable[[int, int, int], int]]] = {
    "exact": exact,
    "seed": seed,
    "source2010": source2010,
}
"""Name of a rule, as `--stop-rule` takes it, to the rule."""
