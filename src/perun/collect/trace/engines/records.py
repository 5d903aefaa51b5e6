"""Recordings of the engines: records of two or three words of eight bytes."""

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
"""How many words of a recording are decoded at once."""
NOT_READ: Final = -(1 << 63)
"""The sum of a size whose memory could not be read."""


class Piece:
    """A piece of a recording; the reader sets `consumed` to the number of words of its complete records."""

    def __init__(self, values: Words) -> None:
        self.values = values
        self.consumed = 0


def pieces(file: Path) -> Iterator[Piece]:
    """The words of a file, piece by piece; the next piece begins with what was not consumed of the last."""
    with open(file, "rb") as stream:
        rest = np.zeros(0, np.uint64)
        for piece in words(stream, PIECE):
            joined = Piece(np.concatenate([rest, piece]))
            yield joined
            rest = joined.values[joined.consumed :]


def boundaries(values: Words, bit: int) -> tuple[Ints, int]:
    """The positions at which the records of a piece begin, and the end of the last complete one.

    :param bit: the bit of the second word of a record that says that it has a third one.
    """
    count = len(values)
    if count < 2:
        return np.zeros(0, np.int64), 0
    has_third = (values[1:] & np.uint64(1 << bit)) != 0
    if not has_third[::2].any():
        at = np.arange(0, count - 1, 2, dtype=np.int64)
        return at, len(at) * 2
    # The start of a record depends on the length of the one before, so that this cannot be an array
    # operation. Bytes are read faster than elements of an array.
    extra = has_third.tobytes()
    starts = []
    position = 0
    while position < count - 1:
        starts.append(position)
        position += 2 + extra[position]
    if position > count:
        position = starts.pop()
    return np.array(starts, np.int64), position


def sizes_from_sums(size: Size, sums: Ints) -> Ints:
    """The sizes for the sums of their terms; UNKNOWN for negative ones and those that could not be read."""
    values = (sums + size.constant) // size.divisor
    return np.where((sums == NOT_READ) | (values < 0), UNKNOWN, values)
