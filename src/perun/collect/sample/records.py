"""Reads what `native/` writes: a header, and blocks of definitions and of samples (`native/record.h`).

Samples are added up by stack and thread while they are read, and by slices of time that get longer, so that
memory grows with the number of stacks and not of samples. A block that is cut off, as the sampler was killed
or the disk is full, ends the file.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.collect._common.recordings import HeaderLayout, RecordedFile

LAYOUT: Final = HeaderLayout(b"PERUNSMP", 2, struct.Struct("=8sII11QiI5Q"))
UNKNOWN, KERNEL, PYTHON_MODULE = 0, 1, 2
"""Numbers of modules: of code that lies in none, of the kernel, and of functions of Python."""
WHOLE, CUT, FRAME_POINTERS = 1, 2, 4
"""Flags of stacks: it ends with the outermost function; the copy of the stack ended before; it was found by
frame pointers, and whether it is whole only the name of its last function tells."""
_DEFINITIONS, _SAMPLES, _WAITS = 1, 2, 3
_MODULE, _STACK, _NAME, _EXEC, _FORK, _EXIT, _FUNCTION, _REFUSED = range(1, 9)
_BLOCK: Final = struct.Struct("=II")
_OF_MODULE: Final = struct.Struct("=IIII24s")
_OF_REFUSED: Final = struct.Struct("=IIII")
_OF_STACK: Final = struct.Struct("=IIQ")
_OF_TASK: Final = struct.Struct("=IIQIIII16s")
SAMPLE: Final = np.dtype([("time", "u8"), ("pid", "u4"), ("tid", "u4"), ("stack", "u4"), ("weight", "u4")])
MOMENT: Final = np.dtype(
    [("start", "i8"), ("weight", "i8"), ("samples", "i8")]
    + [(name, "u4") for name in ("pid", "tid", "stack", "waits")]
)
"""Samples of a thread in a stack within a slice of time: `start` of the first one in ns of the machine's
clock, `weight` in ns, `stack` as an index of :attr:`SampleRecording.stacks`; `waits` is 1 or 0."""
_MOST_MOMENTS: Final = 1 << 18
_AT_ONCE: Final = 1 << 16
_FIRST_SLICE: Final = 1_000_000
_LONGEST_SLICE: Final = 1 << 50
_MAX_BLOCK: Final = 1 << 20
MODULE_SHIFT: Final = 48
_LINE_BITS: Final = 22


class SampledModule(NamedTuple):
    """What code lies in: a file with its build id in hexadecimal, empty where that is not known; or memory of
    the process `pid`, 0 for a file."""

    path: str
    build_id: str = ""
    pid: int = 0


class CodePlace(NamedTuple):
    """A place in code: the number of a module, and the offset in its file, the address in the memory, or the
    function of Python and the line."""

    module: int
    offset: int


class SampledStack(NamedTuple):
    """A call stack: the innermost frame first, each as a number that :meth:`SampleRecording.place` reads."""

    flags: int
    frames: bytes

    def places(self) -> list[int]:
        """The frames as numbers."""
        found: list[int] = np.frombuffer(self.frames, np.uint64).tolist()
        return found


class SampledAmount(NamedTuple):
    """How many samples, and for how many nanoseconds of CPU time they stand."""

    samples: int
    nanoseconds: float

    def __add__(self, other: SampledAmount) -> SampledAmount:  # type: ignore[override]
        return SampledAmount(self.samples + other.samples, self.nanoseconds + other.nanoseconds)


NOTHING: Final = SampledAmount(0, 0)


@dataclass
class SampleRecording:
    """A recording, which may have been cut off.

    :ivar period: mean nanoseconds from one sample to the next. :ivar lost: samples that the kernel threw
        away; :ivar unwritten: those for which the disk had no room. :ivar cpu: nanoseconds that the processes
        had a processor; :ivar own_cpu: that the sampler used; :ivar user: and :ivar system: of the command.
    :ivar python: samples with functions of Python; :ivar bare: those of its threads that ran none;
        :ivar changed: those whose functions changed before they were read; :ivar late: and those where
        nobody came to read in time.
    :ivar error: errno of what ended the recording early. :ivar modules: by number.
    :ivar amounts: by stack and name of the thread;
        :ivar waits: the same of threads that had no processor, in real time.
    :ivar stacks: by number, as they were defined. :ivar moments: when what was sampled, an array of
        :data:`MOMENT`. :ivar names: of each thread, one after the other, and since when.
    :ivar processes: numbers of those seen. :ivar functions: names and files of functions of Python.
    :ivar refused: paths of interpreters of Python that could not be read, and why (`native/record.h`).
    """

    start: int = 0
    end: int = 0
    period: int = 0
    stack_bytes: int = 0
    samples: int = 0
    lost: int = 0
    unwritten: int = 0
    cpu: int = 0
    own_cpu: int = 0
    user: int = 0
    system: int = 0
    status: int = 0
    error: int = 0
    throttled: int = 0
    python: int = 0
    bare: int = 0
    changed: int = 0
    late: int = 0
    modules: list[SampledModule] = field(
        default_factory=lambda: [SampledModule(""), SampledModule("[kernel]"), SampledModule("[python]")]
    )
    amounts: dict[tuple[SampledStack, str], SampledAmount] = field(default_factory=dict)
    waits: dict[tuple[SampledStack, str], SampledAmount] = field(default_factory=dict)
    stacks: list[SampledStack] = field(default_factory=lambda: [SampledStack(0, b"")])
    moments: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, MOMENT))
    names: dict[int, tuple[list[int], list[str]]] = field(default_factory=dict)
    processes: set[int] = field(default_factory=set)
    refused: dict[str, int] = field(default_factory=dict)
    functions: list[tuple[str, str]] = field(default_factory=lambda: [("", "")])

    @property
    def ended(self) -> bool:
        """Whether the sampler came to its end."""
        return self.end > 0

    @staticmethod
    def place(frame: int) -> CodePlace:
        """The place that a frame stands for."""
        return CodePlace(frame >> MODULE_SHIFT, frame & ((1 << MODULE_SHIFT) - 1))

    def name(self, tid: int, time: int) -> str:
        """What a thread was called then; empty where that is not known."""
        times, names = self.names.get(tid, ((), ()))
        return names[max(bisect_right(times, time) - 1, 0)] if names else ""

    def function(self, place: int) -> tuple[str, str, int]:
        """The function of Python at a place, its file and the line, 0 if unknown."""
        number = place >> _LINE_BITS
        name, source = self.functions[number if number < len(self.functions) else 0]
        return name, source, place & ((1 << _LINE_BITS) - 1)


def read(path: Path) -> SampleRecording:
    """The recording in a file.

    :raises DamagedRecording: where it cannot be read, or is none.
    """
    file = RecordedFile(path, "samples")
    with file.open() as opened:
        fields = file.header(LAYOUT, opened.read(LAYOUT.form.size))
        reader = _Reader(SampleRecording(*fields))
        for kind, data in _blocks(opened):
            if kind == _DEFINITIONS:
                reader.define(data)
            elif kind in (_SAMPLES, _WAITS):
                reader.add(data, waits=kind == _WAITS)
    return reader.whole()


def _blocks(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    while len(head := file.read(_BLOCK.size)) == _BLOCK.size:
        kind, size = _BLOCK.unpack(head)
        data = file.read(size) if size <= _MAX_BLOCK else b""
        if len(data) < size or not size:
            return
        yield kind, data


class _Sums(NamedTuple):
    """How many samples there are of each key, and what they weigh."""

    keys: NDArray[Any] = np.zeros(0, np.uint64)
    counts: NDArray[Any] = np.zeros(0)
    weights: NDArray[Any] = np.zeros(0)

    def with_more(self, keys: NDArray[Any], weights: NDArray[Any]) -> _Sums:
        found, inverse = np.unique(np.concatenate((self.keys, keys)), return_inverse=True)
        counts = np.concatenate((self.counts, np.ones(len(keys))))
        summed = np.bincount(inverse, np.concatenate((self.weights, weights)))
        return _Sums(found, np.bincount(inverse, counts), summed)


class _Reader:
    def __init__(self, recording: SampleRecording) -> None:
        self.recording = recording
        self._moments = [np.zeros(0, MOMENT)]
        self._texts: dict[str, int] = {}
        self._sums = [_Sums(), _Sums()]  # of samples, and of waits
        self._waiting: tuple[list[NDArray[np.void]], list[NDArray[np.void]]] = ([], [])
        self._kept, self._room, self._slice = 0, _MOST_MOMENTS, _FIRST_SLICE

    def define(self, data: bytes) -> None:
        at = 0
        while at + 8 <= len(data):
            kind, size = _BLOCK.unpack_from(data, at)
            if size < 8 or at + size > len(data):
                return
            self._define(kind, data[at : at + size])
            at += size

    def _define(self, kind: int, data: bytes) -> None:
        if kind == _STACK and len(data) >= _OF_STACK.size:
            _, _, flags = _OF_STACK.unpack_from(data)
            self.recording.stacks.append(SampledStack(flags, data[_OF_STACK.size :]))
        elif kind == _MODULE and len(data) > _OF_MODULE.size:
            _, _, pid, size, identity = _OF_MODULE.unpack_from(data)
            path = data[_OF_MODULE.size :].partition(b"\0")[0].decode("utf-8", "surrogateescape")
            self.recording.modules.append(SampledModule(path, identity[:size].hex(), pid))
        elif kind == _FUNCTION:
            name, source, *_ = [*data[8:].decode("utf-8", "replace").split("\0"), ""]
            self.recording.functions.append((name, source))
        elif kind == _REFUSED and len(data) > _OF_REFUSED.size:
            path = data[_OF_REFUSED.size :].partition(b"\0")[0].decode("utf-8", "replace")
            self.recording.refused[path] = _OF_REFUSED.unpack_from(data)[2]
        elif kind >= _NAME and len(data) >= _OF_TASK.size:
            _, _, time, pid, tid, parent, _, name = _OF_TASK.unpack_from(data)
            self.recording.processes.add(pid)
            if kind == _FORK:
                self._rename(tid, time, self.recording.name(parent, time))
            elif kind in (_NAME, _EXEC):
                self._rename(tid, time, name.partition(b"\0")[0].decode("utf-8", "replace"))

    def _rename(self, tid: int, time: int, name: str) -> None:
        times, names = self.recording.names.setdefault(tid, ([], []))
        at = bisect_right(times, time)
        times.insert(at, time)
        names.insert(at, name)

    def add(self, data: bytes, *, waits: bool) -> None:
        """Add a block of samples; several are added up at once."""
        waiting = self._waiting[waits]
        waiting.append(np.frombuffer(data[: len(data) // SAMPLE.itemsize * SAMPLE.itemsize], SAMPLE))
        if sum(map(len, waiting)) > _AT_ONCE:
            self._add(waits=waits)

    def whole(self) -> SampleRecording:
        """The recording with all that was added."""
        found = self.recording
        for waits in (False, True):
            self._add(waits=waits)
        found.amounts, found.waits = self._amounts(self._sums[0]), self._amounts(self._sums[1])
        found.samples = sum(amount.samples for amount in found.amounts.values())
        found.moments = np.concatenate(self._moments)
        return found

    def _add(self, *, waits: bool) -> None:
        """Add what waits, in the order of time, to the amounts by stack and thread, and by time."""
        samples = np.concatenate([np.zeros(0, SAMPLE), *self._waiting[waits]])
        self._waiting[waits].clear()
        self._add_moments(samples, waits=waits)
        self.recording.processes.update(np.unique(samples["pid"]).tolist())
        tids, of_thread = np.unique(samples["tid"], return_inverse=True)
        number = np.zeros(len(samples), np.uint64)
        for place, tid in enumerate(tids.tolist()):
            rows = np.flatnonzero(of_thread == place)
            times, known = self.recording.names.get(tid, ([], [""]))
            since = np.searchsorted(np.array(times, np.uint64), samples["time"][rows], "right")
            numbers = [self._texts.setdefault(name, len(self._texts)) for name in known]
            number[rows] = np.array(numbers, np.uint64)[np.maximum(since.astype(np.int64) - 1, 0)]
        keys = samples["stack"].astype(np.uint64) << np.uint64(32) | number
        self._sums[waits] = self._sums[waits].with_more(keys, samples["weight"])

    def _amounts(self, sums: _Sums) -> dict[tuple[SampledStack, str], SampledAmount]:
        """What was added, by stack and name of the thread."""
        texts, stacks = list(self._texts), self.recording.stacks
        rows = zip(sums.keys.tolist(), sums.counts.tolist(), sums.weights.tolist(), strict=True)
        return {
            (stacks[key >> 32], texts[key & 0xFFFFFFFF]): SampledAmount(int(count), weight)
            for key, count, weight in rows
            if key >> 32 < len(stacks)
        }

    def _add_moments(self, samples: NDArray[np.void], *, waits: bool) -> None:
        added = np.zeros(len(samples), MOMENT)
        for name in ("pid", "tid", "stack", "weight"):
            added[name] = samples[name]
        # A sample stands for the time before it.
        added["start"] = samples["time"].astype(np.int64) - added["weight"]
        added["samples"], added["waits"] = 1, waits
        added["stack"][added["stack"] >= len(self.recording.stacks)] = 0
        self._moments.append(added)
        self._kept += len(added)
        if self._kept > self._room:
            moments, self._slice = within(np.concatenate(self._moments), _MOST_MOMENTS // 2, self._slice)
            self._moments, self._kept = [moments], len(moments)
            # There are at least as many as stacks of threads: these are not looked at again and again.
            self._room = max(_MOST_MOMENTS, 2 * len(moments))


def summed(moments: NDArray[np.void], firsts: NDArray[np.intp]) -> NDArray[np.void]:
    """Those that begin at these places, each with all up to the next as one; there is one at least."""
    found = moments.take(firsts)
    found["start"] = np.minimum.reduceat(moments["start"], firsts)
    for name in ("weight", "samples"):
        found[name] = np.add.reduceat(moments[name], firsts)
    return found


def within(moments: NDArray[np.void], most: int, slice: int = _FIRST_SLICE) -> tuple[NDArray[np.void], int]:
    """At most so many moments: where there are more, those of a thread and a stack within a slice of time
    become one.

    :param slice: nanoseconds of the first slices that are tried; they get twice as long until there are few
        enough, or one slice. The last ones are told, too.
    """
    thread = moments["tid"].astype(np.uint64) << np.uint64(1) | moments["waits"]
    different, key = np.unique(thread << np.uint64(32) ^ moments["stack"], return_inverse=True)
    since = moments["start"].min() if len(moments) else 0
    while len(moments) > most:
        keys = (moments["start"] - since) // slice * len(different) + key
        order = np.argsort(keys, kind="stable")
        firsts = np.flatnonzero(np.diff(keys[order], prepend=-1))
        moments, key = summed(moments.take(order), firsts), key[order[firsts]]
        if slice >= _LONGEST_SLICE:
            break
        if len(moments) > most:  # twice as long ones leave no less than half of them
            slice *= 1 << (len(moments) // most).bit_length()
    return moments, slice
