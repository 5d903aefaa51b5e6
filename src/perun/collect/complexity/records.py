"""Reads recordings of calls; `native/record.h` owns the format and describes it.

Whatever the files hold, the result is calls or a :class:`DamagedRecording`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from perun.collect._calls.events import Calls
from perun.collect._calls.overhead import Overhead
from perun.collect._common.columns import Ints
from perun.collect._common.recordings import WORD, Layout, RecordedFile, Words, words
from perun.collect.complexity.decoding import MAX_FUNCTIONS, Decoder, InvalidEvents

HEADER_SIZE: Final = 4096
_CONTENT: Final = "recorded calls"
PIECE: Final = 1 << 17
"""How many events are decoded at once."""

PROCESS: Final = Layout(b"PERUNCXP", 2, struct.Struct("=8sIIIIII3Q3QII"))
"""`struct record_process`."""
THREAD: Final = Layout(b"PERUNCXC", 2, struct.Struct("=8sIIIIIIQQQQQQ48xQQQQ"))
"""`struct record_thread`."""
FUNCTION: Final = np.dtype([("address", "u8"), ("module", "u4"), ("reserved", "u4")])
ROOM: Final = HEADER_SIZE + MAX_FUNCTIONS * FUNCTION.itemsize
"""Bytes that the runtime needs for the file of a process."""
ROOM_OF_A_THREAD: Final = HEADER_SIZE + (16 << 10)
"""Bytes that it needs at first for the calls of a thread."""
_MIN_MOVED: Final = 4096
"""Bytes; a smaller number may be equal by chance."""
_MAX_SPEED: Final = 10_000.0
"""Nanoseconds of a tick, and ticks of a nanosecond."""
_MAX_TIME: Final = float(1 << 62)


class Place(NamedTuple):
    """A function: the path of its file, and its address in the file."""

    path: str
    address: int


class Gaps(NamedTuple):
    """What a recording lacks.

    :param missed: number of missing exits, mostly after a longjmp. :param open: calls that had not ended.
    :param skipped: entries and exits in signal handlers that interrupted the runtime.
    :param too_deep: calls that were nested too deeply. :param lost: calls that could not be written.
    :param error: number of the error that stopped the writing; 0 for none.
    """

    missed: int = 0
    open: int = 0
    skipped: int = 0
    too_deep: int = 0
    lost: int = 0
    error: int = 0

    def plus(self, other: Gaps) -> Gaps:
        """The sum of both."""
        sums = [one + more for one, more in zip(self, other, strict=True)]
        return Gaps._make(sums)._replace(error=self.error or other.error)


class Process:
    """The recording of one process.

    :ivar pid: its id in the kernel. :ivar started: CLOCK_MONOTONIC at its first call, in nanoseconds.
    :ivar places: the functions by their numbers. :ivar has_ended: whether the process ended by itself.
    :ivar gaps: complete once all :meth:`calls` are read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = RecordedFile(path, _CONTENT)
        fields = _header(self._file, PROCESS)
        self.pid, self.parent, _, ended, *points, functions, self.lost_functions = fields
        self._ticks, self._clock = points[:3], points[3:]
        self.has_ended = bool(ended)
        self.started = self._clock[0]
        self.gaps = Gaps()
        if functions > MAX_FUNCTIONS:
            raise self._file.damaged(f"it defines {functions} functions, more than {MAX_FUNCTIONS}")
        self.places = self._places(functions)
        last = 2 if self._ticks[2] > self._ticks[1] else 1
        ticks, elapsed = self._ticks[last] - self._ticks[0], self._clock[last] - self._clock[0]
        self._speed = elapsed / ticks if ticks > 0 and elapsed > 0 else 1.0  # nanoseconds of a tick
        if max(points) >> 63 or not 1 / _MAX_SPEED <= self._speed <= _MAX_SPEED or ticks < 0:
            raise self._file.damaged("its clock values are out of range")
        self._end = ticks

    @property
    def speed(self) -> float:
        """Nanoseconds of a tick of the clock."""
        return self._speed

    def calls(self, origin: int, overhead: Overhead | None = None) -> Iterator[Calls]:
        """All calls, thread by thread and piece by piece, with times in nanoseconds since `origin`.

        :param origin: a time of CLOCK_MONOTONIC in nanoseconds. :param overhead: what is subtracted from the
            times, see :class:`Decoder`.
        :raises DamagedRecording: where a file is not as the runtime writes it.
        """
        shift = self.started - origin
        for number in count():
            path = self._path.with_name(f"{self._path.name.removesuffix('.process')}-{number}.calls")
            if not path.exists():
                return
            yield from self._thread(path, shift, overhead)

    def _thread(self, path: Path, shift: int, overhead: Overhead | None) -> Iterator[Calls]:
        file = RecordedFile(path, _CONTENT)
        fields = _header(file, THREAD)
        _, tid, error, _, events_at, written_at, written, window, following, end, *counts = fields
        missed, skipped, too_deep, lost = counts
        kept = following - window
        if (
            kept % WORD
            or written % WORD
            or not window <= following <= end
            or max(written_at + written, events_at + kept) > path.stat().st_size
        ):
            raise file.damaged("the positions of its events are out of range")
        if _is_twice(path, (written_at + written - kept, events_at), min(kept, written)):
            kept = 0
        decoder = Decoder(tid, len(self.places), overhead)
        try:
            for piece in _pieces(file, (written_at, written // WORD), (events_at, kept // WORD)):
                yield self._scaled(decoder.add(piece), shift, file)
            opened = decoder.finish(self._end)
        except InvalidEvents as problem:
            raise file.damaged(str(problem)) from None
        if error:  # calls whose exits could not be written; how long they lasted is not known
            lost += len(opened)
        else:
            yield self._scaled(opened, shift, file)
        gaps = Gaps(missed, 0 if error else len(opened), skipped, too_deep, lost, error)
        self.gaps = self.gaps.plus(gaps)

    def _scaled(self, calls: Calls, shift: int, file: RecordedFile) -> Calls:
        """The calls with times in nanoseconds."""

        def scaled(ticks: Ints) -> Ints:
            times = np.rint(ticks * self._speed)
            if len(times) and float(np.abs(times).max()) > _MAX_TIME:
                raise file.damaged("its times are out of range")
            nanoseconds: Ints = times.astype(np.int64)
            return nanoseconds

        return calls.replace(
            start=scaled(calls.start) + shift,
            duration=scaled(calls.duration),
            exclusive=scaled(calls.exclusive),
        )

    def _places(self, functions: int) -> list[Place]:
        paths: dict[int, str] = {}
        modules = self._path.with_suffix(".modules")
        if modules.exists():
            for line in modules.read_text("utf-8", "surrogateescape").splitlines():
                number, _, path = line.partition(" ")
                if number.isdecimal():
                    paths[int(number)] = path
        with open(self._path, "rb") as file:
            file.seek(HEADER_SIZE)
            data = file.read(functions * FUNCTION.itemsize)
        if len(data) < functions * FUNCTION.itemsize:
            raise self._file.damaged("definitions of functions are missing")
        rows = np.frombuffer(data, FUNCTION)
        return [
            Place(paths.get(module, ""), address)
            for address, module in zip(rows["address"].tolist(), rows["module"].tolist(), strict=True)
        ]


def processes(folder: Path) -> list[Process]:
    """The processes that recorded something, in the order of their first calls."""
    return sorted(map(Process, folder.glob("*.process")), key=lambda process: process.started)


def _header(file: RecordedFile, layout: Layout) -> list[Any]:
    with file.open() as stream:
        return file.header(layout, stream.read(HEADER_SIZE))


def _pieces(file: RecordedFile, *parts: tuple[int, int]) -> Iterator[Words]:
    """The events in parts of a file; each part is a position and a number of events."""
    with file.open() as stream:
        for at, total in parts:
            stream.seek(at)
            yield from words(stream, PIECE, total)


def _is_twice(path: Path, places: tuple[int, int], size: int) -> bool:
    """Whether the latest events are in the file twice.

    That is so if the process was killed just after it moved them and before it updated the header.

    :param places: the positions of both. :param size: bytes.
    """
    if size < _MIN_MOVED:
        return False
    with open(path, "rb") as file:
        parts = []
        for place in places:
            file.seek(place)
            parts.append(file.read(size))
    return parts[0] == parts[1]
