"""Reads the recording of one process: the calls of its threads, and their files and sockets.

`layout` says what is in the file. What a killed process leaves is read up to the last slot that it wrote.
Times are nanoseconds of CLOCK_MONOTONIC; what is not known is -1.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perun.core.wording import counted
from perun.island import layout
from perun.island.layout import APIS, Api
from perun.island.scan import SLOT, Call, DamagedCallRecording, Object, Scan, Thread, folded, is_text

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

    def __init__(self, path: Path) -> None:
        self.path = path
        self._scan = scan = Scan(path)
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
        return entered(self._scan, number)

    def columns(self) -> Table:
        """All calls as a numpy array with the fields of `Call` (`DTYPE`), by thread and start."""
        return table(self._scan, [thread.island for thread in self.threads])


def read(path: Path) -> Recording:
    """The recording of one process.

    :raises DamagedCallRecording: where the file is none, or says impossible things. :raises OSError: where it
        cannot be read, e.g. as there is none.
    """
    return Recording(path)


# All calls as one numpy array.

DTYPE: Final = [
    *(("thread", "i4"), ("island", "i4"), ("api", "u2"), ("start", "i8"), ("end", "i8"), ("object", "i4")),
    *(("amount", "i8"), ("physical", "i8"), ("expected", "i8"), ("arrived", "i8"), ("flags", "u2")),
]
"""The fields of `Call`, for numpy."""


def table(scan: Scan, islands: list[int]) -> Table:
    """All calls, by thread and start.

    :param islands: the island in which each thread begins.
    :raises DamagedCallRecording: where the file changed meanwhile.
    """
    import numpy as np

    parts = [_of_thread(scan, number, islands[number]) for number in sorted(scan.chunks)]
    return np.concatenate(parts) if parts else np.zeros(0, DTYPE)


def entered(scan: Scan, number: int) -> tuple[Times, Islands]:
    """When a thread entered which island."""
    import numpy as np

    slots = _slots(scan, number)
    notes = slots[slots["api"] == layout.NOTE_ENTERED]
    return notes["start"].astype(np.int64), notes["object"].astype(np.int32)


def _slots(scan: Scan, number: int) -> Table:
    import numpy as np

    with scan._opened() as file:
        pieces = [scan.array(file, chunk) for chunk in scan.chunks.get(number, [])]
    return np.concatenate([piece[~is_text(piece)] for piece in pieces] or [np.zeros(0, SLOT)])


def _of_thread(scan: Scan, number: int, island: int) -> Table:
    import numpy as np

    slots = _slots(scan, number)
    calls = slots[(slots["api"] > 0) & (slots["api"] < len(layout.APIS))]
    calls = calls[np.argsort(calls["start"], kind="stable")]
    made = np.zeros(len(calls), DTYPE)
    made["thread"] = number
    for name in ("api", "start", "amount"):
        made[name] = calls[name]
    made["end"] = np.where(calls["end"], calls["end"].astype(np.int64), -1)
    made["flags"] = calls["flags"] & ~np.uint16(layout.PHYSICAL)
    made["physical"] = np.where(calls["flags"] & layout.PHYSICAL, calls["amount"], 0)
    made["object"] = _positions(scan, calls["object"])
    made["island"] = _islands(slots, calls["start"], island)
    made["expected"] = made["arrived"] = -1
    for note, name in ((layout.NOTE_EXPECTED, "expected"), (layout.NOTE_ARRIVED, "arrived")):
        at, notes = _notes(slots, calls["start"], note)
        np.maximum.at(made[name], at, notes["end"].astype(np.int64))
    # It is asked for after the call, and told in ms.
    made["arrived"] = np.minimum(made["arrived"], made["end"])
    at, notes = _notes(slots, calls["start"], layout.NOTE_PHYSICAL)
    np.add.at(made["physical"], at, notes["amount"])
    return made


def _notes(slots: Table, starts: NDArray[np.uint64], note: int) -> tuple[NDArray[np.intp], Table]:
    """Positions of the calls that notes of one kind are about, and the notes."""
    import numpy as np

    notes = slots[slots["api"] == note]
    at = np.searchsorted(starts, notes["start"], "right") - 1
    fits = (at >= 0) & (len(starts) > 0)
    fits[fits] = starts[at[fits]] == notes["start"][fits]
    return at[fits], notes[fits]


def _positions(scan: Scan, numbers: NDArray[np.uint32]) -> NDArray[np.int32]:
    import numpy as np

    known = np.array(sorted(scan.positions), np.uint32)
    if not len(known):
        return np.full(len(numbers), -1, np.int32)
    at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.where(known[at] == numbers, at, -1).astype(np.int32)


def _islands(slots: Table, starts: NDArray[np.uint64], island: int) -> NDArray[np.int32]:
    import numpy as np

    entered = slots[slots["api"] == layout.NOTE_ENTERED]
    numbers = np.concatenate([np.array([island], np.int64), entered["object"].astype(np.int64)])
    return numbers[np.searchsorted(entered["start"], starts, "right")].astype(np.int32)
