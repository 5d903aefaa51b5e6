"""What the engines yield: entries and exits of functions, or completed calls.

Functions are numbers; the engine names them at the end, see
:class:`perun.collect._calls.profile.Function`. Times are nanoseconds since the beginning of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from perun.collect._common.columns import Bools, Columns, Ints

UNKNOWN: Final = -1
"""A size that is not known, or the caller of a call that none of the traced functions made."""


@dataclass(frozen=True, eq=False)
class Events(Columns):
    """Entries and exits of one thread in their order.

    :param time: nanoseconds. :param function: number of the function that is entered or left.
    :param entry: whether it is an entry. :param size: of the structure, at an entry; else :data:`UNKNOWN`.
    """

    time: Ints
    function: Ints
    entry: Bools
    size: Ints


@dataclass(frozen=True, eq=False)
class Calls(Columns):
    """Completed calls, one to a row, in any order.

    :param function: its number. :param thread: number of the thread in the kernel.
    :param start: nanoseconds. :param duration: from the entry to the exit, in nanoseconds.
    :param exclusive: the duration without those of the traced functions that the call called.
    :param size: of the structure that it worked on, :data:`UNKNOWN` where not known.
    :param caller: number of the innermost traced function it was called within, or :data:`UNKNOWN`.
    :param order: a number that grows with the entries of a thread; calls of one thread have different ones.
    """

    function: Ints
    thread: Ints
    start: Ints
    duration: Ints
    exclusive: Ints
    size: Ints
    caller: Ints
    order: Ints
