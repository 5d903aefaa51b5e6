"""Recordings of records of two or three words of eight bytes, which is what all engines make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from perun.collect._calls.events import UNKNOWN
from perun.collect._calls.sizes import Size
from perun.collect._common.columns import Ints
from perun.collect._common.recordings import Words, words

PIECE: Final = 1 << 18
"""Words of a recording that are decoded at once."""
NOT_READ: Final = -(1 << 63)
"""The sum of a size whose memory could not be read."""


class Piece:
    """A piece of a recording; who reads it says how many words of it make whole records."""

    def __init__(self, values: Words) -> None:
        self.values = values
        self.consumed = 0


def pieces(file: Path) -> Iterator[Piece]:
    """The words of a file, piece by piece; what was not consumed of one begins the next one."""
    with open(file, "rb") as stream:
        rest = np.zeros(0, np.uint64)
        for piece in words(stream, PIECE):
            whole = Piece(np.concatenate([rest, piece]))
            yield whole
            rest = whole.values[whole.consumed :]


def boundaries(values: Words, bit: int) -> tuple[Ints, int]:
    """Where the records of a piece begin, and where the last whole one of them ends.

    Which word begins a record is only known by going from record to record.

    :param bit: the bit of the second word that says that there is a third one.
    """
    count = len(values)
    if count < 2:
        return np.zeros(0, np.int64), 0
    more = (values[1:] & np.uint64(1 << bit)) != 0
    if not more[::2].any():
        at = np.arange(0, count - 1, 2, dtype=np.int64)
        return at, len(at) * 2
    longer = more.tobytes()
    starts = []
    position = 0
    while position < count - 1:
        starts.append(position)
        position += 2 + longer[position]
    if position > count:
        position = starts.pop()
    return np.array(starts, np.int64), position


def divided(size: Size, sums: Ints) -> Ints:
    """Sizes of the sums of their terms; what is negative, or could not be read, is not known."""
    values = (sums + size.constant) // size.divisor
    return np.where((sums == NOT_READ) | (values < 0), UNKNOWN, values)
