"""The k-th smallest value of each of many windows, by numpy alone.

A wavelet matrix (F. Claude, G. Navarro, A. Ordóñez: The wavelet matrix, Information Systems 47, 2015) of
the ranks of the values answers for all windows at once, one bit of the rank at a time: in O(log n) for each
window, however wide it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.models.points import Floats

Places = NDArray[np.int32]
"""Positions among up to 2^30 values; 64 bits would take half as much time again."""


class OrderStatistics(NamedTuple):
    """Values prepared for :meth:`smallest`; made by :meth:`of`.

    :param ascending: the values in ascending order, shape (n,).
    :param levels: for each bit of the ranks, the highest first, where the first i ranks of its level end on
        the next one: at i those without the bit, at n + 1 + i those with it, which lie behind them; shape
        (bits, 2 (n + 1)).
    """

    ascending: Floats
    levels: Places

    @classmethod
    def of(cls, values: Floats) -> OrderStatistics:
        """The values prepared for any number of windows, in O(n log n) time and memory.

        :param values: shape (n,), n > 0, none of them NaN.
        """
        size = values.size
        order = np.argsort(values, kind="stable")
        ranks = np.empty(size, np.int32)
        ranks[order] = np.arange(size, dtype=np.int32)
        bits = (size - 1).bit_length()
        levels = np.zeros((bits, 2, size + 1), np.int32)
        for (without, with_bit), bit in zip(levels, reversed(range(bits)), strict=True):
            lacks = (ranks >> bit) & 1 == 0
            np.cumsum(lacks, out=without[1:])
            # Ranks with the bit go behind all that lack it, so that the next level has them side by side.
            with_bit[:] = np.arange(size + 1, dtype=np.int32) - without + without[-1]
            ranks = np.concatenate((ranks[lacks], ranks[~lacks]))
        return cls(values[order], levels.reshape(bits, 2 * (size + 1)))

    def smallest(self, first: Places, end: Places, place: Places) -> Floats:
        """The value that has `place` smaller ones in the window from `first` up to, without, `end`.

        :param first, end, place: shape (windows,), with 0 <= first < end <= n and 0 <= place < end - first.
        :returns: shape (windows,).
        """
        rank = np.zeros_like(first)
        for level in self.levels:
            lower = level.take(end) - level.take(first)  # ranks of the window without the bit
            above = (place >= lower).astype(np.int32)
            rank = (rank << 1) | above
            # Arithmetic with 0 and 1: `np.where` takes three times as long on bits that nothing predicts.
            place = place - lower * above
            branch = above * np.int32(self.ascending.size + 1)
            first, end = level.take(first + branch), level.take(end + branch)
        return self.ascending[rank]
