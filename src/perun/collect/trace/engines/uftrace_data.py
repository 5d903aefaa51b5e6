"""What uftrace wrote: the sessions of processes, and the records of threads as events."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from perun.collect._calls.events import UNKNOWN, Events
from perun.collect._calls.sizes import Size
from perun.collect.trace.engines.calibration import Piece, boundaries, sizes_from_sums
from perun.collect.trace.plan import Probe
from perun.native.columns import Ints
from perun.native.elf import read_elf

_ENTRY, _EXIT, _LOST = 0, 1, 2
"""Types of the records of uftrace that count here: the lowest two bits of the second word."""


DEEPEST: Final = 1023
"""The greatest depth of a call that uftrace records; it is in bits 6 to 15 of the second word."""


class Session(NamedTuple):
    """The program that a process runs from a time on.

    :param start: nanoseconds. :param bases: of each traced file, what its addresses are moved by.
    """

    start: int
    bases: dict[str, int]


class Decoder:
    """Decodes the records of one thread to events.

    :ivar lost: number of records that uftrace reports as lost.
    :ivar deepest: the functions with calls at the greatest depth that uftrace records.
    """

    def __init__(self, probes: Sequence[Probe], sessions: Sequence[Session], epoch: int) -> None:
        self.lost = 0
        self.deepest: set[int] = set()
        self._sessions = sessions
        self._epoch = epoch
        self._probes = probes
        self._tables = [_table(probes, session) for session in sessions]
        self._starts = np.array([session.start for session in sessions], np.int64)
        self._direct = np.array(
            [probe.size is not None and not follows_pointers(probe.size) for probe in probes], np.bool_
        )

    def events(self, words: Piece) -> tuple[Events, int]:
        """The events of a piece, and the number of words of its complete records."""
        values = words.values
        at, used = boundaries(values, 2)
        head = values[at + 1]
        kind = (head & np.uint64(3)).astype(np.int64)
        lost = kind == _LOST
        if lost.any():
            self.lost += int((head[lost] >> np.uint64(16)).sum())
        chosen = (kind == _ENTRY) | (kind == _EXIT)
        at, head, kind = at[chosen], head[chosen], kind[chosen]
        time = values[at].astype(np.int64)
        function = self._functions(time, (head >> np.uint64(16)).astype(np.int64))
        known = function >= 0
        at, head, kind, time, function = at[known], head[known], kind[known], time[known], function[known]
        size = np.full(len(at), UNKNOWN, np.int64)
        entry = kind == _ENTRY
        if self._direct.any():
            has = entry & ((head & np.uint64(4)) != 0) & self._direct[function]
            size[has] = self._direct_sizes(function[has], values[at[has] + 2].view(np.int64))
        deep = ((head >> np.uint64(6)) & np.uint64(DEEPEST)) == np.uint64(DEEPEST)
        if deep.any():
            self.deepest.update(np.unique(function[deep]).tolist())
        return Events(time - self._epoch, function, entry, size), used

    def _functions(self, time: Ints, address: Ints) -> Ints:
        """The numbers of the functions at addresses, -1 for functions that are not traced."""
        session = np.maximum(np.searchsorted(self._starts, time, "right") - 1, 0)
        function = np.full(len(address), -1, np.int64)
        for number, (starts, ends, numbers) in enumerate(self._tables):
            if not len(starts):
                continue
            mine = session == number
            place = np.searchsorted(starts, address[mine], "right") - 1
            inside = (place >= 0) & (address[mine] <= ends[place])
            function[mine] = np.where(inside, numbers[place], -1)
        return function

    def _direct_sizes(self, function: Ints, value: Ints) -> Ints:
        size = np.full(len(value), UNKNOWN, np.int64)
        for number in np.unique(function).tolist():
            spec = self._probes[number].size
            assert spec is not None
            mine = function == number
            size[mine] = sizes_from_sums(spec, _narrowed(value[mine], spec))
        return size


def _table(probes: Sequence[Probe], session: Session) -> tuple[Ints, Ints, Ints]:
    """The address ranges of the probed functions and their numbers, in the order of the addresses."""
    rows = sorted(
        (session.bases[probe.path] + probe.function.address, probe.function.size, number)
        for number, probe in enumerate(probes)
        if probe.path in session.bases
    )
    starts, sizes, numbers = np.array(rows, np.int64).reshape(len(rows), 3).T
    return starts, starts + sizes, numbers


def follows_pointers(size: Size) -> bool:
    """Whether the size lies behind a pointer, which uftrace does not follow."""
    return any(term.offsets for term in size.terms)


def argument_of(size: Size) -> str:
    """The parameter with which a size begins, as uftrace specifies it (`--argument`)."""
    if size.register >= 0:
        return f"arg{size.register + 1}/x64"
    return f"arg1/x64%stack+{size.stack // 8}"


def read_tasks(data: Path, paths: set[str]) -> tuple[dict[int, list[Session]], dict[int, int]]:
    """The sessions of each process in the order of time, and the process of each thread.

    :param data: the folder that uftrace wrote. :param paths: the files that are traced.
    """
    sessions: dict[int, list[Session]] = {}
    tasks: dict[int, int] = {}
    for line in (data / "task.txt").read_text("utf-8", "replace").splitlines():
        kind, _, rest = line.partition(" ")
        fields = dict(field.partition("=")[::2] for field in shlex.split(rest))
        if kind == "SESS":
            pid = int(fields["pid"])
            bases = _bases(data / f"sid-{fields['sid']}.map", paths)
            sessions.setdefault(pid, []).append(Session(_nanoseconds(fields["timestamp"]), bases))
        elif kind == "TASK":
            tasks[int(fields["tid"])] = int(fields["pid"])
        elif kind == "FORK":
            child, parent = int(fields["pid"]), int(fields["ppid"])
            tasks[child] = child
            sessions.setdefault(child, list(sessions.get(parent, [])))
    return sessions, tasks


def _bases(file: Path, paths: set[str]) -> dict[str, int]:
    """Of each traced file that the process has mapped, what its addresses are moved by."""
    bases: dict[str, int] = {}
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return bases
    for line in lines:
        fields = line.split(None, 5)
        path = re.sub(r" build-id:[0-9a-f]*$", "", fields[5]) if len(fields) == 6 else ""
        path = os.path.realpath(path) if path.startswith("/") else path
        if path in paths and path not in bases:
            bases[path] = int(fields[0].partition("-")[0], 16) - _first_address(path)
    return bases


def _first_address(path: str) -> int:
    elf = read_elf(path)
    return min((segment.address for segment in elf.segments), default=0) & ~0xFFF if elf else 0


def _nanoseconds(text: str) -> int:
    seconds, _, rest = text.partition(".")
    return int(seconds) * 1_000_000_000 + int(rest.ljust(9, "0")[:9])


def _narrowed(value: Ints, size: Size) -> Ints:
    """The values of a parameter, of which only the lowest bytes of the register are defined."""
    term = size.terms[0]
    kind = np.dtype(f"{'i' if term.signed else 'u'}{term.width}")
    return value.astype(kind).astype(np.int64) * term.factor
