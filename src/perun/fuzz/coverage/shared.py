"""The record that is shared with the program: `native/fork_server.h` describes its layout."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

LIBRARY: Final = Path(__file__).with_name("libperun_fuzz.so")
"""What is loaded into the program: `native/fork_server.c`."""

PAGE: Final = mmap.PAGESIZE
LOADED, READY, THREADS, REFUSED = 1, 2, 3, 4
ARGUMENT_SIZE: Final = 128 * 1024
"""Most bytes of one argument, with the byte that ends it, that Linux passes to a program."""

_MAGIC: Final = 0x315A4650
_ONCE: Final = 1
_HEADER: Final = struct.Struct("=IIQQQQIIIIQQiIQ")
_RANGE: Final = struct.Struct("=QQQQQ")
_STATE: Final = struct.Struct("=II")
_STATE_OFFSET: Final = 48
_TIMES: Final = struct.Struct("=QQ")
_TIMES_OFFSET: Final = 56
_COPY: Final = struct.Struct("=iIQ")
_COPY_OFFSET: Final = 72


class CounterRange(NamedTuple):
    """Pages of a module of the program, with counters: the file is known by `device` and `inode`."""

    device: int
    inode: int
    address: int
    length: int


class Record:
    """One record in shared memory; `fd` is inherited by the program.

    :param ranges: pages that are shared, at addresses that are multiples of :data:`PAGE`.
    :param edges: for how many counters of edges there is room.
    :param memory: most bytes of address space of the program, None for no limit.
    :param argument: which argument is different in each run, 0 for none.
    :param once: the program is started anew for each run.
    """

    def __init__(
        self, ranges: Sequence[CounterRange], edges: int, memory: int | None, argument: int, *, once: bool
    ) -> None:
        self.once = once
        self.offsets: list[int] = []
        end = _pages(_HEADER.size + len(ranges) * _RANGE.size)
        packed = b""
        for each in ranges:
            self.offsets.append(end)
            packed += _RANGE.pack(*each, end)
            end += each.length
        self.edges_offset = end
        end += _pages(4 * edges)
        self._argument = end
        if argument:
            end += ARGUMENT_SIZE
        self.fd = os.memfd_create("perun-fuzz")
        try:
            os.ftruncate(self.fd, end)
            self.memory = mmap.mmap(self.fd, end)
        except BaseException:
            os.close(self.fd)
            raise
        header = _HEADER.pack(
            _MAGIC, _ONCE * once, memory or 0, self.edges_offset, edges, self._argument, argument,
            len(ranges), 0, 0, 0, 0, 0, 0, 0,
        )  # fmt: skip
        self.memory[: len(header) + len(packed)] = header + packed

    @property
    def state(self) -> int:
        """How far the program got: one of the constants of this module, 0 if nothing was loaded into it."""
        return int(_STATE.unpack_from(self.memory, _STATE_OFFSET)[0])

    @property
    def problem(self) -> int:
        """Why the kernel refused, an error number."""
        return int(_STATE.unpack_from(self.memory, _STATE_OFFSET)[1])

    @property
    def edges(self) -> int:
        """How many counters of edges the program has."""
        return int(_TIMES.unpack_from(self.memory, _TIMES_OFFSET)[0])

    @property
    def seconds(self) -> float:
        """Real time of the last run, less what a long one has waited for a core."""
        return float(_TIMES.unpack_from(self.memory, _TIMES_OFFSET)[1]) / 1e9

    @property
    def copy(self) -> int:
        """The process id of the copy that runs, or ran last; 0 before the first one."""
        return int(_COPY.unpack_from(self.memory, _COPY_OFFSET)[0])

    @property
    def begun(self) -> float | None:
        """When the copy that runs got its request, as :func:`time.monotonic` counts; None if not yet."""
        _, running, begun = _COPY.unpack_from(self.memory, _COPY_OFFSET)
        return begun / 1e9 if running else None

    def clear(self) -> None:
        """Forget what the last program wrote; for programs that are started anew for each run."""
        _STATE.pack_into(self.memory, _STATE_OFFSET, 0, 0)
        _TIMES.pack_into(self.memory, _TIMES_OFFSET, 0, 0)
        self.memory[self.edges_offset : self._argument] = bytes(self._argument - self.edges_offset)

    def set_argument(self, text: bytes) -> None:
        """What the argument is in the next run; without the byte that ends it."""
        self.memory[self._argument : self._argument + len(text) + 1] = text + b"\0"

    def close(self) -> None:
        """Give the memory back, unless an array still refers to it."""
        os.close(self.fd)
        try:
            self.memory.close()
        except BufferError:
            return


def environ_of(environ: Mapping[str, str], record: Record) -> dict[str, str]:
    """The environment that tells a program of the record; the library restores it before the program sees it.

    Where the program is copied, all functions of libraries are bound before: else each copy would look up
    those that it calls.
    """
    bound: dict[str, str] = {}
    if not record.once and "LD_BIND_NOW" not in environ:
        bound = {"LD_BIND_NOW": "1", "PERUN_FUZZ_BIND": "1"}
    return {**environ, **bound, "PERUN_FUZZ": str(record.fd)}


def _pages(size: int) -> int:
    return -(-size // PAGE) * PAGE
