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
from perun.island.columns import entered, table
from perun.island.layout import APIS, Api
from perun.island.recorded import Call, Object, Thread
from perun.island.scan import DamagedCallRecording, Scan, folded

if TYPE_CHECKING:
    from perun.island.columns import Islands, Table, Times

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
        """All calls as a numpy array with the fields of `Call` (`columns.DTYPE`), by thread and start."""
        return table(self._scan, [thread.island for thread in self.threads])


def read(path: Path) -> Recording:
    """The recording of one process.

    :raises DamagedCallRecording: where the file is none, or says impossible things. :raises OSError: where it
        cannot be read, e.g. as there is none.
    """
    return Recording(path)
