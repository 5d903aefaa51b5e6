"""What the engines hand over: entries and exits of functions, or the calls that were made of them.

Functions are numbers; what they stand for is told at the end, see
:class:`perun.collect._calls.profile.Function`. Times are nanoseconds since the beginning of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
UNKNOWN: Final = -1
"""A size that is not known, or the caller of a call that none of the traced functions made."""


class Events(NamedTuple):
    """Entries and exits of one thread in their order, shape (n,) each.

    :param time: nanoseconds. :param function: number of the function that is entered or left.
    :param entry: whether it is an entry. :param size: of the structure, at an entry; else :data:`UNKNOWN`.
    """

    time: Ints
    function: Ints
    entry: NDArray[np.bool_]
    size: Ints

    def where(self, chosen: Any) -> Events:
        """The events that a mask or positions choose."""
        return Events(*(column[chosen] for column in self))


class Calls(NamedTuple):
    """Completed calls, one to a row, in any order; shape (n,) each.

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

    @property
    def total(self) -> int:
        """How many calls there are."""
        return len(self.function)

    def where(self, chosen: Any) -> Calls:
        """The calls that a mask, positions or a slice choose."""
        return Calls(*(column[chosen] for column in self))

    @staticmethod
    def joined(pieces: Sequence[Calls]) -> Calls:
        """One after the other; no call at all of no piece."""
        if not pieces:
            return Calls(*(np.zeros(0, np.int64) for _ in Calls._fields))
        return Calls(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))
