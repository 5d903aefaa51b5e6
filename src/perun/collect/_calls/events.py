"""What the engines yield: entries and exits of functions, or completed calls.

Functions are numbers, which :class:`perun.collect._calls.profile.Function` names in the end. Times are
nanoseconds since the start of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from perun.collect._common.columns import Bools, Columns, Ints

UNKNOWN: Final = -1
"""In place of a size or of a caller: it is not known, or none of the traced functions."""


@dataclass(frozen=True, eq=False)
class Events(Columns):
    """Entries and exits of one thread in the order of time.

    :param time: nanoseconds. :param function: number of the function that is entered or left.
    :param entry: whether it is an entry. :param size: size of the structure, :data:`UNKNOWN` at an exit.
    """

    time: Ints
    function: Ints
    entry: Bools
    size: Ints


@dataclass(frozen=True, eq=False)
class Calls(Columns):
    """Completed calls, a row each, in any order.

    :param function: number of the function. :param thread: id of the thread in the kernel.
    :param start: nanoseconds. :param duration: nanoseconds from the entry to the exit.
    :param exclusive: the duration minus those of the traced calls that the call made itself.
    :param size: size of the structure that it worked on, or :data:`UNKNOWN`.
    :param caller: number of the innermost traced function that was running, or :data:`UNKNOWN`.
    :param order: sorts the calls of a thread by their entries; no two are equal.
    """

    function: Ints
    thread: Ints
    start: Ints
    duration: Ints
    exclusive: Ints
    size: Ints
    caller: Ints
    order: Ints
