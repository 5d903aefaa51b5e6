"""Reads what the runtime has recorded; `native/record.h` owns the format and describes it.

Whatever the files hold, the outcome is calls or a :class:`DamagedRecording`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.collect._calls.events import UNKNOWN, Calls, Ints
from perun.errors import ProfileError

VERSION: Final = 1
BYTE_ORDER: Final = 0x01020304
HEADER_SIZE: Final = 4096
NOBODY: Final = 0x3FFFF
PIECE: Final = 1 << 18
"""Calls that are decoded at once."""

_PROCESS: Final = struct.Struct("=8sIIIIII3Q3QII")
_THREAD: Final = struct.Struct("=8sIIIIQQQQQQQQQQQQQQIIQQ")
_FUNCTION: Final = np.dtype([("address", "u8"), ("module", "u4"), ("reserved", "u4")])
_CALL: Final = np.dtype([("start", "u8"), ("duration", "u8"), ("exclusive", "u8"), ("size", "u8")])
_FRAME: Final = np.dtype(
    [
        ("start", "u8"),
        ("inner", "u8"),
        ("frame", "u8"),
        ("function", "u8"),
        ("size", "i8"),
        ("id", "u4"),
        ("caller", "u4"),
        ("is_recorded", "u4"),
        ("order", "u4"),
        ("padding", "u8"),
    ]
)
_LOW: Final = np.uint64((1 << 48) - 1)
_SPAN: Final = np.uint64((1 << 46) - 1)
_FUNCTION_AT: Final = np.uint64(46)
_FASTEST: Final = 10_000.0
_MOST_FRAMES: Final = 1 << 18


class DamagedRecording(ProfileError):
    """A file of recorded calls is not what the runtime writes."""


class Place(NamedTuple):
    """A function: the path of the file that it is in, and its address as that numbers it."""

    path: str
    address: int


class Gaps(NamedTuple):
    """What is missing of a recording, or was made up for.

    :param missed: exits that were not told, after a longjmp mostly. :param open: calls that had not ended.
    :param skipped: entries and exits in signal handlers that interrupted the runtime.
    :param too_deep: calls within too many others. :param lost: calls that could not be written.
    :param error: number of the error why they could not be, 0 for none.
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
    """What one process recorded.

    :ivar pid: its number in the kernel. :ivar started: CLOCK_MONOTONIC of its first call, in nanoseconds.
    :ivar places: what the numbers of functions stand for. :ivar has_ended: whether it ended by itself.
    :ivar gaps: known once :meth:`calls` were read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        data = _read(path, HEADER_SIZE)
        fields = _unpacked(_PROCESS, data, b"PERUNCXP", path)
        self.pid, self.parent, _, ended, *points, functions, self.lost_functions = fields
        self._ticks, self._clock = points[:3], points[3:]
        self.has_ended = bool(ended)
        self.started = self._clock[0]
        self.gaps = Gaps()
        if functions > NOBODY:
            raise _damaged(path, "it has more functions than any")
        self.places = self._places(functions)
        last = 2 if self._ticks[2] > self._ticks[1] else 1
        ticks, passed = self._ticks[last] - self._ticks[0], self._clock[last] - self._clock[0]
        self._speed = passed / ticks if ticks > 0 and passed > 0 else 1.0
        if max(points) >> 63 or not 1 / _FASTEST <= self._speed <= _FASTEST or ticks < 0:
            raise _damaged(path, "its clock makes no sense")
        self._end = ticks

    def calls(self, origin: int) -> Iterator[Calls]:
        """All calls, thread by thread, piece by piece; times are from `origin` on, of CLOCK_MONOTONIC.

        :raises DamagedRecording: where a file is not as the runtime writes it.
        """
        shift = self.started - origin
        for number in count():
            path = self._path.with_name(f"{self._path.name.removesuffix('.process')}-{number}.calls")
            if not path.exists():
                return
            yield from self._thread(path, shift)

    def _thread(self, path: Path, shift: int) -> Iterator[Calls]:
        fields = _unpacked(_THREAD, _read(path, HEADER_SIZE), b"PERUNCXC", path)
        _, tid, frames_at, calls_at, written_at, first, top, _, window, following, end, written, *rest = (
            fields
        )
        missed, skipped, too_deep, lost, error = rest[:5]
        kept, odd_bytes = divmod(following - window, _CALL.itemsize)
        moved, odd_bytes_before = divmod(written, _CALL.itemsize)
        depth, odd_frames = divmod(top - first, _FRAME.itemsize)
        if (
            odd_bytes
            or odd_bytes_before
            or odd_frames
            or not window <= following <= end
            or not 0 <= depth < _MOST_FRAMES
            or max(written_at + written, calls_at + following - window) > path.stat().st_size
            or frames_at + (depth + 1) * _FRAME.itemsize > calls_at
        ):
            raise _damaged(path, "its counts make no sense")
        last = self._end
        for rows in _pieces(path, (written_at, moved), (calls_at, kept)):
            last = max(last, int(((rows["start"] & _LOW) + (rows["duration"] & _SPAN)).max()))
            yield self._decoded(rows, tid, shift, path)
        frames = np.fromfile(path, _FRAME, depth, offset=frames_at + _FRAME.itemsize)
        yield self._opened(frames, last, tid, shift, path)
        self.gaps = self.gaps.plus(Gaps(missed, depth, skipped, too_deep, lost, error))

    def _decoded(self, rows: NDArray[np.void], tid: int, shift: int, path: Path) -> Calls:
        high = np.uint64(48)
        order = rows["start"] >> high | rows["size"] >> high << np.uint64(16)
        return self._calls(
            (rows["start"] & _LOW).astype(np.int64),
            (rows["duration"] & _SPAN).astype(np.int64),
            (rows["exclusive"] & _SPAN).astype(np.int64),
            (rows["duration"] >> _FUNCTION_AT).astype(np.int64),
            (rows["exclusive"] >> _FUNCTION_AT).astype(np.int64),
            (rows["size"] << np.uint64(16)).view(np.int64) >> 16,
            order.astype(np.int64),
            (tid, shift),
            path,
        )

    def _opened(self, frames: NDArray[np.void], end: int, tid: int, shift: int, path: Path) -> Calls:
        """Calls that had not ended, as if they had when the last thing happened."""
        frames = frames[frames["is_recorded"] != 0]
        start = (frames["start"] - np.uint64(self._ticks[0])).astype(np.int64)
        duration = np.maximum(end - start, 0)
        inner = frames["inner"].astype(np.int64)
        if len(duration) > 1:
            inner[:-1] += duration[1:]
        return self._calls(
            start,
            duration,
            np.maximum(duration - inner, 0),
            frames["id"].astype(np.int64),
            frames["caller"].astype(np.int64),
            frames["size"].astype(np.int64),
            frames["order"].astype(np.int64),
            (tid, shift),
            path,
        )

    def _calls(
        self,
        start: Ints,
        duration: Ints,
        exclusive: Ints,
        function: Ints,
        caller: Ints,
        size: Ints,
        order: Ints,
        whose: tuple[int, int],
        path: Path,
    ) -> Calls:
        tid, shift = whose
        caller = np.where(caller == NOBODY, UNKNOWN, caller)
        known = len(self.places)
        if len(function) and (int(function.max()) >= known or int(caller.max()) >= known):
            raise _damaged(path, "a call is of a function that is not defined")
        spans = np.rint(duration * self._speed).astype(np.int64)
        own = np.rint(exclusive * self._speed).astype(np.int64)
        begin = np.rint(start * self._speed).astype(np.int64) + shift
        thread = np.full(len(function), tid, np.int64)
        return Calls(function, thread, begin, spans, own, size, caller, order)

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
            data = file.read(functions * _FUNCTION.itemsize)
        if len(data) < functions * _FUNCTION.itemsize:
            raise _damaged(self._path, "definitions of functions are missing")
        rows = np.frombuffer(data, _FUNCTION)
        return [
            Place(paths.get(module, ""), address)
            for address, module in zip(rows["address"].tolist(), rows["module"].tolist(), strict=True)
        ]


def processes(folder: Path) -> list[Process]:
    """The processes that recorded something, the first one first."""
    return sorted(map(Process, folder.glob("*.process")), key=lambda process: process.started)


def _pieces(path: Path, *parts: tuple[int, int]) -> Iterator[NDArray[np.void]]:
    """The calls of parts of a file, each with its position and how many there are."""
    with open(path, "rb") as file:
        for at, total in parts:
            file.seek(at)
            for start in range(0, total, PIECE):
                yield np.fromfile(file, _CALL, min(PIECE, total - start))


def _read(path: Path, size: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except OSError as problem:
        raise DamagedRecording(
            f"cannot read {path}: {problem.strerror}", "collect the profile again"
        ) from None


def _unpacked(form: struct.Struct, data: bytes, magic: bytes, path: Path) -> list[int]:
    if len(data) < form.size:
        raise _damaged(path, "it is too short for a header")
    found, order, version, *fields = form.unpack_from(data)
    if found != magic:
        raise _damaged(path, "it does not begin as one")
    if order != BYTE_ORDER:
        raise _damaged(path, "it is of a machine with another byte order")
    if version != VERSION:
        raise _damaged(path, f"it has version {version} of the format, and {VERSION} is known")
    return fields


def _damaged(path: Path, reason: str) -> DamagedRecording:
    return DamagedRecording(f"{path}: the recorded calls are damaged: {reason}", "collect the profile again")
