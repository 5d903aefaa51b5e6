"""Reads the recording of one process: the calls of its threads, and their files and sockets.

`layout` says what is in the file. What a killed process leaves is read up to the last slot that it wrote.
Times are nanoseconds of CLOCK_MONOTONIC; what is not known is -1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from heapq import merge
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.core.wording import counted
from perun.island import layout
from perun.island.layout import APIS, Api
from perun.island.scan import Call, DamagedCallRecording, Object, Scan, Thread, chosen, folded, together

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.void]
    Times = NDArray[np.int64]
    Islands = NDArray[np.int32]

__all__ = ["Call", "DamagedCallRecording", "Object", "Recording", "Thread", "read"]


class Recording:
    """What one process recorded.

    :ivar started: when recording began. :ivar ended: its end, or the last time that the recording knows.
    :ivar clock: ns to add to times for CLOCK_REALTIME.
    :ivar complete: the process ended as programs do, and no call is missing.
    :ivar notes: sentences about what is missing.
    :ivar io: rchar and wchar of the process when recording began; `io_end` when it ended.
    """

    apis: Final[tuple[Api, ...]] = APIS

    def __init__(self, path: Path, progress: Callable[[int], None] = lambda _: None) -> None:
        self.path = path
        self._scan = scan = Scan(path, progress)
        head = scan.head
        self.pid: int = head.pid
        self.parent: int = head.parent
        self.started: int = head.started
        self.ended: int = max(scan.last, head.started, head.ended)
        self.clock: int = head.clock
        self.io = (head.read, head.written)
        self.io_end = (head.read_end, head.written_end)
        self.notes: list[str] = []
        if head.lost or head.lost_files:
            self.notes.append(
                f"{counted(head.lost, 'call')} could not be recorded: the disk had no room for the recording"
            )
        if scan.cut:
            self.notes.append(f"the recording was cut off at byte {scan.cut}; the calls behind it are lost")
        self.complete = bool(head.ended) and not self.notes
        self.islands: list[str] = scan.islands()
        self.threads: list[Thread] = scan.threads()
        self.objects: list[Object] = scan.objects()

    def of_thread(self, number: int) -> Iterator[Call]:
        """The calls of one thread by their starts, concurrent ones by their ends, in constant memory.

        :raises DamagedCallRecording: where the file changed meanwhile.
        """
        thread = self.threads[number]
        return folded(self._scan.slots(thread.number), number, self._scan.positions, thread.island)

    def calls(self) -> Iterator[Call]:
        """The calls of all threads merged by their starts, in constant memory."""
        return merge(*(self.of_thread(thread.number) for thread in self.threads), key=attrgetter("start"))

    def entered(self, number: int) -> tuple[Times, Islands]:
        """When a thread entered an island other than that of its begin [ns], and the numbers of these; numpy
        arrays.
        """
        import numpy as np

        found = self._scan.entered.get(number, [])
        times, islands = np.array(found, np.int64).reshape(-1, 2).T
        return times, islands.astype(np.int32)

    def blocks(self, number: int) -> Iterator[CallBlock]:
        """All calls of one thread in constant memory; each is done in exactly one block. Concurrent ones are
        in the last.

        :raises DamagedCallRecording: where the file changed meanwhile.
        """
        import numpy as np

        entered = self.entered(number)
        pieces = ((slots, self._table(number, slots, *entered)) for slots in self._scan.slot_blocks(number))
        concurrent: list[Table] = []
        yield from call_blocks(_taking(pieces, concurrent))
        if concurrent:
            calls = together(concurrent)
            calls = calls.take(np.argsort(calls["start"], kind="stable"))
            yield CallBlock(calls, 0, np.ones(len(calls), np.bool_))

    def _table(self, number: int, slots: Table, times: Times, islands: Islands) -> Table:
        """The calls among the slots, by start, without what notes say of them."""
        import numpy as np

        calls = chosen(slots, (slots["api"] > 0) & (slots["api"] < len(layout.APIS)))
        if (calls["start"][1:] < calls["start"][:-1]).any():
            calls = calls.take(np.argsort(calls["start"], kind="stable"))
        made = np.zeros(len(calls), DTYPE)
        made["thread"] = number
        for name in ("api", "start", "amount"):
            made[name] = calls[name]
        made["end"] = np.where(calls["end"], calls["end"].astype(np.int64), -1)
        made["flags"] = calls["flags"] & ~np.uint16(layout.PHYSICAL)
        made["physical"] = np.where(calls["flags"] & layout.PHYSICAL, calls["amount"], 0)
        made["object"] = self._positions(calls["object"])
        made["island"] = first = self.threads[number].island
        if len(times):
            made["island"] = np.append(first, islands)[np.searchsorted(times, made["start"], "right")]
        made["expected"] = made["arrived"] = -1
        return made

    def _positions(self, numbers: NDArray[np.uint32]) -> NDArray[np.int32]:
        import numpy as np

        known = self._known
        if not len(known):
            return np.full(len(numbers), -1, np.int32)
        if int(known[-1]) - int(known[0]) < len(known):  # none is missing between: the usual case, and fast
            at = np.clip(numbers, known[0], known[-1]) - known[0]
        else:
            at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return np.where(known[at] == numbers, at, -1).astype(np.int32)

    @cached_property
    def _known(self) -> NDArray[np.uint32]:
        import numpy as np

        return np.array(sorted(self._scan.positions), np.uint32)


def read(path: Path, progress: Callable[[int], None] = lambda _: None) -> Recording:
    """The recording of one process.

    :param progress: is told how many bytes were read, now and whenever the calls are gone through.
    :raises DamagedCallRecording: where the file is none, or says impossible things. :raises OSError: where it
        cannot be read, e.g. as there is none.
    """
    return Recording(path, progress)


# Calls as numpy arrays.

DTYPE: Final = [
    *(("thread", "i4"), ("island", "i4"), ("api", "u2"), ("start", "i8"), ("end", "i8"), ("object", "i4")),
    *(("amount", "i8"), ("physical", "i8"), ("expected", "i8"), ("arrived", "i8"), ("flags", "u2")),
]
"""The fields of `Call`, for numpy."""


class CallBlock(NamedTuple):
    """Calls of a thread that began one after the other.

    :ivar calls: by start (dtype: `DTYPE`). :ivar held: so many of them, the first, were not done in the block
        before, and begin this one again. :ivar done: which of them have ended, with all calls made in them
        and all that notes say of them.
    """

    calls: Table
    held: int
    done: NDArray[np.bool_]


def call_blocks(pieces: Iterable[tuple[Table, Table]]) -> Iterator[CallBlock]:
    """The calls of a thread in blocks.

    :param pieces: slots with notes, and the calls that are among them (dtype: `DTYPE`).
    """
    import numpy as np

    waiting = np.zeros(0, DTYPE)
    for slots, found in pieces:
        held, calls = len(waiting), together([waiting, found])
        _note(calls, slots)
        # Notes follow directly on the end of their call; so it is done when another one begins after that.
        done = (calls["end"] >= 0) & (calls["end"] <= calls["start"][-1:])
        done[-1:] = False
        yield CallBlock(calls, held, done)
        waiting = chosen(calls, ~done)
    yield CallBlock(waiting, len(waiting), np.ones(len(waiting), np.bool_))


def _taking(pieces: Iterable[tuple[Table, Table]], concurrent: list[Table]) -> Iterator[tuple[Table, Table]]:
    """The pieces without the calls that take no time of their thread, which go to the list."""
    for slots, calls in pieces:
        beside = (calls["flags"] & layout.CONCURRENT) != 0
        if beside.any():
            concurrent.append(chosen(calls, beside))
            calls = chosen(calls, ~beside)
        yield slots, calls


def _note(calls: Table, slots: Table) -> None:
    """Write into the calls what notes say of them."""
    import numpy as np

    notes = chosen(slots, slots["api"] >= layout.FIRST_NOTE)
    if not len(notes) or not len(calls):
        return
    at = np.searchsorted(calls["start"], notes["start"].astype(np.int64), "right") - 1
    fits = (at >= 0) & (calls["start"][at] == notes["start"].astype(np.int64))
    at, notes = at[fits], chosen(notes, fits)
    for note, name in ((layout.NOTE_EXPECTED, "expected"), (layout.NOTE_ARRIVED, "arrived")):
        here = notes["api"] == note
        np.maximum.at(calls[name], at[here], notes["end"][here].astype(np.int64))
    # It is asked for after the call, and told in ms.
    calls["arrived"] = np.minimum(calls["arrived"], calls["end"])
    here = notes["api"] == layout.NOTE_PHYSICAL
    np.add.at(calls["physical"], at[here], notes["amount"][here])
