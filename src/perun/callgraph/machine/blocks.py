"""The instructions of many functions as arrays, and what the registers of each function are used for."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.callgraph.machine.steps import ARGUMENTS, FIXED, Ints, Numbers, Table, number_of

Flags = NDArray[np.bool_]
_FIRST_ARGUMENT: Final = 16
"""The number of the register of the first argument; those of the others come after it."""
_READ, _WRITTEN = (np.uint64(number_of(name)) for name in ("read", "written"))
_ONE: Final = np.uint64(1)


class Blocks(NamedTuple):
    """The instructions of some functions. Each row is a block; those of a function come one after the other.

    :ivar step: for each instruction its row in the table. :ivar number: of its shape, and of what is at the
        address that it names. :ivar block: the row of its block.
    :ivar start: for each block its first instruction. :ivar length: how many it has.
    :ivar function: the number of its function. :ivar place: its number among the blocks of that, from 0.
    """

    step: Ints
    number: Numbers
    block: Ints
    start: Ints
    length: Ints
    function: Ints
    place: Ints
    table: Table


class Uses(NamedTuple):
    """What registers are used for; shape (functions, registers).

    :ivar numbers: of all that is done with a register when blocks begin and end.
    :ivar incoming: whether some block reads it as another one left it.
    :ivar fixed: its number where that does not depend on its uses, else 0: an argument, or the same register
        in all functions.
    """

    numbers: Numbers
    incoming: Flags
    fixed: Numbers


class _Events(NamedTuple):
    """Reads or writes of registers that are none of FIXED: the instruction, the how many-th register it is
    there, and the register, as its column in the row of its block."""

    instruction: Ints
    which: Ints
    key: Ints


def mixed(numbers: Numbers) -> Numbers:
    """Other numbers of 64 bits, each bit of which depends on all bits (the end of SplitMix64; Steele, Lea,
    Flood 2014)."""
    found: Numbers = numbers >> np.uint64(30)
    found ^= numbers  # in place: most of the time is that of memory
    found *= np.uint64(0xBF58476D1CE4E5B9)
    found ^= found >> np.uint64(27)
    found *= np.uint64(0x94D049BB133111EB)
    found ^= found >> np.uint64(31)
    return found


def counted(lengths: Ints) -> Ints:
    """0, 1 ... for each length, one after the other."""
    counts: Ints = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return counts


def uses_of(code: Blocks) -> Uses:
    """The uses of the registers of all functions."""
    width = code.table.width
    reads = _events(code, code.table.read_counts, code.table.reads)
    writes = _events(code, code.table.write_counts, code.table.writes)
    # Of several values for one index the last one stays: the first and the last write of each row.
    first = np.full(len(code.start) * width, len(code.step))
    first[writes.key[::-1]] = writes.instruction[::-1]
    last = np.full(len(first), -1)
    last[writes.key] = writes.instruction
    fresh = reads.instruction <= first[reads.key]
    reads = _Events(*(column[fresh] for column in reads))
    written = np.flatnonzero(last >= 0)

    shape = (int(code.function[-1]) + 1, width)
    numbers, fixed = np.zeros((2, *shape), np.uint64)
    incoming = np.zeros(shape, np.bool_)
    place = mixed(code.place.astype(np.uint64))
    for keys, instructions, salt in (
        (reads.key, reads.instruction, _READ + reads.which.astype(np.uint64)),
        (written, last[written], _WRITTEN),
    ):
        rows = keys // width
        found = mixed(mixed(code.number[instructions] + salt) ^ place[rows])
        np.add.at(numbers, (code.function[rows], keys % width), found)
    rows = reads.key // width
    incoming[code.function[rows], reads.key % width] = True
    _fix_arguments(code, reads, fixed)
    for column, number in FIXED.items():
        fixed[:, column] = number
    return Uses(numbers, incoming, fixed)


def _events(code: Blocks, counts: Ints, columns: Ints) -> _Events:
    own = counts[code.step]
    instruction, which = np.repeat(np.arange(len(own)), own), counted(own)
    column = columns[code.step[instruction], which]
    free = ~np.isin(column, list(FIXED))
    key = code.block[instruction] * code.table.width + column
    return _Events(instruction[free], which[free], key[free])


def _fix_arguments(code: Blocks, reads: _Events, fixed: Numbers) -> None:
    """Number the registers of arguments that the first block of a function reads before it writes them, and
    no later than its first call."""
    calls = np.flatnonzero(code.table.is_call[code.step])
    first_call = np.full(len(code.start), len(code.step))
    first_call[code.block[calls][::-1]] = calls[::-1]
    rows, columns = np.divmod(reads.key, code.table.width)
    is_argument = (code.place[rows] == 0) & (columns < len(ARGUMENTS))
    is_argument &= reads.instruction <= first_call[rows]
    rows, columns = rows[is_argument], columns[is_argument]
    fixed[code.function[rows], columns] = (_FIRST_ARGUMENT + columns).astype(np.uint64)
