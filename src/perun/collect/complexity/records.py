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
from numpy.typing import NDArray

from perun.collect._calls.events import UNKNOWN, CallEvents, Calls, Nesting
from perun.collect._calls.overhead import Overhead
from perun.collect._common.recordings import WORD, HeaderLayout, RecordedFile, Words, words
from perun.native.columns import Bools, Ints

# Decodes the events of a thread to calls; `native/record.h` owns the format and describes it.

ID_BITS: Final = 17
ID_MASK: Final = (1 << ID_BITS) - 1
MAX_FUNCTIONS: Final = ID_MASK - 15
"""The most functions of a process; larger ids mark other events."""

EXIT: Final = ID_MASK
SIZE: Final = ID_MASK - 1
UNSAMPLED_COUNT: Final = ID_MASK - 2
UNSAMPLED_TICKS: Final = ID_MASK - 3
UNSAMPLED: Final = ID_MASK - 4

_ROUND: Final = 1 << 64 - ID_BITS
"""Ticks after which the stored low bits wrap around."""
_FARTHEST: Final = 1 << 61
_SHIFT: Final = np.uint64(ID_BITS)


class InvalidEvents(ValueError):
    """The runtime never writes such events; the message says why."""


class ThreadDecoder:
    """Decodes the events of one thread, piece by piece; times are ticks.

    Calls that sampling leaves out become calls of imaginary functions, so that their time does not count for
    their callers; then they are dropped.

    :ivar last: the latest tick of an event so far.
    """

    def __init__(self, thread: int, functions: int, overhead: Overhead | None = None) -> None:
        """:param functions: number of defined functions. :param overhead: of the recording of these, then of
        the same where sampling left out the entry, then of a call that sampling left out.
        """
        self.last = 0
        self._functions = functions
        self._nesting = Nesting(thread, overhead)
        self._rest = np.zeros(0, np.uint64)
        self._tick = 0

    def add(self, words: Words) -> Calls:
        """The calls that end with these events, which follow all earlier ones.

        :raises InvalidEvents: where the runtime writes no such events.
        """
        if len(self._rest):
            words = np.concatenate([self._rest, words])
        # The next event may belong to the last one, e.g. its size: hold it back.
        held = len(words) and (int(words[-1]) & ID_MASK) not in (EXIT, SIZE, UNSAMPLED_TICKS, UNSAMPLED)
        whole = len(words) - 1 if held else len(words)
        self._rest = words[whole:].copy()
        return self._decoded(words[:whole])

    def finish(self, time: int) -> Calls:
        """The calls that are open after all events; they end at `time`."""
        # The last event may be a count whose ticks were never written.
        rest = self._rest[(self._rest & np.uint64(ID_MASK)) != UNSAMPLED_COUNT]
        open_calls = [self._decoded(rest), self._recorded(self._nesting.finish(max(time, self.last)))]
        return Calls.joined(open_calls)

    def _decoded(self, words: Words) -> Calls:
        number = (words & np.uint64(ID_MASK)).astype(np.int32)
        value = (words >> _SHIFT).astype(np.int64)
        is_size = number == SIZE
        sized = np.flatnonzero(is_size)
        size = np.full(len(words) - len(sized), UNKNOWN, np.int64)
        if len(sized):
            sizes = value[sized]
            number, value = number[~is_size], value[~is_size]
            owner = sized - np.arange(1, len(sized) + 1)  # the event before, once no size is among them
            if int(owner[0]) < 0 or not (number[owner] < self._functions).all():
                raise InvalidEvents("a size does not follow the entry of a call")
            size[owner] = sizes
        is_entry, is_exit = number < self._functions, number == EXIT
        function = np.where(is_exit, UNKNOWN, number.astype(np.int64))
        if (is_entry | is_exit).all():
            return self._called(CallEvents(self._unrolled(value), function, is_entry, size))
        return self._sampled(number, value, is_entry, CallEvents(value, function, is_entry, size))

    def _sampled(self, number: NDArray[np.int32], value: Ints, is_entry: Bools, events: CallEvents) -> Calls:
        """The calls of events of which some stand for calls that sampling left out."""
        is_count, is_ticks, is_mark = (number == one for one in (UNSAMPLED_COUNT, UNSAMPLED_TICKS, UNSAMPLED))
        has_time = is_entry | (number == EXIT)
        if not (has_time | is_count | is_ticks | is_mark).all():
            raise InvalidEvents("a call is of a function that is not defined")
        if np.count_nonzero(is_count) != len(_before(is_ticks, is_count)):
            raise InvalidEvents("the ticks of calls that sampling left out are missing")
        # Function f + n stands for a call of f that is dropped in the end; 2n for a group of calls, which is
        # entered at 0 and left at its ticks, so that its duration is right.
        events.function[_before(is_mark, is_entry)] += self._functions
        events.function[is_count], events.function[is_ticks] = 2 * self._functions, UNKNOWN
        counts = np.where(is_count, value, is_entry)
        events.time[is_count] = 0
        events.time[has_time] = self._unrolled(value[has_time])
        steps = ~is_mark
        entry = (is_entry | is_count)[steps]
        chosen = events.where(steps).replace(entry=entry)
        return self._called(chosen, counts[steps])

    def _called(self, events: CallEvents, counts: Ints | None = None) -> Calls:
        calls = self._recorded(self._nesting.add(events, counts))
        if self._nesting.stray:
            raise InvalidEvents("more calls end than begin")
        return calls

    def _recorded(self, calls: Calls) -> Calls:
        """The calls of real functions, with real callers."""
        known = self._functions
        caller = np.where(calls.caller >= known, calls.caller - known, calls.caller)
        calls = calls.replace(caller=caller)
        is_real = calls.function < known
        return calls if is_real.all() else calls.where(is_real)

    def _unrolled(self, ticks: Ints) -> Ints:
        """Ticks of full width from their low bits: consecutive events are less than half a cycle apart."""
        if not len(ticks):
            return ticks
        before = np.empty_like(ticks)
        before[0], before[1:] = self._tick % _ROUND, ticks[:-1]
        half = _ROUND // 2
        steps: Any = ((ticks - before + half) & _ROUND - 1) - half
        whole: Ints = steps.cumsum() + self._tick
        self._tick = int(whole[-1])
        self.last = max(self.last, int(whole.max()))
        if self.last >= _FARTHEST or int(whole.min()) <= -_FARTHEST:
            raise InvalidEvents("its times are out of range")
        return whole


def _before(events: Bools, owners: Bools) -> Ints:
    """The positions just before these events, which must be their owners."""
    at: Ints = np.flatnonzero(events) - 1
    if len(at) and (int(at[0]) < 0 or not owners[at].all()):
        raise InvalidEvents("an event about a call does not follow the entry of that call")
    return at


HEADER_SIZE: Final = 4096
_CONTENT: Final = "recorded calls"
PIECE: Final = 1 << 17
"""How many events are decoded at once."""

PROCESS: Final = HeaderLayout(b"PERUNCXP", 2, struct.Struct("=8sIIIIII3Q3QII"))
"""`struct record_process`."""
THREAD: Final = HeaderLayout(b"PERUNCXC", 2, struct.Struct("=8sIIIIIIQQQQQQ48xQQQQ"))
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


class FunctionAddress(NamedTuple):
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


class ProcessRecording:
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
            times, see :class:`ThreadDecoder`.
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
        decoder = ThreadDecoder(tid, len(self.places), overhead)
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

    def _places(self, functions: int) -> list[FunctionAddress]:
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
            FunctionAddress(paths.get(module, ""), address)
            for address, module in zip(rows["address"].tolist(), rows["module"].tolist(), strict=True)
        ]


def processes(folder: Path) -> list[ProcessRecording]:
    """The processes that recorded something, in the order of their first calls."""
    return sorted(map(ProcessRecording, folder.glob("*.process")), key=lambda process: process.started)


def _header(file: RecordedFile, layout: HeaderLayout) -> list[Any]:
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
