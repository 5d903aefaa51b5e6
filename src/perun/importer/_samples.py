"""The samples of `perf script` that are the same text, added up by `native/samples.c`.

Where the library was not built, :func:`load` returns nothing.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_LIBRARY: Final = Path(__file__).with_name("libperun_samples.so")
_NUMBER: Final = ctypes.c_int64
_POINTER: Final = ctypes.c_void_p
END, SHAPE, OTHER, FULL = range(4)
"""Why a step ended: all is read, the line has a shape that is not known, the block is of another form, or
there is no room for more stacks."""


class Step(ctypes.Structure):
    """`struct step`: what of the data is a block that cannot be added up."""

    why: int
    at: int
    line: int
    end: int
    period: int
    period_end: int
    _fields_ = tuple((name, _NUMBER) for name in ("why", "at", "line", "end", "time", "period", "period_end"))


class _Entry(ctypes.Structure):
    """`struct entry`."""

    kind: int
    at: int
    size: int
    sum: int
    count: int
    _fields_ = tuple((name, _NUMBER) for name in ("hash", "kind", "at", "size", "sum", "count"))


class SameSamples(NamedTuple):
    """What the periods of samples of a kind with this stack, as text, sum up to, and how many they are."""

    kind: int
    stack: bytes
    sum: int
    times: int


class SampleSums:
    """Adds up blocks of samples; `step` tells why that ended."""

    def __init__(self, functions: ctypes.CDLL, most: int) -> None:
        """:param most: bytes of stacks, above which there is no room for more."""
        functions.samples_new.restype = functions.samples_stacks.restype = _POINTER
        self._functions = functions
        self._samples = _POINTER(
            functions.samples_new(ctypes.c_uint64.from_buffer_copy(os.urandom(8)), _NUMBER(most))
        )
        self.step = Step()

    def __del__(self) -> None:
        self._functions.samples_free(self._samples)

    def take(self, data: bytes) -> int:
        """Add up the blocks from `step.at` on, and say why that ended."""
        self._functions.samples_take(self._samples, data, _NUMBER(len(data)), ctypes.byref(self.step))
        return self.step.why

    def shape(self, data: bytes, kind: int) -> None:
        """Tell the kind of lines as that of the step; below 0 of those that cannot be added up."""
        self._functions.samples_shape(self._samples, data, ctypes.byref(self.step), _NUMBER(kind))

    def drain(self) -> Iterator[SameSamples]:
        """All that was added up; it is forgotten then, with the kinds."""
        text, count = _POINTER(), _NUMBER()
        found = self._functions.samples_stacks(self._samples, ctypes.byref(text), ctypes.byref(count))
        for one in (_Entry * count.value).from_address(found):
            stack = ctypes.string_at((text.value or 0) + one.at, one.size)
            yield SameSamples(one.kind, stack, one.sum, one.count)
        self._functions.samples_clear(self._samples)


@cache
def load(path: Path = _LIBRARY) -> ctypes.CDLL | None:
    """The library; None where it was not built, or the system cannot load it."""
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        return None
