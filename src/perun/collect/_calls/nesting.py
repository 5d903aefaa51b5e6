"""Calls of the entries and exits of one thread, piece by piece, in memory that does not grow with the run.

Entries and exits that fit are matched as parentheses are, without a loop over them. Where an exit is missing (a
longjmp, a thread that ended, a call the recorder lost) the calls are closed by the next exit of one that was entered
before; where the entry is missing the exit is left out. Both are counted.
"""

from __future__ import annotations

import numpy as np

from perun.collect._calls.events import UNKNOWN, Calls, Events, Ints


class Nesting:
    """Turns events of one thread into calls.

    :ivar missed: exits that were missing so far; :ivar stray: exits without an entry.
    :ivar depth: calls that are open.
    """

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.missed = 0
        self.stray = 0
        raise NotImplementedError

    def add(self, events: Events) -> Calls:
        """The calls that these events, which follow those before, complete."""
        raise NotImplementedError

    def finish(self, time: int) -> Calls:
        """The calls that are still open, closed at `time` and counted as missed exits."""
        raise NotImplementedError
