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
from typing import BinaryIO, Final, NamedTuple

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
_SAMPLE: Final = np.dtype([("time", "u8"), ("pid", "u4"), ("tid", "u4"), ("stack", "u4"), ("weight", "u4")])
MOMENT: Final = np.dtype(
    [("start", "i8"), ("weight", "i8"), ("samples", "i8")]
    + [(name, "u4") for name in ("pid", "tid", "stack", "waits")]
)
"""Samples of a thread in a stack within a slice of time: `start` of the first one in ns of the machine's
clock, `weight` in ns, `stack` as an index of :attr:`SampleRecording.stacks`; `waits` is 1 without a processor."""
_MOST_MOMENTS: Final = 1 << 18
_FIRST_SLICE: Final = 1_000_000
_LONGEST_SLICE: Final = 1 << 62
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
                samples = np.frombuffer(data[: len(data) // _SAMPLE.itemsize * _SAMPLE.itemsize], _SAMPLE)
                reader.add(samples, waits=kind == _WAITS)
    found = reader.recording
    found.moments = reader.moments()
    found.samples = sum(amount.samples for amount in found.amounts.values())
    return found


def _blocks(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    while len(head := file.read(_BLOCK.size)) == _BLOCK.size:
        kind, size = _BLOCK.unpack(head)
        data = file.read(size) if size <= _MAX_BLOCK else b""
        if len(data) < size or not size:
            return
        yield kind, data


class _Reader:
    def __init__(self, recording: SampleRecording) -> None:
        self.recording = recording
        self._moments: list[NDArray[np.void]] = []

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
                self._rename(tid, time, self._name(parent, time))
            elif kind in (_NAME, _EXEC):
                self._rename(tid, time, name.partition(b"\0")[0].decode("utf-8", "replace"))

    def _rename(self, tid: int, time: int, name: str) -> None:
        times, names = self.recording.names.setdefault(tid, ([], []))
        at = bisect_right(times, time)
        times.insert(at, time)
        names.insert(at, name)

    def _name(self, tid: int, time: int) -> str:
        times, names = self.recording.names.get(tid, ((), ()))
        at = bisect_right(times, time)
        return names[max(at - 1, 0)] if names else ""

    def add(self, samples: NDArray[np.void], *, waits: bool) -> None:
        """Add samples, which come in the order of time, to the amounts by stack and thread, and by time."""
        self._add_moments(samples, waits=waits)
        amounts = self.recording.waits if waits else self.recording.amounts
        self.recording.processes.update(np.unique(samples["pid"]).tolist())
        tids, of_thread = np.unique(samples["tid"], return_inverse=True)
        names: dict[str, int] = {}
        number = np.zeros(len(samples), np.uint64)
        for place, tid in enumerate(tids.tolist()):
            rows = np.flatnonzero(of_thread == place)
            times = np.array(self.recording.names.get(tid, ([], []))[0], np.uint64)
            since = np.maximum(np.searchsorted(times, samples["time"][rows], "right").astype(np.int64) - 1, 0)
            known = self.recording.names.get(tid, ([], [""]))[1]
            numbers = np.array([names.setdefault(name, len(names)) for name in known], np.uint64)
            number[rows] = numbers[since]
        keys, inverse = np.unique(
            samples["stack"].astype(np.uint64) << np.uint64(32) | number, return_inverse=True
        )
        counts = np.bincount(inverse)
        weights = np.bincount(inverse, samples["weight"].astype(np.float64))
        texts = list(names)
        for key, count, weight in zip(keys.tolist(), counts.tolist(), weights.tolist(), strict=True):
            stack = key >> 32
            if stack < len(self.recording.stacks):
                where = self.recording.stacks[stack], texts[key & 0xFFFFFFFF]
                amounts[where] = amounts.get(where, NOTHING) + SampledAmount(count, weight)

    def _add_moments(self, samples: NDArray[np.void], *, waits: bool) -> None:
        added = np.zeros(len(samples), MOMENT)
        for name in ("pid", "tid", "stack", "weight"):
            added[name] = samples[name]
        # A sample stands for the time before it.
        added["start"] = samples["time"].astype(np.int64) - added["weight"]
        added["samples"], added["waits"] = 1, waits
        added["stack"][added["stack"] >= len(self.recording.stacks)] = 0
        self._moments.append(added)
        if sum(map(len, self._moments)) > _MOST_MOMENTS:
            self._moments = [within(self.moments(), _MOST_MOMENTS // 2)]

    def moments(self) -> NDArray[np.void]:
        """What was added so far, by time."""
        return np.concatenate([np.zeros(0, MOMENT), *self._moments])


def within(moments: NDArray[np.void], most: int) -> NDArray[np.void]:
    """At most so many moments: where there are more, those of a thread and a stack within a slice of time
    become one.

    The slices get twice as long until that holds, or there is one.
    """
    slice = _FIRST_SLICE
    while len(moments) > most and slice < _LONGEST_SLICE:
        keys = np.stack((moments["start"] // slice, moments["tid"], moments["waits"], moments["stack"]))
        order = np.lexsort(keys[::-1])
        keys, sorted = keys[:, order], moments[order]
        firsts = np.flatnonzero(np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)))
        moments = sorted[firsts]
        moments["start"] = np.minimum.reduceat(sorted["start"], firsts)
        moments["weight"] = np.add.reduceat(sorted["weight"], firsts)
        moments["samples"] = np.add.reduceat(sorted["samples"], firsts)
        slice *= 2
    return moments
