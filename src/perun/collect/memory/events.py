"""Kinds of events: `enum record_kind` of `native/record.h`, and two more for Python programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from perun.native.columns import Columns, Ints

KINDS: Final = {
    1: "malloc",
    2: "calloc",
    3: "realloc",
    4: "reallocarray",
    5: "memalign",
    6: "posix_memalign",
    7: "aligned_alloc",
    8: "valloc",
    9: "pvalloc",
    10: "new",
    11: "new[]",
    12: "object",
    13: "mmap",
    32: "free",
    33: "delete",
    34: "delete[]",
    35: "free",  # by realloc
}
"""Kind of an event to the subtype of its resource."""
OF_PYTHON: Final = frozenset({12, 13})
"""Kinds of Python programs only: allocations of objects, and memory that extensions map."""
FIRST_RELEASE: Final = 32
"""This kind and larger ones release memory."""
REALLOC_RELEASE: Final = 35
"""A realloc releases its old block."""
REALLOC_FAILED: Final = 36
"""The realloc has failed, so that the release before did not happen."""


# Which of the blocks that are live at the end the program can still reach, in the terms of memcheck.
#
# The recorder searches for that at the end of the program (`native/reach.h`); here its answer is joined with
# the blocks of the replay.

STATES: Final = ("definitely-lost", "indirectly-lost", "possibly-lost", "still-reachable")
"""`enum record_reach` of `native/record.h`: the names of fields in profiles."""


@dataclass(frozen=True, eq=False)
class LiveBlocks(Columns):
    """The blocks that are live at the end: address, requested bytes, and the key of their row in `Rows`."""

    address: Ints
    size: Ints
    key: Ints


class BlockStates(NamedTuple):
    """What a recorder found at the end: addresses of blocks in ascending order, and positions in `STATES`.

    :param unseen_threads: how many threads had registers that could not be read.
    :param complete: whether the search was completed; otherwise there are no blocks.
    """

    address: Ints
    state: Ints
    unseen_threads: int
    complete: bool


class LiveBlockStates(NamedTuple):
    """The live blocks of a process by state.

    :param keys: of rows, ascending. :param sizes: bytes of each row by state, shape (states, rows).
    :param totals: name of a state to bytes and number of blocks.
    """

    keys: Ints
    sizes: Ints
    totals: Mapping[str, tuple[int, int]]


def reached(live: LiveBlocks, reach: BlockStates) -> LiveBlockStates:
    """The live blocks by state. One that was allocated after the search counts as still reachable."""
    state = np.full(len(live), len(STATES) - 1, np.int64)
    if len(reach.address):
        place = np.minimum(np.searchsorted(reach.address, live.address), len(reach.address) - 1)
        state = np.where(reach.address[place] == live.address, reach.state[place], state)
    keys, row = np.unique(live.key, return_inverse=True)
    sizes = np.zeros((len(STATES), len(keys)), np.int64)
    np.add.at(sizes, (state, row), live.size)
    blocks = np.bincount(state, minlength=len(STATES)).tolist()
    totals = {name: (int(sizes[number].sum()), blocks[number]) for number, name in enumerate(STATES)}
    return LiveBlockStates(keys, sizes, totals)
